//! One frame's line in the ledger, packed into a word.

use abi::FrameHandle;

/// Holder code of the device.
pub const DEVICE: u8 = 0xfd;
/// Holder code of a frame that waits for the quiesce sequence.
pub const QUARANTINE: u8 = 0xfe;
/// Holder code of a line that no pool uses. No list can match it.
const UNUSED: u8 = 0xff;

const HOLDER_SHIFT: u32 = 32;
const LANE_SHIFT: u32 = 40;
const MARK_SHIFT: u32 = 48;
/// Handle and holder: what must match for a frame to be accepted.
const KEY: u64 = (1 << LANE_SHIFT) - 1;
/// Added to a handle, starts the next generation: the index stays, the generation wraps by itself.
const NEXT_GENERATION: u32 = 1 << FrameHandle::INDEX_BITS;

/// Bits 0..32 the valid handle, 32..40 the holder, 40..48 eight times the pool's number,
/// 48..64 the epoch of the list that named the frame last.
///
/// One word, so that a check loads once and compares handle and holder at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// A line without a frame.
    pub const EMPTY: Self = Self((UNUSED as u64) << HOLDER_SHIFT);

    /// A frame of `pool`, in its first generation. That is 1, so that zeroed memory is not a valid handle.
    #[inline]
    pub const fn new(index: usize, pool: usize, holder: u8) -> Self {
        let handle = FrameHandle::new(index, 1).0 as u64;
        Self(handle | (holder as u64) << HOLDER_SHIFT | (pool as u64 * 8) << LANE_SHIFT)
    }

    /// The handle that is valid now.
    #[inline]
    pub const fn handle(self) -> FrameHandle {
        FrameHandle(self.0 as u32)
    }

    /// A task index, [`DEVICE`], [`QUARANTINE`] or unused.
    #[inline]
    pub const fn holder(self) -> u8 {
        (self.0 >> HOLDER_SHIFT) as u8
    }

    /// Number of the pool.
    #[inline]
    pub const fn pool(self) -> usize {
        (self.0 >> LANE_SHIFT) as usize % 0x100 / 8
    }

    /// A one in the pool's lane of a [`Lanes`](crate::transfer) counter.
    #[inline]
    pub const fn lane(self) -> u64 {
        // The shift is taken modulo 64, which drops the mark.
        1u64.wrapping_shl((self.0 >> LANE_SHIFT) as u32)
    }

    /// True if `handle` is valid and `holder` holds the frame.
    #[inline]
    pub const fn is(self, handle: FrameHandle, holder: u8) -> bool {
        (self.0 ^ (handle.0 as u64 | (holder as u64) << HOLDER_SHIFT)) & KEY == 0
    }

    /// Epoch of the list that named this frame last.
    #[inline]
    pub const fn mark(self) -> u16 {
        (self.0 >> MARK_SHIFT) as u16
    }

    /// Notes the list that names the frame.
    #[inline]
    pub const fn set_mark(&mut self, epoch: u16) {
        self.0 = self.0 & !(0xffff << MARK_SHIFT) | (epoch as u64) << MARK_SHIFT;
    }

    /// Gives the frame to another holder; handles stay valid.
    #[inline]
    pub const fn set_holder(&mut self, holder: u8) {
        self.0 = self.0 & !(0xff << HOLDER_SHIFT) | (holder as u64) << HOLDER_SHIFT;
    }

    /// Gives the frame to a holder in a new generation: all handles that exist are over.
    #[inline]
    pub const fn hand_over(&mut self, holder: u8) -> FrameHandle {
        let handle = FrameHandle((self.0 as u32).wrapping_add(NEXT_GENERATION));
        self.0 = self.0 & !KEY | handle.0 as u64 | (holder as u64) << HOLDER_SHIFT;
        handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut entry = Entry::new(1023, 3, 31);
        entry.set_mark(0xffff);
        assert_eq!(
            (entry.handle().index(), entry.handle().generation()),
            (1023, 1)
        );
        assert_eq!(
            (entry.holder(), entry.pool(), entry.mark()),
            (31, 3, 0xffff)
        );
        assert_eq!(entry.lane(), 1 << 24);
        let handle = entry.hand_over(0);
        assert_eq!((handle.index(), handle.generation()), (1023, 2));
        assert_eq!(
            (entry.handle(), entry.holder(), entry.pool(), entry.mark()),
            (handle, 0, 3, 0xffff)
        );
        entry.set_holder(DEVICE);
        assert!(entry.is(handle, DEVICE));
        assert!(!entry.is(handle, 0));
        assert!(!entry.is(FrameHandle::new(1023, 1), DEVICE));
    }

    #[test]
    fn generations_wrap_without_touching_the_index() {
        let mut entry = Entry::new(5, 0, 1);
        for _ in 0..FrameHandle::GENERATIONS - 1 {
            entry.hand_over(1);
        }
        assert_eq!(
            (entry.handle().index(), entry.handle().generation()),
            (5, 0)
        );
    }
}
