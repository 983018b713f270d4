//! Any sequence of system calls and faults keeps the kernel's invariants.

use abi::FaultInfo;
use abi::call::{Call, kernel_op};
use proptest::prelude::*;
use std::vec;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Send { target: usize, len: usize, frames: usize, stale: bool },
    Recv { mask: usize, from: Option<usize> },
    Reply { to: usize, len: usize, frames: usize },
    ReplyRecv { to: usize, frames: usize },
    Post { target: usize, mask: usize },
    Arm { transmit: bool },
    Complete,
    Restart { target: usize },
    Timer { after: usize },
    Interrupt,
    Fault,
}

fn step() -> impl Strategy<Value = Step> {
    let frames = prop_oneof![3 => Just(0usize), 2 => 1usize..4];
    prop_oneof![
        4 => (0..TASKS, 0usize..0x120, frames.clone(), prop::bool::weighted(0.1))
            .prop_map(|(target, len, frames, stale)| Step::Send { target, len, frames, stale }),
        4 => (0usize..32, prop::option::weighted(0.2, 0..TASKS)).prop_map(|(mask, from)| Step::Recv { mask, from }),
        4 => (0..TASKS, 0usize..0x120, frames.clone()).prop_map(|(to, len, frames)| Step::Reply { to, len, frames }),
        3 => (0..TASKS, frames).prop_map(|(to, frames)| Step::ReplyRecv { to, frames }),
        2 => (0..TASKS, 0usize..32).prop_map(|(target, mask)| Step::Post { target, mask }),
        2 => any::<bool>().prop_map(|transmit| Step::Arm { transmit }),
        2 => Just(Step::Complete),
        1 => (1..TASKS - 1).prop_map(|target| Step::Restart { target }),
        1 => (0usize..30).prop_map(|after| Step::Timer { after }),
        1 => Just(Step::Interrupt),
        1 => Just(Step::Fault),
    ]
}

/// Writes the task's first held (or device-held) frames into its list.
fn fill_list(kernel: &mut Kernel<Mock>, me: usize, count: usize) {
    let held: vec::Vec<_> = kernel.ledger.held_by(me as u8, 0, 0).take(count).collect();
    for (index, handle) in held.into_iter().enumerate() {
        let entry = abi::FrameDesc { handle, len: 64, offset: 0, meta: 0 };
        kernel.machine.store(memory(me) + LIST + index * 8, &entry);
    }
}

fn receive_args(kernel: &mut Kernel<Mock>, me: usize, mask: usize, from: usize) {
    let words = [memory(me) + BUFFER, 0x100, mask, 0, from, memory(me) + LIST_IN, 8];
    put_words(kernel, memory(me) + ARGS, &words);
}

fn apply(kernel: &mut Kernel<Mock>, step: &Step) {
    let me = kernel.current();
    let base = memory(me);
    match *step {
        Step::Send { target, len, frames, stale } => {
            fill_list(kernel, me, frames);
            put_words(kernel, base + EXTRA, &[0, 0, base + LIST, frames, 8]);
            let target = if stale { TaskId::new(target, 0xabcd) } else { id(kernel, target) };
            send(kernel, me, target, 1, len, true);
        }
        // The idle task never waits.
        Step::Recv { .. } | Step::ReplyRecv { .. } if me == IDLE => {}
        Step::Recv { mask, from } => {
            let from = from.map_or(0, |task| id(kernel, task).0 as usize + 1);
            receive_args(kernel, me, mask, from);
            call(kernel, me, Call::Recv, [base + ARGS, 0, 0, 0, 0, 0, 0, 0]);
        }
        Step::Reply { to, len, frames } => {
            fill_list(kernel, me, frames);
            let to = id(kernel, to).0 as usize;
            call(kernel, me, Call::Reply, [to, 0, base + BUFFER, len, base + LIST, frames, 0, 0]);
        }
        Step::ReplyRecv { to, frames } => {
            fill_list(kernel, me, frames);
            receive_args(kernel, me, 0x1f, 0);
            let to = id(kernel, to).0 as usize;
            call(kernel, me, Call::ReplyRecv, [to, 0, base + BUFFER, 4, base + LIST, frames, base + ARGS, 0]);
        }
        Step::Post { target, mask } => call(kernel, me, Call::Post, [target, mask, 0, 0, 0, 0, 0, 0]),
        Step::Arm { transmit } => {
            fill_list(kernel, me, 2);
            call(kernel, me, Call::FrameArm, [base + LIST, 2, transmit.into(), 0, 0, 0, 0, 0]);
        }
        Step::Complete => call(kernel, me, Call::FrameComplete, [base + LIST, 2, 0, 0, 0, 0, 0, 0]),
        Step::Restart { target } => {
            call(kernel, me, Call::Kernel, [kernel_op::RESTART as usize, target, 0, 0, 0, 0, 0, 0]);
        }
        Step::Timer { after } => {
            let deadline = kernel.machine.ticks as usize + after;
            call(kernel, me, Call::SetTimer, [deadline, 1, 0, 0, 0, 0, 0, 0]);
        }
        Step::Interrupt => {
            kernel.machine.ticks += 10;
            kernel.timer_interrupt();
            kernel.device_interrupt(IRQ);
        }
        Step::Fault if me == IDLE => {}
        Step::Fault => kernel.exception(FaultInfo::IllegalInstruction),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn invariants_hold(steps in prop::collection::vec(step(), 1..200)) {
        let mut kernel = system();
        for step in &steps {
            apply(&mut kernel, step);
            check_invariants(&kernel);
            // A supervisor as in the image: it starts what has faulted.
            for index in 1..TASKS {
                if kernel.tasks[index].state == crate::State::Faulted {
                    kernel.start(index);
                    kernel.reschedule();
                    check_invariants(&kernel);
                }
            }
        }
    }
}
