//! TCP connections: smoltcp sockets, one to a set.
//!
//! smoltcp looks at every socket of a set for each segment and for each round of sending. Here each socket has a set of its own, and a segment
//! finds its socket by address and ports, so the cost of a segment does not depend on how many sockets there are; after a batch
//! only the sockets that something happened to are asked what they have to send.
//!
//! Buffers lie in the client's window and are tied to their socket for good (see [`crate::window`]): a closed socket is
//! parked and used again.

mod slots;

use smoltcp::iface::{Interface, PollResult, SocketHandle, SocketSet, SocketStorage};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpEndpoint, Ipv4Address};

use net_api::{NetError, Step, cause, state};

use crate::device::Device;
use crate::link::{Link, Mac};
use crate::packet::{Ipv4Header, word};
use crate::window::Window;

/// Most connections, in all states.
pub const SLOTS: usize = 24;
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
