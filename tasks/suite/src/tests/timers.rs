//! Timers and the clock.

use abi::call::Call;
use userlib::time;
use victim::{Step, action};

use super::Test;
use crate::check::{Outcome, equal, holds};
use crate::suite::Suite;

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("timers.fire_not_early_and_soon", punctual),
    Test::new("timers.in_the_past_fire_at_once", past),
    Test::new("timers.are_cancelled", cancelled),
    Test::new("timers.are_replaced", replaced),
    Test::new("timers.of_several_tasks_fire_in_order", in_order),
    Test::new("timers.far_in_the_future_do_not_fire", far_future),
    Test::new("timers.the_clock_goes_on", clock),
];

/// How late a timer may be, in microseconds: the emulator shares its CPU with whatever the host does.
const LATE: u64 = 500_000;

fn punctual(s: &mut Suite) -> Outcome {
    for micros in [1, 10, 100, 1000, 10_000, 30_000] {
        let start = time::ticks();
        time::set_timer(start + time::from_micros(micros), s.bits.a);
        let mut bits = 0;
        while bits == 0 {
            (bits, s.seen) = userlib::ipc::wait(s.bits.a, s.seen);
        }
        let took = time::to_micros(time::ticks() - start);
        holds(took >= micros && took < micros + LATE, "microseconds asked for, and waited", (micros, took))?;
    }
    Ok(())
}

fn past(s: &mut Suite) -> Outcome {
    for deadline in [0, 1, time::ticks() - 1, time::ticks()] {
        time::set_timer(deadline, s.bits.a);
        let (bits, sequence) = userlib::ipc::wait(s.bits.a, s.seen);
        s.seen = sequence;
        equal(bits, s.bits.a, "bits of a timer in the past")?;
    }
    Ok(())
}

fn cancelled(s: &mut Suite) -> Outcome {
    let set = Step::call(Call::SetTimer as u64, &[time::ticks() + time::from_micros(3000), 4]);
    s.high.run(&[set, Step::call(Call::SetTimer as u64, &[0, 0])])?;
    let wait = s.high.memory.wait(0, 4);
    s.high.detach(&[wait])?;
    s.sleep(8000);
    holds(!s.high.memory.window.is_done(0), "a timer that was cancelled", s.high.memory.window.result(0, 1))
}

fn replaced(s: &mut Suite) -> Outcome {
    let start = time::ticks();
    time::set_timer(start + time::from_micros(2000), s.bits.a);
    time::set_timer(start + time::from_micros(6000), s.bits.b);
    let mut bits = 0;
    while bits == 0 {
        (bits, s.seen) = userlib::ipc::wait(s.bits.a | s.bits.b, s.seen);
    }
    equal(bits, s.bits.b, "the timer that was set last")?;
    holds(time::ticks() - start >= time::from_micros(6000), "at its time", time::ticks() - start)
}

fn in_order(s: &mut Suite) -> Outcome {
    // On an emulator that is late they fall together, and the highest priority comes first: a few tries.
    let mut last = [0; 3];
    for _ in 0..10 {
        last = three_timers(s)?;
        if last.is_sorted() {
            return Ok(());
        }
    }
    holds(false, "times, in the order of the deadlines", last)
}

/// Times at which three tasks were woken, in the order of their deadlines.
fn three_timers(s: &mut Suite) -> Outcome<[u64; 3]> {
    s.fresh_victims()?;
    let base = time::ticks() + time::from_micros(10_000);
    let after = |micros| base + time::from_micros(micros);
    let script =
        |wait, deadline| [Step::call(Call::SetTimer as u64, &[deadline, 4]), wait, Step::new(action::STAMP, &[])];
    // Asked for in another order than they are due, and than the priorities.
    let wait = s.high.memory.wait(0, 4);
    s.high.detach(&script(wait, after(80_000)))?;
    let wait = s.low.memory.wait(0, 4);
    s.low.start(&script(wait, after(40_000)))?;
    let wait = s.last.memory.wait(0, 4);
    s.last.start(&script(wait, after(0)))?;
    s.last.finish()?;
    s.low.finish()?;
    holds(s.until(2_000_000, |s| s.high.memory.window.is_done(2)), "the last timer fires", base)?;
    let stamps = [&s.last.memory, &s.low.memory, &s.high.memory].map(|memory| memory.window.result(2, 0));
    holds(stamps[0] >= after(0) && stamps[1] >= after(40_000) && stamps[2] >= after(80_000), "times", (base, stamps))?;
    Ok(stamps)
}

fn far_future(s: &mut Suite) -> Outcome {
    time::set_timer(u64::MAX, s.bits.a);
    // A timer of another task does not disturb it.
    s.high.run(&[Step::call(Call::SetTimer as u64, &[time::ticks() + time::from_micros(1000), 4])])?;
    let wait = s.high.memory.wait(0, 4);
    s.high.detach(&[wait])?;
    holds(s.until(2_000_000, |s| s.high.memory.window.is_done(0)), "the other timer fires", ())?;
    equal(s.wait(s.bits.a, 2000), 0, "bits of a timer at the end of time")
}

fn clock(s: &mut Suite) -> Outcome {
    let call = Step::call(Call::Time as u64, &[]);
    let before = time::ticks();
    s.high.run(&[call, call])?;
    let after = time::ticks();
    let [first, second] = [0, 1].map(|step| s.high.memory.window.result(step, 0));
    holds(before <= first && first <= second && second <= after, "ticks", (before, first, second, after))?;
    equal(s.high.memory.window.result(0, 1), time::tick_rate(), "ticks per second")?;
    holds((1_000_000..=2_000_000_000).contains(&time::tick_rate()), "ticks per second", time::tick_rate())?;
    let start = time::micros();
    s.sleep(20_000);
    let took = time::micros() - start;
    holds((20_000..20_000 + LATE).contains(&took), "microseconds", took)
}
