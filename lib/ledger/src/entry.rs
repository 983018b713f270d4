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
/// Handle and holder: what must match for a frame to be accepted.
const KEY: u64 = (1 << LANE_SHIFT) - 1;

/// Added to a handle, starts the next generation: the index stays, the generation wraps by itself.
pub const NEXT_GENERATION: u32 = 1 << FrameHandle::INDEX_BITS;
/// Added to a handle, keeps it valid.
pub const SAME_GENERATION: u32 = 0;

/// Bits 0..32 the valid handle, 32..40 the holder, 40..48 eight times the pool's number.
///
/// One word, so that a check loads once and compares handle and holder at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

const fn key(handle: FrameHandle, holder: u8) -> u64 {
    handle.0 as u64 | (holder as u64) << HOLDER_SHIFT
}

impl Entry {
    /// A line without a frame.
    pub const EMPTY: Self = Self((UNUSED as u64) << HOLDER_SHIFT);

    /// A frame of `pool`, in its first generation. That is 1, so that zeroed memory is not a valid handle.
    #[inline]
    pub const fn new(index: usize, pool: usize, holder: u8) -> Self {
        Self(key(FrameHandle::new(index, 1), holder) | (pool as u64 * 8) << LANE_SHIFT)
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
        1u64.wrapping_shl((self.0 >> LANE_SHIFT) as u32)
    }

    /// The line after `from` has given the frame, which it names `handle`, to `to`, with `step` added to
    /// the handle. `None` if the handle is over or `from` does not hold the frame.
    #[inline]
    pub const fn given(self, handle: FrameHandle, from: u8, to: u8, step: u32) -> Option<Self> {
        let rest = self.0 ^ key(handle, from);
        if rest & KEY != 0 {
            return None;
        }
        Some(Self(rest | key(FrameHandle(handle.0.wrapping_add(step)), to)))
    }

    /// Takes the frame from whoever has it, in a new generation: all handles that exist are over.
    #[inline]
    pub const fn renew(&mut self, holder: u8) -> FrameHandle {
        let handle = FrameHandle(self.handle().0.wrapping_add(NEXT_GENERATION));
        self.0 = self.0 & !KEY | key(handle, holder);
        handle
    }

    /// Undoes [`given`](Self::given).
    pub const fn take_back(&mut self, from: u8, step: u32) {
        self.0 = self.0 & !KEY | key(FrameHandle(self.handle().0.wrapping_sub(step)), from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let mut entry = Entry::new(1023, 3, 31);
        let first = entry.handle();
        assert_eq!((first.index(), first.generation()), (1023, 1));
        assert_eq!((entry.holder(), entry.pool(), entry.lane()), (31, 3, 1 << 24));
        let second = entry.renew(0);
        assert_eq!((second.index(), second.generation()), (1023, 2));
        assert_eq!((entry.handle(), entry.holder(), entry.pool()), (second, 0, 3));
    }

    #[test]
    fn only_the_holder_gives_and_only_by_the_valid_handle() {
        let entry = Entry::new(7, 1, 4);
        let handle = entry.handle();
        assert_eq!(entry.given(handle, 5, 6, NEXT_GENERATION), None);
        assert_eq!(entry.given(FrameHandle::new(7, 0), 4, 6, NEXT_GENERATION), None);
        assert_eq!(entry.given(FrameHandle::new(6, 1), 4, 6, NEXT_GENERATION), None);
        for step in [SAME_GENERATION, NEXT_GENERATION] {
            let mut given = entry.given(handle, 4, DEVICE, step).unwrap();
            assert_eq!((given.holder(), given.pool(), given.handle().0), (DEVICE, 1, handle.0 + step));
            given.take_back(4, step);
            assert_eq!(given, entry);
        }
    }

    #[test]
    fn generations_wrap_without_touching_the_rest() {
        let start = Entry::new(5, 2, 1);
        let mut entry = start;
        for _ in 1..FrameHandle::GENERATIONS {
            entry = entry.given(entry.handle(), 1, 1, NEXT_GENERATION).unwrap();
        }
        assert_eq!((entry.handle().generation(), entry.handle().index(), entry.holder(), entry.pool()), (0, 5, 1, 2));
        entry.take_back(1, NEXT_GENERATION);
        assert_eq!(entry.handle().generation(), FrameHandle::GENERATIONS - 1);
        entry.renew(1);
        entry.renew(1);
        assert_eq!(entry, start);
    }
}
