//! The hand-over of a list of frames: checked whole, then done.

use abi::image::MAX_POOLS;
use abi::{FrameDesc, KernelError, MAX_FRAME_LIST, MAX_TASKS, PAGE_SIZE};

use crate::Ledger;
use crate::entry::{DEVICE, Entry};

/// Frames of a list by pool: eight bits for each.
#[derive(Clone, Copy, Debug)]
struct Lanes(u64);

const _: () = assert!(MAX_POOLS <= 8 && MAX_FRAME_LIST < 0x100);

impl Iterator for Lanes {
    /// Pool, frames.
    type Item = (usize, u16);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0 == 0 {
            return None;
        }
        let pool = self.0.trailing_zeros() / 8;
        let frames = (self.0 >> (8 * pool)) as u16 & 0xff;
        self.0 &= !(0xff << (8 * pool));
        Some((pool as usize, frames))
    }
}

/// A frame that changes hands, as the kernel needs it for page tables and caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    /// Index of the frame in the image.
    pub index: usize,
    /// Pool that it belongs to.
    pub pool: usize,
    /// The list entry, with the handle that is valid after the move.
    pub desc: FrameDesc,
}

/// A hand-over that has been checked and can no longer fail.
///
/// Dropping it leaves everything as it was.
#[derive(Debug)]
#[must_use = "the frames move on commit"]
pub struct Transfer<'a, const N: usize> {
    ledger: &'a mut Ledger<N>,
    from: u8,
    to: u8,
    list: &'a [FrameDesc],
    out: &'a mut [FrameDesc],
    lanes: Lanes,
}

impl<const N: usize> Transfer<'_, N> {
    /// Frames in the list.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.list.len()
    }

    /// True if the list is empty; committing it does nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Moves the frames, writes the receiver's list and calls `moved` for each frame, in list order.
    #[inline]
    pub fn commit(self, mut moved: impl FnMut(Moved)) {
        for (desc, out) in self.list.iter().zip(self.out) {
            let step = self.ledger.hand_over(desc, self.to);
            *out = step.desc;
            moved(step);
        }
        self.ledger.recount(self.lanes, self.from, self.to);
    }
}

impl<const N: usize> Ledger<N> {
    #[inline]
    fn entry(&mut self, desc: &FrameDesc) -> &mut Entry {
        // The mask is for the compiler: the check compares the whole handle, so an index that is too
        // large cannot match the line that it falls on.
        &mut self.entries[desc.handle.index() & (N - 1)]
    }

    #[inline]
    fn hand_over(&mut self, desc: &FrameDesc, to: u8) -> Moved {
        let entry = self.entry(desc);
        let handle = entry.hand_over(to);
        Moved {
            index: handle.index(),
            pool: entry.pool(),
            desc: FrameDesc { handle, ..*desc },
        }
    }

    /// Adjusts the counters of holders; devices have none.
    #[inline]
    fn recount(&mut self, lanes: Lanes, from: u8, to: u8) {
        for (pool, frames) in lanes {
            let Some(pool) = self.pools.get_mut(pool) else {
                continue;
            };
            if let Some(held) = pool.held.get_mut(usize::from(from)) {
                *held -= frames;
            }
            if let Some(held) = pool.held.get_mut(usize::from(to)) {
                *held += frames;
            }
        }
    }

    /// Starts the check of a list. Marks of the lists before must not look like the new one's.
    #[inline]
    fn next_epoch(&mut self) -> u16 {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.clear_marks();
        }
        self.epoch
    }

    #[cold]
    fn clear_marks(&mut self) {
        for entry in &mut self.entries {
            entry.set_mark(0);
        }
        self.epoch = 1;
    }

    /// Checks everything that concerns the sender's side. Changes nothing but marks.
    #[inline]
    fn check_list(&mut self, holder: u8, list: &[FrameDesc]) -> Result<Lanes, KernelError> {
        if list.len() > MAX_FRAME_LIST {
            return Err(KernelError::FrameListTooLong);
        }
        let epoch = self.next_epoch();
        let mut lanes = 0;
        for desc in list {
            let entry = self.entry(desc);
            if !entry.is(desc.handle, holder)
                || entry.mark() == epoch
                || usize::from(desc.len) > PAGE_SIZE
            {
                return Err(self.explain(holder, epoch, desc));
            }
            entry.set_mark(epoch);
            lanes += entry.lane();
        }
        Ok(Lanes(lanes))
    }

    /// Finds the error of an entry that was refused.
    #[cold]
    fn explain(&self, holder: u8, epoch: u16, desc: &FrameDesc) -> KernelError {
        let frames = self.entries.get(..usize::from(self.frame_count));
        match frames.and_then(|frames| frames.get(desc.handle.index())) {
            None => KernelError::FrameUnknown,
            Some(entry) if entry.handle() != desc.handle => KernelError::FrameStale,
            Some(entry) if entry.holder() != holder => KernelError::FrameNotHeld,
            Some(entry) if entry.mark() == epoch => KernelError::FrameDuplicate,
            Some(_) => KernelError::FrameLength,
        }
    }

    /// Checks a hand-over between tasks.
    #[inline]
    fn check_transfer(
        &mut self,
        from: u8,
        to: u8,
        list: &[FrameDesc],
        room: usize,
    ) -> Result<Lanes, KernelError> {
        if usize::from(from) >= MAX_TASKS || usize::from(to) >= MAX_TASKS || from == to {
            return Err(KernelError::BadArgument);
        }
        if list.len() > room {
            return Err(KernelError::FrameListTooLong);
        }
        let lanes = self.check_list(from, list)?;
        for (pool, frames) in lanes {
            let Some(pool) = self.pools.get(pool) else {
                return Err(KernelError::FramePool);
            };
            let (held, quota) = (pool.held[usize::from(to)], pool.quota[usize::from(to)]);
            if quota == 0 {
                return Err(KernelError::FramePool);
            }
            if held + frames > quota {
                return Err(KernelError::FrameQuota);
            }
        }
        Ok(lanes)
    }

    /// Checks a hand-over between two tasks, to be done by [`Transfer::commit`].
    ///
    /// Entries of the receiver's list go to the start of `out`. The kernel checks all other things
    /// that can fail in the same call before it commits.
    ///
    /// # Errors
    /// The first that applies; then nothing has changed:
    /// * [`KernelError::BadArgument`]: `from` and `to` are no two tasks;
    /// * [`KernelError::FrameListTooLong`]: more than [`MAX_FRAME_LIST`] entries, or than `out` has room for;
    /// * for the first bad entry, [`KernelError::FrameUnknown`], [`KernelError::FrameStale`],
    ///   [`KernelError::FrameNotHeld`] (the device may hold it), [`KernelError::FrameDuplicate`]
    ///   or [`KernelError::FrameLength`];
    /// * [`KernelError::FramePool`]: `to` may not hold frames of a pool in the list;
    /// * [`KernelError::FrameQuota`]: `to` would hold more of a pool than it may.
    #[inline]
    pub fn check<'a>(
        &'a mut self,
        from: u8,
        to: u8,
        list: &'a [FrameDesc],
        out: &'a mut [FrameDesc],
    ) -> Result<Transfer<'a, N>, KernelError> {
        let lanes = self.check_transfer(from, to, list, out.len())?;
        Ok(Transfer {
            ledger: self,
            from,
            to,
            list,
            out,
            lanes,
        })
    }

    /// Hands frames from one task to another: [`check`](Self::check) and [`Transfer::commit`] in one.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[inline]
    pub fn transfer(
        &mut self,
        from: u8,
        to: u8,
        list: &[FrameDesc],
        out: &mut [FrameDesc],
        moved: impl FnMut(Moved),
    ) -> Result<(), KernelError> {
        self.check(from, to, list, out)?.commit(moved);
        Ok(())
    }

    /// As [`transfer`](Self::transfer), with the receiver's list written over the sender's; `room` is
    /// what the receiver can take.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    #[inline]
    pub fn transfer_in_place(
        &mut self,
        from: u8,
        to: u8,
        list: &mut [FrameDesc],
        room: usize,
        mut moved: impl FnMut(Moved),
    ) -> Result<(), KernelError> {
        let lanes = self.check_transfer(from, to, list, room)?;
        for desc in list {
            let step = self.hand_over(desc, to);
            *desc = step.desc;
            moved(step);
        }
        self.recount(lanes, from, to);
        Ok(())
    }

    /// Gives frames that `task` holds to its device. Handles stay valid, but only for
    /// [`complete`](Self::complete). `moved` does the cache maintenance.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`KernelError::FramePool`] if `task` does not own a pool in the list.
    #[inline]
    pub fn arm(
        &mut self,
        task: u8,
        list: &[FrameDesc],
        moved: impl FnMut(Moved),
    ) -> Result<(), KernelError> {
        self.with_device(task, task, DEVICE, list, moved)
    }

    /// Takes frames back from the device of `task`. Handles stay valid. `moved` does the cache maintenance.
    ///
    /// # Errors
    /// As [`arm`](Self::arm); [`KernelError::FrameNotHeld`] for a frame that the device does not hold.
    #[inline]
    pub fn complete(
        &mut self,
        task: u8,
        list: &[FrameDesc],
        moved: impl FnMut(Moved),
    ) -> Result<(), KernelError> {
        self.with_device(task, DEVICE, task, list, moved)
    }

    #[inline]
    fn with_device(
        &mut self,
        task: u8,
        from: u8,
        to: u8,
        list: &[FrameDesc],
        mut moved: impl FnMut(Moved),
    ) -> Result<(), KernelError> {
        if usize::from(task) >= MAX_TASKS {
            return Err(KernelError::BadArgument);
        }
        let lanes = self.check_list(from, list)?;
        for (pool, _) in lanes {
            if self.owner(pool) != Some(task) {
                return Err(KernelError::FramePool);
            }
        }
        for desc in list {
            let entry = self.entry(desc);
            entry.set_holder(to);
            let step = Moved {
                index: desc.handle.index(),
                pool: entry.pool(),
                desc: *desc,
            };
            moved(step);
        }
        self.recount(lanes, from, to);
        Ok(())
    }
}
