//! What kernel, tasks and build tool agree on.
//!
//! Every number that crosses the boundary between user code, kernel and image
//! builder is defined here and nowhere else:
//!
//! * [`call`]: system call numbers and their register conventions,
//! * [`code`]: response codes of the kernel,
//! * [`frame`]: frame handles and lists,
//! * [`image`]: the table that `cargo xtask dist` writes and the kernel boots from,
//! * [`config`]: the configuration page of a task,
//! * [`stats`]: the counters that the kernel keeps,
//! * [`fault`]: why a task stopped.
//!
//! The crate holds data types only. It has no `unsafe` code and builds for
//! every target, the host included.

#![no_std]
#![forbid(unsafe_code)]

pub mod call;
pub mod code;
pub mod config;
pub mod fault;
pub mod frame;
pub mod image;
pub mod stats;
mod task_id;

pub use code::{Code, KernelError};
pub use fault::FaultInfo;
pub use frame::{FrameDesc, FrameHandle};
pub use task_id::TaskId;

/// Most tasks in one image. Task sets are `u32` bit masks.
pub const MAX_TASKS: usize = 32;

/// Longest message or reply in bytes. Larger data travels by lease or frame.
pub const MAX_MESSAGE: usize = 1024;

/// Most leases that one message can carry.
pub const MAX_LEASES: usize = 8;

/// Most frames in one list.
pub const MAX_FRAME_LIST: usize = 32;

/// Bytes in a frame, and the granularity of every memory region.
pub const PAGE_SIZE: usize = 4096;
