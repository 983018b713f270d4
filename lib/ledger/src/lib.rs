//! Who holds which frame, and whom a notification wakes.
//!
//! The kernel asks [`Ledger`] before any frame changes hands, and [`wait::Notifications`] whenever a
//! task waits or is woken. Both are plain values of safe code without hardware in them, so the tests
//! explore the very code that ships.
//!
//! # What the ledger promises
//!
//! * A frame has one holder: a task, the device of its pool's owner, or quarantine.
//! * Every frame of a pool is somewhere: [`Ledger::census`] always sums to the pool's size.
//! * A list is accepted whole or refused whole. A refused list has changed nothing.
//! * Nobody moves a frame that he does not hold, whatever handle he presents.
//! * A handle ends with the hand-over of its frame, and with the death of its holder. Generations
//!   count modulo 2^20, so a task that keeps a handle for 2^20 hand-overs of that frame, and then
//!   holds the frame again, would be believed. It can harm only itself: the holder is checked too.
//!
//! # What it leaves to the kernel
//!
//! Mapping and cache maintenance, per frame, in the closures that it is given; and the quiesce
//! sequence of a MAC whose driver died, between [`Ledger::task_died`] and [`Ledger::quiesced`].

#![no_std]
#![forbid(unsafe_code)]

mod death;
mod entry;
mod transfer;
pub mod wait;

use abi::image::MAX_POOLS;
use abi::stats::FrameCensus;
use abi::{FrameDesc, FrameHandle, KernelError, MAX_TASKS};

pub use death::Event;
use entry::{DEVICE, Entry, QUARANTINE};
pub use transfer::Moved;

/// Where a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// A task, by index.
    Task(u8),
    /// The device of the pool's owner.
    Device,
    /// Nobody: the owner died while its device held the frame.
    Quarantine,
}

/// Frames of one owner, and who else may hold how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pool {
    first: u16,
    count: u16,
    owner: u8,
    /// Most frames that a task may hold; 0 for tasks that may hold none.
    quota: [u16; MAX_TASKS],
    /// Frames that a task holds.
    held: [u16; MAX_TASKS],
}

impl Pool {
    const EMPTY: Self = Self { first: 0, count: 0, owner: 0, quota: [0; MAX_TASKS], held: [0; MAX_TASKS] };

    const fn frames(&self) -> core::ops::Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

/// The frame ledger: all pools of an image, with at most `N` frames together.
///
/// `N` is a power of two up to 4096, so that the index of a handle needs no bounds check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger<const N: usize> {
    entries: [Entry; N],
    pools: [Pool; MAX_POOLS],
    pool_count: u8,
    frame_count: u16,
}

impl<const N: usize> Default for Ledger<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Ledger<N> {
    /// A ledger without pools.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two() && N <= 1 << FrameHandle::INDEX_BITS) };
        Self { entries: [Entry::EMPTY; N], pools: [Pool::EMPTY; MAX_POOLS], pool_count: 0, frame_count: 0 }
    }

    /// Adds a pool of `count` frames, all held by `owner`, and returns its number.
    ///
    /// Its frame indices follow those of the pool before. `holders` are the tasks beside the owner
    /// that may hold frames, with their quotas; the owner may hold all.
    ///
    /// # Errors
    /// [`KernelError::BadArgument`] if there are too many pools or frames, if a task index is not
    /// below [`MAX_TASKS`], or if a holder is named twice or is the owner. The image is wrong then.
    pub fn add_pool(&mut self, owner: u8, count: u16, holders: &[(u8, u16)]) -> Result<usize, KernelError> {
        let first = usize::from(self.frame_count);
        let end = first + usize::from(count);
        let number = usize::from(self.pool_count);
        if number >= MAX_POOLS || end > N || count == 0 || usize::from(owner) >= MAX_TASKS {
            return Err(KernelError::BadArgument);
        }
        let mut pool = Pool { first: self.frame_count, count, owner, ..Pool::EMPTY };
        pool.quota[usize::from(owner)] = count;
        pool.held[usize::from(owner)] = count;
        for &(task, quota) in holders {
            match pool.quota.get_mut(usize::from(task)) {
                Some(of_task) if *of_task == 0 => *of_task = quota,
                _ => return Err(KernelError::BadArgument),
            }
        }
        for (index, entry) in self.entries.iter_mut().enumerate().take(end).skip(first) {
            *entry = Entry::new(index, number, owner);
        }
        self.pools[number] = pool;
        self.pool_count += 1;
        self.frame_count = end as u16;
        Ok(number)
    }

    /// Number of pools.
    #[must_use]
    pub const fn pools(&self) -> usize {
        self.pool_count as usize
    }

    fn pool(&self, pool: usize) -> Option<&Pool> {
        self.pools.get(..self.pools())?.get(pool)
    }

    /// The task that owns a pool.
    #[must_use]
    pub fn owner(&self, pool: usize) -> Option<u8> {
        self.pool(pool).map(|pool| pool.owner)
    }

    /// Frame indices of a pool; empty if there is no such pool.
    #[must_use]
    pub fn frames(&self, pool: usize) -> core::ops::Range<usize> {
        self.pool(pool).map_or(0..0, Pool::frames)
    }

    /// Where a frame is; `None` if it is in no pool.
    #[must_use]
    pub fn holder(&self, index: usize) -> Option<Holder> {
        let entry = self.entries.get(..usize::from(self.frame_count))?.get(index)?;
        Some(match entry.holder() {
            DEVICE => Holder::Device,
            QUARANTINE => Holder::Quarantine,
            task => Holder::Task(task),
        })
    }

    /// Frames of a pool that a task holds; 0 if there is no such pool or task.
    #[must_use]
    pub fn held_count(&self, task: u8, pool: usize) -> u16 {
        self.pool(pool).and_then(|pool| pool.held.get(usize::from(task)).copied()).unwrap_or(0)
    }

    /// Frames of all pools that a task holds.
    #[must_use]
    pub fn held(&self, task: u8) -> u16 {
        (0..self.pools()).map(|pool| self.held_count(task, pool)).sum()
    }

    /// Handles of the frames of a pool that a task holds, from frame index `from` on, in order.
    pub fn held_by(&self, task: u8, pool: usize, from: usize) -> impl Iterator<Item = FrameHandle> {
        let frames = self.frames(pool);
        let start = from.clamp(frames.start, frames.end);
        let task = if usize::from(task) < MAX_TASKS { Some(task) } else { None };
        self.entries[start..frames.end]
            .iter()
            .filter(move |entry| Some(entry.holder()) == task)
            .map(|entry| entry.handle())
    }

    /// Answers the system call `FrameList`: fills `to` with frames that `task` holds, from index
    /// `from` on. Returns the entries written and the index to go on with, 0 at the end.
    ///
    /// # Errors
    /// [`KernelError::FramePool`] if there is no such pool, or the task may never hold frames of it.
    pub fn list(
        &self,
        task: u8,
        pool: usize,
        from: usize,
        to: &mut [FrameDesc],
    ) -> Result<(usize, usize), KernelError> {
        let quota = self.pool(pool).and_then(|pool| pool.quota.get(usize::from(task)).copied());
        if quota.unwrap_or(0) == 0 {
            return Err(KernelError::FramePool);
        }
        let mut handles = self.held_by(task, pool, from);
        let mut written = 0;
        for slot in to.iter_mut() {
            let Some(handle) = handles.next() else {
                return Ok((written, 0));
            };
            *slot = FrameDesc { handle, ..FrameDesc::default() };
            written += 1;
        }
        Ok((written, handles.next().map_or(0, FrameHandle::index)))
    }

    /// Counts where the frames of a pool are, frame by frame; `None` if there is no such pool.
    #[must_use]
    pub fn census(&self, pool: usize) -> Option<FrameCensus> {
        let pool = self.pool(pool)?;
        let mut census = FrameCensus::default();
        for entry in &self.entries[pool.frames()] {
            match entry.holder() {
                DEVICE => census.device += 1,
                QUARANTINE => census.quarantined += 1,
                task if task == pool.owner => census.owner += 1,
                _ => census.lent += 1,
            }
        }
        Some(census)
    }
}
