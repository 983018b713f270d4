//! Output as ttcp's.

use core::fmt::{Result, Write};

use bench_api::{Ending, Failure, Job, Limit, Peer, Transfer};

/// The letter behind the program's name: `t` to transmit, `r` to receive.
const fn letter(job: &Job) -> char {
    match job {
        Job::Receive { .. } => 'r',
        _ => 't',
    }
}

/// What stands above a run.
///
/// # Errors
/// Those of `out`.
pub fn head(out: &mut impl Write, job: &Job) -> Result {
    let letter = letter(job);
    match *job {
        Job::SendTcp { peer, length, limit } => send_head(out, length, limit, "tcp", peer)?,
        Job::SendUdp { peer, length, limit, .. } => send_head(out, length, limit, "udp", peer)?,
        Job::Receive { udp } => {
            let protocol = if udp { "udp" } else { "tcp" };
            writeln!(out, "ttcp-r: buflen=8192, nbuf=2048, align=16384/+0, port=5001  {protocol}")?;
        }
        Job::Ping { .. } | Job::Micro { .. } => {}
    }
    writeln!(out, "ttcp-{letter}: socket")
}

fn send_head(out: &mut impl Write, length: u32, limit: Limit, protocol: &str, peer: Peer) -> Result {
    let count = if let Limit::Buffers(count) = limit { count } else { 0 };
    let [a, b, c, d] = peer.address;
    writeln!(
        out,
        "ttcp-t: buflen={length}, nbuf={count}, align=16384/+0, port={}  {protocol}  -> {a}.{b}.{c}.{d}",
        peer.port
    )
}

/// The connection stands.
///
/// # Errors
/// Those of `out`.
pub fn connected(out: &mut impl Write) -> Result {
    writeln!(out, "ttcp-t: connect")
}

/// A peer has connected.
///
/// # Errors
/// Those of `out`.
pub fn accepted(out: &mut impl Write, peer: Peer) -> Result {
    let [a, b, c, d] = peer.address;
    writeln!(out, "ttcp-r: accept from {a}.{b}.{c}.{d}")
}

/// What stands below a run.
///
/// # Errors
/// Those of `out`.
pub fn report(out: &mut impl Write, job: &Job, transfer: &Transfer) -> Result {
    let letter = letter(job);
    match transfer.ending {
        Ending::Mark => {}
        Ending::Silence => writeln!(out, "ttcp-{letter}: no end mark came; ended after 5 seconds of silence")?,
        Ending::Reset => writeln!(out, "ttcp-{letter}: connection reset by peer")?,
        Ending::Stopped => writeln!(out, "ttcp-{letter}: interrupted")?,
    }
    let seconds = transfer.micros.max(1) as f64 / 1e6;
    let calls = transfer.calls.max(1) as f64;
    writeln!(
        out,
        "ttcp-{letter}: {} bytes in {seconds:.2} real seconds = {:.2} KB/sec +++",
        transfer.bytes,
        transfer.bytes as f64 / seconds / 1024.0
    )?;
    writeln!(
        out,
        "ttcp-{letter}: {} I/O calls, msec/call = {:.2}, calls/sec = {:.2}",
        transfer.calls,
        seconds * 1000.0 / calls,
        calls / seconds
    )?;
    let usage = &transfer.usage;
    let (user, system) = (usage.own as f64 / 1e6, usage.system as f64 / 1e6);
    let busy = (usage.own + usage.system).saturating_mul(100) / transfer.micros.max(1);
    let minutes = transfer.micros / 60_000_000;
    let rest = transfer.micros / 1_000_000 % 60;
    writeln!(
        out,
        "ttcp-{letter}: {user:.1}user {system:.1}sys {minutes}:{rest:02}real {busy}% 0i+0d 0maxrss 0+0pf {}+{}csw",
        usage.switches, usage.other_switches
    )
}

/// Why a run did not work.
///
/// # Errors
/// Those of `out`.
pub fn failed(out: &mut impl Write, job: &Job, failure: Failure) -> Result {
    match (job, failure) {
        (Job::Receive { .. }, Failure::TimedOut) => writeln!(out, "ttcp-r: interrupted"),
        _ => writeln!(out, "ttcp-{}: {failure}", letter(job)),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use bench_api::Usage;
    use std::string::String;

    #[test]
    fn a_run_looks_like_ttcps() {
        let peer = Peer { address: [10, 0, 2, 2], port: 5001 };
        let job = Job::SendTcp { peer, length: 8192, limit: Limit::Buffers(8192) };
        let transfer = Transfer {
            peer,
            ending: Ending::Mark,
            bytes: 67_108_864,
            micros: 17_580_000,
            calls: 8192,
            lost: 0,
            out_of_order: 0,
            jitter: 0,
            usage: Usage { own: 150_000, system: 8_600_000, switches: 225, other_switches: 18 },
        };
        let mut out = String::new();
        head(&mut out, &job)
            .and_then(|()| connected(&mut out))
            .and_then(|()| report(&mut out, &job, &transfer))
            .expect("written");
        assert_eq!(
            out,
            "ttcp-t: buflen=8192, nbuf=8192, align=16384/+0, port=5001  tcp  -> 10.0.2.2\n\
             ttcp-t: socket\n\
             ttcp-t: connect\n\
             ttcp-t: 67108864 bytes in 17.58 real seconds = 3727.87 KB/sec +++\n\
             ttcp-t: 8192 I/O calls, msec/call = 2.15, calls/sec = 465.98\n\
             ttcp-t: 0.1user 8.6sys 0:17real 49% 0i+0d 0maxrss 0+0pf 225+18csw\n"
        );
    }

    #[test]
    fn an_end_by_silence_is_told() {
        let transfer = Transfer {
            peer: Peer::default(),
            ending: Ending::Silence,
            bytes: 0,
            micros: 0,
            calls: 0,
            lost: 0,
            out_of_order: 0,
            jitter: 0,
            usage: Usage::default(),
        };
        let mut out = String::new();
        report(&mut out, &Job::Receive { udp: true }, &transfer).expect("written");
        assert!(out.starts_with("ttcp-r: no end mark came"), "{out}");
        assert!(!out.contains("NaN") && !out.contains("inf"), "{out}");
    }
}
