//! Boards: `boards/NAME/board.toml`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use abi::image::MAX_QUIESCE;

use crate::diagnostic::{Origin, Problem, Source};
use crate::limits::{PAGE, check_name};
use crate::read::{Cell, Log, Raw, Size, Table, one_of, parse};
use crate::suggest::suggest;
use crate::system::{At, Board, BoardPeripheral, Console, QuiesceStep, Ram, Run};
use crate::value::show_size;

/// Granularity of RAM: the kernel maps it in blocks.
const BLOCK: u64 = 2 << 20;

/// The kernel's tables reach this far.
const ADDRESS_LIMIT: u64 = 1 << 39;

/// A board.toml, with the values for drivers that [`Board`] has no use for.
#[derive(Debug)]
pub struct BoardFile {
    pub board: Board,
    /// `config` of each peripheral.
    pub config: BTreeMap<String, Values>,
}

/// Reads the board.toml of the board `name`.
pub fn read(name: &str, source: &Arc<Source>, log: &Log) -> Option<BoardFile> {
    parse(source, log, |table| read_table(name, table, log)).flatten()
}

fn read_table(name: &str, table: Table<'_>, log: &Log) -> Option<BoardFile> {
    let problems = log.len();
    let description = table.required::<String>("description", "say in one line what the board is");
    let arch = table.required::<String>("arch", "known: `aarch64`");
    let arch = arch.and_then(|arch| one_of(log, &arch, "architecture", &["aarch64"]));
    let cpu = table.required::<String>("cpu", "name the processor as the compiler does, like \"cortex-a53\"");
    let memory = table
        .required_table("memory", "give the RAM and where the kernel's image starts")
        .map(|table| memory(log, table));
    let controller = table
        .required_table("interrupt-controller", "give its kind, blocks and lines")
        .and_then(|table| controller(log, table));
    let timer = table.required_table("timer", "give the interrupt of the kernel's timer").and_then(|table| {
        let interrupt = table.required("interrupt", "the number at the interrupt controller");
        table.finish();
        interrupt
    });
    let console = table.required_table("console", "describe the transmitter for the kernel's own messages");
    let ram =
        memory.as_ref().and_then(Option::as_ref).map(|(ram, _)| ram.base..ram.base.saturating_add(ram.size.value));
    let console = console.and_then(|table| console_of(log, table, ram.unwrap_or_default()));
    let mut config = BTreeMap::new();
    let mut peripherals = BTreeMap::new();
    for (name, table) in table.tables("peripherals") {
        if let Some((peripheral, values)) = peripheral(log, &name, table) {
            config.insert(name.value.clone(), values);
            peripherals.insert(name.value, peripheral);
        }
    }
    // Peripherals that are wrong are left out, and roles would miss them.
    let roles = if log.len() == problems {
        roles(log, &table, &peripherals)
    } else {
        table.entries("roles");
        BTreeMap::new()
    };
    let run = table.required_table("run", "say how the emulator boots this board").and_then(run);
    table.finish();
    (log.len() == problems).then_some(())?;
    let (ram, image) = memory??;
    let (interrupt_controller, lines) = controller?;
    let board = Board {
        name: name.to_owned(),
        description: description?.value,
        arch: arch?.to_owned(),
        cpu: cpu?.value,
        ram,
        image,
        interrupt_controller,
        lines,
        timer_interrupt: timer?,
        console: console?,
        peripherals,
        roles,
        run: run?,
    };
    check_interrupts(log, &board);
    check_addresses(log, &board);
    Some(BoardFile { board, config })
}

fn memory(log: &Log, table: Table<'_>) -> Option<(Ram, At<u64>)> {
    let ram = table.required_table("ram", "as in { base = 0x0, size = \"512 MiB\" }").and_then(|table| {
        let base = table.required::<u64>("base", "the first address of RAM");
        let size = table.required::<Size>("size", "as in \"512 MiB\"");
        table.finish();
        base.zip(size)
    });
    let image = table.required::<u64>("image", "the address at which the loader puts the kernel, like 0x0020_0000");
    table.finish();
    let ((base, size), image) = (ram?, image?);
    let size = At { value: size.value.0, at: size.at };
    for (bytes, at, what) in [(base.value, &base.at, "base"), (size.value, &size.at, "size")] {
        if !bytes.is_multiple_of(BLOCK) {
            let help = format!("the kernel maps RAM in blocks of {}", show_size(BLOCK));
            log.add(
                Problem::new(
                    at,
                    format!("the {what} of RAM is not a multiple of {}", show_size(BLOCK)),
                    format!("{bytes:#x}"),
                )
                .help(help),
            );
        }
    }
    let end = base.value.saturating_add(size.value);
    if size.value == 0 || end > ADDRESS_LIMIT {
        let help = format!("RAM ends at or below {ADDRESS_LIMIT:#x}, and there is some");
        log.add(
            Problem::new(&size.at, "the kernel cannot map this RAM", format!("it would end at {end:#x}")).help(help),
        );
    }
    if !(base.value..end).contains(&image.value) || !image.value.is_multiple_of(PAGE) {
        let help = format!("a multiple of {PAGE} from {:#x} up to {end:#x}", base.value);
        log.add(Problem::new(&image.at, "the kernel's image has no place in RAM", "not a page of RAM").help(help));
    }
    Some((Ram { base: base.value, size }, image))
}

fn controller(log: &Log, table: Table<'_>) -> Option<(Vec<u64>, u32)> {
    let kind = table.required::<String>("kind", "known: `gicv2`");
    let blocks = table.required::<Vec<At<u64>>>("blocks", "addresses of distributor and CPU interface");
    let lines = table.required::<u32>("lines", "how many interrupts it has, like 192");
    table.finish();
    one_of(log, &kind?, "interrupt controller", &["gicv2"])?;
    let (blocks, lines) = (blocks?, lines?);
    if blocks.value.len() != 2 {
        let label = format!("{} addresses", blocks.value.len());
        log.add(
            Problem::new(&blocks.at, "a GICv2 has two register blocks", label)
                .help("give distributor and CPU interface"),
        );
    }
    if !(32..=1020).contains(&lines.value) {
        log.add(Problem::new(&lines.at, "bad number of interrupts", "out of range").help("a GICv2 has 32 to 1020"));
    }
    Some((blocks.value.into_iter().map(|block| block.value).collect(), lines.value))
}

fn console_of(log: &Log, table: Table<'_>, ram: Range<u64>) -> Option<Console> {
    let data = table.required::<u64>("data", "the address of the register that takes a byte");
    let status = table.required::<u64>("status", "the address of the status register");
    let full = table.required::<u32>("full", "the bits of the status register that tell that it is full");
    let steps = table.optional::<Vec<At<Pair>>>("init");
    if let Some(steps) = steps.as_ref().filter(|steps| steps.value.len() > 4) {
        let label = format!("{} writes", steps.value.len());
        log.add(Problem::new(&steps.at, "too many register writes", label).help("at most 4 are possible"));
    }
    let init: Vec<(u64, u32)> =
        steps.iter().flat_map(|steps| &steps.value).map(|step| (step.value.0, step.value.1)).collect();
    let places = steps.iter().flat_map(|steps| &steps.value).map(|step| (step.value.0, &step.at));
    let registers = [&data, &status].into_iter().flatten().map(|register| (register.value, &register.at));
    for (address, at) in registers.chain(places) {
        if ram.contains(&address) || !address.is_multiple_of(4) || address >= ADDRESS_LIMIT {
            let help = format!("registers are 32 bits wide, outside RAM and below {ADDRESS_LIMIT:#x}");
            log.add(Problem::new(at, "this cannot be a register of the console", format!("{address:#x}")).help(help));
        }
    }
    table.finish();
    Some(Console { data: data?.value, status: status?.value, full: full?.value, init })
}

/// A register and its value, `[0xff00_0000, 0x14]`.
struct Pair(u64, u32);

impl crate::read::Read for Pair {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        let elements = cell.elements("a register and its value, as in [0xff00_0000, 0x14]");
        match &elements[..] {
            [address, value] => Some(Self(address.read()?.value, value.read()?.value)),
            [] => None,
            _ => {
                cell.refuse(
                    "this is not one register write",
                    format!("{} elements", elements.len()),
                    "as in [0xff00_0000, 0x14]",
                );
                None
            }
        }
    }
}

/// Values of a `config` table.
pub type Values = Vec<(At<String>, At<Raw>)>;

fn peripheral(log: &Log, name: &At<String>, table: Table<'_>) -> Option<(BoardPeripheral, Values)> {
    let at = name.at.clone();
    let kind = table.required::<String>("kind", "what the device is; drivers say which kind they drive");
    let driver = table.optional::<String>("driver");
    let base = table.required::<u64>("base", "the first address of its registers");
    let size = table.required::<Size>("size", "the bytes of its registers, like 0x1000");
    let interrupt = table.optional::<u32>("interrupt");
    let values = table.entries("config").into_iter().filter_map(|(name, cell)| cell.read().map(|value| (name, value)));
    let values = values.collect();
    let bytes = size.as_ref().map_or(0, |size| size.value.0);
    let quiesce = quiesce(log, &table, bytes);
    table.finish();
    if !check_name(log, name, "peripheral") {
        return None;
    }
    let (base, size) = (base?, size?);
    for (bytes, at, what) in [(base.value, &base.at, "base"), (size.value.0, &size.at, "size")] {
        if !bytes.is_multiple_of(PAGE) || (what == "size" && bytes == 0) {
            let help = format!("a task gets whole pages of registers: a multiple of {PAGE:#x}");
            log.add(
                Problem::new(
                    at,
                    format!("the {what} of `{}` is not a number of whole pages", name.value),
                    format!("{bytes:#x}"),
                )
                .help(help),
            );
            return None;
        }
    }
    if base.value.saturating_add(size.value.0) > ADDRESS_LIMIT {
        log.add(
            Problem::new(&base.at, format!("`{}` is out of reach", name.value), "too high")
                .help(format!("the kernel maps addresses below {ADDRESS_LIMIT:#x}")),
        );
        return None;
    }
    let driver = driver.map(|driver| driver.value);
    Some((
        BoardPeripheral { kind: kind?.value, driver, base: base.value, size: size.value.0, interrupt, quiesce, at },
        values,
    ))
}

fn quiesce(log: &Log, table: &Table<'_>, size: u64) -> Vec<QuiesceStep> {
    let Some(steps) = table.get("quiesce") else { return Vec::new() };
    let at = steps.at.clone();
    let steps = steps.elements("a list of steps, as in [{ write = 0x000, value = 0 }]");
    if steps.len() > MAX_QUIESCE {
        log.add(
            Problem::new(&at, "the quiesce sequence is too long", format!("{} steps", steps.len()))
                .help(format!("at most {MAX_QUIESCE} are possible")),
        );
    }
    steps.into_iter().filter_map(|step| quiesce_step(log, step.table()?, size)).collect()
}

fn quiesce_step(log: &Log, table: Table<'_>, size: u64) -> Option<QuiesceStep> {
    const HELP: &str = "{ write = OFFSET, value = V } or { poll = OFFSET, mask = M, expected = V, tries = N }";
    let at = table.at.clone();
    let (write, poll) = (table.optional::<u64>("write"), table.optional::<u64>("poll"));
    let offset = match (&write, &poll) {
        (Some(offset), None) | (None, Some(offset)) => offset,
        _ => {
            log.add(Problem::new(&at, "a quiesce step either writes or polls", "this does not").help(HELP));
            return None;
        }
    };
    if size > 0 && (offset.value.saturating_add(4) > size || !offset.value.is_multiple_of(4)) {
        let label = format!("the block has {size:#x} bytes of 32-bit registers");
        log.add(
            Problem::new(&offset.at, "this register is not one of the peripheral", label)
                .help("give the offset in the block, a multiple of 4"),
        );
    }
    let offset = offset.value;
    let step = if write.is_some() {
        table.required("value", HELP).map(|value| QuiesceStep::Write { offset, value: value.value })
    } else {
        let mask = table.required("mask", HELP);
        let expected = table.required("expected", HELP);
        let tries = table.required("tries", HELP);
        mask.zip(expected).zip(tries).map(|((mask, expected), tries)| QuiesceStep::Poll {
            offset,
            mask: mask.value,
            expected: expected.value,
            tries: tries.value,
        })
    };
    table.finish();
    step
}

fn roles(
    log: &Log,
    table: &Table<'_>,
    peripherals: &BTreeMap<String, BoardPeripheral>,
) -> BTreeMap<String, At<String>> {
    let mut roles = BTreeMap::new();
    for (role, cell) in table.entries("roles") {
        let Some(target) = cell.read::<String>() else { continue };
        match peripherals.get(&target.value) {
            None => {
                let known = peripherals.keys().map(String::as_str);
                let message = format!("unknown peripheral `{}` in the role `{}`", target.value, role.value);
                log.add(Problem::new(&target.at, message, "no peripheral of this board").help(suggest(
                    &target.value,
                    known,
                    "peripherals",
                )));
            }
            Some(peripheral) if peripheral.driver.is_none() => {
                let message = format!("the peripheral `{}` in the role `{}` has no driver", target.value, role.value);
                let help =
                    format!("name the task crate that drives it: [peripherals.{}] driver = \"...\"", target.value);
                log.add(
                    Problem::new(&target.at, message, "nobody drives this")
                        .also(&peripheral.at, "declared here")
                        .help(help),
                );
            }
            Some(_) => {
                roles.insert(role.value, target);
            }
        }
    }
    roles
}

fn run(table: Table<'_>) -> Option<Run> {
    let emulator = table.required::<String>("emulator", "the program, like \"qemu-system-aarch64\"");
    let args =
        table.required::<Vec<At<String>>>("args", "arguments that choose the machine, like [\"-M\", \"xlnx-zcu102\"]");
    let nic = table.optional::<u32>("nic").map_or(0, |nic| nic.value);
    let serial = table.optional::<u32>("serial").map_or(0, |serial| serial.value);
    table.finish();
    let args = args?.value.into_iter().map(|arg| arg.value).collect();
    Some(Run { emulator: emulator?.value, args, nic: nic as usize, serial: serial as usize })
}

fn check_interrupts(log: &Log, board: &Board) {
    let timer = &board.timer_interrupt;
    let mut taken: Vec<(u32, &Origin, String)> = vec![(timer.value, &timer.at, "the kernel's timer".to_owned())];
    let peripherals =
        board.peripherals.iter().filter_map(|(name, peripheral)| Some((name, peripheral.interrupt.as_ref()?)));
    for (name, interrupt) in peripherals {
        if let Some((_, at, other)) = taken.iter().find(|(number, ..)| *number == interrupt.value) {
            let message = format!("interrupt {} is taken twice: by {other} and by `{name}`", interrupt.value);
            log.add(
                Problem::new(&interrupt.at, message, "taken again here")
                    .also(at, "taken here")
                    .help("each interrupt belongs to one peripheral; see the chip's manual"),
            );
        }
        taken.push((interrupt.value, &interrupt.at, format!("`{name}`")));
    }
    for (number, at, _) in taken {
        if number >= board.lines || number < 16 {
            let help =
                format!("numbers are from 16 to {}; a GIC counts 32 above the number of the SPI", board.lines - 1);
            log.add(Problem::new(at, format!("the board has no interrupt {number}"), "no such interrupt").help(help));
        }
    }
}

fn check_addresses(log: &Log, board: &Board) {
    let ram = board.ram.base..board.ram.base + board.ram.size.value;
    let mut blocks: Vec<(u64, u64, &str, Option<&Origin>)> =
        board.interrupt_controller.iter().map(|&base| (base, PAGE, "interrupt-controller", None)).collect();
    blocks.push((ram.start, ram.end - ram.start, "memory.ram", Some(&board.ram.size.at)));
    for (name, peripheral) in &board.peripherals {
        let (base, end) = (peripheral.base, peripheral.base + peripheral.size);
        if let Some((_, _, other, at)) = blocks.iter().find(|(start, size, ..)| base < start + size && *start < end) {
            let message = format!("`{name}` overlaps `{other}`");
            let problem = Problem::new(&peripheral.at, message, format!("{base:#x} to {:#x}", end - 1));
            let problem = at.map_or(problem.clone(), |at| problem.also(at, "and this"));
            log.add(problem.help("correct `base` or `size` of one of them"));
        }
        blocks.push((base, peripheral.size, name, Some(&peripheral.at)));
    }
}
