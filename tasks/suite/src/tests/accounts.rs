//! What the kernel counts.

use abi::MAX_TASKS;
use abi::stats::Counters;
use userlib::{kernel, time};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::task;

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("accounts.calls_and_messages", calls),
    Test::new("accounts.bytes_and_frames", bytes),
    Test::new("accounts.time_adds_up", time_adds_up),
    Test::new("accounts.survive_a_restart", survive),
    Test::new("accounts.interrupts", interrupts),
];

fn counters(task: u8) -> Outcome<Counters> {
    kernel::counters(task).expecting("counters")
}

/// What ten empty calls add to the counters of caller and server.
fn ten_calls(s: &mut Suite) -> Outcome<[Counters; 4]> {
    let partner = task("partner");
    let (own, other) = (counters(s.own)?, counters(partner)?);
    for _ in 0..10 {
        s.partner.null().expecting("an empty call")?;
    }
    let (own_after, other_after) = (counters(s.own)?, counters(partner)?);
    Ok([own, own_after, other, other_after])
}

fn calls(s: &mut Suite) -> Outcome {
    // An interrupt adds a switch to whom it interrupts, so there are a few tries.
    let mut counted = ten_calls(s)?;
    for _ in 0..9 {
        let [own, own_after, other, other_after] = &counted;
        if [own_after.switches - own.switches, other_after.switches - other.switches] == [10, 10] {
            break;
        }
        counted = ten_calls(s)?;
    }
    let [own, own_after, other, other_after] = counted;
    equal(own_after.switches - own.switches, 10, "switches to the caller")?;
    equal(own_after.messages - own.messages, 10, "messages of the caller")?;
    // Ten calls, a look at the partner's counters twice and at our own once.
    equal(own_after.calls - own.calls, 12, "system calls of the caller")?;
    equal(other_after.calls - other.calls, 10, "system calls of the server")?;
    equal(other_after.switches - other.switches, 10, "switches to the server")?;
    equal(other_after.messages - other.messages, 0, "messages of the server")
}

fn bytes(s: &mut Suite) -> Outcome {
    let partner = task("partner");
    let (own, other) = (counters(s.own)?, counters(partner)?);
    let data = [1; 600];
    s.partner.sum(&data).expecting("sum")?;
    let (own_after, other_after) = (counters(s.own)?, counters(partner)?);
    equal(own_after.bytes_copied - own.bytes_copied, 0, "bytes copied for the caller's empty message")?;
    // The lease, and four bytes of reply.
    equal(other_after.bytes_copied - other.bytes_copied, 604, "bytes copied for the server")?;

    let mut frames = s.borrow_frames(8)?;
    let (own, other) = (counters(s.own)?, counters(partner)?);
    s.partner.bounce_frames(&mut frames).expecting("a bounce")?;
    let (own_after, other_after) = (counters(s.own)?, counters(partner)?);
    equal(own_after.frames - own.frames, 8, "frames handed over by us")?;
    equal(other_after.frames - other.frames, 8, "frames handed over by the partner")?;
    equal(own_after.map_writes - own.map_writes, 8, "page table entries: ours are taken away")?;
    equal(other_after.map_writes - other.map_writes, 8, "page table entries: ours come again")?;
    equal(other_after.bytes_copied - other.bytes_copied, 0, "bytes copied")?;
    s.return_frames(&mut frames)
}

fn time_adds_up(s: &mut Suite) -> Outcome {
    let all = || -> Outcome<u64> {
        let mut sum = 0;
        for task in 0..MAX_TASKS as u8 {
            sum += kernel::counters(task).map_or(0, |counters| counters.ticks);
        }
        Ok(sum)
    };
    // The emulator's own pauses fall between two readings now and then, so there are a few tries.
    let mut last = (0, 0);
    for _ in 0..5 {
        let (before, start) = (all()?, time::ticks());
        for _ in 0..10 {
            s.sleep(5000);
            s.partner.null().expecting("a call")?;
        }
        let (after, end) = (all()?, time::ticks());
        last = (after - before, end - start);
        if last.0.abs_diff(last.1) * 20 < last.1 {
            return Ok(());
        }
    }
    holds(false, "ticks booked, and elapsed", last)
}

fn survive(s: &mut Suite) -> Outcome {
    let before = counters(s.high.index)?;
    crate::victims::revive(s.high.index)?;
    let after = counters(s.high.index)?;
    holds(after.calls >= before.calls && after.ticks >= before.ticks, "counters", (before.calls, after.calls))?;
    holds(after.switches > before.switches, "switches: it has started", (before.switches, after.switches))
}

fn interrupts(s: &mut Suite) -> Outcome {
    // The host's command came with one at least, and with one for each byte at most.
    let received = s.console.serial().status().expecting("status")?.received;
    let delivered = counters(task("uart"))?.interrupts;
    holds(received > 0 && delivered > 0, "bytes received, and interrupts", (received, delivered))?;
    equal(counters(s.own)?.interrupts, 0, "interrupts of a task without device")
}
