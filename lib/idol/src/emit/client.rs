//! The client: one method per operation.

use super::message::{Part, args_name, args_size, decode, parts, reply_size};
use super::{RT, allow_parameters, argument_type, doc, error_type, lent_type, type_name};
use crate::model::{Encoding, Interface, Op, OpError, Restart};

/// Emits the client type.
pub fn emit(interface: &Interface, out: &mut String) {
    let name = &interface.name.text;
    doc(out, "", &interface.doc, &format!("Client of the interface `{name}`."));
    out.push_str(&format!(
        "#[derive(Debug)]\npub struct {name}<K: {RT}::Kernel = {RT}::System> {{\n    peer: {RT}::Peer<K>,\n}}\n\
         impl ::core::convert::From<{RT}::TaskSlot> for {name} {{\n    \
             fn from(slot: {RT}::TaskSlot) -> Self {{\n        Self::with_kernel(slot, {RT}::System)\n    }}\n}}\n\
         impl<K: {RT}::Kernel> {name}<K> {{\n    \
             /// A client of the server behind a slot, over the given system.\n    \
             pub fn with_kernel(slot: {RT}::TaskSlot, kernel: K) -> Self {{\n        \
                 Self {{ peer: {RT}::Peer::new(kernel, slot) }}\n    }}\n\n    \
             /// The instance of the server that the next call goes to.\n    \
             pub fn id(&self) -> {RT}::TaskId {{\n        self.peer.id()\n    }}\n",
    ));
    for (index, op) in interface.ops.iter().enumerate() {
        method(interface, op, index + 1, out);
    }
    out.push_str("}\n");
}

fn method(interface: &Interface, op: &Op, number: usize, out: &mut String) {
    let error = error_type(interface, op);
    out.push('\n');
    doc(out, "    ", &op.doc, &format!("Operation `{}`.", op.name.text));
    documentation(op, out);
    allow_parameters(out, op, 1);
    out.push_str(&format!(
        "    #[inline]\n    pub fn {}(&self{}) -> ::core::result::Result<{}, {RT}::Error<{error}>> {{\n",
        op.name.text,
        parameters(interface, op),
        type_name(interface, &op.reply.ty),
    ));
    let message = message(interface, op, out);
    let leases: Vec<String> = op.leases.iter().map(lent).collect();
    let frames =
        if op.frames.is_some() { "::core::option::Option::Some(frames)" } else { "::core::option::Option::None" };
    let size = reply_size(interface, op);
    out.push_str(&format!(
        "        let mut __reply = {RT}::Aligned::<{size}>::new();\n        \
             let (__code, __len) = self.peer.call(\n            \
                 {RT}::Restart::{},\n            {number},\n            {message},\n            &mut __reply.0,\n            \
                 [{}],\n            {frames},\n        );\n",
        match op.restart {
            Restart::Idempotent => "Idempotent",
            Restart::Retry => "Retry",
            Restart::Fail => "Fail",
        },
        leases.join(", "),
    ));
    out.push_str("        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);\n");
    let of_server = match &op.error {
        OpError::None | OpError::CLike(_) => format!("<{error} as {RT}::ErrorCode>::from_code"),
        OpError::Complex(ty) => {
            let decode = decode(interface, op.encoding, &ty.ty, "__bytes");
            format!("|__code| if __code == 1 {{ {decode} }} else {{ ::core::option::Option::None }}")
        }
    };
    out.push_str(&format!(
        "        if __code != 0 {{\n            \
                 return ::core::result::Result::Err({RT}::Error::from_code(__code, __len, {of_server}));\n        }}\n        \
             {}.ok_or({RT}::Error::BadReply)\n    }}\n",
        decode(interface, op.encoding, &op.reply.ty, "__bytes"),
    ));
}

/// What the client's reader has to know beyond the operation's own text.
fn documentation(op: &Op, out: &mut String) {
    for member in &op.args {
        if !member.doc.is_empty() {
            out.push_str(&format!(
                "    ///\n    /// `{}`: {}\n",
                member.name.text,
                member.doc.trim().replace('\n', " ")
            ));
        }
    }
    for lease in &op.leases {
        let rights = match (lease.read, lease.write) {
            (true, true) => "reads and writes",
            (true, false) => "reads",
            _ => "writes",
        };
        let limits = match lease.limits {
            Some((0, max)) => format!(" (at most {max} elements)"),
            Some((min, max)) => format!(" ({min} to {max} elements)"),
            None => String::new(),
        };
        let text =
            if lease.doc.is_empty() { String::new() } else { format!(": {}", lease.doc.trim().replace('\n', " ")) };
        out.push_str(&format!("    ///\n    /// The server {rights} `{}`{limits}{text}\n", lease.name.text));
    }
    if let Some(frames) = &op.frames {
        out.push_str(&format!(
            "    ///\n    /// `frames`: at most {} to send; holds those of the reply afterwards, at most {}. After an error it \
             holds what is still ours.\n",
            frames.send, frames.reply,
        ));
    }
    let restart = match op.restart {
        Restart::Idempotent => "the call is repeated",
        Restart::Retry => "the call is repeated unless the dead instance had received it",
        Restart::Fail => "the call fails",
    };
    out.push_str(&format!("    ///\n    /// If the server dies, {restart}.\n    ///\n    /// # Errors\n"));
    match &op.error {
        OpError::None => out.push_str(&format!("    /// See [`{RT}::Error`].\n")),
        OpError::CLike(_) | OpError::Complex(_) => {
            out.push_str(&format!(
                "    /// [`{RT}::Error::Server`] with the interface's reason; else see [`{RT}::Error`].\n"
            ));
        }
    }
}

fn parameters(interface: &Interface, op: &Op) -> String {
    let mut parameters = String::new();
    for arg in &op.args {
        parameters += &format!(", {}: {}", arg.name.text, argument_type(interface, &arg.ty.ty));
    }
    for lease in &op.leases {
        let reference = if lease.write { "&mut " } else { "&" };
        parameters += &format!(", {}: {reference}{}", lease.name.text, lent_type(interface, lease));
    }
    if op.frames.is_some() {
        parameters += &format!(", frames: &mut {RT}::FrameList");
    }
    parameters
}

fn lent(lease: &crate::model::Lease) -> String {
    let name = &lease.name.text;
    match (lease.read, lease.write) {
        (true, false) => format!("{RT}::Lent::Read({RT}::zerocopy::IntoBytes::as_bytes({name}))"),
        (true, true) => format!("{RT}::Lent::Both({RT}::zerocopy::IntoBytes::as_mut_bytes({name}))"),
        _ => format!("{RT}::Lent::Write({RT}::zerocopy::IntoBytes::as_mut_bytes({name}))"),
    }
}

/// Emits the making of the message and returns the expression for its bytes.
fn message(interface: &Interface, op: &Op, out: &mut String) -> String {
    if op.args.is_empty() {
        return "&[]".to_owned();
    }
    match op.encoding {
        Encoding::Zerocopy => {
            let fields: Vec<String> = parts(interface, op)
                .into_iter()
                .map(|part| match part {
                    Part::Argument(index) => op.args[index].name.text.clone(),
                    Part::Padding(index, bytes) => format!("__padding{index}: [0; {bytes}]"),
                })
                .collect();
            out.push_str(&format!(
                "        let __message = {} {{ {} }};\n",
                args_name(interface, op),
                fields.join(", ")
            ));
            format!("{RT}::zerocopy::IntoBytes::as_bytes(&__message)")
        }
        Encoding::Postcard => {
            let names: String = op.args.iter().map(|arg| format!("{}, ", arg.name.text)).collect();
            let size = args_size(interface, op);
            out.push_str(&format!(
                "        let mut __message = {RT}::Aligned::<{size}>::new();\n        \
                     let __used = {RT}::encode_compact(&({names}), &mut __message.0)\n            \
                     .map_err(|_| {RT}::Error::Refused({RT}::Refusal::BadMessage))?;\n",
            ));
            "__message.0.get(..__used).unwrap_or(&[])".to_owned()
        }
    }
}
