//! Restarts: by the supervisor, by hand, with back-off, and of everyone.

use abi::call::{Call, kernel_op};
use abi::stats::TaskState;
use abi::{FaultInfo, KernelError};
use idol_runtime::Error;
use supervisor_api::SupervisorError;
use userlib::{ipc, kernel, time};
use victim::{Step, action};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::{generation, revive, state, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("restarts.the_supervisor_does_it", by_itself),
    Test::new("restarts.the_wait_doubles", back_off),
    Test::new("restarts.the_crash_is_on_record", on_record),
    Test::new("restarts.a_stopped_task_stays_stopped", stopped),
    Test::new("restarts.of_a_running_task", running),
    Test::new("restarts.need_privileges", privileges),
    Test::new("restarts.of_nobody", nobody),
    Test::restarting(&["supervisor"], "restarts.of_the_supervisor", supervisor),
    Test::restarting(&["idle"], "restarts.of_idle", idle),
    Test::restarting(&["partner"], "restarts.of_a_server_in_use", in_use),
];

fn by_itself(s: &mut Suite) -> Outcome {
    let before = generation(s.last.index)?;
    s.sleep(100);
    let wait = s.supervisor.restarts(s.last.index).expecting("history")?;
    let start = time::micros();
    kernel::inject_fault(s.last.index).expecting("a fault")?;
    equal(s.wait(s.bits.crash, 2_000_000), s.bits.crash, "the supervisor's notification")?;
    let allowed = u64::from(wait.backoff) * 1000 + 2_000_000;
    let last = s.last.index;
    holds(
        s.until(allowed, |_| state(last).is_ok_and(|state| state != TaskState::Faulted)),
        "it lives again within",
        allowed,
    )?;
    let took = time::micros() - start;
    holds(took >= u64::from(wait.backoff) * 1000, "microseconds, and the announced wait", (took, wait.backoff))?;
    equal(generation(last)?, before + 1, "generation")?;
    let after = s.supervisor.restarts(last).expecting("history")?;
    equal(after.crashes, wait.crashes + 1, "crashes on record")?;
    s.last.forget();
    s.last.run(&[])
}

fn back_off(s: &mut Suite) -> Outcome {
    // The low victim crashes in many tests, so its wait has grown; it never goes over a second.
    let mut last = s.supervisor.restarts(s.last.index).expecting("history")?.backoff;
    for _ in 0..12 {
        kernel::inject_fault(s.last.index).expecting("a fault")?;
        let now = s.supervisor.restarts(s.last.index).expecting("history")?.backoff;
        equal(now, (2 * last).min(1000), "milliseconds of the next wait")?;
        revive(s.last.index)?;
        last = now;
    }
    equal(last, 1000, "the longest wait")
}

fn on_record(s: &mut Suite) -> Outcome {
    s.high.memory.window.write_script(&[Step::new(action::PANIC, &[815])]);
    s.high.dies(&[Step::new(action::PANIC, &[815])])?;
    let record = s.supervisor.crash_record(0).expecting("the latest crash")?;
    equal(record.task, s.high.index, "task")?;
    equal(record.fault.info, FaultInfo::Panic, "reason")?;
    equal(record.fault.generation + 1, s.high.id().generation(), "generation")?;
    holds(record.message.ends_with("asked to panic: 815"), "message", &record.message)?;
    s.low.dies(&[Step::new(action::LOAD, &[16])])?;
    let record = s.supervisor.crash_record(0).expecting("the latest crash")?;
    equal((record.task, record.message.len()), (s.low.index, 0), "task, and length of the message")?;
    equal(record.fault.info, FaultInfo::MemoryAccess { address: 16, write: false }, "reason")?;
    let before = s.supervisor.crash_record(1).expecting("the one before")?;
    equal(before.task, s.high.index, "task of the one before")?;
    equal(
        s.supervisor.crash_record(1000).err(),
        Some(Error::Server(SupervisorError::NoRecord)),
        "a record that is not there",
    )
}

fn stopped(s: &mut Suite) -> Outcome {
    let before = generation(s.high.index)?;
    kernel::stop(s.high.index).expecting("a stop")?;
    equal(state(s.high.index)?, TaskState::Stopped, "state")?;
    equal(generation(s.high.index)?, before + 1, "generation: the old instance is over")?;
    s.sleep(30_000);
    equal(state(s.high.index)?, TaskState::Stopped, "state after a while")?;
    // A fault of a task that does not run is none.
    kernel::inject_fault(s.high.index).expecting("a fault of a stopped task")?;
    equal(state(s.high.index)?, TaskState::Stopped, "state")?;
    kernel::restart(s.high.index).expecting("a restart")?;
    equal(generation(s.high.index)?, before + 1, "generation: announced when it ended")?;
    s.high.run(&[])
}

fn running(s: &mut Suite) -> Outcome {
    s.low.start(&[Step::new(action::SPIN, &[20_000_000])])?;
    s.sleep(2000);
    let before = generation(s.low.index)?;
    revive(s.low.index)?;
    equal(generation(s.low.index)?, before + 1, "generation")?;
    s.low.forget();
    let start = time::micros();
    s.low.run(&[])?;
    holds(time::micros() - start < 10_000_000, "it is no longer busy: microseconds", time::micros() - start)
}

fn privileges(s: &mut Suite) -> Outcome {
    let own: u64 = s.own.into();
    let at = s.high.memory.scratch(0);
    let operations = [
        kernel_op::TASK_STATUS,
        kernel_op::COUNTERS,
        kernel_op::RESTART,
        kernel_op::FAULT,
        kernel_op::PANIC_MESSAGE,
        kernel_op::POWER,
        kernel_op::NEXT_FAULTED,
        kernel_op::FRAME_CENSUS,
        kernel_op::STOP,
    ];
    let steps = operations.map(|operation| Step::call(Call::Kernel as u64, &[operation.into(), own, at, 128]));
    s.high.run(&steps)?;
    for step in 0..steps.len() {
        s.high.memory.refused(step, KernelError::NoPrivilege, "an operation of the kernel")?;
    }
    s.high.run(&[Step::call(Call::Log as u64, &[at, 8]), Step::call(Call::Kernel as u64, &[99, own, at, 8])])?;
    s.high.memory.refused(0, KernelError::NoPrivilege, "the kernel's console")?;
    s.high.memory.refused(1, KernelError::BadArgument, "an operation that does not exist")?;
    // The suite itself has some, and not those.
    equal(kernel::power_off(), KernelError::NoPrivilege, "power")?;
    equal(kernel::log("x"), Err(KernelError::NoPrivilege), "the kernel's console")
}

fn nobody(_: &mut Suite) -> Outcome {
    let bad = KernelError::BadArgument;
    for task in [31, 200, 255] {
        equal(kernel::restart(task), Err(bad), "a restart")?;
        equal(kernel::stop(task), Err(bad), "a stop")?;
        equal(kernel::task_status(task), Err(bad), "status")?;
        equal(kernel::counters(task), Err(bad), "counters")?;
        equal(kernel::panic_message(task, &mut [0; 8]), Err(bad), "a message")?;
    }
    equal(kernel::frame_census(4), Err(bad), "a census")?;
    equal(kernel::next_faulted(0), Ok(None), "a faulted task")
}

/// Nobody restarts the supervisor but the kernel; then it does its work again.
fn supervisor(s: &mut Suite) -> Outcome {
    let supervisor = task("supervisor");
    let protected = Some(Error::Server(SupervisorError::Protected));
    equal(s.supervisor.restart(supervisor).err(), protected, "a restart of the supervisor by itself")?;
    let before = generation(supervisor)?;
    kernel::inject_fault(supervisor).expecting("a fault")?;
    equal(generation(supervisor)?, before + 1, "generation")?;
    holds(state(supervisor)? != TaskState::Faulted, "it lives", ())?;
    // What fails while it starts is not overlooked.
    kernel::inject_fault(s.high.index).expecting("a fault")?;
    let high = s.high.index;
    holds(
        s.until(2_000_000, |_| state(high).is_ok_and(|state| state == TaskState::Receiving)),
        "the victim lives again",
        high,
    )?;
    let history = s.supervisor.restarts(high).expecting("history")?;
    equal(history.crashes, 1, "crashes that the new supervisor has seen")
}

/// When all others wait, somebody has to have the CPU: idle is never gone.
fn idle(s: &mut Suite) -> Outcome {
    let idle = task("idle");
    let before = generation(idle)?;
    for round in 1..=3 {
        kernel::inject_fault(idle).expecting("a fault")?;
        equal(state(idle)?, TaskState::Runnable, "state, at once")?;
        equal(generation(idle)?, before + round, "generation")?;
        let ticks = kernel::counters(idle).expecting("counters")?.ticks;
        s.sleep(20_000);
        holds(kernel::counters(idle).expecting("counters")?.ticks > ticks, "it runs", ticks)?;
    }
    equal(kernel::stop(idle), Err(KernelError::BadArgument), "a stop of idle")?;
    s.high.run(&[])
}

fn in_use(s: &mut Suite) -> Outcome {
    let partner = task("partner");
    for round in 0..20 {
        let before = ipc::current_id(partner);
        revive(partner)?;
        equal(ipc::current_id(partner).generation(), before.generation() + 1, "generation")?;
        s.partner.null().expecting("a call")?;
        let mut frames = s.borrow_frames(round % 33)?;
        revive(partner)?;
        s.return_frames(&mut frames)?;
        s.pool.all_home()?;
    }
    Ok(())
}
