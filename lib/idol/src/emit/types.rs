//! Declared types.

use super::{RT, doc, type_name};
use crate::model::{Body, Encoding, Interface, Member, OpError, TypeDef, Variant, Width};
use crate::types::Ty;

/// Emits every declared type.
pub fn emit(interface: &Interface, out: &mut String) {
    for def in &interface.types {
        match &def.body {
            Body::Struct(members) => structure(interface, def, members, out),
            Body::Enum { width, variants } => {
                enumeration(interface, def, *width, variants, out);
                if is_error_code(interface, &def.name.text) {
                    error_code(def, variants, out);
                }
            }
            Body::Extern { path, layout: Some(layout), .. } => {
                out.push_str(&format!(
                    "const _: () = assert!(::core::mem::size_of::<{path}>() == {} && ::core::mem::align_of::<{path}>() <= {}, \
                     \"`{}` has another size or alignment than its interface says\");\n",
                    layout.size, layout.align, def.name.text,
                ));
            }
            Body::Extern { .. } => {}
        }
    }
}

fn structure(interface: &Interface, def: &TypeDef, members: &[Member], out: &mut String) {
    let whole = Ty::Named(def.name.text.clone());
    let mut derives = vec!["Clone"];
    if interface.is_copy(&whole) {
        derives.push("Copy");
    }
    derives.push("PartialEq");
    if !interface.has_float(&whole) {
        derives.push("Eq");
    }
    derives.push("Debug");
    if interface.has_default(&whole) {
        derives.push("Default");
    }
    doc(out, "", &def.doc, &format!("`{}` of the interface.", def.name.text));
    out.push_str(&format!("#[derive({})]\n", derives.join(", ")));
    if interface.layout(&whole).is_ok() {
        zerocopy(interface.takes_any_bits(&whole), out);
        out.push_str("#[repr(C)]\n");
    }
    if is_compact(interface, &def.name.text) {
        serde(out);
    }
    out.push_str(&format!("pub struct {} {{\n", def.name.text));
    for member in members {
        doc(out, "    ", &member.doc, &format!("`{}`.", member.name.text));
        out.push_str(&format!("    pub {}: {},\n", member.name.text, type_name(interface, &member.ty.ty)));
    }
    out.push_str("}\n");
}

/// Derives for what travels as it lies in memory.
pub fn zerocopy(any_bits: bool, out: &mut String) {
    let from = if any_bits { "FromBytes" } else { "TryFromBytes" };
    let derives: Vec<String> =
        [from, "IntoBytes", "Immutable", "KnownLayout"].iter().map(|name| format!("{RT}::zerocopy::{name}")).collect();
    out.push_str(&format!("#[derive({})]\n#[zerocopy(crate = \"{RT}::zerocopy\")]\n", derives.join(", ")));
}

fn serde(out: &mut String) {
    out.push_str(&format!(
        "#[derive({RT}::serde::Serialize, {RT}::serde::Deserialize)]\n#[serde(crate = \"{RT}::serde\")]\n"
    ));
}

fn enumeration(interface: &Interface, def: &TypeDef, width: Width, variants: &[Variant], out: &mut String) {
    doc(out, "", &def.doc, &format!("`{}` of the interface.", def.name.text));
    out.push_str("#[derive(Clone, Copy, PartialEq, Eq, Debug)]\n");
    zerocopy(false, out);
    if is_compact(interface, &def.name.text) {
        serde(out);
    }
    out.push_str(&format!("#[repr({})]\npub enum {} {{\n", width.rust(), def.name.text));
    for variant in variants {
        doc(out, "    ", &variant.doc, &format!("`{}`.", variant.name.text));
        out.push_str(&format!("    {} = {},\n", variant.name.text, variant.value));
    }
    out.push_str("}\n");
}

fn error_code(def: &TypeDef, variants: &[Variant], out: &mut String) {
    let name = &def.name.text;
    out.push_str(&format!(
        "impl {RT}::ErrorCode for {name} {{\n    \
             #[inline]\n    fn code(self) -> {RT}::Code {{\n        self as {RT}::Code\n    }}\n\n    \
             #[inline]\n    fn from_code(code: {RT}::Code) -> ::core::option::Option<Self> {{\n        \
                 ::core::option::Option::Some(match code {{\n",
    ));
    for variant in variants {
        out.push_str(&format!("            {} => Self::{},\n", variant.value, variant.name.text));
    }
    out.push_str("            _ => return ::core::option::Option::None,\n        })\n    }\n}\n");
}

/// True if an operation returns the enum as its code.
fn is_error_code(interface: &Interface, name: &str) -> bool {
    interface.ops.iter().any(|op| matches!(&op.error, OpError::CLike(error) if error.text == name))
}

/// True if the type is part of something that travels in postcard's form.
fn is_compact(interface: &Interface, name: &str) -> bool {
    interface.ops.iter().filter(|op| op.encoding == Encoding::Postcard).any(|op| {
        let complex = match &op.error {
            OpError::Complex(ty) => Some(ty),
            _ => None,
        };
        let mut uses = op.args.iter().map(|arg| &arg.ty).chain([&op.reply]).chain(complex);
        uses.any(|ty| holds(interface, &ty.ty, name))
    })
}

fn holds(interface: &Interface, ty: &Ty, name: &str) -> bool {
    match ty {
        Ty::Array(inner, _) | Ty::Option(inner) => holds(interface, inner, name),
        Ty::Named(own) if own == name => true,
        Ty::Named(own) => match interface.find(own).map(|def| &def.body) {
            Some(Body::Struct(members)) => members.iter().any(|member| holds(interface, &member.ty.ty, name)),
            _ => false,
        },
        _ => false,
    }
}
