//! When to restart.

use abi::MAX_TASKS;

/// Wait before the first restart, in microseconds.
pub const FIRST_WAIT: u64 = 2_000;
/// Longest wait. A task that fails over and over must not take the CPU from the others.
pub const LONGEST_WAIT: u64 = 1_000_000;
/// A task that ran for so long is as good as new.
pub const GOOD_TIME: u64 = 60_000_000;

/// What is known of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct History {
    /// Failures.
    pub crashes: u32,
    /// Restarts on request.
    pub requested: u32,
    wait: u64,
    due: Option<u64>,
    started: u64,
}

impl History {
    const NEW: Self = Self { crashes: 0, requested: 0, wait: FIRST_WAIT, due: None, started: 0 };

    /// Microseconds that the restart after a failure at `now` waits.
    #[must_use]
    pub const fn wait(&self, now: u64) -> u64 {
        if now.saturating_sub(self.started) >= GOOD_TIME { FIRST_WAIT } else { self.wait }
    }
}

/// The restarts of all tasks.
#[derive(Debug)]
pub struct Policy {
    tasks: [History; MAX_TASKS],
}

impl Default for Policy {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy {
    /// Nothing has failed.
    #[must_use]
    pub const fn new() -> Self {
        Self { tasks: [History::NEW; MAX_TASKS] }
    }

    /// What is known of a task; `None` above [`MAX_TASKS`].
    #[must_use]
    pub fn history(&self, task: u8) -> Option<&History> {
        self.tasks.get(usize::from(task))
    }

    /// A task is found failed at `now`. If that is new, returns how many microseconds its restart will wait.
    pub fn failed(&mut self, task: u8, now: u64) -> Option<u64> {
        let history = self.tasks.get_mut(usize::from(task))?;
        if history.due.is_some() {
            return None;
        }
        let wait = history.wait(now);
        history.crashes += 1;
        history.due = Some(now + wait);
        history.wait = (2 * wait).min(LONGEST_WAIT);
        Some(wait)
    }

    /// A task whose restart is due at `now`; it counts as restarted then.
    pub fn due(&mut self, now: u64) -> Option<u8> {
        let task = self.tasks.iter().position(|history| history.due.is_some_and(|due| due <= now))?;
        self.tasks[task].due = None;
        self.tasks[task].started = now;
        u8::try_from(task).ok()
    }

    /// A task is restarted on request at `now`. What waited for it is done with that.
    pub fn requested(&mut self, task: u8, now: u64) {
        if let Some(history) = self.tasks.get_mut(usize::from(task)) {
            history.requested += 1;
            history.due = None;
            history.started = now;
        }
    }

    /// When the next restart is due.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        self.tasks.iter().filter_map(|history| history.due).min()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Fails a task as soon as it is restarted; returns the waits.
    fn fail_again_and_again(policy: &mut Policy, now: &mut u64, times: usize) -> Vec<u64> {
        let mut waits = Vec::new();
        for _ in 0..times {
            let wait = policy.failed(3, *now).expect("new");
            assert_eq!(policy.failed(3, *now + 1), None, "the same failure is told once");
            assert_eq!(policy.due(*now + wait - 1), None);
            assert_eq!(policy.deadline(), Some(*now + wait));
            *now += wait;
            assert_eq!(policy.due(*now), Some(3));
            assert_eq!(policy.due(*now), None);
            waits.push(wait / 1000);
        }
        waits
    }

    #[test]
    fn waits_double_up_to_a_second_and_fall_back_after_a_good_minute() {
        let (mut policy, mut now) = (Policy::new(), 7_000_000);
        assert_eq!(
            fail_again_and_again(&mut policy, &mut now, 12),
            [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 1000, 1000]
        );
        now += GOOD_TIME - 1;
        assert_eq!(fail_again_and_again(&mut policy, &mut now, 1), [1000]);
        now += GOOD_TIME;
        assert_eq!(fail_again_and_again(&mut policy, &mut now, 3), [2, 4, 8]);
        assert_eq!(policy.history(3).map(|history| history.crashes), Some(16));
        assert_eq!(policy.history(4).map(|history| history.crashes), Some(0));
    }

    #[test]
    fn the_first_restart_comes_within_five_milliseconds() {
        const { assert!(FIRST_WAIT <= 5_000) }
    }

    #[test]
    fn a_request_replaces_the_restart_that_waits() {
        let mut policy = Policy::new();
        policy.failed(1, 0);
        policy.requested(1, 10);
        assert_eq!((policy.deadline(), policy.due(u64::MAX)), (None, None));
        assert!(policy.failed(1, 20).is_some());
    }

    #[test]
    fn tasks_that_cannot_be_are_ignored() {
        let mut policy = Policy::new();
        assert_eq!(policy.failed(MAX_TASKS as u8, 0), None);
        policy.requested(255, 0);
        assert_eq!(policy.deadline(), None);
    }

    proptest! {
        #[test]
        fn every_failure_leads_to_one_restart(failures in proptest::collection::vec((0u8..4, 0u64..5_000_000), 1..200)) {
            let (mut policy, mut now) = (Policy::new(), 0);
            let (mut told, mut restarts, mut down) = (0, 0, [false; 4]);
            for (task, pause) in failures {
                now += pause;
                while let Some(task) = policy.due(now) {
                    prop_assert!(down[task as usize]);
                    down[task as usize] = false;
                    restarts += 1;
                }
                prop_assert!(policy.deadline().is_none_or(|deadline| deadline > now && deadline <= now + LONGEST_WAIT));
                let new = policy.failed(task, now).is_some();
                prop_assert_eq!(new, !down[task as usize]);
                told += u32::from(new);
                down[task as usize] = true;
            }
            now += LONGEST_WAIT;
            while policy.due(now).is_some() { restarts += 1; }
            prop_assert_eq!(told, restarts);
        }
    }
}
