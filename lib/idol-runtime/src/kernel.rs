//! What stubs ask of the system.

use abi::call::Lease;
use abi::{Code, FrameDesc, KernelError, TaskId};
use userlib::ipc;
use userlib::{FrameList, Received, RecvBuffers};

/// Memory that a client lends for the time of a call.
#[derive(Debug)]
pub enum Lent<'a> {
    /// The server may read it.
    Read(&'a [u8]),
    /// The server may write it.
    Write(&'a mut [u8]),
    /// The server may do both.
    Both(&'a mut [u8]),
}

impl Lent<'_> {
    fn lease(&mut self) -> Lease {
        match self {
            Self::Read(data) => ipc::lease_read(data),
            Self::Write(data) => ipc::lease_write(data),
            Self::Both(data) => ipc::lease_both(data),
        }
    }
}

/// The system calls that stubs use. [`System`] makes them; `fake::Task` imitates them on the host.
pub trait Kernel: Clone {
    /// As [`userlib::ipc::send`].
    fn send<const L: usize>(
        &self,
        target: TaskId,
        operation: u16,
        message: &[u8],
        reply: &mut [u8],
        leases: &mut [Lent<'_>; L],
        frames: Option<&mut FrameList>,
    ) -> (Code, usize);

    /// As [`userlib::ipc::recv`], from any sender.
    fn recv(&self, buffers: RecvBuffers<'_>, mask: u32, seen: u32) -> Received;

    /// As [`userlib::ipc::reply`].
    ///
    /// # Errors
    /// The kernel's.
    fn reply(
        &self,
        caller: TaskId,
        code: Code,
        message: &[u8],
        frames: Option<&mut FrameList>,
    ) -> Result<(), KernelError>;

    /// As [`userlib::ipc::reply_recv`].
    #[allow(clippy::too_many_arguments, reason = "the arguments of two system calls")]
    fn reply_recv(
        &self,
        caller: TaskId,
        code: Code,
        message: &[u8],
        frames: &[FrameDesc],
        buffers: RecvBuffers<'_>,
        mask: u32,
        seen: u32,
    ) -> Received;

    /// As [`userlib::ipc::borrow_read`].
    ///
    /// # Errors
    /// The kernel's.
    fn borrow_read(&self, lender: TaskId, index: usize, offset: usize, to: &mut [u8]) -> Result<(), KernelError>;

    /// As [`userlib::ipc::borrow_write`].
    ///
    /// # Errors
    /// The kernel's.
    fn borrow_write(&self, lender: TaskId, index: usize, offset: usize, from: &[u8]) -> Result<(), KernelError>;

    /// As [`userlib::ipc::borrow_info`].
    ///
    /// # Errors
    /// The kernel's.
    fn borrow_info(&self, lender: TaskId, index: usize) -> Result<(usize, usize), KernelError>;

    /// As [`userlib::ipc::current_id`].
    fn current_id(&self, index: u8) -> TaskId;
}

/// The real kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct System;

impl Kernel for System {
    #[inline]
    fn send<const L: usize>(
        &self,
        target: TaskId,
        operation: u16,
        message: &[u8],
        reply: &mut [u8],
        leases: &mut [Lent<'_>; L],
        frames: Option<&mut FrameList>,
    ) -> (Code, usize) {
        let leases = leases.each_mut().map(Lent::lease);
        ipc::send(target, operation, message, reply, &leases, frames)
    }

    #[inline]
    fn recv(&self, buffers: RecvBuffers<'_>, mask: u32, seen: u32) -> Received {
        ipc::recv(buffers, mask, seen, None)
    }

    #[inline]
    fn reply(
        &self,
        caller: TaskId,
        code: Code,
        message: &[u8],
        frames: Option<&mut FrameList>,
    ) -> Result<(), KernelError> {
        ipc::reply(caller, code, message, frames)
    }

    #[inline]
    fn reply_recv(
        &self,
        caller: TaskId,
        code: Code,
        message: &[u8],
        frames: &[FrameDesc],
        buffers: RecvBuffers<'_>,
        mask: u32,
        seen: u32,
    ) -> Received {
        ipc::reply_recv(caller, code, message, frames, buffers, mask, seen)
    }

    #[inline]
    fn borrow_read(&self, lender: TaskId, index: usize, offset: usize, to: &mut [u8]) -> Result<(), KernelError> {
        ipc::borrow_read(lender, index, offset, to)
    }

    #[inline]
    fn borrow_write(&self, lender: TaskId, index: usize, offset: usize, from: &[u8]) -> Result<(), KernelError> {
        ipc::borrow_write(lender, index, offset, from)
    }

    #[inline]
    fn borrow_info(&self, lender: TaskId, index: usize) -> Result<(usize, usize), KernelError> {
        ipc::borrow_info(lender, index)
    }

    #[inline]
    fn current_id(&self, index: u8) -> TaskId {
        ipc::current_id(index)
    }
}
