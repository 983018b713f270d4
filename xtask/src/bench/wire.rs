//! A host on the board's Ethernet that sends echo requests: frames as bytes, and what comes back.
//!
//! The emulator's user-mode network forwards no ICMP to the board, so this peer sits on the wire itself ([`super::tap`]).

use std::net::Ipv4Addr;

/// Largest IP packet in one frame.
const MTU: usize = 1500;
const IP_HEADER: usize = 20;
const ICMP_HEADER: usize = 8;
const ETHERNET_HEADER: usize = 14;
/// Shortest frame without its checksum.
const SHORTEST: usize = 60;

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const ICMP: u8 = 1;
const ECHO_REQUEST: u8 = 8;
const MORE_FRAGMENTS: u16 = 0x2000;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let sum: u32 =
        bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn frame(to: Mac, from: Mac, kind: u16, payload: &[&[u8]]) -> Vec<u8> {
    let mut frame = [&to[..], &from, &kind.to_be_bytes()].concat();
    payload.iter().for_each(|part| frame.extend_from_slice(part));
    frame.resize(frame.len().max(SHORTEST), 0);
    frame
}

/// What a frame that the board sent means to the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The board asks for our hardware address; answer with this frame.
    Asked(Vec<u8>),
    /// The board's hardware address.
    Board(Mac),
    /// The answer to an echo request, whole: its number and its data.
    Echo(u16, Vec<u8>),
    /// Something else, or a part only.
    Nothing,
}

/// What has come of a datagram in parts.
#[derive(Debug, Default)]
struct Parts {
    identification: u16,
    // Where each starts, and its bytes.
    parts: Vec<(usize, Vec<u8>)>,
    // Known once the last has come.
    whole: Option<usize>,
}

/// A host on the wire.
#[derive(Debug)]
pub struct Host {
    mac: Mac,
    address: Ipv4Addr,
    board: Ipv4Addr,
    board_mac: Option<Mac>,
    identifier: u16,
    parts: Parts,
    packets: u16,
}

impl Host {
    /// One with `address`, for the board at `board`.
    #[must_use]
    pub fn new(address: Ipv4Addr, board: Ipv4Addr) -> Self {
        Self {
            mac: [0x02, 0x4c, 0x48, 0, 0, 0x77],
            address,
            board,
            board_mac: None,
            identifier: 0x4c48,
            parts: Parts::default(),
            packets: 0,
        }
    }

    /// A frame that asks for the board's hardware address.
    #[must_use]
    pub fn ask(&self) -> Vec<u8> {
        self.arp(1, [0xff; 6], [0; 6], self.board)
    }

    fn arp(&self, operation: u16, to: Mac, target_mac: Mac, target: Ipv4Addr) -> Vec<u8> {
        let operation = operation.to_be_bytes();
        frame(
            to,
            self.mac,
            ARP,
            &[&[0, 1, 8, 0, 6, 4], &operation, &self.mac, &self.address.octets(), &target_mac, &target.octets()],
        )
    }

    /// The frames of an echo request; none before the board's hardware address is known.
    pub fn echo(&mut self, number: u16, data: &[u8]) -> Vec<Vec<u8>> {
        let Some(board_mac) = self.board_mac else { return Vec::new() };
        let mut message = vec![ECHO_REQUEST, 0, 0, 0];
        message.extend_from_slice(&self.identifier.to_be_bytes());
        message.extend_from_slice(&number.to_be_bytes());
        message.extend_from_slice(data);
        let sum = checksum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&sum);
        self.packets = self.packets.wrapping_add(1);
        // Parts but the last are a multiple of eight bytes.
        let room = (MTU - IP_HEADER) & !7;
        let count = message.len().div_ceil(room);
        let parts = message.chunks(room).enumerate();
        parts
            .map(|(index, part)| {
                let more = if index + 1 < count { MORE_FRAGMENTS } else { 0 };
                let header = self.ip_header(part.len(), more | (index * room / 8) as u16);
                frame(board_mac, self.mac, IPV4, &[&header, part])
            })
            .collect()
    }

    fn ip_header(&self, len: usize, fragment: u16) -> [u8; IP_HEADER] {
        let mut header = [0; IP_HEADER];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&((IP_HEADER + len) as u16).to_be_bytes());
        header[4..6].copy_from_slice(&self.packets.to_be_bytes());
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header[8] = 64;
        header[9] = ICMP;
        header[12..16].copy_from_slice(&self.address.octets());
        header[16..20].copy_from_slice(&self.board.octets());
        let sum = checksum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        header
    }

    /// Takes a frame that the board sent.
    pub fn take(&mut self, frame: &[u8]) -> Seen {
        let kind = frame.get(12..ETHERNET_HEADER).map(|kind| u16::from_be_bytes([kind[0], kind[1]]));
        match kind {
            Some(ARP) => self.take_arp(&frame[ETHERNET_HEADER..]),
            Some(IPV4) if frame[..6] == self.mac => self.take_ip(&frame[ETHERNET_HEADER..]).unwrap_or(Seen::Nothing),
            _ => Seen::Nothing,
        }
    }

    fn take_arp(&mut self, packet: &[u8]) -> Seen {
        let (Some(operation), Some(sender), Some(target)) = (packet.get(6..8), packet.get(8..18), packet.get(24..28))
        else {
            return Seen::Nothing;
        };
        let Ok(sender_mac) = <Mac>::try_from(&sender[..6]) else { return Seen::Nothing };
        if sender[6..] != self.board.octets() || target != self.address.octets() {
            return Seen::Nothing;
        }
        self.board_mac = Some(sender_mac);
        if operation == [0, 1] {
            Seen::Asked(self.arp(2, sender_mac, sender_mac, self.board))
        } else {
            Seen::Board(sender_mac)
        }
    }

    fn take_ip(&mut self, packet: &[u8]) -> Option<Seen> {
        let header_len = usize::from(packet.first()? & 15) * 4;
        let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
        let (header, rest) = packet.get(..total)?.split_at_checked(header_len)?;
        if header_len < IP_HEADER || header[9] != ICMP || header[12..16] != self.board.octets() || checksum(header) != 0
        {
            return None;
        }
        let identification = u16::from_be_bytes([header[4], header[5]]);
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let (start, more) = (usize::from(fragment & 0x1fff) * 8, fragment & MORE_FRAGMENTS != 0);
        if start == 0 && !more {
            return self.take_icmp(rest);
        }
        if self.parts.identification != identification {
            self.parts = Parts { identification, ..Parts::default() };
        }
        self.parts.parts.push((start, rest.to_vec()));
        if !more {
            self.parts.whole = Some(start + rest.len());
        }
        let whole = self.parts.whole?;
        self.parts.parts.sort();
        let mut message = Vec::new();
        for (start, part) in &self.parts.parts {
            if *start == message.len() {
                message.extend_from_slice(part);
            }
        }
        if message.len() == whole { self.take_icmp(&message) } else { None }
    }

    fn take_icmp(&self, message: &[u8]) -> Option<Seen> {
        let (header, data) = message.split_at_checked(ICMP_HEADER)?;
        let is_ours = header[0] == 0 && header[4..6] == self.identifier.to_be_bytes() && checksum(message) == 0;
        is_ours.then(|| Seen::Echo(u16::from_be_bytes([header[6], header[7]]), data.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOARD: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
    const BOARD_MAC: Mac = [2, 0, 0, 0, 0, 1];

    fn host() -> Host {
        let mut host = Host::new(Ipv4Addr::new(10, 0, 2, 77), BOARD);
        assert!(host.echo(0, b"").is_empty());
        let answer = [
            &host.mac[..],
            &BOARD_MAC,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2],
            &BOARD_MAC,
            &BOARD.octets(),
            &host.mac,
            &host.address.octets(),
        ]
        .concat();
        assert_eq!(host.take(&answer), Seen::Board(BOARD_MAC));
        host
    }

    /// What a board would answer: addresses exchanged, the type changed.
    fn answer(host: &Host, request: &[u8]) -> Vec<u8> {
        let mut frame = request.to_vec();
        frame[..6].copy_from_slice(&host.mac);
        frame[6..12].copy_from_slice(&BOARD_MAC);
        let (source, destination) = (frame[26..30].to_vec(), frame[30..34].to_vec());
        frame[26..30].copy_from_slice(&destination);
        frame[30..34].copy_from_slice(&source);
        if frame[20] & 0x1f == 0 && frame[21] == 0 {
            // A request's checksum, 8 lower in its highest byte.
            let sum = u16::from_be_bytes([frame[36], frame[37]]);
            let (sum, carry) = sum.overflowing_add(0x0800);
            frame[36..38].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
            frame[34] = 0;
        }
        frame
    }

    #[test]
    fn echoes_of_every_size_come_back_whole() {
        for size in [0usize, 1, 56, 1471, 1472, 1473, 1500, 2952, 65_507] {
            let mut host = host();
            let data: Vec<u8> = (0..size).map(|at| at as u8).collect();
            let frames = host.echo(7, &data);
            assert_eq!(frames.len(), (size + 8).div_ceil(1480));
            assert!(frames.iter().all(|frame| frame.len() >= SHORTEST && frame.len() <= ETHERNET_HEADER + MTU));
            // In reverse, so that the last part comes first.
            let answers: Vec<_> = frames.iter().rev().map(|frame| answer(&host, frame)).collect();
            let seen: Vec<Seen> = answers.iter().map(|frame| host.take(frame)).collect();
            assert_eq!(seen.last(), Some(&Seen::Echo(7, data)), "{size}");
            assert!(seen[..seen.len() - 1].iter().all(|seen| *seen == Seen::Nothing));
        }
    }

    #[test]
    fn damage_is_noticed() {
        let mut host = host();
        let request = host.echo(7, b"0123456789").remove(0);
        let good = answer(&host, &request);
        for at in 14..52 {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            assert_eq!(host.take(&bad), Seen::Nothing, "byte {at}");
        }
        assert!(matches!(host.take(&good), Seen::Echo(..)));
        for len in 0..good.len().min(52) {
            assert_eq!(host.take(&good[..len]), Seen::Nothing, "{len} bytes");
        }
    }

    #[test]
    fn the_board_is_answered_when_it_asks_for_us_only() {
        let mut host = host();
        let ask = |target: Ipv4Addr| {
            [
                &[0xff; 6][..],
                &BOARD_MAC,
                &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
                &BOARD_MAC,
                &BOARD.octets(),
                &[0; 6],
                &target.octets(),
            ]
            .concat()
        };
        assert!(
            matches!(host.take(&ask(host.address)), Seen::Asked(frame) if frame[..6] == BOARD_MAC && frame[21] == 2)
        );
        assert_eq!(host.take(&ask(Ipv4Addr::new(10, 0, 2, 2))), Seen::Nothing);
    }
}
