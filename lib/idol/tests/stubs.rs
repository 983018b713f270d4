//! Generated client stubs against a server behind generated dispatch, over a kernel of threads.

#[allow(dead_code, reason = "each test uses a part")]
mod probe;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use idol_runtime::fake::{Task, World};
use idol_runtime::{Error, FrameDesc, FrameList, Kernel, KernelError, Lent, MAX_TRIES, Refusal, TaskId, TaskSlot};
use probe::stubs::{Colour, Label, Point, Probe, ProbeError, Sample, Told, Wide};
use probe::{CLIENT, SERVER, Server, Shared, frame, start};

fn client(world: &World) -> Probe<Task> {
    Probe::with_kernel(TaskSlot(SERVER as u8), world.task(CLIENT))
}

fn list(frames: &[FrameDesc]) -> FrameList {
    let mut list = FrameList::new();
    frames.iter().for_each(|frame| list.push(*frame).expect("room"));
    list
}

#[test]
fn arguments_and_results_travel() {
    let (world, server) = start();
    let probe = client(&world);
    assert_eq!(probe.nothing(), Ok(()));
    let sample = probe.mix(200, Wide::High, u64::MAX - 1, true, frame(9), [Colour::Blue, Colour::Red]);
    assert_eq!(sample, Ok(Sample { time: u64::MAX - 1, values: [200, 0x1234, 9], colour: Colour::Blue, valid: true }));
    let label = probe.name("sixteen letters!", &[1, 2, 3, 4], Shared(7));
    assert_eq!(label.map(|label| label.name.as_str().to_owned()), Ok("sixteen letters!".to_owned()));
    let label = probe.name("é", &[], Shared(u64::MAX)).expect("an answer");
    assert_eq!(label, Label { name: "é".parse().expect("short"), colour: Some(Colour::Green) });
    server.stop();
}

#[test]
fn errors_travel() {
    let (world, server) = start();
    let probe = client(&world);
    assert_eq!(probe.fallible(0), Ok(11));
    assert_eq!(probe.fallible(1), Err(Error::Server(ProbeError::Busy)));
    assert_eq!(probe.fallible(2), Err(Error::Server(ProbeError::TooHot)));
    assert_eq!(probe.fallible(3), Err(Error::Refused(Refusal::LeaseLost)), "as the handler chose");
    assert_eq!(probe.detailed(false), Ok(3));
    let told = Told { detail: 77, point: Point { x: 1.5, y: -2.0 }, flag: 1, reserved: [0; 3] };
    assert_eq!(probe.detailed(true), Err(Error::Server(told)));
    assert_eq!(probe.labelled(None).expect("an answer").as_slice(), [8; 8]);
    let error = probe.labelled(Some(404));
    assert!(matches!(&error, Err(Error::Server(text)) if text == "error 404"), "{error:?}");
    server.stop();
}

#[test]
fn leases_are_read_and_written() {
    let (world, server) = start();
    let probe = client(&world);
    assert_eq!(probe.sum(&[1, 2, 0xffff_0000]), Ok(0xffff_0003));
    let mut data = [1, 2, 3, 4, 5];
    let mut before = [0; 8];
    let mut point = Point::default();
    assert_eq!(probe.turn(2, &mut data, &mut before, &mut point, &12), Ok(()));
    assert_eq!(data, [3, 4, 5, 1, 2]);
    assert_eq!(before, [1, 2, 3, 4, 5, 0, 0, 0]);
    assert_eq!(point, Point { x: 12.0, y: 5.0 });
    server.stop();
}

#[test]
fn wrong_leases_are_refused() {
    let (world, server) = start();
    let probe = client(&world);
    assert_eq!(probe.sum(&[1]), Err(Error::Refused(Refusal::LeaseTooShort)));
    assert_eq!(probe.sum(&[0; 9]), Err(Error::Refused(Refusal::LeaseTooLong)));
    assert_eq!(probe.sum(&[1; 8]), Ok(8));
    assert_eq!(
        probe.turn(0, &mut [0; 17], &mut [], &mut Point::default(), &0),
        Err(Error::Refused(Refusal::LeaseTooLong))
    );
    let raw = |operation, message: &[u8], leases: Vec<Lent<'_>>| send_raw(&world, operation, message, 64, leases);
    let sum = probe::SUM;
    assert_eq!(raw(sum, &[], vec![]), Refusal::LeaseCount.code());
    assert_eq!(raw(sum, &[], vec![Lent::Read(&[0; 8]), Lent::Read(&[0; 8])]), Refusal::LeaseCount.code());
    assert_eq!(raw(sum, &[], vec![Lent::Write(&mut [0; 8])]), Refusal::LeaseDirection.code());
    assert_eq!(raw(sum, &[], vec![Lent::Read(&[0; 9])]), Refusal::LeaseTooShort.code(), "not whole words");
    assert_eq!(raw(sum, &[], vec![Lent::Both(&mut [0; 8])]), 0, "more rights than needed do no harm");
    let turn = probe::TURN;
    let (mut data, mut before, mut point) = ([0; 4], [0; 4], [0; 8]);
    let mut turned = |seed: &[u8], may_write: bool| {
        let data = if may_write { Lent::Both(&mut data) } else { Lent::Read(&data) };
        raw(turn, &[0], vec![data, Lent::Write(&mut before), Lent::Write(&mut point), Lent::Read(seed)])
    };
    assert_eq!(turned(&[0; 4], true), 0);
    assert_eq!(turned(&[0; 4], false), Refusal::LeaseDirection.code());
    assert_eq!(turned(&[0; 3], true), Refusal::LeaseTooShort.code());
    assert_eq!(turned(&[0; 8], true), Refusal::LeaseTooLong.code());
    assert_eq!(server.handled(), 3, "no handler saw a wrong lease");
    assert_eq!(probe.nothing(), Ok(()), "the server is unharmed");
    server.stop();
}

/// A message that no stub would send.
fn send_raw(world: &World, operation: u16, message: &[u8], reply: usize, leases: Vec<Lent<'_>>) -> u32 {
    fn with<const L: usize>(world: &World, operation: u16, message: &[u8], reply: usize, leases: Vec<Lent<'_>>) -> u32 {
        let mut leases: [Lent<'_>; L] = leases.try_into().expect("the right number");
        let server = world.task(SERVER).id();
        world.task(CLIENT).send(server, operation, message, &mut vec![0; reply], &mut leases, None).0
    }
    match leases.len() {
        0 => with::<0>(world, operation, message, reply, leases),
        1 => with::<1>(world, operation, message, reply, leases),
        2 => with::<2>(world, operation, message, reply, leases),
        3 => with::<3>(world, operation, message, reply, leases),
        _ => with::<4>(world, operation, message, reply, leases),
    }
}

#[test]
fn wrong_messages_are_refused() {
    let (world, server) = start();
    let raw = |operation, message: &[u8], reply| send_raw(&world, operation, message, reply, vec![]);
    assert_eq!(raw(0, &[], 64), Refusal::UnknownOperation.code());
    assert_eq!(raw(13, &[], 64), Refusal::UnknownOperation.code());
    assert_eq!(raw(u16::MAX, &[], 64), Refusal::UnknownOperation.code());
    assert_eq!(raw(probe::NOTHING, &[0], 64), Refusal::BadMessage.code());
    assert_eq!(raw(probe::FALLIBLE, &[0; 3], 64), Refusal::BadMessage.code());
    assert_eq!(raw(probe::FALLIBLE, &[0; 5], 64), Refusal::BadMessage.code());
    assert_eq!(raw(probe::FALLIBLE, &[0; 4], 1), Refusal::ReplyRoom.code());
    assert_eq!(raw(probe::FALLIBLE, &[0; 4], 2), 0);
    assert_eq!(raw(probe::DETAILED, &[2], 64), Refusal::BadMessage.code(), "not a bool");
    assert_eq!(raw(probe::DETAILED, &[1], 15), Refusal::ReplyRoom.code(), "the error is the longer answer");
    // small, gap, wide (2), gap (4), large (8), flag, gap (7), handle (8), colours (2), gap (6)
    let mut mix = [0; 40];
    mix[32..34].copy_from_slice(&[1, 2]);
    assert_eq!(raw(probe::MIX, &mix, 64), 0);
    mix[33] = 3;
    assert_eq!(raw(probe::MIX, &mix, 64), Refusal::BadMessage.code(), "not a colour");
    mix[33] = 2;
    mix[2] = 1;
    assert_eq!(raw(probe::MIX, &mix, 64), Refusal::BadMessage.code(), "not a `Wide`");
    assert_eq!(raw(probe::NAME, b"\x11seventeen letters\x00\x00", 64), Refusal::BadMessage.code(), "over max_len");
    assert_eq!(raw(probe::NAME, b"\x02\xff\xfe\x00\x00", 64), Refusal::BadMessage.code(), "not UTF-8");
    assert_eq!(raw(probe::NAME, b"\x02ab\x00\x00\x00", 64), Refusal::BadMessage.code(), "something behind it");
    assert_eq!(raw(probe::NAME, b"\x02ab\x00\x00", 64), 0);
    assert_eq!(raw(probe::NAME, &[0; 200], 64), KernelError::MessageTooLong.code(), "longer than any message");
    assert_eq!(server.handled(), 3);
    assert_eq!(client(&world).nothing(), Ok(()));
    server.stop();
}

#[test]
fn too_long_a_text_is_not_sent() {
    let (world, server) = start();
    let probe = client(&world);
    assert_eq!(probe.name(&"x".repeat(40), &[], Shared(0)), Err(Error::Refused(Refusal::BadMessage)));
    assert_eq!(server.handled(), 0);
    server.stop();
}

#[test]
fn frames_go_both_ways() {
    let (world, server) = start();
    (0..4).for_each(|index| world.give(CLIENT, frame(index).handle));
    let probe = client(&world);
    let mut frames = list(&[frame(0), frame(1), frame(2)]);
    assert_eq!(probe.swap(2, &mut frames), Ok(3));
    assert_eq!(frames.as_slice(), [frame(2)]);
    assert_eq!(world.holder(frame(0).handle), Some(SERVER));
    assert_eq!(world.holder(frame(2).handle), Some(CLIENT));
    // An error brings the list back too.
    let mut frames = list(&[frame(3)]);
    assert_eq!(probe.swap(200, &mut frames), Err(Error::Server(ProbeError::Busy)));
    assert_eq!(frames.as_slice(), [frame(3)]);
    assert_eq!(world.holder(frame(3).handle), Some(CLIENT));
    server.stop();
}

#[test]
fn frames_of_a_refused_request_come_back() {
    let (world, server) = start();
    (0..5).for_each(|index| world.give(CLIENT, frame(index).handle));
    let all: Vec<FrameDesc> = (0..5).map(frame).collect();
    let mut frames = list(&all);
    assert_eq!(client(&world).swap(0, &mut frames), Err(Error::Refused(Refusal::FrameCount)));
    assert_eq!(frames.as_slice(), all);
    // To an operation that takes none, and to one that does not exist.
    for operation in [probe::NOTHING, 99] {
        let mut frames = list(&all);
        let to = world.task(SERVER).id();
        let (code, _) = world.task(CLIENT).send(to, operation, &[], &mut [0; 64], &mut [], Some(&mut frames));
        assert!(Refusal::from_code(code).is_some(), "{code:#x}");
        assert_eq!(frames.as_slice(), all);
    }
    assert!(all.iter().all(|frame| world.holder(frame.handle) == Some(CLIENT)));
    // No room for the reply's frames: no list was given.
    assert_eq!(send_raw(&world, probe::SWAP, &[0], 64, vec![]), Refusal::ReplyFrameRoom.code());
    assert_eq!(server.handled(), 0);
    server.stop();
}

#[test]
fn a_refused_reply_is_told_to_both() {
    let (world, server) = start();
    world.give(CLIENT, frame(0).handle);
    let probe = client(&world);
    let mut frames = list(&[frame(0)]);
    // 100: the handler adds a frame that it does not hold.
    assert_eq!(probe.swap(100, &mut frames), Err(Error::Refused(Refusal::ReplyRefused)));
    assert!(frames.is_empty());
    assert_eq!(server.take_refused(), Some((KernelError::FrameNotHeld, vec![frame(0), frame(500)])));
    assert_eq!(world.holder(frame(0).handle), Some(SERVER), "the server has kept it, and knows");
    assert_eq!(probe.nothing(), Ok(()));
    server.stop();
}

#[test]
fn deferred_requests_are_answered_later() {
    let (world, server) = start();
    world.give(2, frame(0).handle);
    world.give(2, frame(1).handle);
    let (results, later) = mpsc::channel();
    let other = world.clone();
    let sent = results.clone();
    let first = thread::spawn(move || {
        let mut to = [0; 8];
        let result = client(&other).later(&mut to);
        sent.send(("lease", result.is_ok())).expect("listening");
        (result, to)
    });
    let other = world.clone();
    let second = thread::spawn(move || {
        let probe = Probe::with_kernel(TaskSlot(SERVER as u8), other.task(2));
        let mut frames = list(&[frame(0), frame(1)]);
        let result = probe.later_frames("later", &mut frames);
        results.send(("frames", result.is_ok())).expect("listening");
        (result, frames)
    });
    while server.deferred() < 2 {
        thread::yield_now();
    }
    // Others are served meanwhile.
    let third = Probe::with_kernel(TaskSlot(SERVER as u8), world.task(3));
    assert_eq!(third.nothing(), Ok(()));
    assert!(later.recv_timeout(Duration::from_millis(20)).is_err(), "nobody was answered");
    world.post(SERVER, probe::ANSWER);
    let (result, to) = first.join().expect("no panic");
    assert_eq!((result, to), (Ok(8), [7; 8]));
    let (result, frames) = second.join().expect("no panic");
    assert_eq!(result, Err(Error::Server(2)));
    assert_eq!(frames.as_slice(), [frame(1), frame(0)]);
    server.stop();
}

#[test]
fn a_deferred_caller_may_die() {
    let (world, server) = start();
    let other = world.clone();
    let caller = thread::spawn(move || client(&other).later(&mut [0; 8]));
    while server.deferred() < 1 {
        thread::yield_now();
    }
    world.kill(CLIENT);
    world.post(SERVER, probe::ANSWER);
    assert_eq!(client(&world).nothing(), Ok(()), "its next instance is served");
    assert_eq!(server.lost_leases(), 1);
    assert!(caller.join().is_err(), "its first instance runs no further");
    server.stop();
}

/// Runs a call while the server is dead or dies; returns what it gave.
fn across_deaths<T: Send + 'static>(
    deaths: u32,
    received: bool,
    call: impl FnOnce(&Probe<Task>) -> T + Send + 'static,
) -> T {
    let (world, server) = Server::held();
    let other = world.clone();
    let probe = client(&world);
    let caller = thread::spawn(move || {
        // Made before the death, as clients are.
        let result = call(&probe);
        (result, probe.id() == other.task(SERVER).id())
    });
    let mut held = Some(server);
    for _ in 0..deaths {
        if received {
            held.take().unwrap_or_else(|| Server::hold(&world)).receive_only();
        }
        world.wait_until_calling(CLIENT, received);
        world.kill(SERVER);
    }
    let server = Server::run(&world);
    let (result, refreshed) = caller.join().expect("no panic");
    assert!(refreshed, "the client knows the new instance");
    server.stop();
    result
}

#[test]
fn idempotent_calls_are_repeated() {
    assert_eq!(across_deaths(1, true, |probe| probe.sum(&[4, 5])), Ok(9));
    assert_eq!(across_deaths(1, false, |probe| probe.sum(&[4, 5])), Ok(9));
    assert_eq!(across_deaths(MAX_TRIES - 1, true, |probe| probe.sum(&[4, 5])), Ok(9));
    assert_eq!(across_deaths(MAX_TRIES, true, |probe| probe.sum(&[4, 5])), Err(Error::Died { received: true }));
}

#[test]
fn retried_calls_are_repeated_if_not_received() {
    assert_eq!(across_deaths(1, false, |probe| probe.retry(3)), Ok(4));
    assert_eq!(across_deaths(2, false, |probe| probe.retry(3)), Ok(4));
    assert_eq!(across_deaths(1, true, |probe| probe.retry(3)), Err(Error::Died { received: true }));
}

#[test]
fn failing_calls_are_not_repeated() {
    assert_eq!(across_deaths(1, false, |probe| probe.fallible(0)), Err(Error::Died { received: false }));
    assert_eq!(across_deaths(1, true, |probe| probe.fallible(0)), Err(Error::Died { received: true }));
}

#[test]
fn frames_die_with_the_server_that_had_them() {
    let swap = |probe: &Probe<Task>| {
        let mut frames = list(&[]);
        let result = probe.swap(0, &mut frames);
        (result, frames.len())
    };
    assert_eq!(across_deaths(1, true, swap), (Err(Error::Died { received: true }), 0));
    let (world, server) = Server::held();
    world.give(CLIENT, frame(0).handle);
    let probe = client(&world);
    let caller = thread::spawn(move || {
        let mut frames = list(&[frame(0)]);
        let result = probe.swap(0, &mut frames);
        (result, frames.len())
    });
    server.receive_only();
    world.wait_until_calling(CLIENT, true);
    world.kill(SERVER);
    assert_eq!(caller.join().expect("no panic"), (Err(Error::Died { received: true }), 0));
    // Not received: still ours, and sent again.
    let probe = client(&world);
    world.give(CLIENT, frame(0).handle);
    world.kill(SERVER);
    let server = Server::run(&world);
    let mut frames = list(&[frame(0)]);
    assert_eq!(probe.swap(0, &mut frames), Ok(1));
    assert_eq!(frames.as_slice(), [frame(0)]);
    server.stop();
}

#[test]
fn what_was_seen_is_passed_on() {
    let (world, server) = start();
    let probe = client(&world);
    for round in 1..=5 {
        assert_eq!(probe.nothing(), Ok(()));
        // Outside the mask: moves the count only, and wakes no one.
        world.post(SERVER, 1 << 20);
        assert_eq!(probe.nothing(), Ok(()));
        world.post(SERVER, probe::COUNT);
        while server.counted() < round {
            thread::yield_now();
        }
    }
    // The reply that is refused brings no count, so the one before it stays.
    assert_eq!(probe.swap(100, &mut FrameList::new()), Err(Error::Refused(Refusal::ReplyRefused)));
    assert_eq!(probe.nothing(), Ok(()));
    let receives = world.receives(SERVER);
    assert!(receives.iter().all(|(mask, _)| *mask == probe::MASK), "{receives:?}");
    let seen: Vec<u32> = receives.iter().map(|(_, seen)| *seen).collect();
    assert_eq!(seen[0], 0);
    assert!(seen.is_sorted(), "{seen:?}");
    assert_eq!(seen.last(), Some(&10), "ten posts, all of them seen: {seen:?}");
    server.stop();
}

#[test]
fn an_interface_of_another_version_is_noticed() {
    let world = World::new(4);
    let task = world.task(SERVER);
    let server = thread::spawn(move || {
        for (code, reply) in [(0, &[1u8][..]), (0x77, &[]), (0, &[9, 9])] {
            let mut message = [0; 64];
            let buffers = idol_runtime::RecvBuffers { message: &mut message, frames: None };
            let received = task.recv(buffers, 0, 0);
            task.reply(received.sender, code, reply, None).expect("waits");
        }
    });
    let probe = client(&world);
    assert_eq!(probe.fallible(0), Err(Error::BadReply), "one byte is no u16");
    assert_eq!(probe.fallible(0), Err(Error::BadReply), "no such error");
    assert_eq!(probe.fallible(0), Ok(0x0909));
    assert_eq!(world.task(SERVER).id(), TaskId::new(SERVER, 0));
    server.join().expect("no panic");
}
