//! Messages and replies.

use abi::call::{Call, RecvArgs};
use abi::code::FIRST_KERNEL_CODE;
use abi::stats::TaskState;
use abi::{KernelError, MAX_MESSAGE, TaskId};
use idol_runtime::Error;
use userlib::{RecvBuffers, ipc, kernel};
use victim::{MESSAGE, MESSAGE_LEN, Step, action, operation};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::memory::{is_pattern, pattern};
use crate::suite::Suite;
use crate::victims::{refused, revive, state, succeeded, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("calls.round_trip", round_trip),
    Test::new("calls.message_lengths", message_lengths),
    Test::new("calls.reply_lengths", reply_lengths),
    Test::new("calls.longest_message", longest_message),
    Test::new("calls.too_long_message", too_long_message),
    Test::new("calls.message_over_the_receivers_buffer", over_the_buffer),
    Test::new("calls.reply_too_long", reply_too_long),
    Test::new("calls.no_capability", no_capability),
    Test::new("calls.stale_id", stale_id),
    Test::new("calls.server_dies_with_the_message", server_dies),
    Test::new("calls.server_dies_before_it_receives", server_dies_before),
    Test::new("calls.server_restarts_during_a_call", server_restarts),
    Test::restarting(&["partner"], "calls.stubs_follow_a_restart", stubs_follow),
    Test::new("calls.reply_to_nobody", reply_to_nobody),
    Test::new("calls.reply_twice", reply_twice),
    Test::new("calls.reply_with_a_kernels_code", reply_with_kernel_code),
    Test::new("calls.refused_reply_receives_nothing", refused_reply_receive),
    Test::new("calls.reply_to_the_dead", reply_to_the_dead),
    Test::new("calls.closed_receive", closed_receive),
    Test::new("calls.receive_from_the_dead", receive_from_the_dead),
    Test::new("calls.caller_dies_in_the_queue", caller_dies_in_queue),
    Test::new("calls.refresh_of_nobody", refresh_of_nobody),
    Test::new("calls.empty_arguments_anywhere", empty_arguments),
];

/// An operation that means nothing to anyone.
const TEST: u64 = operation::TESTS as u64;

fn round_trip(s: &mut Suite) -> Outcome {
    s.partner.null().expecting("an empty call")?;
    let mut bytes = [0; 960];
    for len in [0, 1, 2, 31, 32, 33, 127, 128, 255, 256, 959, 960] {
        pattern(&mut bytes[..len], len as u8);
        let back = s.partner.echo(&bytes[..len]).expecting("an echo")?;
        holds(back[..] == bytes[..len], "an echo came back changed", len)?;
    }
    Ok(())
}

/// Every length that the victim takes arrives byte for byte, and not a byte more.
fn message_lengths(s: &mut Suite) -> Outcome {
    let mut message = [0; MESSAGE_LEN];
    let mut arrived = [0; MESSAGE_LEN];
    for len in 0..=MESSAGE_LEN {
        pattern(&mut message, len as u8);
        // The number of steps to run.
        message[0] = 0;
        s.high.memory.window.put_bytes(MESSAGE, &[0xee; MESSAGE_LEN]);
        // An empty message leaves what is there as the number of steps.
        s.high.memory.window.put_bytes(MESSAGE, &[0, 0xee, 0xee, 0xee]);
        let (code, reply) = ipc::send(s.high.id(), operation::RUN, &message[..len], &mut [], &[], None);
        succeeded(code, "a message")?;
        equal(reply, 0, "length of an empty reply")?;
        s.high.memory.window.get_bytes(MESSAGE, &mut arrived);
        holds(arrived[..len] == message[..len], "a message changed on its way", len)?;
        holds(arrived[len..].iter().skip(1).all(|&byte| byte == 0xee), "bytes behind the message", len)?;
    }
    Ok(())
}

fn reply_lengths(s: &mut Suite) -> Outcome {
    let own = s.id().0.into();
    let mut bytes = [0; MAX_MESSAGE];
    for len in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 255, 511, 512, 1000, MAX_MESSAGE - 1, MAX_MESSAGE]
    {
        pattern(&mut bytes, len as u8);
        s.high.memory.window.put_bytes(victim::SCRATCH, &bytes);
        let answer = Step::call(Call::Reply as u64, &[own, 7, s.high.memory.scratch(0), len as u64]);
        let mut reply = [0x55; MAX_MESSAGE + 8];
        let (code, got) = s.high.call(&[answer], &mut reply[..MAX_MESSAGE], &[], None);
        equal((code, got), (7, len), "code and length of a reply")?;
        holds(is_pattern(&reply[..len], len as u8), "a reply changed on its way", len)?;
        holds(reply[len..].iter().all(|&byte| byte == 0x55), "bytes behind the reply", len)?;
        s.high.memory.succeeded(0, "a reply")?;
    }
    Ok(())
}

fn longest_message(s: &mut Suite) -> Outcome {
    let own = s.id().0.into();
    let mut bytes = [0; MAX_MESSAGE];
    pattern(&mut bytes, 9);
    s.low.memory.window.put_bytes(victim::SCRATCH, &bytes);
    let send = Step::call(Call::Send as u64, &[own, TEST, s.low.memory.scratch(0), MAX_MESSAGE as u64]);
    s.low.start(&[send])?;
    let mut buffer = [0; MAX_MESSAGE];
    let received = s.low.message(&mut buffer)?;
    equal((received.operation, received.len), (TEST as u32, MAX_MESSAGE), "operation and length")?;
    holds(is_pattern(&buffer, 9), "the longest message changed", received.len)?;
    ipc::reply(received.sender, 5, &[], None).expecting("a reply")?;
    s.low.finish()?;
    equal(s.low.memory.code(0), 5, "code of the reply")
}

fn too_long_message(s: &mut Suite) -> Outcome {
    let before = kernel::counters(s.high.index).expecting("counters")?.calls;
    let message = [0; MAX_MESSAGE + 1];
    let (code, _) = ipc::send(s.high.id(), operation::RUN, &message, &mut [], &[], None);
    refused(code, KernelError::MessageTooLong, "a message of 1025 bytes")?;
    let after = kernel::counters(s.high.index).expecting("counters")?.calls;
    equal(after, before, "system calls of a receiver that got nothing")?;
    s.high.run(&[])
}

fn over_the_buffer(s: &mut Suite) -> Outcome {
    let message = [0; MAX_MESSAGE];
    for len in [MESSAGE_LEN + 1, MAX_MESSAGE] {
        let (code, _) = ipc::send(s.high.id(), operation::RUN, &message[..len], &mut [], &[], None);
        refused(code, KernelError::MessageTooLong, "a message longer than the receiver's buffer")?;
        equal(state(s.high.index)?, TaskState::Receiving, "state of the receiver")?;
    }
    // The same when the sender came first and waits in the queue.
    let own = s.id().0.into();
    s.low.start(&[Step::call(Call::Send as u64, &[own, TEST, s.low.memory.scratch(0), 65])])?;
    s.reaches(s.low.index, TaskState::Sending(s.own), "state of the sender")?;
    let id = s.low.id();
    let received = ipc::recv(RecvBuffers { message: &mut [0; 64], frames: None }, 0, 0, Some(id));
    // It was passed over, and is on to asking for work.
    equal(received.operation, u32::from(operation::NEXT), "what the sender does next")?;
    s.low.understand(received)?;
    s.low.memory.refused(0, KernelError::MessageTooLong, "a queued message longer than the buffer")?;
    s.high.run(&[])
}

fn reply_too_long(s: &mut Suite) -> Outcome {
    let own = s.id().0.into();
    let at = s.high.memory.scratch(0);
    let answer = |len| Step::call(Call::Reply as u64, &[own, 0, at, len]);
    let mut reply = [0x77; 16];
    let steps = [answer(9), answer(MAX_MESSAGE as u64), answer(8), answer(8)];
    let (code, len) = s.high.call(&steps, &mut reply[..8], &[], None);
    succeeded(code, "the reply that fits")?;
    equal(len, 8, "its length")?;
    s.high.memory.refused(0, KernelError::ReplyTooLong, "one byte too many")?;
    s.high.memory.refused(1, KernelError::ReplyTooLong, "many bytes too many")?;
    s.high.memory.succeeded(2, "the reply that fits")?;
    s.high.memory.refused(3, KernelError::NotWaiting, "another one")?;
    holds(reply[8..] == [0x77; 8], "bytes behind the buffer", reply)?;
    let (code, _) = s.high.call(&[answer(1), answer(0)], &mut [], &[], None);
    succeeded(code, "an empty reply to an empty buffer")?;
    s.high.memory.refused(0, KernelError::ReplyTooLong, "a byte for an empty buffer")
}

fn no_capability(s: &mut Suite) -> Outcome {
    let strangers = [s.own.into(), s.low.index.into(), task("idle").into(), abi::MAX_TASKS - 1, 100, 255];
    for target in strangers {
        let id = if target < 8 { ipc::current_id(target as u8) } else { TaskId::new(target, 0) };
        let (code, _) = ipc::send(id, 1, &[], &mut [], &[], None);
        refused(code, KernelError::NoCapability, "a task that no slot leads to")?;
    }
    for target in [TaskId::KERNEL, TaskId::REPLY_REFUSED] {
        let (code, _) = ipc::send(target, 1, &[], &mut [], &[], None);
        refused(code, KernelError::NoCapability, "an id that is no task's")?;
    }
    // A victim may send to three tasks, and not to the supervisor.
    let target = ipc::current_id(task("supervisor")).0.into();
    s.high.run(&[Step::call(Call::Send as u64, &[target, 3])])?;
    s.high.memory.refused(0, KernelError::NoCapability, "the supervisor")
}

fn stale_id(s: &mut Suite) -> Outcome {
    let old = s.high.id();
    s.high.run(&[])?;
    revive(s.high.index)?;
    let new = s.high.id();
    equal(new.generation(), old.generation() + 1, "generation after a restart")?;
    let ahead = TaskId::new(new.index(), new.generation() + 1);
    for id in [old, ahead, TaskId::new(new.index(), TaskId::GENERATION_MASK)] {
        let (code, received) = ipc::send(id, operation::RUN, &[0], &mut [], &[], None);
        refused(code, KernelError::Dead, "an instance that is not the current one")?;
        equal(received, 0, "it received the message")?;
    }
    s.high.run(&[])
}

fn server_dies(s: &mut Suite) -> Outcome {
    let (code, received) = s.high.call(&[Step::new(action::PANIC, &[1])], &mut [0; 8], &[], None);
    refused(code, KernelError::Dead, "a call to a server that dies")?;
    equal(received, 1, "it had received the message")?;
    revive(s.high.index)?;
    s.high.run(&[])
}

/// The caller's message still waits in the queue when the server dies.
fn server_dies_before(s: &mut Suite) -> Outcome {
    let wait = s.high.memory.wait(0, 1);
    s.high.detach(&[wait])?;
    let high = s.high.id().0.into();
    s.low.start(&[Step::call(Call::Send as u64, &[high, TEST])])?;
    s.reaches(s.low.index, TaskState::Sending(s.high.index), "state of the caller")?;
    kernel::inject_fault(s.high.index).expecting("a fault")?;
    s.low.finish()?;
    s.low.memory.refused(0, KernelError::Dead, "the call")?;
    equal(s.low.memory.window.result(0, 1), 0, "the dead instance had the message")
}

/// The server is restarted while it works on the call.
fn server_restarts(s: &mut Suite) -> Outcome {
    let receive = s.high.memory.receive(0, &RecvArgs::default());
    let wait = s.high.memory.wait(64, 1);
    s.high.detach(&[receive, wait])?;
    let high = s.high.id().0.into();
    s.low.start(&[Step::call(Call::Send as u64, &[high, TEST])])?;
    s.reaches(s.low.index, TaskState::AwaitingReply(s.high.index), "state of the caller")?;
    revive(s.high.index)?;
    s.low.finish()?;
    s.low.memory.refused(0, KernelError::Dead, "the call")?;
    equal(s.low.memory.window.result(0, 1), 1, "the dead instance had the message")?;
    s.high.run(&[])
}

fn stubs_follow(s: &mut Suite) -> Outcome {
    let before = s.partner.calls().expecting("count of calls")?;
    equal(s.partner.calls().expecting("count of calls")?, before + 1, "calls of the same instance")?;
    let id = s.partner.id();
    match s.partner.crash() {
        Err(Error::Died { received: true }) => {}
        other => holds(false, "a call that may not be repeated", other)?,
    }
    // The first call names the new instance, and waits until that has started.
    equal(s.partner.calls().expecting("count of calls")?, 1, "calls of a new instance")?;
    equal(s.partner.id().generation(), id.generation() + 1, "generation")?;
    // An idempotent call to an instance that died unnoticed is repeated.
    revive(task("partner"))?;
    s.partner.null().expecting("a call that may be repeated")
}

fn reply_to_nobody(s: &mut Suite) -> Outcome {
    let not_waiting = Err(KernelError::NotWaiting);
    equal(ipc::reply(s.high.id(), 0, &[], None), not_waiting, "reply to a task that waits for messages")?;
    equal(ipc::reply(s.id(), 0, &[], None), not_waiting, "reply to oneself")?;
    equal(ipc::reply(ipc::current_id(task("idle")), 0, &[], None), not_waiting, "reply to a running task")?;
    equal(ipc::reply(TaskId::new(200, 0), 0, &[], None), Err(KernelError::BadArgument), "reply to no task")?;
    equal(ipc::reply(TaskId::KERNEL, 0, &[], None), Err(KernelError::BadArgument), "reply to the kernel")?;
    // One that waits for a third task.
    let receive = s.high.memory.receive(0, &RecvArgs::default());
    let wait = s.high.memory.wait(64, 1);
    s.high.detach(&[receive, wait])?;
    let high = s.high.id().0.into();
    s.low.start(&[Step::call(Call::Send as u64, &[high, TEST])])?;
    s.reaches(s.low.index, TaskState::AwaitingReply(s.high.index), "state of the caller")?;
    equal(ipc::reply(s.low.id(), 0, &[], None), not_waiting, "reply to one who waits for another")?;
    // One that waits to be received.
    s.last.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), TEST])])?;
    s.reaches(s.last.index, TaskState::Sending(s.own), "state of the sender")?;
    equal(ipc::reply(s.last.id(), 0, &[], None), not_waiting, "reply to one who was not received")
}

fn reply_twice(s: &mut Suite) -> Outcome {
    let id = s.low.park()?;
    ipc::reply(id, 0, &[], None).expecting("a reply")?;
    equal(ipc::reply(id, 0, &[], None), Err(KernelError::NotWaiting), "a second reply")?;
    s.low.finish()
}

fn reply_with_kernel_code(s: &mut Suite) -> Outcome {
    let id = s.low.park()?;
    for code in [FIRST_KERNEL_CODE, KernelError::Dead.code(), u32::MAX] {
        equal(ipc::reply(id, code, &[], None), Err(KernelError::BadArgument), "a code that only the kernel may use")?;
        equal(state(s.low.index)?, TaskState::AwaitingReply(s.own), "state of the caller")?;
    }
    ipc::reply(id, 0, &[], None).expecting("a reply")?;
    s.low.finish()
}

fn refused_reply_receive(s: &mut Suite) -> Outcome {
    let id = s.low.park()?;
    s.last.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), TEST])])?;
    let low = s.low.id();
    let refuse = |caller, bytes: &[u8], error: KernelError| {
        let buffers = RecvBuffers { message: &mut [], frames: None };
        let received = ipc::reply_recv(caller, 0, bytes, &[], buffers, 0, 0);
        equal(received.sender, TaskId::REPLY_REFUSED, "sender")?;
        refused(received.operation, error, "operation")
    };
    refuse(TaskId::new(99, 0), &[], KernelError::BadArgument)?;
    // A victim asks for work without room for a reply.
    refuse(low, &[1], KernelError::ReplyTooLong)?;
    let high = s.high.id();
    refuse(high, &[], KernelError::NotWaiting)?;
    // A good one replies, and receives what waits.
    let buffers = RecvBuffers { message: &mut [], frames: None };
    let received = ipc::reply_recv(id, 0, &[], &[], buffers, 0, 0);
    // The victim of the higher priority comes first, and asks for work again.
    equal(received.sender, low, "sender")?;
    s.low.understand(received)?;
    let received = s.last.message(&mut [])?;
    ipc::reply(received.sender, 0, &[], None).expecting("a reply")?;
    s.last.finish()
}

fn reply_to_the_dead(s: &mut Suite) -> Outcome {
    let id = s.low.park()?;
    kernel::inject_fault(s.low.index).expecting("a fault")?;
    ipc::reply(id, 0, &[], None).expecting("a reply to a caller that died is no error")?;
    revive(s.low.index)?;
    ipc::reply(id, 0, &[], None).expecting("nor to its old instance")?;
    s.low.forget();
    s.low.run(&[])
}

/// Two wait; the receiver chooses, then takes the one of higher priority, whoever came first.
fn closed_receive(s: &mut Suite) -> Outcome {
    let own: u64 = s.id().0.into();
    let send = |operation| [Step::call(Call::Send as u64, &[own, operation])];
    let receive = |from| ipc::recv(RecvBuffers { message: &mut [], frames: None }, 0, 0, from);
    for open in [false, true] {
        s.last.start(&send(TEST))?;
        s.reaches(s.last.index, TaskState::Sending(s.own), "state of the first")?;
        s.low.start(&send(TEST + 1))?;
        s.reaches(s.low.index, TaskState::Sending(s.own), "state of the second")?;
        let (one, other) = if open { (None, None) } else { (Some(s.last.id()), Some(s.low.id())) };
        let expected = if open { [s.low.id(), s.last.id()] } else { [s.last.id(), s.low.id()] };
        let (first, second) = (receive(one), receive(other));
        equal([first.sender, second.sender], expected, "order of senders")?;
        for received in [first, second] {
            ipc::reply(received.sender, 0, &[], None).expecting("a reply")?;
        }
        s.low.finish()?;
        s.last.finish()?;
    }
    Ok(())
}

fn receive_from_the_dead(s: &mut Suite) -> Outcome {
    let old = s.high.id();
    revive(s.high.index)?;
    let receive = |from| ipc::recv(RecvBuffers { message: &mut [], frames: None }, 0, 0, Some(from));
    for id in [old, TaskId::new(77, 0)] {
        let received = receive(id);
        equal(received.sender, TaskId::KERNEL, "sender")?;
        refused(received.operation, KernelError::SenderDead, "operation")?;
    }
    // One that dies while it is waited for.
    s.low.start(&[Step::new(action::SPIN, &[1000]), Step::new(action::PANIC, &[2])])?;
    let received = receive(s.low.id());
    equal(received.sender, TaskId::KERNEL, "sender")?;
    refused(received.operation, KernelError::SenderDead, "operation")
}

fn caller_dies_in_queue(s: &mut Suite) -> Outcome {
    // Nobody else is to be received.
    s.last.park()?;
    s.low.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), TEST])])?;
    s.reaches(s.low.index, TaskState::Sending(s.own), "state of the caller")?;
    kernel::inject_fault(s.low.index).expecting("a fault")?;
    revive(s.low.index)?;
    s.low.forget();
    // Its message died with it: what comes is the request for work of the next instance.
    let received = ipc::recv(RecvBuffers { message: &mut [], frames: None }, 0, 0, None);
    equal(received.sender, s.low.id(), "sender")?;
    equal(received.operation, u32::from(operation::NEXT), "operation")?;
    s.low.understand(received).map(drop)
}

fn refresh_of_nobody(s: &mut Suite) -> Outcome {
    let steps = [31, 255, 256, u64::MAX].map(|index| Step::call(Call::RefreshId as u64, &[index]));
    s.high.run(&steps)?;
    for step in 0..steps.len() {
        s.high.memory.refused(step, KernelError::BadArgument, "the id of a task that does not exist")?;
    }
    Ok(())
}

/// An argument without bytes may have any address: nothing is read there.
fn empty_arguments(s: &mut Suite) -> Outcome {
    let own = s.id().0.into();
    let nowhere = 0xdead_0000;
    s.low.start(&[Step::call(Call::Send as u64, &[own, TEST, nowhere, 0, nowhere, 0])])?;
    let received = s.low.message(&mut [])?;
    equal((received.len, received.reply_capacity, received.lease_count), (0, 0, 0), "what came")?;
    ipc::reply(received.sender, 3, &[], None).expecting("a reply")?;
    s.low.finish()?;
    equal(s.low.memory.code(0), 3, "code of the reply")
}
