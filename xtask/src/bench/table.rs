//! The results: a table for people, a record for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cost::Cost;

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Measurement {
    /// Short name, for programs.
    pub name: &'static str,
    /// What was done, for people.
    pub what: String,
    /// Of what the price is told.
    pub unit: &'static str,
    /// How many of them there were.
    pub units: u64,
    /// What all of them took.
    pub cost: Cost,
    /// Instructions by task, those of reading the counters included.
    pub by_task: BTreeMap<String, u64>,
    /// Instructions for one, on Linux 6.1 on the same emulated board.
    pub linux: Option<f64>,
    /// Instructions for one that are not to be exceeded.
    pub target: Option<f64>,
    /// Seconds on this host. Says how fast the emulator is, nothing of the board.
    pub wall: f64,
    /// Bytes moved, for throughput.
    pub bytes: u64,
    /// Why it failed.
    pub failure: Option<String>,
}

impl Measurement {
    /// Instructions for one unit.
    #[must_use]
    pub fn price(&self) -> f64 {
        self.cost.instructions as f64 / self.units.max(1) as f64
    }

    /// True if it worked and is within its target.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.failure.is_none() && self.target.is_none_or(|target| self.price() <= target)
    }
}

/// A transfer whose price is not told, only that it worked.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What was done.
    pub what: String,
    /// Seconds on this host.
    pub wall: f64,
    /// Bytes moved.
    pub bytes: u64,
    /// Why it failed.
    pub failure: Option<String>,
}

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Results {
    /// The board.
    pub board: String,
    /// How the instructions were counted.
    pub clock: &'static str,
    /// What one reading of the counters takes; it is subtracted from each measurement.
    pub reading: Cost,
    /// The measurements.
    pub measurements: Vec<Measurement>,
    /// The other transfers.
    pub checks: Vec<Check>,
}

/// Three digits or so.
fn number(value: f64) -> String {
    match value {
        value if value < 100.0 => format!("{value:.2}"),
        value => grouped(value.round() as u64),
    }
}

/// With commas between thousands.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Results {
    /// True if every transfer worked, with the right data.
    #[must_use]
    pub fn all_worked(&self) -> bool {
        self.measurements.iter().all(|one| one.failure.is_none())
            && self.checks.iter().all(|check| check.failure.is_none())
    }

    /// The tables.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!(
            "\nInstructions, all that the CPU executed: kernel, driver, stack and benchmark ({})\n\n",
            self.clock
        );
        text += &format!("{:44} {:>10} {:>10} {:>7} {:>10}\n", "", "Leasehold", "Linux 6.1", "ratio", "target");
        for one in &self.measurements {
            let optional = |value: Option<f64>| value.map_or(String::new(), number);
            let ratio = one.linux.map_or(String::new(), |linux| format!("{:.2}", one.price() / linux));
            let verdict = match &one.failure {
                Some(failure) => format!("  FAILED: {failure}"),
                None if one.target.is_none() => String::new(),
                None if one.is_within() => "  met".to_owned(),
                None => "  missed".to_owned(),
            };
            let price = if one.failure.is_some() { "-".to_owned() } else { number(one.price()) };
            text += &format!(
                "{:44} {price:>10} {:>10} {ratio:>7} {:>10}{verdict}\n",
                one.what,
                optional(one.linux),
                optional(one.target)
            );
        }
        text + &self.tasks() + &self.frames() + &self.smoke()
    }

    /// Who executed the instructions.
    fn tasks(&self) -> String {
        let mut text = String::from("\nInstructions by task, system calls included (%)\n\n");
        for one in self.measurements.iter().filter(|one| one.failure.is_none() && !one.by_task.is_empty()) {
            let all: u64 = one.by_task.values().sum();
            let mut shares: Vec<_> =
                one.by_task.iter().map(|(name, count)| (*count as f64 * 100.0 / all as f64, name)).collect();
            shares.sort_by(|one, other| other.0.total_cmp(&one.0));
            text += &format!("{:44}", one.what);
            shares
                .iter()
                .filter(|(share, _)| *share >= 0.5)
                .for_each(|(share, name)| text += &format!(" {name} {share:.0} "));
            text.push('\n');
        }
        text
    }

    /// What a frame costs beside instructions.
    fn frames(&self) -> String {
        let mut text = String::from(
            "\nPer frame on the wire (payload copied in bytes; frames are mapped for the stack, never for the driver)\n\n",
        );
        let columns =
            ["frames", "switches", "interrupts", "messages", "calls", "handed over", "copy driver", "copy stack"];
        text += &format!("{:44}", "");
        columns.iter().for_each(|column| text += &format!(" {column:>11}"));
        text.push('\n');
        for one in self.measurements.iter().filter(|one| one.failure.is_none() && one.cost.wire_frames() > 0) {
            let cost = &one.cost;
            let frames = cost.wire_frames();
            let per = |count: u64| count as f64 / frames as f64;
            text += &format!("{:44} {:>11}", one.what, grouped(frames));
            for count in [cost.switches, cost.interrupts, cost.messages, cost.calls, cost.frames] {
                text += &format!(" {:>11.3}", per(count));
            }
            // Nobody counts what a driver copies that has frames mapped.
            let driver = if cost.is_unmapped_in_driver() { "0.0" } else { "?" };
            text += &format!(" {driver:>11} {:>11.1}\n", per(cost.rx_copied + cost.tx_copied));
        }
        text
    }

    /// How fast it went on this host.
    fn smoke(&self) -> String {
        let mut text = String::from(
            "\nSmoke test: wall-clock time of the emulator on this host, which says nothing of a board\n\n",
        );
        let measured = self
            .measurements
            .iter()
            .filter(|one| one.bytes > 0)
            .map(|one| (&one.what, one.wall, one.bytes, &one.failure));
        let checked = self.checks.iter().map(|check| (&check.what, check.wall, check.bytes, &check.failure));
        for (what, wall, bytes, failure) in measured.chain(checked) {
            let said = match failure {
                Some(failure) => format!("FAILED: {failure}"),
                None if bytes == 0 => "ok".to_owned(),
                None => format!("{:.1} MB/s", bytes as f64 / wall.max(1e-9) / 1e6),
            };
            text += &format!("{what:44} {wall:>8.2} s   {said}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measurement(instructions: u64, units: u64) -> Measurement {
        Measurement {
            name: "tcp-receive",
            what: "TCP received, per byte".to_owned(),
            unit: "byte",
            units,
            cost: Cost { instructions, rx_frames: 10, tx_frames: 10, switches: 5, rx_copied: 2000, ..Cost::default() },
            by_task: BTreeMap::from([("net".to_owned(), 9 * instructions / 10), ("mac".to_owned(), instructions / 10)]),
            linux: Some(3.2),
            target: Some(1.6),
            wall: 2.0,
            bytes: units,
            failure: None,
        }
    }

    fn results(measurements: Vec<Measurement>) -> Results {
        Results {
            board: "zcu102".to_owned(),
            clock: "exact",
            reading: Cost::default(),
            measurements,
            checks: Vec::new(),
        }
    }

    #[test]
    fn prices_ratios_and_targets_are_shown() {
        let results = results(vec![measurement(1_500_000, 1_000_000), measurement(2_000_000, 1_000_000)]);
        let text = results.text();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("TCP received"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .collect();
        assert_eq!(lines[0][4..], ["1.50", "3.20", "0.47", "1.60", "met"]);
        assert_eq!(lines[1][4..], ["2.00", "3.20", "0.62", "1.60", "missed"]);
        assert_eq!(lines[2][4..], ["net", "90", "mac", "10"]);
        assert_eq!(lines[4][4..], ["20", "0.250", "0.000", "0.000", "0.000", "0.000", "0.0", "100.0"]);
        assert!(text.contains("0.5 MB/s"), "{text}");
        assert!(results.all_worked());
    }

    #[test]
    fn a_failure_is_shown_and_counts() {
        let failed = Measurement { failure: Some("no answer".to_owned()), ..measurement(1, 1) };
        let results = results(vec![failed]);
        assert!(results.text().contains("FAILED: no answer"));
        assert!(!results.all_worked());
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(number(3.204), "3.20");
        assert_eq!(number(16_100.4), "16,100");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(999), "999");
    }
}
