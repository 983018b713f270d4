//! Who runs when.

use abi::stats::TaskState;
use userlib::{ipc, kernel, time};
use victim::{Step, action};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::task;

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("schedule.a_higher_task_runs_at_once", higher_runs_at_once),
    Test::new("schedule.a_lower_task_waits", lower_waits),
    Test::new("schedule.a_timer_interrupts_a_busy_task", timer_interrupts),
    Test::new("schedule.a_busy_task_keeps_lower_ones_waiting", busy_keeps_lower_waiting),
    Test::new("schedule.the_lowest_task_gets_its_turn", lowest_gets_its_turn),
    Test::new("schedule.idle_runs", idle_runs),
];

fn higher_runs_at_once(s: &mut Suite) -> Outcome {
    let at = s.high.memory.scratch(256);
    s.high.memory.put(256, 0);
    for round in 1..=20 {
        let wait = s.high.memory.wait_since(0, 1, round as usize - 1);
        s.high.detach(&[wait, Step::new(action::STORE, &[at, round])])?;
        equal(s.high.memory.get(256), round - 1, "what it wrote before it was woken")?;
        ipc::post(s.high.index, 1).expecting("a post to victim-high")?;
        equal(s.high.memory.get(256), round, "what the woken task wrote, before the post returned")?;
    }
    Ok(())
}

fn lower_waits(s: &mut Suite) -> Outcome {
    let wait = s.low.memory.wait(0, 1);
    let at = s.low.memory.scratch(256);
    s.low.memory.put(256, 0);
    s.low.start(&[wait, Step::new(action::STORE, &[at, 1])])?;
    s.reaches(s.low.index, TaskState::Receiving, "state of the lower task")?;
    ipc::post(s.low.index, 1).expecting("a post to victim-low")?;
    let end = time::micros() + 3000;
    while time::micros() < end {
        equal(s.low.memory.get(256), 0, "what the lower task wrote while we ran")?;
    }
    s.low.finish()?;
    equal(s.low.memory.get(256), 1, "what it wrote when we waited")
}

fn timer_interrupts(s: &mut Suite) -> Outcome {
    s.low.start(&[Step::new(action::SPIN, &[5_000_000])])?;
    let start = time::micros();
    for _ in 0..5 {
        s.sleep(2000);
    }
    let took = time::micros() - start;
    holds((10_000..2_000_000).contains(&took), "microseconds for five waits of 2000", took)?;
    // The harness restarts it.
    holds(!s.low.memory.window.is_done(0), "the busy task is still at it", took)
}

fn busy_keeps_lower_waiting(s: &mut Suite) -> Outcome {
    let at = s.last.memory.scratch(0);
    s.last.memory.put(0, 0);
    s.low.park()?;
    s.last.start(&[Step::new(action::STORE, &[at, 1])])?;
    // Restarted, so that it is busy from the start and asks nobody.
    crate::victims::revive(s.low.index)?;
    s.low.forget();
    let go_on = s.low.memory.scratch(0);
    s.low.memory.put(0, 0);
    s.low.start(&[Step::new(action::SPIN_WHILE, &[go_on, 0, 5_000_000])])?;
    s.sleep(10_000);
    holds(!s.low.memory.window.is_done(0), "the busy task is still at it", ())?;
    equal(s.last.memory.get(0), 0, "what the lowest task wrote meanwhile")?;
    s.low.memory.put(0, 1);
    s.low.finish()?;
    s.last.finish()?;
    equal(s.last.memory.get(0), 1, "what it wrote afterwards")
}

fn lowest_gets_its_turn(s: &mut Suite) -> Outcome {
    s.last.run(&[Step::new(action::STAMP, &[])])?;
    holds(s.last.memory.window.result(0, 0) > 0, "a time", s.last.memory.window.result(0, 0))
}

fn idle_runs(s: &mut Suite) -> Outcome {
    let idle = task("idle");
    s.low.park()?;
    s.last.park()?;
    let (before, start) = (kernel::counters(idle).expecting("counters")?.ticks, time::ticks());
    s.sleep(40_000);
    let (after, end) = (kernel::counters(idle).expecting("counters")?.ticks, time::ticks());
    holds((after - before) * 2 > end - start, "ticks of idle while nobody had work", (after - before, end - start))
}
