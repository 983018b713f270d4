//! Messages, replies, borrows, notifications.

use abi::call::{Call, Lease, RecvArgs, SendExtra, lease};
use abi::code::check;
use abi::{Code, FrameDesc, KernelError, MAX_FRAME_LIST, TaskId};

use crate::arch::syscall;

/// A list of frames on its way: room for [`MAX_FRAME_LIST`] entries.
#[derive(Clone, Debug)]
pub struct FrameList {
    entries: [FrameDesc; MAX_FRAME_LIST],
    len: usize,
}

impl Default for FrameList {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameList {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: [FrameDesc { handle: abi::FrameHandle(0), len: 0, offset: 0, meta: 0 }; MAX_FRAME_LIST],
            len: 0,
        }
    }

    /// Adds an entry; gives it back if the list is full.
    ///
    /// # Errors
    /// The entry itself, when [`MAX_FRAME_LIST`] are in the list.
    #[inline]
    pub fn push(&mut self, frame: FrameDesc) -> Result<(), FrameDesc> {
        let Some(slot) = self.entries.get_mut(self.len) else {
            return Err(frame);
        };
        *slot = frame;
        self.len += 1;
        Ok(())
    }

    /// Adds entries as long as there is room. What does not fit is not taken from `frames`.
    #[inline]
    pub fn extend(&mut self, frames: impl IntoIterator<Item = FrameDesc>) {
        let Some(room) = self.entries.get_mut(self.len..) else {
            return;
        };
        // The slots come first in the pair: no frame is taken that has none.
        let mut added = 0;
        for (slot, frame) in room.iter_mut().zip(frames) {
            *slot = frame;
            added += 1;
        }
        self.len += added;
    }

    /// Takes the last entry out.
    #[inline]
    pub fn pop(&mut self) -> Option<FrameDesc> {
        self.len = self.len.checked_sub(1)?;
        self.entries.get(self.len).copied()
    }

    /// The entries.
    #[must_use]
    pub fn as_slice(&self) -> &[FrameDesc] {
        &self.entries[..self.len]
    }

    /// The entries, to be changed in place.
    pub fn as_mut_slice(&mut self) -> &mut [FrameDesc] {
        &mut self.entries[..self.len]
    }

    /// Entries in the list.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True if nothing more fits.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len == MAX_FRAME_LIST
    }

    /// Forgets the entries (not the frames).
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// For the kernel to write into: all entries, and the length it reports afterwards.
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(MAX_FRAME_LIST);
    }
}

/// A lease of bytes that the server may read.
#[must_use]
pub fn lease_read(data: &[u8]) -> Lease {
    Lease { address: data.as_ptr() as usize, len: data.len(), rights: lease::READ }
}

/// A lease of bytes that the server may write.
#[must_use]
pub fn lease_write(data: &mut [u8]) -> Lease {
    Lease { address: data.as_mut_ptr() as usize, len: data.len(), rights: lease::WRITE }
}

/// A lease of bytes that the server may read and write.
#[must_use]
pub fn lease_both(data: &mut [u8]) -> Lease {
    Lease { address: data.as_mut_ptr() as usize, len: data.len(), rights: lease::READ | lease::WRITE }
}

/// Sends a message and waits for the reply.
///
/// Returns the code and the length of the reply. `frames`, if given, holds the frames to send and is replaced by those of
/// the reply; after a kernel error it is as it was. The code may be a server's or a [`KernelError`]; see [`abi::code::check`].
/// With [`KernelError::Dead`] the length is 1 if the dead instance had received the message (its frames are gone), else 0.
#[inline]
pub fn send(
    target: TaskId,
    operation: u16,
    message: &[u8],
    reply: &mut [u8],
    leases: &[Lease],
    frames: Option<&mut FrameList>,
) -> (Code, usize) {
    let mut args = [
        target.0 as usize,
        operation as usize,
        message.as_ptr() as usize,
        message.len(),
        reply.as_mut_ptr() as usize,
        reply.len(),
        0,
        0,
    ];
    let mut extra = SendExtra { leases: leases.as_ptr() as usize, lease_count: leases.len(), ..SendExtra::default() };
    let result = match frames {
        None if leases.is_empty() => syscall(Call::Send, args),
        None => {
            args[6] = &raw const extra as usize;
            syscall(Call::Send, args)
        }
        Some(list) => {
            extra.frames = list.entries.as_mut_ptr() as usize;
            extra.frame_count = list.len;
            extra.frame_capacity = MAX_FRAME_LIST;
            args[6] = &raw const extra as usize;
            let result = syscall(Call::Send, args);
            if check(result[0] as Code).is_ok() {
                list.set_len(result[2]);
            }
            result
        }
    };
    (result[0] as Code, result[1])
}

/// Buffers of a receiver.
#[derive(Debug)]
pub struct RecvBuffers<'a> {
    /// For the message.
    pub message: &'a mut [u8],
    /// For frames that come with it; `None` refuses messages with frames.
    pub frames: Option<&'a mut FrameList>,
}

/// What `recv` brought.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Who sent it: a task, [`TaskId::KERNEL`] for notifications, or [`TaskId::REPLY_REFUSED`].
    pub sender: TaskId,
    /// Operation, notification bits, or the code of the refused reply.
    pub operation: u32,
    /// Bytes in the message buffer.
    pub len: usize,
    /// Bytes that the caller takes as reply.
    pub reply_capacity: usize,
    /// Leases that came with the message.
    pub lease_count: usize,
    /// Frames that the caller takes with the reply.
    pub reply_frame_capacity: usize,
    /// Pass this as `seen` in the next receive.
    pub sequence: u32,
}

fn recv_args(buffers: &mut RecvBuffers<'_>, mask: u32, seen: u32, from: Option<TaskId>) -> RecvArgs {
    let (frames, frame_capacity) = match &mut buffers.frames {
        Some(list) => (list.entries.as_mut_ptr() as usize, MAX_FRAME_LIST),
        None => (0, 0),
    };
    RecvArgs {
        buffer: buffers.message.as_mut_ptr() as usize,
        capacity: buffers.message.len(),
        mask: mask as usize,
        seen: seen as usize,
        from: from.map_or(0, |id| id.0 as usize + 1),
        frames,
        frame_capacity,
    }
}

fn received(result: [usize; 8], buffers: RecvBuffers<'_>) -> Received {
    if let Some(list) = buffers.frames {
        list.set_len(result[5]);
    }
    Received {
        sender: TaskId(result[0] as u32),
        operation: result[1] as u32,
        len: result[2].min(buffers.message.len()),
        reply_capacity: result[3],
        lease_count: result[4],
        sequence: result[6] as u32,
        reply_frame_capacity: result[7],
    }
}

/// Waits for a message, or for notifications in `mask`.
///
/// `seen` is the sequence number of the last receive (0 at first): if notifications have been posted since, the call returns at
/// once, possibly with no bit that is still set. `from` limits it to one sender; if that is dead, the result is from
/// [`TaskId::KERNEL`] with the operation [`KernelError::SenderDead`].
#[inline]
pub fn recv(mut buffers: RecvBuffers<'_>, mask: u32, seen: u32, from: Option<TaskId>) -> Received {
    let args = recv_args(&mut buffers, mask, seen, from);
    received(syscall(Call::Recv, [&raw const args as usize, 0, 0, 0, 0, 0, 0, 0]), buffers)
}

/// Waits for notifications only and returns them with the new sequence number.
#[inline]
pub fn wait(mask: u32, seen: u32) -> (u32, u32) {
    // Only the kernel sends from the kernel's id, so no message can arrive.
    let result = recv(RecvBuffers { message: &mut [], frames: None }, mask, seen, Some(TaskId::KERNEL));
    (result.operation, result.sequence)
}

/// Answers a caller. `frames` go with the reply and are forgotten from the list if it is accepted.
///
/// # Errors
/// The kernel's reason when nothing moved and the caller still waits. A caller that died is no error.
#[inline]
pub fn reply(caller: TaskId, code: Code, message: &[u8], frames: Option<&mut FrameList>) -> Result<(), KernelError> {
    let (address, count) = frames.as_ref().map_or((0, 0), |list| (list.entries.as_ptr() as usize, list.len));
    let args = [caller.0 as usize, code as usize, message.as_ptr() as usize, message.len(), address, count, 0, 0];
    check(syscall(Call::Reply, args)[0] as Code)?;
    if let Some(list) = frames {
        list.clear();
    }
    Ok(())
}

/// [`reply`] and [`recv`] in one kernel entry.
///
/// When the reply is refused, the result's sender is [`TaskId::REPLY_REFUSED`], nothing was received, and the caller still waits.
/// The reply's frames travel in `frames`, separate from the receive buffers' list.
#[inline]
pub fn reply_recv(
    caller: TaskId,
    code: Code,
    message: &[u8],
    frames: &[FrameDesc],
    mut buffers: RecvBuffers<'_>,
    mask: u32,
    seen: u32,
) -> Received {
    let receive = recv_args(&mut buffers, mask, seen, None);
    let args = [
        caller.0 as usize,
        code as usize,
        message.as_ptr() as usize,
        message.len(),
        frames.as_ptr() as usize,
        frames.len(),
        &raw const receive as usize,
        0,
    ];
    received(syscall(Call::ReplyRecv, args), buffers)
}

/// Reads `to.len()` bytes at `offset` of lease `index` of a caller that waits for our reply.
///
/// # Errors
/// [`KernelError::BadLease`], [`KernelError::LeaseDirection`], [`KernelError::LeaseBounds`].
#[inline]
pub fn borrow_read(lender: TaskId, index: usize, offset: usize, to: &mut [u8]) -> Result<(), KernelError> {
    let args = [lender.0 as usize, index, offset, to.as_mut_ptr() as usize, to.len(), 0, 0, 0];
    check(syscall(Call::BorrowRead, args)[0] as Code).map(drop)
}

/// Writes `from` at `offset` of lease `index` of a caller that waits for our reply.
///
/// # Errors
/// As [`borrow_read`].
#[inline]
pub fn borrow_write(lender: TaskId, index: usize, offset: usize, from: &[u8]) -> Result<(), KernelError> {
    let args = [lender.0 as usize, index, offset, from.as_ptr() as usize, from.len(), 0, 0, 0];
    check(syscall(Call::BorrowWrite, args)[0] as Code).map(drop)
}

/// Rights (bits of [`abi::call::lease`]) and length of a lease.
///
/// # Errors
/// [`KernelError::BadLease`].
#[inline]
pub fn borrow_info(lender: TaskId, index: usize) -> Result<(usize, usize), KernelError> {
    let result = syscall(Call::BorrowInfo, [lender.0 as usize, index, 0, 0, 0, 0, 0, 0]);
    check(result[0] as Code)?;
    Ok((result[1], result[2]))
}

/// Posts notification bits to a task, as far as `notifies` in `app.toml` allows; to itself always.
///
/// # Errors
/// [`KernelError::NoCapability`], [`KernelError::BadArgument`].
#[inline]
pub fn post(task: u8, mask: u32) -> Result<(), KernelError> {
    check(syscall(Call::Post, [task as usize, mask as usize, 0, 0, 0, 0, 0, 0])[0] as Code).map(drop)
}

/// Unmasks the interrupts behind notification bits; delivery masked them.
///
/// # Errors
/// [`KernelError::BadArgument`] if no interrupt of this task has such a bit.
#[inline]
pub fn enable_interrupts(mask: u32) -> Result<(), KernelError> {
    check(syscall(Call::IrqControl, [mask as usize, 1, 0, 0, 0, 0, 0, 0])[0] as Code).map(drop)
}

/// Masks the interrupts behind notification bits.
///
/// # Errors
/// As [`enable_interrupts`].
#[inline]
pub fn disable_interrupts(mask: u32) -> Result<(), KernelError> {
    check(syscall(Call::IrqControl, [mask as usize, 0, 0, 0, 0, 0, 0, 0])[0] as Code).map(drop)
}

/// The id of the current instance of a task.
///
/// # Panics
/// If there is no task with this index: slots and notifications come from the build, which checked them.
#[inline]
#[must_use]
pub fn current_id(index: u8) -> TaskId {
    let result = syscall(Call::RefreshId, [index as usize, 0, 0, 0, 0, 0, 0, 0]);
    assert!(result[0] == 0, "no task {index}");
    TaskId(result[1] as u32)
}
