//! A session with the suite on a board: commands out, records in.

use std::time::{Duration, Instant};

use report::{Piece, Record, Splitter};

use crate::emulator::{Machine, SerialError};

/// What the board said, in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The suite has started.
    Ready,
    /// A test has begun.
    Start(String),
    /// A test has ended.
    Outcome {
        /// Its name.
        name: String,
        /// What it did, in its words.
        result: Outcome,
        /// Microseconds of the board.
        micros: u64,
    },
    /// A list is complete.
    End,
    /// A remark.
    Log(String),
    /// The kernel has stopped for good.
    Dead(String),
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// With this complaint.
    Failed(String),
    /// Not run.
    Skipped,
}

/// Takes records and text apart.
pub struct Listener {
    splitter: Box<Splitter>,
    /// Text between records.
    text: String,
    heard: std::collections::VecDeque<Heard>,
}

/// Words of a kernel that goes no further.
const LAST_WORDS: [&str; 3] = ["kernel: panicked", "kernel: exception in the kernel", "kernel: cannot start"];

impl Listener {
    /// Has heard nothing.
    pub fn new() -> Self {
        Self { splitter: Box::default(), text: String::new(), heard: Default::default() }
    }

    /// Takes bytes from the board.
    pub fn feed(&mut self, bytes: &[u8]) {
        let (text, heard) = (&mut self.text, &mut self.heard);
        self.splitter.feed(bytes, |piece| match piece {
            Piece::Text(part) => text.push_str(&String::from_utf8_lossy(part)),
            // Of a record that was torn when the driver of the serial port was restarted.
            Piece::Broken(_) => {}
            Piece::Record(record) => heard.extend(understand(record)),
        });
        // The line must be complete to be of use.
        let dead = LAST_WORDS.iter().find_map(|words| self.text.find(words));
        if let Some(at) = dead
            && self.text[at..].trim_end().contains('\n')
        {
            let words = self.text.split_off(at);
            self.heard.push_back(Heard::Dead(words.trim().to_owned()));
        }
    }

    /// The next of what was heard.
    pub fn next(&mut self) -> Option<Heard> {
        self.heard.pop_front()
    }

    /// The last text that was no record.
    pub fn text(&self) -> &str {
        let from = self.text.len().saturating_sub(2000);
        self.text.get(from..).unwrap_or(&self.text).trim()
    }
}

fn understand(record: Record<'_>) -> Option<Heard> {
    Some(match record {
        Record::Suite { .. } => Heard::Ready,
        Record::Start { name } => Heard::Start(name.to_owned()),
        Record::Outcome { name, outcome, micros } => Heard::Outcome {
            name: name.to_owned(),
            result: match outcome {
                report::Outcome::Passed => Outcome::Passed,
                report::Outcome::Failed(complaint) => Outcome::Failed(complaint.to_owned()),
                report::Outcome::Skipped(_) => Outcome::Skipped,
            },
            micros,
        },
        Record::End { .. } => Heard::End,
        Record::Log(text) => Heard::Log(text.to_owned()),
        _ => return None,
    })
}

/// A booted board with the suite on it.
pub struct Session {
    /// The machine.
    pub machine: Machine,
    listener: Listener,
}

impl Session {
    /// Waits for the suite to start.
    ///
    /// # Errors
    /// What the board said instead.
    pub fn start(machine: Machine, patience: Duration) -> Result<Self, String> {
        let mut session = Self { machine, listener: Listener::new() };
        let deadline = Instant::now() + patience;
        loop {
            match session.hear(deadline) {
                Ok(Heard::Ready) => return Ok(session),
                Ok(Heard::Dead(words)) => return Err(words),
                Ok(_) => {}
                Err(complaint) => return Err(format!("the suite did not start: {complaint}")),
            }
        }
    }

    /// Waits for the next record.
    ///
    /// # Errors
    /// If none came by `deadline`, or the emulator ended; with the text that came.
    pub fn hear(&mut self, deadline: Instant) -> Result<Heard, String> {
        loop {
            if let Some(heard) = self.listener.next() {
                return Ok(heard);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.machine.serial().read(left) {
                Ok(bytes) => self.listener.feed(&bytes),
                Err(SerialError::Timeout(_)) => return Err(format!("no answer in time\n{}", self.listener.text())),
                Err(SerialError::Ended(complaint)) => {
                    return Err(format!("the emulator ended\n{}\n{complaint}", self.listener.text()));
                }
            }
        }
    }

    /// Sends a command.
    ///
    /// # Errors
    /// If the emulator ended.
    pub fn say(&mut self, command: &str) -> Result<(), String> {
        self.machine.serial().write(format!("{command}\n").as_bytes()).map_err(|error| error.to_string())
    }

    /// Names of all tests.
    ///
    /// # Errors
    /// If the board does not tell them.
    pub fn list(&mut self, patience: Duration) -> Result<Vec<String>, String> {
        self.say("list")?;
        let deadline = Instant::now() + patience;
        let mut names = Vec::new();
        loop {
            match self.hear(deadline)? {
                Heard::Outcome { name, result: Outcome::Skipped, .. } => names.push(name),
                Heard::End => return Ok(names),
                Heard::Dead(words) => return Err(words),
                _ => {}
            }
        }
    }

    /// Runs a test, and meanwhile does what this host has to do for it; microseconds that it took on the board.
    ///
    /// # Errors
    /// Its complaint; or that it hung, or brought the suite, the kernel or the emulator down.
    pub fn run(
        &mut self,
        test: &str,
        patience: Duration,
        meanwhile: impl FnOnce(&mut Machine) -> miette::Result<()>,
    ) -> Result<u64, String> {
        self.say(&format!("run {test}"))?;
        let deadline = Instant::now() + patience;
        meanwhile(&mut self.machine).map_err(|error| format!("{error:?}"))?;
        let mut remarks = String::new();
        loop {
            match self.hear(deadline) {
                Ok(Heard::Outcome { name, result, micros }) if name == test => {
                    return match result {
                        Outcome::Passed => Ok(micros),
                        Outcome::Failed(complaint) => Err(complaint + &remarks),
                        Outcome::Skipped => Err("the board did not run it".to_owned()),
                    };
                }
                Ok(Heard::Log(text)) => remarks += &format!("\n{text}"),
                Ok(Heard::Ready) => return Err(format!("the suite itself started anew in this test{remarks}")),
                Ok(Heard::Dead(words)) => return Err(words),
                Ok(_) => {}
                Err(complaint) if Instant::now() >= deadline => {
                    return Err(format!("hung: no result in {} s; {complaint}{remarks}", patience.as_secs()));
                }
                Err(complaint) => return Err(complaint + &remarks),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(record: &Record<'_>) -> Vec<u8> {
        let mut buffer = [0; 512];
        report::encode(record, &mut buffer).expect("fits").to_vec()
    }

    fn hear(bytes: &[u8], pieces: usize) -> (Vec<Heard>, Listener) {
        let mut listener = Listener::new();
        bytes.chunks(pieces).for_each(|chunk| listener.feed(chunk));
        (std::iter::from_fn(|| listener.next()).collect(), listener)
    }

    #[test]
    fn records_are_heard_between_text_in_pieces_of_any_size() {
        let outcome = |outcome| Record::Outcome { name: "calls.null", outcome, micros: 12 };
        let bytes = [
            b"boot\r\n".as_slice(),
            &frame(&Record::Suite { tests: 2 }),
            b"    ",
            &frame(&Record::Start { name: "calls.null" }),
            &frame(&outcome(report::Outcome::Failed("why"))),
            &frame(&outcome(report::Outcome::Passed)),
            &frame(&Record::End { passed: 0, failed: 0, skipped: 2 }),
        ]
        .concat();
        for pieces in 1..50 {
            let (heard, listener) = hear(&bytes, pieces);
            let name = || "calls.null".to_owned();
            assert_eq!(
                heard,
                [
                    Heard::Ready,
                    Heard::Start(name()),
                    Heard::Outcome { name: name(), result: Outcome::Failed("why".to_owned()), micros: 12 },
                    Heard::Outcome { name: name(), result: Outcome::Passed, micros: 12 },
                    Heard::End
                ]
            );
            assert_eq!(listener.text(), "boot");
        }
    }

    #[test]
    fn the_last_words_of_a_kernel_end_the_wait() {
        let bytes = b"hello\r\nkernel: the supervisor faulted and starts anew\r\n\r\nkernel: panicked at kernel/src/lib.rs:1:2:\r\nindex\r\n";
        for pieces in [1, 7, 500] {
            let (heard, listener) = hear(bytes, pieces);
            let [Heard::Dead(words)] = &heard[..] else { panic!("{heard:?}") };
            assert!(words.starts_with("kernel: panicked at kernel/src/lib.rs"), "{words}");
            assert!(listener.text().contains("starts anew"));
        }
    }

    #[test]
    fn a_torn_record_spoils_nothing_else() {
        let whole = frame(&Record::Start { name: "a" });
        let bytes = [&whole[..4], &whole, &frame(&Record::End { passed: 0, failed: 0, skipped: 0 })].concat();
        assert_eq!(hear(&bytes, 3).0, [Heard::Start("a".to_owned()), Heard::End]);
    }
}
