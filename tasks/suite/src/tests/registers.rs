//! Registers: kept over switches, calls and interrupts, and never another's.

use victim::{DATA_AT_START, Step, action};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::{generation, revive};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("registers.vectors_outlive_interruptions", vectors),
    Test::new("registers.integers_outlive_interruptions", integers),
    Test::new("registers.vectors_of_others_are_not_seen", isolated),
    Test::new("registers.vectors_of_the_old_instance_are_not_seen", old_instance),
    Test::new("registers.rounding_mode_is_a_tasks_own", rounding),
    Test::new("registers.variables_begin_anew", statics),
];

/// Interrupts a busy task many times, with another that uses the same registers.
fn interrupted(s: &mut Suite, action: u64) -> Outcome {
    s.low.start(&[Step::new(action, &[0x1111_2222_3333_0000, 250_000])])?;
    let mut rounds = 0;
    while !s.low.memory.window.is_done(0) && rounds < 100 {
        s.sleep(1000);
        s.high.run(&[Step::new(action, &[0x4444_5555_6666_0000, 100])])?;
        equal(s.high.memory.window.result(0, 0), 0, "registers of the higher task that changed")?;
        rounds += 1;
    }
    s.low.finish()?;
    holds(rounds >= 3, "interruptions", rounds)?;
    equal(s.low.memory.window.result(0, 0), 0, "registers of the interrupted task that changed")
}

fn vectors(s: &mut Suite) -> Outcome {
    interrupted(s, action::VECTORS)
}

fn integers(s: &mut Suite) -> Outcome {
    interrupted(s, action::REGISTERS)
}

fn isolated(s: &mut Suite) -> Outcome {
    const SECRET: u64 = 0x5ec2_e700_0000_0000;
    s.high.run(&[Step::new(action::VECTORS, &[SECRET, 10]), Step::new(action::FIND_VECTORS, &[SECRET])])?;
    holds(s.high.memory.window.result(1, 0) > 32, "the secret is there", s.high.memory.window.result(1, 0))?;
    s.low.run(&[Step::new(action::FIND_VECTORS, &[SECRET])])?;
    equal(s.low.memory.window.result(0, 0), 0, "registers with another task's secret")
}

fn old_instance(s: &mut Suite) -> Outcome {
    const SECRET: u64 = 0x5ec2_e700_1111_0000;
    s.high.dies(&[Step::new(action::VECTORS, &[SECRET, 10]), Step::new(action::LOAD, &[0])])?;
    s.high.run(&[Step::new(action::FIND_VECTORS, &[SECRET])])?;
    equal(s.high.memory.window.result(0, 0), 0, "registers with the old instance's secret")?;
    // The same where no other task uses such registers between death and restart: the suite waits meanwhile.
    let wait = s.supervisor.restarts(s.last.index).expecting("history")?.backoff;
    let before = generation(s.last.index)?;
    s.last.start(&[Step::new(action::VECTORS, &[SECRET, 10]), Step::new(action::LOAD, &[0])])?;
    s.sleep(u64::from(wait) * 1000 + 100_000);
    s.last.forget();
    s.last.run(&[Step::new(action::FIND_VECTORS, &[SECRET])])?;
    equal(generation(s.last.index)?, before + 1, "generation")?;
    equal(s.last.memory.window.result(0, 0), 0, "registers with the old instance's secret")
}

fn rounding(s: &mut Suite) -> Outcome {
    // Towards zero: bits 22 and 23 of FPCR.
    const MODE: u64 = 3 << 22;
    s.high.run(&[Step::new(action::ROUNDING, &[MODE])])?;
    equal(s.high.memory.window.result(0, 0), 0, "rounding mode at the start")?;
    s.low.run(&[Step::new(action::ROUNDING, &[0])])?;
    equal(s.low.memory.window.result(0, 0), 0, "rounding mode of another task")?;
    s.high.run(&[Step::new(action::ROUNDING, &[MODE])])?;
    equal(s.high.memory.window.result(0, 0), MODE, "rounding mode that was set")?;
    revive(s.high.index)?;
    s.high.run(&[Step::new(action::ROUNDING, &[0])])?;
    equal(s.high.memory.window.result(0, 0), 0, "rounding mode after a restart")
}

fn statics(s: &mut Suite) -> Outcome {
    for _ in 0..3 {
        s.high.run(&[Step::new(action::STATICS, &[42]), Step::new(action::STATICS, &[43])])?;
        let values = |step| [0, 1].map(|result| s.high.memory.window.result(step, result));
        equal(values(0), [DATA_AT_START, 0], "variables of a new instance")?;
        equal(values(1), [42, 42], "variables that were set")?;
        revive(s.high.index)?;
    }
    Ok(())
}
