//! Messages: the struct that fixed-size arguments travel in, and sizes.

use super::{RT, camel, type_name, types};
use crate::model::{Encoding, Interface, Op, OpError, TyRef};
use crate::types::Ty;

/// Name of the struct that holds the arguments of an operation.
pub fn args_name(interface: &Interface, op: &Op) -> String {
    format!("{}{}Args", interface.name.text, camel(&op.name.text))
}

/// Emits the struct of an operation that has fixed-size arguments.
pub fn emit(interface: &Interface, op: &Op, out: &mut String) {
    if op.encoding != Encoding::Zerocopy || op.args.is_empty() {
        return;
    }
    types::zerocopy(op.args.iter().all(|arg| interface.takes_any_bits(&arg.ty.ty)), out);
    out.push_str(&format!("#[repr(C)]\nstruct {} {{\n", args_name(interface, op)));
    for part in parts(interface, op) {
        match part {
            Part::Argument(index) => {
                let arg = &op.args[index];
                out.push_str(&format!("    {}: {},\n", arg.name.text, type_name(interface, &arg.ty.ty)));
            }
            Part::Padding(index, bytes) => out.push_str(&format!("    __padding{index}: [u8; {bytes}],\n")),
        }
    }
    out.push_str("}\n");
}

/// A piece of an argument struct.
pub enum Part {
    /// Index of an argument.
    Argument(usize),
    /// A number of its own, bytes.
    Padding(usize, usize),
}

/// Arguments in their order, with padding made explicit, so that no unnamed byte travels.
pub fn parts(interface: &Interface, op: &Op) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut at, mut align) = (0usize, 1);
    for (index, arg) in op.args.iter().enumerate() {
        // Checked before: every argument has a layout.
        let Ok(layout) = interface.layout(&arg.ty.ty) else { continue };
        let start = at.next_multiple_of(layout.align);
        if start > at {
            parts.push(Part::Padding(index, start - at));
        }
        parts.push(Part::Argument(index));
        at = start + layout.size;
        align = align.max(layout.align);
    }
    let end = at.next_multiple_of(align);
    if end > at {
        parts.push(Part::Padding(op.args.len(), end - at));
    }
    parts
}

/// Most bytes of a list of values that travel together.
fn size(interface: &Interface, encoding: Encoding, types: &[&TyRef]) -> usize {
    let mut sum = 0usize;
    let mut align = 1;
    for ty in types {
        // Checked before: neither fails.
        match encoding {
            Encoding::Zerocopy => {
                if let Ok(layout) = interface.layout(&ty.ty) {
                    sum = sum.next_multiple_of(layout.align) + layout.size;
                    align = align.max(layout.align);
                }
            }
            Encoding::Postcard => sum += interface.compact_size(&ty.ty).unwrap_or(0),
        }
    }
    sum.next_multiple_of(align)
}

/// Most bytes of the arguments.
pub fn args_size(interface: &Interface, op: &Op) -> usize {
    size(interface, op.encoding, &op.args.iter().map(|arg| &arg.ty).collect::<Vec<_>>())
}

/// Most bytes of a reply, be it a result or an error.
pub fn reply_size(interface: &Interface, op: &Op) -> usize {
    let ok = size(interface, op.encoding, &[&op.reply]);
    match &op.error {
        OpError::Complex(error) => ok.max(size(interface, op.encoding, &[error])),
        _ => ok,
    }
}

/// An expression that decodes `bytes` to an `Option` of a type.
pub fn decode(interface: &Interface, encoding: Encoding, ty: &Ty, bytes: &str) -> String {
    let name = type_name(interface, ty);
    match encoding {
        Encoding::Zerocopy => format!("{RT}::decode_fixed::<{name}>({bytes}).copied()"),
        Encoding::Postcard => format!("{RT}::decode_compact::<{name}>({bytes})"),
    }
}

/// The function that encodes a result.
pub fn encoder(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Zerocopy => "encode_fixed",
        Encoding::Postcard => "encode_compact",
    }
}
