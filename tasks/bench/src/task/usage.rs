//! What a piece of work takes of the machine.

use abi::config::Item;
use bench_api::Usage;
use userlib::{config, kernel, time};

/// The counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    started: u64,
    before: Usage,
}

impl Meter {
    /// Starts to count.
    pub fn start() -> Self {
        Self { started: time::micros(), before: now() }
    }

    /// Microseconds since the start.
    pub fn micros(&self) -> u64 {
        time::micros() - self.started
    }

    /// What was used since the start.
    pub fn usage(&self) -> Usage {
        let (now, before) = (now(), self.before);
        Usage {
            own: now.own - before.own,
            system: now.system - before.system,
            switches: now.switches - before.switches,
            other_switches: now.other_switches - before.other_switches,
        }
    }
}

/// Since boot. Times in microseconds.
fn now() -> Usage {
    let own = config::view().find(|item| match item {
        Item::Name(name) => Some(name),
        _ => None,
    });
    let mut usage = Usage::default();
    for task in 0.. {
        let Some(name) = config::task_name(task) else { break };
        let Ok(counters) = kernel::counters(task) else { break };
        let micros = time::to_micros(counters.ticks);
        if Some(name) == own {
            usage.own += micros;
            usage.switches += counters.switches;
        } else if name != "idle" {
            usage.system += micros;
            usage.other_switches += counters.switches;
        }
    }
    usage
}
