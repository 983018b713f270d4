//! Notification bits: sticky, masked, never lost, and only for those who may.

use abi::call::Call;
use abi::stats::TaskState;
use abi::{KernelError, TaskId};
use userlib::{RecvBuffers, ipc, kernel, time};
use victim::{Step, operation};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::{revive, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("notifications.bits_stay_until_taken", sticky),
    Test::new("notifications.a_mask_leaves_other_bits", masks),
    Test::new("notifications.a_post_since_the_last_look_ends_the_wait", seen),
    Test::new("notifications.no_post_is_lost", none_lost),
    Test::new("notifications.ping_pong", ping_pong),
    Test::new("notifications.come_before_messages", before_messages),
    Test::new("notifications.post_without_capability", no_capability),
    Test::new("notifications.a_new_instance_has_none", new_instance),
    Test::new("notifications.interrupts_of_others", interrupts),
];

fn sticky(s: &mut Suite) -> Outcome {
    let (a, b) = (s.bits.a, s.bits.b);
    ipc::post(s.own, a).expecting("a post")?;
    ipc::post(s.own, b).expecting("a post")?;
    ipc::post(s.own, a).expecting("the same again")?;
    let (bits, sequence) = ipc::wait(a | b, s.seen);
    equal(bits, a | b, "bits")?;
    s.seen = sequence;
    equal(s.wait(a | b, 2000), 0, "bits that were taken before")
}

fn masks(s: &mut Suite) -> Outcome {
    let (a, b) = (s.bits.a, s.bits.b);
    ipc::post(s.own, a | b).expecting("a post")?;
    equal(s.wait(a, 1000), a, "bits asked for")?;
    equal(s.wait(a, 2000), 0, "the bit is taken, and the other one does not count")?;
    equal(s.wait(b, 1000), b, "the other one waited")
}

fn seen(s: &mut Suite) -> Outcome {
    let (a, b) = (s.bits.a, s.bits.b);
    s.sleep(100);
    // Take the bit somewhere else, as a nested receive would.
    let before = s.seen;
    ipc::post(s.own, a).expecting("a post")?;
    let (bits, sequence) = ipc::wait(a, before);
    equal((bits, sequence), (a, before.wrapping_add(1)), "bits and count")?;
    // A wait with the old count returns, though no bit is set.
    equal(ipc::wait(a | b, before), (0, sequence), "a wait that has not seen the post")?;
    s.seen = sequence;
    equal(s.wait(a | b, 2000), 0, "a wait that has seen it")
}

/// A timer falls at every distance from the moment of the wait.
fn none_lost(s: &mut Suite) -> Outcome {
    let (a, rate) = (s.bits.a, time::tick_rate());
    for round in 0..400u64 {
        let started = time::ticks();
        time::set_timer(started + round * rate / 8_000_000, a);
        for _ in 0..round % 7 * 40 {
            core::hint::spin_loop();
        }
        let mut bits = 0;
        while bits == 0 {
            (bits, s.seen) = ipc::wait(a, s.seen);
            // A wait that nothing ends is a test that hangs, and the host says so.
        }
        equal(bits, a, "bits of the timer")?;
    }
    Ok(())
}

fn ping_pong(s: &mut Suite) -> Outcome {
    const ROUNDS: usize = 15;
    let (own, a) = (u64::from(s.own), s.bits.a);
    let post = Step::call(Call::Post as u64, &[own, a.into()]);
    for turn in 0..20 {
        // Each wait has seen all posts before it, so that it ends with the next one only.
        let mut script = [post; 2 * ROUNDS];
        for round in 0..ROUNDS {
            script[2 * round] = s.low.memory.wait_since(64 * round, 1, turn * ROUNDS + round);
        }
        s.low.start(&script)?;
        for round in 0..ROUNDS {
            holds(!s.low.memory.window.is_done(2 * round), "a wait before its post", (turn, round))?;
            ipc::post(s.low.index, 1).expecting("a post to victim-low")?;
            equal(s.wait(a, 500_000), a, "the answer")?;
            let got = [0, 1].map(|result| s.low.memory.window.result(2 * round, result));
            equal(got, [TaskId::KERNEL.0.into(), 1], "sender and bits of a notification")?;
        }
        s.low.finish()?;
    }
    Ok(())
}

fn before_messages(s: &mut Suite) -> Outcome {
    let a = s.bits.a;
    s.low.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), u64::from(operation::TESTS)])])?;
    s.reaches(s.low.index, TaskState::Sending(s.own), "state of the sender")?;
    ipc::post(s.own, a).expecting("a post")?;
    let receive = |seen| ipc::recv(RecvBuffers { message: &mut [], frames: None }, a, seen, None);
    let first = receive(s.seen);
    s.seen = first.sequence;
    equal((first.sender, first.operation), (TaskId::KERNEL, a), "what comes first")?;
    let second = receive(s.seen);
    equal(second.sender, s.low.id(), "what comes second")?;
    ipc::reply(second.sender, 0, &[], None).expecting("a reply")?;
    s.low.finish()
}

fn no_capability(s: &mut Suite) -> Outcome {
    let refused = Err(KernelError::NoCapability);
    equal(ipc::post(task("uart"), 1), refused, "post to the serial port")?;
    equal(ipc::post(task("supervisor"), u32::MAX), refused, "post to the supervisor")?;
    equal(ipc::post(s.last.index, 1), refused, "post to victim-last")?;
    equal(ipc::post(s.high.index, 2), refused, "a bit that was not granted")?;
    equal(ipc::post(s.high.index, 3), refused, "a bit more than was granted")?;
    equal(ipc::post(s.high.index, 1), Ok(()), "the bit that was granted")?;
    equal(ipc::post(31, 1), Err(KernelError::BadArgument), "post to no task")?;
    equal(ipc::post(255, 1), Err(KernelError::BadArgument), "post to no task")?;
    // victim-high may post nothing to anybody.
    let (own, a) = (s.own.into(), s.bits.a.into());
    s.high.run(&[Step::call(Call::Post as u64, &[own, a]), Step::call(Call::Post as u64, &[u64::MAX, a])])?;
    s.high.memory.refused(0, KernelError::NoCapability, "post to the suite")?;
    s.high.memory.refused(1, KernelError::BadArgument, "post to no task")?;
    equal(s.wait(s.bits.a, 1000), 0, "bits that came through")
}

fn new_instance(s: &mut Suite) -> Outcome {
    // Posted while it does not look, while it is dead, and its own timer.
    let timer = Step::call(Call::SetTimer as u64, &[time::ticks() + time::from_micros(4000), 1]);
    s.high.run(&[timer])?;
    ipc::post(s.high.index, 1).expecting("a post")?;
    kernel::inject_fault(s.high.index).expecting("a fault")?;
    ipc::post(s.high.index, 1).expecting("a post to a dead task")?;
    revive(s.high.index)?;
    let wait = s.high.memory.wait(0, 1);
    s.high.detach(&[wait])?;
    s.sleep(10_000);
    holds(!s.high.memory.window.is_done(0), "a notification of the old instance", s.high.memory.window.result(0, 1))?;
    ipc::post(s.high.index, 1).expecting("a post")?;
    holds(s.high.memory.window.is_done(0), "a notification of its own", ())
}

fn interrupts(s: &mut Suite) -> Outcome {
    equal(ipc::enable_interrupts(s.bits.a), Err(KernelError::BadArgument), "a bit without interrupt")?;
    equal(ipc::disable_interrupts(u32::MAX), Err(KernelError::BadArgument), "all bits")?;
    s.high.run(&[Step::call(Call::IrqControl as u64, &[1, 1]), Step::call(Call::IrqControl as u64, &[0, 2])])?;
    s.high.memory.refused(0, KernelError::BadArgument, "a task without interrupts")?;
    s.high.memory.refused(1, KernelError::BadArgument, "neither on nor off")
}
