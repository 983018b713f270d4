//! Gives every part of the system its address.
//!
//! All addresses are physical; whatever is mapped for a task is mapped at the same address. The order in RAM is: kernel,
//! its table, what the loader fills of each task (code, constants, configuration page), then what starts empty
//! (variables, guard page, stack), DMA memory, windows, page tables, and on a 2 MiB boundary the frame pools.

use abi::config::TaskConfig;
use abi::image::Image;

use crate::diagnostic::Diagnostics;
use crate::system::System;

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
/// If something is larger than its limit or the RAM.
pub fn plan(system: &System, kernel: Sizes, tasks: &[Sizes]) -> Result<Plan, Diagnostics> {
    let _ = (system, kernel, tasks);
    todo!()
}

impl Plan {
    /// The kernel's table; `entries` are the tasks' first instructions.
    #[must_use]
    pub fn image(&self, system: &System, entries: &[u64]) -> Image {
        let _ = (system, entries);
        todo!()
    }

    /// What goes into the configuration page of a task.
    #[must_use]
    pub fn task_config(&self, system: &System, task: usize) -> TaskConfig {
        let _ = (system, task);
        todo!()
    }
}
