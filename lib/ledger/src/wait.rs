//! Waiting for notifications without losing one.
//!
//! # The protocol
//!
//! A notification is a bit that stays set until its task takes it, and a count of all posts. To wait,
//! a task names the bits that it wants and the count that it saw last. To post, anyone sets bits.
//!
//! # Why no wake-up is lost
//!
//! The kernel runs each of these steps without interruption, so steps have an order.
//!
//! 1. *While a task is blocked for `mask`, no bit of `mask` is pending.* [`Notifications::poll`] let it
//!    block only if none was, and from then on each [`Notifications::post`] is followed, in the same
//!    kernel entry, by [`Notifications::take`] with that mask, which unblocks it if one has become pending.
//! 2. *A bit leaves `pending` only on its way to its task*, as a result of `poll` or `take`.
//! 3. So a post to a task is seen: if the task is blocked for the bit, it is unblocked with it at once.
//!    If it is running, or blocked for other things, the bit waits, and the next `poll` for it returns.
//! 4. A task that took the bit in one place and looked at its queue in another (a nested receive, say)
//!    still cannot sleep through: every post moves the count, and `poll` with a count from before the
//!    look returns at once. A task that reads the count, looks, and then waits with that count may
//!    be woken once too often, never once too seldom.

/// Notifications of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notifications {
    pending: u32,
    sequence: u32,
}

/// What a wait returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Woken {
    /// Bits taken. None if only the count had moved.
    pub bits: u32,
    /// The count of posts, for the next wait.
    pub sequence: u32,
}

impl Notifications {
    /// State of a task that starts: nothing pending, no posts.
    ///
    /// A restart begins with this too; what was posted to the old instance is over, and the new one
    /// looks at all its queues before it waits.
    #[must_use]
    pub const fn new() -> Self {
        Self { pending: 0, sequence: 0 }
    }

    /// Bits that wait to be taken.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// Posts so far, modulo 2^32.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Sets bits. If the task is blocked, [`take`](Self::take) has to follow with its mask.
    #[inline]
    pub const fn post(&mut self, mask: u32) {
        if mask != 0 {
            self.pending |= mask;
            self.sequence = self.sequence.wrapping_add(1);
        }
    }

    /// Asks to wait for the bits in `mask`, having seen the count `seen`. `None` means: block.
    ///
    /// Returns if a bit of `mask` is pending, or if posts have happened since. A mask of 0 waits for
    /// no notification, so it always blocks.
    #[inline]
    pub const fn poll(&mut self, mask: u32, seen: u32) -> Option<Woken> {
        if mask == 0 || (self.pending & mask == 0 && self.sequence == seen) {
            return None;
        }
        Some(self.take_now(mask))
    }

    /// Takes bits for a task that is blocked for `mask`. `None` means: it stays blocked.
    #[inline]
    pub const fn take(&mut self, mask: u32) -> Option<Woken> {
        if self.pending & mask == 0 {
            return None;
        }
        Some(self.take_now(mask))
    }

    const fn take_now(&mut self, mask: u32) -> Woken {
        let bits = self.pending & mask;
        self.pending &= !mask;
        Woken { bits, sequence: self.sequence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_before_the_wait_returns_at_once() {
        let mut all = Notifications::new();
        assert_eq!(all.poll(3, 0), None);
        all.post(2);
        assert_eq!(all.poll(3, 0), Some(Woken { bits: 2, sequence: 1 }));
        assert_eq!(all.poll(3, 1), None);
    }

    #[test]
    fn a_post_while_blocked_wakes_only_for_its_bits() {
        let mut all = Notifications::new();
        all.post(4);
        assert_eq!(all.take(3), None);
        all.post(1);
        assert_eq!(all.take(3), Some(Woken { bits: 1, sequence: 2 }));
        assert_eq!(all.pending(), 4);
    }

    #[test]
    fn a_count_that_moved_returns_without_bits() {
        let mut all = Notifications::new();
        all.post(1);
        assert_eq!(all.poll(1, 0), Some(Woken { bits: 1, sequence: 1 }));
        // A second look with the count from before the post.
        assert_eq!(all.poll(1, 0), Some(Woken { bits: 0, sequence: 1 }));
        assert_eq!(all.poll(1, 1), None);
    }

    #[test]
    fn an_empty_mask_blocks_and_an_empty_post_is_none() {
        let mut all = Notifications::new();
        all.post(0);
        assert_eq!(all.sequence(), 0);
        all.post(1);
        assert_eq!(all.poll(0, 0), None);
        assert_eq!(all.pending(), 1);
    }

    #[test]
    fn the_count_wraps() {
        let mut all = Notifications { pending: 0, sequence: u32::MAX };
        all.post(1);
        assert_eq!(all.poll(1, u32::MAX), Some(Woken { bits: 1, sequence: 0 }));
    }
}
