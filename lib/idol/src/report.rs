//! What is wrong with a file, where, and what would be right.

use std::fmt;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::tree::Span;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Bytes of the file that it is about.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// Said at the place itself.
    pub label: String,
    /// What would be right.
    pub help: String,
}

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), label: "here".to_owned(), help: String::new() }
    }

    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// Everything that is wrong with one file.
///
/// As a [`Diagnostic`] it is one error with the problems as related ones; [`render`](Self::render) writes all of
/// them out without help from a library, for build scripts and logs.
#[derive(Debug)]
pub struct Report {
    path: PathBuf,
    source: NamedSource<String>,
    problems: Vec<Located>,
}

/// A problem with the text that it is about.
#[derive(Debug)]
struct Located {
    problem: Problem,
    source: NamedSource<String>,
}

impl Report {
    pub(crate) fn new(path: &Path, text: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        // Several operations may meet the same problem of a type.
        problems.dedup();
        let source = NamedSource::new(path.display().to_string(), text.to_owned());
        let problems = problems.into_iter().map(|problem| Located { problem, source: source.clone() }).collect();
        Self { path: path.to_owned(), source, problems }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The problems, in the order of the file.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().map(|located| &located.problem)
    }

    /// All problems with the lines that they are about.
    #[must_use]
    pub fn render(&self) -> String {
        let shown: Vec<String> =
            self.problems().map(|problem| show(&self.path, self.source.inner(), problem)).collect();
        shown.join("\n")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(to, "an error in {}", self.path.display()),
            count => write!(to, "{count} errors in {}", self.path.display()),
        }
    }
}

/// One problem with its line:
///
/// ```text
/// error: unknown key `lease`
///   --> mac.idol:7:13
///    |
///  7 |             lease: {},
///    |             ^^^^^ not a key of an operation
///    = help: did you mean `leases`?
/// ```
fn show(path: &Path, text: &str, problem: &Problem) -> String {
    let start = problem.span.start.min(text.len());
    let before = text.get(..start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let number = before.matches('\n').count() + 1;
    let line = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    let end = problem.span.end.clamp(start, (line_start + line.len()).max(start));
    let carets = "^".repeat(text.get(start..end).unwrap_or_default().chars().count().max(1));
    let width = number.to_string().len().max(2);
    let gutter = " ".repeat(width);
    let mut shown = format!("error: {}\n", problem.message);
    shown += &format!("{gutter}--> {}:{number}:{column}\n{gutter} |\n", path.display());
    shown += &format!("{number:>width$} | {}\n", line.replace('\t', " "));
    shown += &format!("{gutter} | {}{carets} {}\n", " ".repeat(column - 1), problem.label);
    if !problem.help.is_empty() {
        shown += &format!("{gutter} = help: {}\n", problem.help);
    }
    shown
}

impl std::error::Error for Report {}

impl Diagnostic for Report {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|located| located as &dyn Diagnostic)))
    }
}

impl fmt::Display for Located {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.problem.message)
    }
}

impl std::error::Error for Located {}

impl Diagnostic for Located {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.problem.label.clone()), self.problem.span.clone());
        Some(Box::new(std::iter::once(label)))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.problem.help.is_empty()).then(|| Box::new(&self.problem.help) as Box<dyn fmt::Display>)
    }
}
