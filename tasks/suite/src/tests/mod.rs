//! The tests, by subject.

mod accounts;
mod borrows;
mod calls;
mod devices;
mod faults;
mod frames;
mod hostile;
mod network;
mod notifications;
mod registers;
mod restarts;
mod schedule;
mod services;
mod timers;

use crate::check::Outcome;
use crate::suite::Suite;

/// A test.
pub struct Test {
    /// Subject and what is tested: `subject.case`.
    pub name: &'static str,
    /// Tasks that it restarts on purpose. All others are checked to have come through unhurt.
    pub restarts: &'static [&'static str],
    /// The test.
    pub run: fn(&mut Suite) -> Outcome,
}

impl Test {
    /// A test that restarts nobody but victims.
    pub const fn new(name: &'static str, run: fn(&mut Suite) -> Outcome) -> Self {
        Self { name, restarts: &[], run }
    }

    /// A test that restarts these tasks.
    pub const fn restarting(
        restarts: &'static [&'static str],
        name: &'static str,
        run: fn(&mut Suite) -> Outcome,
    ) -> Self {
        Self { name, restarts, run }
    }
}

/// All tests, in the order in which they should run.
pub fn all() -> impl Iterator<Item = &'static Test> {
    [
        calls::TESTS,
        schedule::TESTS,
        notifications::TESTS,
        timers::TESTS,
        borrows::TESTS,
        faults::TESTS,
        registers::TESTS,
        frames::TESTS,
        accounts::TESTS,
        restarts::TESTS,
        network::TESTS,
        services::TESTS,
        devices::TESTS,
        hostile::TESTS,
    ]
    .into_iter()
    .flatten()
}
