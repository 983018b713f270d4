//! System calls.
//!
//! User code loads the number and up to eight arguments into registers and
//! traps; results come back in the same registers. On AArch64 the number is in
//! `x8`, arguments and results are in `x0`..`x7`, and the instruction is `svc #0`.
//! All other registers, the vector registers included, are preserved.
//!
//! An argument that names memory outside the caller's regions is a programming
//! error and faults the caller ([`crate::FaultInfo::BadMemoryArgument`]). Everything
//! else that can be wrong comes back as a [`crate::KernelError`] code.

use zerocopy::{FromBytes, Immutable};

/// Numbers of the system calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Call {
    /// Sends a message and waits for the reply.
    ///
    /// In: 0 target [`TaskId`](crate::TaskId), 1 operation, 2 message address, 3 message length,
    /// 4 reply buffer address, 5 its capacity, 6 address of a [`SendExtra`] or 0.
    /// Out: 0 [`Code`](crate::Code), 1 reply length, 2 frames received. With [`Dead`](crate::KernelError::Dead),
    /// 1 is 1 if the dead instance had received the message (frames sent with it are gone), else 0.
    Send = 1,
    /// Waits for a message or a notification.
    ///
    /// In: 0 address of a [`RecvArgs`].
    /// Out: as [`ReceivedMessage`] lists.
    Recv = 2,
    /// Answers a caller.
    ///
    /// In: 0 caller, 1 code, 2 reply address, 3 reply length, 4 frame list address, 5 frames.
    /// Out: 0 code. On an error nothing moved and the caller keeps waiting; a caller that has died is no error.
    Reply = 3,
    /// [`Call::Reply`], then [`Call::Recv`], in one kernel entry.
    ///
    /// In: 0..=5 as `Reply`, 6 address of a [`RecvArgs`].
    /// Out: as `Recv`; a refused reply returns at once with
    /// [`TaskId::REPLY_REFUSED`](crate::TaskId::REPLY_REFUSED) and the code.
    ReplyRecv = 4,
    /// Reads from a lease of a caller that waits for our reply.
    ///
    /// In: 0 lender, 1 lease index, 2 offset, 3 destination address, 4 length. Out: 0 code.
    BorrowRead = 5,
    /// Writes to a lease. In: as `BorrowRead`, 3 is the source. Out: 0 code.
    BorrowWrite = 6,
    /// In: 0 lender, 1 lease index. Out: 0 code, 1 [`lease`] rights, 2 length.
    BorrowInfo = 7,
    /// Posts notification bits to a task. In: 0 task index (not id), 1 mask. Out: 0 code.
    /// The caller may post to itself, and what its `notifies` allow.
    Post = 8,
    /// Sets the caller's timer. In: 0 deadline in ticks since boot (low half where registers are
    /// 32 bits, 2 then the high half), 1 mask to post, 0 cancels. Out: 0 code.
    SetTimer = 9,
    /// Out: 0 ticks since boot, 1 ticks per second.
    Time = 10,
    /// Enables or masks the interrupts behind notification bits. In: 0 mask, 1 enable (1) or disable (0).
    /// Out: 0 code. Delivery masks an interrupt until the task enables it again.
    IrqControl = 11,
    /// Stops the caller. In: 0 message address, 1 length (at most 128 bytes are kept). Does not return.
    Panic = 12,
    /// In: 0 task index. Out: 0 code, 1 current [`TaskId`](crate::TaskId) of that task.
    RefreshId = 13,
    /// Gives held frames to the device. In: 0 list address, 1 count, 2 [`Direction`](crate::frame::Direction).
    /// Out: 0 code. Handles stay valid.  Only the owner of the pool may call.
    FrameArm = 14,
    /// Takes frames back from the device. In: 0 list address, 1 count. Out: 0 code.
    /// The caller states that the device has finished with them. Each `len` bounds what is invalidated.
    FrameComplete = 15,
    /// Lists frames of a pool that the caller holds. In: 0 pool (counted among those that the caller
    /// owns or may hold frames of, in the order of the image), 1 list address, 2 capacity, 3 first frame index to look at.
    /// Out: 0 code, 1 entries written, 2 frame index to go on with, or 0 at the end.
    FrameList = 16,
    /// Operations of [`kernel_op`]. In: 0 operation, 1 argument, 2 buffer address, 3 buffer length.
    /// Out: 0 code, 1 result or bytes written.
    Kernel = 17,
    /// Writes text to the kernel's polled console. In: 0 address, 1 length. Out: 0 code.
    Log = 18,
}

impl Call {
    /// The call for a number.
    #[must_use]
    pub fn from_number(number: usize) -> Option<Self> {
        Some(match number {
            1 => Self::Send,
            2 => Self::Recv,
            3 => Self::Reply,
            4 => Self::ReplyRecv,
            5 => Self::BorrowRead,
            6 => Self::BorrowWrite,
            7 => Self::BorrowInfo,
            8 => Self::Post,
            9 => Self::SetTimer,
            10 => Self::Time,
            11 => Self::IrqControl,
            12 => Self::Panic,
            13 => Self::RefreshId,
            14 => Self::FrameArm,
            15 => Self::FrameComplete,
            16 => Self::FrameList,
            17 => Self::Kernel,
            18 => Self::Log,
            _ => return None,
        })
    }
}

/// A lease as the caller describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, Immutable)]
#[repr(C)]
pub struct Lease {
    /// First address.
    pub address: usize,
    /// Bytes; may be 0.
    pub len: usize,
    /// Bits of [`lease`].
    pub rights: usize,
}

/// Rights of a lease.
pub mod lease {
    /// The server may read.
    pub const READ: usize = 1;
    /// The server may write.
    pub const WRITE: usize = 2;
}

/// What a message carries beyond its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, Immutable)]
#[repr(C)]
pub struct SendExtra {
    /// Address of an array of [`Lease`].
    pub leases: usize,
    /// Leases in it.
    pub lease_count: usize,
    /// Address of an array of [`FrameDesc`](crate::FrameDesc) with room for `frame_capacity`:
    /// holds the frames to send, and afterwards those of the reply.
    pub frames: usize,
    /// Frames to send.
    pub frame_count: usize,
    /// Room for frames of the reply, at least `frame_count`.
    pub frame_capacity: usize,
}

/// Where a receiver wants things.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, Immutable)]
#[repr(C)]
pub struct RecvArgs {
    /// Message buffer.
    pub buffer: usize,
    /// Its size in bytes.
    pub capacity: usize,
    /// Notifications to wait for.
    pub mask: usize,
    /// The notification sequence number last seen (from [`ReceivedMessage::sequence`]). When posts have
    /// happened since, the call does not block, so an event between a look at a queue and the wait is not lost.
    pub seen: usize,
    /// 0 for any sender, else 1 + the raw id of the only one.
    pub from: usize,
    /// Array of [`FrameDesc`](crate::FrameDesc) for frames that come with a message.
    pub frames: usize,
    /// Its entries.
    pub frame_capacity: usize,
}

/// The results of `recv`, in register order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceivedMessage {
    /// 0: sender, or [`TaskId::KERNEL`](crate::TaskId::KERNEL) for notifications.
    pub sender: usize,
    /// 1: operation, or the notification bits, taken.
    pub operation: usize,
    /// 2: message length. Never over the buffer: a longer message is refused at its sender.
    pub len: usize,
    /// 3: capacity of the sender's reply buffer.
    pub reply_capacity: usize,
    /// 4: leases that came with it.
    pub lease_count: usize,
    /// 5: frames that came with it.
    pub frame_count: usize,
    /// 6: notification sequence number at this moment.
    pub sequence: usize,
    /// 7: room for frames in the sender's list.
    pub reply_frame_capacity: usize,
}

/// Operations of [`Call::Kernel`].
pub mod kernel_op {
    /// Writes the [`TaskStatus`](crate::stats::TaskStatus) of task `arg` as postcard bytes. Needs `STATS`.
    pub const TASK_STATUS: u32 = 1;
    /// Writes the [`Counters`](crate::stats::Counters) of task `arg`, native byte order. Needs `STATS`.
    pub const COUNTERS: u32 = 2;
    /// Restarts task `arg` in a new generation. Needs `SUPERVISE`.
    pub const RESTART: u32 = 3;
    /// Faults task `arg`, as if it had failed itself. Needs `INJECT`.
    pub const FAULT: u32 = 4;
    /// Writes the panic message of task `arg`. Needs `STATS`.
    pub const PANIC_MESSAGE: u32 = 5;
    /// Powers off (`arg` 0) or resets (`arg` 1). Needs `POWER`. Does not return.
    pub const POWER: u32 = 6;
    /// Returns the next faulted task index at or after `arg`, or [`NO_TASK`]. Needs `SUPERVISE`.
    pub const NEXT_FAULTED: u32 = 7;
    /// Writes a `FrameCensus` of pool `arg` as postcard bytes. Needs `STATS`.
    pub const FRAME_CENSUS: u32 = 8;
    /// Stops task `arg`; it stays stopped until restarted. Not for the task of the lowest priority, which keeps the CPU
    /// when all others wait. Needs `SUPERVISE`.
    pub const STOP: u32 = 9;

    /// Result of `NEXT_FAULTED` when there is none.
    pub const NO_TASK: usize = 0xff;
}
