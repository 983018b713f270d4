//! Output as BSD's ping's.

use core::fmt::{Display, Formatter, Result, Write};

use bench_api::{Event, Failure, Job, PingSummary};
use net_api::Address;

/// Bytes of an ICMP header.
const ICMP_HEADER: u32 = 8;

/// Microseconds as milliseconds with three decimals.
struct Millis(u64);

impl Display for Millis {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// What stands above a run.
///
/// # Errors
/// Those of `out`.
pub fn head(out: &mut impl Write, job: &Job) -> Result {
    let Job::Ping { address, size, .. } = *job else { return Ok(()) };
    let address = Address(address);
    writeln!(out, "PING {address} ({address}): {size} data bytes")
}

/// Shows an event.
///
/// # Errors
/// Those of `out`.
pub fn event(out: &mut impl Write, job: &Job, event: &Event) -> Result {
    let Job::Ping { address, .. } = *job else { return Ok(()) };
    let address = Address(address);
    match *event {
        Event::Reply { sequence, len, time_to_live, micros, duplicate } => {
            let size = u32::from(len) + ICMP_HEADER;
            let time = Millis(micros.into());
            let more = if duplicate { " (DUP!)" } else { "" };
            writeln!(out, "{size} bytes from {address}: icmp_seq={sequence} ttl={time_to_live} time={time} ms{more}")
        }
        Event::Pings(summary) => tail(out, address, &summary),
        Event::Failed(failure) => failed(out, failure),
        _ => Ok(()),
    }
}

fn tail(out: &mut impl Write, address: Address, summary: &PingSummary) -> Result {
    let PingSummary { sent, received, duplicates, damaged, .. } = *summary;
    writeln!(out, "\n--- {address} ping statistics ---")?;
    write!(out, "{sent} packets transmitted, {received} packets received, ")?;
    if duplicates > 0 {
        write!(out, "+{duplicates} duplicates, ")?;
    }
    if damaged > 0 {
        write!(out, "{damaged} of wrong length, ")?;
    }
    // In tenths of a percent, rounded.
    let lost = u64::from(sent.saturating_sub(received));
    let loss = (lost * 1000 + u64::from(sent) / 2).checked_div(sent.into()).unwrap_or(0);
    writeln!(out, "{}.{}% packet loss", loss / 10, loss % 10)?;
    if received == 0 {
        return Ok(());
    }
    let [min, mean, max, deviation] = [summary.min, summary.mean, summary.max, summary.deviation].map(Millis);
    writeln!(out, "round-trip min/avg/max/stddev = {min}/{mean}/{max}/{deviation} ms")
}

fn failed(out: &mut impl Write, failure: Failure) -> Result {
    writeln!(out, "ping: sendto: {failure}")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::String;

    const JOB: Job = Job::Ping { address: [10, 0, 2, 2], size: 1500, count: 3, interval: 6000, quiet: false };

    fn shown(events: &[Event]) -> String {
        let mut out = String::new();
        head(&mut out, &JOB).expect("written");
        events.iter().for_each(|happened| event(&mut out, &JOB, happened).expect("written"));
        out
    }

    #[test]
    fn a_run_looks_like_pings() {
        let reply = Event::Reply { sequence: 0, len: 1500, time_to_live: 64, micros: 826, duplicate: false };
        let summary = PingSummary {
            sent: 1000,
            received: 1000,
            min: 826,
            mean: 1001,
            max: 2472,
            deviation: 63,
            ..PingSummary::default()
        };
        assert_eq!(
            shown(&[reply, Event::Pings(summary)]),
            "PING 10.0.2.2 (10.0.2.2): 1500 data bytes\n\
             1508 bytes from 10.0.2.2: icmp_seq=0 ttl=64 time=0.826 ms\n\
             \n\
             --- 10.0.2.2 ping statistics ---\n\
             1000 packets transmitted, 1000 packets received, 0.0% packet loss\n\
             round-trip min/avg/max/stddev = 0.826/1.001/2.472/0.063 ms\n"
        );
    }

    #[test]
    fn losses_are_rounded_and_nothing_is_divided_by_nothing() {
        let summary =
            PingSummary { sent: 3, received: 1, duplicates: 2, min: 9, mean: 9, max: 9, ..PingSummary::default() };
        assert!(shown(&[Event::Pings(summary)]).contains("1 packets received, +2 duplicates, 66.7% packet loss\n"));
        let none = shown(&[Event::Pings(PingSummary::default())]);
        assert!(none.ends_with("0 packets transmitted, 0 packets received, 0.0% packet loss\n"), "{none}");
    }
}
