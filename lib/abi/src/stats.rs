//! Counters that the kernel keeps, always on.

use serde::{Deserialize, Serialize};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Counters of one task, or with a sum over all tasks of the system.
///
/// All of them count from boot and survive a restart of the task.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Counters {
    /// Time on the CPU in timer ticks, system calls included.
    pub ticks: u64,
    /// Instructions executed, system calls included; 0 where the CPU does not count them.
    pub instructions: u64,
    /// Times the task was switched to.
    pub switches: u64,
    /// System calls made.
    pub calls: u64,
    /// Interrupts delivered to the task as notifications.
    pub interrupts: u64,
    /// Messages sent.
    pub messages: u64,
    /// Frames handed over to another task.
    pub frames: u64,
    /// Bytes that the kernel copied for the task's messages, replies and borrows.
    pub bytes_copied: u64,
    /// Cache lines cleaned or invalidated for the task's frames.
    pub cache_lines: u64,
    /// Page table entries written for frames of the task.
    pub map_writes: u64,
}

impl Counters {
    /// Nothing counted.
    pub const ZERO: Self = Self {
        ticks: 0,
        instructions: 0,
        switches: 0,
        calls: 0,
        interrupts: 0,
        messages: 0,
        frames: 0,
        bytes_copied: 0,
        cache_lines: 0,
        map_writes: 0,
    };
}

/// What a task is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum TaskState {
    /// Ready or running.
    Runnable,
    /// Waiting to be received by this task index.
    Sending(u8),
    /// Waiting for the reply of this task index.
    AwaitingReply(u8),
    /// Waiting for messages or notifications.
    Receiving,
    /// Faulted, waiting for the supervisor.
    Faulted,
    /// Never started, or stopped on request.
    Stopped,
}

/// What `kernel_op` [`TASK_STATUS`](crate::call::kernel_op::TASK_STATUS) reports, as postcard bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TaskStatus {
    /// State at this moment.
    pub state: TaskState,
    /// Restarts since boot.
    pub generation: u32,
    /// Priority, 0 the highest.
    pub priority: u8,
    /// Frames held.
    pub frames_held: u16,
    /// The last fault, if there was one.
    pub fault: Option<crate::fault::FaultRecord>,
}

/// Where the frames of a pool are; the fields always sum to the pool's size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FrameCensus {
    /// Held by the pool's owner.
    pub owner: u16,
    /// Held by other tasks.
    pub lent: u16,
    /// Held by the device.
    pub device: u16,
    /// Taken from a dead owner's device, waiting for the quiesce sequence.
    pub quarantined: u16,
}
