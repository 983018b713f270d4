//! Measurements of calls and hand-overs of frames, with the task `partner`.
//!
//! Instructions are those of the CPU: all that ran between the two readings, in every task and the kernel. With the emulator's
//! deterministic clock they are exact; what reading the counter costs is below ten.

use bench_api::{Event, Failure, Micro};
use idol_runtime::{FrameList, TaskSlot};
use partner_api::Partner;
use userlib::time;

/// Makes the calls and tells what they took.
pub fn measure(what: Micro, rounds: u32) -> Event {
    let Some(slot) = TaskSlot::find("partner") else { return Event::Failed(Failure::NoPartner) };
    let partner = Partner::from(slot);
    let taken = match what {
        Micro::Call => calls(&partner, rounds),
        Micro::Frames(count) => frames(&partner, count, rounds),
    };
    match taken {
        Some((instructions, micros)) => Event::Figure { what, rounds, instructions, micros },
        None => Event::Failed(Failure::Partner),
    }
}

/// Adds up the instructions of each round, as the counter has 32 bits only.
fn count(rounds: u32, mut round: impl FnMut() -> Option<()>) -> Option<(u64, u64)> {
    let started = time::micros();
    let mut instructions = 0;
    let mut before = userlib::instructions();
    for _ in 0..rounds {
        round()?;
        let now = userlib::instructions();
        instructions += u64::from(now.wrapping_sub(before));
        before = now;
    }
    Some((instructions, time::micros() - started))
}

fn calls(partner: &Partner, rounds: u32) -> Option<(u64, u64)> {
    // The first one finds nothing in the caches of the emulator, and perhaps the partner at work.
    partner.null().ok()?;
    count(rounds, || partner.null().ok())
}

fn frames(partner: &Partner, count: u8, rounds: u32) -> Option<(u64, u64)> {
    let mut frames = FrameList::new();
    partner.borrow_frames(u32::from(count), &mut frames).ok()?;
    let len = frames.len();
    let taken = self::count(rounds, || partner.bounce_frames(&mut frames).ok().filter(|()| frames.len() == len));
    partner.return_frames(&mut frames).ok()?;
    taken.filter(|_| len == usize::from(count))
}
