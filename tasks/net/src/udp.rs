//! UDP sockets: rings of datagrams in their clients' windows.
//!
//! A datagram is copied once on its way in, from its frame into the receive ring, and once on its way out, from the send buffer into a
//! frame. smoltcp's sockets would add a copy, and an unresolved neighbour would block them (see [`crate::arp`]).

use smoltcp::wire::Ipv4Address;

use net_api::{Address, DATAGRAM_HEADER, DatagramHeader, MAX_DATAGRAM, Step, datagram_space, state};
use zerocopy::{FromBytes, IntoBytes};

use crate::ring::Ring;

/// Most UDP sockets.
pub const SOCKETS: usize = 16;

/// One socket, or its buffers waiting for the next one.
#[derive(Debug)]
pub struct Socket<'f> {
    client: usize,
    /// Place of its id; `None` if it is closed.
    place: Option<usize>,
    port: u16,
    receive: &'f mut [u8],
    receive_offset: u32,
    ring: Ring,
    send: &'f mut [u8],
    send_offset: u32,
    /// Committed records that are not sent yet lie from `first` to `last`.
    first: usize,
    last: usize,
    dropped: bool,
}

/// What came of taking a record to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// Send this to that address and port; then say [`Socket::sent`].
    Send(Ipv4Address, u16, &'a [u8]),
    /// The client wrote what is no record. All that it committed was dropped.
    Bad,
    /// Nothing is left.
    None,
}

impl Socket<'_> {
    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The first record to send.
    pub fn record(&mut self) -> Record<'_> {
        if self.first == self.last {
            return Record::None;
        }
        let pending = &self.send[self.first..self.last];
        // Read once: the client may write here at any time.
        if let Ok((header, rest)) = DatagramHeader::read_from_prefix(pending)
            && usize::from(header.len) <= MAX_DATAGRAM
            && datagram_space(header.len.into()) <= pending.len()
            && header.port != 0
        {
            return Record::Send(Ipv4Address::from(header.address.0), header.port, &rest[..header.len.into()]);
        }
        self.first = 0;
        self.last = 0;
        Record::Bad
    }

    /// Takes the record off that [`Socket::record`] gave, with `len` bytes of payload.
    pub fn sent(&mut self, len: usize) {
        self.first = (self.first + datagram_space(len)).min(self.last);
        if self.first == self.last {
            self.first = 0;
            self.last = 0;
        }
    }

    /// Makes `len` more bytes of the send buffer records to send. False if it has not as many left.
    pub fn commit(&mut self, len: usize) -> bool {
        if len > self.send.len() - self.last {
            return false;
        }
        self.last += len;
        true
    }

    /// Gives `len` bytes of the receive ring back. False if not as many were readable.
    pub fn consume(&mut self, len: usize) -> bool {
        self.ring.consume(len)
    }

    /// The room in the send buffer, to write a record from a lease into.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.send[self.last..]
    }

    /// The first datagram received.
    #[must_use]
    pub fn peek(&self) -> Option<(DatagramHeader, &[u8])> {
        let (start, len) = self.ring.readable();
        let readable = self.receive.get(start..start + len)?;
        let (header, rest) = DatagramHeader::read_from_prefix(readable).ok()?;
        // The client may have overwritten the header.
        Some((header, rest.get(..header.len.into()).unwrap_or_default()))
    }

    /// Where the socket stands.
    #[must_use]
    pub fn step(&self) -> Step {
        let (start, len) = self.ring.readable();
        Step {
            state: state::MAY_SEND | state::MAY_RECEIVE | if self.dropped { state::DROPPED } else { 0 },
            cause: 0,
            readable_offset: self.receive_offset + start as u32,
            readable_len: len as u32,
            writable_offset: self.send_offset + self.last as u32,
            writable_len: (self.send.len() - self.last) as u32,
            readable_total: len as u32,
            unsent: (self.last - self.first) as u32,
        }
    }

    /// Forgets that datagrams were dropped: the client was told.
    pub fn clear_dropped(&mut self) {
        self.dropped = false;
    }

    /// Puts a datagram into the ring. False if it is full.
    #[inline]
    fn deliver(&mut self, from: Ipv4Address, port: u16, payload: &[u8]) -> bool {
        let space = datagram_space(payload.len());
        let Some(start) = self.ring.reserve(space) else {
            self.dropped = true;
            return false;
        };
        let record = &mut self.receive[start..start + space];
        let header = DatagramHeader { address: Address(from.octets()), port, len: payload.len() as u16 };
        record[..DATAGRAM_HEADER].copy_from_slice(header.as_bytes());
        record[DATAGRAM_HEADER..DATAGRAM_HEADER + payload.len()].copy_from_slice(payload);
        self.ring.commit(space);
        true
    }
}

/// What became of a datagram that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// In the ring of the socket at this index, whose id has this place.
    Taken(usize, usize),
    /// The ring is full.
    Full,
    /// Nobody has this port.
    NoPort,
}

/// All UDP sockets.
#[derive(Debug, Default)]
pub struct Udp<'f> {
    sockets: [Option<Socket<'f>>; SOCKETS],
}

impl<'f> Udp<'f> {
    /// No sockets.
    #[must_use]
    pub fn new() -> Self {
        Self { sockets: core::array::from_fn(|_| None) }
    }

    /// A socket by index.
    #[inline]
    pub fn get(&mut self, at: usize) -> Option<&mut Socket<'f>> {
        self.sockets.get_mut(at)?.as_mut()
    }

    /// True if an open socket has this port.
    #[must_use]
    pub fn has_port(&self, port: u16) -> bool {
        self.find(port).is_some()
    }

    #[inline]
    fn find(&self, port: u16) -> Option<usize> {
        self.sockets
            .iter()
            .position(|socket| socket.as_ref().is_some_and(|socket| socket.port == port && socket.place.is_some()))
    }

    /// Opens closed buffers of this client again that are large enough, the smallest of them.
    pub fn reopen(&mut self, client: usize, receive: usize, send: usize, port: u16) -> Option<usize> {
        let (at, socket) = self
            .sockets
            .iter_mut()
            .enumerate()
            .filter_map(|(at, socket)| Some((at, socket.as_mut()?)))
            .filter(|(_, socket)| {
                socket.client == client
                    && socket.place.is_none()
                    && socket.receive.len() >= receive
                    && socket.send.len() >= send
            })
            .min_by_key(|(_, socket)| socket.receive.len() + socket.send.len())?;
        socket.port = port;
        socket.ring = Ring::new(socket.receive.len());
        socket.first = 0;
        socket.last = 0;
        socket.dropped = false;
        Some(at)
    }

    /// True if there is room for a socket with new buffers.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.sockets.iter().any(Option::is_none)
    }

    /// Adds a socket with new buffers, each given with its offset in the window. `None` if there are too many.
    pub fn add(
        &mut self,
        client: usize,
        port: u16,
        (receive, receive_offset): (&'f mut [u8], u32),
        (send, send_offset): (&'f mut [u8], u32),
    ) -> Option<usize> {
        let at = self.sockets.iter().position(Option::is_none)?;
        self.sockets[at] = Some(Socket {
            client,
            place: None,
            port,
            ring: Ring::new(receive.len()),
            receive,
            receive_offset,
            send,
            send_offset,
            first: 0,
            last: 0,
            dropped: false,
        });
        Some(at)
    }

    /// Ties a socket to its id.
    pub fn set_place(&mut self, at: usize, place: usize) {
        if let Some(socket) = self.get(at) {
            socket.place = Some(place);
        }
    }

    /// Closes a socket; its buffers stay for the next one.
    pub fn close(&mut self, at: usize) {
        if let Some(socket) = self.get(at) {
            socket.place = None;
        }
    }

    /// Bytes of a socket's send buffer.
    #[must_use]
    pub fn capacity(&self, at: usize) -> usize {
        self.sockets.get(at).and_then(Option::as_ref).map_or(0, |socket| socket.send.len())
    }

    /// Delivers a datagram.
    #[inline]
    pub fn deliver(&mut self, from: Ipv4Address, from_port: u16, port: u16, payload: &[u8]) -> Delivery {
        let Some(at) = self.find(port) else {
            return Delivery::NoPort;
        };
        let Some(socket) = self.get(at) else {
            return Delivery::NoPort;
        };
        let place = socket.place;
        if !socket.deliver(from, from_port, payload) {
            return Delivery::Full;
        }
        place.map_or(Delivery::NoPort, |place| Delivery::Taken(at, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Ipv4Address = Ipv4Address::new(10, 0, 0, 9);

    fn open<'f>(udp: &mut Udp<'f>, memory: &'f mut [u8]) -> usize {
        let (a, b) = memory.split_at_mut(64);
        let at = udp.add(0, 7, (a, 0), (b, 64)).expect("room");
        udp.set_place(at, 5);
        at
    }

    #[test]
    fn datagrams_are_records_in_the_ring() {
        let mut memory = [0; 128];
        let mut udp = Udp::new();
        let at = open(&mut udp, &mut memory);
        assert_eq!(udp.deliver(PEER, 99, 8, b"x"), Delivery::NoPort);
        assert_eq!(udp.deliver(PEER, 99, 7, b"hello"), Delivery::Taken(at, 5));
        assert_eq!(udp.deliver(PEER, 99, 7, &[1; 40]), Delivery::Taken(at, 5));
        assert_eq!(udp.deliver(PEER, 99, 7, b""), Delivery::Full);
        let socket = udp.get(at).expect("open");
        assert_eq!(socket.step().readable_len, 64);
        assert_ne!(socket.step().state & state::DROPPED, 0);
        let (header, payload) = socket.peek().expect("a datagram");
        assert_eq!((header.port, payload), (99, &b"hello"[..]));
        assert!(socket.consume(datagram_space(5)));
        assert!(!socket.consume(49));
        assert!(socket.consume(48));
    }

    #[test]
    fn records_to_send_are_checked() {
        let mut memory = [0; 128];
        let mut udp = Udp::new();
        let at = open(&mut udp, &mut memory);
        let socket = udp.get(at).expect("open");
        assert!(!socket.commit(65));
        assert_eq!(socket.record(), Record::None);
        let write = |socket: &mut Socket<'_>, header: DatagramHeader| {
            socket.room()[..8].copy_from_slice(header.as_bytes());
            assert!(socket.commit(16));
            if let Record::Send(_, _, payload) = socket.record() {
                let len = payload.len();
                socket.sent(len);
                Some(len)
            } else {
                assert_eq!(socket.step().unsent, 0);
                None
            }
        };
        let good = DatagramHeader { address: Address([10, 0, 0, 9]), port: 9, len: 8 };
        assert_eq!(write(socket, good), Some(8));
        assert_eq!(write(socket, DatagramHeader { len: 9, ..good }), None);
        assert_eq!(write(socket, DatagramHeader { len: u16::MAX, ..good }), None);
        assert_eq!(write(socket, DatagramHeader { port: 0, ..good }), None);
        assert!(socket.commit(3));
        assert_eq!(socket.record(), Record::Bad);
        assert_eq!(socket.step().writable_len, 64);
    }

    #[test]
    fn closed_buffers_are_used_again() {
        let mut memory = [0; 128];
        let mut udp = Udp::new();
        let at = open(&mut udp, &mut memory);
        udp.deliver(PEER, 99, 7, b"old");
        udp.close(at);
        assert_eq!(udp.deliver(PEER, 99, 7, b"x"), Delivery::NoPort);
        assert_eq!(udp.reopen(1, 64, 64, 8), None);
        assert_eq!(udp.reopen(0, 65, 64, 8), None);
        assert_eq!(udp.reopen(0, 10, 10, 8), Some(at));
        udp.set_place(at, 6);
        assert_eq!(udp.get(at).expect("open").step().readable_len, 0);
        assert_eq!(udp.deliver(PEER, 99, 8, b"x"), Delivery::Taken(at, 6));
    }
}
