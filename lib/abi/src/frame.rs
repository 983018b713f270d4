//! Frames and how user code names them.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Names one frame at one stage of its life.
///
/// Bits 0..12 are the frame's index in the image, bits 12..32 its generation.
/// Each hand-over starts a new generation, so a handle that its task has given
/// away is refused even after the frame has come back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct FrameHandle(pub u32);

impl FrameHandle {
    /// Bits of the index.
    pub const INDEX_BITS: u32 = 12;
    /// Generations count modulo this.
    pub const GENERATIONS: u32 = 1 << (32 - Self::INDEX_BITS);

    /// Builds a handle; `index` below 4096, the generation is reduced to 20 bits.
    #[must_use]
    pub const fn new(index: usize, generation: u32) -> Self {
        Self((index as u32 & 0xfff) | generation << Self::INDEX_BITS)
    }

    /// The handle of the frame's next generation, which wraps.
    #[must_use]
    #[inline]
    pub const fn next_generation(self) -> Self {
        Self(self.0.wrapping_add(1 << Self::INDEX_BITS))
    }

    /// Index of the frame among all frames of the image.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & 0xfff) as usize
    }

    /// The generation that this handle is valid for.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.0 >> Self::INDEX_BITS
    }
}

/// One entry of a frame list: a handle, and what the holder says of the content.
///
/// The kernel checks `handle` and `len`; it carries `offset` and `meta`
/// through unread. Aligned to 8, so that an entry is one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(8))]
pub struct FrameDesc {
    /// Which frame.
    pub handle: FrameHandle,
    /// Bytes used, counted from the start of the frame, so `offset` included; at most [`crate::PAGE_SIZE`].
    pub len: u16,
    /// First byte of the packet in the frame, below 256.
    pub offset: u8,
    /// Bits of [`FrameMeta`].
    pub meta: u8,
}

impl FrameDesc {
    /// No frame: the handle of a generation that no frame starts with.
    pub const EMPTY: Self = Self { handle: FrameHandle(0), len: 0, offset: 0, meta: 0 };
}

bitflags::bitflags! {
    /// What a MAC driver says of a frame.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct FrameMeta: u8 {
        /// The MAC verified the IPv4 header checksum.
        const IP_VERIFIED = 1 << 0;
        /// The MAC verified the TCP or UDP checksum.
        const L4_VERIFIED = 1 << 1;
        /// A frame for transmission (else one that was received).
        const TX = 1 << 2;
    }
}

/// Which way the device will use a frame that is armed for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Direction {
    /// The device writes it: caches must hold nothing of it.
    Receive = 0,
    /// The device reads it: memory must hold what the CPU wrote.
    Transmit = 1,
}
