//! A frame to build a packet in.

use core::ops::{Deref, DerefMut};

use abi::PAGE_SIZE;

use crate::Frames;
use crate::memory::Lease;

/// Where packets start in frames for sending: behind it, the IP header is 4-byte aligned.
pub const TX_OFFSET: u8 = 2;

/// A frame to build a packet in; derefs to all room that there is, from where the Ethernet header goes.
///
/// The room holds old bytes. Dropped, the frame goes back to stock.
#[derive(Debug)]
pub struct TxFrame<'f, const C: usize> {
    frames: &'f Frames<C>,
    lease: Lease,
    slot: u16,
    /// Length in the frame of a packet to send, or 0.
    len: u16,
}

impl<'f, const C: usize> TxFrame<'f, C> {
    /// Longest packet, in bytes.
    pub const ROOM: usize = PAGE_SIZE - TX_OFFSET as usize;

    #[inline]
    pub(crate) fn new(frames: &'f Frames<C>, slot: u16, lease: Lease) -> Self {
        Self { frames, lease, slot, len: 0 }
    }

    /// Sends the first `len` bytes, with the next call to the driver.
    ///
    /// # Errors
    /// The frame itself, if `len` is over [`ROOM`](Self::ROOM).
    #[inline]
    pub fn send(mut self, len: usize) -> Result<(), Self> {
        if len > Self::ROOM {
            return Err(self);
        }
        self.len = len as u16 + u16::from(TX_OFFSET);
        Ok(())
    }
}

impl<const C: usize> Deref for TxFrame<'_, C> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.lease.bytes()[TX_OFFSET.into()..]
    }
}

impl<const C: usize> DerefMut for TxFrame<'_, C> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.lease.bytes_mut()[TX_OFFSET.into()..]
    }
}

impl<const C: usize> Drop for TxFrame<'_, C> {
    #[inline]
    fn drop(&mut self) {
        if self.len == 0 {
            self.frames.restock(self.slot);
        } else {
            self.frames.put_out_tx(self.slot, self.len, TX_OFFSET);
        }
    }
}
