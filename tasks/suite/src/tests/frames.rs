//! Frames: one holder at a time, whole lists or nothing, none lost.

use abi::call::{Call, RecvArgs, SendExtra};
use abi::stats::TaskState;
use abi::{FaultInfo, FrameDesc, FrameHandle, KernelError, MAX_FRAME_LIST, PAGE_SIZE, TaskId};
use userlib::{FrameList, RecvBuffers, ipc, kernel};
use victim::{FRAMES, SCRATCH, STEP_SIZE, Step, action, operation};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::memory::{is_pattern, pattern};
use crate::suite::Suite;
use crate::victims::{refused, state, succeeded, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("frames.content_goes_along", content),
    Test::new("frames.there_and_back_many_times", many_times),
    Test::new("frames.lists_of_every_length", every_length),
    Test::new("frames.each_hand_over_is_a_new_generation", generations),
    Test::new("frames.stale_handle", stale),
    Test::new("frames.handle_of_anothers_frame", not_held),
    Test::new("frames.handle_of_no_frame", unknown),
    Test::new("frames.twice_in_a_list", duplicate),
    Test::new("frames.list_too_long", list_too_long),
    Test::new("frames.receiver_without_room", no_room),
    Test::new("frames.caller_without_room", no_room_for_reply),
    Test::new("frames.length_over_the_page", length),
    Test::new("frames.receiver_that_may_hold_none", pool),
    Test::new("frames.quota", quota),
    Test::new("frames.a_refused_list_changes_nothing", whole_or_nothing),
    Test::new("frames.touch_before_it_comes", touch_before),
    Test::new("frames.touch_while_lent", touch_while_lent),
    Test::new("frames.touch_after_return", touch_after_return),
    Test::new("frames.execute", execute),
    Test::new("frames.as_argument_of_a_system_call", as_argument),
    Test::new("frames.arm_and_complete_are_the_owners", arm),
    Test::new("frames.list_of_what_is_held", list),
    Test::new("frames.holder_dies", holder_dies),
    Test::new("frames.caller_dies_in_the_queue", caller_dies),
    Test::restarting(&["partner"], "frames.server_dies_with_them", server_dies),
    Test::restarting(&["partner"], "frames.owner_dies_while_they_are_lent", owner_dies),
];

/// Quota of victim-high, in app.toml.
const QUOTA: u32 = 16;

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

/// Sends frames to victim-high, which keeps them.
fn give(s: &mut Suite, frames: &mut FrameList) -> u32 {
    s.high.call(&[], &mut [], &[], Some(frames)).0
}

/// A step with which a victim sends frames from a list in its memory.
fn send_frames(
    memory: &mut crate::victims::Memory,
    target: TaskId,
    operation: u16,
    frames: &[FrameDesc],
    count: usize,
) -> Step {
    let list = memory.frames(0x400, frames) as usize;
    let extra = memory
        .extra(0x600, &SendExtra { frames: list, frame_count: count, frame_capacity: 32, ..SendExtra::default() });
    Step::call(Call::Send as u64, &[target.0.into(), operation.into(), 0, 0, 0, 0, extra])
}

/// Number of the partner's operation `return_frames`: its place in the interface.
const RETURN_FRAMES: u16 = 8;

fn content(s: &mut Suite) -> Outcome {
    const COUNT: usize = 4;
    let mut frames = s.borrow_frames(COUNT as u32)?;
    let mut sums = [0; COUNT];
    for (index, frame) in frames.as_slice().iter().enumerate() {
        sums[index] = s.pool.with_bytes(*frame, |bytes| {
            pattern(bytes, index as u8);
            sum(bytes)
        })?;
    }
    // Only the receiver reads now, at the same addresses; then the frames come back.
    let steps: [Step; COUNT + 1] = core::array::from_fn(|index| match frames.as_slice().get(index) {
        Some(frame) => Step::new(action::SUM, &[s.pool.address(frame.handle) + 2, PAGE_SIZE as u64 - 2]),
        None => {
            let list = s.high.memory.window.address() + FRAMES as u64;
            Step::call(Call::Reply as u64, &[s.id().0.into(), 0, 0, 0, list, COUNT as u64])
        }
    });
    let before: [usize; COUNT] = core::array::from_fn(|index| frames.as_slice()[index].handle.index());
    succeeded(s.high.call(&steps, &mut [], &[], Some(&mut frames)).0, "the call")?;
    equal(frames.len(), COUNT, "frames that came back")?;
    for (index, expected) in sums.into_iter().enumerate() {
        equal(s.high.memory.window.result(index, 0), expected, "sum that the receiver saw")?;
        let frame = frames.as_slice()[index];
        equal(frame.handle.index(), before[index], "order of the list")?;
        holds(s.pool.with_bytes(frame, |bytes| is_pattern(bytes, index as u8))?, "content that came back", index)?;
    }
    s.return_frames(&mut frames)
}

fn many_times(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(32)?;
    s.pool.with_bytes(frames.as_slice()[31], |bytes| pattern(bytes, 77))?;
    for round in 0..500 {
        s.partner.bounce_frames(&mut frames).expecting("a bounce")?;
        equal(frames.len(), 32, "frames that came back")?;
        if round % 100 == 0 {
            let census = kernel::frame_census(s.pool.number).expecting("census")?;
            equal((census.owner + 32, census.lent), (s.pool.count, 32), "frames with the owner, and lent")?;
        }
    }
    holds(s.pool.with_bytes(frames.as_slice()[31], |bytes| is_pattern(bytes, 77))?, "content after all that", ())?;
    s.return_frames(&mut frames)
}

fn every_length(s: &mut Suite) -> Outcome {
    for count in 0..=MAX_FRAME_LIST as u32 {
        let mut frames = s.borrow_frames(count)?;
        equal(frames.len(), count as usize, "frames borrowed")?;
        let held = kernel::task_status(s.own).expecting("status")?.frames_held;
        equal(u32::from(held), count, "frames held")?;
        s.partner.bounce_frames(&mut frames).expecting("a bounce")?;
        s.return_frames(&mut frames)?;
        s.pool.all_home()?;
    }
    Ok(())
}

fn generations(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    let mut last = frames.as_slice()[0].handle;
    for _ in 0..5 {
        s.partner.bounce_frames(&mut frames).expecting("a bounce")?;
        let now = frames.as_slice()[0].handle;
        equal(now.index(), last.index(), "the same frame")?;
        equal(now.generation(), (last.generation() + 2) % FrameHandle::GENERATIONS, "two hand-overs later")?;
        last = now;
    }
    s.return_frames(&mut frames)
}

/// Sends a list that should be refused, and checks that it was and that nothing moved.
fn refuse(s: &mut Suite, list: &[FrameDesc], error: KernelError, what: &str) -> Outcome {
    let before = kernel::frame_census(s.pool.number).expecting("census")?;
    let mut frames = FrameList::new();
    for frame in list {
        frames.push(*frame).expecting("room in the list")?;
    }
    refused(give(s, &mut frames), error, what)?;
    equal(frames.as_slice(), list, "the list of a refused call")?;
    equal(kernel::frame_census(s.pool.number).expecting("census")?, before, "frames after a refused call")
}

fn stale(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    let old = frames.as_slice()[0];
    s.partner.bounce_frames(&mut frames).expecting("a bounce")?;
    let new = frames.as_slice()[0];
    for handle in [
        old.handle,
        FrameHandle::new(new.handle.index(), new.handle.generation() + 1),
        FrameHandle::new(new.handle.index(), 0xf_ffff),
    ] {
        refuse(s, &[FrameDesc { handle, ..new }], KernelError::FrameStale, "a handle of another generation")?;
    }
    s.return_frames(&mut frames)
}

fn not_held(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    let mine = frames.as_slice()[0];
    s.return_frames(&mut frames)?;
    // With the generation that it has now, at the partner.
    let guess = FrameHandle::new(mine.handle.index(), mine.handle.generation() + 1);
    refuse(s, &[FrameDesc { handle: guess, ..mine }], KernelError::FrameNotHeld, "a frame of the partner")?;
    refuse(s, &[mine], KernelError::FrameStale, "a frame that was given back")
}

fn unknown(s: &mut Suite) -> Outcome {
    let end = s.pool.first() + usize::from(s.pool.count);
    for index in [end, 1023, 1024, 4095] {
        let handle = FrameHandle::new(index, 0);
        refuse(
            s,
            &[FrameDesc { handle, ..FrameDesc::default() }],
            KernelError::FrameUnknown,
            "a frame that does not exist",
        )?;
    }
    Ok(())
}

fn duplicate(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(3)?;
    let [a, b, c] = [0, 1, 2].map(|index| frames.as_slice()[index]);
    refuse(s, &[a, a], KernelError::FrameDuplicate, "twice in a row")?;
    refuse(s, &[a, b, c, a], KernelError::FrameDuplicate, "first and last")?;
    refuse(s, &[a, b, b, c], KernelError::FrameDuplicate, "in the middle")?;
    s.return_frames(&mut frames)
}

fn list_too_long(s: &mut Suite) -> Outcome {
    let high = s.high.id();
    let none = [FrameDesc::default(); 1];
    for count in [33, 255, 1 << 61, usize::MAX] {
        let step = send_frames(&mut s.low.memory, high, operation::RUN, &none, count);
        s.low.run(&[step])?;
        s.low.memory.refused(0, KernelError::FrameListTooLong, "a list of too many")?;
    }
    // More than its own room says.
    let list = s.low.memory.frames(0x400, &none) as usize;
    let extra = SendExtra { frames: list, frame_count: 2, frame_capacity: 1, ..SendExtra::default() };
    let extra = s.low.memory.extra(0x600, &extra);
    s.low.run(&[Step::call(Call::Send as u64, &[high.0.into(), 1, 0, 0, 0, 0, extra])])?;
    s.low.memory.refused(0, KernelError::FrameListTooLong, "more than there is room for")?;
    let own = s.id().0.into();
    s.high.run(&[Step::call(Call::Reply as u64, &[own, 0, 0, 0, list as u64, 33])])?;
    s.high.memory.refused(0, KernelError::FrameListTooLong, "a reply with too many")
}

fn no_room(s: &mut Suite) -> Outcome {
    // A receive with room for two.
    let wait = s.high.memory.receive(
        0,
        &RecvArgs { frames: s.high.memory.scratch(256) as usize, frame_capacity: 2, ..RecvArgs::default() },
    );
    s.high.detach(&[wait])?;
    let mut frames = s.borrow_frames(3)?;
    let (code, _) = ipc::send(s.high.id(), operation::TESTS, &[], &mut [], &[], Some(&mut frames));
    refused(code, KernelError::FrameListTooLong, "three frames for room for two")?;
    equal(frames.len(), 3, "frames of a refused call")?;
    equal(state(s.high.index)?, TaskState::Receiving, "state of the receiver")?;
    // The serial port takes no frames at all.
    let uart = ipc::current_id(task("uart"));
    let (code, _) = ipc::send(uart, 2, &[], &mut [0; 16], &[], Some(&mut frames));
    refused(code, KernelError::FrameListTooLong, "frames for a server that takes none")?;
    s.return_frames(&mut frames)
}

fn no_room_for_reply(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(2)?;
    succeeded(give(s, &mut frames), "the hand-over")?;
    let list = s.high.memory.window.address() + FRAMES as u64;
    let own: u64 = s.id().0.into();
    // Without any room.
    s.high.run(&[Step::call(Call::Reply as u64, &[own, 0, 0, 0, list, 2])])?;
    s.high.memory.refused(0, KernelError::FrameListTooLong, "a reply with frames to a caller without room")?;
    // The victim still has them, and gives them back to one with room.
    let mut back = FrameList::new();
    succeeded(
        s.high.call(&[Step::call(Call::Reply as u64, &[own, 0, 0, 0, list, 2])], &mut [], &[], Some(&mut back)).0,
        "the call",
    )?;
    equal(back.len(), 2, "frames that came back")?;
    s.return_frames(&mut back)
}

fn length(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(2)?;
    let [a, b] = [0, 1].map(|index| frames.as_slice()[index]);
    for len in [PAGE_SIZE as u16 + 1, u16::MAX] {
        refuse(s, &[a, FrameDesc { len, ..b }], KernelError::FrameLength, "a length over the page")?;
    }
    let mut list = FrameList::new();
    let described = FrameDesc { len: PAGE_SIZE as u16, offset: 255, meta: 0xa5, ..a };
    list.push(described).expecting("room")?;
    succeeded(give(s, &mut list), "a full page")?;
    let got = s.high.memory.received_frame(0);
    equal((got.len, got.offset, got.meta), (described.len, 255, 0xa5), "what was said of the frame")?;
    frames.clear();
    frames.push(b).expecting("room")?;
    s.return_frames(&mut frames)
}

fn pool(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    // The MAC driver takes frames, but of its own pool only.
    let (code, _) = ipc::send(s.mac.id(), 1, &[0; 4], &mut [0; 64], &[], Some(&mut frames));
    refused(code, KernelError::FramePool, "a frame for a task that may not hold it")?;
    equal(frames.len(), 1, "frames of a refused call")?;
    s.return_frames(&mut frames)
}

fn quota(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(QUOTA + 1)?;
    refused(give(s, &mut frames), KernelError::FrameQuota, "one over the quota")?;
    let spare = frames.pop().ok_or(()).expecting("a frame")?;
    succeeded(give(s, &mut frames), "as many as the quota allows")?;
    refuse(s, &[spare], KernelError::FrameQuota, "one more")?;
    frames.clear();
    frames.push(spare).expecting("room")?;
    s.return_frames(&mut frames)
}

fn whole_or_nothing(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(8)?;
    let mut list = [FrameDesc::default(); 8];
    list.copy_from_slice(frames.as_slice());
    for (index, frame) in list.iter().enumerate() {
        s.pool.with_bytes(*frame, |bytes| pattern(bytes, index as u8))?;
    }
    // The last entry is bad, each time for another reason.
    let good = list[7];
    let bad = [
        (FrameHandle::new(4095, 0), 0, KernelError::FrameUnknown),
        (FrameHandle::new(good.handle.index(), good.handle.generation() + 1), 0, KernelError::FrameStale),
        (list[0].handle, 0, KernelError::FrameDuplicate),
        (good.handle, 5000, KernelError::FrameLength),
    ];
    for (handle, len, error) in bad {
        list[7] = FrameDesc { handle, len, ..good };
        refuse(s, &list, error, "a list with a bad end")?;
    }
    list[7] = good;
    // All of them are still ours, handles and content.
    for (index, frame) in list.iter().enumerate() {
        holds(s.pool.with_bytes(*frame, |bytes| is_pattern(bytes, index as u8))?, "content of a frame", index)?;
    }
    s.return_frames(&mut frames)
}

fn touch_before(s: &mut Suite) -> Outcome {
    for place in [0, 1, u64::from(s.pool.count) - 1] {
        let address = s.pool.address_of_place(place);
        for (step, write) in [(action::LOAD, false), (action::STORE, true)] {
            let record = s.high.dies(&[Step::new(step, &[address, 1])])?;
            equal(record.info, FaultInfo::MemoryAccess { address, write }, "reason")?;
        }
    }
    // A task that holds frames sees those, and not their neighbours.
    let mut frames = s.borrow_frames(1)?;
    let (held, neighbour) = (frames.as_slice()[0].handle.index(), frames.as_slice()[0].handle.index() ^ 1);
    succeeded(give(s, &mut frames), "the hand-over")?;
    let address = s.pool.address(FrameHandle::new(held, 0));
    s.high.run(&[Step::new(action::STORE, &[address, 3]), Step::new(action::LOAD, &[address])])?;
    equal(s.high.memory.window.result(1, 0), 3, "what was stored")?;
    let address = s.pool.address(FrameHandle::new(neighbour, 0));
    let record = s.high.dies(&[Step::new(action::LOAD, &[address])])?;
    equal(record.info, FaultInfo::MemoryAccess { address, write: false }, "reason")
}

/// Gives a frame away, then looks at it.
fn touch_while_lent(s: &mut Suite) -> Outcome {
    for write in [false, true] {
        let mut frames = s.borrow_frames(1)?;
        let address = s.pool.address(frames.as_slice()[0].handle);
        succeeded(give(s, &mut frames), "the hand-over")?;
        let frame = s.high.memory.received_frame(0);
        let partner = s.partner.id();
        let away = send_frames(&mut s.high.memory, partner, RETURN_FRAMES, &[frame], 1);
        let touch = Step::new(if write { action::STORE } else { action::LOAD }, &[address, 1]);
        // The first touch fills the cache of translations.
        let record = s.high.dies(&[Step::new(action::STORE, &[address, 7]), away, touch])?;
        s.high.memory.succeeded(1, "the hand-over to the partner")?;
        equal(record.info, FaultInfo::MemoryAccess { address, write }, "reason")?;
    }
    Ok(())
}

/// Gives a frame back in a reply and looks at it; when it comes again, it may.
fn touch_after_return(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    let address = s.pool.address(frames.as_slice()[0].handle);
    let list = s.high.memory.window.address() + FRAMES as u64;
    let own: u64 = s.id().0.into();
    let back = Step::call(Call::Reply as u64, &[own, 0, 0, 0, list, 1]);
    let touch = Step::new(action::LOAD, &[address]);
    for round in 0..10 {
        s.pool.with_bytes(frames.as_slice()[0], |bytes| pattern(bytes, round))?;
        succeeded(s.high.call(&[touch, back], &mut [], &[], Some(&mut frames)).0, "the call")?;
        equal(frames.len(), 1, "frames that came back")?;
    }
    // It dies after the reply, so the caller does not notice.
    succeeded(s.high.call(&[touch, back, touch], &mut [], &[], Some(&mut frames)).0, "the call")?;
    let record = crate::victims::last_fault(s.high.index)?;
    equal(record.info, FaultInfo::MemoryAccess { address, write: false }, "reason")?;
    holds(s.high.memory.window.is_done(0) && !s.high.memory.window.is_done(2), "steps that were done", STEP_SIZE)?;
    s.return_frames(&mut frames)
}

fn execute(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    let address = s.pool.address(frames.as_slice()[0].handle);
    succeeded(give(s, &mut frames), "the hand-over")?;
    let record = s.high.dies(&[Step::new(action::JUMP, &[address])])?;
    equal(record.info, FaultInfo::Execute { address }, "reason")
}

/// Frames are handed over, not lent: no call takes them as a buffer.
fn as_argument(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(1)?;
    let address = s.pool.address(frames.as_slice()[0].handle);
    succeeded(give(s, &mut frames), "the hand-over")?;
    let partner = s.partner.id().0.into();
    let record = s.high.dies(&[Step::call(Call::Send as u64, &[partner, 1, address, 8])])?;
    equal(record.info, FaultInfo::BadMemoryArgument { address, len: 8 }, "reason")
}

fn arm(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(2)?;
    let mut list = [FrameDesc::default(); 2];
    list.copy_from_slice(frames.as_slice());
    succeeded(give(s, &mut frames), "the hand-over")?;
    let held = [s.high.memory.received_frame(0), s.high.memory.received_frame(1)];
    let at = s.high.memory.frames(0, &held);
    let old = s.high.memory.frames(64, &list);
    s.high.run(&[
        Step::call(Call::FrameArm as u64, &[at, 2, 0]),
        Step::call(Call::FrameArm as u64, &[at, 2, 1]),
        Step::call(Call::FrameArm as u64, &[at, 2, 2]),
        Step::call(Call::FrameArm as u64, &[old, 2, 0]),
        Step::call(Call::FrameComplete as u64, &[at, 2]),
        Step::call(Call::FrameComplete as u64, &[at, 33]),
    ])?;
    s.high.memory.refused(0, KernelError::FramePool, "arming by one who does not own the pool")?;
    s.high.memory.refused(1, KernelError::FramePool, "arming by one who does not own the pool")?;
    s.high.memory.refused(2, KernelError::BadArgument, "a direction that does not exist")?;
    s.high.memory.refused(3, KernelError::FrameStale, "arming with an old handle")?;
    s.high.memory.refused(4, KernelError::FrameNotHeld, "completion of what no device holds")?;
    s.high.memory.refused(5, KernelError::FrameListTooLong, "a list of 33")?;
    let census = kernel::frame_census(s.pool.number).expecting("census")?;
    equal((census.device, census.lent), (0, 2), "frames with the device, and lent")
}

fn list(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(5)?;
    let listed = s.pool.held()?;
    equal(listed.len(), 5, "frames in the list")?;
    for frame in frames.as_slice() {
        holds(listed.as_slice().iter().any(|other| other.handle == frame.handle), "a frame in the list", frame)?;
    }
    // Bit by bit.
    let mut one = [FrameDesc::default(); 1];
    let (count, next) = userlib::frames::list(0, &mut one, 0).expecting("a list")?;
    equal((count, one[0].handle), (1, listed.as_slice()[0].handle), "the first frame")?;
    let from = next.ok_or(()).expecting("more of them")?;
    let (_, _) = userlib::frames::list(0, &mut one, from).expecting("a list")?;
    equal(one[0].handle, listed.as_slice()[1].handle, "the second frame")?;
    let end = s.pool.first() + usize::from(s.pool.count);
    equal(userlib::frames::list(0, &mut one, end), Ok((0, None)), "behind the end")?;
    equal(userlib::frames::list(0, &mut [], 0).map(|(count, _)| count), Ok(0), "without room")?;
    // The suite may use one pool, so a second one is none of its business.
    for pool in [1, 4, 255, usize::MAX] {
        equal(userlib::frames::list(pool, &mut one, 0), Err(KernelError::FramePool), "no pool")?;
    }
    s.return_frames(&mut frames)
}

fn holder_dies(s: &mut Suite) -> Outcome {
    for _ in 0..3 {
        let mut frames = s.borrow_frames(QUOTA)?;
        let address = s.pool.address(frames.as_slice()[0].handle);
        succeeded(give(s, &mut frames), "the hand-over")?;
        equal(
            kernel::task_status(s.high.index).expecting("status")?.frames_held,
            QUOTA as u16,
            "frames of the victim",
        )?;
        // The touch fills the cache of translations.
        s.high.run(&[Step::new(action::STORE, &[address, 1])])?;
        kernel::inject_fault(s.high.index).expecting("a fault")?;
        s.pool.all_home()?;
        crate::victims::revive(s.high.index)?;
        // The next instance has nothing of it.
        let record = s.high.dies(&[Step::new(action::LOAD, &[address])])?;
        equal(record.info, FaultInfo::MemoryAccess { address, write: false }, "reason")?;
    }
    // The partner has been told, and can lend all of them.
    borrow_all(s)
}

/// Borrows and returns every frame of the pool.
fn borrow_all(s: &mut Suite) -> Outcome {
    let mut seen = [false; crate::memory::POOL];
    let mut left = u32::from(s.pool.count);
    let mut lists: [FrameList; 8] = core::array::from_fn(|_| FrameList::new());
    for list in &mut lists {
        *list = s.borrow_frames(left.min(32))?;
        left -= list.len() as u32;
        for frame in list.as_slice() {
            let place = frame.handle.index() - s.pool.first();
            holds(!core::mem::replace(&mut seen[place], true), "a frame that came twice", place)?;
        }
    }
    equal(left, 0, "frames that the partner does not know of")?;
    lists.iter_mut().filter(|list| !list.is_empty()).try_for_each(|list| s.return_frames(list))
}

fn caller_dies(s: &mut Suite) -> Outcome {
    // victim-low gets a frame in a reply.
    let list = s.low.memory.frames(0x400, &[]) as usize;
    let extra = SendExtra { frames: list, frame_capacity: 4, ..SendExtra::default() };
    let extra = s.low.memory.extra(0x600, &extra);
    s.low.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra])])?;
    let received = s.low.message(&mut [])?;
    equal(received.reply_frame_capacity, 4, "room for frames")?;
    let mut frames = s.borrow_frames(2)?;
    ipc::reply(received.sender, 0, &[], Some(&mut frames)).expecting("a reply with frames")?;
    s.low.finish()?;
    equal(s.low.memory.window.result(0, 2), 2, "frames that came")?;
    let held = [s.low.memory.frame(0x400), s.low.memory.frame(0x408)];
    // Sent to a task that does not receive; they stay the sender's.
    let wait = s.high.memory.wait(0, 1);
    s.high.detach(&[wait])?;
    let high = s.high.id();
    let step = send_frames(&mut s.low.memory, high, operation::RUN, &held, 2);
    s.low.start(&[step])?;
    s.reaches(s.low.index, TaskState::Sending(s.high.index), "state of the caller")?;
    equal(kernel::task_status(s.low.index).expecting("status")?.frames_held, 2, "frames of the caller")?;
    kernel::inject_fault(s.low.index).expecting("a fault")?;
    s.pool.all_home()?;
    // The receiver goes on and finds nothing.
    ipc::post(s.high.index, 1).expecting("a post")?;
    equal(state(s.high.index)?, TaskState::Receiving, "state of the receiver")?;
    let received = RecvBuffers { message: &mut [], frames: None };
    let bits = ipc::recv(received, 0, 0, Some(TaskId::new(usize::from(s.low.index), 0xffff)));
    refused(bits.operation, KernelError::SenderDead, "an instance that never was")
}

fn server_dies(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(8)?;
    equal(s.partner.keep_frames(&mut frames).expecting("keep")?, 8, "frames that the partner keeps")?;
    equal(s.partner.crash().is_err(), true, "a crash")?;
    // They stay with their owner, and its next instance knows of them.
    s.partner.null().expecting("a call")?;
    s.pool.all_home()?;
    borrow_all(s)
}

fn owner_dies(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(8)?;
    s.pool.with_bytes(frames.as_slice()[7], |bytes| pattern(bytes, 8))?;
    equal(s.partner.crash().is_err(), true, "a crash")?;
    // Ours are still ours.
    holds(s.pool.with_bytes(frames.as_slice()[7], |bytes| is_pattern(bytes, 8))?, "content", SCRATCH)?;
    s.partner.bounce_frames(&mut frames).expecting("a bounce at the next instance")?;
    s.return_frames(&mut frames)?;
    s.pool.all_home()?;
    borrow_all(s)
}
