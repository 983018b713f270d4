//! The configuration page of a task.
//!
//! `cargo xtask dist` fills one read-only page per task with a
//! [`TaskConfig`]: magic, length, and the value in postcard form. What a task
//! may ask for is declared in its `task.toml`, so a look-up that fails here is
//! a bug that the build tool should have refused.

use heapless::{String, Vec};
use serde::{Deserialize, Serialize};

/// First four bytes of a configuration page, little-endian.
pub const MAGIC: u32 = 0x4746_434c; // "LCFG"

/// Version of this format; follows the magic.
pub const VERSION: u16 = 1;

/// Bytes before the postcard data: magic (4), version (2), length (2), little-endian.
pub const HEADER_SIZE: usize = 8;

/// Names in configuration pages.
pub type Name = String<24>;

/// A device register block that the task drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Peripheral {
    /// Name in the task's `task.toml`.
    pub name: Name,
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// A memory region of the task beside its own image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Name in the task's `task.toml`, or for a window the name of the other task.
    pub name: Name,
    /// First address, page-aligned.
    pub base: u64,
    /// Bytes, a multiple of the page size.
    pub size: u64,
}

/// Frames that the task may hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolInfo {
    /// Name of the pool's owner task.
    pub name: Name,
    /// Address of the frame with index `first`.
    pub base: u64,
    /// Index of the pool's first frame.
    pub first: u16,
    /// Frames in the pool.
    pub count: u16,
}

/// A value from the task's `config` table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String<64>),
    /// Bytes: MAC addresses (6), IPv4 addresses (4), prefixes (4 + 1).
    Bytes(Vec<u8, 16>),
}

/// Everything that the build knows and a task needs at run time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskConfig {
    /// The task's own name in `app.toml`.
    pub name: Name,
    /// Task slots: slot name, task index.
    pub slots: Vec<(Name, u8), 16>,
    /// Notifications of other tasks that this task may post: name, task index, mask.
    /// The name is the slot-like name given under `notifies`.
    pub notifies: Vec<(Name, u8, u32), 16>,
    /// The task's own notification bits: name, mask with one bit.
    pub notifications: Vec<(Name, u32), 16>,
    /// Register blocks.
    pub peripherals: Vec<Peripheral, 4>,
    /// DMA memory and shared windows.
    pub memory: Vec<Memory, 12>,
    /// Pools of which the task may hold frames.
    pub pools: Vec<PoolInfo, 4>,
    /// The task's `config` table.
    pub values: Vec<(Name, Value), 16>,
    /// Names of all tasks in table order (filled for tasks with the `stats` privilege, else empty).
    pub tasks: Vec<Name, { crate::MAX_TASKS }>,
}
