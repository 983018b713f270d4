//! Rows, as they are printed.

extern crate std;
use super::*;
use abi::fault::FaultRecord;
use std::string::String;

fn name_of(task: u8) -> Option<&'static str> {
    ["supervisor", "mac", "net", "idle"].get(usize::from(task)).copied()
}

#[test]
fn ps_shows_what_a_task_waits_for() {
    let mut out = String::new();
    ps_head(&mut out).expect("written");
    let status =
        TaskStatus { state: TaskState::AwaitingReply(1), generation: 3, priority: 2, frames_held: 40, fault: None };
    let row = Row { task: 2, name: "net", status, micros: 2_500_000, uptime: 10_000_000, restarts: None };
    ps_row(&mut out, &row, name_of).expect("written");
    let restarts = Some(Restarts { crashes: 2, requested: 1, backoff: 4 });
    let status = TaskStatus { state: TaskState::Faulted, ..status };
    ps_row(&mut out, &Row { restarts, status, ..row }, name_of).expect("written");
    assert_eq!(
        out,
        "ID TASK           PRI STATE                   CPU%       TIME FRAMES RESTARTS\n \
          2 net              2 reply of mac            25.0      2.500     40        3\n \
          2 net              2 failed                  25.0      2.500     40        3 (some on request)\n"
    );
}

#[test]
fn vmstat_shows_rates_and_shares() {
    let counters = |ticks, interrupts| Counters { ticks, interrupts, bytes_copied: 10 * interrupts, ..Counters::ZERO };
    let before = Sample { micros: 1_000_000, tasks: [Counters::ZERO, counters(0, 100)].into_iter().collect() };
    let now = Sample {
        micros: 3_000_000,
        tasks: [Counters::ZERO, counters(50_000_000, 500), counters(0, 0)].into_iter().collect(),
    };
    let mut out = String::new();
    vmstat_row(&mut out, &before, &now, |ticks| ticks / 100, name_of).expect("written");
    assert_eq!(
        out.split_whitespace().collect::<std::vec::Vec<_>>(),
        ["200", "0", "0", "0", "0", "2000", "mac", "25.0"]
    );
}

#[test]
fn crashes_are_told_in_words() {
    let fault = FaultRecord {
        info: FaultInfo::MemoryAccess { address: 0x10, write: true },
        pc: 0x200,
        sp: 0x300,
        time: 0,
        generation: 1,
    };
    let mut record = CrashRecord { task: 2, fault, backoff: 2, message: Default::default() };
    let mut out = String::new();
    crash(&mut out, &record, "net", 1_500_000).expect("written");
    assert_eq!(
        out,
        "1.500000 net wrote to 0x10, which is not its own (pc 0x200, sp 0x300, instance 1; restarted after 2 ms)\n"
    );
    record.fault.info = FaultInfo::Panic;
    record.message = "why".try_into().expect("short");
    out.clear();
    crash(&mut out, &record, "net", 0).expect("written");
    assert!(out.contains("net panicked: why (pc"), "{out}");
}

#[test]
fn measurements_are_per_round_and_per_frame() {
    let mut out = String::new();
    measure(&mut out, Micro::Call, 1000, 555_500, 9).expect("written");
    assert!(out.ends_with("555.5 each\n"), "{out}");
    out.clear();
    measure(&mut out, Micro::Frames(32), 10, 640 * 45, 9).expect("written");
    assert!(out.ends_with(": 45.0 per hand-over of a frame\n"), "{out}");
    measure(&mut out, Micro::Call, 0, 1, 9).expect("no division by zero");
}
