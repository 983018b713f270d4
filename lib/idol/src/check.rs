//! What an interface must hold to, beyond its form.

use crate::emit::{camel, type_name};
use crate::model::{Body, Encoding, Interface, Named, Op, OpError, Restart, TyRef};
use crate::read::closest;
use crate::report::Problem;
use crate::tree::Span;
use crate::types::{Misfit, Ty, primitive_names};

/// Codes from here on are those of generated dispatch and of the kernel.
const FIRST_RESERVED_CODE: i128 = 0xffff_fe00;

/// Most arguments of a message in postcard's form.
const MAX_COMPACT_ARGS: usize = 16;

/// Checks everything.
pub fn interface(interface: &Interface, problems: &mut Vec<Problem>) {
    let before = problems.len();
    names(interface, problems);
    for member in all_type_uses(interface) {
        known(interface, &member.ty, &member.span, problems);
    }
    cycles(interface, problems);
    // Sizes mean nothing while types are missing or endless.
    if problems.len() > before {
        return;
    }
    for op in &interface.ops {
        operation(interface, op, problems);
    }
}

/// Names that generated code would define twice.
fn names(interface: &Interface, problems: &mut Vec<Problem>) {
    let name = &interface.name.text;
    let mut taken: Vec<(String, String)> = ["", "Server", "Interface", "Buffers"]
        .iter()
        .map(|suffix| (format!("{name}{suffix}"), format!("interface `{name}`")))
        .collect();
    for op in &interface.ops {
        let generated = format!("{name}{}Args", camel(&op.name.text));
        claim(&mut taken, generated, &op.name, format!("operation `{}`", op.name.text), problems);
    }
    for def in &interface.types {
        claim(&mut taken, def.name.text.clone(), &def.name, format!("type `{}`", def.name.text), problems);
    }
}

fn claim(
    taken: &mut Vec<(String, String)>,
    generated: String,
    name: &Named,
    owner: String,
    problems: &mut Vec<Problem>,
) {
    match taken.iter().find(|(known, other)| *known == generated && *other != owner) {
        Some((_, other)) => {
            let problem = Problem::new(name.span.clone(), format!("{owner} and {other} both become `{generated}`"))
                .label("here")
                .help("rename one of them");
            problems.push(problem);
        }
        None => taken.push((generated, owner)),
    }
}

fn all_type_uses(interface: &Interface) -> Vec<&TyRef> {
    let mut uses = Vec::new();
    for def in &interface.types {
        if let Body::Struct(members) = &def.body {
            uses.extend(members.iter().map(|member| &member.ty));
        }
    }
    for op in &interface.ops {
        uses.extend(op.args.iter().map(|arg| &arg.ty));
        uses.extend(op.leases.iter().map(|lease| &lease.element));
        uses.push(&op.reply);
        if let OpError::Complex(ty) = &op.error {
            uses.push(ty);
        }
    }
    uses
}

fn known(interface: &Interface, ty: &Ty, span: &Span, problems: &mut Vec<Problem>) {
    match ty {
        Ty::Array(inner, _) | Ty::Option(inner) => known(interface, inner, span, problems),
        Ty::Named(name) if interface.find(name).is_none() => {
            let mut candidates: Vec<&str> = primitive_names().collect();
            candidates.extend(interface.types.iter().map(|def| def.name.text.as_str()));
            let help = match closest(name, &candidates) {
                Some(close) => format!("did you mean `{close}`?"),
                None => {
                    format!("declare it in `types`, or as `Extern(path: \"..::{name}\", ..)` if Rust code defines it")
                }
            };
            problems.push(Problem::new(span.clone(), format!("unknown type `{name}`")).help(help));
        }
        _ => {}
    }
}

/// Structs that hold themselves.
fn cycles(interface: &Interface, problems: &mut Vec<Problem>) {
    fn reaches(interface: &Interface, ty: &Ty, wanted: &str, depth: usize) -> bool {
        match ty {
            Ty::Array(inner, _) | Ty::Option(inner) => reaches(interface, inner, wanted, depth),
            Ty::Named(name) if name == wanted => true,
            // Deeper than there are types, the way goes round another circle.
            Ty::Named(name) if depth < interface.types.len() => match interface.find(name).map(|def| &def.body) {
                Some(Body::Struct(members)) => {
                    members.iter().any(|member| reaches(interface, &member.ty.ty, wanted, depth + 1))
                }
                _ => false,
            },
            _ => false,
        }
    }
    for def in &interface.types {
        let Body::Struct(members) = &def.body else { continue };
        if let Some(member) = members.iter().find(|member| reaches(interface, &member.ty.ty, &def.name.text, 0)) {
            let problem = Problem::new(member.ty.span.clone(), format!("struct `{}` holds itself", def.name.text))
                .label("leads back to it")
                .help("break the circle: messages have a largest size");
            problems.push(problem);
        }
    }
}

fn operation(interface: &Interface, op: &Op, problems: &mut Vec<Problem>) {
    let args: Vec<&TyRef> = op.args.iter().map(|arg| &arg.ty).collect();
    message_size(interface, op, "the arguments", &args, &op.name.span, problems);
    message_size(interface, op, "the reply", &[&op.reply], &op.reply.span, problems);
    match &op.error {
        OpError::None => {}
        OpError::Complex(ty) => message_size(interface, op, "the error", &[ty], &ty.span, problems),
        OpError::CLike(name) => error_codes(interface, name, problems),
    }
    if op.encoding == Encoding::Postcard && op.args.len() > MAX_COMPACT_ARGS {
        let problem =
            Problem::new(op.name.span.clone(), format!("{} arguments are too many for `Postcard`", op.args.len()))
                .help(format!("put some of them into a struct; {MAX_COMPACT_ARGS} is the limit"));
        problems.push(problem);
    }
    let sends = op.frames.as_ref().is_some_and(|frames| frames.send > 0);
    if sends && op.restart == Restart::Idempotent {
        let problem = Problem::new(op.restart_span.clone(), "an operation that sends frames cannot be repeated")
            .label("the frames may have gone with the dead server")
            .help("write `Retry` (repeats only what was not received) or `Fail`");
        problems.push(problem);
    }
    for lease in &op.leases {
        let ty = &lease.element;
        if let Err(misfit) = interface.layout(&ty.ty) {
            problems.push(explain(interface, misfit, ty, true));
        } else if interface.layout(&ty.ty).is_ok_and(|layout| layout.size == 0) {
            problems.push(
                Problem::new(ty.span.clone(), "a lease of something without a size")
                    .help("lend a type of at least one byte"),
            );
        } else if lease.write && !interface.takes_any_bits(&ty.ty) {
            let message = format!("the server cannot be trusted to write `{}`", type_name(interface, &ty.ty));
            let problem = Problem::new(ty.span.clone(), message)
                .label("not every bit pattern is a value of it")
                .help("lend bytes or numbers, and convert them in the client; or return it in `reply`");
            problems.push(problem);
        } else if lease.read && !lease.write && !interface.takes_any_bits(&ty.ty) {
            let message = format!("the server cannot read `{}` from a client's memory", type_name(interface, &ty.ty));
            let problem = Problem::new(ty.span.clone(), message)
                .label("not every bit pattern is a value of it")
                .help("lend bytes or numbers, or pass it in `args`");
            problems.push(problem);
        }
    }
}

fn message_size(
    interface: &Interface,
    op: &Op,
    what: &str,
    parts: &[&TyRef],
    span: &Span,
    problems: &mut Vec<Problem>,
) {
    let mut sum = 0usize;
    for part in parts {
        let size = match op.encoding {
            Encoding::Zerocopy => interface.layout(&part.ty).map(|layout| {
                sum = sum.checked_next_multiple_of(layout.align).unwrap_or(usize::MAX);
                layout.size
            }),
            Encoding::Postcard => interface.compact_size(&part.ty),
        };
        match size {
            Ok(size) => sum = sum.saturating_add(size),
            Err(Misfit::Huge) => sum = usize::MAX,
            Err(misfit) => {
                problems.push(explain(interface, misfit, part, false));
                return;
            }
        }
    }
    if sum > abi::MAX_MESSAGE {
        let size = if sum == usize::MAX { "far too many".to_owned() } else { sum.to_string() };
        let problem = Problem::new(span.clone(), format!("{what} of `{}` can take {size} bytes", op.name.text))
            .label(format!("a message holds at most {}", abi::MAX_MESSAGE))
            .help("pass bulk data in `leases` or `frames`");
        problems.push(problem);
    }
}

fn explain(interface: &Interface, misfit: Misfit, at: &TyRef, in_lease: bool) -> Problem {
    let here = |message: String| Problem::new(at.span.clone(), message);
    match misfit {
        Misfit::Variable(reason) if in_lease => {
            here(reason).help("only fixed-size types can be lent; lend bytes instead")
        }
        Misfit::Variable(reason) => {
            here(reason).label("in an operation with fixed sizes").help("add `encoding: Postcard` to the operation")
        }
        Misfit::Padding { type_name, field, bytes } => {
            let (place, help) = match field {
                Some(field) => (format!("before `{field}`"), "put wider fields first, or add a field"),
                None => ("at its end".to_owned(), "add a field"),
            };
            let problem = match interface.find(&type_name) {
                Some(def) => Problem::new(
                    def.name.span.clone(),
                    format!("`{type_name}` would have {bytes} bytes of padding {place}"),
                ),
                None => here(format!("`{type_name}` would have padding {place}")),
            };
            problem
                .label("unnamed bytes must not travel")
                .help(format!("{help}, such as \"reserved\": \"[u8; {bytes}]\""))
        }
        Misfit::NoLayout(name) => here(format!("extern type `{name}` lacks `size` and `align`"))
            .label("travels as it lies in memory")
            .help("add both to its declaration in `types`; the compiler checks them"),
        Misfit::NoMaxSize(name) => here(format!("extern type `{name}` lacks `max_size`"))
            .label("travels in postcard's form")
            .help("add `max_size`, its most bytes in postcard's form, to its declaration in `types`"),
        Misfit::Huge => here("the size of this type cannot be counted".to_owned()).help("make it smaller"),
    }
}

fn error_codes(interface: &Interface, name: &Named, problems: &mut Vec<Problem>) {
    let help = "declare it in `types`: Enum(repr: \"u32\", variants: { \"Full\": 1 })";
    match interface.find(&name.text).map(|def| &def.body) {
        Some(Body::Enum { variants, .. }) => {
            for variant in variants.iter().filter(|variant| variant.value == 0 || variant.value >= FIRST_RESERVED_CODE)
            {
                let (why, help) = if variant.value == 0 {
                    ("0 means success", "number errors from 1 on".to_owned())
                } else {
                    ("belongs to the system", format!("stay below {FIRST_RESERVED_CODE:#x}"))
                };
                let message = format!("`{}::{}` cannot be an error code", name.text, variant.name.text);
                problems.push(Problem::new(variant.value_span.clone(), message).label(why).help(help));
            }
        }
        Some(_) => {
            let problem = Problem::new(name.span.clone(), format!("`{}` is not an enum", name.text))
                .label("a code has to stand for it")
                .help("use an `Enum`, or `Complex(..)` for errors that hold data");
            problems.push(problem);
        }
        None => problems.push(Problem::new(name.span.clone(), format!("unknown type `{}`", name.text)).help(help)),
    }
}
