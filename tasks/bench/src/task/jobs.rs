//! What was asked for: streams, datagrams, pings.

use bench::ping::{self, Pings, Reply};
use bench::send::{self, TcpSend, UdpSend};
use bench_api::{Ending, Event, Failure, Job, Marks, Peer, Transfer};
use heapless::Deque;
use net_api::{Address, Options, SocketId, SocketInfo, TcpState, datagram_space, state};
use userlib::time;

use super::net::{Stack, closed, datagram_room, endpoint, failure, first_datagram, peer};
use super::usage::Meter;

/// Events that wait for the console.
pub type Events = Deque<Event, 32>;

/// A job that runs.
#[derive(Debug)]
pub enum Running {
    Tcp(TcpJob),
    Udp(UdpJob),
    Receive { udp: bool },
    Ping(PingJob),
}

#[derive(Debug)]
pub struct TcpJob {
    socket: SocketId,
    peer: Peer,
    length: u32,
    limit: bench_api::Limit,
    // From when the connection stands.
    send: Option<(TcpSend, Meter)>,
    all_sent: bool,
    stopped: bool,
}

#[derive(Debug)]
pub struct UdpJob {
    socket: SocketId,
    peer: Peer,
    marks: Marks,
    length: u32,
    send: UdpSend,
    meter: Meter,
    stopped: bool,
}

#[derive(Debug)]
pub struct PingJob {
    address: [u8; 4],
    size: u16,
    quiet: bool,
    pings: Pings,
}

/// When a job wants to be looked at again if nothing else happens; `None`: not before something does.
pub type Later = Option<u64>;

impl Running {
    /// Begins a job.
    ///
    /// # Errors
    /// Why it cannot be.
    pub fn start(job: &Job, stack: &Stack) -> Result<Self, Failure> {
        let now = time::micros();
        Ok(match *job {
            Job::SendTcp { peer, length, limit } => {
                if !(1..=1 << 16).contains(&length) {
                    return Err(Failure::BadArgument);
                }
                let options = Options { receive: 4 << 10, send: 128 << 10, flags: 0, backlog: 0 };
                let socket = stack.net().connect(options, endpoint(peer)).map_err(failure)?;
                Self::Tcp(TcpJob { socket, peer, length, limit, send: None, all_sent: false, stopped: false })
            }
            Job::SendUdp { peer, length, limit, marks, rate } => {
                let shortest = if marks == Marks::Iperf { bench::iperf::CLIENT_HEADER as u32 } else { 1 };
                if !(shortest..=net_api::MAX_DATAGRAM as u32).contains(&length) || peer.port == 0 {
                    return Err(Failure::BadArgument);
                }
                let options = Options { receive: 4 << 10, send: 256 << 10, flags: 0, backlog: 0 };
                let bound = stack.net().bind(options, 0).map_err(failure)?;
                let send = UdpSend::new(peer, length, limit, marks, rate, now);
                Self::Udp(UdpJob {
                    socket: bound.socket,
                    peer,
                    marks,
                    length,
                    send,
                    meter: Meter::start(),
                    stopped: false,
                })
            }
            Job::Receive { udp } => Self::Receive { udp },
            Job::Ping { address, size, count, interval, quiet } => {
                if usize::from(size) > net_api::MAX_DATAGRAM {
                    return Err(Failure::BadArgument);
                }
                Self::Ping(PingJob { address, size, quiet, pings: Pings::new(count, interval, now) })
            }
            Job::Micro { .. } => return Err(Failure::BadArgument),
        })
    }

    /// The socket that it has.
    pub const fn socket(&self) -> Option<SocketId> {
        match self {
            Self::Tcp(job) => Some(job.socket),
            Self::Udp(job) => Some(job.socket),
            Self::Receive { .. } | Self::Ping(_) => None,
        }
    }

    /// Sends no more; true if it has no more to tell either.
    pub fn stop(&mut self) {
        match self {
            Self::Tcp(job) => job.stopped = true,
            Self::Udp(job) => {
                job.stopped = true;
                job.send.stop();
            }
            Self::Receive { .. } => {}
            Self::Ping(job) => job.pings.stop(time::micros()),
        }
    }

    /// Does what there is to do. The job has ended once its last event is among `events`.
    pub fn work(&mut self, stack: &mut Stack, events: &mut Events) -> Later {
        match self {
            Self::Tcp(job) => job.work(stack, events),
            Self::Udp(job) => job.work(stack, events),
            Self::Receive { .. } => None,
            Self::Ping(job) => job.work(stack, events),
        }
    }
}

/// Adds an event. There is room: jobs that have many wait for it.
fn tell(events: &mut Events, event: Event) -> Later {
    let _ = events.push_back(event);
    None
}

impl TcpJob {
    fn work(&mut self, stack: &mut Stack, events: &mut Events) -> Later {
        let (mut consume, mut commit) = (0, 0);
        loop {
            let view = match stack.step(self.socket, consume, commit) {
                Ok(view) => view,
                Err(error) => return tell(events, Event::Failed(failure(error))),
            };
            let step = view.step;
            if step.state & state::CLOSED != 0 && !(self.all_sent && step.unsent == 0 && step.cause == 0) {
                return tell(events, Event::Failed(closed(&step)));
            }
            if step.state & state::CONNECTING != 0 {
                if self.stopped {
                    return tell(events, Event::Failed(Failure::TimedOut));
                }
                return None;
            }
            let now = time::micros();
            let fresh = self.send.is_none();
            let (send, meter) =
                self.send.get_or_insert_with(|| (TcpSend::new(self.length, self.limit, now), Meter::start()));
            consume = view.input.len();
            commit = 0;
            if !self.all_sent {
                let (filled, last) = if self.stopped { (0, true) } else { send.fill(now, view.output) };
                (commit, self.all_sent) = (filled, last);
            } else if step.unsent == 0 {
                let event = transfer(self.peer, self.stopped, send.sent(), meter.micros(), send.buffers(), meter);
                let _ = stack.net().close(self.socket, 0);
                return tell(events, event);
            }
            let deadline = send.deadline();
            if fresh {
                tell(events, connected(stack, self.peer));
            }
            if consume + commit == 0 {
                return if self.all_sent { None } else { deadline };
            }
        }
    }
}

fn transfer(peer: Peer, stopped: bool, bytes: u64, micros: u64, calls: u64, meter: &Meter) -> Event {
    let ending = if stopped { Ending::Stopped } else { Ending::Mark };
    Event::Transfer(Transfer {
        peer,
        ending,
        bytes,
        micros,
        calls,
        lost: 0,
        out_of_order: 0,
        jitter: 0,
        usage: meter.usage(),
    })
}

/// The ends of our connection to this peer. Its own port stands in the stack's table.
fn connected(stack: &Stack, remote: Peer) -> Event {
    let mut rows = [SocketInfo::default(); 32];
    let count = stack.net().sockets(0, &mut rows).unwrap_or(0);
    let row = rows
        .iter()
        .take(count as usize)
        .find(|row| peer(row.remote) == remote && row.state == TcpState::Established as u8);
    Event::Connected { local: row.map(|row| peer(row.local)).unwrap_or_default(), remote }
}

impl UdpJob {
    fn work(&mut self, stack: &mut Stack, events: &mut Events) -> Later {
        let (mut consume, mut commit) = (0, 0);
        loop {
            let view = match stack.step(self.socket, consume, commit) {
                Ok(view) => view,
                Err(error) => return tell(events, Event::Failed(failure(error))),
            };
            (consume, commit) = (0, 0);
            while let Some((from, payload, space)) = first_datagram(&view.input[consume..]) {
                if from == self.peer {
                    self.send.answer(payload);
                }
                consume += space;
            }
            let later = loop {
                let now = time::micros();
                match self.send.next(now) {
                    send::Next::Datagram(len) => {
                        // When the stack has sent what is there, it tells.
                        let Some(payload) = datagram_room(&mut view.output[commit..], self.peer, len) else {
                            break None;
                        };
                        self.send.fill(now, payload);
                        commit += datagram_space(len);
                        // The wire need not wait for the rest of the buffer.
                        if commit >= 16 << 10 {
                            break None;
                        }
                    }
                    send::Next::Wait(until) => break Some(until),
                    send::Next::Done if commit == 0 && view.step.unsent == 0 => return self.end(stack, events),
                    send::Next::Done => break None,
                }
            };
            if consume + commit == 0 {
                return later;
            }
        }
    }

    fn end(&self, stack: &Stack, events: &mut Events) -> Later {
        let sent = self.send.datagrams() * u64::from(self.length);
        if self.marks == Marks::Iperf {
            let report = self.send.report().map(|report| Transfer {
                peer: self.peer,
                ending: Ending::Mark,
                bytes: report.bytes,
                micros: report.micros,
                calls: report.datagrams,
                lost: report.lost,
                out_of_order: report.out_of_order,
                jitter: report.jitter,
                usage: Default::default(),
            });
            tell(events, Event::ServerReport(report));
        }
        let _ = stack.net().close(self.socket, 0);
        tell(events, transfer(self.peer, self.stopped, sent, self.send.micros(), self.send.datagrams(), &self.meter))
    }
}

impl PingJob {
    fn work(&mut self, stack: &Stack, events: &mut Events) -> Later {
        loop {
            while events.len() < events.capacity() / 2 {
                let Ok(reply) = stack.net().ping_reply() else { break };
                if reply.address != Address(self.address) {
                    continue;
                }
                let told = self.pings.reply(reply.sequence, reply.micros, reply.len == self.size);
                let (sequence, duplicate) = match told {
                    Reply::First(sequence) => (sequence, false),
                    Reply::Duplicate(sequence) => (sequence, true),
                    Reply::Stray => continue,
                };
                if !self.quiet {
                    let time_to_live = u8::try_from(reply.time_to_live).unwrap_or(u8::MAX);
                    tell(
                        events,
                        Event::Reply { sequence, len: reply.len, time_to_live, micros: reply.micros, duplicate },
                    );
                }
            }
            // The console is behind: go on when it has fetched some.
            if events.len() >= events.capacity() / 2 {
                return None;
            }
            match self.pings.next(time::micros()) {
                ping::Next::Send(number) => {
                    if let Err(error) = stack.net().ping(Address(self.address), self.size, number as u16) {
                        return tell(events, Event::Failed(failure(error)));
                    }
                    self.pings.sent(time::micros());
                }
                ping::Next::Wait(until) => return Some(until),
                ping::Next::Done => return tell(events, Event::Pings(self.pings.summary())),
            }
        }
    }
}
