//! What the driver counts, and what it collects from the MAC's own counters.

/// Counters since the driver started. They wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Frames received and handed to the stack.
    pub rx_frames: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Receive descriptors without one whole frame; stepped over.
    pub rx_broken: u32,
    /// Frames that the MAC dropped: checksum of frame or content, length, symbol.
    pub rx_bad: u32,
    /// Frames for which there was no buffer, or whose data overran the MAC.
    pub rx_missed: u32,
    /// Frames lost because the receiver was restarted.
    pub rx_lost: u32,
    /// Frames refused: shorter than 60 bytes, or longer than the MAC sends.
    pub tx_refused: u32,
    /// Frames that could not be sent.
    pub tx_errors: u32,
    /// Frames dropped since their handle was no longer valid, or the ring had no room.
    pub stale: u32,
    /// Interrupts.
    pub interrupts: u32,
    /// Exchanges with the stack.
    pub exchanges: u32,
    /// Times the receiver had to be restarted.
    pub rx_restarts: u32,
    /// Times the transmitter had to be restarted.
    pub tx_restarts: u32,
    /// Changes of the link.
    pub link_changes: u32,
}

/// What the MAC counted since it was last asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MacCounts {
    /// Good frames received.
    pub received: u32,
    /// Bad frames dropped.
    pub bad: u32,
    /// Frames without a buffer, and overruns.
    pub missed: u32,
}

/// Places of the MAC's counters in [`Registers::statistics`](crate::regs::Registers), which starts at 0x100.
pub mod place {
    /// Frames received without error.
    pub const RECEIVED: usize = (0x158 - 0x100) / 4;
    /// Undersize, oversize, jabber, FCS, length, symbol and alignment errors.
    pub const BAD: core::ops::RangeInclusive<usize> = (0x184 - 0x100) / 4..=(0x19c - 0x100) / 4;
    /// No buffer, overrun.
    pub const MISSED: core::ops::RangeInclusive<usize> = (0x1a0 - 0x100) / 4..=(0x1a4 - 0x100) / 4;
    /// IP, TCP and UDP checksum errors.
    pub const CHECKSUM: core::ops::RangeInclusive<usize> = (0x1a8 - 0x100) / 4..=(0x1b0 - 0x100) / 4;
}
