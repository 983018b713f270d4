//! What the host can say to the suite, over the serial port.
//!
//! Commands are lines. The suite answers with records (see the crate `report`):
//!
//! | command | answer |
//! |---|---|
//! | (start of the task) | `Suite` |
//! | `list` | an `Outcome` that says `Skipped` for each test, then `End` |
//! | `run NAME` | `Start` and `Outcome` |
//! | `peer A.B.C.D PORT` | none: there the network tests find a TCP and UDP echo service |

#![no_std]
#![forbid(unsafe_code)]

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<'a> {
    /// Names all tests.
    List,
    /// Runs one.
    Run(&'a str),
    /// Where the host's echo services are.
    Peer([u8; 4], u16),
}

impl<'a> Command<'a> {
    /// Reads a line; `None` if it is no command.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let command = match words.next()? {
            "list" => Self::List,
            "run" => Self::Run(words.next()?),
            "peer" => {
                let mut parts = words.next()?.split('.').map(str::parse);
                let mut address = [0; 4];
                for byte in &mut address {
                    *byte = parts.next()?.ok()?;
                }
                if parts.next().is_some() {
                    return None;
                }
                Self::Peer(address, words.next()?.parse().ok()?)
            }
            _ => return None,
        };
        words.next().is_none().then_some(command)
    }
}

/// Collects a line from pieces of input. A line that is too long is dropped whole.
#[derive(Debug, Default)]
pub struct Line {
    text: heapless::Vec<u8, 120>,
    too_long: bool,
}

impl Line {
    /// An empty line.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: heapless::Vec::new(), too_long: false }
    }

    /// Takes a byte; passes the line to `done` when it is complete.
    pub fn push<T>(&mut self, byte: u8, done: impl FnOnce(&str) -> T) -> Option<T> {
        if byte != b'\n' && byte != b'\r' {
            self.too_long |= self.text.push(byte).is_err();
            return None;
        }
        let whole = !core::mem::take(&mut self.too_long);
        let text = core::mem::take(&mut self.text);
        let text = core::str::from_utf8(&text).ok().filter(|text| whole && !text.is_empty())?;
        Some(done(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_understood_and_others_refused() {
        assert_eq!(Command::parse("list"), Some(Command::List));
        assert_eq!(Command::parse(" run ipc.null "), Some(Command::Run("ipc.null")));
        assert_eq!(Command::parse("peer 10.0.2.2 4711"), Some(Command::Peer([10, 0, 2, 2], 4711)));
        for line in
            ["", "lists", "list all", "run", "run a b", "peer 10.0.2 1", "peer 10.0.2.2.2 1", "peer 10.0.2.256 1"]
        {
            assert_eq!(Command::parse(line), None, "{line}");
        }
        assert_eq!(Command::parse("peer 10.0.2.2 65536"), None);
    }

    fn lines(input: &[u8]) -> heapless::Vec<heapless::String<16>, 8> {
        let mut line = Line::new();
        input.iter().filter_map(|&byte| line.push(byte, |text| text.try_into().expect("short"))).collect()
    }

    #[test]
    fn lines_end_at_either_mark_and_empty_ones_do_not_count() {
        assert_eq!(lines(b"one\r\ntwo\n\n\rthree").as_slice(), ["one", "two"]);
        assert_eq!(lines(b"\xff\xff\nthen\n").as_slice(), ["then"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_dropped_whole() {
        let mut input = [b'x'; 204];
        input[200..].copy_from_slice(b"\nok\n");
        assert_eq!(lines(&input).as_slice(), ["ok"]);
    }
}
