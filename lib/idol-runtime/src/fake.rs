//! A kernel of threads, to run client stubs against servers on the host.
//!
//! Each task is a thread with a [`Task`] of its own. Messages, leases, frames, notifications and deaths behave as those of the
//! kernel, as far as stubs can see; capabilities and priorities do not exist. A call that waits for ten seconds panics.
//!
//! ```
//! # use idol_runtime::{fake::World, Kernel, RecvBuffers, TaskId};
//! let world = World::new(2);
//! let server = world.task(1);
//! let thread = std::thread::spawn(move || {
//!     let mut message = [0; 8];
//!     let from = server.recv(RecvBuffers { message: &mut message, frames: None }, 0, 0);
//!     server.reply(from.sender, 7, &message[..from.len], None)
//! });
//! let client = world.task(0);
//! let mut reply = [0; 8];
//! assert_eq!(client.send(TaskId::new(1, 0), 5, b"echo", &mut reply, &mut [], None), (7, 4));
//! assert_eq!(&reply[..4], b"echo");
//! # thread.join().unwrap().unwrap();
//! ```

use std::boxed::Box;
use std::collections::{HashMap, VecDeque};
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec::Vec;

use abi::call::lease;
use abi::{Code, FrameDesc, FrameHandle, KernelError, MAX_FRAME_LIST, MAX_LEASES, MAX_MESSAGE, TaskId};
use ledger::wait::Notifications;
use userlib::{FrameList, Received, RecvBuffers};

use crate::{Kernel, Lent};

/// Bits that the receive of a dead instance returns, so that its thread can end.
pub const STOP: u32 = u32::MAX;

const PATIENCE: Duration = Duration::from_secs(10);

/// Tasks that can talk to each other.
#[derive(Clone, Debug)]
pub struct World(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    tasks: Vec<Instance>,
    holders: HashMap<u32, usize>,
}

#[derive(Debug, Default)]
struct Instance {
    generation: u32,
    notifications: Notifications,
    inbox: VecDeque<Letter>,
    /// What the task has sent and not yet had answered.
    call: Option<Call>,
    receives: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Letter {
    from: TaskId,
    operation: u16,
    message: Vec<u8>,
    frames: Vec<FrameDesc>,
}

#[derive(Debug)]
struct Call {
    server: usize,
    received: bool,
    leases: Vec<(usize, Vec<u8>)>,
    reply_capacity: usize,
    frame_capacity: usize,
    answer: Option<(Code, usize, Vec<u8>, Vec<FrameDesc>)>,
}

impl World {
    /// So many tasks, each in its first generation.
    #[must_use]
    pub fn new(tasks: usize) -> Self {
        let tasks = (0..tasks).map(|_| Instance::default()).collect();
        let state = Mutex::new(State { tasks, holders: HashMap::new() });
        Self(Arc::new(Shared { state, changed: Condvar::new() }))
    }

    /// The current instance of a task.
    #[must_use]
    pub fn task(&self, index: usize) -> Task {
        let generation = self.lock().tasks[index].generation;
        Task { world: self.clone(), index, generation }
    }

    /// Posts notification bits to a task.
    pub fn post(&self, index: usize, mask: u32) {
        self.lock().tasks[index].notifications.post(mask);
        self.0.changed.notify_all();
    }

    /// Ends an instance. Its frames go to nobody, its receive returns [`STOP`], and a call that it waits for
    /// unwinds its thread without a word.
    pub fn kill(&self, index: usize) {
        let mut state = self.lock();
        let dead = &mut state.tasks[index];
        dead.generation += 1;
        dead.notifications = Notifications::new();
        dead.inbox.clear();
        dead.call = None;
        for task in &mut state.tasks {
            if let Some(call) = task.call.as_mut().filter(|call| call.server == index && call.answer.is_none()) {
                call.answer = Some((KernelError::Dead.code(), usize::from(call.received), Vec::new(), Vec::new()));
            }
        }
        state.holders.retain(|_, holder| *holder != index);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Lets a task hold a frame.
    pub fn give(&self, index: usize, frame: FrameHandle) {
        self.lock().holders.insert(frame.0, index);
    }

    /// Who holds a frame.
    #[must_use]
    pub fn holder(&self, frame: FrameHandle) -> Option<usize> {
        self.lock().holders.get(&frame.0).copied()
    }

    /// Mask and `seen` of each receive of a task so far, over all its instances.
    #[must_use]
    pub fn receives(&self, index: usize) -> Vec<(u32, u32)> {
        self.lock().tasks[index].receives.clone()
    }

    /// Waits until a task waits for the answer to a request that has (or has not) been received.
    pub fn wait_until_calling(&self, index: usize, received: bool) {
        let calls = |state: &State| state.tasks[index].call.as_ref().is_some_and(|call| call.received == received);
        let mut state = self.lock();
        while !calls(&state) {
            state = self.wait(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let (state, waited) = self.0.changed.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "nothing happened for ten seconds: {state:?}");
        state
    }
}

impl State {
    fn living(&self, id: TaskId) -> Option<usize> {
        let task = self.tasks.get(id.index())?;
        (task.generation == id.generation()).then_some(id.index())
    }

    fn check_frames(&self, holder: usize, list: &[FrameDesc]) -> Result<(), KernelError> {
        for (index, frame) in list.iter().enumerate() {
            if self.holders.get(&frame.handle.0) != Some(&holder) {
                return Err(KernelError::FrameNotHeld);
            }
            if list[..index].iter().any(|earlier| earlier.handle == frame.handle) {
                return Err(KernelError::FrameDuplicate);
            }
        }
        Ok(())
    }

    fn move_frames(&mut self, to: usize, list: &[FrameDesc]) {
        for frame in list {
            self.holders.insert(frame.handle.0, to);
        }
    }

    /// The unanswered call of a client to a server, once received.
    fn open_call(&mut self, client: TaskId, server: usize) -> Option<&mut Call> {
        let client = self.living(client)?;
        let call = self.tasks[client].call.as_mut()?;
        (call.server == server && call.received && call.answer.is_none()).then_some(call)
    }
}

/// One instance of a task, for its own thread.
#[derive(Clone, Debug)]
pub struct Task {
    world: World,
    index: usize,
    generation: u32,
}

impl Task {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        TaskId::new(self.index, self.generation)
    }

    /// A send with rights and addresses of leases already in hand.
    fn post_letter(&self, target: TaskId, letter: Letter, call: Call) -> Result<(), KernelError> {
        let mut state = self.world.lock();
        if target.index() >= state.tasks.len() {
            return Err(KernelError::NoCapability);
        }
        let server = state.living(target).ok_or(KernelError::Dead)?;
        if letter.message.len() > MAX_MESSAGE {
            return Err(KernelError::MessageTooLong);
        }
        if call.leases.len() > MAX_LEASES {
            return Err(KernelError::TooManyLeases);
        }
        state.check_frames(self.index, &letter.frames)?;
        state.tasks[server].inbox.push_back(letter);
        state.tasks[self.index].call = Some(Call { server, ..call });
        self.world.0.changed.notify_all();
        Ok(())
    }

    /// Takes the next message that fits; those that do not are answered.
    fn take_letter(&self, state: &mut State, buffers: &mut RecvBuffers<'_>) -> Option<Received> {
        while let Some(letter) = state.tasks[self.index].inbox.pop_front() {
            let client = letter.from.index();
            let room = if buffers.frames.is_some() { MAX_FRAME_LIST } else { 0 };
            let checked = if letter.message.len() > buffers.message.len() {
                Err(KernelError::MessageTooLong)
            } else if letter.frames.len() > room {
                Err(KernelError::FrameListTooLong)
            } else {
                state.check_frames(client, &letter.frames)
            };
            let sequence = state.tasks[self.index].notifications.sequence();
            let Some(call) = state.tasks[client].call.as_mut() else { continue };
            if let Err(error) = checked {
                call.answer = Some((error.code(), 0, Vec::new(), Vec::new()));
                self.world.0.changed.notify_all();
                continue;
            }
            call.received = true;
            self.world.0.changed.notify_all();
            let received = Received {
                sender: letter.from,
                operation: u32::from(letter.operation),
                len: letter.message.len(),
                reply_capacity: call.reply_capacity,
                lease_count: call.leases.len(),
                reply_frame_capacity: call.frame_capacity,
                sequence,
            };
            state.move_frames(self.index, &letter.frames);
            buffers.message[..letter.message.len()].copy_from_slice(&letter.message);
            fill(buffers.frames.as_deref_mut(), &letter.frames);
            return Some(received);
        }
        None
    }

    fn answer(&self, caller: TaskId, code: Code, message: &[u8], frames: &[FrameDesc]) -> Result<(), KernelError> {
        let mut state = self.world.lock();
        if state.living(self.id()).is_none() || state.living(caller).is_none() {
            return Ok(());
        }
        if code >= abi::code::FIRST_KERNEL_CODE {
            return Err(KernelError::BadArgument);
        }
        let call = state.open_call(caller, self.index).ok_or(KernelError::NotWaiting)?;
        if message.len() > call.reply_capacity {
            return Err(KernelError::ReplyTooLong);
        }
        if frames.len() > call.frame_capacity {
            return Err(KernelError::FrameListTooLong);
        }
        state.check_frames(self.index, frames)?;
        state.move_frames(caller.index(), frames);
        if let Some(call) = state.open_call(caller, self.index) {
            call.answer = Some((code, message.len(), message.to_vec(), frames.to_vec()));
        }
        self.world.0.changed.notify_all();
        Ok(())
    }

    fn borrow<T>(
        &self,
        lender: TaskId,
        index: usize,
        right: usize,
        access: impl FnOnce(&mut Vec<u8>) -> Option<T>,
    ) -> Result<T, KernelError> {
        let mut state = self.world.lock();
        let call = state.open_call(lender, self.index).ok_or(KernelError::BadLease)?;
        let (rights, data) = call.leases.get_mut(index).ok_or(KernelError::BadLease)?;
        if *rights & right != right {
            return Err(KernelError::LeaseDirection);
        }
        access(data).ok_or(KernelError::LeaseBounds)
    }
}

fn fill(list: Option<&mut FrameList>, frames: &[FrameDesc]) {
    if let Some(list) = list {
        list.clear();
        for frame in frames {
            let _ = list.push(*frame);
        }
    }
}

fn notified(bits: u32, sequence: u32) -> Received {
    Received {
        sender: TaskId::KERNEL,
        operation: bits,
        len: 0,
        reply_capacity: 0,
        lease_count: 0,
        reply_frame_capacity: 0,
        sequence,
    }
}

impl Kernel for Task {
    fn send<const L: usize>(
        &self,
        target: TaskId,
        operation: u16,
        message: &[u8],
        reply: &mut [u8],
        leases: &mut [Lent<'_>; L],
        frames: Option<&mut FrameList>,
    ) -> (Code, usize) {
        let lent = leases.iter().map(|lent| match lent {
            Lent::Read(data) => (lease::READ, data.to_vec()),
            Lent::Write(data) => (lease::WRITE, data.to_vec()),
            Lent::Both(data) => (lease::READ | lease::WRITE, data.to_vec()),
        });
        let sent = frames.as_ref().map_or_else(Vec::new, |list| list.as_slice().to_vec());
        let letter = Letter { from: self.id(), operation, message: message.to_vec(), frames: sent };
        let call = Call {
            server: 0,
            received: false,
            leases: lent.collect(),
            reply_capacity: reply.len(),
            frame_capacity: if frames.is_some() { MAX_FRAME_LIST } else { 0 },
            answer: None,
        };
        if let Err(error) = self.post_letter(target, letter, call) {
            return (error.code(), 0);
        }
        let mut state = self.world.lock();
        let call = loop {
            if state.living(self.id()).is_none() {
                drop(state);
                resume_unwind(Box::new("this instance was killed"));
            }
            match state.tasks[self.index].call.take_if(|call| call.answer.is_some()) {
                Some(call) => break call,
                None => state = self.world.wait(state),
            }
        };
        drop(state);
        for (lent, (_, data)) in leases.iter_mut().zip(&call.leases) {
            if let Lent::Write(to) | Lent::Both(to) = lent {
                to.copy_from_slice(data);
            }
        }
        let (code, len, bytes, returned) = call.answer.unwrap_or_default();
        reply[..bytes.len()].copy_from_slice(&bytes);
        if abi::code::check(code).is_ok() {
            fill(frames, &returned);
        }
        (code, len)
    }

    fn recv(&self, mut buffers: RecvBuffers<'_>, mask: u32, seen: u32) -> Received {
        let mut state = self.world.lock();
        state.tasks[self.index].receives.push((mask, seen));
        loop {
            if state.living(self.id()).is_none() {
                return notified(STOP, 0);
            }
            fill(buffers.frames.as_deref_mut(), &[]);
            if let Some(woken) = state.tasks[self.index].notifications.poll(mask, seen) {
                return notified(woken.bits, woken.sequence);
            }
            if let Some(received) = self.take_letter(&mut state, &mut buffers) {
                return received;
            }
            state = self.world.wait(state);
        }
    }

    fn reply(
        &self,
        caller: TaskId,
        code: Code,
        message: &[u8],
        frames: Option<&mut FrameList>,
    ) -> Result<(), KernelError> {
        let list = frames.as_ref().map_or_else(Vec::new, |list| list.as_slice().to_vec());
        self.answer(caller, code, message, &list)?;
        fill(frames, &[]);
        Ok(())
    }

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
        match self.answer(caller, code, message, frames) {
            Ok(()) => self.recv(buffers, mask, seen),
            // As the kernel: nothing but sender and code.
            Err(error) => Received { sender: TaskId::REPLY_REFUSED, ..notified(error.code(), 0) },
        }
    }

    fn borrow_read(&self, lender: TaskId, index: usize, offset: usize, to: &mut [u8]) -> Result<(), KernelError> {
        self.borrow(lender, index, lease::READ, |data| {
            to.copy_from_slice(data.get(offset..offset.checked_add(to.len())?)?);
            Some(())
        })
    }

    fn borrow_write(&self, lender: TaskId, index: usize, offset: usize, from: &[u8]) -> Result<(), KernelError> {
        self.borrow(lender, index, lease::WRITE, |data| {
            data.get_mut(offset..offset.checked_add(from.len())?)?.copy_from_slice(from);
            Some(())
        })
    }

    fn borrow_info(&self, lender: TaskId, index: usize) -> Result<(usize, usize), KernelError> {
        let mut state = self.world.lock();
        let call = state.open_call(lender, self.index).ok_or(KernelError::BadLease)?;
        let (rights, data) = call.leases.get(index).ok_or(KernelError::BadLease)?;
        Ok((*rights, data.len()))
    }

    fn current_id(&self, index: u8) -> TaskId {
        TaskId::new(usize::from(index), self.world.lock().tasks[usize::from(index)].generation)
    }
}
