//! One test per promise of a system call.

use abi::call::{Call, kernel_op, lease};
use abi::frame::FrameHandle;
use abi::{FaultInfo, FrameDesc, KernelError};

use super::*;
use crate::State;

/// Client calls server; the server has received it and runs.
fn client_calls(kernel: &mut Kernel<Mock>, len: usize, extra: bool) {
    run(kernel, CLIENT);
    let target = id(kernel, SERVER);
    send(kernel, CLIENT, target, 7, len, extra);
}

fn reply(kernel: &mut Kernel<Mock>, me: usize, to: TaskId, code: usize, len: usize, frames: usize) {
    let values = [to.0 as usize, code, memory(me) + BUFFER, len, memory(me) + LIST, frames, 0, 0];
    call(kernel, me, Call::Reply, values);
}

#[test]
fn message_and_reply_arrive() {
    let mut kernel = system();
    kernel.machine.write_bytes(memory(CLIENT) + BUFFER, b"hello");
    client_calls(&mut kernel, 5, false);
    assert_eq!(kernel.current(), SERVER);
    let client = id(&kernel, CLIENT);
    assert_eq!(results(&kernel, SERVER)[..4], [client.0 as usize, 7, 5, 0x100]);
    assert_eq!(kernel.machine.ram[memory(SERVER) + BUFFER..][..5], *b"hello");
    kernel.machine.write_bytes(memory(SERVER) + BUFFER, b"world!");
    reply(&mut kernel, SERVER, client, 3, 6, 0);
    assert_eq!(results(&kernel, SERVER)[0], 0);
    assert_eq!(results(&kernel, CLIENT)[..3], [3, 6, 0]);
    assert_eq!(kernel.machine.ram[memory(CLIENT) + REPLY..][..6], *b"world!");
    assert_eq!(kernel.current(), SERVER, "the server goes on until it waits");
    check_invariants(&kernel);
}

#[test]
fn senders_are_received_by_priority_then_order() {
    let mut kernel = system();
    run(&mut kernel, SERVER);
    // The server is busy; the clients queue behind it once it waits for the driver's word only.
    let driver = id(&kernel, DRIVER);
    recv(&mut kernel, SERVER, 0, driver.0 as usize + 1);
    run(&mut kernel, OTHER);
    let server = id(&kernel, SERVER);
    send(&mut kernel, OTHER, server, 1, 0, false);
    run(&mut kernel, CLIENT);
    send(&mut kernel, CLIENT, server, 2, 0, false);
    assert_eq!(kernel.tasks[CLIENT].state, State::Sending(SERVER as u8));
    kernel.bury(DRIVER, State::Stopped);
    assert_eq!(results(&kernel, SERVER)[1], KernelError::SenderDead.code() as usize);
    kernel.reschedule();
    recv(&mut kernel, SERVER, 0, 0);
    assert_eq!(results(&kernel, SERVER)[1], 2, "of equals, the first in the table");
    recv(&mut kernel, SERVER, 0, 0);
    assert_eq!(results(&kernel, SERVER)[1], 1);
    check_invariants(&kernel);
}

#[test]
fn capabilities_and_dead_targets() {
    let mut kernel = system();
    run(&mut kernel, OTHER);
    let driver = id(&kernel, DRIVER);
    send(&mut kernel, OTHER, driver, 1, 0, false);
    assert_eq!(results(&kernel, OTHER)[0], KernelError::NoCapability.code() as usize);
    send(&mut kernel, OTHER, TaskId(0xff), 1, 0, false);
    assert_eq!(results(&kernel, OTHER)[0], KernelError::NoCapability.code() as usize);
    let old = id(&kernel, SERVER);
    kernel.bury(SERVER, State::Stopped);
    send(&mut kernel, OTHER, old, 1, 0, false);
    assert_eq!(results(&kernel, OTHER)[..2], [KernelError::Dead.code() as usize, 0], "not received");
    // The next instance's id is valid already; the message waits for it.
    let new = id(&kernel, SERVER);
    send(&mut kernel, OTHER, new, 9, 0, false);
    assert_eq!(kernel.tasks[OTHER].state, State::Sending(SERVER as u8));
    kernel.start(SERVER);
    kernel.reschedule();
    recv(&mut kernel, SERVER, 0, 0);
    assert_eq!(results(&kernel, SERVER)[1], 9);
    check_invariants(&kernel);
}

#[test]
fn sizes_are_checked_and_nothing_is_cut() {
    let mut kernel = system();
    client_calls(&mut kernel, abi::MAX_MESSAGE + 1, false);
    assert_eq!(results(&kernel, CLIENT)[0], KernelError::MessageTooLong.code() as usize);
    let server = id(&kernel, SERVER);
    send(&mut kernel, CLIENT, server, 1, 0x101, false);
    assert_eq!(results(&kernel, CLIENT)[0], KernelError::MessageTooLong.code() as usize);
    send(&mut kernel, CLIENT, server, 1, 0x100, false);
    let client = id(&kernel, CLIENT);
    reply(&mut kernel, SERVER, client, 0, 0x101, 0);
    assert_eq!(results(&kernel, SERVER)[0], KernelError::ReplyTooLong.code() as usize);
    assert_eq!(kernel.tasks[CLIENT].state, State::AwaitingReply(SERVER as u8));
    reply(&mut kernel, SERVER, client, KernelError::Dead.code() as usize, 0, 0);
    assert_eq!(results(&kernel, SERVER)[0], KernelError::BadArgument.code() as usize, "no forged kernel codes");
    reply(&mut kernel, SERVER, client, 0, 0, 0);
    reply(&mut kernel, SERVER, client, 0, 0, 0);
    assert_eq!(results(&kernel, SERVER)[0], KernelError::NotWaiting.code() as usize);
    check_invariants(&kernel);
}

#[test]
fn foreign_memory_faults_the_caller_only() {
    let mut kernel = system();
    run(&mut kernel, CLIENT);
    let server = id(&kernel, SERVER);
    let values = [server.0 as usize, 1, memory(SERVER), 4, 0, 0, 0, 0];
    call(&mut kernel, CLIENT, Call::Send, values);
    assert_eq!(kernel.tasks[CLIENT].state, State::Faulted);
    let record = kernel.tasks[CLIENT].fault.expect("a record");
    assert_eq!(record.info, FaultInfo::BadMemoryArgument { address: memory(SERVER) as u64, len: 4 });
    assert_eq!((record.generation, kernel.tasks[CLIENT].generation), (0, 1));
    assert_eq!(kernel.current(), SUPERVISOR);
    assert_eq!(results(&kernel, SUPERVISOR)[1], FAULT_BIT as usize);
    call(&mut kernel, SUPERVISOR, Call::Kernel, [kernel_op::NEXT_FAULTED as usize, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(results(&kernel, SUPERVISOR)[..2], [0, CLIENT]);
    call(&mut kernel, SUPERVISOR, Call::Kernel, [kernel_op::RESTART as usize, CLIENT, 0, 0, 0, 0, 0, 0]);
    assert_eq!(kernel.tasks[CLIENT].state, State::Runnable);
    check_invariants(&kernel);
}

#[test]
fn a_dead_server_releases_its_callers() {
    let mut kernel = system();
    client_calls(&mut kernel, 0, false);
    kernel.exception(FaultInfo::IllegalInstruction);
    assert_eq!(results(&kernel, CLIENT)[..2], [KernelError::Dead.code() as usize, 1], "received");
    assert_eq!(kernel.tasks[CLIENT].state, State::Runnable);
    check_invariants(&kernel);
}

#[test]
fn a_reply_to_a_caller_that_died_is_no_error() {
    let mut kernel = system();
    client_calls(&mut kernel, 0, false);
    let client = id(&kernel, CLIENT);
    call(&mut kernel, SERVER, Call::Kernel, [kernel_op::FAULT as usize, CLIENT, 0, 0, 0, 0, 0, 0]);
    run_supervisor_dry(&mut kernel);
    reply(&mut kernel, SERVER, client, 0, 0, 0);
    assert_eq!(results(&kernel, SERVER)[0], 0);
    assert_eq!(kernel.tasks[CLIENT].state, State::Faulted);
}

fn run_supervisor_dry(kernel: &mut Kernel<Mock>) {
    while kernel.current() == SUPERVISOR {
        recv(kernel, SUPERVISOR, 0xff, 0);
    }
}

#[test]
fn leases_have_bounds_direction_and_an_end() {
    let mut kernel = system();
    let base = memory(CLIENT);
    put_words(&mut kernel, base + EXTRA, &[base + LEASES, 2, 0, 0, 0]);
    put_words(&mut kernel, base + LEASES, &[base + 0xc00, 31, lease::READ, base + 0xc40, 8, lease::WRITE]);
    kernel.machine.write_bytes(base + 0xc00, &[7; 31]);
    client_calls(&mut kernel, 0, true);
    let client = id(&kernel, CLIENT).0 as usize;
    assert_eq!(results(&kernel, SERVER)[4], 2);
    let to = memory(SERVER) + BUFFER;
    let borrow = |kernel: &mut Kernel<Mock>, which: Call, values: [usize; 5]| {
        let [lender, index, offset, address, len] = values;
        call(kernel, SERVER, which, [lender, index, offset, address, len, 0, 0, 0]);
        results(kernel, SERVER)[0]
    };
    assert_eq!(borrow(&mut kernel, Call::BorrowRead, [client, 0, 1, to, 30]), 0);
    assert_eq!(kernel.machine.ram[to..to + 30], [7; 30]);
    let bounds = KernelError::LeaseBounds.code() as usize;
    assert_eq!(borrow(&mut kernel, Call::BorrowRead, [client, 0, 1, to, 31]), bounds);
    assert_eq!(borrow(&mut kernel, Call::BorrowRead, [client, 0, usize::MAX, to, 2]), bounds);
    let direction = KernelError::LeaseDirection.code() as usize;
    assert_eq!(borrow(&mut kernel, Call::BorrowWrite, [client, 0, 0, to, 1]), direction);
    assert_eq!(borrow(&mut kernel, Call::BorrowRead, [client, 1, 0, to, 1]), direction);
    assert_eq!(borrow(&mut kernel, Call::BorrowWrite, [client, 1, 0, to, 8]), 0);
    let bad = KernelError::BadLease.code() as usize;
    assert_eq!(borrow(&mut kernel, Call::BorrowRead, [client, 2, 0, to, 0]), bad);
    assert_eq!(borrow(&mut kernel, Call::BorrowInfo, [client, 1, 0, 0, 0]), 0);
    assert_eq!(results(&kernel, SERVER)[1..3], [lease::WRITE, 8]);
    let caller = id(&kernel, CLIENT);
    reply(&mut kernel, SERVER, caller, 0, 0, 0);
    assert_eq!(borrow(&mut kernel, Call::BorrowRead, [client, 0, 0, to, 1]), bad, "over with the reply");
}

/// Lets the driver give frames 0.. to the client, which called it.
fn give(kernel: &mut Kernel<Mock>, count: usize) -> usize {
    let base = memory(CLIENT);
    put_words(kernel, base + EXTRA, &[0, 0, base + LIST, 0, 8]);
    run(kernel, CLIENT);
    let driver = id(kernel, DRIVER);
    send(kernel, CLIENT, driver, 1, 0, true);
    for frame in 0..count {
        let generation = 1;
        let entry = FrameDesc { handle: FrameHandle::new(frame, generation), len: 60, offset: 2, meta: 0 };
        kernel.machine.store(memory(DRIVER) + LIST + frame * 8, &entry);
    }
    let client = id(kernel, CLIENT);
    reply(kernel, DRIVER, client, 0, 0, count);
    results(kernel, DRIVER)[0]
}

#[test]
fn frames_travel_with_replies_and_map_for_their_holder() {
    let mut kernel = system();
    assert_eq!(give(&mut kernel, 2), 0);
    assert_eq!(results(&kernel, CLIENT)[2], 2);
    let entry: FrameDesc = kernel.machine.load(memory(CLIENT) + LIST + 8);
    assert_eq!((entry.handle.index(), entry.handle.generation(), entry.len, entry.offset), (1, 2, 60, 2));
    check_invariants(&kernel);
    assert_eq!(kernel.machine.mapped.len(), 2);
    // Over the client's quota of two: refused, and the caller still waits.
    let mut kernel = system();
    assert_eq!(give(&mut kernel, 3), KernelError::FrameQuota.code() as usize);
    assert_eq!(kernel.tasks[CLIENT].state, State::AwaitingReply(DRIVER as u8));
    assert!(kernel.machine.mapped.is_empty());
    check_invariants(&kernel);
}

#[test]
fn a_dead_holder_gives_its_frames_back_with_a_notice() {
    let mut kernel = system();
    assert_eq!(give(&mut kernel, 2), 0);
    recv(&mut kernel, DRIVER, RETURNED_BIT as usize, 0);
    assert_eq!(kernel.current(), CLIENT);
    kernel.exception(FaultInfo::IllegalInstruction);
    run_supervisor_dry(&mut kernel);
    assert_eq!(kernel.current(), DRIVER);
    assert_eq!(results(&kernel, DRIVER)[1], RETURNED_BIT as usize);
    assert_eq!(kernel.ledger.census(0).map(|census| census.owner), Some(FRAMES));
    check_invariants(&kernel);
}

#[test]
fn a_dead_driver_is_quieted_before_its_frames_are_free() {
    let mut kernel = system();
    run(&mut kernel, DRIVER);
    let entry = FrameDesc { handle: FrameHandle::new(0, 1), len: 1536, offset: 0, meta: 0 };
    kernel.machine.store(memory(DRIVER) + LIST, &entry);
    call(&mut kernel, DRIVER, Call::FrameArm, [memory(DRIVER) + LIST, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(results(&kernel, DRIVER)[0], 0);
    assert_eq!(kernel.ledger.census(0).map(|census| census.device), Some(1));
    assert_eq!(kernel.tasks[DRIVER].counters.cache_lines, 24);
    kernel.exception(FaultInfo::IllegalInstruction);
    assert_eq!(kernel.machine.quiesced, 1);
    assert_eq!(kernel.ledger.census(0).map(|census| census.owner), Some(FRAMES));
    check_invariants(&kernel);
}

#[test]
fn interrupts_are_masked_until_enabled_again() {
    let mut kernel = system();
    run(&mut kernel, DRIVER);
    call(&mut kernel, DRIVER, Call::IrqControl, [2, 1, 0, 0, 0, 0, 0, 0]);
    assert!(kernel.machine.enabled.contains(&IRQ));
    call(&mut kernel, DRIVER, Call::IrqControl, [6, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(results(&kernel, DRIVER)[0], KernelError::BadArgument.code() as usize);
    recv(&mut kernel, DRIVER, 2, 0);
    kernel.device_interrupt(IRQ);
    assert!(!kernel.machine.enabled.contains(&IRQ));
    assert_eq!(kernel.current(), DRIVER);
    assert_eq!(results(&kernel, DRIVER)[1], 2);
}

#[test]
fn timers_fire_in_order_and_can_be_cancelled() {
    let mut kernel = system();
    run(&mut kernel, CLIENT);
    let now = kernel.machine.ticks as usize;
    call(&mut kernel, CLIENT, Call::SetTimer, [now + 50, 1, 0, 0, 0, 0, 0, 0]);
    recv(&mut kernel, CLIENT, 0x81, 0);
    run(&mut kernel, SERVER);
    call(&mut kernel, SERVER, Call::SetTimer, [now + 20, 1, 0, 0, 0, 0, 0, 0]);
    recv(&mut kernel, SERVER, 0x81, 0);
    assert_eq!(kernel.machine.alarm, Some(now as u64 + 20));
    kernel.machine.ticks = now as u64 + 20;
    kernel.timer_interrupt();
    assert_eq!(kernel.current(), SERVER);
    assert_eq!(kernel.machine.alarm, Some(now as u64 + 50));
    recv(&mut kernel, SERVER, 0x81, 0);
    run(&mut kernel, CLIENT);
    call(&mut kernel, CLIENT, Call::SetTimer, [0; 8]);
    assert_eq!(kernel.machine.alarm, None);
}

#[test]
fn posts_need_permission() {
    let mut kernel = system();
    run(&mut kernel, SERVER);
    call(&mut kernel, SERVER, Call::Post, [CLIENT, 0x10, 0, 0, 0, 0, 0, 0]);
    assert_eq!(results(&kernel, SERVER)[0], KernelError::NoCapability.code() as usize);
    call(&mut kernel, SERVER, Call::Post, [CLIENT, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(results(&kernel, SERVER)[0], 0);
    assert_eq!(results(&kernel, CLIENT)[1], 2);
    call(&mut kernel, SERVER, Call::Post, [TASKS, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(results(&kernel, SERVER)[0], KernelError::BadArgument.code() as usize);
}

#[test]
fn vector_registers_follow_the_tasks_that_may_use_them() {
    let mut kernel = system();
    run(&mut kernel, CLIENT);
    kernel.machine.vectors = 7;
    run(&mut kernel, DRIVER);
    assert!(!kernel.machine.vectors_enabled, "built without them");
    assert_eq!(kernel.machine.vectors, 7, "left alone");
    recv(&mut kernel, DRIVER, 0xff, 0);
    assert!(kernel.machine.vectors_enabled);
    run(&mut kernel, SERVER);
    assert_eq!(kernel.machine.vectors, 0);
    kernel.machine.vectors = 9;
    recv(&mut kernel, SERVER, 0xff, 0);
    assert_eq!((kernel.current(), kernel.machine.vectors), (CLIENT, 7));
    // A restart begins with clean registers, even without a switch in between.
    kernel.bury(CLIENT, State::Stopped);
    kernel.start(CLIENT);
    kernel.reschedule();
    assert_eq!(kernel.machine.vectors, 0);
}

#[test]
fn somebody_always_has_the_cpu() {
    let mut kernel = system();
    for (operation, code) in [(kernel_op::FAULT, 0), (kernel_op::STOP, KernelError::BadArgument.code())] {
        run(&mut kernel, SERVER);
        call(&mut kernel, SERVER, Call::Kernel, [operation as usize, IDLE, 0, 0, 0, 0, 0, 0]);
        // The supervisor has been told, and finds nothing to do.
        while kernel.current() != SERVER {
            let me = kernel.current();
            recv(&mut kernel, me, 0xff, 0);
        }
        assert_eq!(results(&kernel, SERVER)[0], code as usize);
        check_invariants(&kernel);
        recv(&mut kernel, SERVER, 0xff, 0);
        assert_eq!(kernel.current(), IDLE);
        check_invariants(&kernel);
    }
    assert_eq!(id(&kernel, IDLE).generation(), 1, "it died once");
}
