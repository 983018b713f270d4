//! Datagrams of iperf 2, client and server report.
//!
//! All fields are 32-bit words in network order. A datagram starts with its number, the sender's clock (seconds,
//! microseconds) and, since 2.0.9 or so, the upper half of the number; then the client's settings. The number of the last one is
//! negative. The server answers it with a datagram header and its report behind it. Clients from 2.0.10 on say in
//! their flags that numbers have 64 bits, and expect the report behind 16 bytes; those before expect it behind 12.

/// Client flag: numbers have 64 bits.
const FLAG_NUMBERS_64: u32 = 0x0800_0000;
/// Report flag: a report follows.
const FLAG_REPORT: u32 = 0x8000_0000;

const OLD_HEADER: usize = 12;
const HEADER: usize = 16;
/// Words of a report.
const REPORT: usize = 10 * 4;
/// Words between the report and the upper halves of its counters: one-way delays, which take synchronised clocks.
const DELAYS: usize = 15 * 4;
const UPPER_HALVES: usize = 3 * 4;

/// Longest answer in bytes. A real server's answer has at least 128 bytes, whatever of them is used.
pub const MAX_ANSWER: usize = HEADER + REPORT + DELAYS + UPPER_HALVES;

/// Numbers above this are none: at a datagram each microsecond they would take a day to reach.
const MAX_NUMBER: i64 = 1 << 36;
/// The same without the flag for 64 bits, to tell iperf from other data: half an hour at 10,000 datagrams a second.
const MAX_OLD_NUMBER: i64 = 1 << 24;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// What a datagram of a client says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its number, from 0 or 1 on; of the last one its amount.
    pub number: i64,
    /// True for the last one.
    pub last: bool,
    /// The sender's clock in microseconds.
    pub sent: u64,
    /// True if numbers have 64 bits.
    pub wide: bool,
}

impl Datagram {
    /// Reads one. `None` if it cannot be iperf's.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (low, seconds, micros) = (word(bytes, 0)?, word(bytes, 4)?, word(bytes, 8)?);
        if micros >= 1_000_000 {
            return None;
        }
        let wide = word(bytes, HEADER).is_some_and(|flags| flags & FLAG_NUMBERS_64 != 0);
        let number = match word(bytes, OLD_HEADER) {
            Some(high) if wide => (u64::from(high) << 32 | u64::from(low)) as i64,
            _ => i64::from(low as i32),
        };
        let limit = if wide { MAX_NUMBER } else { MAX_OLD_NUMBER };
        let amount = number.checked_abs().filter(|&amount| amount <= limit)?;
        let sent = u64::from(seconds) * 1_000_000 + u64::from(micros);
        Some(Self { number: amount, last: number < 0, sent, wide })
    }

    /// Writes one for a client of ours into a datagram of at least [`CLIENT_HEADER`] bytes.
    pub fn write(&self, port: u16, to: &mut [u8; CLIENT_HEADER]) {
        let number = (if self.last { -self.number } else { self.number }) as u64;
        let words = [
            number as u32,
            (self.sent / 1_000_000) as u32,
            (self.sent % 1_000_000) as u32,
            (number >> 32) as u32,
            FLAG_NUMBERS_64,
            1,
            u32::from(port),
            0,
            0,
            0,
        ];
        for (place, word) in to.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// Bytes of a client's header with its settings: the shortest datagram that we send as iperf.
pub const CLIENT_HEADER: usize = HEADER + 6 * 4;

/// What a server says of what it received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Bytes of data.
    pub bytes: u64,
    /// Time from the first datagram to the last, in microseconds.
    pub micros: u64,
    /// Datagrams that did not come.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub out_of_order: u64,
    /// Datagrams that were sent.
    pub datagrams: u64,
    /// Mean deviation of the time on the way, in microseconds (RFC 1889).
    pub jitter: u64,
}

impl Report {
    /// Writes the answer to the last datagram of a client; returns its length.
    pub fn answer(&self, last: &[u8], wide: bool, to: &mut [u8; MAX_ANSWER]) -> usize {
        to.fill(0);
        let header = if wide { HEADER } else { OLD_HEADER };
        for (place, byte) in to[..header].iter_mut().zip(last) {
            *place = *byte;
        }
        let flags = FLAG_REPORT | if wide { FLAG_NUMBERS_64 } else { 0 };
        let words = [
            flags,
            (self.bytes >> 32) as u32,
            self.bytes as u32,
            (self.micros / 1_000_000) as u32,
            (self.micros % 1_000_000) as u32,
            self.lost as u32,
            self.out_of_order as u32,
            self.datagrams as u32,
            (self.jitter / 1_000_000) as u32,
            (self.jitter % 1_000_000) as u32,
        ];
        let upper = [self.lost, self.out_of_order, self.datagrams].map(|count| (count >> 32) as u32);
        for (place, word) in to[header..].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        for (place, word) in to[header + REPORT + DELAYS..].chunks_exact_mut(4).zip(upper) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        MAX_ANSWER
    }

    /// Reads the answer of a server to a client of ours. `None` if it is none.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // Servers of before 2.0.10 put it behind 12 bytes, with no other flag; others have the upper half of our number there,
        // which is negative.
        let header = if word(bytes, OLD_HEADER)? == FLAG_REPORT { OLD_HEADER } else { HEADER };
        word(bytes, header).filter(|flags| flags & FLAG_REPORT != 0)?;
        let at = |index: usize| word(bytes, header + 4 * index).map(u64::from);
        let wide = at(0)? as u32 & FLAG_NUMBERS_64 != 0;
        let upper = |index: usize| {
            if wide { word(bytes, header + REPORT + DELAYS + 4 * index).map_or(0, u64::from) << 32 } else { 0 }
        };
        Some(Self {
            bytes: at(1)? << 32 | at(2)?,
            micros: at(3)? * 1_000_000 + at(4)?,
            lost: at(5)? | upper(0),
            out_of_order: at(6)? | upper(1),
            datagrams: at(7)? | upper(2),
            jitter: at(8)? * 1_000_000 + at(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_client_of_each_age_is_understood() {
        // 2.0.5: twelve bytes, then settings whose flags are 0.
        let old = [0, 0, 0, 5, 0x60, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1];
        let datagram = Datagram::parse(&old).expect("iperf");
        assert_eq!((datagram.number, datagram.last, datagram.wide), (5, false, false));
        assert_eq!(datagram.sent, 0x6000_0000 * 1_000_000 + 9);
        let last = [0xff, 0xff, 0xff, 0xfb, 0x60, 0, 0, 0, 0, 0, 0, 9];
        assert_eq!(Datagram::parse(&last).map(|last| (last.number, last.last)), Some((5, true)));
        // 2.1: 64 bits.
        let mut new = [0; 40];
        new[..4].copy_from_slice(&[0xff, 0xff, 0xff, 0xfe]);
        new[12..16].copy_from_slice(&[0xff; 4]);
        new[16] = 0x48;
        assert_eq!(Datagram::parse(&new).map(|new| (new.number, new.last, new.wide)), Some((2, true, true)));
    }

    #[test]
    fn other_data_is_not_iperf() {
        assert_eq!(Datagram::parse(b" !\"#$%&'()*+,-./0123456789"), None);
        assert_eq!(Datagram::parse(&[0; 11]), None);
        // The largest number of 32 bits (and its negative) is nobody's.
        assert_eq!(Datagram::parse(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Datagram::parse(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn datagrams_round_trip(number in 0..MAX_NUMBER, last: bool, sent in 0u64..4_000_000_000_000_000, port: u16) {
            let datagram = Datagram { number, last: last && number > 0, sent, wide: true };
            let mut bytes = [0xaa; CLIENT_HEADER];
            datagram.write(port, &mut bytes);
            prop_assert_eq!(Datagram::parse(&bytes), Some(datagram));
        }

        #[test]
        fn reports_round_trip(bytes: u64, micros in 0u64..4_000_000_000_000_000, lost: u64, out_of_order: u64, datagrams: u64, wide: bool) {
            let mut report = Report { bytes, micros, lost, out_of_order, datagrams, jitter: 1_234_567 };
            let mut answer = [0xaa; MAX_ANSWER];
            let len = report.answer(&[0xff, 0xff, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 1], wide, &mut answer);
            if !wide {
                for count in [&mut report.lost, &mut report.out_of_order, &mut report.datagrams] { *count &= 0xffff_ffff; }
            }
            prop_assert_eq!(Report::parse(&answer[..len]), Some(report));
            prop_assert_eq!(answer[0], 0xff);
        }

        #[test]
        fn garbage_is_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
            let _ = Datagram::parse(&bytes);
            let _ = Report::parse(&bytes);
        }
    }
}
