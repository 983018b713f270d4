//! `ops`: operations with their arguments, leases, frames and replies.

use super::keys::{Keys, closest, list};
use super::types::{members, type_use};
use super::{count, entries, key_name, name_text, no_duplicates, snake_case, text, truth, wrong_kind};
use crate::model::{Encoding, Frames, Lease, Named, Op, OpError, Restart, TyRef};
use crate::report::Problem;
use crate::tree::{Field, Node, Value};
use crate::types::{self, Ty, Written};

const KEYS: [&str; 8] = ["doc", "args", "leases", "frames", "reply", "encoding", "restart", "defer"];

/// Reads the map of operations.
pub fn read(node: &Node, problems: &mut Vec<Problem>) -> Vec<Op> {
    let fields = entries(node, "a map of operations, { \"name\": ( .. ) }", problems);
    let names: Vec<_> = fields.iter().map(key_name).collect();
    no_duplicates("operation", names.iter(), problems);
    if fields.is_empty() {
        let problem = Problem::new(node.span.clone(), "an interface without operations")
            .label("here")
            .help("add an operation: \"name\": (reply: Simple(\"()\"), restart: Idempotent)");
        problems.push(problem);
    }
    fields.iter().filter_map(|field| operation(field, problems)).collect()
}

fn operation(field: &Field, problems: &mut Vec<Problem>) -> Option<Op> {
    let name = key_name(field);
    snake_case(&name, "operation", problems);
    let Value::Struct(None, inner) = &field.value.value else {
        wrong_kind(&field.value, "`(args: .., reply: .., restart: ..)`", problems);
        return None;
    };
    let mut keys = Keys::new("an operation", field.key_span.clone(), inner, &KEYS, problems);
    let doc = keys.text("doc").unwrap_or_default();
    let args = keys.optional("args");
    let leases = keys.optional("leases");
    let frames = keys.optional("frames");
    let encoding = keys.optional("encoding");
    let defer = keys.optional("defer");
    let reply = keys.required("reply", "`Simple(\"T\")`, or `Result(ok: \"T\", err: CLike(\"E\"))`");
    let restart =
        keys.required("restart", "`Idempotent`, `Retry` or `Fail`: what a dead server means for this operation");
    let args = args.map(|node| members(node, "argument", problems)).unwrap_or_default();
    let leases = leases.map(|node| self::leases(node, problems)).unwrap_or_default();
    no_duplicates("argument", args.iter().map(|arg| &arg.name).chain(leases.iter().map(|lease| &lease.name)), problems);
    let frames = frames.and_then(|node| self::frames(node, problems));
    let encoding = encoding.map_or(Some(Encoding::Zerocopy), |node| self::encoding(node, problems));
    let defer = defer.is_some_and(|node| truth(node, problems).unwrap_or_default());
    let reply = reply.and_then(|node| self::reply(node, problems));
    let restart_span = restart.map_or(0..0, |node| node.span.clone());
    let restart = restart.and_then(|node| self::restart(node, problems));
    let (reply, error) = reply?;
    // What is missing has been reported; the rest is worth checking all the same.
    let restart = restart.unwrap_or(Restart::Fail);
    Some(Op { name, doc, args, leases, frames, reply, error, restart, restart_span, encoding: encoding?, defer })
}

/// A name out of a few.
fn choice<T: Copy>(node: &Node, what: &str, choices: &[(&str, T)], problems: &mut Vec<Problem>) -> Option<T> {
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let Value::Name(written) = &node.value else {
        if let Value::Text(text) = &node.value
            && names.contains(&text.as_str())
        {
            let problem =
                Problem::new(node.span.clone(), format!("{} {what} is a name, not a text", super::article(what)))
                    .help(format!("write `{text}` without quotes"));
            problems.push(problem);
            return None;
        }
        wrong_kind(node, &format!("one of {}", list(&names)), problems);
        return None;
    };
    if let Some((_, choice)) = choices.iter().find(|(name, _)| name == written) {
        return Some(*choice);
    }
    let help = match closest(written, &names) {
        Some(close) => format!("did you mean `{close}`?"),
        None if what == "encoding" => "write `Zerocopy` for fixed sizes, `Postcard` for variable ones".to_owned(),
        None => format!("the choices are {}", list(&names)),
    };
    problems.push(
        Problem::new(node.span.clone(), format!("`{written}` is not {} {what}", super::article(what))).help(help),
    );
    None
}

fn restart(node: &Node, problems: &mut Vec<Problem>) -> Option<Restart> {
    let choices = [("Idempotent", Restart::Idempotent), ("Retry", Restart::Retry), ("Fail", Restart::Fail)];
    choice(node, "restart policy", &choices, problems)
}

fn encoding(node: &Node, problems: &mut Vec<Problem>) -> Option<Encoding> {
    choice(node, "encoding", &[("Zerocopy", Encoding::Zerocopy), ("Postcard", Encoding::Postcard)], problems)
}

fn frames(node: &Node, problems: &mut Vec<Problem>) -> Option<Frames> {
    let Value::Struct(None, inner) = &node.value else {
        wrong_kind(node, "`(send: 32, reply: 32)`", problems);
        return None;
    };
    let mut keys = Keys::new("`frames`", node.span.clone(), inner, &["send", "reply"], problems);
    let send = keys.required("send", "most frames that the client sends")?;
    let reply = keys.required("reply", "most frames that the server returns")?;
    let mut side = |node: &Node| {
        let frames = count(node, problems)?;
        if frames > abi::MAX_FRAME_LIST {
            let message = format!("{frames} frames do not fit one list");
            let help = format!("one call moves at most {} frames each way", abi::MAX_FRAME_LIST);
            problems.push(Problem::new(node.span.clone(), message).help(help));
            return None;
        }
        Some(frames)
    };
    let (send, reply) = (side(send), side(reply));
    let frames = Frames { send: send?, reply: reply? };
    if frames.send + frames.reply == 0 {
        let problem =
            Problem::new(node.span.clone(), "an operation with frames that moves none").help("leave `frames` out");
        problems.push(problem);
    }
    Some(frames)
}

fn leases(node: &Node, problems: &mut Vec<Problem>) -> Vec<Lease> {
    let fields = entries(node, "a map, { \"name\": (type: \"[u8]\", read: true, max_len: 64) }", problems);
    if let Some(field) = fields.get(abi::MAX_LEASES) {
        let problem = Problem::new(field.key_span.clone(), format!("{} leases are too many", fields.len()))
            .label(format!("number {}", abi::MAX_LEASES + 1))
            .help(format!("one message carries at most {} leases", abi::MAX_LEASES));
        problems.push(problem);
    }
    fields.iter().filter_map(|field| lease(field, problems)).collect()
}

fn lease(field: &Field, problems: &mut Vec<Problem>) -> Option<Lease> {
    let name = key_name(field);
    snake_case(&name, "lease", problems);
    let Value::Struct(None, inner) = &field.value.value else {
        wrong_kind(&field.value, "`(type: \"[u8]\", read: true, max_len: 64)`", problems);
        return None;
    };
    let known = ["doc", "type", "read", "write", "max_len", "min_len"];
    let mut keys = Keys::new("a lease", field.key_span.clone(), inner, &known, problems);
    let doc = keys.text("doc").unwrap_or_default();
    let (read, write) = (keys.optional("read"), keys.optional("write"));
    let (max_len, min_len) = (keys.optional("max_len"), keys.optional("min_len"));
    let ty = keys.required("type", "what the client lends, such as \"[u8]\"")?;
    let mut flag = |node: Option<&Node>| node.is_some_and(|node| truth(node, problems).unwrap_or_default());
    let (read, write) = (flag(read), flag(write));
    if !read && !write {
        let problem =
            Problem::new(field.key_span.clone(), format!("the server may do nothing with lease `{}`", name.text))
                .label("neither `read` nor `write`")
                .help("add `read: true` if the server reads it, `write: true` if it writes it");
        problems.push(problem);
    }
    let (element, is_slice) = lease_type(ty, problems)?;
    let limits = if is_slice {
        Some(slice_limits(&name, max_len, min_len, problems)?)
    } else {
        for node in [max_len, min_len].into_iter().flatten() {
            let problem =
                Problem::new(node.span.clone(), format!("lease `{}` is one value, without a length", name.text))
                    .help("remove the limit, or lend a slice such as \"[u8]\"");
            problems.push(problem);
        }
        None
    };
    Some(Lease { name, element, limits, read, write, doc })
}

fn lease_type(node: &Node, problems: &mut Vec<Problem>) -> Option<(TyRef, bool)> {
    let written = text(node, problems)?;
    let (ty, is_slice) = match types::parse(&written) {
        Ok(Written::Sized(ty)) => (ty, false),
        Ok(Written::Slice(element)) => (element, true),
        Ok(Written::Text) => {
            let problem = Problem::new(node.span.clone(), "a `str` cannot be lent")
                .help("lend its bytes as \"[u8]\" and check them in the server");
            problems.push(problem);
            return None;
        }
        Err(error) => {
            let help = "lend \"[u8]\", a slice or value of another fixed-size type, or a name from `types`";
            problems.push(Problem::new(node.span.clone(), error).help(help));
            return None;
        }
    };
    if ty == Ty::Unit {
        problems
            .push(Problem::new(node.span.clone(), "`()` has nothing to lend").help("lend \"[u8]\" or another type"));
        return None;
    }
    Some((TyRef { ty, span: node.span.clone() }, is_slice))
}

fn slice_limits(
    name: &Named,
    max_len: Option<&Node>,
    min_len: Option<&Node>,
    problems: &mut Vec<Problem>,
) -> Option<(usize, usize)> {
    let Some(max_node) = max_len else {
        let problem = Problem::new(name.span.clone(), format!("lease `{}` lacks `max_len`", name.text))
            .label("a slice of any length")
            .help("add `max_len`: the most elements that the server is ready for");
        problems.push(problem);
        return None;
    };
    let max = count(max_node, problems)?;
    let min = min_len.map_or(Some(0), |node| count(node, problems))?;
    if min > max {
        let problem = Problem::new(max_node.span.clone(), format!("`max_len` {max} is below `min_len` {min}"))
            .label("no length fits both")
            .help("swap them, or raise `max_len`");
        problems.push(problem);
        return None;
    }
    Some((min, max))
}

fn reply(node: &Node, problems: &mut Vec<Problem>) -> Option<(TyRef, OpError)> {
    match &node.value {
        Value::Tuple(Some(kind), values) if kind == "Simple" && values.len() == 1 => {
            Some((type_use(&values[0], false, problems)?, OpError::None))
        }
        // `Simple((type: ..))` may be written without the inner parentheses.
        Value::Struct(Some(kind), _) if kind == "Simple" => {
            let Value::Struct(_, fields) = node.value.clone() else { return None };
            let bare = Node { span: node.span.clone(), value: Value::Struct(None, fields) };
            Some((type_use(&bare, false, problems)?, OpError::None))
        }
        Value::Struct(Some(kind), inner) if kind == "Result" => {
            let mut keys = Keys::new("`Result`", node.span.start..node.span.start + 6, inner, &["ok", "err"], problems);
            let ok = keys.required("ok", "the type on success, such as \"()\"");
            let err = keys.required("err", "`CLike(\"E\")` or `Complex(\"E\")`");
            let ok = ok.and_then(|node| type_use(node, false, problems));
            let err = err.and_then(|node| error(node, problems));
            Some((ok?, err?))
        }
        _ => {
            wrong_kind(node, "`Simple(\"T\")` or `Result(ok: \"T\", err: CLike(\"E\"))`", problems);
            None
        }
    }
}

fn error(node: &Node, problems: &mut Vec<Problem>) -> Option<OpError> {
    match &node.value {
        Value::Tuple(Some(kind), values) if kind == "CLike" && values.len() == 1 => {
            Some(OpError::CLike(name_text(&values[0], problems)?))
        }
        Value::Tuple(Some(kind), values) if kind == "Complex" && values.len() == 1 => {
            Some(OpError::Complex(type_use(&values[0], false, problems)?))
        }
        Value::Name(name) if name == "ServerDeath" => {
            let problem = Problem::new(node.span.clone(), "`ServerDeath` says nothing here")
                .label("each operation can meet it")
                .help("write `reply: Simple(..)`; stubs report a dead server as `Error::Died`");
            problems.push(problem);
            None
        }
        _ => {
            wrong_kind(node, "`CLike(\"E\")` or `Complex(\"E\")`", problems);
            None
        }
    }
}
