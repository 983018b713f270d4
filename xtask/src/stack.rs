//! Bounds of the stack of a linked AArch64 program, read from its instructions.
//!
//! For each function: how far its code can lower the stack pointer, and which functions it calls. The bound of the program
//! is the deepest path from its entry. Every decrement counts, whichever path it lies on, so the bound errs upwards; two
//! things it cannot see, and says so: calls through pointers, and recursion.
//!
//! Instruction encodings: Arm ARM (DDI 0487) C4.1; one word each.

use std::collections::{BTreeMap, BTreeSet};

use miette::{IntoDiagnostic, Result, miette};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};

/// What is known about a program's stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Bytes on the deepest path of direct calls.
    pub bytes: u64,
    /// The functions on that path, entry first.
    pub path: Vec<String>,
    /// True if the program also calls through pointers: such calls are not in `bytes`.
    pub indirect: bool,
    /// True if functions call each other in a circle: each is counted once.
    pub recursive: bool,
}

/// One function, as its instructions show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Function {
    name: String,
    frame: u64,
    calls: BTreeSet<u64>,
    // Jumps to other functions, after the own frame is gone.
    jumps: BTreeSet<u64>,
    indirect: bool,
}

/// Where a program can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At its entry: a task.
    Entry,
    /// At any function: the kernel, which exceptions enter.
    Anywhere,
}

/// Reads a linked program.
///
/// # Errors
/// If it has no code.
pub fn bound(file: &ElfFile64<'_, Endianness>, start: Start) -> Result<Bound> {
    let text = file.section_by_name(".text").ok_or_else(|| miette!("no code"))?;
    let (base, code) = (text.address(), text.data().into_diagnostic()?);
    let functions = functions(file, base, code);
    let roots = match start {
        Start::Entry => vec![file.entry()],
        Start::Anywhere => functions.keys().copied().collect(),
    };
    Ok(deepest(&functions, &roots))
}

fn functions(file: &ElfFile64<'_, Endianness>, base: u64, code: &[u8]) -> BTreeMap<u64, Function> {
    let end = base + code.len() as u64;
    let mut starts: BTreeMap<u64, (String, u64)> = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| (base..end).contains(&symbol.address())) {
        let name = symbol.name().unwrap_or("?");
        // Mapping symbols mark code and data, and name nothing.
        let is_function = symbol.kind() == SymbolKind::Text || symbol.is_global();
        if is_function && !name.is_empty() && !name.starts_with('$') {
            starts.entry(symbol.address()).or_insert_with(|| (name.to_owned(), symbol.size()));
        }
    }
    let addresses: Vec<u64> = starts.keys().copied().chain([end]).collect();
    let mut functions = BTreeMap::new();
    for (pair, (name, size)) in addresses.windows(2).zip(starts.into_values()) {
        // Assembly without a size reaches to the next symbol.
        let stop = if size == 0 { pair[1] } else { (pair[0] + size).min(end) };
        let words = code[(pair[0] - base) as usize..(stop - base) as usize].chunks_exact(4);
        let words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        functions.insert(pair[0], Function { name, ..scan(pair[0]..stop, words) });
    }
    functions
}

/// Reads the instructions of one function.
fn scan(range: std::ops::Range<u64>, words: impl Iterator<Item = u32>) -> Function {
    let mut function = Function::default();
    for (address, word) in (range.start..).step_by(4).zip(words) {
        function.frame += lowers_stack(word);
        if word & 0xffff_fc1f == 0xd63f_0000 {
            function.indirect = true; // BLR
        }
        // BR also ends a table jump inside the function; only one through a pointer to elsewhere would matter, and that is
        // what a tail call in a `match` on function pointers is: rare enough to count all of them as table jumps.
        let target = address.wrapping_add_signed(i64::from((word << 6) as i32 >> 4));
        match word >> 26 {
            0b10_0101 => drop(function.calls.insert(target)), // BL
            0b00_0101 if !range.contains(&target) => drop(function.jumps.insert(target)), // B
            _ => {}
        }
    }
    function
}

/// Bytes by which an instruction lowers the stack pointer; 0 for all others.
fn lowers_stack(word: u32) -> u64 {
    const SP: u32 = 31;
    let base = word >> 5 & 31;
    if base != SP {
        return 0;
    }
    // SUB (immediate), 64 bit: to SP itself, or to a register from which an aligned SP or a probing loop's end is made.
    if word & 0xff80_0000 == 0xd100_0000 {
        let to_stack = word & 31 == SP || word >> 22 & 1 == 1;
        let amount = u64::from(word >> 10 & 0xfff) << (12 * (word >> 22 & 1));
        return if to_stack { amount } else { 0 };
    }
    let pair = (word << 10) as i32 >> 25; // imm7, bits 21 to 15
    let single = (word << 11) as i32 >> 23; // imm9, bits 20 to 12
    let offset = match (word & 0xffc0_0000, word & 0xffe0_0c00) {
        (0xa980_0000 | 0x6d80_0000, _) => pair * 8, // STP X, D, pre-indexed
        (0xad80_0000, _) => pair * 16,              // STP Q
        (0x2980_0000 | 0x2d80_0000, _) => pair * 4, // STP W, S
        (_, 0xf800_0c00 | 0xfc00_0c00 | 0x3c80_0c00 | 0xb800_0c00) => single, // STR X, D, Q, W, pre-indexed
        _ => 0,
    };
    u64::from(offset.min(0).unsigned_abs())
}

fn deepest(functions: &BTreeMap<u64, Function>, roots: &[u64]) -> Bound {
    let mut walk = Walk { functions, known: BTreeMap::new(), open: BTreeSet::new(), indirect: false, recursive: false };
    let depths = roots.iter().map(|&root| walk.visit(root));
    let (bytes, path) = depths.max_by_key(|(bytes, _)| *bytes).unwrap_or_default();
    let path =
        path.iter().filter_map(|address| functions.get(address)).map(|function| readable(&function.name)).collect();
    Bound { bytes, path, indirect: walk.indirect, recursive: walk.recursive }
}

/// A function's name without the hash that the compiler adds.
fn readable(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

struct Walk<'a> {
    functions: &'a BTreeMap<u64, Function>,
    known: BTreeMap<u64, (u64, Vec<u64>)>,
    open: BTreeSet<u64>,
    indirect: bool,
    recursive: bool,
}

impl Walk<'_> {
    /// Depth from `address` on, and the path.
    fn visit(&mut self, address: u64) -> (u64, Vec<u64>) {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let Some(function) = self.functions.get(&address) else {
            return (0, Vec::new());
        };
        if !self.open.insert(address) {
            self.recursive = true;
            return (0, Vec::new());
        }
        self.indirect |= function.indirect;
        let mut best = (function.frame, Vec::new());
        for (callee, frame) in
            function.calls.iter().map(|call| (call, function.frame)).chain(function.jumps.iter().map(|jump| (jump, 0)))
        {
            let (depth, path) = self.visit(*callee);
            if depth + frame > best.0 {
                best = (depth + frame, path);
            }
        }
        best.1.insert(0, address);
        self.open.remove(&address);
        self.known.insert(address, best.clone());
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_that_lower_the_stack_pointer() {
        for (word, bytes) in [
            (0xd101_03ff, 64),   // sub sp, sp, #64
            (0xd140_07ff, 4096), // sub sp, sp, #1, lsl #12
            (0xa9bd_7bfd, 48),   // stp x29, x30, [sp, #-48]!
            (0xf81f_0ffe, 16),   // str x30, [sp, #-16]!
            (0x6dbe_23e9, 32),   // stp d9, d8, [sp, #-32]!
            (0xfc1e_0fe8, 32),   // str d8, [sp, #-32]!
            (0x9101_03ff, 0),    // add sp, sp, #64
            (0xa8c3_7bfd, 0),    // ldp x29, x30, [sp], #48
            (0xa901_4ff4, 0),    // stp x20, x19, [sp, #16]
            (0xd101_0000, 0),    // sub x0, x0, #64
            (0xd100_43e8, 0),    // sub x8, sp, #16
        ] {
            assert_eq!(lowers_stack(word), bytes, "{word:#010x}");
        }
    }

    fn function(name: &str, frame: u64, calls: &[u64], jumps: &[u64]) -> Function {
        Function {
            name: name.to_owned(),
            frame,
            calls: calls.iter().copied().collect(),
            jumps: jumps.iter().copied().collect(),
            indirect: false,
        }
    }

    #[test]
    fn the_deepest_path_wins_and_a_tail_call_takes_the_place_of_its_caller() {
        let mut functions = BTreeMap::from([
            (0, function("start", 0, &[10, 20], &[])),
            (10, function("wide", 100, &[], &[30])),
            (20, function("deep", 60, &[30], &[])),
            (30, function("leaf", 50, &[], &[])),
        ]);
        let bound = deepest(&functions, &[0]);
        assert_eq!((bound.bytes, bound.recursive, bound.indirect), (110, false, false));
        assert_eq!(bound.path, ["start", "deep", "leaf"]);
        assert_eq!(deepest(&functions, &[10, 20]).path, ["deep", "leaf"]);
        functions.insert(30, function("leaf", 50, &[20], &[]));
        assert!(deepest(&functions, &[0]).recursive);
    }

    #[test]
    fn calls_and_jumps_are_told_apart() {
        // bl +16; b -4 (own loop is inside); b +0x100; blr x8; ret
        let words = [0x9400_0004, 0x17ff_ffff, 0x1400_0040, 0xd63f_0100, 0xd65f_03c0];
        let function = scan(0x1000..0x1014, words.into_iter());
        assert_eq!(function.calls, BTreeSet::from([0x1010]));
        assert_eq!(function.jumps, BTreeSet::from([0x1108]));
        assert!(function.indirect);
    }
}
