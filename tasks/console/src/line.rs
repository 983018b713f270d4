//! Editing of a line, and its history.
//!
//! Works on any terminal that understands backspace and "erase to the end of the line": the cursor moves left by backspaces and right
//! by writing what is there. Keys are those of Emacs and of VT100 arrows.

use core::fmt::{self, Write};

use heapless::{Deque, String, Vec};

/// Longest line in bytes.
pub const LINE: usize = 120;
/// Lines that are remembered.
const HISTORY: usize = 12;

const BELL: char = '\x07';
const ERASE_TO_END: &str = "\x1b[K";

/// What a byte completed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// A line, without what ended it.
    Line(String<LINE>),
    /// Ctrl-C: the line was given up, or what runs is to stop.
    Interrupt,
}

/// Where in an escape sequence the input stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Escape {
    None,
    Started,
    // With the number so far.
    Bracket(u8),
}

/// The line that is being edited.
#[derive(Debug)]
pub struct Editor {
    prompt: &'static str,
    words: &'static [&'static str],
    line: Vec<u8, LINE>,
    cursor: usize,
    history: Deque<String<LINE>, HISTORY>,
    // Which line of the history is shown: 0 for none, 1 for the latest.
    shown: usize,
    escape: Escape,
    after_return: bool,
}

impl Editor {
    /// An empty line. `words` are those that Tab completes at its start.
    #[must_use]
    pub const fn new(prompt: &'static str, words: &'static [&'static str]) -> Self {
        Self {
            prompt,
            words,
            line: Vec::new(),
            cursor: 0,
            history: Deque::new(),
            shown: 0,
            escape: Escape::None,
            after_return: false,
        }
    }

    /// Shows prompt and line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn show(&mut self, out: &mut impl Write) -> fmt::Result {
        out.write_char('\r')?;
        out.write_str(self.prompt)?;
        let shown = core::mem::take(&mut self.cursor);
        self.redraw(out)?;
        self.move_to(shown, out)
    }

    /// Takes a byte from the terminal.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn take(&mut self, byte: u8, out: &mut impl Write) -> Result<Option<Input>, fmt::Error> {
        // Return may come as CR, LF or both.
        if byte == b'\n' && core::mem::take(&mut self.after_return) {
            return Ok(None);
        }
        self.after_return = byte == b'\r';
        match self.escape {
            Escape::None => {}
            Escape::Started => {
                self.escape = if byte == b'[' || byte == b'O' { Escape::Bracket(0) } else { Escape::None };
                return Ok(None);
            }
            Escape::Bracket(number) => return self.bracket(number, byte, out).map(|()| None),
        }
        match byte {
            b'\r' | b'\n' => return self.finish(out).map(Some),
            0x03 => {
                out.write_str("^C\r\n")?;
                self.clear();
                return Ok(Some(Input::Interrupt));
            }
            0x01 => self.move_to(0, out)?,
            0x02 => self.move_to(self.cursor.saturating_sub(1), out)?,
            0x04 => self.remove(self.cursor, self.cursor + 1, out)?,
            0x05 => self.move_to(self.line.len(), out)?,
            0x06 => self.move_to(self.cursor + 1, out)?,
            0x08 | 0x7f => self.remove(self.cursor.saturating_sub(1), self.cursor, out)?,
            b'\t' => self.complete(out)?,
            0x0b => self.remove(self.cursor, self.line.len(), out)?,
            0x0c => {
                out.write_str("\x1b[H\x1b[2J")?;
                self.show(out)?;
            }
            0x0e => self.recall(self.shown.saturating_sub(1), out)?,
            0x10 => self.recall(self.shown + 1, out)?,
            0x15 => self.remove(0, self.cursor, out)?,
            0x17 => self.remove(self.word_start(), self.cursor, out)?,
            0x1b => self.escape = Escape::Started,
            b' '..=b'~' => self.insert(byte, out)?,
            _ => {}
        }
        Ok(None)
    }

    fn bracket(&mut self, number: u8, byte: u8, out: &mut impl Write) -> fmt::Result {
        self.escape = Escape::None;
        match (byte, number) {
            (b'0'..=b'9', _) => self.escape = Escape::Bracket(number.saturating_mul(10).saturating_add(byte - b'0')),
            // Modifiers, as in ESC [ 1 ; 5 C, change nothing for us.
            (b';', _) => self.escape = Escape::Bracket(0),
            (b'A', _) => self.recall(self.shown + 1, out)?,
            (b'B', _) => self.recall(self.shown.saturating_sub(1), out)?,
            (b'C', _) => self.move_to(self.cursor + 1, out)?,
            (b'D', _) => self.move_to(self.cursor.saturating_sub(1), out)?,
            (b'H', _) | (b'~', 1 | 7) => self.move_to(0, out)?,
            (b'F', _) | (b'~', 4 | 8) => self.move_to(self.line.len(), out)?,
            (b'~', 3) => self.remove(self.cursor, self.cursor + 1, out)?,
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut impl Write) -> Result<Input, fmt::Error> {
        out.write_str("\r\n")?;
        let line = String::from_utf8(self.line.clone()).unwrap_or_default();
        if !line.trim().is_empty() && self.history.front() != Some(&line) {
            if self.history.is_full() {
                self.history.pop_back();
            }
            let _ = self.history.push_front(line.clone());
        }
        self.clear();
        Ok(Input::Line(line))
    }

    fn clear(&mut self) {
        self.line.clear();
        self.cursor = 0;
        self.shown = 0;
    }

    fn insert(&mut self, byte: u8, out: &mut impl Write) -> fmt::Result {
        if self.line.insert(self.cursor, byte).is_err() {
            return out.write_char(BELL);
        }
        let target = self.cursor + 1;
        self.redraw(out)?;
        self.move_to(target, out)
    }

    fn remove(&mut self, from: usize, to: usize, out: &mut impl Write) -> fmt::Result {
        let to = to.min(self.line.len());
        if from >= to {
            return Ok(());
        }
        self.move_to(from, out)?;
        self.line.copy_within(to.., from);
        self.line.truncate(self.line.len() - (to - from));
        self.redraw(out)?;
        out.write_str(ERASE_TO_END)?;
        self.move_to(from, out)
    }

    /// Writes the line from the cursor on; the cursor is at its end then.
    fn redraw(&mut self, out: &mut impl Write) -> fmt::Result {
        out.write_str(str::from_utf8(&self.line[self.cursor..]).unwrap_or_default())?;
        self.cursor = self.line.len();
        Ok(())
    }

    fn move_to(&mut self, target: usize, out: &mut impl Write) -> fmt::Result {
        let target = target.min(self.line.len());
        while self.cursor > target {
            out.write_char('\x08')?;
            self.cursor -= 1;
        }
        if self.cursor < target {
            out.write_str(str::from_utf8(&self.line[self.cursor..target]).unwrap_or_default())?;
            self.cursor = target;
        }
        Ok(())
    }

    fn word_start(&self) -> usize {
        let before = &self.line[..self.cursor];
        let word_end = before.iter().rposition(|&byte| byte != b' ').map_or(0, |at| at + 1);
        before[..word_end].iter().rposition(|&byte| byte == b' ').map_or(0, |at| at + 1)
    }

    /// Shows a line of the history; 0 is an empty one.
    fn recall(&mut self, number: usize, out: &mut impl Write) -> fmt::Result {
        let line = match number.checked_sub(1) {
            None => String::new(),
            Some(index) => match self.history.iter().nth(index) {
                Some(line) => line.clone(),
                None => return out.write_char(BELL),
            },
        };
        self.remove(0, self.line.len(), out)?;
        self.line = line.into_bytes();
        self.shown = number;
        self.redraw(out)
    }

    fn complete(&mut self, out: &mut impl Write) -> fmt::Result {
        let Ok(typed) = str::from_utf8(&self.line[..self.cursor]) else { return Ok(()) };
        let mut candidates = self.words.iter().filter(|word| word.starts_with(typed));
        let (Some(&word), None, false) = (candidates.next(), candidates.next(), typed.is_empty()) else {
            return out.write_char(BELL);
        };
        for byte in word.bytes().skip(typed.len()).chain([b' ']) {
            self.insert(byte, out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::String as StdString;
    use std::vec::Vec as StdVec;

    /// A terminal of one line: what is on it, and where its cursor is.
    #[derive(Default)]
    struct Terminal {
        cells: StdVec<char>,
        at: usize,
        sequence: Option<StdString>,
    }

    impl Write for Terminal {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for character in text.chars() {
                if let Some(sequence) = &mut self.sequence {
                    sequence.push(character);
                    if character.is_ascii_alphabetic() {
                        match sequence.as_str() {
                            "[K" => self.cells.truncate(self.at),
                            "[H" => self.at = 0,
                            "[2J" => self.cells.clear(),
                            other => panic!("sequence {other:?}"),
                        }
                        self.sequence = None;
                    }
                    continue;
                }
                match character {
                    '\x1b' => self.sequence = Some(StdString::new()),
                    '\x08' => self.at = self.at.checked_sub(1).expect("not beyond the left edge"),
                    '\r' => self.at = 0,
                    '\n' => {
                        self.cells.clear();
                        self.at = 0;
                    }
                    BELL => {}
                    character => {
                        if self.at == self.cells.len() {
                            self.cells.push(character);
                        } else {
                            self.cells[self.at] = character;
                        }
                        self.at += 1;
                    }
                }
            }
            Ok(())
        }
    }

    struct Desk {
        editor: Editor,
        terminal: Terminal,
        done: StdVec<Input>,
    }

    impl Desk {
        fn new() -> Self {
            let mut desk = Self {
                editor: Editor::new("> ", &["ping", "ps", "ifconfig"]),
                terminal: Terminal::default(),
                done: StdVec::new(),
            };
            desk.editor.show(&mut desk.terminal).expect("shown");
            desk
        }

        fn key(&mut self, bytes: &[u8]) -> &mut Self {
            for &byte in bytes {
                if let Some(input) = self.editor.take(byte, &mut self.terminal).expect("taken") {
                    self.done.push(input);
                    self.editor.show(&mut self.terminal).expect("shown");
                }
            }
            self.check();
            self
        }

        /// The terminal shows what the editor thinks.
        fn check(&self) {
            let shown: StdString = self.terminal.cells.iter().collect();
            let line = str::from_utf8(&self.editor.line).expect("ASCII");
            assert_eq!(shown, std::format!("> {line}"));
            assert_eq!(self.terminal.at, 2 + self.editor.cursor);
        }

        fn line(&self) -> &str {
            str::from_utf8(&self.editor.line).expect("ASCII")
        }

        fn lines(&self) -> StdVec<&str> {
            self.done
                .iter()
                .filter_map(|input| if let Input::Line(line) = input { Some(line.as_str()) } else { None })
                .collect()
        }
    }

    const LEFT: &[u8] = b"\x1b[D";
    const UP: &[u8] = b"\x1b[A";
    const DOWN: &[u8] = b"\x1b[B";

    #[test]
    fn keys_edit_the_line() {
        let mut desk = Desk::new();
        desk.key(b"ping 10.0.2.2");
        assert_eq!(desk.key(LEFT).key(b"\x7f").line(), "ping 10.0.22");
        assert_eq!(desk.key(b"\x17").line(), "ping 2");
        assert_eq!(desk.key(b"\x01x").line(), "xping 2");
        assert_eq!(desk.key(b"\x1b[3~").line(), "xing 2");
        assert_eq!(desk.key(b"\x05!\x02\x02\x0b").line(), "xing ");
        assert_eq!(desk.key(b"\x15").line(), "");
    }

    #[test]
    fn a_line_ends_once_whatever_return_sends() {
        let mut desk = Desk::new();
        desk.key(b"one\r\ntwo\rthree\nfour\n\n");
        assert_eq!(desk.lines(), ["one", "two", "three", "four", ""]);
    }

    #[test]
    fn history_goes_back_and_forth() {
        let mut desk = Desk::new();
        desk.key(b"one\rtwo\rtwo\r  \r");
        assert_eq!(desk.key(UP).line(), "two");
        assert_eq!(desk.key(UP).line(), "one");
        assert_eq!(desk.key(UP).line(), "one");
        assert_eq!(desk.key(DOWN).line(), "two");
        assert_eq!(desk.key(DOWN).line(), "");
        assert_eq!(desk.key(UP).key(b"s\r").lines().last(), Some(&"twos"));
    }

    #[test]
    fn interrupt_gives_the_line_up() {
        let mut desk = Desk::new();
        desk.key(b"half a li\x03");
        assert_eq!((desk.line(), desk.done.last()), ("", Some(&Input::Interrupt)));
    }

    #[test]
    fn tab_completes_what_is_unambiguous() {
        let mut desk = Desk::new();
        assert_eq!(desk.key(b"p\t").line(), "p");
        assert_eq!(desk.key(b"i\t").line(), "ping ");
        assert_eq!(desk.key(b"x\t").line(), "ping x");
        assert_eq!(desk.key(b"\x15\t").line(), "");
    }

    #[test]
    fn a_line_has_an_end() {
        let mut desk = Desk::new();
        desk.key(&[b'x'; LINE + 10]);
        assert_eq!(desk.line().len(), LINE);
    }

    proptest! {
        #[test]
        fn the_terminal_always_shows_the_line(keys in proptest::collection::vec(prop_oneof![
            4 => (b' '..=b'~').prop_map(|byte| std::vec![byte]),
            2 => proptest::sample::select(std::vec![LEFT, UP, DOWN, b"\x1b[C", b"\x1b[3~", b"\x1b[1;5C", b"\x08", b"\x17", b"\x01", b"\x0c", b"\r"])
                .prop_map(<[u8]>::to_vec),
            1 => proptest::collection::vec(any::<u8>(), 0..4),
        ], 0..200)) {
            let mut desk = Desk::new();
            for key in keys {
                desk.key(&key);
            }
        }
    }
}
