//! The score.

use std::fmt::Write;
use std::time::Duration;

/// Counts results, and prints each as it comes.
#[derive(Debug)]
pub struct Tally {
    filter: Option<String>,
    passed: usize,
    failed: Vec<String>,
}

impl Tally {
    /// Nothing has run. With a filter, only tests whose name contains it are wanted.
    #[must_use]
    pub fn new(filter: Option<&str>) -> Self {
        Self { filter: filter.map(str::to_owned), passed: 0, failed: Vec::new() }
    }

    /// Whether a test is to be run.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
    }

    /// Whether a test whose name begins like this may be wanted. The beginning ends in `: `.
    #[must_use]
    pub fn wants_some(&self, beginning: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| match filter.split_once(':') {
            Some((first, _)) => beginning.trim_end_matches(": ").ends_with(first),
            None => true,
        })
    }

    /// The filter.
    #[must_use]
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// A test has passed.
    pub fn pass(&mut self, name: &str, took: Duration) {
        self.passed += 1;
        println!("{name} ... ok ({})", shown(took));
    }

    /// Several tests have passed, of which nobody needs to see the names.
    pub fn pass_many(&mut self, what: &str, count: usize) {
        self.passed += count;
        println!("{what} ... {count} ok");
    }

    /// A test has failed.
    pub fn fail(&mut self, name: &str, complaint: &str) {
        println!("{name} ... FAILED");
        for line in complaint.trim().lines() {
            println!("    {line}");
        }
        self.failed.push(name.to_owned());
    }

    /// A test has passed or failed.
    pub fn book(&mut self, name: &str, took: Duration, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.pass(name, took),
            Err(complaint) => self.fail(name, &complaint),
        }
    }

    /// Prints the score; true if nothing failed.
    #[must_use]
    pub fn finish(&self) -> bool {
        print!("{}", self.score());
        self.failed.is_empty() && self.passed > 0
    }

    fn score(&self) -> String {
        let mut text = String::new();
        if !self.failed.is_empty() {
            text += "\nFailed:\n";
            for name in &self.failed {
                let _ = writeln!(text, "    {name}");
            }
        }
        if self.passed == 0 && self.failed.is_empty() {
            let filter = self.filter.as_deref().unwrap_or_default();
            let _ = writeln!(text, "\nNo test has a name with `{filter}`; leave out --filter to see all names.");
        }
        let _ = writeln!(text, "\n{} passed, {} failed", self.passed, self.failed.len());
        text
    }
}

fn shown(took: Duration) -> String {
    match took.as_millis() {
        0 => format!("{} us", took.as_micros()),
        millis @ 1..10_000 => format!("{millis} ms"),
        _ => format!("{} s", took.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_score() {
        let mut tally = Tally::new(None);
        tally.pass("a", Duration::from_millis(3));
        tally.pass_many("b", 4);
        assert_eq!(tally.score(), "\n5 passed, 0 failed\n");
        assert!(tally.finish());
        tally.fail("c", "because");
        assert_eq!(tally.score(), "\nFailed:\n    c\n\n5 passed, 1 failed\n");
        assert!(!tally.finish());
    }

    #[test]
    fn a_filter_that_fits_nothing_is_no_success() {
        let tally = Tally::new(Some("quota"));
        assert!(tally.wants("frames.quota") && !tally.wants("frames"));
        assert!(tally.wants_some("host: ") && tally.wants_some("board: "));
        assert!(!tally.finish());
        assert!(tally.score().ends_with("\n0 passed, 0 failed\n"));
    }

    #[test]
    fn a_filter_may_name_where_the_tests_are() {
        let tally = Tally::new(Some("board: fra"));
        assert!(tally.wants_some("board: ") && !tally.wants_some("host: "));
        assert!(tally.wants("board: frames.quota") && !tally.wants("host: frame"));
    }

    #[test]
    fn times_are_short() {
        assert_eq!(shown(Duration::from_micros(12)), "12 us");
        assert_eq!(shown(Duration::from_micros(9_999_999)), "9999 ms");
        assert_eq!(shown(Duration::from_secs(75)), "75 s");
    }
}
