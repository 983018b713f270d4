//! A received frame.

use core::ops::Deref;

use abi::frame::FrameMeta;
use abi::{FrameDesc, PAGE_SIZE};

use crate::Frames;
use crate::memory::Lease;

/// A received frame; derefs to the packet, from the Ethernet header on.
///
/// Dropped, it refills the stock or goes back to the driver. There is never a second one of the same frame:
///
/// ```compile_fail,E0277
/// fn duplicate<T: Clone>() {}
/// duplicate::<frame::RxFrame<'static, 1>>();
/// ```
#[derive(Debug)]
pub struct RxFrame<'f, const C: usize> {
    frames: &'f Frames<C>,
    lease: Lease,
    desc: FrameDesc,
    slot: u16,
}

impl<'f, const C: usize> RxFrame<'f, C> {
    #[inline]
    pub(crate) fn new(frames: &'f Frames<C>, slot: u16, desc: FrameDesc, lease: Lease) -> Self {
        Self { frames, lease, desc, slot }
    }

    /// What the MAC verified.
    #[inline]
    #[must_use]
    pub const fn meta(&self) -> FrameMeta {
        FrameMeta::from_bits_truncate(self.desc.meta)
    }
}

impl<const C: usize> Deref for RxFrame<'_, C> {
    type Target = [u8];

    /// The packet. Empty if the driver's entry makes no sense.
    #[inline]
    fn deref(&self) -> &[u8] {
        let end = usize::from(self.desc.len).min(PAGE_SIZE);
        self.lease.bytes().get(usize::from(self.desc.offset)..end).unwrap_or(&[])
    }
}

impl<const C: usize> Drop for RxFrame<'_, C> {
    #[inline]
    fn drop(&mut self) {
        self.frames.done(self.slot, self.desc);
    }
}
