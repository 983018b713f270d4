//! A ring of whole records in a window.
//!
//! A record never wraps: when it does not fit behind the last one, it goes to the start. Positions live here, outside the shared memory,
//! so a client that scribbles over its window hurts the content only. The same for a reader that consumes half a record.

/// Positions in a ring of `size` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ring {
    size: usize,
    read: usize,
    write: usize,
    /// End of the data behind `read`, while the writer is before it.
    end: usize,
}

impl Ring {
    /// An empty ring.
    #[must_use]
    pub const fn new(size: usize) -> Self {
        Self { size, read: 0, write: 0, end: 0 }
    }

    const fn wrapped(&self) -> bool {
        self.write < self.read
    }

    /// Finds room for `len` bytes in one piece: its offset. Call [`Ring::commit`] once they are written.
    #[inline]
    pub fn reserve(&mut self, len: usize) -> Option<usize> {
        if self.wrapped() {
            // One byte stays free, or a full ring would look like an empty one.
            return (self.read - self.write > len).then_some(self.write);
        }
        if self.size - self.write >= len {
            return Some(self.write);
        }
        if self.read > len {
            self.end = self.write;
            self.write = 0;
            return Some(0);
        }
        None
    }

    /// Makes `len` bytes at the reserved offset readable.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        debug_assert!(self.write + len <= self.size);
        self.write += len;
    }

    /// Offset and length of what can be read in one piece.
    #[inline]
    #[must_use]
    pub const fn readable(&self) -> (usize, usize) {
        if self.wrapped() { (self.read, self.end - self.read) } else { (self.read, self.write - self.read) }
    }

    /// Takes `len` bytes from the front. Returns false, and takes nothing, if there are not as many in one piece.
    #[inline]
    pub fn consume(&mut self, len: usize) -> bool {
        let (_, readable) = self.readable();
        if len > readable {
            return false;
        }
        let wrapped = self.wrapped();
        self.read += len;
        if wrapped && self.read == self.end {
            self.read = 0;
        }
        if self.read == self.write {
            // Empty: start again at the front, where the longest piece is free.
            self.read = 0;
            self.write = 0;
        }
        true
    }

    /// True if nothing can be read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.read == self.write
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn the_whole_ring_can_be_used_at_once() {
        let mut ring = Ring::new(64);
        assert_eq!(ring.reserve(65), None);
        assert_eq!(ring.reserve(64), Some(0));
        ring.commit(64);
        assert_eq!(ring.reserve(1), None);
        assert!(!ring.consume(65));
        assert!(ring.consume(64));
        assert!(ring.is_empty());
        assert_eq!(ring.reserve(64), Some(0));
    }

    proptest! {
        /// Against a plain queue: nothing is lost, overwritten or reordered.
        #[test]
        fn behaves_like_a_queue(size in 1usize..100, steps in proptest::collection::vec((any::<bool>(), 1usize..40), 1..300)) {
            let mut ring = Ring::new(size);
            let mut memory = std::vec![0u8; size];
            let mut queue: VecDeque<u8> = VecDeque::new();
            let mut next = 0u8;
            for (write, len) in steps {
                if write {
                    if let Some(at) = ring.reserve(len) {
                        for byte in &mut memory[at..at + len] {
                            *byte = next;
                            queue.push_back(next);
                            next = next.wrapping_add(1);
                        }
                        ring.commit(len);
                    } else {
                        prop_assert!(!queue.is_empty() || len > size);
                    }
                } else {
                    let (at, readable) = ring.readable();
                    let len = len.min(readable);
                    for byte in &memory[at..at + len] {
                        prop_assert_eq!(Some(*byte), queue.pop_front());
                    }
                    prop_assert!(ring.consume(len));
                }
                prop_assert_eq!(ring.is_empty(), queue.is_empty());
                let (at, readable) = ring.readable();
                prop_assert!(at + readable <= size);
                prop_assert_eq!(readable == 0, queue.is_empty());
            }
        }
    }
}
