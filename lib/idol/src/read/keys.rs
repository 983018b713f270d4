//! The keys of one `(key: value, ..)`.

use super::text;
use crate::report::Problem;
use crate::tree::{Field, Node, Span};

/// Looks keys up, after it has reported unknown and repeated ones.
pub struct Keys<'t, 'p> {
    what: &'static str,
    span: Span,
    fields: &'t [Field],
    problems: &'p mut Vec<Problem>,
}

impl<'t, 'p> Keys<'t, 'p> {
    /// `what` has these keys; `span` is where a missing one is reported.
    pub fn new(
        what: &'static str,
        span: Span,
        fields: &'t [Field],
        known: &[&str],
        problems: &'p mut Vec<Problem>,
    ) -> Self {
        for (index, field) in fields.iter().enumerate() {
            if fields[..index].iter().any(|earlier| earlier.key == field.key) {
                let problem = Problem::new(field.key_span.clone(), format!("key `{}` stands here twice", field.key))
                    .label("the second one")
                    .help("remove one of them");
                problems.push(problem);
            } else if !known.contains(&field.key.as_str()) {
                let problem = Problem::new(field.key_span.clone(), format!("unknown key `{}`", field.key))
                    .label(format!("not a key of {what}"))
                    .help(advice(&field.key, known));
                problems.push(problem);
            }
        }
        Self { what, span, fields, problems }
    }

    /// The value of a key that may be missing.
    pub fn optional(&mut self, key: &str) -> Option<&'t Node> {
        self.fields.iter().find(|field| field.key == key).map(|field| &field.value)
    }

    /// The value of a key that may not be missing; `help` says what to write.
    pub fn required(&mut self, key: &str, help: &str) -> Option<&'t Node> {
        let found = self.optional(key);
        // A key that was meant to be this one has been reported already.
        let meant =
            |field: &Field| closest(&field.key, &[key]).is_some() || (field.key == "idempotent" && key == "restart");
        if found.is_none() && !self.fields.iter().any(meant) {
            let problem = Problem::new(self.span.clone(), format!("{} lacks the key `{key}`", self.what))
                .label(format!("has no `{key}`"))
                .help(format!("add `{key}`: {help}"));
            self.problems.push(problem);
        }
        found
    }

    /// A text that may be missing.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.optional(key).and_then(|node| text(node, self.problems))
    }
}

/// What to do about a key that nobody knows.
fn advice(key: &str, known: &[&str]) -> String {
    match key {
        "idempotent" => return "say what a dead server means: `restart: Idempotent`, `Retry` or `Fail`".to_owned(),
        "recv" => return "leave it out: `bool` and enums are checked as they are received".to_owned(),
        _ => {}
    }
    match closest(key, known) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("the keys are {}", list(known)),
    }
}

/// `a`, `b` and `c`, each in backquotes.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// The known word that is a typing error away from a word.
pub fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = word.to_lowercase();
    known
        .iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), *candidate))
        .filter(|(distance, candidate)| *distance <= 2.min(candidate.len() / 2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Letters to insert, remove or replace to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = line;
        row[0] = line + 1;
        for (column, against) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *against);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}
