//! The portable kernel: tasks, messages, notifications, frame leases.
//!
//! Everything here is safe code over the [`Machine`] trait, so the logic that ships
//! also runs in host tests. The machine layers are in `arch`, which only the
//! `kernel` binary contains.
//!
//! One kernel entry runs to its end with interrupts masked: there is no lock and no
//! re-entrance, and a task that is not running cannot change under our hands.

#![no_std]
#![forbid(unsafe_code)]

mod control;
mod fault;
mod frames;
mod ipc;
mod machine;
mod notify;
mod schedule;
mod task;
mod user;

#[cfg(test)]
mod tests;

use core::cell::Cell;

use abi::call::Call;
use abi::image::{self, Interrupt, MAX_FRAMES, MAX_IRQS, MAX_POOLS};
use abi::stats::Counters;
use abi::{FaultInfo, FrameDesc, KernelError, MAX_FRAME_LIST, MAX_TASKS};
use heapless::Vec;
use ledger::Ledger;

pub use frames::FramePool;
pub use machine::{Context, Machine, Sample};
use task::Table;
pub use task::{Span, State, Task};

/// Why a system call did not complete normally.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trap {
    /// The caller gets this code.
    Error(KernelError),
    /// The caller named memory that is not its own (see [`Kernel::alleged`]): it is stopped.
    BadMemory,
    /// The caller asked to be stopped.
    Panic,
}

impl From<KernelError> for Trap {
    fn from(error: KernelError) -> Self {
        Self::Error(error)
    }
}

type CallResult = Result<(), Trap>;

/// All state of the system but the page tables.
#[derive(Debug)]
pub struct Kernel<M: Machine> {
    /// The hardware below.
    pub machine: M,
    tasks: Table<M::Context>,
    /// Task indices by rank: the highest priority first, then table order.
    order: [u8; MAX_TASKS],
    /// Ready tasks, bit by rank.
    ready: u32,
    current: usize,
    /// Counter values at the last switch.
    last: Sample,
    ledger: Ledger<MAX_FRAMES>,
    pools: Vec<FramePool, MAX_POOLS>,
    /// The frame list that is being looked at.
    list: [FrameDesc; MAX_FRAME_LIST],
    interrupts: Vec<Interrupt, MAX_IRQS>,
    supervisor: (usize, u32),
    /// Tasks with a timer, bit by index.
    timers: u32,
    /// Task whose values are in the vector registers; [`NOBODY`] at first.
    vectors_of: usize,
    /// Address and length of the last memory argument that was refused. Here and not in [`Trap`], so that results fit a register.
    alleged: Cell<(usize, usize)>,
}

/// No task's index.
const NOBODY: usize = usize::MAX;

impl<M: Machine> Kernel<M> {
    /// A kernel without tasks. Add tasks, pools and interrupts, then call [`start_all`](Self::start_all).
    ///
    /// Built in place and in parts: the whole would not fit a kernel stack.
    pub const fn new(machine: M) -> Self {
        Self {
            machine,
            tasks: Table::new(),
            order: [0; MAX_TASKS],
            ready: 0,
            current: 0,
            last: Sample { ticks: 0, instructions: 0 },
            ledger: Ledger::new(),
            pools: Vec::new(),
            list: [const { FrameDesc::EMPTY }; MAX_FRAME_LIST],
            interrupts: Vec::new(),
            supervisor: (0, 0),
            timers: 0,
            vectors_of: NOBODY,
            alleged: Cell::new((0, 0)),
        }
    }

    /// Adds the task with the next index.
    ///
    /// # Errors
    /// If there are [`MAX_TASKS`] already.
    pub fn add_task(&mut self, task: image::Task) -> Result<(), &'static str> {
        self.tasks.add(task)
    }

    /// Adds an interrupt.
    ///
    /// # Errors
    /// If there are [`MAX_IRQS`] already.
    pub fn add_interrupt(&mut self, interrupt: Interrupt) -> Result<(), &'static str> {
        self.interrupts.push(interrupt).map_err(|_| "too many interrupts")
    }

    /// Makes all tasks ready. `supervisor` is a task index and the notification that tells it of faults.
    ///
    /// # Errors
    /// What is wrong with the table; `cargo xtask dist` writes none of these.
    pub fn start_all(&mut self, supervisor: (u8, u32)) -> Result<(), &'static str> {
        self.supervisor = (supervisor.0.into(), supervisor.1);
        if self.supervisor.0 >= self.tasks.len() {
            return Err("no supervisor");
        }
        if self.interrupts.iter().any(|interrupt| usize::from(interrupt.task) >= self.tasks.len()) {
            return Err("an interrupt of an unknown task");
        }
        self.rank_tasks();
        for index in 0..self.tasks.len() {
            self.start(index);
        }
        for interrupt in &self.interrupts {
            self.machine.prepare_interrupt(interrupt.number);
        }
        self.last = self.machine.sample();
        self.enter(self.pick());
        Ok(())
    }

    /// The task that runs when the kernel returns.
    #[must_use]
    pub fn current(&self) -> usize {
        self.current
    }

    /// Registers of the current task.
    pub fn context_mut(&mut self) -> &mut M::Context {
        &mut self.tasks[self.current].context
    }

    /// A task by index.
    #[must_use]
    pub fn task(&self, index: usize) -> Option<&Task<M::Context>> {
        self.tasks.get(index)
    }

    /// Entry for a system call of the current task.
    #[inline(always)]
    pub fn system_call(&mut self) {
        let me = self.current;
        let task = &mut self.tasks[me];
        task.counters.calls += 1;
        let number = task.context.call_number();
        // The two calls of every exchange come first, without the detour over the table.
        let result = if number == Call::Send as usize {
            self.call_send(me)
        } else if number == Call::ReplyRecv as usize {
            self.call_reply_recv(me)
        } else {
            self.other_call(me, number)
        };
        if let Err(trap) = result {
            self.trap(me, trap);
        }
        self.reschedule();
    }

    #[inline(never)]
    fn other_call(&mut self, me: usize, number: usize) -> CallResult {
        match Call::from_number(number) {
            Some(Call::Send) => self.call_send(me),
            Some(Call::ReplyRecv) => self.call_reply_recv(me),
            Some(Call::Recv) => self.call_recv(me, 0),
            Some(Call::Reply) => self.call_reply(me),
            Some(Call::BorrowRead) => self.call_borrow(me, false),
            Some(Call::BorrowWrite) => self.call_borrow(me, true),
            Some(Call::BorrowInfo) => self.call_borrow_info(me),
            Some(Call::Post) => self.call_post(me),
            Some(Call::SetTimer) => self.call_set_timer(me),
            Some(Call::Time) => self.call_time(me),
            Some(Call::IrqControl) => self.call_irq_control(me),
            Some(Call::Panic) => self.call_panic(me),
            Some(Call::RefreshId) => self.call_refresh_id(me),
            Some(Call::FrameArm) => self.call_frame_arm(me),
            Some(Call::FrameComplete) => self.call_frame_complete(me),
            Some(Call::FrameList) => self.call_frame_list(me),
            Some(Call::Kernel) => self.call_kernel(me),
            Some(Call::Log) => self.call_log(me),
            None => {
                self.fault(me, FaultInfo::UnknownCall { number: number as u32 });
                Ok(())
            }
        }
    }

    /// Ends a system call that did not complete.
    #[cold]
    #[inline(never)]
    fn trap(&mut self, me: usize, trap: Trap) {
        match trap {
            Trap::Error(error) => self.tasks[me].context.set_result(0, error.code() as usize),
            Trap::BadMemory => {
                let (address, len) = self.alleged.get();
                self.fault(me, FaultInfo::BadMemoryArgument { address: address as u64, len: len as u64 });
            }
            Trap::Panic => self.fault(me, FaultInfo::Panic),
        }
    }

    /// Entry for an exception of the current task.
    #[cold]
    #[inline(never)]
    pub fn exception(&mut self, info: FaultInfo) {
        let me = self.current;
        let info = self.tasks[me].classify(info);
        self.fault(me, info);
        self.reschedule();
    }

    /// Counters of one task, the current slice not included.
    #[must_use]
    pub fn counters(&self, index: usize) -> Option<&Counters> {
        self.tasks.get(index).map(|task| &task.counters)
    }
}
