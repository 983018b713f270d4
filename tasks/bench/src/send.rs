//! Sending on command: how much of a stream there is still to send, and when the next datagram is due.

use bench_api::{Limit, Marks, Peer};

use crate::iperf::{CLIENT_HEADER, Datagram, Report};
use crate::pattern::Pattern;
use crate::udp_sink::MARK;

/// Counts buffers against a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Quota {
    // Bytes that may still go out; without a limit on bytes, all there are.
    left: u64,
    deadline: Option<u64>,
}

impl Quota {
    fn new(limit: Limit, length: u32, now: u64) -> Self {
        match limit {
            Limit::Buffers(count) => Self { left: count.saturating_mul(u64::from(length)), deadline: None },
            Limit::Bytes(count) => Self { left: count, deadline: None },
            Limit::Millis(millis) => Self { left: u64::MAX, deadline: Some(now + u64::from(millis) * 1000) },
        }
    }

    fn over(&self, now: u64) -> bool {
        self.left == 0 || self.deadline.is_some_and(|deadline| now >= deadline)
    }
}

/// A TCP stream that is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpSend {
    quota: Quota,
    length: u64,
    sent: u64,
}

impl TcpSend {
    /// Starts at `now` (microseconds).
    #[must_use]
    pub fn new(length: u32, limit: Limit, now: u64) -> Self {
        Self { quota: Quota::new(limit, length, now), length: u64::from(length.max(1)), sent: 0 }
    }

    /// Fills as much of `output` as there is to send; returns how much, and whether that was the last.
    pub fn fill(&mut self, now: u64, output: &mut [u8]) -> (usize, bool) {
        if self.quota.over(now) {
            return (0, true);
        }
        let count = usize::try_from(self.quota.left).unwrap_or(usize::MAX).min(output.len());
        // As from a buffer that is sent again and again: each starts with the pattern's first byte.
        let (mut place, mut rest) = (self.sent % self.length, &mut output[..count]);
        while !rest.is_empty() {
            let run = usize::try_from(self.length - place).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(run);
            Pattern::Ttcp.fill(place, now);
            rest = later;
            place = 0;
        }
        self.sent += count as u64;
        self.quota.left -= count as u64;
        (count, self.quota.over(now))
    }

    /// When sending ends by time.
    #[must_use]
    pub const fn deadline(&self) -> Option<u64> {
        self.quota.deadline
    }

    /// Bytes sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Buffers begun: what ttcp counts as calls.
    #[must_use]
    pub const fn buffers(&self) -> u64 {
        self.sent.div_ceil(self.length)
    }
}

/// How often an iperf server is told the end, and how many microseconds apart.
const END_TRIES: u32 = 10;
const END_WAIT: u64 = 250_000;
/// End marks of ttcp: one may get lost, so there are several, as in some of its variants.
const END_MARKS: u32 = 5;

/// What to do next about a series of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Send a datagram of so many bytes, with what [`UdpSend::fill`] writes.
    Datagram(usize),
    /// Wait until then, or for an answer.
    Wait(u64),
    /// All is sent.
    Done,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Start,
    Data,
    End { tries: u32, next: u64 },
    Done,
}

/// A series of datagrams that is being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpSend {
    peer: Peer,
    marks: Marks,
    length: usize,
    quota: Quota,
    rate: u64,
    started: u64,
    data_ended: u64,
    phase: Phase,
    datagrams: u64,
    report: Option<Report>,
}

impl UdpSend {
    /// Starts at `now`; arguments as in [`bench_api::Job::SendUdp`].
    #[must_use]
    pub fn new(peer: Peer, length: u32, limit: Limit, marks: Marks, rate: u64, now: u64) -> Self {
        let phase = if marks == Marks::Ttcp { Phase::Start } else { Phase::Data };
        let quota = Quota::new(limit, length, now);
        Self {
            peer,
            marks,
            length: length as usize,
            quota,
            rate,
            started: now,
            data_ended: now,
            phase,
            datagrams: 0,
            report: None,
        }
    }

    /// What to do at `now`.
    pub fn next(&mut self, now: u64) -> Next {
        if self.phase == Phase::Data && self.quota.over(now) {
            self.data_ended = now;
            self.phase = Phase::End { tries: 0, next: now };
        }
        match self.phase {
            Phase::Start => Next::Datagram(MARK),
            Phase::Data => match self.due() {
                due if due > now => Next::Wait(due),
                _ => Next::Datagram(self.data_len()),
            },
            Phase::End { next, .. } if next > now => Next::Wait(next),
            Phase::End { tries, .. } if tries >= self.end_tries() => {
                self.phase = Phase::Done;
                Next::Done
            }
            Phase::End { .. } if self.marks == Marks::Ttcp => Next::Datagram(MARK),
            Phase::End { .. } => Next::Datagram(self.length),
            Phase::Done => Next::Done,
        }
    }

    fn data_len(&self) -> usize {
        usize::try_from(self.quota.left).unwrap_or(usize::MAX).min(self.length).max(if self.marks == Marks::Iperf {
            CLIENT_HEADER
        } else {
            1
        })
    }

    /// When the next datagram of data is due.
    fn due(&self) -> u64 {
        let bits = u128::from(self.datagrams) * 8 * self.length as u128;
        match self.rate {
            0 => 0,
            rate => self.started.saturating_add((bits * 1_000_000 / u128::from(rate)) as u64),
        }
    }

    const fn end_tries(&self) -> u32 {
        match self.marks {
            Marks::Ttcp => END_MARKS,
            Marks::Iperf => END_TRIES,
        }
    }

    /// Writes the datagram that [`next`](Self::next) asked for, and notes that it is sent.
    pub fn fill(&mut self, now: u64, output: &mut [u8]) {
        Pattern::Ttcp.fill(0, output);
        let last = matches!(self.phase, Phase::End { .. });
        if self.marks == Marks::Iperf
            && let Some(header) = output.first_chunk_mut()
        {
            let number = self.datagrams as i64 + 1;
            Datagram { number, last, sent: now, wide: true }.write(self.peer.port, header);
        }
        match &mut self.phase {
            Phase::Start => {
                self.phase = Phase::Data;
                self.started = now;
            }
            Phase::Data => {
                self.datagrams += 1;
                self.quota.left = self.quota.left.saturating_sub(output.len() as u64);
            }
            Phase::End { tries, next } => {
                *tries += 1;
                *next = if self.marks == Marks::Iperf { now + END_WAIT } else { now };
            }
            Phase::Done => {}
        }
    }

    /// Takes a datagram of the peer: perhaps its report, which ends the series.
    pub fn answer(&mut self, payload: &[u8]) {
        if matches!(self.phase, Phase::End { .. })
            && self.marks == Marks::Iperf
            && let Some(report) = Report::parse(payload)
        {
            self.report = Some(report);
            self.phase = Phase::Done;
        }
    }

    /// Sends no more data.
    pub fn stop(&mut self) {
        self.quota.left = 0;
    }

    /// What the server said.
    #[must_use]
    pub const fn report(&self) -> Option<Report> {
        self.report
    }

    /// Datagrams of data sent.
    #[must_use]
    pub const fn datagrams(&self) -> u64 {
        self.datagrams
    }

    /// Microseconds that the data took.
    #[must_use]
    pub const fn micros(&self) -> u64 {
        self.data_ended - self.started
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::iperf::MAX_ANSWER;
    use crate::udp_sink::UdpSink;
    use bench_api::Ending;
    use proptest::prelude::*;
    use std::vec;

    const PEER: Peer = Peer { address: [10, 0, 2, 2], port: 5001 };

    proptest! {
        #[test]
        fn a_stream_has_the_length_that_was_asked_for(length in 1u32..5000, buffers in 0u64..40, rooms in proptest::collection::vec(1usize..9000, 1..9)) {
            let mut send = TcpSend::new(length, Limit::Buffers(buffers), 0);
            let mut sent = vec![];
            for room in rooms.into_iter().cycle() {
                let mut output = vec![0; room];
                let (count, last) = send.fill(0, &mut output);
                sent.extend_from_slice(&output[..count]);
                if last { break; }
            }
            prop_assert_eq!(sent.len() as u64, u64::from(length) * buffers);
            prop_assert_eq!(send.buffers(), buffers);
            for (at, byte) in sent.iter().enumerate() {
                prop_assert_eq!(*byte, b' ' + (at % length as usize % 95) as u8);
            }
        }

        // Our client against our server, over a network that loses some.
        #[test]
        fn client_and_server_agree(
            length in 40u32..3000,
            count in 1u64..60,
            iperf: bool,
            lost in proptest::collection::vec(proptest::bool::weighted(0.1), 80),
        ) {
            let marks = if iperf { Marks::Iperf } else { Marks::Ttcp };
            let mut send = UdpSend::new(PEER, length, Limit::Buffers(count), marks, 0, 0);
            let (mut sink, mut now, mut finished) = (UdpSink::new(), 0, None);
            let mut arrived = 0;
            for number in 0.. {
                match send.next(now) {
                    Next::Done => break,
                    Next::Wait(until) => now = until,
                    Next::Datagram(len) => {
                        let mut payload = vec![0; len];
                        send.fill(now, &mut payload);
                        now += 10;
                        let is_data = send.phase == Phase::Data && send.datagrams > 0;
                        // The ends arrive.
                        if is_data && lost.get(number) == Some(&true) { continue; }
                        arrived += u64::from(is_data);
                        let mut answer = [0; MAX_ANSWER];
                        let step = sink.datagram(now, PEER, &payload, &mut answer);
                        send.answer(&answer[..step.answer]);
                        finished = finished.or(step.finished);
                    }
                }
            }
            prop_assert_eq!(send.datagrams(), count);
            if arrived > 0 {
                let finished = finished.expect("ended");
                prop_assert_eq!(finished.ending, Ending::Mark);
                // iperf's servers count the last one, too.
                prop_assert_eq!(finished.report.bytes, (arrived + u64::from(iperf)) * u64::from(length));
                if iperf {
                    prop_assert_eq!(send.report(), Some(finished.report));
                    prop_assert_eq!(finished.report.datagrams, count + 1);
                    prop_assert_eq!(finished.report.lost, count - arrived);
                }
            }
        }
    }

    #[test]
    fn a_rate_spaces_datagrams() {
        // 1 Mbit/s of 1250 bytes: one each 10 ms.
        let mut send = UdpSend::new(PEER, 1250, Limit::Millis(1000), Marks::Iperf, 1_000_000, 0);
        let (mut now, mut buffer) = (0, [0; 1250]);
        while now < 1_000_000 {
            match send.next(now) {
                Next::Datagram(_) => send.fill(now, &mut buffer),
                Next::Wait(until) => {
                    assert_eq!(until, now + 10_000);
                    now = until;
                }
                Next::Done => panic!("too early"),
            }
        }
        assert_eq!(send.datagrams(), 100);
    }

    #[test]
    fn a_silent_server_is_asked_ten_times() {
        let mut send = UdpSend::new(PEER, 100, Limit::Buffers(1), Marks::Iperf, 0, 0);
        let (mut now, mut ends, mut buffer) = (0, 0, [0; 100]);
        loop {
            match send.next(now) {
                Next::Datagram(_) => {
                    ends += u32::from(matches!(send.phase, Phase::End { .. }));
                    send.fill(now, &mut buffer);
                }
                Next::Wait(until) => now = until,
                Next::Done => break,
            }
        }
        assert_eq!((ends, now, send.report()), (10, 2_500_000, None));
    }
}
