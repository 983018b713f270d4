//! Receive, dispatch, reply.

use core::mem;

use abi::{Code, KernelError, TaskId};
use userlib::{FrameList, Received, RecvBuffers};

use crate::{Aligned, ErrorCode, Kernel, Refusal, RequestError, System};

/// What a handler sees of its caller beside the arguments.
#[derive(Clone, Copy, Debug)]
pub struct Request<K = System> {
    /// The system.
    pub kernel: K,
    /// Who waits for the reply.
    pub caller: TaskId,
    lease_count: usize,
    reply_capacity: usize,
    reply_frame_capacity: usize,
}

impl<K: Kernel> Request<K> {
    #[inline]
    fn new(kernel: K, received: &Received) -> Self {
        Self {
            kernel,
            caller: received.sender,
            lease_count: received.lease_count,
            reply_capacity: received.reply_capacity,
            reply_frame_capacity: received.reply_frame_capacity,
        }
    }

    /// For generated code: refuses what the operation does not allow, before its handler runs.
    ///
    /// # Errors
    /// The refusal that the caller gets.
    #[inline]
    pub fn expect(&self, leases: usize, reply: usize) -> Result<(), Refusal> {
        if self.lease_count != leases {
            return Err(Refusal::LeaseCount);
        }
        if self.reply_capacity < reply {
            return Err(Refusal::ReplyRoom);
        }
        Ok(())
    }

    /// For generated code: the same for frames; `sent` is how many came, `send` and `reply` how many may go each way.
    ///
    /// # Errors
    /// The refusal that the caller gets.
    #[inline]
    pub fn expect_frames(&self, sent: usize, send: usize, reply: usize) -> Result<(), Refusal> {
        if sent > send {
            return Err(Refusal::FrameCount);
        }
        if self.reply_frame_capacity < reply {
            return Err(Refusal::ReplyFrameRoom);
        }
        Ok(())
    }
}

/// What to do about a request that was dispatched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Answer with this code and so many bytes of the reply buffer.
    Reply {
        /// 0, or an error of the interface or of dispatch.
        code: Code,
        /// Bytes in the reply buffer.
        len: usize,
    },
    /// Do not answer now.
    Deferred,
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        Self::Reply { code: refusal.code(), len: 0 }
    }
}

impl<E: ErrorCode, D> From<RequestError<E, D>> for Outcome {
    #[inline]
    fn from(error: RequestError<E, D>) -> Self {
        match error {
            RequestError::Server(error) => Self::Reply { code: error.code(), len: 0 },
            RequestError::Refused(refusal) => refusal.into(),
            RequestError::Deferred(_) => Self::Deferred,
        }
    }
}

/// An interface as [`serve`] sees it; generated for each `.idol` file, for every server of it.
pub trait Interface<S, K: Kernel> {
    /// True if an operation sends frames. If none does, the kernel refuses messages with frames.
    const FRAMES: bool;

    /// Calls the handler of an operation.
    ///
    /// # Errors
    /// The refusal that the caller gets; then no handler has run.
    fn dispatch(
        server: &mut S,
        operation: u32,
        request: &Request<K>,
        message: &[u8],
        frames: &mut FrameList,
        reply: &mut [u8],
    ) -> Result<Outcome, Refusal>;

    /// Notification bits that the server waits for.
    fn notification_mask(server: &S) -> u32;

    /// Passes notification bits on.
    fn handle_notification(server: &mut S, kernel: &K, bits: u32);

    /// Passes a refused reply on.
    fn reply_refused(server: &mut S, caller: TaskId, error: KernelError, frames: &mut FrameList);
}

/// Memory of a server's loop: messages up to `M` bytes, replies up to `R`, frames.
#[derive(Debug)]
pub struct Buffers<const M: usize, const R: usize> {
    message: Aligned<M>,
    reply: Aligned<R>,
    // Two lists, as a reply's frames and those of the next message travel in one kernel entry.
    frames: [FrameList; 2],
}

impl<const M: usize, const R: usize> Buffers<M, R> {
    /// Empty buffers.
    #[must_use]
    pub const fn new() -> Self {
        Self { message: Aligned::new(), reply: Aligned::new(), frames: [FrameList::new(), FrameList::new()] }
    }
}

impl<const M: usize, const R: usize> Default for Buffers<M, R> {
    fn default() -> Self {
        Self::new()
    }
}

/// Serves an interface for ever.
///
/// A reply and the next receive are one kernel entry. The notification sequence number of each receive is what the next
/// one has seen, so that no post falls between a handler's look at its queues and the wait.
#[inline]
pub fn serve<I, S, K, const M: usize, const R: usize>(kernel: &K, server: &mut S, buffers: &mut Buffers<M, R>) -> !
where
    I: Interface<S, K>,
    K: Kernel,
{
    loop {
        serve_while::<I, S, K, M, R>(kernel, server, buffers, |_| true);
    }
}

/// [`serve`], as long as `go_on` says so before a receive. The last reply has been sent when it returns.
#[inline]
pub fn serve_while<I, S, K, const M: usize, const R: usize>(
    kernel: &K,
    server: &mut S,
    buffers: &mut Buffers<M, R>,
    go_on: impl Fn(&S) -> bool,
) where
    I: Interface<S, K>,
    K: Kernel,
{
    let Buffers { message, reply, frames: [current, next] } = buffers;
    let (mut current, mut next) = (current, next);
    let mut seen = 0;
    let mut answer: Option<(TaskId, Code, usize)> = None;
    while go_on(server) {
        let answered = answer.map(|(caller, ..)| caller);
        let mask = I::notification_mask(server);
        let into = RecvBuffers { message: &mut message.0, frames: I::FRAMES.then_some(&mut *next) };
        let received = match answer.take() {
            None => kernel.recv(into, mask, seen),
            Some((caller, code, len)) => {
                let bytes = reply.0.get(..len).unwrap_or(&[]);
                kernel.reply_recv(caller, code, bytes, current.as_slice(), into, mask, seen)
            }
        };
        if received.sender == TaskId::REPLY_REFUSED {
            // Nothing was received, so what was seen stays as it was.
            if let Some(caller) = answered {
                refused::<I, S, K>(kernel, server, caller, received.operation, current);
            }
            continue;
        }
        // The next receive replaces what the other list still names.
        mem::swap(&mut current, &mut next);
        seen = received.sequence;
        if received.sender == TaskId::KERNEL {
            I::handle_notification(server, kernel, received.operation);
            continue;
        }
        let bytes = message.0.get(..received.len).unwrap_or(&[]);
        let request = Request::new(kernel.clone(), &received);
        let outcome = I::dispatch(server, received.operation, &request, bytes, current, &mut reply.0);
        if let Outcome::Reply { code, len } = outcome.unwrap_or_else(Outcome::from) {
            answer = Some((received.sender, code, len));
        }
    }
    if let Some((caller, code, len)) = answer {
        let bytes = reply.0.get(..len).unwrap_or(&[]);
        let _ = kernel.reply(caller, code, bytes, Some(current));
    }
}

/// Tells server and caller that the kernel refused a reply. The caller still waits, so it gets one that cannot be refused.
#[cold]
fn refused<I, S, K>(kernel: &K, server: &mut S, caller: TaskId, code: Code, frames: &mut FrameList)
where
    I: Interface<S, K>,
    K: Kernel,
{
    let error = KernelError::from_code(code).unwrap_or(KernelError::BadArgument);
    // Answered already, by a `reply_...` function.
    if error == KernelError::NotWaiting {
        return;
    }
    I::reply_refused(server, caller, error, frames);
    let _ = kernel.reply(caller, Refusal::ReplyRefused.code(), &[], None);
}
