//! The bytes that go over the wire: ttcp's pattern and the lines of chargen.
//!
//! Both repeat, so a byte is known by its place in the stream alone, and the other side can check every one.

/// ttcp fills its buffer with the printable characters of ASCII, over and over.
const TTCP_PERIOD: usize = 95;
const FIRST: u8 = b' ';

/// RFC 864: lines of 72 printable characters, each starting one further than the last.
const LINE: usize = 72;
const LINE_END: usize = LINE + 2;
const CHARGEN_PERIOD: usize = TTCP_PERIOD * LINE_END;

// Long enough that a copy from any place in the period is a long one.
const TTCP_LEN: usize = 8192 + TTCP_PERIOD;
static TTCP: [u8; TTCP_LEN] = ttcp();
static CHARGEN: [u8; CHARGEN_PERIOD] = chargen();

const fn ttcp() -> [u8; TTCP_LEN] {
    let mut bytes = [0; TTCP_LEN];
    let mut at = 0;
    while at < TTCP_LEN {
        bytes[at] = FIRST + (at % TTCP_PERIOD) as u8;
        at += 1;
    }
    bytes
}

const fn chargen() -> [u8; CHARGEN_PERIOD] {
    let mut bytes = [0; CHARGEN_PERIOD];
    let mut at = 0;
    while at < CHARGEN_PERIOD {
        let (line, column) = (at / LINE_END, at % LINE_END);
        bytes[at] = match column {
            LINE => b'\r',
            column if column > LINE => b'\n',
            _ => FIRST + ((line + column) % TTCP_PERIOD) as u8,
        };
        at += 1;
    }
    bytes
}

/// A repeating stream of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// The printable characters.
    Ttcp,
    /// Lines that rotate.
    Chargen,
}

impl Pattern {
    const fn table(self) -> (&'static [u8], usize) {
        match self {
            Self::Ttcp => (&TTCP, TTCP_PERIOD),
            Self::Chargen => (&CHARGEN, CHARGEN_PERIOD),
        }
    }

    /// Writes what stands at `place` of the stream and behind.
    pub fn fill(self, place: u64, to: &mut [u8]) {
        let (table, period) = self.table();
        let mut phase = (place % period as u64) as usize;
        let mut rest = to;
        while !rest.is_empty() {
            // From one table, whole periods at a time, so the phase of the next piece is known.
            let run = (table.len() - phase).min(rest.len());
            let (now, later) = rest.split_at_mut(run);
            now.copy_from_slice(&table[phase..phase + run]);
            phase = (phase + run) % period;
            rest = later;
        }
    }
}

/// One line of chargen, the `count`-th: what a datagram is answered with.
#[must_use]
pub fn chargen_line(count: u64) -> &'static [u8] {
    let line = (count % TTCP_PERIOD as u64) as usize;
    &CHARGEN[line * LINE_END..][..LINE_END]
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    proptest! {
        #[test]
        fn every_byte_is_known_by_its_place(place in 0u64..1 << 40, len in 0usize..30_000) {
            let mut bytes = vec![0; len];
            Pattern::Ttcp.fill(place, &mut bytes);
            for (at, byte) in bytes.iter().enumerate() {
                prop_assert_eq!(*byte, b' ' + ((place + at as u64) % 95) as u8);
            }
        }

        #[test]
        fn pieces_join(first in 0usize..9000, second in 0usize..9000) {
            let mut whole = vec![0; first + second];
            Pattern::Chargen.fill(0, &mut whole);
            let mut parts = vec![0; first + second];
            Pattern::Chargen.fill(0, &mut parts[..first]);
            Pattern::Chargen.fill(first as u64, &mut parts[first..]);
            prop_assert_eq!(whole, parts);
        }
    }

    #[test]
    fn lines_are_those_of_the_rfc() {
        let mut bytes = [0; 3 * LINE_END];
        Pattern::Chargen.fill(0, &mut bytes);
        let text = core::str::from_utf8(&bytes).expect("ASCII");
        let lines: std::vec::Vec<_> = text.split_terminator("\r\n").collect();
        assert_eq!(lines[0], " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefg");
        assert_eq!(lines[1], "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefgh");
        assert_eq!(lines.len(), 3);
        assert_eq!(chargen_line(0), &bytes[..74]);
        assert_eq!(chargen_line(95 + 2), &bytes[148..]);
    }
}
