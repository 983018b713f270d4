//! Command lines of the tools, as people type them.

extern crate std;
use super::*;
use proptest::prelude::*;
use std::string::ToString;

const HOST: Peer = Peer { address: [10, 0, 2, 2], port: 5001 };

fn job(line: &'static str) -> Job {
    match parse(line) {
        Ok(Command::Run(job, _)) => job,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn the_command_lines_of_the_old_reports_work() {
    let limit = Limit::Buffers(8192);
    assert_eq!(job("ttcp -t -s -n8192 10.0.2.2"), Job::SendTcp { peer: HOST, length: 8192, limit });
    let limit = Limit::Buffers(200);
    assert_eq!(
        job("ttcp -t -u -s -l 65000 -n 200 10.0.2.2"),
        Job::SendUdp { peer: HOST, length: 65_000, limit, marks: Marks::Ttcp, rate: 0 }
    );
    assert_eq!(job("ttcp -r -s"), Job::Receive { udp: false });
    assert_eq!(job("ttcp -rus"), Job::Receive { udp: true });
    let ping = |size, count, interval, quiet| Job::Ping { address: HOST.address, size, count, interval, quiet };
    assert_eq!(job("ping -s 1500 -c 1000 -i .006 10.0.2.2"), ping(1500, 1000, 6000, false));
    assert_eq!(job("ping 10.0.2.2"), ping(56, 0, 1_000_000, false));
    assert_eq!(job("ping -f -c9 10.0.2.2"), ping(56, 9, 0, true));
}

#[test]
fn iperf_has_its_defaults() {
    assert_eq!(job("iperf -c 10.0.2.2"), Job::SendTcp { peer: HOST, length: 65_536, limit: Limit::Millis(10_000) });
    assert_eq!(
        job("iperf -c 10.0.2.2 -u -b 10m -t 1 -p 6000"),
        Job::SendUdp {
            peer: Peer { port: 6000, ..HOST },
            length: 1470,
            limit: Limit::Millis(1000),
            marks: Marks::Iperf,
            rate: 10_000_000
        }
    );
    assert_eq!(
        job("iperf -c 10.0.2.2 -n 64M"),
        Job::SendTcp { peer: HOST, length: 65_536, limit: Limit::Bytes(64 << 20) }
    );
}

#[test]
fn other_commands_are_read() {
    assert_eq!(parse("  "), Ok(Command::Nothing));
    assert_eq!(parse("help ping"), Ok(Command::Help(Some("ping"))));
    assert_eq!(parse("vmstat"), Ok(Command::Vmstat(None)));
    assert_eq!(parse("vmstat 5"), Ok(Command::Vmstat(Some(5))));
    assert_eq!(parse("fault net"), Ok(Command::Fault("net")));
    assert_eq!(parse("netstat -an"), Ok(Command::Netstat { statistics: false }));
    assert_eq!(parse("netstat -s"), Ok(Command::Netstat { statistics: true }));
    assert_eq!(job("measure frames -l 32 -n 100"), Job::Micro { what: Micro::Frames(32), rounds: 100 });
    assert_eq!(job("measure call"), Job::Micro { what: Micro::Call, rounds: 1000 });
}

#[test]
fn what_is_wrong_is_told_with_the_remedy() {
    for (line, said) in [
        ("ttcp -s 10.0.2.2", "one of -t"),
        ("ttcp -t -r -s 10.0.2.2", "one of -t"),
        ("ttcp -t 10.0.2.2", "add -s"),
        ("ttcp -t -s", "host to send to"),
        ("ttcp -t -s host", "10.0.2.2"),
        ("ttcp -t -s -l 0 10.0.2.2", "1 to 65536"),
        ("ttcp -t -u -s -l 65508 10.0.2.2", "65507"),
        ("ttcp -t -s -n 10.0.2.2", "number"),
        ("ttcp -r -s 10.0.2.2", "too many"),
        ("ttcp -r -s -p 9", "5001"),
        ("iperf -s", "sessions"),
        ("iperf", "-c HOST"),
        ("iperf -c 10.0.2.2 -b 1m", "-u"),
        ("iperf -c 10.0.2.2 -u -l 39", "40"),
        ("iperf -c 10.0.2.2 -l 1m", "65536"),
        ("ping", "host"),
        ("ping -s 65508 10.0.2.2", "65507"),
        ("ping -i x 10.0.2.2", ".006"),
        ("ping 10.0.2.2 10.0.2.3", "too many"),
        ("vmstat 0", "1 to 3600"),
        ("fault", "ps lists"),
        ("measure", "call or frames"),
        ("measure frames -l 33", "32"),
        ("ps -x", "too many"),
        ("netstat -x", "-x"),
        ("quit", "poweroff"),
        ("sl", "help"),
    ] {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(said), "{line}: {error}");
    }
}

#[test]
fn every_command_is_known_and_described() {
    for (name, ..) in COMMANDS {
        assert_ne!(parse(name), Err(Wrong::UnknownCommand), "{name}");
    }
    for name in NAMES {
        assert!(COMMANDS.iter().any(|(known, ..)| *known == name), "{name}");
    }
}

proptest! {
    #[test]
    fn no_line_is_a_panic(line in "((ttcp|iperf|ping|measure|vmstat|netstat|fault|help) )?[-a-z0-9. ]{0,60}|.{0,60}") {
        let _ = parse(&line);
    }
}
