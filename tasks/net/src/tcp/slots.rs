//! Where connections come from and go to: allocating, listening, connecting, closing, giving up.

use smoltcp::iface::Interface;
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpAddress, IpEndpoint, Ipv4Address};

use net_api::{NetError, cause, options};

use super::{Listen, Role, SLOTS, Slot, Tcp, key, receive_capacity};
use crate::clients::Listener;
use crate::window::Window;

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

impl<'f> Tcp<'f> {
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
    pub(super) fn abort(&mut self, at: usize) {
        if let Some(socket) = self.slots[at].socket() {
            socket.abort();
        }
        self.touch(at);
    }

    /// Forgets a connection without another word.
    pub(super) fn abandon(&mut self, at: usize) {
        if let Some(socket) = self.slots[at].socket() {
            socket.abort();
        }
        self.park(at);
    }

    pub(super) fn park(&mut self, at: usize) {
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
}
