//! The hand-over of a list of frames, whole or not at all.

use abi::image::MAX_POOLS;
use abi::{FrameDesc, FrameHandle, KernelError, MAX_FRAME_LIST, MAX_TASKS, PAGE_SIZE};

use crate::Ledger;
use crate::entry::{DEVICE, Entry, NEXT_GENERATION, SAME_GENERATION};

/// Frames of a list by pool: eight bits for each.
#[derive(Clone, Copy, Debug)]
struct Lanes(u64);

const _: () = assert!(MAX_POOLS <= 8 && MAX_FRAME_LIST < 0x100);

impl Lanes {
    /// The pool, if there is just one.
    #[inline]
    fn single(mut self) -> Option<usize> {
        let (pool, _) = self.next()?;
        (self.0 == 0).then_some(pool)
    }
}

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
pub struct Moved<'a> {
    /// Index of the frame in the image.
    pub index: usize,
    /// Pool that it belongs to.
    pub pool: usize,
    /// The list entry, with the handle that is valid after the move.
    pub desc: &'a FrameDesc,
}

impl<const N: usize> Ledger<N> {
    #[inline]
    fn entry(&mut self, handle: FrameHandle) -> &mut Entry {
        // The mask is for the compiler: the line holds the whole handle, so an index that is too large
        // does not match the line that it falls on.
        &mut self.entries[handle.index() & (N - 1)]
    }

    /// Checks a list and moves its frames, in one pass; a bad entry undoes those before it.
    ///
    /// A frame that is named twice has moved when it comes up again, so that the second entry fails.
    #[inline]
    fn claim(&mut self, from: u8, to: u8, step: u32, list: &[FrameDesc]) -> Result<Lanes, KernelError> {
        if list.len() > MAX_FRAME_LIST {
            return Err(KernelError::FrameListTooLong);
        }
        let mut lanes = 0;
        let mut rest = list;
        while let [desc, after @ ..] = rest {
            let entry = self.entry(desc.handle);
            match entry.given(desc.handle, from, to, step) {
                Some(given) if usize::from(desc.len) <= PAGE_SIZE => *entry = given,
                _ => return Err(self.refuse(from, step, list, rest.len())),
            }
            lanes += entry.lane();
            rest = after;
        }
        Ok(Lanes(lanes))
    }

    /// Undoes [`claim`](Self::claim).
    #[cold]
    #[inline(never)]
    fn release(&mut self, from: u8, step: u32, list: &[FrameDesc]) {
        for desc in list {
            self.entry(desc.handle).take_back(from, step);
        }
    }

    /// Undoes what was claimed before a bad entry, and finds its error. It is the first of the last `rest`.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, from: u8, step: u32, list: &[FrameDesc], rest: usize) -> KernelError {
        let (done, bad) = list.split_at(list.len().saturating_sub(rest));
        self.release(from, step, done);
        let Some(desc) = bad.first() else {
            return KernelError::BadArgument;
        };
        let frames = self.entries.get(..usize::from(self.frame_count));
        match frames.and_then(|frames| frames.get(desc.handle.index())) {
            None => KernelError::FrameUnknown,
            Some(entry) if entry.handle() != desc.handle => KernelError::FrameStale,
            Some(entry) if entry.holder() != from => KernelError::FrameNotHeld,
            Some(_) if done.iter().any(|earlier| earlier.handle == desc.handle) => KernelError::FrameDuplicate,
            Some(_) => KernelError::FrameLength,
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

    /// Whether `to` may take so many frames more of each pool.
    #[inline]
    fn check_receiver(&self, to: u8, lanes: Lanes) -> Result<(), KernelError> {
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
        Ok(())
    }

    /// Moves a list between two tasks, or refuses it and leaves everything as it was.
    #[inline]
    fn claim_for(&mut self, from: u8, to: u8, list: &[FrameDesc], room: usize) -> Result<Lanes, KernelError> {
        if usize::from(from) >= MAX_TASKS || usize::from(to) >= MAX_TASKS || from == to {
            return Err(KernelError::BadArgument);
        }
        if list.len() > room {
            return Err(KernelError::FrameListTooLong);
        }
        let lanes = self.claim(from, to, NEXT_GENERATION, list)?;
        if let Err(error) = self.check_receiver(to, lanes) {
            self.release(from, NEXT_GENERATION, list);
            return Err(error);
        }
        self.recount(lanes, from, to);
        Ok(lanes)
    }

    /// Hands frames from one task to another. The receiver's list, with handles of the new generation,
    /// goes to the start of `out`; then `moved` is called for each frame, in list order.
    ///
    /// # Errors
    /// The first that applies; then nothing has changed, `out` included, and `moved` was not called:
    /// * [`KernelError::BadArgument`]: `from` and `to` are no two tasks;
    /// * [`KernelError::FrameListTooLong`]: more than [`MAX_FRAME_LIST`] entries, or than `out` has room for;
    /// * for the first bad entry, [`KernelError::FrameUnknown`], [`KernelError::FrameStale`],
    ///   [`KernelError::FrameNotHeld`] (the device may hold it), [`KernelError::FrameDuplicate`]
    ///   or [`KernelError::FrameLength`];
    /// * [`KernelError::FramePool`]: `to` may not hold frames of a pool in the list;
    /// * [`KernelError::FrameQuota`]: `to` would hold more of a pool than it may.
    #[inline]
    pub fn transfer(
        &mut self,
        from: u8,
        to: u8,
        list: &[FrameDesc],
        out: &mut [FrameDesc],
        mut moved: impl FnMut(Moved<'_>),
    ) -> Result<(), KernelError> {
        self.claim_for(from, to, list, out.len())?;
        for (desc, out) in list.iter().zip(out) {
            *out = *desc;
            moved(self.handed_over(out));
        }
        Ok(())
    }

    /// As [`transfer`](Self::transfer), with the receiver's list written over the sender's; `room` is
    /// what the receiver can take. Returns the pool if all frames are of one.
    ///
    /// # Errors
    /// As [`transfer`](Self::transfer).
    #[inline]
    pub fn transfer_in_place(
        &mut self,
        from: u8,
        to: u8,
        list: &mut [FrameDesc],
        room: usize,
    ) -> Result<Option<usize>, KernelError> {
        let lanes = self.claim_for(from, to, list, room)?;
        for desc in list {
            desc.handle = desc.handle.next_generation();
        }
        Ok(lanes.single())
    }

    /// Puts the handle of the new generation into an entry.
    #[inline]
    fn handed_over<'d>(&mut self, desc: &'d mut FrameDesc) -> Moved<'d> {
        desc.handle = desc.handle.next_generation();
        self.moved(desc)
    }

    #[inline]
    fn moved<'d>(&mut self, desc: &'d FrameDesc) -> Moved<'d> {
        Moved { index: desc.handle.index(), pool: self.entry(desc.handle).pool(), desc }
    }

    /// Gives frames that `task` holds to its device. Handles stay valid, but only for
    /// [`complete`](Self::complete). `moved` does the cache maintenance.
    ///
    /// # Errors
    /// As [`transfer`](Self::transfer); [`KernelError::FramePool`] if `task` does not own a pool in the list.
    #[inline]
    pub fn arm(&mut self, task: u8, list: &[FrameDesc], moved: impl FnMut(Moved<'_>)) -> Result<(), KernelError> {
        self.with_device(task, task, DEVICE, list, moved)
    }

    /// Takes frames back from the device of `task`. Handles stay valid. `moved` does the cache maintenance.
    ///
    /// # Errors
    /// As [`arm`](Self::arm); [`KernelError::FrameNotHeld`] for a frame that no device holds.
    #[inline]
    pub fn complete(&mut self, task: u8, list: &[FrameDesc], moved: impl FnMut(Moved<'_>)) -> Result<(), KernelError> {
        self.with_device(task, DEVICE, task, list, moved)
    }

    #[inline]
    fn with_device(
        &mut self,
        task: u8,
        from: u8,
        to: u8,
        list: &[FrameDesc],
        mut moved: impl FnMut(Moved<'_>),
    ) -> Result<(), KernelError> {
        if usize::from(task) >= MAX_TASKS {
            return Err(KernelError::BadArgument);
        }
        let lanes = self.claim(from, to, SAME_GENERATION, list)?;
        let owns = |(pool, _)| self.owner(pool) == Some(task);
        if !{ lanes }.all(owns) {
            self.release(from, SAME_GENERATION, list);
            return Err(KernelError::FramePool);
        }
        self.recount(lanes, from, to);
        for desc in list {
            moved(self.moved(desc));
        }
        Ok(())
    }
}
