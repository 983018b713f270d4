//! What the driver counts, and what it collects from the MAC's own counters.

use core::ops::RangeInclusive;

/// Counters since the driver started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Frames received and handed to the stack.
    pub rx_frames: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    /// Frames taken back from the transmit ring.
    pub tx_frames: u64,
    /// Bytes queued for sending, without FCS.
    pub tx_bytes: u64,
    /// Receive descriptors without one whole frame; stepped over.
    pub rx_broken: u64,
    /// Frames lost because the receiver was restarted, or the stack could not take them.
    pub rx_lost: u64,
    /// Frames that came back unsent: shorter than 60 bytes, longer than the MAC sends, or without room.
    pub tx_dropped: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
    /// Frames dropped since their handle was no longer valid.
    pub stale: u64,
    /// Interrupts.
    pub interrupts: u64,
    /// Exchanges with the stack.
    pub exchanges: u64,
    /// Times the receiver had to be restarted.
    pub rx_restarts: u64,
    /// Times the transmitter had to be restarted.
    pub tx_restarts: u64,
    /// Changes of the link.
    pub link_changes: u64,
    /// What the MAC counted.
    pub mac: MacCounts,
}

/// What the MAC counts itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MacCounts {
    /// Good frames received.
    pub received: u64,
    /// Bad frames dropped: length, FCS, symbols, checksums of the content.
    pub bad: u64,
    /// Frames for which there was no buffer.
    pub no_buffer: u64,
    /// Frames whose data came faster than memory took it.
    pub overruns: u64,
    /// Collisions.
    pub collisions: u64,
}

impl MacCounts {
    /// Adds what was counted since.
    pub fn add(&mut self, more: &Self) {
        self.received += more.received;
        self.bad += more.bad;
        self.no_buffer += more.no_buffer;
        self.overruns += more.overruns;
        self.collisions += more.collisions;
    }
}

/// Place of a counter in [`Registers::statistics`](crate::regs::Registers), which starts at 0x100.
const fn place(offset: usize) -> usize {
    (offset - 0x100) / 4
}

/// Single, multiple, excessive and late collisions.
pub const COLLISIONS: RangeInclusive<usize> = place(0x138)..=place(0x144);
/// Frames received without error.
pub const RECEIVED: usize = place(0x158);
/// Undersize, oversize, jabber, FCS, length, symbol and alignment errors.
pub const BAD: RangeInclusive<usize> = place(0x184)..=place(0x19c);
/// No buffer.
pub const NO_BUFFER: usize = place(0x1a0);
/// Overrun.
pub const OVERRUNS: usize = place(0x1a4);
/// IP, TCP and UDP checksum errors.
pub const CHECKSUM: RangeInclusive<usize> = place(0x1a8)..=place(0x1b0);
