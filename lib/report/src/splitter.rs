//! Takes text and records apart.

use crate::{MAX_FRAME, Record, decode};

/// What a [`Splitter`] found.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Piece<'a> {
    /// Text between records, as much as came at once.
    Text(&'a [u8]),
    /// A record.
    Record(Record<'a>),
    /// So many bytes between two 0 bytes that are no record.
    Broken(usize),
}

/// Takes text and records apart, whatever the pieces in which they come.
#[derive(Debug)]
pub struct Splitter {
    frame: [u8; MAX_FRAME],
    len: usize,
    inside: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    /// One that expects text first.
    #[must_use]
    pub const fn new() -> Self {
        Self { frame: [0; MAX_FRAME], len: 0, inside: false }
    }

    /// Takes the next bytes and passes on what is complete.
    pub fn feed(&mut self, mut bytes: &[u8], mut found: impl FnMut(Piece<'_>)) {
        while !bytes.is_empty() {
            let zero = bytes.iter().position(|&byte| byte == 0);
            let (part, rest) = bytes.split_at(zero.unwrap_or(bytes.len()));
            bytes = rest.get(1..).unwrap_or(&[]);
            if !self.inside {
                if !part.is_empty() {
                    found(Piece::Text(part));
                }
                self.inside = zero.is_some();
                continue;
            }
            match self.frame.get_mut(self.len..self.len + part.len()) {
                Some(room) => {
                    room.copy_from_slice(part);
                    self.len += part.len();
                }
                // Longer than any record: a 0 byte went astray, and this is text.
                None => {
                    found(Piece::Broken(self.len));
                    found(Piece::Text(part));
                    self.len = 0;
                    self.inside = false;
                }
            }
            if zero.is_some() {
                self.close(&mut found);
            }
        }
    }

    /// A 0 byte: the end of a record, or the start of the next if what was before it is none.
    fn close(&mut self, found: &mut impl FnMut(Piece<'_>)) {
        if self.inside && self.len > 0 {
            match decode(&mut self.frame[..self.len]) {
                Some(record) => {
                    found(Piece::Record(record));
                    self.inside = false;
                }
                None => found(Piece::Broken(self.len)),
            }
        } else {
            self.inside = true;
        }
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::encode;
    use proptest::prelude::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn frame(text: &str) -> Vec<u8> {
        let mut buffer = [0; 256];
        encode(&Record::Log(text), &mut buffer).expect("fits").to_vec()
    }

    /// Text, logs and broken pieces in the order in which they came; neighbouring texts joined.
    fn split(chunks: &[&[u8]]) -> Vec<(char, String)> {
        let mut splitter = Splitter::new();
        let mut pieces: Vec<(char, String)> = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |piece| {
                let (kind, text) = match piece {
                    Piece::Text(text) => ('t', String::from_utf8_lossy(text).into_owned()),
                    Piece::Record(Record::Log(text)) => ('r', text.to_string()),
                    Piece::Record(_) => ('?', String::new()),
                    Piece::Broken(_) => ('b', String::new()),
                };
                match pieces.last_mut() {
                    Some((last, before)) if *last == 't' && kind == 't' => before.push_str(&text),
                    _ => pieces.push((kind, text)),
                }
            });
        }
        pieces
    }

    fn piece(kind: char, text: &str) -> (char, String) {
        (kind, text.to_string())
    }

    proptest! {
        #[test]
        fn any_chunks_give_the_same(cuts in proptest::collection::vec(1usize..9, 1..60)) {
            let stream = [b"one ".as_slice(), &frame("two"), &frame("three"), b" four\r\n", &frame("")].concat();
            let mut chunks = Vec::new();
            let (mut rest, mut cuts) = (stream.as_slice(), cuts.into_iter().cycle());
            while let Some(cut) = cuts.next().filter(|_| !rest.is_empty()) {
                let (chunk, more) = rest.split_at(cut.min(rest.len()));
                chunks.push(chunk);
                rest = more;
            }
            prop_assert_eq!(split(&chunks), [piece('t', "one "), piece('r', "two"), piece('r', "three"), piece('t', " four\r\n"), piece('r', "")]);
        }

        #[test]
        fn garbage_does_not_hide_what_follows(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            // Three zeros end whatever state the garbage left, and then one record is lost at most.
            let stream = [bytes.as_slice(), &frame("first"), &frame("second")].concat();
            let found = split(&[&stream]);
            prop_assert_eq!(found.last(), Some(&piece('r', "second")));
        }
    }

    #[test]
    fn a_record_that_was_cut_spoils_only_itself() {
        let whole = frame("cut short");
        let stream = [&whole[..5], &frame("next"), b"text"].concat();
        assert_eq!(split(&[&stream]), [piece('b', ""), piece('r', "next"), piece('t', "text")]);
    }

    #[test]
    fn a_lone_zero_does_not_swallow_text_for_ever() {
        let mut stream = Vec::from([0]);
        stream.extend((0..MAX_FRAME + 10).map(|_| b'x'));
        let found = split(&[&stream[..MAX_FRAME], &stream[MAX_FRAME..], b"text"]);
        assert_eq!(found[0].0, 'b');
        assert!(found[1].1.ends_with("text"));
    }
}
