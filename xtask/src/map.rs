//! The memory map, sizes and stack bounds, for people.

use std::fmt::Write;

use manifest::{MapEntry, Use};

use crate::build::Artifacts;

/// The text of `map.txt` and of the command `map`.
#[must_use]
pub fn text(artifacts: &Artifacts) -> String {
    let system = &artifacts.system;
    let mut text = format!("{}, {} image, for {}\n\n", system.name, system.image.name(), system.board.name);
    text += &table(&memory(&artifacts.plan.map.entries));
    text += &format!("\nRAM: {}\n\n", ram(artifacts));
    text += &table(&sizes(artifacts));
    text += STACK_NOTE;
    for (name, program) in artifacts.programs().filter(|(_, program)| program.stack.bytes > 0) {
        text += &format!("\n{name}, {}:\n", size(program.stack.bytes));
        for function in &program.stack.path {
            text += &format!("  {function}\n");
        }
    }
    text
}

const STACK_NOTE: &str = "
Stack bound: the deepest path of calls from the entry, by the instructions; `+` if there are also calls through pointers,
`*` if there is recursion, which the bound does not cover. The paths:
";

/// What a range is for, in one word.
const fn purpose(purpose: Use) -> &'static str {
    match purpose {
        Use::Text => "code",
        Use::Rodata => "constants",
        Use::Data => "variables",
        Use::Guard => "guard",
        Use::Stack => "stack",
        Use::Table => "image table",
        Use::Config => "configuration",
        Use::Dma => "DMA memory",
        Use::Window => "window",
        Use::PageTables => "page tables",
        Use::Pool => "frames",
        Use::Registers => "registers",
    }
}

fn memory(entries: &[MapEntry]) -> Vec<Vec<String>> {
    let mut rows = vec![["first", "last", "size", "used", "owner", "for", "name"].map(str::to_owned).to_vec()];
    for MapEntry { name, owner, span, used, purpose: kind } in entries {
        let last = span.end().saturating_sub(1);
        let used = if matches!(kind, Use::Guard | Use::Registers) { String::from("-") } else { size(*used) };
        rows.push(vec![
            format!("{:#010x}", span.base),
            format!("{last:#010x}"),
            size(span.size),
            used,
            owner.clone(),
            purpose(*kind).to_owned(),
            name.clone(),
        ]);
    }
    rows
}

fn ram(artifacts: &Artifacts) -> String {
    let entries = artifacts.plan.map.entries.iter().filter(|entry| entry.purpose != Use::Registers);
    let used: u64 = entries.map(|entry| entry.span.size).sum();
    format!("{} of {} in use", size(used), size(artifacts.system.board.ram.size.value))
}

fn sizes(artifacts: &Artifacts) -> Vec<Vec<String>> {
    let header = ["program", "priority", "code", "constants", "variables", "zeroed", "stack", "stack bound"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    let tasks = artifacts.system.tasks.iter().map(|task| (task.priority.to_string(), task.stack.value));
    let stacks = std::iter::once(("-".to_owned(), artifacts.system.kernel.stack.value)).chain(tasks);
    for ((name, program), (priority, configured)) in artifacts.programs().zip(stacks) {
        let bound = &program.stack;
        let marks = [(bound.indirect, '+'), (bound.recursive, '*')].into_iter().filter(|(set, _)| *set);
        let marks: String = marks.map(|(_, mark)| mark).collect();
        let sizes = program.sizes;
        rows.push(vec![
            name.to_owned(),
            priority,
            size(sizes.text),
            size(sizes.rodata),
            size(sizes.data),
            size(sizes.bss),
            size(configured),
            format!("{}{marks}", size(bound.bytes)),
        ]);
    }
    rows
}

/// Bytes for people: whole below 10 KiB, so that small things do not look equal.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1 << 10;
    match bytes {
        0..10_240 if !bytes.is_multiple_of(KIB) || bytes == 0 => format!("{bytes} B"),
        0..0xa0_0000 if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        0..0xa0_0000 => format!("{}.{} KiB", bytes / KIB, bytes % KIB * 10 / KIB),
        _ => format!("{} MiB", bytes >> 20),
    }
}

/// Aligns columns; those with numbers to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let number = |column: usize| {
        rows.iter().skip(1).all(|row| row[column].starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    };
    let right: Vec<bool> = (0..columns).map(number).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            // Writing to a string does not fail.
            let _ = if right[column] { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:<width$}  ") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0, "0 B"),
            (12, "12 B"),
            (4096, "4 KiB"),
            (5000, "5000 B"),
            (10_300, "10.0 KiB"),
            (0x80_0000, "8192 KiB"),
            (0x1000_0000, "256 MiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", "size"], ["a", "1 B"], ["long", "1000 B"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "name    size\na        1 B\nlong  1000 B\n");
        assert_eq!(table(&[]), "");
    }
}
