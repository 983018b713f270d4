//! Calls.

use core::cell::Cell;

use abi::{Code, KernelError, TaskId};
use userlib::FrameList;

use crate::{Kernel, Lent, System};

/// Most times that one call is sent. A server that dies that often on one request dies because of it.
pub const MAX_TRIES: u32 = 4;

/// What a dead server means for an operation: `restart` in the `.idol` file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    /// To do it twice is the same as once: the stub repeats it at the new instance, whether or not the old one had begun.
    Idempotent,
    /// The stub repeats it only if the dead instance had not received it. Otherwise the caller gets
    /// [`Error::Died`](crate::Error::Died).
    Retry,
    /// The stub never repeats it: the operation means something only to the instance that the caller
    /// knows (a socket, say), so the caller has to learn that it is gone.
    Fail,
}

/// Index of the server behind a task slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskSlot(pub u8);

impl TaskSlot {
    /// The task behind a slot of this task, by its name in `task.toml`.
    ///
    /// # Panics
    /// If the slot is unbound, which the build refuses.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self(userlib::config::slot(name))
    }

    /// The same for an optional slot.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        userlib::config::find_slot(name).map(Self)
    }
}

/// A server as a client knows it: where it is, and which instance was last seen.
#[derive(Debug)]
pub struct Peer<K: Kernel = System> {
    kernel: K,
    slot: TaskSlot,
    id: Cell<TaskId>,
}

impl<K: Kernel> Peer<K> {
    /// The current instance behind a slot.
    #[inline]
    pub fn new(kernel: K, slot: TaskSlot) -> Self {
        let id = Cell::new(kernel.current_id(slot.0));
        Self { kernel, slot, id }
    }

    /// The instance that the next call goes to.
    #[inline]
    pub fn id(&self) -> TaskId {
        self.id.get()
    }

    /// Sends a request and waits for the answer; repeats it at a new instance as `restart` allows.
    ///
    /// Returns code and reply length. After [`KernelError::Dead`] the length is 1 if the dead instance had
    /// received the request, else 0. If it had, `frames` is empty: they went with it.
    #[inline]
    pub fn call<const L: usize>(
        &self,
        restart: Restart,
        operation: u16,
        message: &[u8],
        reply: &mut [u8],
        mut leases: [Lent<'_>; L],
        mut frames: Option<&mut FrameList>,
    ) -> (Code, usize) {
        let target = self.id.get();
        let first = self.kernel.send(target, operation, message, reply, &mut leases, frames.as_deref_mut());
        if first.0 != KernelError::Dead.code() {
            return first;
        }
        self.after_death(restart, first, operation, message, reply, &mut leases, frames)
    }

    /// Goes on with a call whose first try ended with the death of the server. Apart, so that stubs stay short.
    #[cold]
    #[inline(never)]
    #[allow(clippy::too_many_arguments, reason = "those of the call, and how it went")]
    fn after_death<const L: usize>(
        &self,
        restart: Restart,
        first: (Code, usize),
        operation: u16,
        message: &[u8],
        reply: &mut [u8],
        leases: &mut [Lent<'_>; L],
        mut frames: Option<&mut FrameList>,
    ) -> (Code, usize) {
        let mut last = first;
        let mut tries = 1;
        while last.0 == KernelError::Dead.code() {
            let received = last.1 != 0;
            self.id.set(self.kernel.current_id(self.slot.0));
            if received && let Some(frames) = frames.as_deref_mut() {
                frames.clear();
            }
            let again = match restart {
                Restart::Idempotent => true,
                Restart::Retry => !received,
                Restart::Fail => false,
            };
            if !again || tries == MAX_TRIES {
                break;
            }
            tries += 1;
            last = self.kernel.send(self.id.get(), operation, message, reply, leases, frames.as_deref_mut());
        }
        last
    }
}
