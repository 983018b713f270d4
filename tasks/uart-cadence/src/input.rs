//! Input that nobody has read yet.

/// A queue of `N` bytes. When it is full, newer input is lost, and counted.
#[derive(Debug)]
pub struct Input<const N: usize> {
    bytes: [u8; N],
    head: usize,
    len: usize,
    lost: u64,
}

impl<const N: usize> Default for Input<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Input<N> {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; N], head: 0, len: 0, lost: 0 }
    }

    /// Adds a byte, or counts it as lost.
    pub fn push(&mut self, byte: u8) {
        if self.len == N {
            self.lost += 1;
            return;
        }
        self.bytes[(self.head + self.len) % N] = byte;
        self.len += 1;
    }

    /// The oldest bytes that lie in one piece, at most `max`.
    #[must_use]
    pub fn front(&self, max: usize) -> &[u8] {
        let end = N.min(self.head + self.len.min(max));
        &self.bytes[self.head..end]
    }

    /// Forgets the oldest bytes.
    pub fn consume(&mut self, count: usize) {
        let count = count.min(self.len);
        self.head = (self.head + count) % N;
        self.len -= count;
    }

    /// Counts input that was lost elsewhere.
    pub const fn count_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Bytes lost.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// True if nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_as_a_bounded_queue(steps in proptest::collection::vec((any::<u8>(), 0usize..12, 0usize..12), 0..200)) {
            let mut input = Input::<7>::new();
            let mut model = VecDeque::new();
            let mut lost = 0;
            for (byte, pushes, reads) in steps {
                for _ in 0..pushes {
                    input.push(byte);
                    if model.len() < 7 { model.push_back(byte) } else { lost += 1 }
                }
                let front = input.front(reads).to_vec();
                prop_assert!(front.len() <= reads);
                prop_assert!(!front.is_empty() || reads == 0 || model.is_empty());
                for byte in &front {
                    prop_assert_eq!(model.pop_front(), Some(*byte));
                }
                input.consume(front.len());
                prop_assert_eq!(input.lost(), lost);
                prop_assert_eq!(input.is_empty(), model.is_empty());
            }
        }
    }
}
