//! Records that leave the board over the UART, between its text.
//!
//! A record is a [`Record`] in postcard's form, followed by a checksum ([`checksum`], little-endian), encoded by
//! COBS so that no byte of it is 0, and put between two 0 bytes. Text has no 0 bytes, so both can share a line:
//!
//! ```text
//! text … 0x00 COBS(postcard checksum) 0x00 text …
//! ```
//!
//! The board encodes with [`encode`] into a buffer of [`MAX_FRAME`] bytes and writes that in one piece; the
//! host feeds what comes to a [`Splitter`]. A writer that dies in the middle of a record spoils that record only: the 0 with
//! which the next one begins ends the broken one, and the splitter notices that it is broken.

#![no_std]
#![forbid(unsafe_code)]

mod record;
mod splitter;

pub use record::{Figure, Moment, Outcome, Record, StackCounters, TaskCounters};
pub use splitter::{Piece, Splitter};

/// Bytes of the longest record in postcard's form.
pub const MAX_RECORD: usize = 1024;

/// Bytes of the longest frame, with its 0 bytes.
pub const MAX_FRAME: usize = MAX_RECORD + 2 + MAX_RECORD / 254 + 4;

/// The buffer was too short for the record. [`MAX_FRAME`] bytes are enough for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// CRC-16 with the polynomial 0x1021, starting at 0xffff (as X.25 and many a serial line).
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    })
}

/// Writes a record as a frame, 0 bytes included, and returns the part of `buffer` that it took.
///
/// # Errors
/// [`TooLong`] if it does not fit.
pub fn encode<'a>(record: &Record<'_>, buffer: &'a mut [u8]) -> Result<&'a [u8], TooLong> {
    // The raw bytes go to the end of the buffer and are encoded towards its start: the encoded form is never behind the raw
    // one, as each block of 254 bytes lets it gain one only.
    let raw = postcard::to_slice(record, buffer).map_err(|_| TooLong)?.len();
    let room = buffer.len();
    let start = room.checked_sub(raw + 2).ok_or(TooLong)?;
    if start < 3 + raw / 254 + 1 {
        return Err(TooLong);
    }
    let crc = checksum(&buffer[..raw]);
    buffer.copy_within(..raw, start);
    buffer[start + raw..].copy_from_slice(&crc.to_le_bytes());
    buffer[0] = 0;
    let end = stuff(buffer, start);
    buffer[end] = 0;
    Ok(&buffer[..=end])
}

/// COBS: encodes `buffer[from..]` to `buffer[1..]` and returns its end.
fn stuff(buffer: &mut [u8], from: usize) -> usize {
    let (mut code_at, mut at) = (1, 2);
    for source in from..buffer.len() {
        let byte = buffer[source];
        if byte != 0 {
            buffer[at] = byte;
            at += 1;
        }
        if byte == 0 || at - code_at == 255 {
            buffer[code_at] = (at - code_at) as u8;
            code_at = at;
            at += 1;
        }
    }
    buffer[code_at] = (at - code_at) as u8;
    at
}

/// Reads what stood between two 0 bytes. `frame` is used as working memory.
///
/// `None` if it is no record: broken, or of another version of this crate.
pub fn decode(frame: &mut [u8]) -> Option<Record<'_>> {
    let len = unstuff(frame)?;
    let (raw, crc) = frame[..len].split_last_chunk::<2>()?;
    if checksum(raw) != u16::from_le_bytes(*crc) {
        return None;
    }
    match postcard::take_from_bytes(raw) {
        Ok((record, [])) => Some(record),
        _ => None,
    }
}

/// Undoes COBS in place and returns the length.
fn unstuff(frame: &mut [u8]) -> Option<usize> {
    let (mut from, mut to) = (0, 0);
    while from < frame.len() {
        let code = usize::from(frame[from]);
        let end = from + code;
        if code == 0 || end > frame.len() {
            return None;
        }
        frame.copy_within(from + 1..end, to);
        to += code - 1;
        from = end;
        // A full block stands for no 0, and neither does the end.
        if code != 255 && from < frame.len() {
            frame[to] = 0;
            to += 1;
        }
    }
    Some(to)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn the_checksum_is_the_known_one() {
        assert_eq!(checksum(b"123456789"), 0x29b1);
        assert_eq!(checksum(b""), 0xffff);
    }

    fn round_trip(record: &Record<'_>) -> Vec<u8> {
        let mut buffer = vec![0xaa; MAX_FRAME];
        let frame = encode(record, &mut buffer).expect("fits").to_vec();
        assert_eq!((frame[0], frame[frame.len() - 1]), (0, 0));
        let mut inner = frame[1..frame.len() - 1].to_vec();
        assert!(!inner.contains(&0));
        assert_eq!(decode(&mut inner).as_ref(), Some(record));
        frame
    }

    #[test]
    fn counters_at_their_limits_fit() {
        let counters = abi::stats::Counters {
            ticks: u64::MAX,
            instructions: u64::MAX,
            switches: u64::MAX,
            calls: u64::MAX,
            interrupts: u64::MAX,
            messages: u64::MAX,
            frames: u64::MAX,
            bytes_copied: u64::MAX,
            cache_lines: u64::MAX,
            map_writes: u64::MAX,
        };
        round_trip(&Record::Task(TaskCounters { name: "abcdefghijklmnopqrstuvwx", counters }));
        round_trip(&Record::Counters(Moment {
            ticks: u64::MAX,
            tick_rate: u64::MAX,
            instructions: u32::MAX,
            tasks: u8::MAX,
        }));
    }

    #[test]
    fn the_longest_record_fits() {
        let text = String::from_utf8(vec![b'x'; MAX_RECORD - 3]).expect("ASCII");
        round_trip(&Record::Log(&text));
    }

    #[test]
    fn a_short_buffer_is_refused_and_never_overrun() {
        let record = Record::Outcome { name: "a", outcome: Outcome::Failed("because"), micros: 7 };
        let mut buffer = [0; 64];
        let needed = encode(&record, &mut buffer).expect("fits").len();
        let mut short = vec![0; needed - 1];
        assert_eq!(encode(&record, &mut short), Err(TooLong));
        assert_eq!(encode(&record, &mut []), Err(TooLong));
    }

    proptest! {
        #[test]
        fn records_round_trip(name in ".{0,40}", message in ".{0,200}", micros: u64) {
            round_trip(&Record::Outcome { name: &name, outcome: Outcome::Failed(&message), micros });
        }

        // Zeros in the raw form, and blocks of every length around 254.
        #[test]
        fn runs_without_zero_round_trip(len in 240usize..1020, zero in 0usize..1020) {
            let mut text: Vec<u8> = vec![b'x'; len];
            if let Some(byte) = text.get_mut(zero) { *byte = 0; }
            let text = String::from_utf8(text).expect("ASCII");
            round_trip(&Record::Log(&text));
        }

        #[test]
        fn garbage_is_never_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = decode(&mut bytes);
        }

        #[test]
        fn a_flipped_bit_is_noticed(message in ".{1,80}", at: proptest::sample::Index, bit in 0u32..8) {
            let record = Record::Log(&message);
            let frame = round_trip(&record);
            let mut inner = frame[1..frame.len() - 1].to_vec();
            let at = at.index(inner.len());
            inner[at] ^= 1 << bit;
            prop_assert_ne!(decode(&mut inner), Some(record));
        }
    }
}
