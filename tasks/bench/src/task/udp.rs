//! UDP services.

use bench::iperf::MAX_ANSWER;
use bench::pattern::chargen_line;
use bench::udp_sink::{Finished, UdpSink};
use bench_api::{Peer, Session, Transfer};
use net_api::{Options, SocketId, datagram_space};
use userlib::time;

use super::net::{Stack, datagram_room, first_datagram};
use super::usage::Meter;

/// What a port does with a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Service {
    Sink,
    Echo,
    Discard,
    Chargen,
}

/// Room for a datagram of any size, and then some.
const ROOM: u32 = 72 << 10;

const SERVICES: [(Service, u32, Options); 4] = [
    (Service::Sink, 5001, Options { receive: 256 << 10, send: 4 << 10, flags: 0, backlog: 0 }),
    (Service::Echo, 7, Options { receive: ROOM, send: 2 * ROOM, flags: 0, backlog: 0 }),
    (Service::Discard, 9, Options { receive: ROOM, send: 1 << 10, flags: 0, backlog: 0 }),
    (Service::Chargen, 19, Options { receive: ROOM, send: 8 << 10, flags: 0, backlog: 0 }),
];

/// All of them.
#[derive(Debug)]
pub struct UdpServices {
    sockets: [Option<SocketId>; SERVICES.len()],
    sink: UdpSink,
    lines: u64,
    // Since the first session of several that overlap.
    meter: Option<Meter>,
}

impl UdpServices {
    /// No sockets yet.
    pub const fn new() -> Self {
        Self { sockets: [None; SERVICES.len()], sink: UdpSink::new(), lines: 0, meter: None }
    }

    /// Opens every port that is not open yet; false if one could not be had.
    pub fn bind(&mut self, stack: &Stack) -> bool {
        for (socket, (_, port, options)) in self.sockets.iter_mut().zip(SERVICES) {
            if socket.is_none() {
                *socket = stack.net().bind(options, port).ok().map(|bound| bound.socket);
            }
        }
        self.sockets.iter().all(Option::is_some)
    }

    /// Forgets every socket: the stack has.
    pub fn forget(&mut self) {
        self.sockets = [None; SERVICES.len()];
    }

    /// Serves the socket at `place` if it is one of these.
    pub fn serve(&mut self, stack: &mut Stack, place: usize, mut done: impl FnMut(Session)) {
        let Some(at) = self.sockets.iter().position(|socket| socket.is_some_and(|socket| socket.place() == place))
        else {
            return;
        };
        let (Some(socket), service) = (self.sockets[at], SERVICES[at].0) else { return };
        let (mut consume, mut commit) = (0, 0);
        loop {
            let Ok(view) = stack.step(socket, consume, commit) else { return };
            (consume, commit) = (0, 0);
            while let Some((peer, payload, space)) = first_datagram(&view.input[consume..]) {
                let output = &mut view.output[commit..];
                let answered = match service {
                    Service::Discard => Some(0),
                    Service::Echo => answer(output, peer, payload),
                    Service::Chargen => {
                        self.lines += 1;
                        answer(output, peer, chargen_line(self.lines - 1))
                    }
                    Service::Sink => {
                        let mut report = [0; MAX_ANSWER];
                        self.meter.get_or_insert_with(Meter::start);
                        let step = self.sink.datagram(time::micros(), peer, payload, &mut report);
                        if let Some(finished) = step.finished {
                            done(session(&finished, self.meter));
                        }
                        // Without room it is not answered; the peer asks again.
                        match step.answer {
                            0 => Some(0),
                            len => answer(output, peer, &report[..len]).or(Some(0)),
                        }
                    }
                };
                // Without room it stays in the buffer until there is some.
                let Some(answered) = answered else { break };
                consume += space;
                commit += answered;
            }
            if consume == 0 {
                return;
            }
        }
    }

    /// Ends sessions that have been silent for long.
    pub fn expire(&mut self, mut done: impl FnMut(Session)) {
        while let Some(finished) = self.sink.expire(time::micros()) {
            done(session(&finished, self.meter));
        }
        if self.sink.deadline().is_none() {
            self.meter = None;
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub fn deadline(&self) -> Option<u64> {
        self.sink.deadline()
    }
}

/// Writes a datagram; returns the bytes that it takes in the buffer.
fn answer(output: &mut [u8], to: Peer, payload: &[u8]) -> Option<usize> {
    datagram_room(output, to, payload.len())?.copy_from_slice(payload);
    Some(datagram_space(payload.len()))
}

fn session(finished: &Finished, meter: Option<Meter>) -> Session {
    let report = &finished.report;
    let transfer = Transfer {
        peer: finished.peer,
        ending: finished.ending,
        bytes: report.bytes,
        micros: report.micros,
        calls: report.datagrams,
        lost: report.lost,
        out_of_order: report.out_of_order,
        jitter: report.jitter,
        usage: meter.map(|meter| meter.usage()).unwrap_or_default(),
    };
    Session { udp: true, numbered: finished.iperf, transfer }
}
