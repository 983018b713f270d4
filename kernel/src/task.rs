//! One task as the kernel sees it.

use abi::call::Lease;
use abi::fault::FaultRecord;
use abi::image::{self, Access, MAX_REGIONS, Privileges};
use abi::stats::{Counters, TaskState};
use abi::{FaultInfo, MAX_LEASES, MAX_TASKS, PAGE_SIZE, TaskId};
use heapless::{String, Vec};
use ledger::wait::Notifications;

/// Memory that a task may use, from `start` up to but without `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) access: Access,
}

/// What a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing: it is ready or runs.
    Runnable,
    /// A message that the target has not received yet.
    Sending(u8),
    /// The reply to a message.
    AwaitingReply(u8),
    /// A message or notification.
    Receiving,
    /// A restart after a fault.
    Faulted,
    /// A restart on request.
    Stopped,
}

/// A message that its sender has described but that is not yet received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub operation: usize,
    pub address: usize,
    pub len: usize,
    pub reply: usize,
    pub reply_capacity: usize,
    pub frames: usize,
    pub frame_count: usize,
    pub frame_capacity: usize,
}

impl Message {
    const EMPTY: Self = Self {
        operation: 0,
        address: 0,
        len: 0,
        reply: 0,
        reply_capacity: 0,
        frames: 0,
        frame_count: 0,
        frame_capacity: 0,
    };
}

/// Where a receiver wants its next message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Receive {
    pub buffer: usize,
    pub capacity: usize,
    pub mask: u32,
    /// The only sender that may be received, if any; the kernel's id admits notifications only.
    pub from: Option<TaskId>,
    pub frames: usize,
    pub frame_capacity: usize,
}

impl Receive {
    const EMPTY: Self = Self { buffer: 0, capacity: 0, mask: 0, from: None, frames: 0, frame_capacity: 0 };
}

/// Longest panic message that is kept.
pub(crate) const PANIC_MESSAGE_LEN: usize = 128;

/// A task: its registers, its rights, what it waits for, what it has used.
///
/// Aligned so that its place in the table is a shift of its index.
#[derive(Debug)]
#[repr(align(2048))]
pub struct Task<C> {
    /// Registers while it does not run.
    pub(crate) context: C,
    pub(crate) state: State,
    pub(crate) generation: u32,
    pub(crate) priority: u8,
    /// Bit in the ready set.
    pub(crate) rank: u8,
    /// True if it may use vector registers.
    pub(crate) vectors: bool,
    /// Tasks that it may send to.
    pub(crate) slots: u32,
    pub(crate) notifies: Vec<(u8, u32), 16>,
    pub(crate) privileges: Privileges,
    /// The first region, the stack, if it may be read and written: most arguments lie there. Start, end.
    stack: (usize, usize),
    pub(crate) spans: Vec<Span, MAX_REGIONS>,
    pub(crate) notifications: Notifications,
    pub(crate) message: Message,
    pub(crate) leases: Vec<Lease, MAX_LEASES>,
    pub(crate) receive: Receive,
    /// Tasks that wait to be received by this one, bit by rank.
    pub(crate) senders: u32,
    /// Deadline and mask, valid while the task's bit is set in the kernel's timers.
    pub(crate) timer: (u64, u32),
    pub(crate) counters: Counters,
    pub(crate) fault: Option<FaultRecord>,
    pub(crate) panic_message: Vec<u8, PANIC_MESSAGE_LEN>,
    pub(crate) name: String<24>,
    entry: usize,
    stack_top: usize,
    guard: usize,
}

/// All tasks. Indexing wraps at [`MAX_TASKS`] instead of checking: the kernel's own indices are below the count, and
/// what comes from user code is checked against [`len`](Table::len) first.
#[derive(Debug)]
pub(crate) struct Table<C> {
    tasks: [Task<C>; MAX_TASKS],
    count: usize,
}

impl<C: crate::Context> Table<C> {
    pub(crate) const fn new() -> Self {
        Self { tasks: [const { Task::EMPTY }; MAX_TASKS], count: 0 }
    }

    pub(crate) fn add(&mut self, image: image::Task) -> Result<(), &'static str> {
        let slot = self.tasks.get_mut(self.count).ok_or("too many tasks")?;
        slot.describe(image);
        self.count += 1;
        Ok(())
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&Task<C>> {
        if index < self.count { Some(&self[index]) } else { None }
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Task<C>> {
        self.tasks.iter().take(self.count)
    }

    /// Two different tasks at once.
    #[inline]
    pub(crate) fn pair(&mut self, one: usize, other: usize) -> Option<[&mut Task<C>; 2]> {
        self.tasks.get_disjoint_mut([one % MAX_TASKS, other % MAX_TASKS]).ok()
    }
}

impl<C> core::ops::Index<usize> for Table<C> {
    type Output = Task<C>;

    #[inline]
    fn index(&self, index: usize) -> &Task<C> {
        &self.tasks[index % MAX_TASKS]
    }
}

impl<C> core::ops::IndexMut<usize> for Table<C> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Task<C> {
        &mut self.tasks[index % MAX_TASKS]
    }
}

impl<C: crate::Context> Task<C> {
    const EMPTY: Self = Self {
        context: C::CLEAR,
        state: State::Stopped,
        generation: 0,
        priority: 0,
        rank: 0,
        vectors: false,
        slots: 0,
        notifies: Vec::new(),
        privileges: Privileges::empty(),
        stack: (0, 0),
        spans: Vec::new(),
        notifications: Notifications::new(),
        message: Message::EMPTY,
        leases: Vec::new(),
        receive: Receive::EMPTY,
        senders: 0,
        timer: (0, 0),
        counters: Counters::ZERO,
        fault: None,
        panic_message: Vec::new(),
        name: String::new(),
        entry: 0,
        stack_top: 0,
        guard: 0,
    };

    fn describe(&mut self, image: image::Task) {
        self.spans = image
            .regions
            .iter()
            .map(|region| Span {
                start: region.base as usize,
                end: (region.base + region.size) as usize,
                access: region.access,
            })
            .collect();
        let plain = |span: &&Span| span.access == Access::READ | Access::WRITE;
        self.stack = self.spans.first().filter(plain).map_or((0, 0), |span| (span.start, span.end));
        self.priority = image.priority;
        self.vectors = image.floating_point;
        self.slots = image.slots;
        self.notifies = image.notifies;
        self.privileges = image.privileges;
        self.name = image.name;
        self.entry = image.entry as usize;
        self.stack_top = image.stack_top as usize;
        self.guard = image.guard as usize;
    }

    /// Name in `app.toml`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Clean registers, no message, no notification: as at boot.
    pub(crate) fn reset(&mut self) {
        self.context.reset(self.entry, self.stack_top);
        self.notifications = Notifications::default();
        self.leases.clear();
        self.message = Message::EMPTY;
    }

    /// Id of the current instance.
    pub(crate) fn id(&self, index: usize) -> TaskId {
        TaskId::new(index, self.generation)
    }

    /// True if the task itself could make all these accesses in one of its regions of ordinary memory.
    #[inline]
    pub(crate) fn may_access(&self, address: usize, len: usize, need: Access) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        len == 0 || address >= self.stack.0 && end <= self.stack.1 || self.may_access_elsewhere(address, end, need)
    }

    fn may_access_elsewhere(&self, address: usize, end: usize, need: Access) -> bool {
        self.spans.iter().any(|span| {
            address >= span.start
                && end <= span.end
                && span.access.contains(need)
                && !span.access.intersects(Access::DEVICE)
        })
    }

    /// Tells a stack overflow from other faults by the guard page.
    pub(crate) fn classify(&self, info: FaultInfo) -> FaultInfo {
        match info {
            FaultInfo::MemoryAccess { address, .. }
                if (self.guard..self.guard + PAGE_SIZE).contains(&(address as usize)) =>
            {
                FaultInfo::StackOverflow { address }
            }
            other => other,
        }
    }

    pub(crate) fn status(&self) -> TaskState {
        match self.state {
            State::Runnable => TaskState::Runnable,
            State::Sending(to) => TaskState::Sending(to),
            State::AwaitingReply(from) => TaskState::AwaitingReply(from),
            State::Receiving => TaskState::Receiving,
            State::Faulted => TaskState::Faulted,
            State::Stopped => TaskState::Stopped,
        }
    }
}
