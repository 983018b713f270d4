//! TCP connections: smoltcp sockets, one to a set.
//!
//! smoltcp looks at every socket of a set for each segment and for each round of sending. Here each socket has a set of its own, and a segment
//! finds its socket by address and ports, so the cost of a segment does not depend on how many sockets there are; after a batch
//! only the sockets that something happened to are asked what they have to send.
//!
//! Buffers lie in the client's window and are tied to their socket for good (see [`crate::window`]): a closed socket is
//! parked and used again.

use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpAddress, IpEndpoint, Ipv4Address};

use net_api::{NetError, Step, cause, options, state};

use crate::clients::Listener;
use crate::device::Device;
use crate::link::{Link, Mac};
use crate::packet::{Ipv4Header, word};
use crate::window::Window;

/// Most connections, in all states.
pub const SLOTS: usize = 24;
/// Half-open connections are given up after this.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A half-open connection this old gives way to a new one when its listener has no room.
const GIVES_WAY: Duration = Duration::from_millis(500);
/// A peer that says nothing for this long, keep-alives included, is gone.
const SILENCE: Duration = Duration::from_secs(90);
/// An idle connection is checked at this interval.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// A connection that we closed, and the peer does not, is cut after this.
const LINGER: Duration = Duration::from_secs(60);
/// A deadline in the past that did not go away by polling is looked at again after this, not at once.
const STALE: Duration = Duration::from_millis(10);

/// No deadline.
const NEVER: Instant = Instant::from_micros_const(i64::MAX);

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Who a connection belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// No socket, no buffers yet.
    Unused,
    /// Closed; buffers wait for the next connection.
    Parked,
    /// Asked for at the listener with this place, not accepted yet.
    Pending(usize),
    /// The client's socket with this place.
    Open(usize),
    /// Closed by its client; the rest is between us and the peer.
    Closing,
}

/// One connection.
#[derive(Debug)]
pub struct Slot<'f> {
    set: SocketSet<'f>,
    handle: SocketHandle,
    /// Who it belongs to.
    pub role: Role,
    /// Number of its client.
    pub client: usize,
    receive: usize,
    send: usize,
    since: Instant,
    deadline: Option<Instant>,
    cause: u32,
    was: State,
}

/// All connections.
#[derive(Debug)]
pub struct Tcp<'f> {
    slots: [Slot<'f>; SLOTS],
    /// Remote address, remote port, own port of each slot; 0 without a connection.
    keys: [u64; SLOTS],
    last: usize,
    /// A set without sockets: what is sent to nobody gets its reset from it.
    nobody: SocketSet<'f>,
    /// Slots that may have something to send or to tell.
    dirty: u32,
    /// No slot's deadline is before this. It may be too early, as deadlines move away unnoticed.
    earliest: Instant,
    next_port: u16,
}

/// What a segment led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// A socket, or the reset for it, has it.
    Taken,
    /// It makes no sense.
    Malformed,
    /// A connection request beyond what its listener takes. The peer will ask again.
    NoRoom,
}

/// Places in memory for smoltcp's sockets.
pub type Storage<'f> = [SocketStorage<'f>; SLOTS];

const fn key(remote: Ipv4Address, remote_port: u16, port: u16) -> u64 {
    (remote.to_bits() as u64) << 32 | (remote_port as u64) << 16 | port as u64
}

impl<'f> Slot<'f> {
    fn socket(&mut self) -> Option<&mut Socket<'f>> {
        (self.role != Role::Unused).then(|| self.set.get_mut::<Socket<'f>>(self.handle))
    }

    fn state(&self) -> State {
        if self.role == Role::Unused { State::Closed } else { self.set.get::<Socket<'f>>(self.handle).state() }
    }
}

impl<'f> Tcp<'f> {
    /// No connections. `storage` is for the sockets to come.
    #[must_use]
    pub fn new(storage: &'f mut Storage<'f>) -> Self {
        let mut storage = storage.iter_mut();
        Self {
            slots: core::array::from_fn(|_| {
                let place: &'f mut [SocketStorage<'f>] = storage.next().map_or(&mut [], core::slice::from_mut);
                Slot {
                    set: SocketSet::new(place),
                    handle: SocketHandle::default(),
                    role: Role::Unused,
                    client: 0,
                    receive: 0,
                    send: 0,
                    since: Instant::ZERO,
                    deadline: None,
                    cause: cause::NONE,
                    was: State::Closed,
                }
            }),
            keys: [0; SLOTS],
            last: 0,
            nobody: SocketSet::new(&mut [][..]),
            dirty: 0,
            earliest: NEVER,
            next_port: 49_152,
        }
    }

    /// A slot by index.
    #[must_use]
    pub fn slot(&self, at: usize) -> &Slot<'f> {
        &self.slots[at]
    }

    /// Notes that a slot may have something to send or to tell.
    #[inline]
    pub const fn touch(&mut self, at: usize) {
        self.dirty |= 1 << at;
    }

    /// Takes the slots that something happened to.
    #[inline]
    pub const fn take_dirty(&mut self) -> u32 {
        core::mem::replace(&mut self.dirty, 0)
    }

    #[inline]
    fn find(&mut self, key: u64) -> Option<usize> {
        if self.keys[self.last] == key {
            return Some(self.last);
        }
        let at = self.keys.iter().position(|&other| other == key)?;
        self.last = at;
        Some(at)
    }

    /// Takes a segment that is intact. `listener` looks up who listens on a port; `window` gives the window of a client.
    pub fn input<M: Mac>(
        &mut self,
        iface: &mut Interface,
        link: &mut Link<'f, M>,
        header: &Ipv4Header,
        packet: &[u8],
        mut listen: impl FnMut(&mut Self, u16) -> Listen,
    ) -> Input {
        let segment = &packet[header.header_len..];
        let Some(&flags) = segment.get(13) else {
            return Input::Malformed;
        };
        let (remote_port, port) = (word(segment, 0), word(segment, 2));
        let key = key(header.source, remote_port, port);
        let mut found = self.find(key);
        let is_request = flags & (SYN | ACK | RST) == SYN;
        if let Some(at) = found
            && is_request
            && self.slots[at].state() == State::TimeWait
        {
            // The same ports again: the old connection is over (RFC 1122, section 4.2.2.13).
            self.abandon(at);
            found = None;
        }
        if found.is_none() && is_request {
            match listen(self, port) {
                Listen::Slot(at) => {
                    self.keys[at] = key;
                    found = Some(at);
                }
                Listen::NoRoom => return Input::NoRoom,
                Listen::Nobody => {}
            }
        }
        let mut device = Device::with(link, packet);
        let now = device.now();
        match found {
            Some(at) => {
                self.last = at;
                let slot = &mut self.slots[at];
                iface.poll_ingress_single(now, &mut device, &mut slot.set);
                self.dirty |= 1 << at;
            }
            None => {
                iface.poll_ingress_single(now, &mut device, &mut self.nobody);
            }
        }
        Input::Taken
    }

    /// Notes how a connection ended, if a segment that just came ended it. To be called before [`Tcp::egress`], which may end it by time.
    fn note_end(slot: &mut Slot<'_>) {
        if slot.state() == State::Closed && slot.cause == cause::NONE {
            slot.cause = match slot.was {
                State::SynSent => cause::REFUSED,
                State::LastAck | State::Closing | State::TimeWait | State::Closed => cause::NONE,
                _ => cause::RESET,
            };
        }
    }

    /// Lets a slot send what it has, and asks it when it wants to be asked again.
    pub fn egress<M: Mac>(&mut self, at: usize, iface: &mut Interface, link: &mut Link<'f, M>) {
        let slot = &mut self.slots[at];
        if slot.role == Role::Unused {
            return;
        }
        Self::note_end(slot);
        let now = link.now;
        loop {
            let mut device = Device::sender(link);
            if iface.poll_egress(now, &mut device, &mut slot.set) == PollResult::None {
                break;
            }
        }
        slot.deadline = iface.poll_at(now, &slot.set).map(|at| if at <= now { now + STALE } else { at });
        if let Some(deadline) = slot.deadline {
            self.earliest = self.earliest.min(deadline);
        }
    }

    /// Follows a slot's state after something happened. Returns who should hear of it.
    pub fn settle(&mut self, at: usize, now: Instant) -> Settled {
        let slot = &mut self.slots[at];
        let role = slot.role;
        let Some(socket) = slot.socket() else {
            return Settled::Nothing;
        };
        let (state, unread) = (socket.state(), socket.can_recv());
        let gone = state == State::Closed && socket.remote_endpoint().is_none();
        let was = core::mem::replace(&mut slot.was, state);
        if state == State::Closed && was != State::Closed && slot.cause == cause::NONE {
            // Segments that end a connection were noted as they came; this one ended by time, or lost its address.
            slot.cause = if was == State::TimeWait || was == State::Listen { cause::NONE } else { cause::TIMED_OUT };
        }
        if gone {
            self.keys[at] = 0;
        }
        match role {
            Role::Unused | Role::Parked => Settled::Nothing,
            Role::Closing if gone => {
                self.park(at);
                Settled::Nothing
            }
            Role::Closing if unread => {
                // Nobody will read it: tell the peer, as it may wait for an answer.
                self.abort(at);
                Settled::Again
            }
            Role::Closing => Settled::Nothing,
            Role::Pending(_) if gone || state == State::Listen => {
                self.abandon(at);
                Settled::Nothing
            }
            Role::Pending(place) if was == State::SynReceived && state != was => {
                self.slots[at].since = now;
                Settled::Arrived(place)
            }
            Role::Pending(_) => Settled::Nothing,
            Role::Open(place) => Settled::Changed(place),
        }
    }

    /// Gets a slot for a connection of `client` with these buffers: a parked one, a new one, or one whose connection is over.
    ///
    /// # Errors
    /// [`NetError::TooMany`], [`NetError::NoMemory`].
    pub fn allocate(
        &mut self,
        client: usize,
        window: &mut Window<'f>,
        receive: usize,
        send: usize,
    ) -> Result<usize, NetError> {
        let receive = receive_capacity(receive);
        let fits = |slot: &Slot<'_>| slot.client == client && slot.receive >= receive && slot.send >= send;
        let smallest = (0..SLOTS)
            .filter(|&at| self.slots[at].role == Role::Parked && fits(&self.slots[at]))
            .min_by_key(|&at| self.slots[at].receive + self.slots[at].send);
        if let Some(at) = smallest {
            return Ok(at);
        }
        let unused = self.slots.iter().position(|slot| slot.role == Role::Unused);
        if let Some(at) = unused
            && let Some((rx, tx)) = window.cut(receive, send)
        {
            let slot = &mut self.slots[at];
            slot.handle = slot.set.add(Socket::new(SocketBuffer::new(rx), SocketBuffer::new(tx)));
            slot.client = client;
            slot.receive = receive;
            slot.send = send;
            slot.role = Role::Parked;
            return Ok(at);
        }
        let over = (0..SLOTS)
            .filter(|&at| self.slots[at].role == Role::Closing && fits(&self.slots[at]))
            .filter(|&at| self.slots[at].state() == State::TimeWait)
            .min_by_key(|&at| self.slots[at].since);
        match over {
            Some(at) => {
                self.abandon(at);
                Ok(at)
            }
            None if unused.is_none() => Err(NetError::TooMany),
            None => Err(NetError::NoMemory),
        }
    }

    /// Prepares a slot for use.
    fn prepare(&mut self, at: usize, role: Role, flags: u32, now: Instant) {
        let slot = &mut self.slots[at];
        slot.role = role;
        slot.since = now;
        slot.cause = cause::NONE;
        slot.deadline = None;
        if let Some(socket) = slot.socket() {
            socket.set_congestion_control(CongestionControl::Reno);
            socket.set_nagle_enabled(flags & options::NO_DELAY == 0);
            socket.set_timeout(Some(SILENCE));
            socket.set_keep_alive(Some(KEEP_ALIVE));
        }
    }

    /// Finds room for a connection that is asked for at a listener.
    pub fn request(
        &mut self,
        (place, client, listener): (usize, usize, Listener),
        window: &mut Window<'f>,
        now: Instant,
    ) -> Listen {
        let waiting = |slot: &Slot<'_>| slot.role == Role::Pending(place);
        if self.slots.iter().filter(|slot| waiting(slot)).count() >= listener.backlog as usize {
            let oldest = (0..SLOTS)
                .filter(|&at| waiting(&self.slots[at]))
                .filter(|&at| self.slots[at].state() == State::SynReceived)
                .min_by_key(|&at| self.slots[at].since);
            match oldest {
                Some(at) if self.slots[at].since + GIVES_WAY <= now => self.abandon(at),
                _ => return Listen::NoRoom,
            }
        }
        let Ok(at) = self.allocate(client, window, listener.receive, listener.send) else {
            return Listen::NoRoom;
        };
        self.prepare(at, Role::Pending(place), listener.flags, now);
        let slot = &mut self.slots[at];
        slot.was = State::SynReceived;
        match slot.socket().map(|socket| socket.listen(listener.port)) {
            Some(Ok(())) => Listen::Slot(at),
            _ => {
                self.park(at);
                Listen::NoRoom
            }
        }
    }

    /// The connection that has waited longest to be accepted at a listener.
    pub fn acceptable(&self, place: usize) -> Option<usize> {
        (0..SLOTS)
            .filter(|&at| self.slots[at].role == Role::Pending(place))
            .filter(|&at| !matches!(self.slots[at].state(), State::SynReceived | State::Listen | State::Closed))
            .min_by_key(|&at| self.slots[at].since)
    }

    /// Gives a connection to its client.
    pub fn accept(&mut self, at: usize, place: usize) {
        self.slots[at].role = Role::Open(place);
    }

    /// The peer of a connection.
    pub fn peer(&mut self, at: usize) -> Option<IpEndpoint> {
        self.slots[at].socket()?.remote_endpoint()
    }

    /// Starts a connection on an allocated slot.
    ///
    /// # Errors
    /// [`NetError::Unreachable`] without an address; [`NetError::PortInUse`] if no port is free.
    pub fn connect(
        &mut self,
        at: usize,
        iface: &mut Interface,
        remote: (Ipv4Address, u16),
        flags: u32,
        now: Instant,
    ) -> Result<(), NetError> {
        let (address, remote_port) = remote;
        let port = self.free_port().ok_or(NetError::PortInUse)?;
        self.prepare(at, Role::Closing, flags, now);
        let slot = &mut self.slots[at];
        let target = IpEndpoint::new(IpAddress::Ipv4(address), remote_port);
        let result = slot.socket().ok_or(NetError::BadSocket)?.connect(iface.context(), target, port);
        if result.is_err() {
            self.park(at);
            return Err(NetError::Unreachable);
        }
        slot.was = State::SynSent;
        self.keys[at] = key(address, remote_port, port);
        self.touch(at);
        Ok(())
    }

    /// A port for a connection of ours, from the range that RFC 6335 leaves for it.
    fn free_port(&mut self) -> Option<u16> {
        for _ in 0..=SLOTS {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { 49_152 } else { port + 1 };
            if self.keys.iter().all(|&key| key as u16 != port) {
                return Some(port);
            }
        }
        None
    }

    /// Gives `consume` bytes back that were read, and sends `commit` bytes that were written at `told`.
    ///
    /// # Errors
    /// [`NetError::BadArgument`] if it is more than was offered, [`NetError::Closed`].
    pub fn transfer(
        &mut self,
        at: usize,
        consume: usize,
        commit: usize,
        told: &Step,
        window: &Window<'f>,
    ) -> Result<(), NetError> {
        let socket = self.slots[at].socket().ok_or(NetError::BadSocket)?;
        if consume > 0 {
            let readable = socket.peek(usize::MAX).map_or(0, <[u8]>::len);
            if consume > readable {
                return Err(NetError::BadArgument);
            }
            socket.recv(|_| (consume, ())).map_err(|_| NetError::Closed)?;
        }
        if commit > 0 {
            if commit > told.writable_len as usize {
                return Err(NetError::BadArgument);
            }
            socket.send(|room| enqueue(room, commit, told, window)).map_err(|_| NetError::Closed)??;
        }
        if consume | commit != 0 {
            self.touch(at);
        }
        Ok(())
    }

    /// Where a connection stands.
    pub fn step(&mut self, at: usize, window: &Window<'f>) -> Step {
        let slot = &mut self.slots[at];
        let mut step = Step { cause: slot.cause, ..Step::default() };
        let Some(socket) = slot.socket() else {
            return step;
        };
        let bit = |condition: bool, bit: u32| if condition { bit } else { 0 };
        let connecting = matches!(socket.state(), State::SynSent | State::SynReceived);
        step.state = bit(connecting, state::CONNECTING)
            | bit(socket.may_send(), state::MAY_SEND)
            | bit(socket.may_recv(), state::MAY_RECEIVE);
        step.state |= bit(step.state == 0, state::CLOSED);
        step.readable_total = socket.recv_queue() as u32;
        step.unsent = socket.send_queue() as u32;
        if let Ok(data) = socket.peek(usize::MAX) {
            step.readable_offset = window.offset(data);
            step.readable_len = data.len() as u32;
        }
        if let Ok((offset, len)) = socket.send(|room| (0, (window.offset(room), room.len()))) {
            step.writable_offset = offset;
            step.writable_len = len as u32;
        }
        step
    }

    /// The readable bytes in one piece.
    pub fn peek(&mut self, at: usize) -> &[u8] {
        self.slots[at].socket().and_then(|socket| socket.peek(usize::MAX).ok()).unwrap_or_default()
    }

    /// Lets `fill` write into the room of the send buffer; it returns how much it wrote.
    ///
    /// # Errors
    /// [`NetError::Closed`]; or what `fill` returns.
    pub fn fill(
        &mut self,
        at: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, NetError>,
    ) -> Result<usize, NetError> {
        let socket = self.slots[at].socket().ok_or(NetError::BadSocket)?;
        let len = socket
            .send(|room| {
                let room_len = room.len();
                let result = fill(room).map(|len| len.min(room_len));
                (result.unwrap_or(0), result)
            })
            .map_err(|_| NetError::Closed)??;
        self.touch(at);
        Ok(len)
    }

    /// Bytes of a connection's send buffer.
    #[must_use]
    pub const fn capacity(&self, at: usize) -> usize {
        self.slots[at].send
    }

    /// Local and remote end, and state, for `netstat`.
    pub fn describe(&mut self, at: usize) -> Option<(State, Option<IpEndpoint>, Option<IpEndpoint>)> {
        let slot = &mut self.slots[at];
        if matches!(slot.role, Role::Unused | Role::Parked) {
            return None;
        }
        let socket = slot.socket()?;
        Some((socket.state(), socket.local_endpoint(), socket.remote_endpoint()))
    }

    /// Closes the sending direction.
    pub fn shutdown(&mut self, at: usize) {
        if let Some(socket) = self.slots[at].socket() {
            socket.close();
            self.touch(at);
        }
    }

    /// The client is done with a connection: it is closed in good order, or cut if `cut` or if something is left unread.
    pub fn release(&mut self, at: usize, cut: bool, now: Instant) {
        let slot = &mut self.slots[at];
        slot.role = Role::Closing;
        slot.since = now;
        let Some(socket) = slot.socket() else {
            return;
        };
        if cut || socket.can_recv() || matches!(socket.state(), State::SynSent) {
            self.abort(at);
        } else {
            socket.close();
        }
        self.touch(at);
    }

    /// Closes a connection at once; its reset is sent with the next egress.
    fn abort(&mut self, at: usize) {
        if let Some(socket) = self.slots[at].socket() {
            socket.abort();
        }
        self.touch(at);
    }

    /// Forgets a connection without another word.
    fn abandon(&mut self, at: usize) {
        if let Some(socket) = self.slots[at].socket() {
            socket.abort();
        }
        self.park(at);
    }

    fn park(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        slot.role = Role::Parked;
        slot.deadline = None;
        slot.was = State::Closed;
        self.keys[at] = 0;
        self.dirty &= !(1 << at);
    }

    /// Cuts all connections that wait at a listener.
    pub fn close_listener(&mut self, place: usize) {
        for at in 0..SLOTS {
            if self.slots[at].role == Role::Pending(place) {
                self.slots[at].role = Role::Closing;
                self.abort(at);
            }
        }
    }

    /// Marks the slots whose time has come.
    #[inline]
    pub fn tick(&mut self, now: Instant) {
        if now >= self.earliest {
            self.expire(now);
        }
    }

    fn expire(&mut self, now: Instant) {
        self.earliest = NEVER;
        for (at, slot) in self.slots.iter().enumerate() {
            match slot.deadline {
                Some(deadline) if deadline <= now => self.dirty |= 1 << at,
                Some(deadline) => self.earliest = self.earliest.min(deadline),
                None => {}
            }
        }
    }

    /// Gives up what has taken too long. To be called about once a second.
    pub fn sweep(&mut self, now: Instant) {
        for at in 0..SLOTS {
            let slot = &mut self.slots[at];
            let age = now - slot.since;
            let (role, state) = (slot.role, slot.state());
            match (role, state) {
                (Role::Pending(_), State::SynReceived) if age >= HANDSHAKE => self.abandon(at),
                (Role::Open(_), State::SynSent) if age >= HANDSHAKE * 3 => {
                    self.slots[at].cause = cause::TIMED_OUT;
                    self.abort(at);
                }
                (Role::Closing, _) if state != State::TimeWait && age >= LINGER => self.abort(at),
                _ => {}
            }
        }
    }

    /// When [`Tcp::tick`] may have something to do next.
    #[inline]
    #[must_use]
    pub const fn next_due(&self) -> Instant {
        self.earliest
    }

    /// Our address is gone: every connection is asked, and smoltcp closes those that used it.
    pub fn address_lost(&mut self) {
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if matches!(slot.role, Role::Open(_) | Role::Pending(_) | Role::Closing) {
                if slot.cause == cause::NONE && slot.state() != State::Closed {
                    slot.cause = cause::ADDRESS_LOST;
                }
                self.dirty |= 1 << at;
            }
        }
    }
}

/// Room for a connection request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listen {
    /// This slot listens for it.
    Slot(usize),
    /// The listener has no room.
    NoRoom,
    /// Nobody listens on the port.
    Nobody,
}

/// Who should hear of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Nobody.
    Nothing,
    /// The slot has to send once more.
    Again,
    /// The listener with this place: a connection can be accepted.
    Arrived(usize),
    /// The socket with this place.
    Changed(usize),
}

/// Size of a receive buffer for a wish of `size` bytes: from 64 KiB on, one less than a power of two.
///
/// smoltcp takes the window of its SYN, which is never scaled, for a scaled one until its next segment. With these sizes what it then
/// lets the peer send still fits the buffer.
fn receive_capacity(size: usize) -> usize {
    if size <= usize::from(u16::MAX) { size } else { size.next_power_of_two() - 1 }
}

/// Takes `commit` bytes that the client wrote where it was told to.
fn enqueue(room: &mut [u8], commit: usize, told: &Step, window: &Window<'_>) -> (usize, Result<(), NetError>) {
    let start = (told.writable_offset as usize).wrapping_sub(window.offset(room) as usize);
    if start == 0 && commit <= room.len() {
        return (commit, Ok(()));
    }
    // Everything was acknowledged since the client was told, and smoltcp starts at the front of an empty buffer.
    match start.checked_add(commit) {
        Some(end) if end <= room.len() => {
            room.copy_within(start..end, 0);
            (commit, Ok(()))
        }
        _ => (0, Err(NetError::BadArgument)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_buffers_hold_what_an_unscaled_window_allows() {
        for wish in [1024, 65_535, 65_536, 100_000, 131_072, 200_000, 524_288] {
            let size = receive_capacity(wish);
            let shift = (usize::BITS - size.leading_zeros()).saturating_sub(16);
            let window = size.min(65_535) << shift;
            assert!(window <= size, "{wish}: window {window} in {size}");
            assert!(size + 1 >= wish);
        }
    }
}
