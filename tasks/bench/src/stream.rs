//! Services on TCP: what each does with the bytes that came and the room that there is.
//!
//! A [`Stream`] sees one piece of its receive buffer and one of its send buffer at a time, both in memory that it shares with
//! the stack, and says how much of each it is done with.

use crate::pattern::Pattern;

/// What a port does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Takes what comes, and counts it: 5001.
    Sink,
    /// Reads a decimal count and a newline, sends as many bytes of ttcp's pattern, closes: 5002.
    Source,
    /// Sends back what comes: 7.
    Echo,
    /// Takes what comes: 9.
    Discard,
    /// Sends lines of characters for as long as the peer stays: 19.
    Chargen,
}

impl Service {
    /// All of them with their ports.
    pub const ALL: [(Self, u16); 5] =
        [(Self::Sink, 5001), (Self::Source, 5002), (Self::Echo, 7), (Self::Discard, 9), (Self::Chargen, 19)];
}

/// What [`Stream::turn`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turn {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes of the output that are written.
    pub committed: usize,
    /// Nothing more will be sent.
    pub close: bool,
}

/// Digits of the longest count.
const DIGITS: usize = 20;
const REFUSAL: &[u8] = b"send a decimal count and a newline\n";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Request {
    Reading { value: u64, digits: usize },
    Sending { place: u64, count: u64 },
    Refusing { written: usize },
}

/// One connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    service: Service,
    request: Request,
    received: u64,
    sent: u64,
    turns: u64,
}

impl Stream {
    /// A fresh connection.
    #[must_use]
    pub const fn new(service: Service) -> Self {
        Self { service, request: Request::Reading { value: 0, digits: 0 }, received: 0, sent: 0, turns: 0 }
    }

    /// What it does.
    #[must_use]
    pub const fn service(&self) -> Service {
        self.service
    }

    /// Bytes received.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Turns in which bytes were received or sent.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// Does what can be done with this input and this room. `ended`: no input will follow this one.
    pub fn turn(&mut self, input: &[u8], output: &mut [u8], ended: bool) -> Turn {
        let turn = match self.service {
            Service::Sink | Service::Discard => Turn { consumed: input.len(), committed: 0, close: ended },
            Service::Echo => {
                let count = input.len().min(output.len());
                output[..count].copy_from_slice(&input[..count]);
                Turn { consumed: count, committed: count, close: ended && count == input.len() }
            }
            Service::Chargen => {
                let committed = if ended { 0 } else { output.len() };
                Pattern::Chargen.fill(self.sent, &mut output[..committed]);
                Turn { consumed: input.len(), committed, close: ended }
            }
            Service::Source => self.source(input, output, ended),
        };
        self.received += turn.consumed as u64;
        self.sent += turn.committed as u64;
        self.turns += u64::from(turn.consumed + turn.committed > 0);
        turn
    }

    fn source(&mut self, input: &[u8], output: &mut [u8], ended: bool) -> Turn {
        let mut consumed = 0;
        if let Request::Reading { value, digits } = &mut self.request {
            let mut next = None;
            for &byte in input {
                consumed += 1;
                let sum = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(byte.wrapping_sub(b'0'))));
                match (byte, sum) {
                    (b'0'..=b'9', Some(sum)) if *digits < DIGITS => (*value, *digits) = (sum, *digits + 1),
                    // Telnet ends its lines with both.
                    (b'\r', _) if *digits > 0 => {}
                    (b'\n', _) if *digits > 0 => next = Some(Request::Sending { place: 0, count: *value }),
                    _ => next = Some(Request::Refusing { written: 0 }),
                }
                if next.is_some() {
                    break;
                }
            }
            if next.is_none() && ended {
                next = Some(Request::Refusing { written: 0 });
            }
            self.request = next.unwrap_or(self.request);
        }
        match &mut self.request {
            Request::Reading { .. } => Turn { consumed, committed: 0, close: false },
            // What follows the request is of no interest, but must not close the window.
            Request::Sending { place, count } => {
                let committed = usize::try_from(*count - *place).unwrap_or(usize::MAX).min(output.len());
                Pattern::Ttcp.fill(*place, &mut output[..committed]);
                *place += committed as u64;
                Turn { consumed: input.len(), committed, close: *place == *count }
            }
            Request::Refusing { written } => {
                let rest = &REFUSAL[*written..];
                let committed = rest.len().min(output.len());
                output[..committed].copy_from_slice(&rest[..committed]);
                *written += committed;
                Turn { consumed: input.len(), committed, close: *written == REFUSAL.len() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// Runs a connection with pieces of input and room of these sizes; returns what was sent, and whether it closed.
    fn run(service: Service, input: &[u8], pieces: &[(usize, usize)], rounds: usize) -> (Vec<u8>, bool) {
        let mut stream = Stream::new(service);
        let (mut at, mut sent) = (0, Vec::new());
        for &(take, room) in pieces.iter().cycle().take(rounds) {
            let end = (at + take).min(input.len());
            let mut output = vec![0xee; room];
            let turn = stream.turn(&input[at..end], &mut output, end == input.len());
            at += turn.consumed;
            sent.extend_from_slice(&output[..turn.committed]);
            assert!(output[turn.committed..].iter().all(|&byte| byte == 0xee));
            if turn.close {
                assert_eq!(stream.received(), at as u64);
                return (sent, true);
            }
        }
        (sent, false)
    }

    fn pieces() -> impl Strategy<Value = Vec<(usize, usize)>> {
        proptest::collection::vec((0usize..9, 1usize..3000), 1..8)
            .prop_filter("progress", |pieces| pieces.iter().any(|piece| piece.0 > 0))
    }

    proptest! {
        #[test]
        fn echo_sends_everything_back(input in proptest::collection::vec(any::<u8>(), 0..300), pieces in pieces()) {
            prop_assert_eq!(run(Service::Echo, &input, &pieces, 5000), (input, true));
        }

        #[test]
        fn source_sends_what_was_asked_for(count in 0usize..40_000, pieces in pieces(), end in "\r?\n", more in "[ -~]{0,10}") {
            let request = std::format!("{count}{end}{more}");
            let (sent, closed) = run(Service::Source, request.as_bytes(), &pieces, 100_000);
            let mut expected = vec![0; count];
            Pattern::Ttcp.fill(0, &mut expected);
            prop_assert!(closed);
            prop_assert_eq!(sent, expected);
        }

        #[test]
        fn source_refuses_what_is_no_count(request in "[^0-9]{1,3}|[0-9]{1,3}[^0-9\r\n].*|[0-9]{21,30}\n|99999999999999999999\n|\r?\n|[0-9]{0,5}", pieces in pieces()) {
            let (sent, closed) = run(Service::Source, request.as_bytes(), &pieces, 5000);
            prop_assert!(closed);
            prop_assert_eq!(sent, REFUSAL);
        }

        #[test]
        fn sinks_take_everything(input in proptest::collection::vec(any::<u8>(), 0..300), pieces in pieces()) {
            for service in [Service::Sink, Service::Discard] {
                prop_assert_eq!(run(service, &input, &pieces, 5000), (Vec::new(), true));
            }
        }
    }

    #[test]
    fn chargen_goes_on_until_the_peer_ends() {
        let mut stream = Stream::new(Service::Chargen);
        let mut output = [0; 100];
        for round in 0..200 {
            assert_eq!(stream.turn(b"x", &mut output, false), Turn { consumed: 1, committed: 100, close: false });
            let mut expected = [0; 100];
            Pattern::Chargen.fill(round * 100, &mut expected);
            assert_eq!(output, expected);
        }
        assert!(stream.turn(b"", &mut output, true).close);
    }
}
