//! The bytes of frames: all unsafe code of this crate.
//!
//! Two things must hold for a reference into a frame: that the frame is mapped for this task, and that
//! no other reference to it exists that it could contradict.
//!
//! *Mapped.* The kernel maps a frame for a task from the moment that it delivers the frame's handle to the moment
//! that it takes the handle back, and at the one address that the configuration page names. [`Frames`](crate::Frames)
//! makes [`Lease`]s of frames that came in a list only, and lets go of a handle only when no lease is left.
//! A task that enters invented handles in its books gets a page fault, not another's data: the
//! kernel's page tables do not believe the books.
//!
//! *Alone.* There is one [`FrameMemory`] for a pool in a task, it is moved into one `Frames`, and that makes a
//! [`Lease`] only of a frame that is in a queue, which it leaves by that. So a frame has at most one lease, and the
//! borrow checker does the rest: bytes are borrowed from the lease. No other task can touch the frame meanwhile,
//! since the kernel lets one party hold it. The device does not, if its driver tells the kernel the truth about what
//! the device has finished; that much this task trusts it.

#![allow(unsafe_code)]

use core::ptr::NonNull;

use abi::PAGE_SIZE;

/// One frame's bytes, with the alignment that frames have.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_SIZE]);

/// Where the frames of a pool are in memory.
#[derive(Debug)]
pub struct FrameMemory {
    base: NonNull<Page>,
    first: u16,
    count: u16,
}

/// The right to one frame's bytes. There is at most one for a frame.
#[derive(Debug)]
pub(crate) struct Lease(NonNull<Page>);

impl FrameMemory {
    /// Index of the pool's first frame in the image.
    #[must_use]
    pub const fn first(&self) -> u16 {
        self.first
    }

    /// Frames in the pool.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The bytes of the pool's frame number `slot`, counted from the pool's first.
    ///
    /// For [`Frames`](crate::Frames) only, which sees to it that the frame is held and has no other lease.
    ///
    /// # Panics
    /// If `slot` is not below [`count`](Self::count).
    #[inline]
    pub(crate) fn lease(&self, slot: usize) -> Lease {
        assert!(slot < usize::from(self.count));
        // SAFETY: inside the pool, which is one object of `count` pages.
        Lease(unsafe { self.base.add(slot) })
    }
}

impl Lease {
    /// The bytes, to read.
    #[inline]
    pub fn bytes(&self) -> &[u8; PAGE_SIZE] {
        // SAFETY: mapped and alone, see above; any bytes are a valid value.
        unsafe { &self.0.as_ref().0 }
    }

    /// The bytes, to write.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        // SAFETY: as in `bytes`.
        unsafe { &mut self.0.as_mut().0 }
    }
}

#[cfg(target_os = "none")]
mod target {
    use core::cell::Cell;
    use core::ptr::NonNull;

    use super::FrameMemory;

    /// Pools that were taken, by number.
    struct Taken(Cell<u32>);

    // SAFETY: a task has one thread.
    unsafe impl Sync for Taken {}

    static TAKEN: Taken = Taken(Cell::new(0));

    impl FrameMemory {
        /// Takes the memory of a pool; `pool` counts the pools that the task may use. Once for each.
        ///
        /// `None` if there is no such pool, or it was taken before.
        #[must_use]
        pub fn take(pool: usize) -> Option<Self> {
            let (base, first, count) = userlib::config::pool(pool)?;
            let bit = 1u32.checked_shl(pool as u32)?;
            if TAKEN.0.get() & bit != 0 {
                return None;
            }
            TAKEN.0.set(TAKEN.0.get() | bit);
            Some(Self { base: NonNull::new(base as usize as *mut super::Page)?, first, count })
        }
    }
}

#[cfg(not(target_os = "none"))]
mod host {
    use core::ptr::NonNull;

    use super::{FrameMemory, Page};
    use abi::PAGE_SIZE;

    impl FrameMemory {
        /// Memory for tests on the host, that belongs to no kernel: `count` frames, whose indices start at `first`.
        #[must_use]
        pub fn fake(first: u16, count: u16) -> Self {
            let pages = vec![Page([0; PAGE_SIZE]); count.into()].into_boxed_slice();
            let base = NonNull::new(Box::into_raw(pages).cast()).expect("boxes are not null");
            Self { base, first, count }
        }
    }

    impl Drop for FrameMemory {
        fn drop(&mut self) {
            let pages = core::ptr::slice_from_raw_parts_mut(self.base.as_ptr(), self.count.into());
            // SAFETY: comes from `into_raw` in `fake`, with the same length; leases borrow the books that own this.
            drop(unsafe { Box::from_raw(pages) });
        }
    }
}
