//! What happened between two looks at the counters.

use std::collections::BTreeMap;

use abi::stats::Counters;
use report::StackCounters;
use serde::Serialize;

use super::board::Snapshot;

/// Differences of counters, summed over all tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Instructions that the CPU executed.
    pub instructions: u64,
    /// Time on the board in microseconds.
    pub micros: u64,
    /// Task switches, those to the idle task not counted.
    pub switches: u64,
    /// System calls.
    pub calls: u64,
    /// Interrupts delivered to tasks.
    pub interrupts: u64,
    /// Messages between tasks.
    pub messages: u64,
    /// Frames handed over between tasks.
    pub frames: u64,
    /// Bytes that the kernel copied for messages, replies and borrows.
    pub bytes_copied: u64,
    /// The same, for the MAC driver alone.
    pub driver_bytes_copied: u64,
    /// Cache lines cleaned or invalidated.
    pub cache_lines: u64,
    /// Page table entries written.
    pub map_writes: u64,
    /// Frames that the stack received.
    pub rx_frames: u64,
    /// Frames that the stack sent.
    pub tx_frames: u64,
    /// Payload bytes that the stack copied out of frames.
    pub rx_copied: u64,
    /// Payload bytes that the stack copied into frames.
    pub tx_copied: u64,
    /// Calls of the stack to the driver.
    pub exchanges: u64,
    /// Packets that the stack dropped.
    pub dropped: u64,
}

/// What `take` must not fall below: a negative difference is a restart of a task, or a mistake.
const fn less(now: u64, before: u64) -> u64 {
    now.saturating_sub(before)
}

impl Cost {
    /// The differences. Instructions are those of the CPU where that tells them (it counts modulo 2^32), as the sum over all tasks
    /// says how often it went round.
    #[must_use]
    pub fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let sum = |get: fn(&Counters) -> u64, only: &dyn Fn(&str) -> bool| {
            let total = |snapshot: &Snapshot| {
                snapshot.tasks.iter().filter(|(name, _)| only(name)).map(|(_, counters)| get(counters)).sum::<u64>()
            };
            less(total(now), total(before))
        };
        let all = |get| sum(get, &|_| true);
        let stack = |get: fn(&StackCounters) -> u64| less(get(&now.stack), get(&before.stack));
        let ticks = less(now.moment.ticks, before.moment.ticks);
        let rate = now.moment.tick_rate.max(1);
        let cpu = now.moment.instructions.wrapping_sub(before.moment.instructions);
        Self {
            instructions: unwrap(cpu, all(|counters| counters.instructions)),
            micros: (u128::from(ticks) * 1_000_000 / u128::from(rate)) as u64,
            switches: sum(|counters| counters.switches, &|name| name != "idle"),
            calls: all(|counters| counters.calls),
            interrupts: all(|counters| counters.interrupts),
            messages: all(|counters| counters.messages),
            frames: all(|counters| counters.frames),
            bytes_copied: all(|counters| counters.bytes_copied),
            driver_bytes_copied: sum(|counters| counters.bytes_copied, &|name| name == "mac"),
            cache_lines: all(|counters| counters.cache_lines),
            map_writes: all(|counters| counters.map_writes),
            rx_frames: stack(|counters| counters.rx_frames),
            tx_frames: stack(|counters| counters.tx_frames),
            rx_copied: stack(|counters| counters.rx_copied),
            tx_copied: stack(|counters| counters.tx_copied),
            exchanges: stack(|counters| counters.exchanges),
            dropped: stack(|counters| counters.dropped),
        }
    }

    /// Without what another measurement took: that of reading the counters, for one.
    #[must_use]
    pub fn without(self, other: &Self) -> Self {
        Self {
            instructions: less(self.instructions, other.instructions),
            switches: less(self.switches, other.switches),
            calls: less(self.calls, other.calls),
            interrupts: less(self.interrupts, other.interrupts),
            messages: less(self.messages, other.messages),
            bytes_copied: less(self.bytes_copied, other.bytes_copied),
            ..self
        }
    }

    /// True if each hand-over changed one table only: that of the stack. A driver that has no frame in its own cannot copy payload.
    #[must_use]
    pub const fn is_unmapped_in_driver(&self) -> bool {
        self.map_writes <= self.frames
    }

    /// Frames on the wire.
    #[must_use]
    pub const fn wire_frames(&self) -> u64 {
        self.rx_frames + self.tx_frames
    }
}

/// Instructions of each task between two looks, system calls included; the kernel charges everything to some task.
#[must_use]
pub fn by_task(before: &Snapshot, now: &Snapshot) -> BTreeMap<String, u64> {
    let earlier =
        |name: &str| before.tasks.iter().find(|(own, _)| own == name).map_or(0, |(_, counters)| counters.instructions);
    let spent = now.tasks.iter().map(|(name, counters)| (name.clone(), less(counters.instructions, earlier(name))));
    spent.filter(|(_, instructions)| *instructions > 0).collect()
}

/// The number that is `low` modulo 2^32 and nearest to `about`.
fn unwrap(low: u32, about: u64) -> u64 {
    const ROUND: u64 = 1 << 32;
    let base = about & !(ROUND - 1) | u64::from(low);
    let near = [base.checked_sub(ROUND), Some(base), base.checked_add(ROUND)];
    near.into_iter().flatten().min_by_key(|number| number.abs_diff(about)).unwrap_or(base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::Moment;

    #[test]
    fn the_cpus_counter_is_unwrapped_by_the_sum_of_the_tasks() {
        assert_eq!(unwrap(100, 90), 100);
        assert_eq!(unwrap(100, 0), 100);
        assert_eq!(unwrap(5, (1 << 32) - 10), (1 << 32) + 5);
        assert_eq!(unwrap(u32::MAX, 1 << 32), (1 << 32) - 1);
        assert_eq!(unwrap(7, 3 << 32), (3 << 32) + 7);
    }

    fn snapshot(instructions: u32, mac: Counters, idle: Counters) -> Snapshot {
        let moment = Moment { ticks: u64::from(instructions) * 2, tick_rate: 2_000_000, instructions, tasks: 2 };
        Snapshot {
            moment,
            tasks: vec![("mac".to_owned(), mac), ("idle".to_owned(), idle)],
            stack: StackCounters::default(),
        }
    }

    #[test]
    fn tasks_are_summed_and_the_idle_task_is_no_switch() {
        let busy = Counters { instructions: 900, switches: 3, bytes_copied: 48, ..Counters::ZERO };
        let idle = Counters { instructions: 95, switches: 3, bytes_copied: 1, ..Counters::ZERO };
        let cost = Cost::between(&snapshot(50, Counters::ZERO, Counters::ZERO), &snapshot(1050, busy, idle));
        assert_eq!((cost.instructions, cost.micros, cost.switches), (1000, 1000, 3));
        assert_eq!((cost.bytes_copied, cost.driver_bytes_copied), (49, 48));
        let rest = cost.without(&Cost { instructions: 400, switches: 5, ..Cost::default() });
        assert_eq!((rest.instructions, rest.switches, rest.micros), (600, 0, 1000));
        let tasks = by_task(&snapshot(50, idle, Counters::ZERO), &snapshot(1050, busy, Counters::ZERO));
        assert_eq!(tasks, BTreeMap::from([("mac".to_owned(), 805)]));
    }
}
