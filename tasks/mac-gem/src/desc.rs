//! Descriptors as the MAC reads and writes them.
//!
//! A descriptor has two 32-bit words, or four in the 64-bit mode (words 2 and 3 then hold the upper half of the address).
//! Source: Zynq UltraScale+ TRM (UG1085), chapter "Gigabit Ethernet Controller", tables of the buffer descriptors.

/// Bits of word 0 of a receive descriptor; the rest is the buffer's address.
pub mod rx_address {
    /// Software's: the MAC has written the buffer, or none is there. The MAC sets it, software clears it.
    pub const USED: u32 = 1 << 0;
    /// Last descriptor of the ring.
    pub const WRAP: u32 = 1 << 1;
    /// The address bits.
    pub const ADDRESS: u32 = !3;
}

/// Bits of word 1 of a receive descriptor. Valid when `USED` is set.
pub mod rx_status {
    /// Where the two bits of the checksum result start: 0 not verified, 1 IPv4 header, 2 and TCP, 3 and UDP.
    pub const CHECKSUM_SHIFT: u32 = 22;
    /// The buffer holds the end of a frame.
    pub const END: u32 = 1 << 15;
    /// The buffer holds the start of a frame.
    pub const START: u32 = 1 << 14;
    /// Length of the frame, in the descriptor with [`END`], without the offset in front.
    pub const LENGTH: u32 = 0x1fff;
}

/// Bits of word 1 of a transmit descriptor. Word 0 is the address.
pub mod tx_control {
    /// Software's. The MAC stops here, and sets it when it has sent the frame.
    pub const USED: u32 = 1 << 31;
    /// Last descriptor of the ring.
    pub const WRAP: u32 = 1 << 30;
    /// Too many collisions.
    pub const RETRY_LIMIT: u32 = 1 << 29;
    /// The frame could not be fetched.
    pub const BUS_ERROR: u32 = 1 << 27;
    /// Collision after the first 64 bytes.
    pub const LATE_COLLISION: u32 = 1 << 26;
    /// The buffer holds the end of the frame.
    pub const LAST: u32 = 1 << 15;
    /// All that say the frame was not sent.
    pub const ERRORS: u32 = RETRY_LIMIT | BUS_ERROR | LATE_COLLISION;
    /// Bytes of the frame.
    pub const LENGTH: u32 = 0x3fff;
}

/// What a receive descriptor says of a frame: the bits of `abi::frame::FrameMeta` for bits 23:22 of the status.
///
/// 1 is the IPv4 header alone, 2 and 3 are header and TCP or UDP.
#[inline]
#[must_use]
pub const fn verified(status: u32) -> u8 {
    let result = (status >> rx_status::CHECKSUM_SHIFT) as u8 & 3;
    // Bit 0 (IP_VERIFIED) if not zero, bit 1 (L4_VERIFIED) if 2 or 3.
    ((result | result >> 1) & 1) | (result & 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::frame::FrameMeta;

    #[test]
    fn checksum_result_becomes_meta() {
        let both = FrameMeta::IP_VERIFIED | FrameMeta::L4_VERIFIED;
        for (result, meta) in [(0, FrameMeta::empty()), (1, FrameMeta::IP_VERIFIED), (2, both), (3, both)] {
            // All other bits set: none may leak into the result.
            let status = !(3 << rx_status::CHECKSUM_SHIFT) | result << rx_status::CHECKSUM_SHIFT;
            assert_eq!(verified(status), meta.bits());
        }
    }
}
