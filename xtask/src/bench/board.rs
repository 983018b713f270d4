//! The board as the benchmark sees it: commands on its console, and its counters.

use std::time::{Duration, Instant};

use miette::{Result, WrapErr, bail, miette};
use report::{Moment, Piece, Record, Splitter, StackCounters};

use crate::emulator::{Machine, SerialError};

/// What the console writes when it waits for a line.
const PROMPT: &str = "leasehold> ";

/// A session on the board's console.
#[derive(Debug)]
pub struct Board {
    /// The machine.
    pub machine: Machine,
    splitter: Box<Splitter>,
}

/// What a command wrote.
#[derive(Debug, Default)]
pub struct Said {
    /// Its text, lines ended by a newline alone.
    pub text: String,
    moment: Option<Moment>,
    tasks: Vec<(String, abi::stats::Counters)>,
    stack: Option<StackCounters>,
}

/// All counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// When.
    pub moment: Moment,
    /// By name.
    pub tasks: Vec<(String, abi::stats::Counters)>,
    /// Of the network stack.
    pub stack: StackCounters,
}

impl Board {
    /// Waits until the console of a machine that boots is there, and the board has an address. Returns that, too.
    ///
    /// # Errors
    /// If it does not come within `patience`; with what the board said instead.
    pub fn ready(machine: Machine, patience: Duration) -> Result<(Self, std::net::Ipv4Addr)> {
        let mut board = Self { machine, splitter: Box::new(Splitter::new()) };
        let deadline = Instant::now() + patience;
        board.until_prompt(deadline).wrap_err("the board did not boot as far as its console")?;
        loop {
            let said = board.command("ifconfig", Duration::from_secs(20))?.text;
            if let Some(address) =
                said.split("inet ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            {
                return Ok((board, address));
            }
            if Instant::now() >= deadline {
                bail!("the board got no network address; it says:\n{said}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Has the console execute a line, and returns what that wrote.
    ///
    /// # Errors
    /// If it does not end within `patience`; with what came instead.
    pub fn command(&mut self, line: &str, patience: Duration) -> Result<Said> {
        self.start(line)?;
        self.finish(line, patience)
    }

    /// Sends a line without waiting for what it does.
    ///
    /// # Errors
    /// If the emulator has ended.
    pub fn start(&mut self, line: &str) -> Result<()> {
        Ok(self.machine.serial().write(format!("{line}\r").as_bytes())?)
    }

    /// Waits for the end of what [`start`](Self::start) has begun.
    ///
    /// # Errors
    /// As [`command`](Self::command).
    pub fn finish(&mut self, line: &str, patience: Duration) -> Result<Said> {
        let mut said = self
            .until_prompt(Instant::now() + patience)
            .wrap_err_with(|| format!("the command `{line}` did not end"))?;
        // The line itself comes first.
        said.text = said.text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned());
        Ok(said)
    }

    fn until_prompt(&mut self, deadline: Instant) -> Result<Said> {
        let mut said = Said::default();
        let end = format!("\r{PROMPT}");
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let bytes = match self.machine.serial().read(left) {
                Ok(bytes) => bytes,
                Err(SerialError::Timeout(_)) => return Err(SerialError::Timeout(said.text).into()),
                Err(SerialError::Ended(complaint)) => return Err(SerialError::Ended(said.text + &complaint).into()),
            };
            self.splitter.feed(&bytes, |piece| said.add(&piece));
            if said.text.ends_with(&end) {
                said.text.truncate(said.text.len() - end.len());
                said.text = said.text.replace('\r', "");
                return Ok(said);
            }
        }
    }

    /// Reads all counters.
    ///
    /// # Errors
    /// If the board does not send them, or not all.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let said = self.command("counters", Duration::from_secs(20))?;
        let moment = said.moment.ok_or_else(|| miette!("the board sent no counters; it said:\n{}", said.text))?;
        if said.tasks.len() != usize::from(moment.tasks) {
            bail!("the board sent the counters of {} tasks out of {}", said.tasks.len(), moment.tasks);
        }
        let stack = said.stack.ok_or_else(|| miette!("the network stack of the board does not answer"))?;
        Ok(Snapshot { moment, tasks: said.tasks, stack })
    }
}

impl Said {
    fn add(&mut self, piece: &Piece<'_>) {
        match *piece {
            Piece::Text(text) => self.text.push_str(&String::from_utf8_lossy(text)),
            Piece::Record(Record::Counters(moment)) => self.moment = Some(moment),
            Piece::Record(Record::Task(task)) => self.tasks.push((task.name.to_owned(), task.counters)),
            Piece::Record(Record::Stack(stack)) => self.stack = Some(stack),
            Piece::Record(_) => {}
            Piece::Broken(_) => self.text.push('\u{fffd}'),
        }
    }
}
