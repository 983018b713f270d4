//! Who runs.
//!
//! Strict priorities: the ready task of the highest priority runs, and among equals the one that
//! already does, until it blocks.

use abi::MAX_TASKS;

use crate::{Kernel, Machine, State};

impl<M: Machine> Kernel<M> {
    /// Orders tasks by priority, then by index.
    pub(crate) fn rank_tasks(&mut self) {
        let mut order: heapless::Vec<u8, MAX_TASKS> = (0..self.tasks.len() as u8).collect();
        order.sort_unstable_by_key(|&index| (self.tasks[usize::from(index)].priority, index));
        for (rank, &index) in order.iter().enumerate() {
            self.order[rank] = index;
            self.tasks[usize::from(index)].rank = rank as u8;
        }
    }

    /// Task with this rank.
    #[inline]
    pub(crate) fn by_rank(&self, rank: u32) -> usize {
        usize::from(self.order[rank as usize % MAX_TASKS])
    }

    /// Makes a task ready.
    #[inline]
    pub(crate) fn wake(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        task.state = State::Runnable;
        self.ready |= 1 << task.rank;
    }

    /// Makes a task wait.
    #[inline]
    pub(crate) fn block(&mut self, index: usize, state: State) {
        let task = &mut self.tasks[index];
        task.state = state;
        self.ready &= !(1 << task.rank);
    }

    /// The task that should run now.
    #[inline]
    pub(crate) fn pick(&self) -> usize {
        debug_assert!(self.ready != 0, "the idle task never blocks");
        let best = self.by_rank(self.ready.trailing_zeros());
        let current = &self.tasks[self.current];
        if current.state == State::Runnable && current.priority == self.tasks[best].priority {
            self.current
        } else {
            best
        }
    }

    /// Books the time since the last switch to the current task.
    #[inline(always)]
    pub(crate) fn account(&mut self) {
        let now = self.machine.sample();
        let counters = &mut self.tasks[self.current].counters;
        counters.ticks += now.ticks - self.last.ticks;
        counters.instructions += u64::from(now.instructions.wrapping_sub(self.last.instructions));
        self.last = now;
    }

    /// Switches to the task that should run, if it is another.
    #[inline(always)]
    pub(crate) fn reschedule(&mut self) {
        let next = self.pick();
        if next != self.current {
            self.account();
            self.tasks[next].counters.switches += 1;
            self.enter(next);
        }
    }

    /// Makes a task the current one.
    ///
    /// The vector registers stay those of the last task that may use them until another such task runs: tasks
    /// built without them cost nothing, and cannot look at them either.
    #[inline(always)]
    pub(crate) fn enter(&mut self, index: usize) {
        self.current = index;
        let vectors = self.tasks[index].vectors;
        if vectors && self.vectors_of != index {
            match self.tasks.pair(self.vectors_of, index) {
                Some([owner, task]) if self.vectors_of < MAX_TASKS => {
                    self.machine.move_vectors(Some(&mut owner.context), &task.context);
                }
                _ => self.machine.move_vectors(None, &self.tasks[index].context),
            }
            self.vectors_of = index;
        }
        self.machine.switch(index, vectors);
    }
}
