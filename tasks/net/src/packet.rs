//! Headers of Ethernet and IPv4, as far as the stack handles them itself.

use smoltcp::wire::{EthernetAddress, Ipv4Address};

use crate::checksum::Sum;

/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: usize = 14;
/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER: usize = 20;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;
/// Largest IPv4 packet in one frame.
pub const MTU: usize = 1500;
/// Shortest frame, without its check sequence.
pub const MIN_FRAME: usize = 60;
/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
/// EtherType of ARP.
pub const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;

/// Time to live of what we send.
const TIME_TO_LIVE: u8 = 64;
const MORE_FRAGMENTS: u16 = 0x2000;
const DONT_FRAGMENT: u16 = 0x4000;
const OFFSET_MASK: u16 = 0x1fff;

/// Reads a big-endian word. The caller has checked the length; beyond it is 0.
#[inline]
#[must_use]
pub fn word(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

#[inline]
fn address(bytes: &[u8; IPV4_HEADER], at: usize) -> Ipv4Address {
    Ipv4Address::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// Writes an Ethernet header.
#[inline]
pub fn write_ethernet(frame: &mut [u8], target: EthernetAddress, source: EthernetAddress, ethertype: [u8; 2]) {
    frame[..6].copy_from_slice(&target.0);
    frame[6..12].copy_from_slice(&source.0);
    frame[12..14].copy_from_slice(&ethertype);
}

/// An IPv4 header that was read, or is to be written. Options are read over and never written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Header {
    /// Sender.
    pub source: Ipv4Address,
    /// Receiver.
    pub target: Ipv4Address,
    /// Protocol number.
    pub protocol: u8,
    /// Time to live.
    pub time_to_live: u8,
    /// Identification, for fragments.
    pub id: u16,
    /// First byte in the whole datagram.
    pub fragment_offset: usize,
    /// True if fragments follow.
    pub more_fragments: bool,
    /// Bytes of the header.
    pub header_len: usize,
    /// Bytes of header and payload.
    pub total_len: usize,
}

impl Ipv4Header {
    /// A header for an unfragmented packet of ours.
    #[must_use]
    pub const fn new(source: Ipv4Address, target: Ipv4Address, protocol: u8, payload_len: usize) -> Self {
        Self {
            source,
            target,
            protocol,
            time_to_live: TIME_TO_LIVE,
            id: 0,
            fragment_offset: 0,
            more_fragments: false,
            header_len: IPV4_HEADER,
            total_len: IPV4_HEADER + payload_len,
        }
    }

    /// Reads the header at the start of `packet`. `None` if the packet is shorter than it says, or is no IPv4.
    #[inline]
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let header: &[u8; IPV4_HEADER] = packet.first_chunk()?;
        let header_len = usize::from(header[0] & 0xf) * 4;
        let total_len = usize::from(word(header, 2));
        if header[0] >> 4 != 4 || header_len < IPV4_HEADER || total_len < header_len || total_len > packet.len() {
            return None;
        }
        let flags = word(header, 6);
        Some(Self {
            source: address(header, 12),
            target: address(header, 16),
            protocol: header[9],
            time_to_live: header[8],
            id: word(header, 4),
            fragment_offset: usize::from(flags & OFFSET_MASK) * 8,
            more_fragments: flags & MORE_FRAGMENTS != 0,
            header_len,
            total_len,
        })
    }

    /// Writes the header with its checksum. `packet` must have room.
    #[inline]
    pub fn write(&self, packet: &mut [u8]) {
        let fragmented = self.is_fragment();
        let flags = (self.fragment_offset / 8) as u16
            | if self.more_fragments { MORE_FRAGMENTS } else { 0 }
            | if fragmented { 0 } else { DONT_FRAGMENT };
        let mut header = [0; IPV4_HEADER];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&(self.total_len as u16).to_be_bytes());
        header[4..6].copy_from_slice(&self.id.to_be_bytes());
        header[6..8].copy_from_slice(&flags.to_be_bytes());
        header[8] = self.time_to_live;
        header[9] = self.protocol;
        header[12..16].copy_from_slice(&self.source.octets());
        header[16..20].copy_from_slice(&self.target.octets());
        let checksum = Sum::new().bytes(&header).checksum();
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[..IPV4_HEADER].copy_from_slice(&header);
    }

    /// True for a part of a datagram.
    #[inline]
    #[must_use]
    pub const fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }

    /// Verifies the transport checksum of a whole packet's payload. A protocol without one is right.
    #[must_use]
    pub fn verify(&self, payload: &[u8]) -> bool {
        let sum = Sum::new().bytes(payload);
        match self.protocol {
            // A UDP checksum of 0 means that there is none (RFC 768).
            UDP if word(payload, 6) == 0 => true,
            TCP | UDP => self.with_pseudo_header(sum, payload.len()).is_valid(),
            ICMP => sum.is_valid(),
            _ => true,
        }
    }

    /// Adds the pseudo-header for `len` bytes of transport header and payload.
    #[must_use]
    pub fn with_pseudo_header(&self, sum: Sum, len: usize) -> Sum {
        sum.pseudo_header(self.source, self.target, self.protocol, len as u16)
    }
}

/// Fills the checksums of a whole IPv4 packet that has none yet, for MACs that do not insert them.
pub fn fill_checksums(packet: &mut [u8]) {
    let Some(header) = Ipv4Header::parse(packet) else {
        return;
    };
    let (head, payload) = packet[..header.total_len].split_at_mut(header.header_len);
    head[10..12].fill(0);
    let checksum = Sum::new().bytes(head).checksum();
    head[10..12].copy_from_slice(&checksum.to_be_bytes());
    let place = match header.protocol {
        TCP => 16,
        UDP => 6,
        _ => return,
    };
    if header.is_fragment() || payload.len() < place + 2 {
        return;
    }
    payload[place..place + 2].fill(0);
    let sum = header.with_pseudo_header(Sum::new().bytes(payload), payload.len());
    payload[place..place + 2].copy_from_slice(&udp_checksum(sum).to_be_bytes());
}

/// The checksum to store: 0 would mean "none" in UDP, and 0xffff is the same number.
#[must_use]
pub fn udp_checksum(sum: Sum) -> u16 {
    match sum.checksum() {
        0 => 0xffff,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Address = Ipv4Address::new(10, 0, 0, 1);
    const B: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);

    #[test]
    fn what_is_written_is_read() {
        let header =
            Ipv4Header { id: 77, fragment_offset: 1480, more_fragments: true, ..Ipv4Header::new(A, B, UDP, 100) };
        let mut packet = [0; 120];
        header.write(&mut packet);
        assert_eq!(Ipv4Header::parse(&packet), Some(header));
        assert!(Sum::new().bytes(&packet[..20]).is_valid());
        assert_eq!(Ipv4Header::parse(&packet[..119]), None);
        packet[0] = 0x44;
        assert_eq!(Ipv4Header::parse(&packet), None);
        packet[0] = 0x65;
        assert_eq!(Ipv4Header::parse(&packet), None);
    }

    #[test]
    fn filled_checksums_are_verified_and_damage_is_seen() {
        for protocol in [TCP, UDP] {
            let mut packet = [9; 120];
            let header = Ipv4Header::new(A, B, protocol, 100);
            header.write(&mut packet);
            fill_checksums(&mut packet);
            assert!(Sum::new().bytes(&packet[..20]).is_valid());
            assert!(header.verify(&packet[20..]));
            packet[90] ^= 4;
            assert!(!header.verify(&packet[20..]));
        }
    }

    #[test]
    fn udp_without_checksum_is_right() {
        let header = Ipv4Header::new(A, B, UDP, 10);
        assert!(header.verify(&[0, 1, 0, 2, 0, 10, 0, 0, 1, 2]));
        assert!(!header.verify(&[0, 1, 0, 2, 0, 10, 0, 1, 1, 2]));
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_stays_inside(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(header) = Ipv4Header::parse(&bytes) {
                prop_assert!(header.header_len <= header.total_len);
                prop_assert!(header.total_len <= bytes.len());
            }
            let mut bytes = bytes;
            fill_checksums(&mut bytes);
        }
    }
}
