//! Gives every part of the system its address.
//!
//! All addresses are physical; whatever is mapped for a task is mapped at the same address. The order in RAM is: kernel,
//! its table, what the loader fills of each task (code, constants, configuration page), then what starts empty
//! (variables, guard page, stack), DMA memory, windows, page tables, and on a 2 MiB boundary the frame pools.

use abi::image::Quiesce;

use crate::diagnostic::{Diagnostics, Problem};
use crate::limits::PAGE;
use crate::read::Log;
use crate::system::{At, System};
use crate::value::show_size;

/// The kernel maps frame pools by tables of this reach, and shares none of them with other regions.
const BLOCK: u64 = 2 << 20;

/// What one table of the second level reaches.
const GIB: u64 = 1 << 30;

/// Bytes of the kernel's table beside its tasks, and of one task in it: the longest that the types of [`abi::image`] can get
/// in postcard form (1.5 KiB and 497 bytes), rounded up.
const TABLE_BASE: u64 = 4096;
const TABLE_TASK: u64 = 512;

/// Bytes of the parts of a linked program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Code.
    pub text: u64,
    /// Constants, without the load image of `.data`.
    pub rodata: u64,
    /// Variables with a start value.
    pub data: u64,
    /// Variables that start as zero, the gap before them included. For the kernel without its stack.
    pub bss: u64,
}

/// A range of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Span {
    /// The first address behind it.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.base + self.size
    }
}

/// Where the kernel goes. The parts follow each other on page boundaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelPlacement {
    /// Code; starts where board.toml says.
    pub text: Span,
    /// Constants.
    pub rodata: Span,
    /// Variables, `.bss` included.
    pub data: Span,
    /// First address of the unused page under the stack.
    pub guard: u64,
    /// The stack.
    pub stack: Span,
    /// The image table, whole pages.
    pub table: Span,
}

/// Where a task goes. Bases and sizes are multiples of the page size; a part of which there is nothing has size 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskPlacement {
    /// Code.
    pub text: Span,
    /// Constants, and behind them the load image of `.data`.
    pub rodata: Span,
    /// The configuration page.
    pub config: Span,
    /// `.data` and `.bss`.
    pub data: Span,
    /// First address of the unmapped page under the stack.
    pub guard: u64,
    /// The stack.
    pub stack: Span,
    /// DMA memory, in the order of [`Task::memory`](crate::Task::memory).
    pub memory: Vec<Span>,
}

/// All addresses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The kernel.
    pub kernel: KernelPlacement,
    /// Tasks, in the order of [`System::tasks`].
    pub tasks: Vec<TaskPlacement>,
    /// Windows, in the order of [`System::windows`].
    pub windows: Vec<Span>,
    /// Frame pools, in the order of [`System::pools`].
    pub pools: Vec<Span>,
    /// Memory for page tables.
    pub page_tables: Span,
    /// Everything above as a list by address.
    pub map: MemoryMap,
}

/// What a range of memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Code.
    Text,
    /// Constants.
    Rodata,
    /// Variables.
    Data,
    /// Unmapped page under a stack.
    Guard,
    /// Stack.
    Stack,
    /// The kernel's table.
    Table,
    /// Configuration page.
    Config,
    /// DMA memory.
    Dma,
    /// Shared by two tasks.
    Window,
    /// Page tables.
    PageTables,
    /// Frames.
    Pool,
    /// Device registers.
    Registers,
}

/// A line of the memory map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapEntry {
    /// What it is called, `net.stack`.
    pub name: String,
    /// Task, or `kernel`.
    pub owner: String,
    /// Where it is.
    pub span: Span,
    /// Bytes in use; less than `span.size` where a page is not full.
    pub used: u64,
    /// What it is for.
    pub purpose: Use,
}

/// Who has what, sorted by address, without overlaps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryMap {
    /// The lines.
    pub entries: Vec<MapEntry>,
}

/// Plans memory for a system from the sizes of its kernel and its tasks (in the order of [`System::tasks`]).
///
/// # Errors
/// If something is larger than its limit or the RAM, or a configuration page is too small.
///
/// # Panics
/// If there are not as many sizes as tasks.
pub fn plan(system: &System, kernel: Sizes, tasks: &[Sizes]) -> Result<Plan, Diagnostics> {
    assert_eq!(system.tasks.len(), tasks.len(), "sizes for each task");
    let log = Log::default();
    check_limits(system, kernel, tasks, &log);
    let mut memory = Layout { next: system.board.image.value, map: MemoryMap::default() };
    let kernel = memory.kernel(system, kernel);
    let mut plan = Plan { kernel, tasks: vec![TaskPlacement::default(); tasks.len()], ..Plan::default() };
    for (index, task) in system.tasks.iter().enumerate() {
        memory.loaded_parts(&task.name.value, tasks[index], &mut plan.tasks[index]);
    }
    for (index, task) in system.tasks.iter().enumerate() {
        memory.empty_parts(task, tasks[index], &mut plan.tasks[index]);
    }
    for (index, task) in system.tasks.iter().enumerate() {
        let parts = task.memory.iter().map(|part| memory.take(&task.name.value, &part.name, Use::Dma, part.size.value));
        plan.tasks[index].memory = parts.collect();
    }
    for window in &system.windows {
        let (owner, peer) = (&system.tasks[window.owner].name.value, &system.tasks[window.peer].name.value);
        plan.windows.push(memory.take(owner, peer, Use::Window, window.size.value));
    }
    plan.page_tables = memory.take("kernel", "page-tables", Use::PageTables, page_tables(system, &plan));
    // Nothing comes after the pools, so that no task's region shares a table with them.
    if !system.pools.is_empty() {
        memory.next = round_up(memory.next, BLOCK);
    }
    for pool in &system.pools {
        let (owner, frames) = (&system.tasks[pool.owner].name.value, u64::from(pool.frames.value));
        plan.pools.push(memory.take(owner, "pool", Use::Pool, frames * PAGE));
    }
    memory.check_ram(system, &log);
    plan.map = memory.map;
    plan.map.add_registers(system);
    plan.check_pages(system, &log);
    let problems = log.into_problems();
    if problems.is_empty() { Ok(plan) } else { Err(Diagnostics { problems }) }
}

/// Rounds up; what does not fit stays at the end of all addresses, and is refused as too large.
fn round_up(bytes: u64, unit: u64) -> u64 {
    bytes.checked_next_multiple_of(unit).unwrap_or(u64::MAX - (unit - 1))
}

/// Bytes of constants with the load image of `.data` behind them.
fn constants(sizes: Sizes) -> u64 {
    round_up(sizes.rodata, 8).saturating_add(sizes.data)
}

fn variables(sizes: Sizes) -> u64 {
    sizes.data.saturating_add(sizes.bss)
}

/// Hands out memory, one part after the other.
struct Layout {
    next: u64,
    map: MemoryMap,
}

impl Layout {
    /// Takes whole pages.
    fn take(&mut self, owner: &str, part: &str, purpose: Use, used: u64) -> Span {
        let size = round_up(used, PAGE);
        // Past the end of all addresses everything has the same base; the sum is refused later.
        let span = Span { base: self.next, size: size.min(u64::MAX - self.next) };
        self.next += span.size;
        if span.size > 0 {
            self.map.entries.push(MapEntry {
                name: format!("{owner}.{part}"),
                owner: owner.to_owned(),
                span,
                used,
                purpose,
            });
        }
        span
    }

    fn kernel(&mut self, system: &System, sizes: Sizes) -> KernelPlacement {
        let mut take = |part, purpose, used| self.take("kernel", part, purpose, used);
        KernelPlacement {
            text: take("text", Use::Text, sizes.text),
            rodata: take("rodata", Use::Rodata, sizes.rodata),
            data: take("data", Use::Data, variables(sizes)),
            guard: take("guard", Use::Guard, PAGE).base,
            stack: take("stack", Use::Stack, system.kernel.stack.value),
            table: take("table", Use::Table, TABLE_BASE + TABLE_TASK * system.tasks.len() as u64),
        }
    }

    /// What the loader fills.
    fn loaded_parts(&mut self, name: &str, sizes: Sizes, place: &mut TaskPlacement) {
        place.text = self.take(name, "text", Use::Text, sizes.text);
        place.rodata = self.take(name, "rodata", Use::Rodata, constants(sizes));
        place.config = self.take(name, "config", Use::Config, PAGE);
    }

    /// What the task's start-up code fills.
    fn empty_parts(&mut self, task: &crate::system::Task, sizes: Sizes, place: &mut TaskPlacement) {
        let name = &task.name.value;
        place.data = self.take(name, "data", Use::Data, variables(sizes));
        place.guard = self.take(name, "guard", Use::Guard, PAGE).base;
        place.stack = self.take(name, "stack", Use::Stack, task.stack.value);
    }

    /// Checks that all of it lies in RAM.
    fn check_ram(&self, system: &System, log: &Log) {
        let ram = &system.board.ram;
        let end = ram.base + ram.size.value;
        if self.next <= end {
            return;
        }
        let (start, limit) = (system.board.image.value, end - system.board.image.value);
        let message = format!("the image does not fit into the RAM of `{}`", system.board.name);
        let label = format!("{} bytes are needed from {start:#x} on, and there are {limit}", self.next - start);
        let first = self.map.entries.iter().find(|entry| entry.span.end() > end);
        let first = first.map_or(String::new(), |entry| format!("the first that does not fit is `{}`; ", entry.name));
        let mut largest: Vec<&MapEntry> = self.map.entries.iter().collect();
        largest.sort_by_key(|entry| std::cmp::Reverse(entry.span.size));
        let largest: Vec<String> =
            largest.iter().take(3).map(|entry| format!("`{}` with {} bytes", entry.name, entry.span.size)).collect();
        let help = format!("{first}the largest are {}: make one of them smaller", largest.join(", "));
        log.add(Problem::new(&ram.size.at, message, label).help(help));
    }
}

/// Bytes for page tables: for each address space a root, a table for each 1 GiB, and one for each 2 MiB that holds pages.
fn page_tables(system: &System, plan: &Plan) -> u64 {
    let frames: u64 = system.pools.iter().map(|pool| u64::from(pool.frames.value) * PAGE).sum();
    let task = |index: usize| {
        let place = &plan.tasks[index];
        let own = [place.text, place.rodata, place.config, place.data, place.stack]
            .into_iter()
            .chain(place.memory.iter().copied());
        let shared = system.windows.iter().zip(&plan.windows);
        let shared = shared.filter(|(window, _)| window.owner == index || window.peer == index).map(|(_, span)| *span);
        let registers = system.tasks[index].peripherals.iter().map(|own| Span { base: own.base, size: own.size });
        // The pools, of which only the size is known yet, begin on a boundary and lie side by side.
        tables(own.chain(shared).chain(registers)) + frames.div_ceil(BLOCK) + 2
    };
    let tasks: u64 = (0..plan.tasks.len()).map(task).sum();
    let ram = &system.board.ram;
    let board = &system.board;
    let registers = board.interrupt_controller.iter().chain([&board.console.data, &board.console.status]).copied();
    let quiesce = system.pools.iter().flat_map(|pool| &pool.quiesce).map(|step| match step {
        Quiesce::Write { address, .. } | Quiesce::Poll { address, .. } => *address,
    });
    let registers = registers.chain(board.console.init.iter().map(|(address, _)| *address)).chain(quiesce);
    let registers = registers.map(|address| Span { base: address, size: 4 });
    // The kernel maps RAM in blocks, but for those that hold its code and constants.
    let image = Span { base: plan.kernel.text.base, size: plan.kernel.rodata.end() - plan.kernel.text.base };
    let kernel = tables(registers.chain([image])) + ram.size.value / GIB + 2;
    (tasks + kernel).saturating_mul(PAGE)
}

/// Tables of one address space.
fn tables(spans: impl Iterator<Item = Span>) -> u64 {
    let spans: Vec<Span> = spans.filter(|span| span.size > 0).collect();
    1 + touched(&spans, GIB) + touched(&spans, BLOCK)
}

/// How many ranges of `unit` bytes hold a part of these spans.
fn touched(spans: &[Span], unit: u64) -> u64 {
    let mut ranges: Vec<(u64, u64)> = spans.iter().map(|span| (span.base / unit, (span.end() - 1) / unit)).collect();
    ranges.sort_unstable();
    let (mut count, mut next) = (0, 0);
    for (first, last) in ranges.into_iter() {
        let first = first.max(next);
        count += (last + 1).saturating_sub(first);
        next = next.max(last + 1);
    }
    count
}

/// Checks programs against the limits that app.toml sets.
fn check_limits(system: &System, kernel: Sizes, tasks: &[Sizes], log: &Log) {
    let check = |name: &str, what: &str, key: &str, need: u64, limit: &Option<At<u64>>| {
        let Some(limit) = limit.as_ref().filter(|limit| need > limit.value) else { return };
        let message = format!("the {what} of `{name}` is larger than its limit");
        let label = format!("{need} bytes are needed, the limit is {}", limit.value);
        let help = format!("make it smaller, or raise the limit: {key} = \"{}\"", show_size(round_up(need, PAGE)));
        log.add(Problem::new(&limit.at, message, label).help(help));
    };
    let limits = [(&system.kernel.code_limit, &system.kernel.data_limit)].into_iter();
    let limits = limits.chain(system.tasks.iter().map(|task| (&task.code_limit, &task.data_limit)));
    let names = ["kernel"].into_iter().chain(system.tasks.iter().map(|task| task.name.value.as_str()));
    for ((name, (code, data)), sizes) in names.zip(limits).zip([&kernel].into_iter().chain(tasks)) {
        check(name, "code", "code", round_up(sizes.text, PAGE).saturating_add(constants(*sizes)), code);
        check(name, "data", "data", variables(*sizes), data);
    }
}

impl Plan {
    /// Checks that what a task reads at run time fits its configuration page.
    fn check_pages(&self, system: &System, log: &Log) {
        for (index, task) in system.tasks.iter().enumerate() {
            let need = crate::encode::encode_config(&self.task_config(system, index)).len() as u64;
            if need > PAGE {
                let message = format!("the configuration page of `{}` is too small", task.name.value);
                let label = format!("{need} bytes are needed, the limit is {PAGE}");
                log.add(
                    Problem::new(&task.name.at, message, label)
                        .help("shorten names and texts in its `config`, slots and windows"),
                );
            }
        }
    }
}

impl MemoryMap {
    /// Adds the registers that tasks and kernel use, and sorts.
    fn add_registers(&mut self, system: &System) {
        for task in &system.tasks {
            for own in &task.peripherals {
                let name = if own.name == own.board_name {
                    own.name.clone()
                } else {
                    format!("{} ({})", own.name, own.board_name)
                };
                let span = Span { base: own.base, size: own.size };
                let owner = task.name.value.clone();
                self.entries.push(MapEntry {
                    name: format!("{owner}.{name}"),
                    owner,
                    span,
                    used: own.size,
                    purpose: Use::Registers,
                });
            }
        }
        for &base in &system.board.interrupt_controller {
            let (name, span) = ("kernel.interrupt-controller".to_owned(), Span { base, size: PAGE });
            self.entries.push(MapEntry { name, owner: "kernel".to_owned(), span, used: PAGE, purpose: Use::Registers });
        }
        self.entries.sort_by_key(|entry| entry.span.base);
    }

    /// Names of two entries that overlap, if there are any; a plan has none.
    #[must_use]
    pub fn overlap(&self) -> Option<(&str, &str)> {
        let pairs = self.entries.windows(2);
        pairs
            .filter(|pair| pair[0].span.end() > pair[1].span.base)
            .map(|pair| (pair[0].name.as_str(), pair[1].name.as_str()))
            .next()
    }
}
