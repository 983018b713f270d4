//! Faults of every kind: the right reason, in the right place, and nobody else harmed.

use abi::call::{Call, SendExtra};
use abi::fault::FaultRecord;
use abi::stats::TaskState;
use abi::{FaultInfo, KernelError};
use core::sync::atomic::{AtomicU64, Ordering};
use userlib::{config, kernel, time};
use victim::{Step, WINDOW, action, operation};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::{last_fault, revive, state};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("faults.read_at_null", |s| load(s, 0)),
    Test::new("faults.write_at_null", |s| store(s, 8)),
    Test::new("faults.read_foreign_memory", |s| load(s, foreign())),
    Test::new("faults.write_foreign_memory", write_foreign),
    Test::new("faults.read_kernel_memory", |s| load(s, kernel_memory())),
    Test::new("faults.write_kernel_memory", |s| store(s, kernel_memory())),
    Test::new("faults.read_kernels_upper_half", |s| load(s, upper_half())),
    Test::new("faults.write_kernels_upper_half", |s| store(s, upper_half())),
    Test::new("faults.read_device_registers", |s| load(s, device())),
    Test::new("faults.write_device_registers", |s| store(s, device())),
    Test::new("faults.read_behind_a_region", behind_a_region),
    Test::new("faults.stack_overflow", stack_overflow),
    Test::new("faults.undefined_instruction", |s| illegal(s, 0)),
    Test::new("faults.breakpoint", |s| illegal(s, 1)),
    Test::new("faults.read_a_system_register", |s| illegal(s, 2)),
    Test::new("faults.write_a_system_register", |s| illegal(s, 3)),
    Test::new("faults.execute_data", execute_data),
    Test::new("faults.execute_null", |s| execute(s, 0)),
    Test::new("faults.execute_the_kernel", |s| execute(s, kernel_memory())),
    Test::new("faults.execute_foreign_code", execute_foreign),
    Test::new("faults.write_text", |s| write_own(s, 0)),
    Test::new("faults.write_constants", |s| write_own(s, 1)),
    Test::new("faults.misaligned_program_counter", misaligned_pc),
    Test::new("faults.panic_message_is_kept", panic_message),
    Test::new("faults.long_panic_message_is_cut", long_panic_message),
    Test::new("faults.unknown_system_calls", unknown_calls),
    Test::new("faults.bad_memory_arguments", bad_arguments),
    Test::new("faults.injected", injected),
    Test::new("faults.on_each_start_again", again_and_again),
];

/// Memory that is the suite's alone.
static MINE: AtomicU64 = AtomicU64::new(0x600d);

fn foreign() -> u64 {
    &raw const MINE as u64
}

fn kernel_memory() -> u64 {
    config::integer("kernel") as u64
}

fn device() -> u64 {
    config::integer("device") as u64
}

/// Where the kernel sees its own memory; user code must not.
fn upper_half() -> u64 {
    0xffff_ff80_0000_0000 + kernel_memory()
}

/// Runs a script to its bitter end. The record's program counter lies in the victim's code, near that of the actions.
fn die(s: &mut Suite, step: Step) -> Outcome<FaultRecord> {
    s.high.run(&[Step::new(action::PLACES, &[])])?;
    let [text, _, _, stack] = [0, 1, 2, 3].map(|place| s.high.memory.window.result(0, place));
    let before = time::ticks();
    let record = s.high.dies(&[step])?;
    if step.action != action::JUMP {
        holds(record.pc.abs_diff(text) < 0x1_0000, "program counter, and where the code is", (record.pc, text))?;
    }
    if step.action != action::OVERFLOW {
        holds(record.sp.abs_diff(stack) < 0x2000, "stack pointer, and where the stack is", (record.sp, stack))?;
    }
    holds(record.time >= before && record.time <= time::ticks(), "time of the fault", (before, record.time))?;
    // It lives again.
    s.high.run(&[])?;
    Ok(record)
}

fn load(s: &mut Suite, address: u64) -> Outcome {
    let record = die(s, Step::new(action::LOAD, &[address]))?;
    equal(record.info, FaultInfo::MemoryAccess { address, write: false }, "reason")
}

fn store(s: &mut Suite, address: u64) -> Outcome {
    let record = die(s, Step::new(action::STORE, &[address, 0xbad]))?;
    equal(record.info, FaultInfo::MemoryAccess { address, write: true }, "reason")
}

fn write_foreign(s: &mut Suite) -> Outcome {
    store(s, foreign())?;
    equal(MINE.load(Ordering::Relaxed), 0x600d, "the foreign memory")?;
    // Another victim's window.
    s.low.memory.put(0, 7);
    store(s, s.low.memory.scratch(0))?;
    equal(s.low.memory.get(0), 7, "another's window")
}

fn behind_a_region(s: &mut Suite) -> Outcome {
    let end = s.high.memory.window.address() + WINDOW as u64;
    let record = die(s, Step::new(action::LOAD, &[end - 4]))?;
    // Eight bytes, of which the last four are not there: the fault names one of them.
    match record.info {
        FaultInfo::MemoryAccess { address, write: false } => {
            holds((end - 4..end + 4).contains(&address), "address", address)
        }
        other => holds(false, "reason", other),
    }
}

fn stack_overflow(s: &mut Suite) -> Outcome {
    let record = die(s, Step::new(action::OVERFLOW, &[0]))?;
    match record.info {
        FaultInfo::StackOverflow { address } => {
            holds(address.abs_diff(record.sp) < 0x1000, "address, and stack pointer", (address, record.sp))
        }
        other => holds(false, "reason", other),
    }
}

fn illegal(s: &mut Suite, which: u64) -> Outcome {
    let record = die(s, Step::new(action::ILLEGAL, &[which]))?;
    equal(record.info, FaultInfo::IllegalInstruction, "reason")
}

fn execute(s: &mut Suite, address: u64) -> Outcome {
    let record = die(s, Step::new(action::JUMP, &[address]))?;
    equal(record.info, FaultInfo::Execute { address }, "reason")?;
    equal(record.pc, address, "program counter")
}

fn execute_data(s: &mut Suite) -> Outcome {
    s.high.run(&[Step::new(action::PLACES, &[])])?;
    let [constant, variable, stack] = [1, 2, 3].map(|place| s.high.memory.window.result(0, place));
    let window = s.high.memory.scratch(0);
    for address in [constant & !3, variable, stack & !3, window] {
        execute(s, address)?;
    }
    Ok(())
}

fn execute_foreign(s: &mut Suite) -> Outcome {
    s.low.run(&[Step::new(action::PLACES, &[])])?;
    let code = s.low.memory.window.result(0, 0);
    execute(s, code)?;
    execute(s, execute_foreign as *const () as u64)
}

/// Writes to a place of its own that may only be read.
fn write_own(s: &mut Suite, place: usize) -> Outcome {
    s.high.run(&[Step::new(action::PLACES, &[])])?;
    let address = s.high.memory.window.result(0, place);
    store(s, address & !7)
}

fn misaligned_pc(s: &mut Suite) -> Outcome {
    s.high.run(&[Step::new(action::PLACES, &[])])?;
    let address = s.high.memory.window.result(0, 0) + 2;
    let record = die(s, Step::new(action::JUMP, &[address]))?;
    equal(record.info, FaultInfo::Alignment { address }, "reason")
}

fn panic_message(s: &mut Suite) -> Outcome {
    let record = die(s, Step::new(action::PANIC, &[4711]))?;
    equal(record.info, FaultInfo::Panic, "reason")?;
    let mut buffer = [0; 128];
    let len = kernel::panic_message(s.high.index, &mut buffer).expecting("the message")?;
    let message = str::from_utf8(&buffer[..len]).expecting("text")?;
    holds(message.contains("perform.rs:"), "place of the panic", message)?;
    holds(message.ends_with("asked to panic: 4711"), "message of the panic", message)?;
    // Another fault has no message, and does not show the old one.
    die(s, Step::new(action::LOAD, &[0]))?;
    equal(kernel::panic_message(s.high.index, &mut buffer), Ok(0), "length of the message of another fault")
}

fn long_panic_message(s: &mut Suite) -> Outcome {
    s.high.memory.window.put_bytes(victim::SCRATCH, &[b'x'; 300]);
    for (len, kept) in [(300, 128), (129, 128), (128, 128), (1, 1), (0, 0)] {
        let step = Step::call(Call::Panic as u64, &[s.high.memory.scratch(0), len]);
        equal(s.high.dies(&[step])?.info, FaultInfo::Panic, "reason")?;
        let mut buffer = [0; 128];
        let kept_now = kernel::panic_message(s.high.index, &mut buffer).expecting("the message")?;
        equal(kept_now, kept, "bytes kept of the message")?;
        holds(buffer[..kept].iter().all(|&byte| byte == b'x'), "bytes of the message", ())?;
    }
    // A buffer that is too short is refused, and not overrun.
    equal(kernel::panic_message(s.high.index, &mut []), Ok(0), "an empty message in an empty buffer")?;
    let step = Step::call(Call::Panic as u64, &[s.high.memory.scratch(0), 9]);
    s.high.dies(&[step])?;
    equal(kernel::panic_message(s.high.index, &mut [0; 8]), Err(KernelError::BadArgument), "a short buffer")
}

fn unknown_calls(s: &mut Suite) -> Outcome {
    for number in [0, 19, 20, 255, 0x1_0001, 0xffff_ffff, 1 << 40, u64::MAX] {
        let record = s.high.dies(&[Step::call(number, &[])])?;
        equal(record.info, FaultInfo::UnknownCall { number: number as u32 }, "reason")?;
    }
    Ok(())
}

/// Each argument of each call that names memory, with memory that is not the caller's.
fn bad_arguments(s: &mut Suite) -> Outcome {
    s.low.run(&[Step::new(action::PLACES, &[])])?;
    let constant = s.low.memory.window.result(0, 1);
    let (own, test) = (s.id().0.into(), u64::from(operation::TESTS));
    let good = s.low.memory.scratch(0);
    let odd = s.low.memory.scratch(4) + 1;
    let extra = |s: &mut Suite, extra| s.low.memory.extra(64, &extra);
    let frames = SendExtra { frames: foreign() as usize, frame_capacity: 1, ..SendExtra::default() };
    let frames = extra(s, frames);
    // A receive into a bad buffer, and one with a bad list.
    let buffer = s.low.memory.put_words(128, &[foreign(), 8, 0, 0, 0, 0, 0]);
    let readonly = s.low.memory.put_words(192, &[constant, 8, 0, 0, 0, 0, 0]);
    let list = s.low.memory.put_words(256, &[0, 0, 0, 0, 0, foreign(), 2]);
    let send = Call::Send as u64;
    let cases: [(Step, u64, u64); 22] = [
        (Step::call(send, &[own, test, foreign(), 1]), foreign(), 1),
        (Step::call(send, &[own, test, 0, 8]), 0, 8),
        (Step::call(send, &[own, test, upper_half(), 8]), upper_half(), 8),
        (Step::call(send, &[own, test, device(), 4]), device(), 4),
        (Step::call(send, &[own, test, u64::MAX - 7, 16]), u64::MAX - 7, 16),
        (Step::call(send, &[own, test, good, 0, foreign(), 8]), foreign(), 8),
        (Step::call(send, &[own, test, good, 0, constant, 8]), constant, 8),
        (Step::call(send, &[own, test, good, 0, good, 1 << 40]), good, 1 << 40),
        (Step::call(send, &[own, test, good, 0, good, 8, foreign()]), foreign(), 40),
        (Step::call(send, &[own, test, good, 0, good, 8, odd]), odd, 40),
        (Step::call(send, &[own, test, good, 0, good, 8, frames]), foreign(), 8),
        (Step::call(Call::Recv as u64, &[foreign()]), foreign(), 56),
        (Step::call(Call::Recv as u64, &[odd]), odd, 56),
        (Step::call(Call::Recv as u64, &[0]), 0, 56),
        (Step::call(Call::Recv as u64, &[buffer]), foreign(), 8),
        (Step::call(Call::Recv as u64, &[readonly]), constant, 8),
        (Step::call(Call::Recv as u64, &[list]), foreign(), 16),
        (Step::call(Call::Reply as u64, &[own, 0, foreign(), 8]), foreign(), 8),
        (Step::call(Call::Reply as u64, &[own, 0, good, 0, foreign(), 1]), foreign(), 8),
        (Step::call(Call::Panic as u64, &[foreign(), 8]), foreign(), 8),
        (Step::call(Call::FrameArm as u64, &[foreign(), 1, 0]), foreign(), 8),
        (Step::call(Call::FrameList as u64, &[0, constant, 1, 0]), constant, 8),
    ];
    for (number, (step, address, len)) in cases.into_iter().enumerate() {
        let record = s.low.dies(&[step])?;
        let expected = FaultInfo::BadMemoryArgument { address, len };
        holds(record.info == expected, "case, reason, expected", (number, record.info, expected))?;
    }
    equal(MINE.load(Ordering::Relaxed), 0x600d, "the foreign memory")
}

fn injected(s: &mut Suite) -> Outcome {
    s.low.start(&[Step::new(action::SPIN, &[20_000_000])])?;
    s.sleep(3000);
    let before = kernel::task_status(s.low.index).expecting("status")?;
    equal(before.state, TaskState::Runnable, "state of a busy task")?;
    kernel::inject_fault(s.low.index).expecting("a fault")?;
    equal(state(s.low.index)?, TaskState::Faulted, "state of a task with a fault")?;
    let record = last_fault(s.low.index)?;
    equal(record.info, FaultInfo::Injected { by: s.own.into() }, "reason")?;
    equal(record.generation, before.generation, "generation in the record")?;
    // Once more changes nothing.
    kernel::inject_fault(s.low.index).expecting("a fault of a dead task")?;
    equal(last_fault(s.low.index)?, record, "the record")?;
    equal(kernel::inject_fault(31), Err(KernelError::BadArgument), "a fault of nobody")?;
    revive(s.low.index)?;
    s.low.forget();
    s.low.run(&[])
}

/// Thirty deaths in a row leave nothing behind.
fn again_and_again(s: &mut Suite) -> Outcome {
    let before = crate::victims::generation(s.high.index)?;
    for round in 0..30 {
        let step = match round % 3 {
            0 => Step::new(action::LOAD, &[0]),
            1 => Step::new(action::PANIC, &[round]),
            _ => Step::new(action::OVERFLOW, &[0]),
        };
        s.high.dies(&[step])?;
    }
    equal(crate::victims::generation(s.high.index)?, before + 30, "generations")?;
    s.high.run(&[])
}
