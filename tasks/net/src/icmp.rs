//! ICMP: echo replies, echo requests of clients, and "port unreachable".
//!
//! Echo replies of any size are made here, as reassembled requests have no way back through smoltcp without its fragmentation, which
//! mixes up two datagrams that are sent at a time.

use smoltcp::wire::Ipv4Address;

use net_api::{Address, NetError, PingReply};

use crate::checksum::Sum;
use crate::clients::Clients;
use crate::link::{Link, Mac, SendError};
use crate::packet::{ICMP, IPV4_HEADER, Ipv4Header, word};

/// Bytes of an echo header.
pub const ECHO_HEADER: usize = 8;
/// Most data of an echo request.
pub const MAX_ECHO: usize = 65_507;

const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const CODE_PORT: u8 = 3;
/// Identifier of our echo requests, without the client's number.
const IDENTIFIER: u16 = 0x4c00;
/// Bytes of the offending packet's payload that an error carries (RFC 792).
const QUOTE: usize = 8;

/// Data byte of our requests at an offset: ping's usual pattern.
static PATTERN: [u8; 512] = {
    let mut pattern = [0; 512];
    let mut at = 0;
    while at < 512 {
        pattern[at] = at as u8;
        at += 1;
    }
    pattern
};

/// Takes an intact ICMP message. Returns the client that a reply is for.
pub fn receive<M: Mac>(
    link: &mut Link<'_, M>,
    clients: &mut Clients<'_>,
    header: &Ipv4Header,
    message: &[u8],
) -> Option<usize> {
    if message.len() < ECHO_HEADER {
        link.statistics.drop_malformed += 1;
        return None;
    }
    match message[0] {
        // Requests to everyone are not answered: they serve floods only.
        ECHO_REQUEST if link.is_ours(header.target) => {
            reply(link, header, message);
            None
        }
        ECHO_REPLY => answered(link, clients, header, message),
        _ => None,
    }
}

/// Sends a request back as a reply. Only the type differs, so the checksum is adjusted, not computed (RFC 1624).
fn reply<M: Mac>(link: &mut Link<'_, M>, header: &Ipv4Header, message: &[u8]) {
    let answer = Ipv4Header::new(header.target, header.source, ICMP, message.len());
    let (checksum, carry) = word(message, 2).overflowing_add(u16::from_be_bytes([ECHO_REQUEST - ECHO_REPLY, 0]));
    let checksum = checksum + u16::from(carry);
    let sent = link.send_with(answer, message.len(), |offset, room| {
        room.copy_from_slice(&message[offset..offset + room.len()]);
        if offset == 0 {
            room[0] = ECHO_REPLY;
            room[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
    });
    link.statistics.echoes += u64::from(sent.is_ok());
}

/// Finds the request that a reply answers.
fn answered<M: Mac>(
    link: &Link<'_, M>,
    clients: &mut Clients<'_>,
    header: &Ipv4Header,
    message: &[u8],
) -> Option<usize> {
    let number = usize::from(word(message, 4) ^ IDENTIFIER);
    let sequence = word(message, 6);
    let client = clients.get(number)?;
    let from = header.source.octets();
    let at = client.pings.sent_at(from, sequence)?;
    client.pings.answer(PingReply {
        address: Address(from),
        sequence,
        len: (message.len() - ECHO_HEADER) as u16,
        time_to_live: header.time_to_live.into(),
        micros: (link.now.total_micros() - at).clamp(0, u32::MAX.into()) as u32,
    });
    Some(number)
}

/// Sends an echo request for a client.
///
/// # Errors
/// [`NetError::TooLong`], [`NetError::Unreachable`], [`NetError::WouldBlock`] without a free frame.
pub fn ping<M: Mac>(
    link: &mut Link<'_, M>,
    clients: &mut Clients<'_>,
    number: usize,
    target: Ipv4Address,
    len: usize,
    sequence: u16,
) -> Result<(), NetError> {
    if len > MAX_ECHO {
        return Err(NetError::TooLong);
    }
    let source = link.source_for(target).ok_or(NetError::Unreachable)?;
    let client = clients.get(number).ok_or(NetError::NoWindow)?;
    client.pings.sent(target.octets(), sequence, link.now.total_micros());
    let mut echo = [0; ECHO_HEADER];
    echo[0] = ECHO_REQUEST;
    echo[4..6].copy_from_slice(&(IDENTIFIER ^ number as u16).to_be_bytes());
    echo[6..8].copy_from_slice(&sequence.to_be_bytes());
    let mut sum = Sum::new().bytes(&echo);
    for start in (0..len).step_by(256) {
        sum = sum.bytes(&PATTERN[..(len - start).min(256)]);
    }
    echo[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    let header = Ipv4Header::new(source, target, ICMP, ECHO_HEADER + len);
    link.send_with(header, ECHO_HEADER + len, |offset, room| {
        let (data, at) = if offset == 0 {
            room[..ECHO_HEADER].copy_from_slice(&echo);
            (&mut room[ECHO_HEADER..], 0)
        } else {
            (room, offset - ECHO_HEADER)
        };
        for (start, piece) in data.chunks_mut(256).enumerate() {
            let from = (at + start * 256) % 256;
            piece.copy_from_slice(&PATTERN[from..from + piece.len()]);
        }
    })
    .map_err(|error| match error {
        SendError::NoFrame => NetError::WouldBlock,
        SendError::Unreachable => NetError::Unreachable,
    })
}

/// Tells the sender of a datagram that nobody has its port.
pub fn port_unreachable<M: Mac>(link: &mut Link<'_, M>, header: &Ipv4Header, packet: &[u8]) {
    let quote = &packet[..packet.len().min(header.header_len + QUOTE)];
    let mut head = [UNREACHABLE, CODE_PORT, 0, 0, 0, 0, 0, 0];
    let sum = Sum::new().bytes(&head).bytes(quote);
    head[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    let len = head.len() + quote.len();
    debug_assert!(IPV4_HEADER + len <= crate::packet::MTU);
    let answer = Ipv4Header::new(header.target, header.source, ICMP, len);
    // Without a frame it is simply not sent: errors are advice.
    let _ = link.send_with(answer, len, |_, room| {
        room[..head.len()].copy_from_slice(&head);
        room[head.len()..].copy_from_slice(quote);
    });
}
