//! TCP services: listeners and their connections.

use bench::stream::{Service, Stream};
use bench_api::{Ending, Peer, Session, Transfer};
use net_api::{Options, SocketId, cause, state};
use userlib::time;

use super::net::{Stack, peer};
use super::usage::Meter;

/// Connections at a time, of all services.
const CONNECTIONS: usize = 12;
/// A connection that has been idle for so long makes room for a new one, in microseconds.
const IDLE: u64 = 10_000_000;

/// Buffers of each service: those that only read need no room to write, and the other way round.
const fn options(service: Service) -> Options {
    let (receive, send, backlog) = match service {
        Service::Sink => (128 << 10, 1 << 10, 4),
        Service::Source => (1 << 10, 128 << 10, 4),
        Service::Echo => (64 << 10, 64 << 10, 2),
        Service::Discard => (64 << 10, 1 << 10, 2),
        Service::Chargen => (1 << 10, 64 << 10, 2),
    };
    Options { receive, send, flags: 0, backlog }
}

#[derive(Debug)]
struct Connection {
    socket: SocketId,
    peer: Peer,
    stream: Stream,
    meter: Meter,
    active: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub struct TcpServices {
    listeners: [Option<(Service, SocketId)>; Service::ALL.len()],
    connections: [Option<Connection>; CONNECTIONS],
}

impl TcpServices {
    /// Listens on every port that is not listened on yet; false if one could not be had.
    pub fn listen(&mut self, stack: &Stack) -> bool {
        for (listener, (service, port)) in self.listeners.iter_mut().zip(Service::ALL) {
            if listener.is_none() {
                *listener = stack.net().listen(options(service), port.into()).ok().map(|socket| (service, socket));
            }
        }
        self.listeners.iter().all(Option::is_some)
    }

    /// Forgets every socket: the stack has.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Serves the socket at `place` if it is one of these. A stream that has ended is told to `done`; one that begins, to `begun`.
    pub fn serve(&mut self, stack: &mut Stack, place: usize, done: impl FnMut(Session), begun: impl FnMut(u16, Peer)) {
        if let Some(at) = self
            .connections
            .iter()
            .position(|connection| connection.as_ref().is_some_and(|connection| connection.socket.place() == place))
        {
            self.turn(stack, at, done);
        } else if let Some(&(service, listener)) =
            self.listeners.iter().flatten().find(|(_, socket)| socket.place() == place)
        {
            self.accept(stack, service, listener, done, begun);
        }
    }

    fn accept(
        &mut self,
        stack: &mut Stack,
        service: Service,
        listener: SocketId,
        mut done: impl FnMut(Session),
        mut begun: impl FnMut(u16, Peer),
    ) {
        while let Some(at) = self.room(stack) {
            // At the last refusal the stack knows that we want to hear of the next.
            let Ok(accepted) = stack.net().accept(listener) else { return };
            let peer = peer(accepted.peer);
            begun(if service == Service::Sink { 5001 } else { 0 }, peer);
            let connection = Connection {
                socket: accepted.socket,
                peer,
                stream: Stream::new(service),
                meter: Meter::start(),
                active: time::micros(),
            };
            self.connections[at] = Some(connection);
            self.turn(stack, at, &mut done);
        }
    }

    /// A free place, perhaps one whose connection has been idle for long.
    fn room(&mut self, stack: &Stack) -> Option<usize> {
        if let Some(free) = self.connections.iter().position(Option::is_none) {
            return Some(free);
        }
        let active = |connection: &Option<Connection>| connection.as_ref().map_or(0, |connection| connection.active);
        let oldest = (0..CONNECTIONS).min_by_key(|&at| active(&self.connections[at]))?;
        if time::micros() - active(&self.connections[oldest]) < IDLE {
            return None;
        }
        if let Some(connection) = self.connections[oldest].take() {
            let _ = stack.net().close(connection.socket, 1);
        }
        Some(oldest)
    }

    /// Goes on with a connection until there is nothing to do.
    fn turn(&mut self, stack: &mut Stack, at: usize, mut done: impl FnMut(Session)) {
        let Some(connection) = &mut self.connections[at] else { return };
        let (mut consume, mut commit, mut progress) = (0, 0, false);
        let ending = loop {
            let Ok(view) = stack.step(connection.socket, consume, commit) else { break Some(Ending::Reset) };
            if view.step.cause != cause::NONE {
                break Some(Ending::Reset);
            }
            let ended = view.step.state & state::MAY_RECEIVE == 0;
            let turn = connection.stream.turn(view.input, view.output, ended);
            if turn.close {
                if turn.consumed + turn.committed > 0 {
                    let _ = stack.net().step(connection.socket, turn.consumed as u32, turn.committed as u32);
                }
                break Some(Ending::Mark);
            }
            if view.step.state & state::CLOSED != 0 {
                break Some(Ending::Reset);
            }
            if turn.consumed + turn.committed == 0 {
                break None;
            }
            (consume, commit, progress) = (turn.consumed, turn.committed, true);
        };
        if progress {
            connection.active = time::micros();
        }
        if let Some(ending) = ending {
            let _ = stack.net().close(connection.socket, 0);
            if connection.stream.service() == Service::Sink {
                done(session(connection, ending));
            }
            self.connections[at] = None;
        }
    }

    /// When it is over, somebody who did not find room may try again.
    pub fn sockets(&self) -> impl Iterator<Item = SocketId> {
        self.listeners.iter().flatten().map(|&(_, socket)| socket)
    }

    /// True if every place is taken, so that connections may wait at a listener unnoticed.
    pub fn is_full(&self) -> bool {
        self.connections.iter().all(Option::is_some)
    }
}

fn session(connection: &Connection, ending: Ending) -> Session {
    let transfer = Transfer {
        peer: connection.peer,
        ending,
        bytes: connection.stream.received(),
        micros: connection.meter.micros(),
        calls: connection.stream.turns(),
        lost: 0,
        out_of_order: 0,
        jitter: 0,
        usage: connection.meter.usage(),
    };
    Session { udp: false, numbered: false, transfer }
}
