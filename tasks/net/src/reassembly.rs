//! Puts the fragments of IPv4 datagrams together (RFC 791, section 3.2).
//!
//! smoltcp's own reassembly tracks a few gaps only, drops what does not fit silently, and keeps an unfinished datagram for a minute
//! in one of few places. Here each place has a bit per eight bytes, so fragments may come in any order; an unfinished
//! datagram gives way to a newer one; and it waits ten seconds at most. Bytes are copied once, from the frame into the place.

use smoltcp::time::{Duration, Instant};
use smoltcp::wire::Ipv4Address;

use crate::packet::IPV4_HEADER;

/// Datagrams in assembly at a time.
pub const PLACES: usize = 4;
/// Bytes of one place: a header, and the longest payload.
pub const PLACE_SIZE: usize = 65_536;
/// Longest IPv4 payload: a datagram with the shortest header is 65,535 bytes long.
const MAX_PAYLOAD: usize = 65_515;
/// How long an unfinished datagram is kept.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Fragments begin at multiples of this.
const UNIT: usize = 8;
const WORDS: usize = PLACE_SIZE / UNIT / 64;
/// Room for an IPv4 header in front of the payload, so that a datagram can be handed on as a packet.
const HEADER: usize = IPV4_HEADER;

/// What fragments of one datagram have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Sender.
    pub source: Ipv4Address,
    /// Receiver.
    pub target: Ipv4Address,
    /// Identification that the sender chose.
    pub id: u16,
    /// Protocol number.
    pub protocol: u8,
}

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub struct Fragment<'a> {
    /// Which datagram.
    pub key: Key,
    /// First byte in the datagram's payload, a multiple of eight.
    pub offset: usize,
    /// False for the last one.
    pub more: bool,
    /// Payload.
    pub data: &'a [u8],
}

/// Why a fragment was not taken, or what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Kept; the datagram is not complete.
    Kept,
    /// Complete: the place and the payload's length.
    Complete(usize, usize),
    /// Cannot be part of a datagram: over the longest one, a middle part that is no whole number of units, or a second end.
    Bad,
}

struct Place {
    key: Option<Key>,
    started: Instant,
    /// Length of the payload, once the last fragment came.
    total: Option<usize>,
    /// Units received, each counted once.
    received_units: usize,
    bits: [u64; WORDS],
}

/// The places.
pub struct Reassembly<'a> {
    places: [Place; PLACES],
    memory: &'a mut [u8],
    given_up: u64,
}

impl<'a> Reassembly<'a> {
    /// Uses `memory` for as many places as fit, at most [`PLACES`].
    pub fn new(memory: &'a mut [u8]) -> Self {
        Self {
            places: core::array::from_fn(|_| Place {
                key: None,
                started: Instant::ZERO,
                total: None,
                received_units: 0,
                bits: [0; WORDS],
            }),
            memory,
            given_up: 0,
        }
    }

    /// Unfinished datagrams dropped so far.
    #[must_use]
    pub const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// A datagram that [`Reassembly::add`] reported complete: room for its IPv4 header, and the payload. Valid until the next `add`.
    pub fn packet(&mut self, place: usize, payload_len: usize) -> &mut [u8] {
        let start = place * PLACE_SIZE;
        self.memory.get_mut(start..start + HEADER + payload_len).unwrap_or_default()
    }

    /// Takes a fragment in.
    pub fn add(&mut self, fragment: Fragment<'_>, now: Instant) -> Outcome {
        let end = fragment.offset + fragment.data.len();
        let whole_units = fragment.data.len().is_multiple_of(UNIT);
        if end > MAX_PAYLOAD
            || fragment.data.is_empty()
            || fragment.more && !whole_units
            || !fragment.offset.is_multiple_of(UNIT)
        {
            return Outcome::Bad;
        }
        let Some(at) = self.place_for(fragment.key, now) else {
            return Outcome::Bad;
        };
        let place = &mut self.places[at];
        let total_agrees = match place.total {
            Some(total) if fragment.more => end <= total,
            Some(total) => end == total,
            None => true,
        };
        if !total_agrees {
            // Two ends: somebody plays. Nothing of it can be trusted.
            place.key = None;
            self.given_up += 1;
            return Outcome::Bad;
        }
        let start = at * PLACE_SIZE + HEADER + fragment.offset;
        self.memory[start..start + fragment.data.len()].copy_from_slice(fragment.data);
        if !fragment.more {
            place.total = Some(end);
        }
        for unit in fragment.offset / UNIT..end.div_ceil(UNIT) {
            let (word, bit) = (unit / 64, 1u64 << (unit % 64));
            place.received_units += usize::from(place.bits[word] & bit == 0);
            place.bits[word] |= bit;
        }
        match place.total {
            // Units beyond the end can be set when a liar's fragment came before the last one.
            Some(total) if place.received_units > total.div_ceil(UNIT) => {
                place.key = None;
                self.given_up += 1;
                Outcome::Bad
            }
            Some(total) if place.received_units == total.div_ceil(UNIT) && place.is_full(total) => {
                place.key = None;
                Outcome::Complete(at, total)
            }
            _ => Outcome::Kept,
        }
    }

    /// Drops what has waited too long.
    pub fn tick(&mut self, now: Instant) {
        for place in &mut self.places {
            if place.key.is_some() && now >= place.started + TIMEOUT {
                place.key = None;
                self.given_up += 1;
            }
        }
    }

    /// When [`Reassembly::tick`] has something to do next.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.places.iter().filter(|place| place.key.is_some()).map(|place| place.started + TIMEOUT).min()
    }

    /// The datagram's place, or a fresh one: a free one, or that of the datagram that has waited longest.
    fn place_for(&mut self, key: Key, now: Instant) -> Option<usize> {
        let usable = (self.memory.len() / PLACE_SIZE).min(PLACES);
        let places = &mut self.places[..usable];
        if let Some(at) = places.iter().position(|place| place.key == Some(key)) {
            return Some(at);
        }
        let at = (0..usable).min_by_key(|&at| (places[at].key.is_some(), places[at].started))?;
        let place = &mut places[at];
        self.given_up += u64::from(place.key.is_some());
        place.key = Some(key);
        place.started = now;
        place.total = None;
        place.received_units = 0;
        place.bits.fill(0);
        Some(at)
    }
}

impl Place {
    /// True if the units of the first `total` bytes are all there.
    fn is_full(&self, total: usize) -> bool {
        let units = total.div_ceil(UNIT);
        let (full, rest) = (units / 64, units % 64);
        self.bits[..full].iter().all(|&word| word == u64::MAX)
            && (rest == 0 || self.bits[full] & ((1 << rest) - 1) == (1 << rest) - 1)
    }
}

impl core::fmt::Debug for Reassembly<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reassembly").field("given_up", &self.given_up).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn key(id: u16) -> Key {
        Key { source: Ipv4Address::new(10, 0, 0, 1), target: Ipv4Address::new(10, 0, 0, 2), id, protocol: 17 }
    }

    fn pieces(data: &[u8], size: usize, id: u16) -> Vec<Fragment<'_>> {
        data.chunks(size)
            .enumerate()
            .map(|(at, part)| Fragment {
                key: key(id),
                offset: at * size,
                more: at * size + part.len() < data.len(),
                data: part,
            })
            .collect()
    }

    fn memory() -> Vec<u8> {
        std::vec![0; PLACES * PLACE_SIZE]
    }

    #[test]
    fn evens_then_odds_a_hundred_times() {
        let mut memory = memory();
        let mut places = Reassembly::new(&mut memory);
        let data: Vec<u8> = (0..65_008u32).map(|at| (at % 251) as u8).collect();
        for id in 0..100 {
            let parts = pieces(&data, 1480, id);
            let evens = parts.iter().step_by(2);
            let odds: Vec<_> = parts.iter().skip(1).step_by(2).collect();
            for part in evens.chain(odds[1..].iter().copied()) {
                assert_eq!(places.add(*part, Instant::ZERO), Outcome::Kept);
            }
            let Outcome::Complete(at, len) = places.add(*odds[0], Instant::ZERO) else {
                panic!("complete with the last piece")
            };
            assert_eq!(places.packet(at, len)[HEADER..], data);
        }
        assert_eq!(places.given_up(), 0);
    }

    #[test]
    fn unfinished_datagrams_give_way_and_expire() {
        let mut memory = memory();
        let mut places = Reassembly::new(&mut memory);
        let data = [7; 3000];
        for id in 0..50 {
            assert_eq!(places.add(pieces(&data, 1480, id)[0], Instant::from_secs(1)), Outcome::Kept);
        }
        assert_eq!(places.given_up(), 50 - PLACES as u64);
        let fresh = pieces(&data, 1480, 99);
        places.add(fresh[2], Instant::from_secs(1));
        places.add(fresh[0], Instant::from_secs(1));
        assert!(matches!(places.add(fresh[1], Instant::from_secs(1)), Outcome::Complete(_, 3000)));
        places.tick(Instant::from_secs(12));
        assert_eq!(places.next_due(), None);
    }

    #[test]
    fn impossible_fragments_are_refused() {
        let mut memory = memory();
        let mut places = Reassembly::new(&mut memory);
        let whole = |offset, more, data| Fragment { key: key(1), offset, more, data };
        // Over the longest datagram: the "ping of death".
        assert_eq!(places.add(whole(65_512, false, &[0; 16]), Instant::ZERO), Outcome::Bad);
        assert_eq!(places.add(whole(0, true, &[0; 15]), Instant::ZERO), Outcome::Bad);
        assert_eq!(places.add(whole(0, true, &[]), Instant::ZERO), Outcome::Bad);
        // Two different ends.
        assert_eq!(places.add(whole(80, false, &[0; 16]), Instant::ZERO), Outcome::Kept);
        assert_eq!(places.add(whole(160, false, &[0; 16]), Instant::ZERO), Outcome::Bad);
        // Something behind the end, before the end is known.
        assert_eq!(places.add(whole(800, true, &[0; 16]), Instant::ZERO), Outcome::Kept);
        assert_eq!(places.add(whole(0, false, &[0; 16]), Instant::ZERO), Outcome::Bad);
    }

    proptest! {
        #[test]
        fn any_order_with_duplicates(seed in any::<u64>(), len in 1usize..20_000, size in 1usize..200) {
            let data: Vec<u8> = (0..len).map(|at| (at * 7 % 256) as u8).collect();
            let mut order = pieces(&data, size * 8, 5);
            let mut state = seed | 1;
            for at in (1..order.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                order.swap(at, (state >> 33) as usize % (at + 1));
            }
            let mut memory = memory();
            let mut places = Reassembly::new(&mut memory);
            let mut done = None;
            let last = order.len() - 1;
            for (at, part) in order.iter().enumerate() {
                if at < last {
                    prop_assert_eq!(places.add(*part, Instant::ZERO), Outcome::Kept);
                    // A duplicate changes nothing.
                    prop_assert_eq!(places.add(*part, Instant::ZERO), Outcome::Kept);
                } else {
                    done = Some(places.add(*part, Instant::ZERO));
                }
            }
            let Some(Outcome::Complete(at, found)) = done else { panic!("incomplete: {done:?}") };
            prop_assert_eq!(&places.packet(at, found)[HEADER..], &data[..]);
        }

        #[test]
        fn never_panics(parts in proptest::collection::vec((0usize..8192, any::<bool>(), 0usize..1500, 0u16..6), 0..200)) {
            let mut memory = memory();
            let mut places = Reassembly::new(&mut memory);
            let data = [1; 1500];
            for (unit, more, len, id) in parts {
                let fragment = Fragment { key: key(id), offset: unit * 8, more, data: &data[..len] };
                if let Outcome::Complete(at, len) = places.add(fragment, Instant::ZERO) {
                    prop_assert_eq!(places.packet(at, len).len(), HEADER + len);
                }
            }
        }
    }
}
