//! The table that the kernel boots from.
//!
//! `cargo xtask dist` writes it in postcard form into the image; the kernel
//! itself holds no fact about the application or the board. The header
//! (magic, version, length) is that of [`crate::config`] with its own magic.

use heapless::{String, Vec};
use serde::{Deserialize, Serialize};

use crate::MAX_TASKS;

/// First four bytes of the table, little-endian.
pub const MAGIC: u32 = 0x474d_494c; // "LIMG"

/// Version of this format.
pub const VERSION: u16 = 1;

/// Most regions of one task.
pub const MAX_REGIONS: usize = 16;
/// Most frame pools.
pub const MAX_POOLS: usize = 4;
/// Most interrupts.
pub const MAX_IRQS: usize = 16;
/// Most frames in all pools together.
pub const MAX_FRAMES: usize = 1024;
/// Most steps of one quiesce sequence.
pub const MAX_QUIESCE: usize = 8;

bitflags::bitflags! {
    /// How a region may be used, and how it is cached.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Access: u8 {
        /// User code may read.
        const READ = 1 << 0;
        /// User code may write.
        const WRITE = 1 << 1;
        /// User code may execute.
        const EXECUTE = 1 << 2;
        /// Device registers: strongly ordered, never cached, never used as a kernel copy source or target.
        const DEVICE = 1 << 3;
        /// Normal memory without cache, for descriptor rings.
        const UNCACHED = 1 << 4;
    }
}

bitflags::bitflags! {
    /// What a task may ask of the kernel beyond its slots.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    #[serde(transparent)]
    pub struct Privileges: u8 {
        /// Restart, stop and fault tasks; receives fault notifications.
        const SUPERVISE = 1 << 0;
        /// Read counters and status of all tasks.
        const STATS = 1 << 1;
        /// Power off and reset.
        const POWER = 1 << 2;
        /// Write to the kernel's polled console.
        const LOG = 1 << 3;
        /// Stop tasks on purpose (test images and the console's `fault`).
        const INJECT = 1 << 4;
    }
}

/// One memory region of a task, page-aligned, mapped at its physical address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Rights and memory type.
    pub access: Access,
}

/// One task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Name in `app.toml`.
    pub name: String<24>,
    /// First instruction.
    pub entry: u64,
    /// Initial stack pointer, 16-byte aligned.
    pub stack_top: u64,
    /// First address of the unmapped page under the stack.
    pub guard: u64,
    /// 0 is the highest.
    pub priority: u8,
    /// True if it was built to use floating-point and vector registers; others may not touch them.
    pub floating_point: bool,
    /// Tasks (bits by index) that this one may send to.
    pub slots: u32,
    /// Notifications that it may post: task index, mask.
    pub notifies: Vec<(u8, u32), 16>,
    /// Extra rights.
    pub privileges: Privileges,
    /// Memory, most used first (the kernel searches in this order).
    pub regions: Vec<Region, MAX_REGIONS>,
}

/// One interrupt and who is told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interrupt {
    /// Number at the interrupt controller (GIC: INTID).
    pub number: u32,
    /// Task index.
    pub task: u8,
    /// Notification bit.
    pub mask: u32,
}

/// A step of a quiesce sequence: how a MAC is made to stop using memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Quiesce {
    /// Write a 32-bit register.
    Write {
        /// Register address.
        address: u64,
        /// What to write.
        value: u32,
    },
    /// Read a 32-bit register until `value & mask == expected`, at most `tries` times.
    Poll {
        /// Register address.
        address: u64,
        /// Bits that count.
        mask: u32,
        /// What they must be.
        expected: u32,
        /// Reads before it is given up.
        tries: u32,
    },
}

/// One pool of frames.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// Task index of the owner, a MAC driver.
    pub owner: u8,
    /// Bit of the owner to post when frames of a dead holder have come back.
    pub returned: u32,
    /// Address of the first frame.
    pub base: u64,
    /// Frames in the pool.
    pub count: u16,
    /// Task index and quota of each task, beside the owner, that may hold frames.
    pub holders: Vec<(u8, u16), 8>,
    /// Stops the device's DMA; run when the owner dies.
    pub quiesce: Vec<Quiesce, MAX_QUIESCE>,
}

/// A polled transmitter for the kernel's own messages, described by its registers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Console {
    /// Register that takes a byte (32-bit access).
    pub data: u64,
    /// Status register.
    pub status: u64,
    /// Bits of the status register of which one set means that the transmitter is full.
    pub full: u32,
    /// Register writes that enable the transmitter, done once at boot.
    pub init: Vec<(u64, u32), 4>,
}

/// Facts about the board that the kernel needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Platform {
    /// RAM that the kernel may reach: base, size; multiples of 2 MiB.
    pub ram: (u64, u64),
    /// RAM for page tables: base, size; page-aligned.
    pub tables: (u64, u64),
    /// Interrupt controller blocks (GICv2: distributor, CPU interface).
    pub interrupt_controller: Vec<u64, 4>,
    /// Interrupt of the kernel's timer.
    pub timer_interrupt: u32,
    /// The kernel's own output.
    pub console: Console,
}

/// The whole table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Image {
    /// The board's facts.
    pub platform: Platform,
    /// Tasks by index.
    pub tasks: Vec<Task, MAX_TASKS>,
    /// Interrupts.
    pub interrupts: Vec<Interrupt, MAX_IRQS>,
    /// Frame pools; frame indices count through them in this order.
    pub pools: Vec<Pool, MAX_POOLS>,
    /// Task index of the supervisor, and its notification bit for faults.
    pub supervisor: (u8, u32),
}

/// Bytes before the postcard data: magic (4), version (4), length (4), little-endian.
pub const HEADER_SIZE: usize = 12;

/// Reads an [`Image`] from its bytes part by part, as it would not fit the kernel's stack whole.
///
/// The parts come in the order of the fields of [`Image`]: [`take`](Self::take) for single values,
/// [`list`](Self::list) for lists.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Checks the header. `None` if magic, version or length are wrong.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        if word(0)? != MAGIC || word(4)? != u32::from(VERSION) {
            return None;
        }
        bytes.get(HEADER_SIZE..)?.get(..word(8)? as usize).map(Self)
    }

    /// The next value of the table. `None` if the bytes do not hold one.
    pub fn take<T: Deserialize<'a>>(&mut self) -> Option<T> {
        let (value, rest) = postcard::take_from_bytes(self.0).ok()?;
        self.0 = rest;
        Some(value)
    }

    /// Calls `each` for the entries of the list that comes next. `None` if the bytes end early or `each` says so.
    pub fn list<T: Deserialize<'a>>(&mut self, mut each: impl FnMut(T) -> Option<()>) -> Option<()> {
        let count: u32 = self.take()?;
        for _ in 0..count {
            each(self.take()?)?;
        }
        Some(())
    }
}
