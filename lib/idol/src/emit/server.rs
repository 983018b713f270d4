//! The server: a trait with one handler per operation, and the dispatch to it.

use super::message::{args_name, args_size, encoder, reply_size};
use super::{RT, allow_parameters, argument_type, doc, error_type, lent_type, type_name};
use crate::model::{Encoding, Interface, Lease, Op, OpError};
use crate::types::Ty;

/// Emits server trait, dispatch and helpers.
pub fn emit(interface: &Interface, out: &mut String) {
    server_trait(interface, out);
    dispatch(interface, out);
    deferred_replies(interface, out);
    serve(interface, out);
}

fn server_trait(interface: &Interface, out: &mut String) {
    let name = &interface.name.text;
    out.push_str(&format!(
        "/// Server of the interface `{name}`.\npub trait {name}Server<K: {RT}::Kernel = {RT}::System> {{\n",
    ));
    for op in &interface.ops {
        doc(out, "    ", &op.doc, &format!("Handler of `{}`.", op.name.text));
        if op.frames.is_some() {
            out.push_str(
                "    ///\n    /// `frames` holds what the caller sent. What it holds afterwards goes back with the reply or the error.\n",
            );
        }
        if op.defer {
            out.push_str(&format!(
                "    ///\n    /// May return [`{RT}::RequestError::Deferred`] and answer later with [`{name}Interface::reply_{}`]; \
                 frames have to be taken out of the list before.\n",
                op.name.text
            ));
        }
        out.push_str("    ///\n    /// # Errors\n    /// What the caller gets instead of a result.\n");
        allow_parameters(out, op, 2);
        out.push_str(&format!("    {};\n", signature(interface, op)));
    }
    out.push_str(&format!(
        "    /// Notification bits that [`{RT}::serve`] waits for beside messages.\n    \
             fn notification_mask(&self) -> u32 {{\n        0\n    }}\n    \
             /// Notifications have come. `bits` may be 0: then posts were made that a handler may have taken elsewhere, so look at every queue.\n    \
             fn handle_notification(&mut self, kernel: &K, bits: u32) {{\n        let _ = (kernel, bits);\n    }}\n    \
             /// The kernel refused a reply: a mistake of this server, such as a frame that it does not hold. `frames` is what the reply held;\n    \
             /// the caller gets [`{RT}::Refusal::ReplyRefused`] and no frames.\n    \
             fn reply_refused(&mut self, caller: {RT}::TaskId, error: {RT}::KernelError, frames: &mut {RT}::FrameList) {{\n        \
                 let _ = (caller, error, frames);\n    }}\n}}\n",
    ));
}

fn signature(interface: &Interface, op: &Op) -> String {
    let mut signature = format!("fn {}(&mut self, request: &{RT}::Request<K>", op.name.text);
    for arg in &op.args {
        signature += &format!(", {}: {}", arg.name.text, argument_type(interface, &arg.ty.ty));
    }
    for lease in &op.leases {
        signature += &format!(", {}: {}", lease.name.text, leased_type(interface, lease));
    }
    if op.frames.is_some() {
        signature += &format!(", frames: &mut {RT}::FrameList");
    }
    let deferred = if op.defer { format!(", {RT}::Deferred") } else { String::new() };
    let ok = type_name(interface, &op.reply.ty);
    let error = error_type(interface, op);
    format!("{signature}) -> ::core::result::Result<{ok}, {RT}::RequestError<{error}{deferred}>>")
}

fn leased_type(interface: &Interface, lease: &Lease) -> String {
    let rights = match (lease.read, lease.write) {
        (true, true) => "Both",
        (true, false) => "Read",
        _ => "Write",
    };
    format!("{RT}::Leased<{RT}::{rights}, {}, K>", lent_type(interface, lease))
}

fn dispatch(interface: &Interface, out: &mut String) {
    let name = &interface.name.text;
    let frames = interface.ops.iter().any(|op| op.frames.as_ref().is_some_and(|frames| frames.send + frames.reply > 0));
    out.push_str(&format!(
        "/// The interface `{name}` for [`{RT}::serve`].\n#[derive(Clone, Copy, Debug)]\npub enum {name}Interface {{}}\n\
         impl<S: {name}Server<K>, K: {RT}::Kernel> {RT}::Interface<S, K> for {name}Interface {{\n    \
             const FRAMES: bool = {frames};\n\n    \
             #[inline]\n    fn dispatch(\n        server: &mut S,\n        operation: u32,\n        request: &{RT}::Request<K>,\n        \
                 message: &[u8],\n        frames: &mut {RT}::FrameList,\n        reply: &mut [u8],\n    \
             ) -> ::core::result::Result<{RT}::Outcome, {RT}::Refusal> {{\n        match operation {{\n",
    ));
    for (index, op) in interface.ops.iter().enumerate() {
        out.push_str(&format!("            // {}\n            {} => {{\n", op.name.text, index + 1));
        arm(interface, op, out);
        out.push_str("            }\n");
    }
    out.push_str(&format!(
        "            _ => ::core::result::Result::Err({RT}::Refusal::UnknownOperation),\n        }}\n    }}\n\n    \
             #[inline]\n    fn notification_mask(server: &S) -> u32 {{\n        server.notification_mask()\n    }}\n\n    \
             #[inline]\n    fn handle_notification(server: &mut S, kernel: &K, bits: u32) {{\n        \
                 server.handle_notification(kernel, bits);\n    }}\n\n    \
             fn reply_refused(server: &mut S, caller: {RT}::TaskId, error: {RT}::KernelError, frames: &mut {RT}::FrameList) {{\n        \
                 server.reply_refused(caller, error, frames);\n    }}\n}}\n",
    ));
}

/// Checks, decoding, call and encoding of one operation.
fn arm(interface: &Interface, op: &Op, out: &mut String) {
    let i = "                ";
    let (send, reply_frames) = op.frames.as_ref().map_or((0, 0), |frames| (frames.send, frames.reply));
    out.push_str(&format!("{i}request.expect({}, {})?;\n", op.leases.len(), reply_size(interface, op)));
    out.push_str(&format!("{i}request.expect_frames(frames.len(), {send}, {reply_frames})?;\n"));
    let mut call: Vec<String> = vec!["request".to_owned()];
    call.extend(arguments(interface, op, out));
    for (index, lease) in op.leases.iter().enumerate() {
        let name = format!("__lease{index}");
        let ty = leased_type(interface, lease).replacen("Leased<", "Leased::<", 1);
        let make = match lease.limits {
            Some((min, max)) => format!("{ty}::slice(&request.kernel, request.caller, {index}, {min}, {max})?"),
            None => format!("{ty}::value(&request.kernel, request.caller, {index})?"),
        };
        out.push_str(&format!("{i}let {name} = {make};\n"));
        call.push(name);
    }
    if op.frames.is_some() {
        call.push("frames".to_owned());
    }
    let encoder = encoder(op.encoding);
    out.push_str(&format!(
        "{i}match server.{}({}) {{\n{i}    ::core::result::Result::Ok(__value) => {{\n{i}        \
         let len = {RT}::{encoder}(&__value, reply)?;\n{i}        \
         ::core::result::Result::Ok({RT}::Outcome::Reply {{ code: 0, len }})\n{i}    }}\n",
        op.name.text,
        call.join(", "),
    ));
    match &op.error {
        OpError::Complex(_) => out.push_str(&format!(
            "{i}    ::core::result::Result::Err(__error) => __error.complex(|__error| {RT}::{encoder}(__error, reply)),\n",
        )),
        _ => out.push_str(&format!(
            "{i}    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),\n",
        )),
    }
    out.push_str(&format!("{i}}}\n"));
}

/// Emits the decoding of the arguments and returns the expressions to pass.
fn arguments(interface: &Interface, op: &Op, out: &mut String) -> Vec<String> {
    let i = "                ";
    let bad = format!("::core::result::Result::Err({RT}::Refusal::BadMessage)");
    if op.args.is_empty() {
        out.push_str(&format!("{i}if !message.is_empty() {{\n{i}    return {bad};\n{i}}}\n"));
        return Vec::new();
    }
    if op.encoding == Encoding::Zerocopy {
        out.push_str(&format!(
            "{i}let __args = {RT}::decode_fixed::<{}>(message).ok_or({RT}::Refusal::BadMessage)?;\n",
            args_name(interface, op),
        ));
        return op.args.iter().map(|arg| format!("__args.{}", arg.name.text)).collect();
    }
    let types: String = op.args.iter().map(|arg| format!("{}, ", argument_type(interface, &arg.ty.ty))).collect();
    let names: Vec<String> = (0..op.args.len()).map(|index| format!("__arg{index}")).collect();
    out.push_str(&format!(
        "{i}let ({},) = {RT}::decode_compact::<({types})>(message).ok_or({RT}::Refusal::BadMessage)?;\n",
        names.join(", "),
    ));
    for (arg, name) in op.args.iter().zip(&names) {
        if let Ty::Text(max) | Ty::Bytes(max) = arg.ty.ty {
            out.push_str(&format!("{i}if {name}.len() > {max} {{\n{i}    return {bad};\n{i}}}\n"));
        }
    }
    names
}

/// Functions that answer deferred requests.
fn deferred_replies(interface: &Interface, out: &mut String) {
    let name = &interface.name.text;
    if !interface.ops.iter().any(|op| op.defer) {
        return;
    }
    out.push_str(&format!("impl {name}Interface {{\n"));
    for op in interface.ops.iter().filter(|op| op.defer) {
        let encoder = encoder(op.encoding);
        let (parameter, frames) = match op.frames {
            Some(_) => (format!(", frames: &mut {RT}::FrameList"), "::core::option::Option::Some(frames)"),
            None => (String::new(), "::core::option::Option::None"),
        };
        out.push_str(&format!(
            "    /// Answers a caller of `{0}` whose request was deferred.\n    ///\n    /// # Errors\n    \
                 /// The kernel's reason if the reply was refused; the caller still waits. That it died is no error.\n    \
                 #[inline]\n    pub fn reply_{0}<K: {RT}::Kernel>(\n        kernel: &K,\n        caller: {RT}::TaskId,\n        \
                 result: ::core::result::Result<{1}, {2}>{parameter},\n    ) -> ::core::result::Result<(), {RT}::KernelError> {{\n        \
                 let mut __reply = {RT}::Aligned::<{3}>::new();\n        let (__code, __len) = match result {{\n            \
                 ::core::result::Result::Ok(__value) => (0, {RT}::{encoder}(&__value, &mut __reply.0)),\n",
            op.name.text,
            type_name(interface, &op.reply.ty),
            error_type(interface, op),
            reply_size(interface, op),
        ));
        match &op.error {
            OpError::Complex(_) => out.push_str(&format!(
                "            ::core::result::Result::Err(__error) => (1, {RT}::{encoder}(&__error, &mut __reply.0)),\n",
            )),
            _ => out.push_str(&format!(
                "            ::core::result::Result::Err(__error) => ({RT}::ErrorCode::code(__error), ::core::result::Result::Ok(0)),\n",
            )),
        }
        out.push_str(&format!(
            "        }};\n        let __len = __len.map_err(|_| {RT}::KernelError::ReplyTooLong)?;\n        \
                 kernel.reply(caller, __code, __reply.0.get(..__len).unwrap_or(&[]), {frames})\n    }}\n",
        ));
    }
    out.push_str("}\n");
}

fn serve(interface: &Interface, out: &mut String) {
    let name = &interface.name.text;
    let message = interface.ops.iter().map(|op| args_size(interface, op)).max().unwrap_or(0);
    let reply = interface.ops.iter().map(|op| reply_size(interface, op)).max().unwrap_or(0);
    out.push_str(&format!(
        "/// Memory of the loop of a server of `{name}`, sized for its largest message and reply.\n\
         pub type {name}Buffers = {RT}::Buffers<{message}, {reply}>;\n\
         /// Serves `{name}` for ever; see [`{RT}::serve`].\n\
         pub fn serve<S: {name}Server>(server: &mut S, buffers: &mut {name}Buffers) -> ! {{\n    \
             {RT}::serve::<{name}Interface, _, _, _, _>(&{RT}::System, server, buffers)\n}}\n",
    ));
}
