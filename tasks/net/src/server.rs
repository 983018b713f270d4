//! The interface `Net`: who asks, what for, and what to do afterwards.
//!
//! Each request ends with a round of work, so that what it committed is on its way before its client runs again.

mod interface;
mod listing;

use abi::TaskId;
use net_api::{Accepted, Address, Bound, Endpoint, NetError, Options, PingReply, SocketId, Step, state};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{IpAddress, IpEndpoint, Ipv4Address};

use crate::clients::{Kind, Listener};
use crate::icmp;
use crate::link::Mac;
use crate::stack::Stack;

/// What the stack asks of the system besides messages.
pub trait Host {
    /// Time since boot.
    fn now(&self) -> Instant;
    /// Sets the timer.
    fn wake_at(&mut self, at: Instant);
    /// Posts a notification.
    fn post(&mut self, task: u8, mask: u32);
    /// The current instance of a task.
    fn current(&self, task: u8) -> TaskId;
}

/// Bits of the task's own notifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notifications {
    /// The driver has something.
    pub frames: u32,
    /// The timer.
    pub timer: u32,
}

/// Smallest and largest buffer that a client may ask for.
const BUFFER: core::ops::RangeInclusive<u32> = 1 << 10..=512 << 10;
const MAX_BACKLOG: u32 = 16;
/// Dead clients are looked for this often.
const CHECK: Duration = Duration::from_secs(1);
/// No timer is set.
const NEVER: Instant = Instant::from_micros_const(i64::MAX / 2);

/// The server.
#[derive(Debug)]
pub struct Server<'f, M, H> {
    stack: Stack<'f, M>,
    host: H,
    notifications: Notifications,
    /// When the timer will fire.
    armed: Instant,
    paused: bool,
    next_check: Instant,
}

impl<'f, M: Mac, H: Host> Server<'f, M, H> {
    /// A server that has worked once: it has asked the driver for frames.
    pub fn new(stack: Stack<'f, M>, host: H, notifications: Notifications) -> Self {
        let mut server = Self { stack, host, notifications, armed: NEVER, paused: false, next_check: Instant::ZERO };
        server.work(true);
        server
    }

    /// The stack.
    pub const fn stack(&mut self) -> &mut Stack<'f, M> {
        &mut self.stack
    }

    /// Does what there is to do, tells clients, and sets the timer if it would fire too late.
    fn work(&mut self, ask_driver: bool) {
        // The time of the last round will do for what happens once a second.
        let now = self.stack.core.link.now;
        if now >= self.next_check {
            self.next_check = now + CHECK;
            self.check_clients();
        }
        let rest = self.stack.run(|| self.host.now(), ask_driver);
        let host = &mut self.host;
        self.stack.post(|task, mask| host.post(task, mask));
        self.paused = rest.pause;
        if rest.until < self.armed {
            self.armed = rest.until;
            self.host.wake_at(rest.until);
        }
    }

    /// Closes what dead instances of clients have left.
    fn check_clients(&mut self) {
        let mut replaced = [None; crate::clients::CLIENTS];
        for (number, client) in self.stack.core.clients.iter_mut() {
            let current = self.host.current(client.task);
            replaced[number] = (current != client.id).then_some(current);
        }
        for (number, current) in replaced.into_iter().enumerate() {
            if let Some(current) = current {
                self.replace(number, current);
            }
        }
    }

    /// A new instance of a client: closes what the old one had.
    #[cold]
    fn replace(&mut self, number: usize, current: TaskId) {
        let core = &mut self.stack.core;
        for place in 0..SocketId::PLACES {
            let kind = core.clients.places_of(number).find_map(|(at, kind)| (at == place).then_some(kind));
            if let Some(kind) = kind {
                core.release(place, kind, true);
            }
        }
        if let Some(client) = core.clients.get(number) {
            client.id = current;
            client.pings.clear();
        }
    }

    /// Number of the client that asks.
    #[inline]
    fn client(&mut self, caller: TaskId) -> Result<usize, NetError> {
        let number = self.stack.core.clients.number(caller)?;
        if self.stack.core.clients.get(number).map(|client| client.id) != Some(caller) {
            self.replace(number, caller);
        }
        Ok(number)
    }

    /// What a socket of the caller is.
    #[inline]
    fn socket(&mut self, caller: TaskId, socket: SocketId) -> Result<(usize, Kind), NetError> {
        let client = self.client(caller)?;
        Ok((client, self.stack.core.clients.kind(client, socket)?))
    }

    /// Checks options; returns sizes of the receive and the send buffer.
    fn sizes(options: &Options) -> Result<(usize, usize), NetError> {
        let known = options.flags & !net_api::options::NO_DELAY == 0;
        if !known || !BUFFER.contains(&options.receive) || !BUFFER.contains(&options.send) {
            return Err(NetError::BadArgument);
        }
        let round = |size: u32| size.next_multiple_of(1 << 10) as usize;
        Ok((round(options.receive), round(options.send)))
    }

    /// Works, then looks at a socket and tells its client.
    fn look(&mut self, client: usize, place: usize, kind: Kind) -> Step {
        self.work(false);
        let core = &mut self.stack.core;
        let step = match kind {
            Kind::Tcp(at) => match core.clients.get(client) {
                Some(client) => core.tcp.step(at, &client.window),
                None => Step::default(),
            },
            Kind::Udp(at) => core.udp.get(at).map_or_else(Step::default, |socket| {
                let step = socket.step();
                socket.clear_dropped();
                step
            }),
            Kind::Listener(_) => Step {
                state: if core.tcp.acceptable(place).is_some() { state::ACCEPTABLE } else { 0 },
                ..Step::default()
            },
            Kind::Free => Step::default(),
        };
        let mut told = step;
        // What was reported once is no news, and its absence neither.
        told.state &= !state::DROPPED;
        core.clients.told(place, told);
        step
    }

    fn transfer(
        &mut self,
        client: usize,
        place: usize,
        kind: Kind,
        consume: usize,
        commit: usize,
    ) -> Result<(), NetError> {
        let core = &mut self.stack.core;
        match kind {
            Kind::Tcp(at) => {
                let told = *core.clients.told_last(place);
                let client = core.clients.get(client).ok_or(NetError::BadSocket)?;
                core.tcp.transfer(at, consume, commit, &told, &client.window)
            }
            Kind::Udp(at) => {
                let socket = core.udp.get(at).ok_or(NetError::BadSocket)?;
                if !socket.consume(consume) || !socket.commit(commit) || !core.send_udp(at) {
                    return Err(NetError::BadArgument);
                }
                Ok(())
            }
            _ if consume | commit != 0 => Err(NetError::BadArgument),
            _ => Ok(()),
        }
    }

    /// [`net_api::NetServer::connect`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn connect_for(&mut self, caller: TaskId, options: &Options, remote: Endpoint) -> Result<SocketId, NetError> {
        self.stack.core.link.now = self.host.now();
        let client = self.client(caller)?;
        let (receive, send) = Self::sizes(options)?;
        let target = Ipv4Address::from(remote.address.0);
        if remote.port == 0 || target.is_multicast() || self.stack.core.link.is_broadcast(target) {
            return Err(NetError::BadArgument);
        }
        let core = &mut self.stack.core;
        let now = core.link.now;
        core.link.source_for(target).ok_or(NetError::Unreachable)?;
        if !core.clients.has_room() {
            return Err(NetError::TooMany);
        }
        let window = &mut core.clients.get(client).ok_or(NetError::NoWindow)?.window;
        let at = core.tcp.allocate(client, window, receive, send)?;
        core.tcp.connect(at, &mut core.iface.0, (target, remote.port), options.flags, now)?;
        let socket = core.clients.open(client, Kind::Tcp(at), core.tcp.capacity(at))?;
        core.tcp.accept(at, socket.place());
        self.look(client, socket.place(), Kind::Tcp(at));
        Ok(socket)
    }

    /// [`net_api::NetServer::listen`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn listen_for(&mut self, caller: TaskId, options: &Options, port: u32) -> Result<SocketId, NetError> {
        let client = self.client(caller)?;
        let (receive, send) = Self::sizes(options)?;
        let port = u16::try_from(port).map_err(|_| NetError::BadArgument)?;
        if port == 0 || options.backlog == 0 || options.backlog > MAX_BACKLOG {
            return Err(NetError::BadArgument);
        }
        let core = &mut self.stack.core;
        if core.clients.listener(port).is_some() {
            return Err(NetError::PortInUse);
        }
        // Say now, not at the first connection, that the window is too small.
        let window = &mut core.clients.get(client).ok_or(NetError::NoWindow)?.window;
        core.tcp.allocate(client, window, receive, send)?;
        let listener = Listener { port, backlog: options.backlog, receive, send, flags: options.flags };
        core.clients.open(client, Kind::Listener(listener), 0)
    }

    /// [`net_api::NetServer::accept`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn accept_for(&mut self, caller: TaskId, listener: SocketId) -> Result<Accepted, NetError> {
        let (client, kind) = self.socket(caller, listener)?;
        if !matches!(kind, Kind::Listener(_)) {
            return Err(NetError::BadSocket);
        }
        let core = &mut self.stack.core;
        let Some(at) = core.tcp.acceptable(listener.place()) else {
            core.clients.told(listener.place(), Step::default());
            return Err(NetError::WouldBlock);
        };
        let peer = core.tcp.peer(at).map(endpoint).unwrap_or_default();
        let socket = core.clients.open(client, Kind::Tcp(at), core.tcp.capacity(at))?;
        core.tcp.accept(at, socket.place());
        core.clients.seen(listener.place());
        Ok(Accepted { socket, peer })
    }

    /// [`net_api::NetServer::bind`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn bind_for(&mut self, caller: TaskId, options: &Options, port: u32) -> Result<Bound, NetError> {
        let client = self.client(caller)?;
        let (receive, send) = Self::sizes(options)?;
        let mut port = u16::try_from(port).map_err(|_| NetError::BadArgument)?;
        let core = &mut self.stack.core;
        if port == 0 {
            port = (49_152..=u16::MAX).find(|&port| !core.udp.has_port(port)).ok_or(NetError::PortInUse)?;
        } else if core.udp.has_port(port) {
            return Err(NetError::PortInUse);
        }
        if !core.clients.has_room() {
            return Err(NetError::TooMany);
        }
        let at = match core.udp.reopen(client, receive, send, port) {
            Some(at) => at,
            None if !core.udp.has_room() => return Err(NetError::TooMany),
            None => {
                let window = &mut core.clients.get(client).ok_or(NetError::NoWindow)?.window;
                let (rx, tx) = window.cut(receive, send).ok_or(NetError::NoMemory)?;
                let (rx_offset, tx_offset) = (window.offset(rx), window.offset(tx));
                core.udp.add(client, port, (rx, rx_offset), (tx, tx_offset)).ok_or(NetError::TooMany)?
            }
        };
        let socket = core.clients.open(client, Kind::Udp(at), core.udp.capacity(at))?;
        core.udp.set_place(at, socket.place());
        self.look(client, socket.place(), Kind::Udp(at));
        Ok(Bound { socket, port, reserved: 0 })
    }

    /// [`net_api::NetServer::step`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn step_for(&mut self, caller: TaskId, socket: SocketId, consume: u32, commit: u32) -> Result<Step, NetError> {
        let (client, kind) = self.socket(caller, socket)?;
        let place = socket.place();
        self.stack.core.clients.disarm(place);
        let result = self.transfer(client, place, kind, consume as usize, commit as usize);
        let step = self.look(client, place, kind);
        result?;
        Ok(step)
    }

    /// [`net_api::NetServer::shutdown`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn shutdown_for(&mut self, caller: TaskId, socket: SocketId) -> Result<(), NetError> {
        let (client, at) = self.tcp_socket(caller, socket)?;
        self.stack.core.clients.disarm(socket.place());
        self.stack.core.tcp.shutdown(at);
        self.look(client, socket.place(), Kind::Tcp(at));
        Ok(())
    }

    /// [`net_api::NetServer::close`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn close_for(&mut self, caller: TaskId, socket: SocketId, cut: bool) -> Result<(), NetError> {
        self.stack.core.link.now = self.host.now();
        let (_, kind) = self.socket(caller, socket)?;
        self.stack.core.release(socket.place(), kind, cut);
        self.work(false);
        Ok(())
    }

    /// [`net_api::NetServer::events`] for a task.
    pub fn events_for(&mut self, caller: TaskId) -> u32 {
        match self.client(caller) {
            Ok(client) => self.stack.core.clients.events(client),
            Err(_) => 0,
        }
    }

    /// [`net_api::NetServer::ping`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn ping_for(&mut self, caller: TaskId, host: Address, len: u16, sequence: u16) -> Result<(), NetError> {
        self.stack.core.link.now = self.host.now();
        let client = self.client(caller)?;
        let core = &mut self.stack.core;
        let target = Ipv4Address::from(host.0);
        let (link, clients) = (&mut core.link, &mut core.clients);
        let sent = icmp::ping(link, clients, client, target, len.into(), sequence);
        self.work(false);
        sent
    }

    /// [`net_api::NetServer::ping_reply`] for a task.
    ///
    /// # Errors
    /// As in the interface.
    pub fn ping_reply_for(&mut self, caller: TaskId) -> Result<PingReply, NetError> {
        let number = self.client(caller)?;
        let clients = &mut self.stack.core.clients;
        let client = clients.get(number).ok_or(NetError::NoWindow)?;
        client.pings.take().ok_or(NetError::WouldBlock)
    }

    fn tcp_socket(&mut self, caller: TaskId, socket: SocketId) -> Result<(usize, usize), NetError> {
        match self.socket(caller, socket)? {
            (client, Kind::Tcp(at)) => Ok((client, at)),
            _ => Err(NetError::BadSocket),
        }
    }

    fn udp_socket(&mut self, caller: TaskId, socket: SocketId) -> Result<(usize, usize), NetError> {
        match self.socket(caller, socket)? {
            (client, Kind::Udp(at)) => Ok((client, at)),
            _ => Err(NetError::BadSocket),
        }
    }
}

fn endpoint(end: IpEndpoint) -> Endpoint {
    let IpAddress::Ipv4(address) = end.addr;
    Endpoint::new(Address(address.octets()), end.port)
}
