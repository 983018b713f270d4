//! Output as that of iperf 2.

use core::fmt::{Formatter, Result, Write};

use bench_api::{Event, Failure, Job, Peer, Transfer};

const RULE: &str = "------------------------------------------------------------";

/// A quantity in iperf's way: three digits or so, and the unit that gives them.
struct Scaled(f64, f64, &'static [&'static str]);

/// Bytes, in powers of 1024.
fn bytes(bytes: u64) -> Scaled {
    Scaled(bytes as f64, 1024.0, &["Byte", "KByte", "MByte", "GByte"])
}

/// Bits per second, in powers of 1000.
fn rate(bytes: u64, micros: u64) -> Scaled {
    Scaled(bytes as f64 * 8e6 / micros.max(1) as f64, 1000.0, &["bits/sec", "Kbits/sec", "Mbits/sec", "Gbits/sec"])
}

impl core::fmt::Display for Scaled {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let Self(mut value, base, units) = *self;
        let mut unit = 0;
        while value >= base && unit + 1 < units.len() {
            value /= base;
            unit += 1;
        }
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        write!(f, "{value:4.decimals$} {}", units[unit])
    }
}

/// What stands above a run.
///
/// # Errors
/// Those of `out`.
pub fn head(out: &mut impl Write, job: &Job) -> Result {
    let host = |peer: Peer| {
        let [a, b, c, d] = peer.address;
        Host([a, b, c, d])
    };
    writeln!(out, "{RULE}")?;
    match *job {
        Job::SendUdp { peer, length, .. } => {
            writeln!(out, "Client connecting to {}, UDP port {}", host(peer), peer.port)?;
            writeln!(out, "Sending {length} byte datagrams")?;
            writeln!(out, "UDP buffer size:  256 KByte (default)")?;
        }
        Job::SendTcp { peer, .. } => {
            writeln!(out, "Client connecting to {}, TCP port {}", host(peer), peer.port)?;
            writeln!(out, "TCP window size:  128 KByte (default)")?;
        }
        Job::Receive { .. } | Job::Ping { .. } | Job::Micro { .. } => {}
    }
    writeln!(out, "{RULE}")
}

struct Host([u8; 4]);

impl core::fmt::Display for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a}.{b}.{c}.{d}")
    }
}

/// Shows an event.
///
/// # Errors
/// Those of `out`.
pub fn event(out: &mut impl Write, job: &Job, event: &Event) -> Result {
    match event {
        Event::Connected { local, remote } => {
            let (from, to) = (Host(local.address), Host(remote.address));
            writeln!(out, "[  1] local {from} port {} connected with {to} port {}", local.port, remote.port)
        }
        Event::ServerReport(Some(transfer)) => server(out, transfer),
        Event::ServerReport(None) => {
            writeln!(out, "[  1] WARNING: did not receive ack of last datagram after 10 tries.")
        }
        Event::Transfer(transfer) => {
            writeln!(out, "[ ID] Interval       Transfer     Bandwidth")?;
            line(out, transfer)?;
            writeln!(out)?;
            if let Job::SendUdp { .. } = job {
                writeln!(out, "[  1] Sent {} datagrams", transfer.calls)?;
            }
            Ok(())
        }
        Event::Failed(failure) => failed(out, *failure),
        _ => Ok(()),
    }
}

fn line(out: &mut impl Write, transfer: &Transfer) -> Result {
    let seconds = transfer.micros as f64 / 1e6;
    write!(out, "[  1] 0.0000-{seconds:.4} sec  {}s  {}", bytes(transfer.bytes), rate(transfer.bytes, transfer.micros))
}

fn server(out: &mut impl Write, transfer: &Transfer) -> Result {
    writeln!(out, "[  1] Server Report:")?;
    writeln!(out, "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams")?;
    line(out, transfer)?;
    let percent = transfer.lost as f64 * 100.0 / transfer.calls.max(1) as f64;
    writeln!(
        out,
        "  {:6.3} ms {:4}/{:5} ({percent:.1}%)",
        transfer.jitter as f64 / 1000.0,
        transfer.lost,
        transfer.calls
    )?;
    if transfer.out_of_order > 0 {
        writeln!(out, "[  1] {} datagrams received out-of-order", transfer.out_of_order)?;
    }
    Ok(())
}

fn failed(out: &mut impl Write, failure: Failure) -> Result {
    writeln!(out, "connect failed: {failure}")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use bench_api::{Ending, Limit, Marks, Usage};
    use std::string::{String, ToString};

    #[test]
    fn quantities_have_iperfs_digits() {
        assert_eq!(bytes(512).to_string(), " 512 Byte");
        assert_eq!(bytes(64 << 20).to_string(), "64.0 MByte");
        assert_eq!(bytes(1_181_116_006).to_string(), "1.10 GByte");
        assert_eq!(rate(117_625_000, 1_000_000).to_string(), " 941 Mbits/sec");
        assert_eq!(rate(131_250, 1_000_000).to_string(), "1.05 Mbits/sec");
        assert_eq!(rate(0, 0).to_string(), "0.00 bits/sec");
    }

    #[test]
    fn a_run_with_datagrams_looks_like_iperfs() {
        let peer = Peer { address: [10, 0, 2, 2], port: 5001 };
        let job = Job::SendUdp { peer, length: 1470, limit: Limit::Millis(1000), marks: Marks::Iperf, rate: 1_050_000 };
        let transfer = Transfer {
            peer,
            ending: Ending::Mark,
            bytes: 131_250,
            micros: 1_000_000,
            calls: 90,
            lost: 1,
            out_of_order: 0,
            jitter: 5,
            usage: Usage::default(),
        };
        let mut out = String::new();
        head(&mut out, &job).expect("written");
        for happened in [
            Event::Connected { local: Peer { address: [10, 0, 2, 15], port: 49152 }, remote: peer },
            Event::ServerReport(Some(transfer)),
            Event::Transfer(Transfer { lost: 0, ..transfer }),
        ] {
            event(&mut out, &job, &happened).expect("written");
        }
        assert_eq!(
            out,
            "------------------------------------------------------------\n\
             Client connecting to 10.0.2.2, UDP port 5001\n\
             Sending 1470 byte datagrams\n\
             UDP buffer size:  256 KByte (default)\n\
             ------------------------------------------------------------\n\
             [  1] local 10.0.2.15 port 49152 connected with 10.0.2.2 port 5001\n\
             [  1] Server Report:\n\
             [ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
             [  1] 0.0000-1.0000 sec   128 KBytes  1.05 Mbits/sec   0.005 ms    1/   90 (1.1%)\n\
             [ ID] Interval       Transfer     Bandwidth\n\
             [  1] 0.0000-1.0000 sec   128 KBytes  1.05 Mbits/sec\n\
             [  1] Sent 90 datagrams\n"
        );
    }
}
