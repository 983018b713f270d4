//! What travels between the stack and its clients.
//!
//! All of them have a fixed layout and no padding, so they cross as bytes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Names a socket of the calling client. Never valid again once closed: the high bits count uses of the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct SocketId(pub u32);

impl SocketId {
    /// Places for sockets, of all clients together.
    pub const PLACES: usize = 32;

    /// Builds an id from a place below [`SocketId::PLACES`] and the number of its use.
    #[must_use]
    pub const fn new(place: usize, usage: u32) -> Self {
        Self((place as u32 & 0xff) | usage << 8)
    }

    /// The place: the bit of this socket in what `events` returns.
    #[must_use]
    pub const fn place(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// An IPv4 address as on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(transparent)]
pub struct Address(pub [u8; 4]);

impl core::fmt::Display for Address {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d] = self.0;
        // Through `pad`, so that tables can give a width.
        let mut text = heapless_text::Text::new();
        core::fmt::write(&mut text, format_args!("{a}.{b}.{c}.{d}"))?;
        f.pad(text.as_str())
    }
}

impl core::str::FromStr for Address {
    type Err = BadAddress;

    /// Four decimal numbers with dots between them.
    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let mut parts = text.split('.');
        let mut bytes = [0; 4];
        for byte in &mut bytes {
            let part = parts.next().ok_or(BadAddress)?;
            if part.is_empty() || !part.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(BadAddress);
            }
            *byte = part.parse().map_err(|_| BadAddress)?;
        }
        if parts.next().is_some() {
            return Err(BadAddress);
        }
        Ok(Self(bytes))
    }
}

/// The text is no IPv4 address: it takes four numbers up to 255, as in `10.0.2.2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadAddress;

impl core::fmt::Display for BadAddress {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("not an IPv4 address; it takes four numbers up to 255, as in 10.0.2.2")
    }
}

/// Just enough of a string buffer to format an address.
mod heapless_text {
    /// At most 15 bytes: `255.255.255.255`.
    pub struct Text {
        bytes: [u8; 15],
        len: usize,
    }

    impl Text {
        pub const fn new() -> Self {
            Self { bytes: [0; 15], len: 0 }
        }

        pub fn as_str(&self) -> &str {
            core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
        }
    }

    impl core::fmt::Write for Text {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            let room = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(core::fmt::Error)?;
            room.copy_from_slice(text.as_bytes());
            self.len += text.len();
            Ok(())
        }
    }
}

/// Address and port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Endpoint {
    /// Address; all zero for any.
    pub address: Address,
    /// Port; 0 for none.
    pub port: u16,
    /// Keeps the layout free of padding.
    pub reserved: u16,
}

impl Endpoint {
    /// Address and port.
    #[must_use]
    pub const fn new(address: Address, port: u16) -> Self {
        Self { address, port, reserved: 0 }
    }
}

impl core::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// How a socket is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Options {
    /// Bytes of the receive buffer, 1 KiB to 512 KiB; rounded up to a whole KiB. It lies in the client's window.
    pub receive: u32,
    /// Bytes of the send buffer, likewise.
    pub send: u32,
    /// Bits of [`options`].
    pub flags: u32,
    /// Listeners: connections that may wait to be accepted, 1 to 16, half-open ones included. Each takes both buffers.
    pub backlog: u32,
}

/// Flags of [`Options`].
pub mod options {
    /// Send small segments at once instead of collecting them (RFC 896).
    pub const NO_DELAY: u32 = 1 << 0;
}

impl Options {
    /// Buffers of a size that suits bulk transfer on a local network.
    pub const BULK: Self = Self { receive: 64 << 10, send: 64 << 10, flags: 0, backlog: 2 };

    /// Small buffers for requests and answers.
    pub const SMALL: Self = Self { receive: 4 << 10, send: 4 << 10, flags: 0, backlog: 2 };
}

impl Default for Options {
    fn default() -> Self {
        Self::SMALL
    }
}

/// Where a socket stands, after each step.
///
/// Offsets count from the start of the client's window. Both regions are in one piece; there may be more behind the end of the
/// buffer, which the next step shows once this piece is consumed or committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Step {
    /// Bits of [`state`].
    pub state: u32,
    /// Why it is closed: a value of [`cause`].
    pub cause: u32,
    /// First byte to read.
    pub readable_offset: u32,
    /// Bytes to read there.
    pub readable_len: u32,
    /// First byte to write.
    pub writable_offset: u32,
    /// Bytes that may be written there.
    pub writable_len: u32,
    /// Bytes that wait to be read, all together.
    pub readable_total: u32,
    /// Bytes committed and not yet acknowledged (TCP) or not yet sent (UDP).
    pub unsent: u32,
}

/// Bits of [`Step::state`].
pub mod state {
    /// The connection is being made.
    pub const CONNECTING: u32 = 1 << 0;
    /// Bytes may be committed.
    pub const MAY_SEND: u32 = 1 << 1;
    /// Bytes may still arrive, or wait.
    pub const MAY_RECEIVE: u32 = 1 << 2;
    /// The connection is over in both directions, or the socket never had one.
    pub const CLOSED: u32 = 1 << 3;
    /// A listener: a connection can be accepted.
    pub const ACCEPTABLE: u32 = 1 << 4;
    /// Datagrams were dropped since the last step, as the receive buffer was full.
    pub const DROPPED: u32 = 1 << 5;
}

/// Values of [`Step::cause`].
pub mod cause {
    /// Closed in good order, or not closed.
    pub const NONE: u32 = 0;
    /// The peer reset the connection.
    pub const RESET: u32 = 1;
    /// The peer refused the connection.
    pub const REFUSED: u32 = 2;
    /// The peer did not answer for too long.
    pub const TIMED_OUT: u32 = 3;
    /// Our own address went away.
    pub const ADDRESS_LOST: u32 = 4;
}

/// In front of each datagram in the buffers of a UDP socket. Payload follows, padded to a multiple of eight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DatagramHeader {
    /// The peer's address.
    pub address: Address,
    /// The peer's port.
    pub port: u16,
    /// Bytes of payload, at most [`MAX_DATAGRAM`].
    pub len: u16,
}

/// Bytes of a [`DatagramHeader`].
pub const DATAGRAM_HEADER: usize = size_of::<DatagramHeader>();

/// Longest payload of a UDP datagram.
pub const MAX_DATAGRAM: usize = 65_507;

/// Bytes that a datagram with `len` bytes of payload takes in a buffer.
#[must_use]
pub const fn datagram_space(len: usize) -> usize {
    DATAGRAM_HEADER + len.next_multiple_of(8)
}

/// An accepted connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Accepted {
    /// Its socket.
    pub socket: SocketId,
    /// Who connected.
    pub peer: Endpoint,
}

/// An opened UDP socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Bound {
    /// The socket.
    pub socket: SocketId,
    /// Its port.
    pub port: u16,
    /// Keeps the layout free of padding.
    pub reserved: u16,
}

/// A datagram that was received by copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Datagram {
    /// Who sent it.
    pub peer: Endpoint,
    /// Bytes of its payload, which may be more than the buffer took.
    pub len: u32,
}

/// An echo reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct PingReply {
    /// Who answered.
    pub address: Address,
    /// Sequence number of the request.
    pub sequence: u16,
    /// Bytes of ICMP data.
    pub len: u16,
    /// Time to live that was left.
    pub time_to_live: u32,
    /// Round trip in microseconds, from the hand-over of the request to that of the reply.
    pub micros: u32,
}

/// What `ifconfig` shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InterfaceInfo {
    /// Own address; all zero without one.
    pub address: Address,
    /// Router; all zero without one.
    pub gateway: Address,
    /// Prefix length of the network.
    pub prefix: u8,
    /// 1 if the address comes by DHCP.
    pub dhcp: u8,
    /// 1 while the link is up.
    pub link: u8,
    /// 1 while the MAC driver answers.
    pub driver: u8,
    /// Hardware address.
    pub mac: [u8; 6],
    /// Largest IP packet in one frame.
    pub mtu: u16,
}

/// What the stack counts, from its start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Statistics {
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes in them.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes in them, padding included.
    pub tx_bytes: u64,
    /// Calls to the MAC driver.
    pub exchanges: u64,
    /// Notifications posted to clients.
    pub posts: u64,
    /// Packets whose transport checksum the MAC had verified.
    pub verified_by_mac: u64,
    /// Packets whose transport checksum the stack verified.
    pub verified_in_software: u64,
    /// Payload bytes copied out of frames.
    pub rx_copied: u64,
    /// Payload bytes copied into frames.
    pub tx_copied: u64,
    /// Fragments received.
    pub fragments_received: u64,
    /// Datagrams put together from fragments.
    pub reassembled: u64,
    /// Fragments sent.
    pub fragments_sent: u64,
    /// Echo requests answered.
    pub echoes: u64,
    /// TCP segments received.
    pub tcp_segments: u64,
    /// UDP datagrams delivered.
    pub udp_delivered: u64,
    /// UDP datagrams sent.
    pub udp_sent: u64,
    /// Dropped: shorter than their headers say, or headers that make no sense.
    pub drop_malformed: u64,
    /// Dropped: for another host.
    pub drop_not_ours: u64,
    /// Dropped: neither IPv4 nor ARP, or a transport that we do not speak.
    pub drop_protocol: u64,
    /// Dropped: wrong IPv4 header checksum.
    pub drop_ip_checksum: u64,
    /// Dropped: wrong TCP, UDP or ICMP checksum.
    pub drop_l4_checksum: u64,
    /// Dropped: fragments that cannot be, and datagrams that stayed incomplete.
    pub drop_fragment: u64,
    /// Dropped: UDP for a port that nobody has.
    pub drop_no_port: u64,
    /// Dropped: UDP for a socket whose buffer is full.
    pub drop_udp_full: u64,
    /// Dropped: connection requests beyond a listener's backlog or the client's window.
    pub drop_syn: u64,
    /// Not sent: the neighbour did not answer, or too many packets waited for it.
    pub drop_neighbour: u64,
    /// Not sent: no free frame.
    pub drop_no_frame: u64,
    /// Times that the MAC driver was found dead or restarted.
    pub driver_restarts: u64,
}

/// One row of `netstat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SocketInfo {
    /// Own address and port.
    pub local: Endpoint,
    /// The peer; zero without one.
    pub remote: Endpoint,
    /// Bytes that wait to be read.
    pub received: u32,
    /// Bytes that are committed and not acknowledged.
    pub unsent: u32,
    /// 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// State of RFC 793, numbered as [`TcpState`]; 0 for UDP.
    pub state: u8,
    /// Task index of the owner.
    pub owner: u8,
    /// Keeps the layout free of padding.
    pub reserved: u8,
}

/// States of RFC 793, as `netstat` names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TcpState {
    /// No connection.
    Closed,
    /// Waits for a connection.
    Listen,
    /// Asked for a connection.
    SynSent,
    /// Asked back.
    SynReceived,
    /// Connected.
    Established,
    /// We closed; the peer has not acknowledged.
    FinWait1,
    /// We closed; the peer has acknowledged.
    FinWait2,
    /// The peer closed.
    CloseWait,
    /// Both closed at a time.
    Closing,
    /// The peer closed, then we.
    LastAck,
    /// Over; late segments may come.
    TimeWait,
}

impl TcpState {
    const ALL: [(Self, &'static str); 11] = [
        (Self::Closed, "CLOSED"),
        (Self::Listen, "LISTEN"),
        (Self::SynSent, "SYN_SENT"),
        (Self::SynReceived, "SYN_RECEIVED"),
        (Self::Established, "ESTABLISHED"),
        (Self::FinWait1, "FIN_WAIT_1"),
        (Self::FinWait2, "FIN_WAIT_2"),
        (Self::CloseWait, "CLOSE_WAIT"),
        (Self::Closing, "CLOSING"),
        (Self::LastAck, "LAST_ACK"),
        (Self::TimeWait, "TIME_WAIT"),
    ];

    /// The state for a number in [`SocketInfo`].
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).map(|&(state, _)| state)
    }

    /// As `netstat` prints it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl core::fmt::Display for crate::NetError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::BadSocket => "no such socket",
            Self::BadArgument => "argument out of range",
            Self::NoWindow => "no window: add this task to `windows` of the stack in app.toml",
            Self::NoMemory => "window full: close a socket or enlarge the window in app.toml",
            Self::TooMany => "too many sockets",
            Self::PortInUse => "port in use",
            Self::WouldBlock => "nothing there yet",
            Self::Unreachable => "no address or no route",
            Self::Closed => "connection closed",
            Self::TooLong => "datagram too long",
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn addresses_round_trip() {
        for text in ["0.0.0.0", "10.0.2.15", "255.255.255.255"] {
            assert_eq!(text.parse::<Address>().map(|address| address.to_string()), Ok(text.to_string()));
        }
        for text in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "+1.2.3.4", "1..2.3", "a.b.c.d"] {
            assert_eq!(text.parse::<Address>(), Err(BadAddress), "{text}");
        }
        assert_eq!(std::format!("{:>9}|", Address([1, 2, 3, 4])), "  1.2.3.4|");
    }

    #[test]
    fn states_have_the_number_of_their_place() {
        for (number, (state, name)) in TcpState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, number);
            assert_eq!(state.name(), name);
        }
    }

    #[test]
    fn datagrams_are_padded_to_eight() {
        assert_eq!(datagram_space(0), 8);
        assert_eq!(datagram_space(1), 16);
        assert_eq!(datagram_space(8), 16);
    }
}
