//! `types`: structs, enums, and types that are defined elsewhere.

use super::keys::{Keys, list};
use super::{camel_case, count, entries, key_name, no_duplicates, snake_case, text, wrong_kind};
use crate::model::{Body, Layout, Member, TyRef, TypeDef, Variant, Width};
use crate::report::Problem;
use crate::tree::{Field, Node, Span, Value};
use crate::types::{self, Ty, Written};

/// Reads the map of types.
pub fn read(node: &Node, problems: &mut Vec<Problem>) -> Vec<TypeDef> {
    let fields = entries(node, "a map of types, { \"Name\": Struct(..) }", problems);
    let names: Vec<_> = fields.iter().map(key_name).collect();
    no_duplicates("type", names.iter(), problems);
    fields.iter().filter_map(|field| definition(field, problems)).collect()
}

fn definition(field: &Field, problems: &mut Vec<Problem>) -> Option<TypeDef> {
    let name = key_name(field);
    camel_case(&name, "type", problems);
    let (kind, inner) = match &field.value.value {
        Value::Struct(Some(kind), inner) => (kind.as_str(), inner),
        _ => {
            wrong_kind(&field.value, "`Struct(..)`, `Enum(..)` or `Extern(..)`", problems);
            return None;
        }
    };
    let span = field.value.span.start..field.value.span.start + kind.len();
    let read = match kind {
        "Struct" => structure(inner, span, problems),
        "Enum" => enumeration(inner, span, problems),
        "Extern" => foreign(inner, span, problems),
        _ => {
            let problem = Problem::new(span, format!("`{kind}` is not a kind of type"))
                .label("here")
                .help(format!("the kinds are {}", list(&["Struct", "Enum", "Extern"])));
            problems.push(problem);
            None
        }
    };
    // What could not be read has been reported, but its name is known.
    let (doc, body) = read.unwrap_or_else(|| (String::new(), placeholder()));
    Some(TypeDef { name, doc, body })
}

/// Stands in for a type that could not be read.
fn placeholder() -> Body {
    Body::Extern { path: String::new(), layout: Some(Layout { size: 1, align: 1 }), max_size: Some(1) }
}

fn structure(fields: &[Field], span: Span, problems: &mut Vec<Problem>) -> Option<(String, Body)> {
    let mut keys = Keys::new("a struct", span, fields, &["doc", "fields"], problems);
    let doc = keys.text("doc").unwrap_or_default();
    let members = keys.required("fields", "a map, { \"name\": \"type\" }")?;
    Some((doc, Body::Struct(self::members(members, "field", problems))))
}

/// Fields of a struct, or arguments: `"name": "type"` or `"name": (type: "..", ..)`.
pub fn members(node: &Node, what: &'static str, problems: &mut Vec<Problem>) -> Vec<Member> {
    let fields = entries(node, "a map, { \"name\": \"type\" }", problems);
    let names: Vec<_> = fields.iter().map(key_name).collect();
    no_duplicates(what, names.iter(), problems);
    let mut members = Vec::new();
    for (field, name) in fields.iter().zip(names) {
        snake_case(&name, what, problems);
        let doc = match &field.value.value {
            Value::Struct(None, inner) => inner.iter().find(|inner| inner.key == "doc"),
            _ => None,
        };
        let doc = doc.and_then(|doc| text(&doc.value, problems)).unwrap_or_default();
        if let Some(ty) = type_use(&field.value, true, problems) {
            members.push(Member { name, ty, doc });
        }
    }
    members
}

/// A type where it is used: `"type"`, or `(type: "..", max_len: ..)`; with `doc` if it is a member's.
pub fn type_use(node: &Node, with_doc: bool, problems: &mut Vec<Problem>) -> Option<TyRef> {
    let (node, max_len) = match &node.value {
        Value::Struct(None, fields) => {
            let known: &[&str] = if with_doc { &["type", "doc", "max_len"] } else { &["type", "max_len"] };
            let mut keys =
                Keys::new("a type with limits", node.span.start..node.span.start + 1, fields, known, problems);
            let ty = keys.required("type", "a text such as \"u32\"")?;
            let max_len = keys.optional("max_len");
            (ty, max_len)
        }
        _ => (node, None),
    };
    let written = text(node, problems)?;
    let span = node.span.clone();
    let bad = |message: String, help: &str| Problem::new(span.clone(), message).label("here").help(help);
    let ty = match types::parse(&written) {
        Ok(Written::Sized(ty)) => {
            if let Some(max_len) = max_len {
                let problem = Problem::new(max_len.span.clone(), format!("`{written}` has no length to limit"))
                    .label("here")
                    .help("remove `max_len`; it is for `str` and `[u8]`");
                problems.push(problem);
            }
            ty
        }
        Ok(Written::Slice(element)) if element != Ty::Primitive("u8") => {
            problems.push(bad(
                format!("`{written}` cannot travel in a message"),
                "only `[u8]` and `str` may vary in length; lend other slices as `leases`",
            ));
            return None;
        }
        Ok(variable) => {
            let Some(max_len) = max_len else {
                problems.push(bad(
                    format!("`{written}` lacks a limit"),
                    &format!("write `(type: \"{written}\", max_len: 64)`"),
                ));
                return None;
            };
            let max_len = count(max_len, problems)?;
            if variable == Written::Text { Ty::Text(max_len) } else { Ty::Bytes(max_len) }
        }
        Err(error) => {
            problems.push(bad(error, "types are numbers such as `u32`, `bool`, `()`, `[T; N]`, `Option<T>`, `str`, `[u8]`, and names from `types`"));
            return None;
        }
    };
    Some(TyRef { ty, span: node.span.clone() })
}

fn enumeration(fields: &[Field], span: Span, problems: &mut Vec<Problem>) -> Option<(String, Body)> {
    let mut keys = Keys::new("an enum", span, fields, &["doc", "repr", "variants"], problems);
    let doc = keys.text("doc").unwrap_or_default();
    let repr = keys.optional("repr");
    let variants = keys.required("variants", "a map, { \"Name\": 0 }")?;
    let width = match repr {
        None => Width::U8,
        Some(node) => match text(node, problems)?.as_str() {
            "u8" => Width::U8,
            "u16" => Width::U16,
            "u32" => Width::U32,
            other => {
                let problem = Problem::new(node.span.clone(), format!("an enum cannot be stored as `{other}`"))
                    .label("here")
                    .help("`repr` is \"u8\", \"u16\" or \"u32\"");
                problems.push(problem);
                return None;
            }
        },
    };
    let entries = entries(variants, "a map, { \"Name\": 0 }", problems);
    let names: Vec<_> = entries.iter().map(key_name).collect();
    no_duplicates("variant", names.iter(), problems);
    if entries.is_empty() {
        let problem = Problem::new(variants.span.clone(), "an enum without variants has no values")
            .label("here")
            .help("add a variant, such as \"Idle\": 0");
        problems.push(problem);
    }
    let read = entries.iter().filter_map(|field| variant(field, width, problems)).collect::<Vec<_>>();
    for (index, later) in read.iter().enumerate() {
        if let Some(earlier) = read[..index].iter().find(|earlier| earlier.value == later.value) {
            let message = format!("`{}` and `{}` have the same value", earlier.name.text, later.name.text);
            let problem = Problem::new(later.value_span.clone(), message)
                .label(format!("also `{}`", earlier.name.text))
                .help("give each variant a value of its own");
            problems.push(problem);
        }
    }
    Some((doc, Body::Enum { width, variants: read }))
}

fn variant(field: &Field, width: Width, problems: &mut Vec<Problem>) -> Option<Variant> {
    let name = key_name(field);
    camel_case(&name, "variant", problems);
    let (value, doc) = match &field.value.value {
        Value::Struct(None, inner) => {
            let mut keys = Keys::new("a variant", field.key_span.clone(), inner, &["value", "doc"], problems);
            let doc = keys.text("doc").unwrap_or_default();
            (keys.required("value", "a number of its own")?, doc)
        }
        _ => (&field.value, String::new()),
    };
    let Value::Integer(number) = value.value else {
        wrong_kind(value, "a whole number", problems);
        return None;
    };
    if !(0..=width.max()).contains(&number) {
        let problem = Problem::new(value.span.clone(), format!("{number} does not fit `{}`", width.rust()))
            .label("here")
            .help(format!("values go from 0 to {}; a wider `repr` takes more", width.max()));
        problems.push(problem);
        return None;
    }
    Some(Variant { name, value: number, value_span: value.span.clone(), doc })
}

fn foreign(fields: &[Field], span: Span, problems: &mut Vec<Problem>) -> Option<(String, Body)> {
    let known = ["doc", "path", "size", "align", "max_size"];
    let mut keys = Keys::new("an extern type", span, fields, &known, problems);
    let doc = keys.text("doc").unwrap_or_default();
    let path = keys.required("path", "the type in Rust, such as \"abi::FrameDesc\"")?;
    let size = keys.optional("size");
    let align = keys.optional("align");
    let max_size = keys.optional("max_size");
    let path = text(path, problems)?;
    let mut number = |node: Option<&Node>| node.and_then(|node| count(node, problems));
    let (size, align_value, max_size) = (number(size), number(align), number(max_size));
    if let (Some(node), Some(value)) = (align, align_value)
        && ![1, 2, 4, 8].contains(&value)
    {
        let problem = Problem::new(node.span.clone(), format!("{value} is not an alignment of messages"))
            .label("here")
            .help("`align` is 1, 2, 4 or 8");
        problems.push(problem);
        return None;
    }
    let layout = size.zip(align_value).map(|(size, align)| Layout { size, align });
    Some((doc, Body::Extern { path, layout, max_size }))
}
