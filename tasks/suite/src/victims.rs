//! Control of the victims.

use abi::call::{Call, Lease, RecvArgs, SendExtra};
use abi::fault::FaultRecord;
use abi::stats::TaskState;
use abi::{Code, FrameDesc, FrameHandle, KernelError, TaskId};
use idol_runtime::TaskSlot;
use supervisor_api::Supervisor;
use userlib::memory::DmaWords;
use userlib::{FrameList, Received, RecvBuffers, ipc, kernel};
use victim::{FRAMES, SCRATCH, Step, Window, operation};

use crate::check::{Expect, Failure, Outcome, equal, holds};

/// Index of a task.
///
/// # Panics
/// If it is not in the image.
pub fn task(name: &str) -> u8 {
    (0..abi::MAX_TASKS as u8)
        .take_while(|&task| userlib::config::task_name(task).is_some())
        .find(|&task| userlib::config::task_name(task) == Some(name))
        .unwrap_or_else(|| panic!("no task {name}"))
}

/// Restarts a task through the supervisor, so that no restart after a failure comes later.
pub fn revive(task: u8) -> Outcome {
    Supervisor::from(TaskSlot::named("supervisor")).restart(task).expecting("restart by the supervisor")
}

/// State of a task.
pub fn state(task: u8) -> Outcome<TaskState> {
    kernel::task_status(task).map(|status| status.state).expecting("status")
}

/// Generation of a task.
pub fn generation(task: u8) -> Outcome<u32> {
    kernel::task_status(task).map(|status| status.generation).expecting("status")
}

/// The record of a task's last fault.
pub fn last_fault(task: u8) -> Outcome<FaultRecord> {
    let status = kernel::task_status(task).expecting("status")?;
    status.fault.ok_or(()).expecting("a fault record")
}

/// Where things lie in a victim's window.
#[derive(Debug)]
pub struct Memory {
    /// The window.
    pub window: Window,
}

impl Memory {
    fn take(name: &str) -> Self {
        let words = DmaWords::take(name).unwrap_or_else(|| panic!("no window with {name}"));
        Self { window: Window::new(words) }
    }

    /// Address of memory for tests.
    pub fn scratch(&self, offset: usize) -> u64 {
        self.window.address() + (SCRATCH + offset) as u64
    }

    /// Writes a word of memory for tests.
    pub fn put(&mut self, offset: usize, value: u64) {
        self.window.put(SCRATCH + offset, value);
    }

    /// Reads a word of memory for tests.
    pub fn get(&self, offset: usize) -> u64 {
        self.window.get(SCRATCH + offset)
    }

    /// Writes words of memory for tests and returns their address.
    pub fn put_words(&mut self, offset: usize, words: &[u64]) -> u64 {
        for (index, word) in words.iter().enumerate() {
            self.put(offset + 8 * index, *word);
        }
        self.scratch(offset)
    }

    /// Writes arguments of a receive and returns the step that makes it.
    pub fn receive(&mut self, offset: usize, args: &RecvArgs) -> Step {
        let words = [args.buffer, args.capacity, args.mask, args.seen, args.from, args.frames, args.frame_capacity];
        let address = self.put_words(offset, &words.map(|word| word as u64));
        Step::call(Call::Recv as u64, &[address])
    }

    /// A step that waits for notifications only, of an instance that has had none.
    pub fn wait(&mut self, offset: usize, mask: u32) -> Step {
        self.wait_since(offset, mask, 0)
    }

    /// A step that waits for notifications only, of an instance that has seen so many posts.
    pub fn wait_since(&mut self, offset: usize, mask: u32, seen: usize) -> Step {
        let from = TaskId::KERNEL.0 as usize + 1;
        self.receive(offset, &RecvArgs { mask: mask as usize, seen, from, ..RecvArgs::default() })
    }

    /// Writes what a message carries beyond its bytes and returns the address.
    pub fn extra(&mut self, offset: usize, extra: &SendExtra) -> u64 {
        let words = [extra.leases, extra.lease_count, extra.frames, extra.frame_count, extra.frame_capacity];
        self.put_words(offset, &words.map(|word| word as u64))
    }

    /// Writes leases and returns the address.
    pub fn leases(&mut self, offset: usize, leases: &[Lease]) -> u64 {
        for (index, lease) in leases.iter().enumerate() {
            self.put_words(offset + 24 * index, &[lease.address as u64, lease.len as u64, lease.rights as u64]);
        }
        self.scratch(offset)
    }

    /// Writes a list of frames and returns the address.
    pub fn frames(&mut self, offset: usize, frames: &[FrameDesc]) -> u64 {
        for (index, frame) in frames.iter().enumerate() {
            let rest = u64::from(frame.len) | u64::from(frame.offset) << 16 | u64::from(frame.meta) << 24;
            self.put(offset + 8 * index, u64::from(frame.handle.0) | rest << 32);
        }
        self.scratch(offset)
    }

    /// A frame that came with the last script.
    pub fn received_frame(&self, index: usize) -> FrameDesc {
        frame_of(self.window.get(FRAMES + 8 * index))
    }

    /// A frame of a list in the memory for tests.
    pub fn frame(&self, offset: usize) -> FrameDesc {
        frame_of(self.get(offset))
    }

    /// First register of the results of a step.
    pub fn code(&self, step: usize) -> u32 {
        self.window.result(step, 0) as u32
    }

    /// Checks that a step ended with an error of the kernel.
    #[track_caller]
    pub fn refused(&self, step: usize, error: KernelError, what: &str) -> Outcome {
        refused(self.code(step), error, what)
    }

    /// Checks that a step succeeded.
    #[track_caller]
    pub fn succeeded(&self, step: usize, what: &str) -> Outcome {
        succeeded(self.code(step), what)
    }
}

fn frame_of(word: u64) -> FrameDesc {
    let [.., len0, len1, offset, meta] = word.to_le_bytes();
    FrameDesc { handle: FrameHandle(word as u32), len: u16::from_le_bytes([len0, len1]), offset, meta }
}

/// Checks that a code is that of an error of the kernel.
#[track_caller]
pub fn refused(code: Code, error: KernelError, what: &str) -> Outcome {
    if code == error.code() {
        return Ok(());
    }
    match abi::code::check(code) {
        Ok(code) => Err(Failure::new(format_args!("{what}: code {code}, expected {error:?}"))),
        Err(other) => Err(Failure::new(format_args!("{what}: {other:?}, expected {error:?}"))),
    }
}

/// Checks that a code says success.
#[track_caller]
pub fn succeeded(code: Code, what: &str) -> Outcome {
    match abi::code::check(code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Failure::new(format_args!("{what}: code {code:#x}"))),
        Err(error) => Err(Failure::new(format_args!("{what}: {error:?}"))),
    }
}

/// The victim above the suite: a server.
#[derive(Debug)]
pub struct High {
    /// Its index.
    pub index: u8,
    /// Its window.
    pub memory: Memory,
}

impl High {
    /// Takes its window.
    pub fn take() -> Self {
        Self { index: task("victim-high"), memory: Memory::take("victim-high") }
    }

    /// The current instance.
    pub fn id(&self) -> TaskId {
        ipc::current_id(self.index)
    }

    /// Runs a script during a call; code and length of the reply.
    pub fn call(
        &mut self,
        steps: &[Step],
        reply: &mut [u8],
        leases: &[Lease],
        frames: Option<&mut FrameList>,
    ) -> (Code, usize) {
        self.memory.window.write_script(steps);
        ipc::send(self.id(), operation::RUN, &[steps.len() as u8], reply, leases, frames)
    }

    /// Runs a script during a call, which has to succeed.
    #[track_caller]
    pub fn run(&mut self, steps: &[Step]) -> Outcome {
        succeeded(self.call(steps, &mut [], &[], None).0, "a script of victim-high")
    }

    /// Starts a script behind the reply. As the victim has the higher priority, it has got as far as it can when this returns.
    #[track_caller]
    pub fn detach(&mut self, steps: &[Step]) -> Outcome {
        self.memory.window.write_script(steps);
        let message = [steps.len() as u8];
        succeeded(ipc::send(self.id(), operation::DETACH, &message, &mut [], &[], None).0, "start of victim-high")
    }

    /// Runs a script that ends with the victim's death; returns the record.
    #[track_caller]
    pub fn dies(&mut self, steps: &[Step]) -> Outcome<FaultRecord> {
        let before = generation(self.index)?;
        let (code, received) = self.call(steps, &mut [], &[], None);
        refused(code, KernelError::Dead, "a script that should end the victim")?;
        equal(received, 1, "the dead instance had the message")?;
        let record = last_fault(self.index)?;
        equal(record.generation, before, "generation in the record")?;
        revive(self.index)?;
        Ok(record)
    }
}

/// What a victim below the suite does next.
#[derive(Debug)]
pub enum Event {
    /// Its script is over.
    Finished,
    /// It sent this message; the bytes are in the buffer.
    Message(Received),
    /// It died.
    Died,
    /// Nothing, for the time allowed.
    Nothing,
}

/// A victim below the suite: a client.
#[derive(Debug)]
pub struct Low {
    /// Its index.
    pub index: u8,
    /// Its window.
    pub memory: Memory,
    /// The instance that waits for its next script.
    parked: Option<TaskId>,
}

impl Low {
    /// Takes its window.
    pub fn take(name: &str) -> Self {
        Self { index: task(name), memory: Memory::take(name), parked: None }
    }

    /// The current instance.
    pub fn id(&self) -> TaskId {
        ipc::current_id(self.index)
    }

    /// Forgets that it waits: it was restarted.
    pub const fn forget(&mut self) {
        self.parked = None;
    }

    /// Waits until it asks for a script.
    #[track_caller]
    pub fn park(&mut self) -> Outcome<TaskId> {
        if let Some(id) = self.parked.take() {
            return Ok(id);
        }
        match self.event(&mut [])? {
            Event::Finished => self.parked.take().ok_or(()).expecting("parked"),
            other => Err(Failure::new(format_args!("a victim that should ask for work: {other:?}"))),
        }
    }

    /// Gives it a script. It runs when the suite waits.
    #[track_caller]
    pub fn start(&mut self, steps: &[Step]) -> Outcome {
        let id = self.park()?;
        self.memory.window.write_script(steps);
        ipc::reply(id, steps.len() as Code, &[], None).expecting("start of a victim")
    }

    /// Waits for what it does, for ever.
    #[track_caller]
    pub fn event(&mut self, buffer: &mut [u8]) -> Outcome<Event> {
        let received = ipc::recv(RecvBuffers { message: buffer, frames: None }, 0, 0, Some(self.id()));
        self.understand(received)
    }

    /// Makes an event of what was received.
    #[track_caller]
    pub fn understand(&mut self, received: Received) -> Outcome<Event> {
        if received.sender == TaskId::KERNEL {
            return if received.operation == KernelError::SenderDead.code() {
                Ok(Event::Died)
            } else {
                Ok(Event::Nothing)
            };
        }
        holds(received.sender.index() == usize::from(self.index), "a message of somebody else", received.sender)?;
        if received.operation == u32::from(operation::NEXT) {
            self.parked = Some(received.sender);
            return Ok(Event::Finished);
        }
        Ok(Event::Message(received))
    }

    /// Runs a script to its end.
    #[track_caller]
    pub fn run(&mut self, steps: &[Step]) -> Outcome {
        self.start(steps)?;
        self.finish()
    }

    /// Waits for the end of its script.
    #[track_caller]
    pub fn finish(&mut self) -> Outcome {
        match self.event(&mut [])? {
            Event::Finished => Ok(()),
            other => Err(Failure::new(format_args!("a script that should end: {other:?}"))),
        }
    }

    /// Waits for a message that is not a request for work.
    #[track_caller]
    pub fn message(&mut self, buffer: &mut [u8]) -> Outcome<Received> {
        match self.event(buffer)? {
            Event::Message(received) => Ok(received),
            other => Err(Failure::new(format_args!("a victim that should send: {other:?}"))),
        }
    }

    /// Runs a script that ends with the victim's death; returns the record.
    #[track_caller]
    pub fn dies(&mut self, steps: &[Step]) -> Outcome<FaultRecord> {
        self.start(steps)?;
        match self.event(&mut [])? {
            Event::Died => {}
            other => return Err(Failure::new(format_args!("a script that should end the victim: {other:?}"))),
        }
        let record = last_fault(self.index)?;
        revive(self.index)?;
        self.forget();
        Ok(record)
    }
}
