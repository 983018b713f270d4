//! Output of ps, vmstat, crash and measure.

use core::fmt::{Display, Formatter, Result, Write};

use abi::MAX_TASKS;
use abi::fault::FaultInfo;
use abi::stats::{Counters, TaskState, TaskStatus};
use bench_api::Micro;
use supervisor_api::{CrashRecord, Restarts};

/// A share in tenths of a percent.
struct Percent(u64);

impl Percent {
    fn of(part: u64, whole: u64) -> Self {
        Self((u128::from(part) * 1000).checked_div(whole.into()).unwrap_or(0) as u64)
    }
}

impl Display for Percent {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:3}.{}", self.0 / 10, self.0 % 10)
    }
}

/// What stands above the rows of ps.
///
/// # Errors
/// Those of `out`.
pub fn ps_head(out: &mut impl Write) -> Result {
    writeln!(
        out,
        "{:>2} {:14} {:>3} {:22} {:>5} {:>10} {:>6} {:>8}",
        "ID", "TASK", "PRI", "STATE", "CPU%", "TIME", "FRAMES", "RESTARTS"
    )
}

/// A row of ps.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Index of the task.
    pub task: u8,
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub status: TaskStatus,
    /// Microseconds on the CPU.
    pub micros: u64,
    /// Microseconds since boot.
    pub uptime: u64,
    /// Of the supervisor, if it answered.
    pub restarts: Option<Restarts>,
}

/// Writes a row of ps; `name_of` names other tasks.
///
/// # Errors
/// Those of `out`.
pub fn ps_row<'a>(out: &mut impl Write, row: &Row<'_>, name_of: impl Fn(u8) -> Option<&'a str>) -> Result {
    let mut state = heapless::String::<40>::new();
    let other = |task| name_of(task).unwrap_or("?");
    // Cut if a name is that long.
    let _ = match row.status.state {
        TaskState::Runnable => write!(state, "ready"),
        TaskState::Sending(to) => write!(state, "sends to {}", other(to)),
        TaskState::AwaitingReply(to) => write!(state, "reply of {}", other(to)),
        TaskState::Receiving => write!(state, "waits"),
        TaskState::Faulted => write!(state, "failed"),
        TaskState::Stopped => write!(state, "stopped"),
    };
    let cpu = Percent::of(row.micros, row.uptime);
    let (seconds, millis) = (row.micros / 1_000_000, row.micros / 1000 % 1000);
    write!(
        out,
        "{:2} {:14} {:3} {state:22} {cpu} {seconds:6}.{millis:03} {:6} ",
        row.task, row.name, row.status.priority, row.status.frames_held
    )?;
    write!(out, "{:8}", row.status.generation)?;
    match row.restarts {
        Some(Restarts { crashes: 1.., requested: 1.., .. }) => writeln!(out, " (some on request)"),
        Some(Restarts { crashes: 0, requested: 1.., .. }) => writeln!(out, " (on request)"),
        _ => writeln!(out),
    }
}

/// All counters of all tasks at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Microseconds since boot.
    pub micros: u64,
    /// By task index.
    pub tasks: heapless::Vec<Counters, MAX_TASKS>,
}

impl Sample {
    /// The counters at boot.
    #[must_use]
    pub const fn zero() -> Self {
        Self { micros: 0, tasks: heapless::Vec::new() }
    }
}

/// What stands above the rows of vmstat.
///
/// # Errors
/// Those of `out`.
pub fn vmstat_head(out: &mut impl Write) -> Result {
    writeln!(
        out,
        "{:>8} {:>8} {:>8} {:>8} {:>8} {:>10}  cpu by task (%)",
        "in/s", "calls/s", "switch/s", "msgs/s", "frames/s", "copied/s"
    )
}

/// A row of vmstat: what happened between two samples, per second. `micros` converts ticks.
///
/// # Errors
/// Those of `out`.
pub fn vmstat_row<'a>(
    out: &mut impl Write,
    before: &Sample,
    now: &Sample,
    micros: impl Fn(u64) -> u64,
    name_of: impl Fn(u8) -> Option<&'a str>,
) -> Result {
    let time = now.micros.saturating_sub(before.micros).max(1);
    let changed = |get: fn(&Counters) -> u64| {
        let sum = |sample: &Sample| sample.tasks.iter().map(get).fold(0, u64::wrapping_add);
        sum(now).wrapping_sub(sum(before))
    };
    let rate = |get: fn(&Counters) -> u64| (u128::from(changed(get)) * 1_000_000 / u128::from(time)) as u64;
    write!(
        out,
        "{:8} {:8} {:8} {:8} {:8} {:10} ",
        rate(|counters| counters.interrupts),
        rate(|counters| counters.calls),
        rate(|counters| counters.switches),
        rate(|counters| counters.messages),
        rate(|counters| counters.frames),
        rate(|counters| counters.bytes_copied)
    )?;
    for (index, counters) in now.tasks.iter().enumerate() {
        let ticks = counters.ticks.saturating_sub(before.tasks.get(index).map_or(0, |counters| counters.ticks));
        let share = (u128::from(micros(ticks)) * 1000 / u128::from(time)) as u64;
        if share > 0 {
            write!(out, " {} {}.{}", name_of(index as u8).unwrap_or("?"), share / 10, share % 10)?;
        }
    }
    writeln!(out)
}

/// A crash record; `time` is its time in microseconds since boot.
///
/// # Errors
/// Those of `out`.
pub fn crash(out: &mut impl Write, record: &CrashRecord, name: &str, time: u64) -> Result {
    let fault = &record.fault;
    write!(out, "{}.{:06} {name} ", time / 1_000_000, time % 1_000_000)?;
    match fault.info {
        FaultInfo::MemoryAccess { address, write } => {
            write!(out, "{} 0x{address:x}, which is not its own", if write { "wrote to" } else { "read" })
        }
        FaultInfo::StackOverflow { address } => write!(out, "overran its stack at 0x{address:x}"),
        FaultInfo::Execute { address } => write!(out, "jumped to 0x{address:x}, which is not its code"),
        FaultInfo::IllegalInstruction => write!(out, "executed an illegal instruction"),
        FaultInfo::Alignment { address } => write!(out, "used the misaligned address 0x{address:x}"),
        FaultInfo::UnknownCall { number } => write!(out, "made the unknown system call {number}"),
        FaultInfo::BadMemoryArgument { address, len } => {
            write!(out, "passed memory that is not its own: {len} bytes at 0x{address:x}")
        }
        FaultInfo::Panic if record.message.is_empty() => write!(out, "panicked"),
        FaultInfo::Panic => write!(out, "panicked: {}", record.message),
        FaultInfo::Injected { .. } => write!(out, "was made to fail"),
        FaultInfo::Other { syndrome } => write!(out, "took an exception with syndrome 0x{syndrome:x}"),
    }?;
    writeln!(
        out,
        " (pc 0x{:x}, sp 0x{:x}, instance {}; restarted after {} ms)",
        fault.pc, fault.sp, fault.generation, record.backoff
    )
}

/// A measurement.
///
/// # Errors
/// Those of `out`.
pub fn measure(out: &mut impl Write, what: Micro, rounds: u32, instructions: u64, micros: u64) -> Result {
    let each = |count: u64, of: u64| {
        let tenths = count.saturating_mul(10).checked_div(of).unwrap_or(0);
        (tenths / 10, tenths % 10)
    };
    let rounds = u64::from(rounds);
    let (whole, tenth) = each(instructions, rounds);
    match what {
        Micro::Call => writeln!(
            out,
            "call and reply: {rounds} rounds, {instructions} instructions, {micros} us: {whole}.{tenth} each"
        ),
        Micro::Frames(list) => {
            // There and back.
            let (whole, tenth) = each(instructions, rounds * 2 * u64::from(list));
            writeln!(
                out,
                "frames in lists of {list}: {rounds} rounds there and back, {instructions} instructions, {micros} us: {whole}.{tenth} per hand-over of a frame"
            )
        }
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
