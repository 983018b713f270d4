//! A series of echo requests: when the next is due, and what the replies say.

use bench_api::PingSummary;

/// How long a reply may take in microseconds.
pub const PATIENCE: u64 = 1_000_000;
/// Without an interval, how long a lost reply holds the next request up.
const FLOOD_WAIT: u64 = 10_000;
/// Requests whose answers are told from duplicates.
const REMEMBERED: u32 = 1024;

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Send the request with this number.
    Send(u32),
    /// Wait until then, or for a reply.
    Wait(u64),
    /// The series is over.
    Done,
}

/// What a reply was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The first one to this request.
    First(u32),
    /// A further one.
    Duplicate(u32),
    /// To a request that was not sent, or long ago.
    Stray,
}

/// The series.
#[derive(Clone, Debug)]
pub struct Pings {
    count: u32,
    interval: u64,
    stopped: bool,
    next_at: u64,
    end_at: u64,
    summary: PingSummary,
    // One bit for each of the last requests: answered.
    answered: [u32; REMEMBERED as usize / 32],
    sum: u64,
    squares: u128,
}

impl Pings {
    /// Starts at `now`: `count` requests (0: until stopped), `interval` microseconds apart; 0: each as soon as the one before is answered.
    #[must_use]
    pub fn new(count: u32, interval: u32, now: u64) -> Self {
        Self {
            count,
            interval: u64::from(interval),
            stopped: false,
            next_at: now,
            end_at: now,
            summary: PingSummary::default(),
            answered: [0; _],
            sum: 0,
            squares: 0,
        }
    }

    fn all_sent(&self) -> bool {
        self.stopped || self.count != 0 && self.summary.sent >= self.count
    }

    /// What to do at `now`.
    #[must_use]
    pub fn next(&self, now: u64) -> Next {
        match self.all_sent() {
            true if self.summary.received >= self.summary.sent || now >= self.end_at => Next::Done,
            true => Next::Wait(self.end_at),
            false if self.interval == 0 && self.summary.received >= self.summary.sent => Next::Send(self.summary.sent),
            false if now < self.next_at => Next::Wait(self.next_at),
            false => Next::Send(self.summary.sent),
        }
    }

    /// Notes that the request was sent at `now`.
    pub fn sent(&mut self, now: u64) {
        let (word, bit) = Self::place(self.summary.sent);
        self.answered[word] &= !bit;
        self.summary.sent += 1;
        // From the time at which it was due, so that a late one does not shift all others; but never in a burst.
        self.next_at = if self.interval == 0 { now + FLOOD_WAIT } else { (self.next_at + self.interval).max(now) };
        self.end_at = now + PATIENCE;
    }

    /// Takes a reply with the low half of its number. `good`: its data are those of the request.
    pub fn reply(&mut self, sequence: u16, micros: u32, good: bool) -> Reply {
        // The number with this low half that was sent last.
        let Some(last) = self.summary.sent.checked_sub(1) else { return Reply::Stray };
        let back = u32::from((last as u16).wrapping_sub(sequence));
        let Some(number) = last.checked_sub(back).filter(|_| back < REMEMBERED) else { return Reply::Stray };
        let (word, bit) = Self::place(number);
        if self.answered[word] & bit != 0 {
            self.summary.duplicates += 1;
            return Reply::Duplicate(number);
        }
        self.answered[word] |= bit;
        let micros = u64::from(micros);
        let summary = &mut self.summary;
        summary.min = if summary.received == 0 { micros } else { summary.min.min(micros) };
        summary.max = summary.max.max(micros);
        summary.received += 1;
        summary.damaged += u32::from(!good);
        self.sum += micros;
        self.squares += u128::from(micros) * u128::from(micros);
        Reply::First(number)
    }

    /// Sends no more.
    pub fn stop(&mut self, now: u64) {
        self.stopped = true;
        self.end_at = now;
    }

    /// The figures.
    #[must_use]
    pub fn summary(&self) -> PingSummary {
        let count = u128::from(self.summary.received);
        let Some(mean) = u128::from(self.sum).checked_div(count) else { return self.summary };
        // n * sum(x²) - sum(x)², so that nothing is lost to rounding before the root.
        let spread = count * self.squares - u128::from(self.sum).pow(2);
        let deviation = (spread.isqrt() / count) as u64;
        PingSummary { mean: mean as u64, deviation, ..self.summary }
    }

    const fn place(number: u32) -> (usize, u32) {
        let at = number % REMEMBERED;
        (at as usize / 32, 1 << (at % 32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_out_in_time_and_the_series_ends_with_the_last_reply() {
        let mut pings = Pings::new(3, 6000, 100);
        for number in 0..3 {
            let due = 100 + 6000 * u64::from(number);
            if number > 0 {
                assert_eq!(pings.next(due - 1), Next::Wait(due));
            }
            assert_eq!(pings.next(due), Next::Send(number));
            pings.sent(due);
            assert_eq!(pings.reply(number as u16, 500 + 100 * number, true), Reply::First(number));
        }
        assert_eq!(pings.next(12_200), Next::Done);
        let summary = pings.summary();
        // The deviation of 500, 600, 700 is 81.6.
        assert_eq!((summary.min, summary.mean, summary.max, summary.deviation), (500, 600, 700, 81));
    }

    #[test]
    fn a_lost_reply_is_waited_for_one_second() {
        let mut pings = Pings::new(1, 1000, 0);
        pings.sent(0);
        assert_eq!(pings.next(10), Next::Wait(PATIENCE));
        assert_eq!(pings.next(PATIENCE), Next::Done);
        assert_eq!(pings.summary(), PingSummary { sent: 1, ..PingSummary::default() });
    }

    #[test]
    fn duplicates_strays_and_damage_are_told_apart() {
        let mut pings = Pings::new(0, 1, 0);
        assert_eq!(pings.reply(0, 1, true), Reply::Stray);
        for _ in 0..70_000 {
            pings.sent(0);
        }
        // 70,000 is 4464 above 65,536.
        assert_eq!(pings.reply(4463, 1, true), Reply::First(69_999));
        assert_eq!(pings.reply(4463, 1, true), Reply::Duplicate(69_999));
        assert_eq!(pings.reply(4462, 1, false), Reply::First(69_998));
        assert_eq!(pings.reply(4464, 1, true), Reply::Stray);
        let summary = pings.summary();
        assert_eq!((summary.received, summary.duplicates, summary.damaged), (2, 1, 1));
    }

    #[test]
    fn a_series_without_end_can_be_stopped() {
        let mut pings = Pings::new(0, 1000, 0);
        pings.sent(0);
        assert_eq!(pings.next(5000), Next::Send(1));
        pings.stop(5000);
        assert_eq!(pings.next(5000), Next::Done);
        assert_eq!(pings.summary().sent, 1);
        let mut unused = Pings::new(0, 1000, 0);
        unused.stop(0);
        assert_eq!(unused.next(0), Next::Done);
    }

    #[test]
    fn without_an_interval_a_reply_brings_the_next_request() {
        let mut pings = Pings::new(2, 0, 0);
        pings.sent(0);
        assert_eq!(pings.next(5), Next::Wait(FLOOD_WAIT));
        pings.reply(0, 5, true);
        assert_eq!(pings.next(5), Next::Send(1));
    }

    #[test]
    fn a_late_request_makes_no_burst() {
        let mut pings = Pings::new(0, 1000, 0);
        pings.sent(0);
        pings.sent(50_000);
        assert_eq!(pings.next(50_000), Next::Send(2));
        pings.sent(50_000);
        assert_eq!(pings.next(50_999), Next::Wait(51_000));
    }
}
