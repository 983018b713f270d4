//! `manifest.json`: what an image consists of, for tools.

use abi::config::Value;
use manifest::{Sizes, System, Task};
use miette::{IntoDiagnostic, Result};
use serde_json::{Map, json};

use crate::archive::{Entry, sha256};
use crate::build::Artifacts;
use crate::toolchain::Toolchain;

/// The record of an image with the given files; keys are sorted, so that the same image has the same record.
///
/// # Errors
/// If it cannot be written as JSON, which does not happen.
pub fn text(artifacts: &Artifacts, toolchain: &Toolchain, files: &[Entry]) -> Result<String> {
    let Artifacts { system, plan, kernel, tasks, .. } = artifacts;
    let file = |(name, bytes): &Entry| (name.clone(), json!({ "size": bytes.len(), "sha256": sha256(bytes) }));
    let tasks: Vec<_> = system
        .tasks
        .iter()
        .zip(tasks)
        .zip(&plan.tasks)
        .map(|((task, program), place)| {
            json!({
                "name": task.name.value,
                "package": task.package,
                "priority": task.priority,
                "floating-point": task.floating_point,
                "entry": hex(program.entry),
                "sizes": sizes(&program.sizes),
                "stack": { "base": hex(place.stack.base), "size": place.stack.size, "bound": program.stack.bytes },
                "config": config(task),
            })
        })
        .collect();
    let record = json!({
        "format": 1,
        "name": system.name,
        "image": system.image.name(),
        "board": system.board.name,
        "versions": {
            "leasehold": env!("CARGO_PKG_VERSION"),
            "rustc": toolchain.compiler.version,
            "image-table": abi::image::VERSION,
            "configuration": abi::config::VERSION,
        },
        "entry": hex(kernel.entry),
        "kernel": { "sizes": sizes(&kernel.sizes), "stack": { "base": hex(plan.kernel.stack.base), "size": plan.kernel.stack.size, "bound": kernel.stack.bytes } },
        "tasks": tasks,
        "inputs": inputs(system),
        "files": files.iter().map(file).collect::<Map<_, _>>(),
    });
    let mut text = serde_json::to_string_pretty(&record).into_diagnostic()?;
    text.push('\n');
    Ok(text)
}

fn inputs(system: &System) -> Vec<String> {
    system.files.iter().map(|path| path.display().to_string()).collect()
}

fn hex(address: u64) -> String {
    format!("{address:#x}")
}

fn sizes(sizes: &Sizes) -> serde_json::Value {
    json!({ "text": sizes.text, "rodata": sizes.rodata, "data": sizes.data, "bss": sizes.bss })
}

fn config(task: &Task) -> Map<String, serde_json::Value> {
    let value = |value: &Value| match value {
        Value::Integer(number) => json!(number),
        Value::Bool(truth) => json!(truth),
        Value::Text(text) => json!(text.as_str()),
        Value::Bytes(bytes) => json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    };
    task.values.iter().map(|(name, own)| (name.clone(), value(own))).collect()
}
