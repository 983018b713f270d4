//! From the tree to an interface: keys, kinds of values, names.

mod keys;
mod ops;
mod types;

use crate::model::{Interface, Named};
use crate::report::Problem;
use crate::tree::{Field, Node, Value};

use keys::Keys;
pub use keys::closest;

/// Reads an interface. `None` if too little of it could be read to check the rest; each problem is added to `problems`.
pub fn interface(tree: &Node, problems: &mut Vec<Problem>) -> Option<Interface> {
    let fields = match &tree.value {
        Value::Struct(Some(name), fields) if name == "Interface" => fields,
        other => {
            let problem = Problem::new(tree.span.start..tree.span.start + 1, "the file does not hold an interface")
                .label(format!("this is {}", other.kind()))
                .help("write `Interface(name: \"..\", ops: { .. })`");
            problems.push(problem);
            return None;
        }
    };
    let known = ["name", "doc", "types", "ops"];
    let start = tree.span.start..tree.span.start + "Interface".len();
    let mut keys = Keys::new("an interface", start, fields, &known, problems);
    let name = keys.required("name", "how the client is called in Rust, such as \"Mac\"");
    let doc = keys.text("doc").unwrap_or_default();
    let types = keys.optional("types");
    let ops = keys.required("ops", "a map of operations, { \"name\": ( .. ) }");
    let name = name.and_then(|node| name_text(node, problems)).filter(|name| camel_case(name, "interface", problems));
    let types = types.map(|node| types::read(node, problems)).unwrap_or_default();
    let ops = ops.map(|node| ops::read(node, problems));
    Some(Interface { name: name?, doc, types, ops: ops? })
}

fn name_text(node: &Node, problems: &mut Vec<Problem>) -> Option<Named> {
    text(node, problems).map(|text| Named { text, span: node.span.clone() })
}

fn key_name(field: &Field) -> Named {
    Named { text: field.key.clone(), span: field.key_span.clone() }
}

fn wrong_kind(node: &Node, wanted: &str, problems: &mut Vec<Problem>) {
    let problem = Problem::new(node.span.clone(), format!("expected {wanted}, found {}", node.value.kind()))
        .label("here")
        .help(format!("write {wanted}"));
    problems.push(problem);
}

fn text(node: &Node, problems: &mut Vec<Problem>) -> Option<String> {
    if let Value::Text(text) = &node.value {
        return Some(text.clone());
    }
    wrong_kind(node, "a text in quotes", problems);
    None
}

fn truth(node: &Node, problems: &mut Vec<Problem>) -> Option<bool> {
    match &node.value {
        Value::Name(name) if name == "true" => Some(true),
        Value::Name(name) if name == "false" => Some(false),
        _ => {
            wrong_kind(node, "`true` or `false`", problems);
            None
        }
    }
}

/// A whole number that is a number of something.
fn count(node: &Node, problems: &mut Vec<Problem>) -> Option<usize> {
    match node.value {
        Value::Integer(number) => match u32::try_from(number) {
            Ok(number) => Some(number as usize),
            Err(_) => {
                let problem = Problem::new(node.span.clone(), format!("{number} is out of range"))
                    .label("here")
                    .help("write a number from 0 to 4294967295");
                problems.push(problem);
                None
            }
        },
        _ => {
            wrong_kind(node, "a whole number", problems);
            None
        }
    }
}

/// The entries of a map.
fn entries<'a>(node: &'a Node, wanted: &str, problems: &mut Vec<Problem>) -> &'a [Field] {
    if let Value::Map(fields) = &node.value {
        return fields;
    }
    wrong_kind(node, wanted, problems);
    &[]
}

/// Says of each name that comes a second time that it does.
fn no_duplicates<'a>(what: &str, names: impl Iterator<Item = &'a Named>, problems: &mut Vec<Problem>) {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if seen.contains(&name.text.as_str()) {
            let problem = Problem::new(name.span.clone(), format!("{what} `{}` is defined twice", name.text))
                .label("the second one")
                .help("rename or remove one of them");
            problems.push(problem);
        } else {
            seen.push(&name.text);
        }
    }
}

/// Words that Rust keeps for itself.
const RESERVED: [&str; 53] = [
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
    "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

fn camel_case(name: &Named, what: &str, problems: &mut Vec<Problem>) -> bool {
    let text = &name.text;
    let good = text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|character| character.is_ascii_alphanumeric())
        && !RESERVED.contains(&text.as_str());
    if !good {
        let suggestion = crate::emit::camel(text);
        let suggestion = if suggestion.is_empty() || suggestion == *text { "Name".to_owned() } else { suggestion };
        let problem =
            Problem::new(name.span.clone(), format!("`{text}` cannot be the name of {} {what}", article(what)))
                .label("becomes a Rust type")
                .help(format!("use letters and digits in camel case, such as `{suggestion}`"));
        problems.push(problem);
    }
    good
}

/// Names that generated code gives to things of its own, where they would meet those of the file.
const OURS: [&str; 11] = [
    "frames",
    "handle_notification",
    "id",
    "kernel",
    "new",
    "notification_mask",
    "reply_refused",
    "request",
    "from",
    "into",
    "server",
];

fn snake_case(name: &Named, what: &str, problems: &mut Vec<Problem>) -> bool {
    let text = &name.text;
    let article = article(what);
    let well_formed = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '_')
        && !text.contains("__");
    let (why, help) = if !well_formed {
        (
            "becomes a Rust name",
            format!("use lower case, digits and single underscores, such as `{}`", crate::emit::snake(text)),
        )
    } else if RESERVED.contains(&text.as_str()) {
        ("a word of the Rust language", format!("choose another word, such as `{text}_value`"))
    } else if what != "field" && OURS.contains(&text.as_str()) {
        ("generated code has one of its own", format!("choose another word, such as `{text}_value`"))
    } else {
        return true;
    };
    let problem = Problem::new(name.span.clone(), format!("`{text}` cannot be the name of {article} {what}"))
        .label(why)
        .help(help);
    problems.push(problem);
    false
}

fn article(what: &str) -> &'static str {
    if what.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}
