//! Who has which address: the neighbour table.
//!
//! The table lies below smoltcp, so an unanswered request never holds up a socket: packets for an unknown neighbour
//! wait in its entry, at most [`WAITING`] of them, and everything else goes on. An entry that is in use is asked again
//! *before* it is dropped, and used meanwhile, so traffic has no gap when it grows old.

use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, Ipv4Address};

/// Neighbours remembered.
pub const ENTRIES: usize = 32;
/// Packets that wait for one unknown neighbour; a further one replaces the oldest.
pub const WAITING: usize = 4;
/// An answer counts this long before the neighbour is asked again.
const FRESH: Duration = Duration::from_secs(60);
/// Time between two requests for the same neighbour.
const REPEAT: Duration = Duration::from_secs(1);
/// Requests before packets that wait are given up, and an old answer is forgotten.
const TRIES: u8 = 3;

/// Where an entry stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Not in use.
    Free,
    /// Asked for, no answer yet.
    Asked,
    /// Answered.
    Known,
}

#[derive(Debug)]
struct Entry<F> {
    state: State,
    ip: Ipv4Address,
    mac: EthernetAddress,
    /// Known: when to ask again. Asked: when to repeat.
    due: Instant,
    used: Instant,
    tries: u8,
    waiting: [Option<F>; WAITING],
}

/// What to do with a packet for a neighbour.
#[derive(Debug)]
pub enum Resolution<F> {
    /// Send it there.
    Send(F, EthernetAddress),
    /// It waits. Send a request if `ask`; `dropped` had to make room.
    Wait {
        /// True if a request is due now.
        ask: bool,
        /// The packet that waited longest for this neighbour, when there was no more room.
        dropped: Option<F>,
    },
}

/// A request that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Whom to ask for.
    pub ip: Ipv4Address,
    /// Where to: the old address, or everyone.
    pub to: EthernetAddress,
}

/// The neighbour table; `F` is a packet that can wait.
#[derive(Debug)]
pub struct Neighbours<F> {
    entries: [Entry<F>; ENTRIES],
    /// The entry found last: most packets go to the neighbour of the one before.
    last: usize,
}

impl<F> Default for Neighbours<F> {
    fn default() -> Self {
        Self::new()
    }
}

impl<F> Neighbours<F> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: core::array::from_fn(|_| Entry {
                state: State::Free,
                ip: Ipv4Address::UNSPECIFIED,
                mac: EthernetAddress::BROADCAST,
                due: Instant::ZERO,
                used: Instant::ZERO,
                tries: 0,
                waiting: core::array::from_fn(|_| None),
            }),
            last: 0,
        }
    }

    fn find(&mut self, ip: Ipv4Address) -> Option<usize> {
        let hit = |entry: &Entry<F>| entry.ip.to_bits() == ip.to_bits() && entry.state != State::Free;
        if hit(&self.entries[self.last]) {
            return Some(self.last);
        }
        let at = self.entries.iter().position(hit)?;
        self.last = at;
        Some(at)
    }

    /// Where a packet for `ip` goes.
    #[inline]
    pub fn resolve(&mut self, ip: Ipv4Address, packet: F, now: Instant) -> Resolution<F> {
        let at = match self.find(ip) {
            Some(at) => at,
            None => self.take_entry(ip, now),
        };
        let entry = &mut self.entries[at];
        entry.used = now;
        if entry.state == State::Known {
            return Resolution::Send(packet, entry.mac);
        }
        let ask = entry.tries == 0;
        if ask {
            entry.tries = 1;
            entry.due = now + REPEAT;
        }
        Resolution::Wait { ask, dropped: entry.wait(packet) }
    }

    /// Notes an address from a valid ARP packet. `create` if it was meant for us; others only refresh what is known.
    /// Afterwards [`Neighbours::take_waiting`] gives the packets that can go.
    pub fn learn(&mut self, ip: Ipv4Address, mac: EthernetAddress, create: bool, now: Instant) {
        let at = match self.find(ip) {
            Some(at) => at,
            None if create => self.take_entry(ip, now),
            None => return,
        };
        let entry = &mut self.entries[at];
        entry.state = State::Known;
        entry.mac = mac;
        entry.tries = 0;
        entry.due = now + FRESH;
    }

    /// Takes a packet that waited for `ip`, oldest first, if its address is known now.
    pub fn take_waiting(&mut self, ip: Ipv4Address) -> Option<(F, EthernetAddress)> {
        let at = self.find(ip)?;
        let entry = &mut self.entries[at];
        if entry.state != State::Known {
            return None;
        }
        let packet = entry.waiting[0].take()?;
        entry.waiting.rotate_left(1);
        Some((packet, entry.mac))
    }

    /// Does what time asks for. Calls `ask` for each request that is due and `drop` for each packet given up.
    pub fn tick(&mut self, now: Instant, mut ask: impl FnMut(Ask), mut drop: impl FnMut(F)) {
        for entry in &mut self.entries {
            // A neighbour that nobody needed since the last answer may be forgotten when its time comes.
            let needed = entry.state == State::Asked || entry.used + FRESH > now;
            if entry.state == State::Free || now < entry.due {
                continue;
            }
            if entry.tries >= TRIES || !needed {
                entry.state = State::Free;
                entry.waiting.iter_mut().filter_map(Option::take).for_each(&mut drop);
                continue;
            }
            entry.tries += 1;
            entry.due = now + REPEAT;
            ask(Ask {
                ip: entry.ip,
                to: match entry.state {
                    State::Known => entry.mac,
                    _ => EthernetAddress::BROADCAST,
                },
            });
        }
    }

    /// When [`Neighbours::tick`] has something to do next.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.entries.iter().filter(|entry| entry.state != State::Free).map(|entry| entry.due).min()
    }

    /// Forgets everything, for a new network. Packets that wait are dropped.
    pub fn clear(&mut self, mut drop: impl FnMut(F)) {
        for entry in &mut self.entries {
            entry.state = State::Free;
            entry.waiting.iter_mut().filter_map(Option::take).for_each(&mut drop);
        }
    }

    /// Neighbours known: address, hardware address.
    pub fn known(&self) -> impl Iterator<Item = (Ipv4Address, EthernetAddress)> + '_ {
        self.entries.iter().filter(|entry| entry.state == State::Known).map(|entry| (entry.ip, entry.mac))
    }

    /// An entry for a new neighbour: a free one, else the oldest unanswered one, else the one unused for longest.
    fn take_entry(&mut self, ip: Ipv4Address, now: Instant) -> usize {
        let rank = |entry: &Entry<F>| match entry.state {
            State::Free => (0, Instant::ZERO),
            State::Asked => (1, entry.used),
            State::Known => (2, entry.used),
        };
        let at = (0..ENTRIES).min_by_key(|&at| rank(&self.entries[at])).unwrap_or(0);
        let entry = &mut self.entries[at];
        entry.state = State::Asked;
        entry.ip = ip;
        entry.tries = 0;
        entry.due = now;
        entry.used = now;
        // What waited for another neighbour is lost with its entry.
        entry.waiting = core::array::from_fn(|_| None);
        self.last = at;
        at
    }
}

impl<F> Entry<F> {
    /// Queues a packet; returns the oldest one if there was no room.
    fn wait(&mut self, packet: F) -> Option<F> {
        if let Some(slot) = self.waiting.iter_mut().find(|slot| slot.is_none()) {
            *slot = Some(packet);
            return None;
        }
        let dropped = self.waiting[0].take();
        self.waiting.rotate_left(1);
        self.waiting[WAITING - 1] = Some(packet);
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 9]);

    fn ip(last: u8) -> Ipv4Address {
        Ipv4Address::new(10, 0, 0, last)
    }

    fn at(secs: i64) -> Instant {
        Instant::from_secs(secs)
    }

    fn asks(table: &mut Neighbours<u32>, now: Instant) -> (std::vec::Vec<Ask>, std::vec::Vec<u32>) {
        let (mut asks, mut drops) = (std::vec![], std::vec![]);
        table.tick(now, |ask| asks.push(ask), |packet| drops.push(packet));
        (asks, drops)
    }

    #[test]
    fn packets_wait_for_the_answer_in_order() {
        let mut table = Neighbours::new();
        assert!(matches!(table.resolve(ip(1), 1u32, at(0)), Resolution::Wait { ask: true, dropped: None }));
        for packet in 2..=4 {
            assert!(matches!(table.resolve(ip(1), packet, at(0)), Resolution::Wait { ask: false, .. }));
        }
        let Resolution::Wait { dropped: Some(1), .. } = table.resolve(ip(1), 5, at(0)) else {
            panic!("the oldest packet must make room")
        };
        table.learn(ip(1), MAC, true, at(0));
        for packet in 2..=5 {
            assert_eq!(table.take_waiting(ip(1)), Some((packet, MAC)));
        }
        assert_eq!(table.take_waiting(ip(1)), None);
        assert!(matches!(table.resolve(ip(1), 6, at(1)), Resolution::Send(6, m) if m == MAC));
    }

    #[test]
    fn an_absent_neighbour_is_given_up_and_blocks_nobody() {
        let mut table = Neighbours::new();
        table.resolve(ip(1), 1u32, at(0));
        assert!(matches!(table.resolve(ip(2), 2, at(0)), Resolution::Wait { ask: true, .. }));
        table.learn(ip(2), MAC, true, at(0));
        assert_eq!(table.take_waiting(ip(2)), Some((2, MAC)));
        let everyone = Ask { ip: ip(1), to: EthernetAddress::BROADCAST };
        assert_eq!(asks(&mut table, Instant::from_millis(500)), (std::vec![], std::vec![]));
        assert_eq!(asks(&mut table, at(1)), (std::vec![everyone], std::vec![]));
        assert_eq!(asks(&mut table, at(2)), (std::vec![everyone], std::vec![]));
        assert_eq!(asks(&mut table, at(3)), (std::vec![], std::vec![1]));
        // Only the answered one is left: no deadline in the past stays behind.
        assert_eq!(table.next_due(), Some(at(60)));
    }

    #[test]
    fn an_old_answer_is_used_while_it_is_renewed() {
        let mut table = Neighbours::new();
        table.learn(ip(1), MAC, true, at(0));
        table.resolve(ip(1), 1u32, at(59));
        let ask = Ask { ip: ip(1), to: MAC };
        assert_eq!(asks(&mut table, at(60)).0, [ask]);
        assert!(matches!(table.resolve(ip(1), 2, at(60)), Resolution::Send(..)));
        table.learn(ip(1), MAC, false, at(60));
        assert_eq!(asks(&mut table, at(61)).0, []);
        // Nobody used it for a minute: forgotten without a request.
        assert_eq!(asks(&mut table, at(121)).0, []);
        assert_eq!(table.next_due(), None);
    }

    #[test]
    fn strangers_do_not_fill_the_table_but_we_reuse_old_entries() {
        let mut table = Neighbours::<u32>::new();
        table.learn(ip(7), MAC, false, at(0));
        assert_eq!(table.known().count(), 0);
        for last in 0..=200 {
            table.learn(ip(last), MAC, true, at(i64::from(last)));
        }
        assert_eq!(table.known().count(), ENTRIES);
        assert!(table.known().any(|(known, _)| known == ip(200)));
    }
}
