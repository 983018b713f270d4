//! Reads what `cargo test` prints.

/// What was understood so far.
#[derive(Debug, Default)]
pub struct Reader {
    /// Program whose tests run: package and file, as cargo names them.
    program: String,
    /// Tests that have passed in it.
    passed: usize,
    /// Output of failed tests and of compilers.
    detail: Vec<String>,
}

/// What a line completed.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// A test failed.
    Failed(String),
    /// A program ended, after so many tests that passed.
    Passed(String, usize),
}

/// Lines kept for a complaint.
const DETAIL: usize = 60;

impl Reader {
    /// Takes a line.
    pub fn line(&mut self, line: &str) -> Option<Found> {
        let trimmed = line.trim();
        if let Some(program) = trimmed.strip_prefix("Running ").or_else(|| trimmed.strip_prefix("Doc-tests ")) {
            self.start(program, trimmed.starts_with("Doc-tests"));
            return None;
        }
        if let Some((name, result)) = trimmed.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
            match result {
                "ok" => self.passed += 1,
                "FAILED" => return Some(Found::Failed(format!("{}: {name}", self.program))),
                _ => {}
            }
            return None;
        }
        if trimmed.starts_with("test result: ") {
            let passed = std::mem::take(&mut self.passed);
            return (passed > 0).then(|| Found::Passed(self.program.clone(), passed));
        }
        if !trimmed.is_empty() && !trimmed.starts_with("Compiling") && !trimmed.starts_with("running ") {
            self.detail.push(line.trim_end().to_owned());
            if self.detail.len() > 20 * DETAIL {
                self.detail.drain(..10 * DETAIL);
            }
        }
        None
    }

    fn start(&mut self, program: &str, doc: bool) {
        // `unittests src/lib.rs (/…/target/debug/deps/abi-0123456789abcdef)`
        let file = program.rsplit_once('(').map_or(program, |(_, file)| file.trim_end_matches(')'));
        let name = file.rsplit('/').next().unwrap_or(file);
        let name = name.rsplit_once('-').map_or(name, |(name, hash)| if hash.len() == 16 { name } else { file });
        self.program = if doc { format!("{name} (documentation)") } else { name.to_owned() };
    }

    /// The last lines that were no results.
    #[must_use]
    pub fn detail(&self) -> String {
        self.detail[self.detail.len().saturating_sub(DETAIL)..].join("\n")
    }

    /// What the output says of one failed test: the section that libtest prints with its name.
    #[must_use]
    pub fn section(&self, name: &str) -> String {
        let name = name.split_once(": ").map_or(name, |(_, name)| name);
        let head = format!("---- {name} stdout ----");
        let lines = self.detail.iter().skip_while(|line| line.trim() != head).skip(1);
        let lines = lines.take_while(|line| !line.starts_with("---- ") && line.trim() != "failures:");
        lines.take(DETAIL).cloned().collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
   Compiling abi v0.1.0
     Running unittests src/lib.rs (target/debug/deps/abi-0123456789abcdef)

running 3 tests
test code::tests::codes_round_trip ... ok
test config::tests::view_reads ... FAILED
test slow ... ignored

failures:

---- config::tests::view_reads stdout ----
thread 'config::tests::view_reads' panicked at lib/abi/src/config.rs:1:1:
left is not right

failures:
    config::tests::view_reads

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests frame

test lib/frame/src/rx.rs - rx::RxFrame (line 14) - compile fail ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";

    #[test]
    fn results_are_counted_by_program() {
        let mut reader = Reader::default();
        let found: Vec<Found> = OUTPUT.lines().filter_map(|line| reader.line(line)).collect();
        let failed = "abi: config::tests::view_reads".to_owned();
        assert_eq!(
            found,
            [
                Found::Failed(failed.clone()),
                Found::Passed("abi".to_owned(), 1),
                Found::Passed("frame (documentation)".to_owned(), 1)
            ]
        );
        let section = reader.section(&failed);
        assert!(section.ends_with("left is not right"), "{section}");
        assert!(reader.detail().contains("panicked"));
    }

    #[test]
    fn names_with_dashes_stay_whole() {
        let mut reader = Reader::default();
        reader.line("     Running tests/tcp.rs (target/debug/deps/mac-gem-0123456789abcdef)");
        assert_eq!(reader.line("test a ... FAILED"), Some(Found::Failed("mac-gem: a".to_owned())));
    }
}
