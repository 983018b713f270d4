//! From an interface to Rust.
//!
//! The code is text, written with an eye to its readers: it ends up in `OUT_DIR`, in documentation and in debuggers.

mod client;
mod message;
mod server;
mod types;

use crate::model::{Body, Interface, Lease, Op, OpError};
use crate::types::Ty;

/// Runtime crate, as generated code names it.
const RT: &str = "::idol_runtime";

/// The whole generated file.
pub fn emit(interface: &Interface) -> String {
    let mut out = String::from("// Generated from an interface definition; edit that instead.\n");
    types::emit(interface, &mut out);
    for op in &interface.ops {
        message::emit(interface, op, &mut out);
    }
    client::emit(interface, &mut out);
    server::emit(interface, &mut out);
    out
}

/// `some_name` or `some-name` as `SomeName`.
pub fn camel(name: &str) -> String {
    name.split(|character: char| !character.is_ascii_alphanumeric())
        .filter_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}

/// `SomeName` or `some-name` as `some_name`.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        if character.is_ascii_alphanumeric() {
            snake.push(character.to_ascii_lowercase());
        } else if !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
    }
    let snake = snake.trim_end_matches('_').trim_start_matches(|first: char| first.is_ascii_digit());
    if snake.is_empty() { "name".to_owned() } else { snake.to_owned() }
}

/// A type as the generated code names it, where it owns its content.
pub fn type_name(interface: &Interface, ty: &Ty) -> String {
    match ty {
        Ty::Unit => "()".to_owned(),
        Ty::Primitive(name) => (*name).to_owned(),
        Ty::Array(inner, count) => format!("[{}; {count}]", type_name(interface, inner)),
        Ty::Option(inner) => format!("::core::option::Option<{}>", type_name(interface, inner)),
        Ty::Text(max) => format!("{RT}::heapless::String<{max}>"),
        Ty::Bytes(max) => format!("{RT}::heapless::Vec<u8, {max}>"),
        Ty::Named(name) => match interface.find(name).map(|def| &def.body) {
            Some(Body::Extern { path, .. }) => path.clone(),
            _ => name.clone(),
        },
    }
}

/// A type as an argument: variable ones are borrowed.
fn argument_type(interface: &Interface, ty: &Ty) -> String {
    match ty {
        Ty::Text(_) => "&str".to_owned(),
        Ty::Bytes(_) => "&[u8]".to_owned(),
        _ => type_name(interface, ty),
    }
}

/// What is lent: `[T]` or `T`.
fn lent_type(interface: &Interface, lease: &Lease) -> String {
    let element = type_name(interface, &lease.element.ty);
    if lease.limits.is_some() { format!("[{element}]") } else { element }
}

/// The operation's own errors.
fn error_type(interface: &Interface, op: &Op) -> String {
    match &op.error {
        OpError::None => "::core::convert::Infallible".to_owned(),
        OpError::CLike(name) => name.text.clone(),
        OpError::Complex(ty) => type_name(interface, &ty.ty),
    }
}

/// Documentation lines.
fn doc(out: &mut String, indent: &str, text: &str, fallback: &str) {
    let text = if text.trim().is_empty() { fallback } else { text.trim() };
    for line in text.lines() {
        let line = line.trim();
        out.push_str(indent);
        out.push_str(if line.is_empty() { "///" } else { "/// " });
        out.push_str(line);
        out.push('\n');
    }
}

/// For functions with so many parameters that the linter would object.
fn allow_parameters(out: &mut String, op: &Op, own: usize) {
    let parameters = own + op.args.len() + op.leases.len() + usize::from(op.frames.is_some());
    if parameters > 7 {
        out.push_str("    #[allow(clippy::too_many_arguments, reason = \"the interface has so many\")]\n");
    }
}
