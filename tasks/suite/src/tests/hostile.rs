//! Random system calls: whatever a task tries, it harms itself at most.

use userlib::{RecvBuffers, ipc, kernel, time};
use victim::{Step, action};

use super::Test;
use crate::check::{Expect, Failure, Outcome, equal};
use crate::suite::Suite;
use crate::victims::{Event, revive};

/// The tests.
pub const TESTS: &[Test] = &[
    // The victim has a slot for the partner, whose operations include one that crashes it.
    Test::restarting(&["partner"], "hostile.random_calls_of_a_lower_task", below),
    Test::restarting(&["partner"], "hostile.random_calls_of_a_higher_task", above),
];

/// Calls in a row, unless one of them ends the task.
const CALLS: u64 = 300;

fn below(s: &mut Suite) -> Outcome {
    let mut ends = [0u32; 4];
    for seed in 1..=150u64 {
        s.high.memory.window.write_script(&[Step::new(action::STAMP, &[]); 16]);
        let window = s.low.memory.window.address();
        s.low.start(&[Step::new(action::RANDOM_CALLS, &[seed * 0x9e37_79b9_7f4a_7c15, CALLS, window])])?;
        // For 20 ms it may send us what it likes.
        let deadline = time::ticks() + time::from_micros(20_000);
        let end = loop {
            time::set_timer(deadline, s.bits.timer);
            let mut buffer = [0; 256];
            let into = RecvBuffers { message: &mut buffer, frames: None };
            let received = ipc::recv(into, s.bits.timer, s.seen, Some(s.low.id()));
            match s.low.understand(received)? {
                Event::Message(received) => ipc::reply(received.sender, 0, &[], None).expecting("a reply")?,
                Event::Finished => break 0,
                Event::Died => break 1,
                Event::Nothing => {
                    s.seen = received.sequence;
                    if time::ticks() >= deadline {
                        break 2;
                    }
                }
            }
        };
        time::cancel_timer();
        ends[end] += 1;
        if end != 0 {
            revive(s.low.index)?;
            s.low.forget();
        }
        // It may have called the victim above, and left it in any state.
        revive(s.high.index)?;
    }
    alive(s)?;
    // If all ends were alike, the calls were not random.
    if ends[1] == 0 || ends[1] == 150 {
        return Err(Failure::new(format_args!("finished, died, blocked: {ends:?}")));
    }
    Ok(())
}

fn above(s: &mut Suite) -> Outcome {
    for seed in 1..=150u64 {
        let window = s.high.memory.window.address();
        let step = Step::new(action::RANDOM_CALLS, &[seed * 0xd134_2543_de82_ef95, CALLS, window]);
        // It goes on until it blocks, ends or dies; all that before this returns.
        s.high.detach(&[step])?;
        revive(s.high.index)?;
    }
    alive(s)
}

fn alive(s: &mut Suite) -> Outcome {
    s.partner.null().expecting("a call of the partner")?;
    s.supervisor.restarts(0).expecting("a call of the supervisor")?;
    s.high.run(&[])?;
    equal(kernel::next_faulted(0), Ok(None), "a faulted task")
}
