//! Frames that the driver holds and that are in no ring.
//!
//! There are two kinds, for the sake of the data cache. A frame that was received and only read has no dirty line that could be written
//! back over what the MAC puts there next, so arming it needs no cache maintenance. Of all others (sent, never used, left by a dead
//! task) that is not known.

use abi::{FrameDesc, FrameHandle, MAX_FRAME_LIST};
use userlib::FrameList;

use crate::ring::{Handles, RX_BUFFER, TX};

/// Two stacks in one piece of memory: clean frames from its start, others from its end.
#[derive(Debug)]
pub struct FreeFrames {
    handles: Handles,
    clean: usize,
    /// First of the others.
    others: usize,
}

impl FreeFrames {
    /// None; `handles` has room for all frames of the pool.
    #[must_use]
    pub const fn new(handles: Handles) -> Self {
        Self { others: handles.len(), handles, clean: 0 }
    }

    /// Frames.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.clean + self.handles.len() - self.others
    }

    /// True if there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.clean == 0 && self.others == self.handles.len()
    }

    /// Forgets all.
    pub const fn clear(&mut self) {
        self.clean = 0;
        self.others = self.handles.len();
    }

    /// Adds a frame that may have been written.
    #[inline]
    pub fn push(&mut self, handle: FrameHandle) {
        // There is room for each frame of the pool.
        if self.others > self.clean
            && let Some(place) = self.handles.get_mut(self.others - 1)
        {
            *place = handle;
            self.others -= 1;
        }
    }

    /// Takes a frame for sending: rather one that would cost most to receive with.
    #[inline]
    pub fn pop(&mut self) -> Option<FrameHandle> {
        let other = self.handles.get(self.others).copied();
        if other.is_some() {
            self.others += 1;
            return other;
        }
        self.clean = self.clean.checked_sub(1)?;
        self.handles.get(self.clean).copied()
    }

    /// Takes over the entries of a list that were received and only read (length 0). Returns true if there are others.
    #[inline]
    pub fn take_read(&mut self, list: &[FrameDesc]) -> bool {
        let mut room = self.handles.get_mut(self.clean..self.others).unwrap_or_default().iter_mut();
        let before = room.len();
        let mut others = false;
        for frame in list {
            if !is_read(frame) {
                others = true;
            } else if let Some(place) = room.next() {
                *place = frame.handle;
            }
        }
        self.clean += before - room.len();
        others
    }

    /// Moves up to `count` frames to a list for reception. The length of an entry is what may be dirty of it.
    #[inline]
    pub fn take_out(&mut self, count: usize, list: &mut FrameList) {
        let count = count.min(MAX_FRAME_LIST - list.len());
        let start = self.clean.saturating_sub(count);
        let clean = self.handles.get(start..self.clean).unwrap_or_default();
        list.extend(clean.iter().map(|handle| FrameDesc { handle: *handle, ..FrameDesc::default() }));
        let missing = count - clean.len();
        self.clean = start;
        if missing > 0 {
            self.take_out_others(missing, list);
        }
    }

    fn take_out_others(&mut self, count: usize, list: &mut FrameList) {
        let end = self.handles.len().min(self.others + count);
        let others = self.handles.get(self.others..end).unwrap_or_default();
        let len = RX_BUFFER as u16;
        list.extend(others.iter().map(|handle| FrameDesc { handle: *handle, len, ..FrameDesc::default() }));
        self.others = end;
    }
}

/// True for a frame that was received and not written since.
#[inline]
pub(crate) const fn is_read(frame: &FrameDesc) -> bool {
    frame.meta & TX == 0 && frame.len == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(index: usize, meta: u8, len: u16) -> FrameDesc {
        FrameDesc { handle: FrameHandle::new(index, 1), len, offset: 2, meta }
    }

    #[test]
    fn clean_frames_are_received_with_first_and_sent_with_last() {
        let mut free = FreeFrames::new(vec![FrameHandle(0); 6].leak());
        free.push(FrameHandle::new(0, 1));
        assert!(free.take_read(&[frame(1, 0, 0), frame(2, TX, 0), frame(3, 0, 0), frame(5, 0, 4096)]));
        assert_eq!(free.len(), 3);
        free.push(FrameHandle::new(4, 1));
        assert_eq!(free.pop().map(FrameHandle::index), Some(4));
        let mut list = FrameList::new();
        free.take_out(9, &mut list);
        let dirty: Vec<_> = list.as_slice().iter().map(|frame| (frame.handle.index(), frame.len)).collect();
        assert_eq!(dirty, [(1, 0), (3, 0), (0, RX_BUFFER as u16)]);
        assert!(free.is_empty());
        assert_eq!(free.pop(), None);
    }

    #[test]
    fn it_holds_as_many_as_the_pool_has_in_any_mixture() {
        for used in 0..=6 {
            let mut free = FreeFrames::new(vec![FrameHandle(0); 6].leak());
            for index in 0..6 {
                if index < used {
                    assert!(!free.take_read(&[frame(index, 0, 0)]));
                } else {
                    free.push(FrameHandle::new(index, 1));
                }
            }
            assert_eq!(free.len(), 6);
            // One too many is not taken, and harms nothing.
            free.push(FrameHandle::new(9, 1));
            free.take_read(&[frame(9, 0, 0)]);
            let mut got: Vec<_> = core::iter::from_fn(|| free.pop()).map(FrameHandle::index).collect();
            got.sort_unstable();
            assert_eq!(got, [0, 1, 2, 3, 4, 5]);
        }
    }
}
