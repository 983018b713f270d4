//! The board's serial port: bytes out through a channel, bytes in through a pipe.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use miette::{Diagnostic, Result, miette};

/// Why nothing more came.
#[derive(Debug, Clone, PartialEq, Eq, Diagnostic)]
pub enum SerialError {
    /// Not within the time allowed; the text is what came instead, at most its last 4 KiB.
    Timeout(String),
    /// The emulator ended; the text is as above.
    Ended(String),
}

impl fmt::Display for SerialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            Self::Timeout(text) => ("the board did not answer in time", text),
            Self::Ended(text) => ("the emulator ended", text),
        };
        match text.trim() {
            "" => write!(f, "{what}; it said nothing"),
            text => write!(f, "{what}; it said:\n{text}"),
        }
    }
}

impl std::error::Error for SerialError {}

/// Warnings of QEMU that say nothing: NICs without a network stand before the one in use (`nic` in board.toml).
const HARMLESS: [&str; 3] = ["is not connected to host network", "has no peer", "terminating on signal"];

/// True for a line of the emulator that a user should see.
#[must_use]
pub fn worth_showing(line: &str) -> bool {
    !line.trim().is_empty() && !HARMLESS.iter().any(|text| line.contains(text))
}

/// Both directions of the serial port.
#[derive(Debug)]
pub struct Serial {
    input: ChildStdin,
    output: Receiver<Vec<u8>>,
    // Received, and not yet taken by the reader.
    pending: Vec<u8>,
    complaints: Arc<Mutex<String>>,
}

impl Serial {
    /// Takes the pipes of the emulator.
    pub(super) fn attach(child: &mut Child) -> Result<Self> {
        let missing = || miette!("the emulator has no pipes");
        let input = child.stdin.take().ok_or_else(missing)?;
        let mut stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let complaints = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&complaints);
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok) {
                if worth_showing(&line) {
                    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                    sink.push_str(&line);
                    sink.push('\n');
                }
            }
        });
        Ok(Self { input, output, pending: Vec::new(), complaints })
    }

    /// Sends bytes to the board.
    ///
    /// # Errors
    /// If the emulator ended.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), SerialError> {
        let written = self.input.write_all(bytes).and_then(|()| self.input.flush());
        written.map_err(|_| SerialError::Ended(self.complaints()))
    }

    /// The next bytes from the board, as many as there are.
    ///
    /// # Errors
    /// If none came within `timeout`, or the emulator ended.
    pub fn read(&mut self, timeout: Duration) -> Result<Vec<u8>, SerialError> {
        if !self.pending.is_empty() {
            return Ok(std::mem::take(&mut self.pending));
        }
        match self.output.recv_timeout(timeout) {
            Ok(bytes) => Ok(bytes),
            Err(RecvTimeoutError::Timeout) => Err(SerialError::Timeout(String::new())),
            Err(RecvTimeoutError::Disconnected) => Err(SerialError::Ended(self.complaints())),
        }
    }

    /// For tests: reads until `pattern` came, and returns all up to its end; what follows is kept for the next call.
    ///
    /// # Errors
    /// If it did not come within `timeout`, or the emulator ended; with what came instead.
    #[cfg(test)]
    pub fn expect(&mut self, pattern: &str, timeout: Duration) -> Result<String, SerialError> {
        let deadline = std::time::Instant::now() + timeout;
        let mut seen = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            match self.read(left) {
                Ok(bytes) => {
                    let from = seen.len().saturating_sub(pattern.len());
                    seen.extend_from_slice(&bytes);
                    if let Some(at) = find(&seen[from..], pattern.as_bytes()) {
                        self.pending = seen.split_off(from + at + pattern.len());
                        return Ok(String::from_utf8_lossy(&seen).into_owned());
                    }
                }
                Err(SerialError::Timeout(_)) => return Err(SerialError::Timeout(tail(&seen))),
                Err(SerialError::Ended(said)) => {
                    return Err(SerialError::Ended(tail(&seen) + &said));
                }
            }
        }
    }

    /// What the emulator itself complained about, without the harmless warnings.
    pub(super) fn complaints(&self) -> String {
        self.complaints.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    if pattern.is_empty() {
        return Some(0);
    }
    text.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
fn tail(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[text.len().saturating_sub(4096)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn shell(script: &str) -> (Child, Serial) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let serial = Serial::attach(&mut child).expect("pipes");
        (child, serial)
    }

    #[test]
    fn expect_stops_behind_the_pattern() {
        let (mut child, mut serial) = shell("read line; printf 'one two%sthree' $line; read line");
        serial.write(b"-\n").expect("shell reads");
        assert_eq!(serial.expect("two-", Duration::from_secs(10)).expect("came"), "one two-");
        assert_eq!(serial.expect("three", Duration::from_secs(10)).expect("came"), "three");
        assert_eq!(serial.expect("four", Duration::from_millis(10)), Err(SerialError::Timeout(String::new())));
        child.kill().expect("still runs");
        child.wait().expect("ends");
    }

    #[test]
    fn the_end_is_told_with_what_was_said() {
        let (mut child, mut serial) = shell("printf 'panic'; echo 'hub 0 is not connected to host network' >&2");
        assert_eq!(serial.expect("prompt", Duration::from_secs(10)), Err(SerialError::Ended("panic".to_owned())));
        child.wait().expect("ends");
    }
}
