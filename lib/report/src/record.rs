//! What a record can say.

use abi::stats::Counters;
use serde::{Deserialize, Serialize};

/// One record. New variants go to the end, so that older records keep their form.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Record<'a> {
    /// A run of self-tests begins.
    Suite {
        /// How many will run.
        tests: u16,
    },
    /// A self-test begins. One that never ends has hung.
    Start {
        /// Its name.
        name: &'a str,
    },
    /// A self-test has ended.
    Outcome {
        /// Its name.
        name: &'a str,
        /// How.
        #[serde(borrow)]
        outcome: Outcome<'a>,
        /// Time that it took, in microseconds of the board.
        micros: u64,
    },
    /// The run has ended.
    End {
        /// Tests that passed.
        passed: u16,
        /// Tests that failed.
        failed: u16,
        /// Tests that were left out.
        skipped: u16,
    },
    /// The counters at one moment follow, a record for each task. Differences between two such series say what the time between
    /// has cost.
    Counters(Moment),
    /// The counters of one task.
    #[serde(borrow)]
    Task(TaskCounters<'a>),
    /// What the network stack has counted by then.
    Stack(StackCounters),
    /// A measured value.
    #[serde(borrow)]
    Figure(Figure<'a>),
    /// A remark for whoever reads the log.
    Log(&'a str),
}

/// How a self-test ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outcome<'a> {
    /// As it should.
    Passed,
    /// With this complaint.
    Failed(&'a str),
    /// Not run, for this reason.
    Skipped(&'a str),
}

/// When counters were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Moment {
    /// Time since boot in ticks.
    pub ticks: u64,
    /// Ticks per second.
    pub tick_rate: u64,
    /// Instructions that the CPU has executed, of all tasks and the kernel, modulo 2^32.
    pub instructions: u32,
    /// Records of tasks that follow.
    pub tasks: u8,
}

/// Counters of one task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskCounters<'a> {
    /// Name in `app.toml`.
    pub name: &'a str,
    /// Since boot.
    pub counters: Counters,
}

/// What the network stack counts, from its start on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StackCounters {
    /// Frames received.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Payload bytes copied out of frames.
    pub rx_copied: u64,
    /// Payload bytes copied into frames.
    pub tx_copied: u64,
    /// Calls to the MAC driver.
    pub exchanges: u64,
    /// Echo requests answered.
    pub echoes: u64,
    /// UDP datagrams sent.
    pub udp_sent: u64,
    /// Packets dropped, for whatever reason.
    pub dropped: u64,
}

/// A measured value.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Figure<'a> {
    /// What was measured.
    pub name: &'a str,
    /// How many times it was done.
    pub rounds: u64,
    /// Instructions that all of them took together.
    pub instructions: u64,
    /// Time that they took, in microseconds of the board.
    pub micros: u64,
}
