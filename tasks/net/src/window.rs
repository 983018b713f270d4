//! A client's window: memory that it shares with the stack, cut into buffers.
//!
//! A buffer that was cut off stays one for good: when its socket is closed, it is used again for the next socket that
//! asks for no more. So buffers never overlap, and no unsafe code is needed to take them back. A client that always opens
//! sockets of the same sizes, as servers do, never runs out.

/// Buffers start at multiples of this, so that copies and checksums run on aligned memory.
pub const ALIGNMENT: usize = 64;

/// What is left of a window.
#[derive(Debug)]
pub struct Window<'f> {
    base: usize,
    rest: &'f mut [u8],
}

impl<'f> Window<'f> {
    /// Takes the whole window.
    #[must_use]
    pub fn new(memory: &'f mut [u8]) -> Self {
        Self { base: memory.as_ptr() as usize, rest: memory }
    }

    /// Cuts off `first` and `second` bytes. `None`, and nothing is cut, if there is not enough left.
    pub fn cut(&mut self, first: usize, second: usize) -> Option<(&'f mut [u8], &'f mut [u8])> {
        let first_len = first.checked_next_multiple_of(ALIGNMENT)?;
        let second_len = second.checked_next_multiple_of(ALIGNMENT)?;
        if first_len.checked_add(second_len)? > self.rest.len() {
            return None;
        }
        let (a, rest) = core::mem::take(&mut self.rest).split_at_mut(first_len);
        let (b, rest) = rest.split_at_mut(second_len);
        self.rest = rest;
        Some((&mut a[..first], &mut b[..second]))
    }

    /// Bytes not cut off yet.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Where a buffer of this window starts, counted from the window's start.
    #[inline]
    #[must_use]
    pub fn offset(&self, buffer: &[u8]) -> u32 {
        (buffer.as_ptr() as usize).wrapping_sub(self.base) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_do_not_overlap_and_end_with_the_window() {
        let mut memory = std::vec![0; 4096];
        let mut window = Window::new(&mut memory);
        let (a, b) = window.cut(1000, 1000).expect("room");
        assert_eq!((a.len(), b.len()), (1000, 1000));
        assert_eq!((window.offset(a), window.offset(b)), (0, 1024));
        assert!(window.cut(1024, 1025).is_none());
        assert!(window.cut(usize::MAX, 1).is_none());
        assert!(window.cut(1024, 1024).is_some());
        assert_eq!(window.left(), 0);
        assert!(window.cut(0, 1).is_none());
    }
}
