//! Port 5001 for datagrams: counts what ttcp and iperf 2 send, and knows when they have finished.
//!
//! Each peer (address and port) has a session of its own, so that an odd or broken one never upsets the next.
//!
//! * **iperf** numbers its datagrams. The last one has a negative number and is answered with a report; it counts as data, as it does for
//!   iperf's own server. It is repeated until an answer arrives, so a session that has ended stays for [`KEEP`] and gives the same answer again.
//! * **ttcp** marks start and end by datagrams of at most [`MARK`] bytes. Marks before the first data are start marks, the first one
//!   behind data is the end mark, further ones belong to it. If no data come between marks, `-l` may have been that small: then silence
//!   ends the session, and all but the first and the last count as data.
//! * Whatever never ends, ends after [`SILENCE`] and says so.

use bench_api::{Ending, Peer};

use crate::iperf::{Datagram, MAX_ANSWER, Report};

/// Longest mark of ttcp in bytes.
pub const MARK: usize = 4;
/// A session without a datagram for so many microseconds has ended.
pub const SILENCE: u64 = 5_000_000;
/// So long is a session that has ended remembered: iperf repeats its last datagram ten times, a quarter of a second apart.
pub const KEEP: u64 = 10_000_000;
/// Sessions at a time.
const PLACES: usize = 8;

/// A session that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Who sent.
    pub peer: Peer,
    /// True if the datagrams were numbered as iperf's.
    pub iperf: bool,
    /// How it ended.
    pub ending: Ending,
    /// What came. `datagrams` counts those that came, if they were not numbered.
    pub report: Report,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Only marks so far.
    Marks,
    Plain,
    Iperf {
        base: i64,
        highest: i64,
        wide: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Session {
    peer: Peer,
    kind: Kind,
    first: u64,
    last: u64,
    marks: u64,
    mark_bytes: u64,
    bytes: u64,
    received: u64,
    out_of_order: u64,
    // Sixteen times the jitter, and the last time on the way, in microseconds.
    jitter: u64,
    transit: Option<i64>,
    ended: Option<Report>,
}

impl Session {
    const fn new(peer: Peer, now: u64) -> Self {
        Self {
            peer,
            kind: Kind::Marks,
            first: now,
            last: now,
            marks: 0,
            mark_bytes: 0,
            bytes: 0,
            received: 0,
            out_of_order: 0,
            jitter: 0,
            transit: None,
            ended: None,
        }
    }

    fn data(&mut self, now: u64, len: usize, datagram: Option<&Datagram>) {
        if self.received == 0 {
            self.first = now;
            self.kind = datagram.map_or(Kind::Plain, |first| Kind::Iperf {
                // Some count from 0, most from 1.
                base: first.number.min(1),
                highest: first.number - 1,
                wide: first.wide,
            });
        }
        if let (Kind::Iperf { highest, .. }, Some(datagram)) = (&mut self.kind, datagram) {
            if datagram.number > *highest {
                *highest = datagram.number;
            } else {
                self.out_of_order += 1;
            }
            let transit = now.wrapping_sub(datagram.sent) as i64;
            if let Some(before) = self.transit {
                let change = transit.abs_diff(before);
                self.jitter = self.jitter - self.jitter / 16 + change;
            }
            self.transit = Some(transit);
        }
        self.bytes += len as u64;
        self.received += 1;
        self.last = now;
    }

    /// A mark that behind no data may be data itself.
    fn mark(&mut self, now: u64, len: usize) {
        if self.marks == 0 {
            self.first = now;
        }
        self.marks += 1;
        self.mark_bytes += len as u64;
        self.last = now;
    }

    fn report(&self) -> Report {
        let datagrams = match self.kind {
            Kind::Iperf { base, highest, .. } => (highest - base + 1).max(0) as u64,
            Kind::Plain => self.received,
            Kind::Marks => self.marks.saturating_sub(2),
        };
        let bytes = match (self.kind, self.marks) {
            // All marks have one length then.
            (Kind::Marks, marks @ 1..) => self.mark_bytes / marks * datagrams,
            _ => self.bytes,
        };
        Report {
            bytes,
            micros: self.last - self.first,
            lost: datagrams.saturating_sub(self.received + if self.kind == Kind::Marks { datagrams } else { 0 }),
            out_of_order: self.out_of_order,
            datagrams,
            jitter: self.jitter / 16,
        }
    }

    fn finish(&mut self, ending: Ending) -> Finished {
        let report = self.report();
        self.ended = Some(report);
        Finished { peer: self.peer, iperf: matches!(self.kind, Kind::Iperf { .. }), ending, report }
    }
}

/// What a datagram led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Bytes of the answer to send to the peer; 0 for none.
    pub answer: usize,
    /// A session that has ended by it.
    pub finished: Option<Finished>,
}

/// The sessions.
#[derive(Debug)]
pub struct UdpSink {
    sessions: [Option<Session>; PLACES],
}

impl Default for UdpSink {
    fn default() -> Self {
        Self::new()
    }
}

impl UdpSink {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self { sessions: [None; PLACES] }
    }

    /// Takes a datagram that came at `now` (microseconds, never going back); writes the answer, if there is one.
    pub fn datagram(&mut self, now: u64, peer: Peer, payload: &[u8], answer: &mut [u8; MAX_ANSWER]) -> Step {
        let mut evicted = None;
        let session = match self.find(peer) {
            Some(place) => &mut self.sessions[place],
            None => {
                let place = self.place();
                evicted = self.sessions[place]
                    .as_mut()
                    .filter(|old| old.ended.is_none())
                    .map(|old| old.finish(Ending::Silence));
                self.sessions[place] = None;
                &mut self.sessions[place]
            }
        };
        let session = session.get_or_insert_with(|| Session::new(peer, now));
        let mut step = if payload.len() <= MARK {
            Self::mark(session, now, payload.len())
        } else {
            Self::data(session, now, payload, answer)
        };
        step.finished = step.finished.or(evicted);
        step
    }

    fn mark(session: &mut Session, now: u64, len: usize) -> Step {
        let finished = if session.ended.is_some() {
            // The end mark again.
            None
        } else if session.received > 0 {
            session.last = now;
            Some(session.finish(Ending::Mark))
        } else {
            session.mark(now, len);
            None
        };
        Step { answer: 0, finished }
    }

    fn data(session: &mut Session, now: u64, payload: &[u8], answer: &mut [u8; MAX_ANSWER]) -> Step {
        let datagram = match session.kind {
            Kind::Plain => None,
            _ => Datagram::parse(payload),
        };
        if let Some(report) = &session.ended {
            return match datagram {
                // Our answer was lost.
                Some(again) if again.last => {
                    Step { answer: report.answer(payload, again.wide, answer), finished: None }
                }
                // Late, or the same peer begins anew.
                Some(late) if late.number > 1 => Step::default(),
                _ => {
                    *session = Session::new(session.peer, now);
                    Self::data(session, now, payload, answer)
                }
            };
        }
        match datagram {
            Some(last) if last.last => {
                session.data(now, payload.len(), Some(&last));
                let finished = session.finish(Ending::Mark);
                Step { answer: finished.report.answer(payload, last.wide, answer), finished: Some(finished) }
            }
            _ => {
                session.data(now, payload.len(), datagram.as_ref());
                Step::default()
            }
        }
    }

    /// Ends what has been silent for long. Call it again while it returns something.
    pub fn expire(&mut self, now: u64) -> Option<Finished> {
        for place in &mut self.sessions {
            let Some(session) = place else { continue };
            let idle = now - session.last;
            if session.ended.is_some() {
                if idle >= KEEP {
                    *place = None;
                }
            } else if idle >= SILENCE {
                // A run of marks alone has no other end.
                let small = session.kind == Kind::Marks && session.marks > 2;
                return Some(session.finish(if small { Ending::Mark } else { Ending::Silence }));
            }
        }
        None
    }

    /// When [`expire`](Self::expire) has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let sessions = self.sessions.iter().flatten();
        sessions.map(|session| session.last + if session.ended.is_some() { KEEP } else { SILENCE }).min()
    }

    fn find(&self, peer: Peer) -> Option<usize> {
        self.sessions.iter().position(|session| session.is_some_and(|session| session.peer == peer))
    }

    /// A place for a new session: a free one, else of one that has ended, else of the one that is silent for longest.
    fn place(&self) -> usize {
        let rank = |session: &Option<Session>| {
            session.as_ref().map_or((0, 0), |session| (1 + u64::from(session.ended.is_none()), session.last))
        };
        (0..PLACES).min_by_key(|&place| rank(&self.sessions[place])).unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "udp_sink_tests.rs"]
mod tests;
