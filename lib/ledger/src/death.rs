//! What becomes of frames when a task dies.

use abi::MAX_TASKS;

use crate::Ledger;
use crate::entry::{DEVICE, QUARANTINE};

/// What the kernel has to do after a death.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A frame went from the dead task back to its owner: take it out of the dead task's page tables.
    Returned {
        /// Pool of the frame.
        pool: usize,
        /// Index of the frame.
        index: usize,
    },
    /// All frames of a pool that the dead task held have gone back: notify the owner.
    Notice {
        /// The pool.
        pool: usize,
        /// Its owner.
        owner: u8,
        /// Frames that went back, at least 1.
        frames: u16,
    },
    /// The dead task owned a pool: run the quiesce sequence, then call [`Ledger::quiesced`].
    ///
    /// Reported even if the device held no frame, since its registers may still name some.
    OwnerDied {
        /// The pool.
        pool: usize,
        /// Frames that the device held and that are in quarantine now.
        quarantined: u16,
    },
}

impl<const N: usize> Ledger<N> {
    /// Settles the frames of a task that died. No handle that it had stays valid.
    ///
    /// * Frames that it held of other owners go back to them.
    /// * Frames that it held of its own pools stay, for its next instance, in a new generation.
    /// * Frames of its own pools that other tasks hold stay theirs, and their handles valid.
    /// * Frames of its own pools that the device holds go into quarantine.
    pub fn task_died(&mut self, task: u8, mut event: impl FnMut(Event)) {
        if usize::from(task) >= MAX_TASKS {
            return;
        }
        for pool in 0..self.pools() {
            if self.pools[pool].owner == task {
                self.renew(pool, task);
                let quarantined = self.quarantine(pool);
                event(Event::OwnerDied { pool, quarantined });
            } else if self.held_count(task, pool) > 0 {
                self.give_back(pool, task, &mut event);
            }
        }
    }

    /// Starts a new generation of what the owner itself holds.
    fn renew(&mut self, pool: usize, owner: u8) {
        let frames = self.frames(pool);
        for entry in self.entries[frames].iter_mut().filter(|entry| entry.holder() == owner) {
            entry.renew(owner);
        }
    }

    fn quarantine(&mut self, pool: usize) -> u16 {
        let frames = self.frames(pool);
        let mut quarantined = 0;
        for entry in self.entries[frames].iter_mut().filter(|entry| entry.holder() == DEVICE) {
            entry.renew(QUARANTINE);
            quarantined += 1;
        }
        quarantined
    }

    fn give_back(&mut self, pool: usize, task: u8, event: &mut impl FnMut(Event)) {
        let owner = self.pools[pool].owner;
        let range = self.frames(pool);
        let mut frames = 0;
        for entry in self.entries[range].iter_mut().filter(|entry| entry.holder() == task) {
            let index = entry.renew(owner).index();
            frames += 1;
            event(Event::Returned { pool, index });
        }
        let held = &mut self.pools[pool].held;
        held[usize::from(task)] -= frames;
        held[usize::from(owner)] += frames;
        event(Event::Notice { pool, owner, frames });
    }

    /// Ends the quarantine of a pool: the device has been stopped, its frames go to the owner.
    /// Returns how many; 0 if there is no such pool.
    pub fn quiesced(&mut self, pool: usize) -> u16 {
        let Some(owner) = self.owner(pool) else {
            return 0;
        };
        let range = self.frames(pool);
        let mut frames = 0;
        for entry in self.entries[range].iter_mut().filter(|entry| entry.holder() == QUARANTINE) {
            entry.renew(owner);
            frames += 1;
        }
        self.pools[pool].held[usize::from(owner)] += frames;
        frames
    }
}
