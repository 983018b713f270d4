//! Options of a command, as getopt reads them.

use core::str::FromStr;

/// What was wrong with a command line, to be shown behind the command's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wrong<'a> {
    /// An option that the command does not have.
    UnknownOption(char),
    /// An option without its value.
    MissingValue(char),
    /// A value that is not what the option takes.
    BadValue(char, &'a str, &'static str),
    /// A word too many.
    TooMany(&'a str),
    /// A word that is missing.
    Missing(&'static str),
    /// A word that is not what is wanted there.
    Bad(&'a str, &'static str),
    /// Something that this implementation does not do.
    Unsupported(&'static str),
    /// No such command.
    UnknownCommand,
}

impl core::fmt::Display for Wrong<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::UnknownOption(option) => write!(f, "unknown option -{option}"),
            Self::MissingValue(option) => write!(f, "option -{option} needs a value"),
            Self::BadValue(option, value, wanted) => write!(f, "-{option} {value}: {wanted}"),
            Self::TooMany(word) => write!(f, "{word}: one word too many"),
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Bad(word, wanted) => write!(f, "{word}: {wanted}"),
            Self::Unsupported(what) => f.write_str(what),
            Self::UnknownCommand => f.write_str("not found (help lists the commands)"),
        }
    }
}

/// One piece of a command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument<'a> {
    /// An option, with its value if it takes one.
    Option(char, &'a str),
    /// A word.
    Word(&'a str),
}

/// Splits the words behind a command's name. `with_value` lists the options that take a value, which may follow at once (`-n8192`) or
/// as the next word (`-n 8192`); `flags` those that do not and may be joined (`-ts`).
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    words: core::str::SplitAsciiWhitespace<'a>,
    flags: &'static str,
    with_value: &'static str,
    // What is left of a word of joined flags.
    joined: &'a str,
}

impl<'a> Arguments<'a> {
    /// From the words behind the command's name.
    #[must_use]
    pub fn new(words: core::str::SplitAsciiWhitespace<'a>, flags: &'static str, with_value: &'static str) -> Self {
        Self { words, flags, with_value, joined: "" }
    }
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Result<Argument<'a>, Wrong<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.joined.is_empty() {
            let word = self.words.next()?;
            match word.strip_prefix('-') {
                Some(options) if !options.is_empty() => self.joined = options,
                _ => return Some(Ok(Argument::Word(word))),
            }
        }
        let mut characters = self.joined.chars();
        let option = characters.next()?;
        let rest = characters.as_str();
        if self.flags.contains(option) {
            self.joined = rest;
            return Some(Ok(Argument::Option(option, "")));
        }
        self.joined = "";
        if !self.with_value.contains(option) {
            return Some(Err(Wrong::UnknownOption(option)));
        }
        let value = if rest.is_empty() { self.words.next() } else { Some(rest) };
        Some(value.map(|value| Argument::Option(option, value)).ok_or(Wrong::MissingValue(option)))
    }
}

/// The value of an option as a number in a range.
///
/// # Errors
/// With what is `wanted`.
pub fn number<'a, T: FromStr + PartialOrd>(
    option: char,
    value: &'a str,
    min: T,
    max: T,
    wanted: &'static str,
) -> Result<T, Wrong<'a>> {
    value.parse().ok().filter(|number| (min..=max).contains(number)).ok_or(Wrong::BadValue(option, value, wanted))
}

/// Seconds with a fraction, as microseconds, up to an hour: `.006`, `1`, `2.5`.
///
/// # Errors
/// If it is none of these.
pub fn seconds(option: char, value: &str) -> Result<u32, Wrong<'_>> {
    let wrong = Wrong::BadValue(option, value, "seconds are wanted, such as 1 or .006");
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return Err(wrong);
    }
    let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong)? };
    let mut micros: u32 = if fraction.is_empty() { 0 } else { fraction.parse().map_err(|_| wrong)? };
    for _ in fraction.len()..6 {
        micros *= 10;
    }
    if whole > 3600 { Err(wrong) } else { Ok(whole * 1_000_000 + micros) }
}

/// A number with a suffix, as iperf has them: `k`, `m` and `g` in powers of 1000 or, for capitals, of 1024.
///
/// # Errors
/// If it is no such number, or 0.
pub fn scaled(option: char, value: &str) -> Result<u64, Wrong<'_>> {
    let wrong = Wrong::BadValue(option, value, "a number is wanted, perhaps with k, m or g, such as 10m");
    let (digits, factor) = match value.char_indices().last() {
        Some((at, 'k')) => (&value[..at], 1000),
        Some((at, 'm')) => (&value[..at], 1_000_000),
        Some((at, 'g')) => (&value[..at], 1_000_000_000),
        Some((at, 'K')) => (&value[..at], 1 << 10),
        Some((at, 'M')) => (&value[..at], 1 << 20),
        Some((at, 'G')) => (&value[..at], 1 << 30),
        _ => (value, 1),
    };
    let number: u64 = digits.parse().map_err(|_| wrong)?;
    number.checked_mul(factor).filter(|&number| number > 0).ok_or(wrong)
}

/// An IPv4 address.
///
/// # Errors
/// If it is none.
pub fn address(word: &str) -> Result<[u8; 4], Wrong<'_>> {
    word.parse::<net_api::Address>()
        .map(|address| address.0)
        .map_err(|_| Wrong::Bad(word, "an IPv4 address is wanted, such as 10.0.2.2"))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn split(line: &'static str) -> Vec<Result<Argument<'static>, Wrong<'static>>> {
        Arguments::new(line.split_ascii_whitespace(), "tsu", "nl").collect()
    }

    #[test]
    fn options_are_read_joined_and_apart() {
        let expected = [
            Ok(Argument::Option('t', "")),
            Ok(Argument::Option('s', "")),
            Ok(Argument::Option('n', "8192")),
            Ok(Argument::Word("host")),
        ];
        assert_eq!(split("-t -s -n8192 host"), expected);
        assert_eq!(split("-ts -n 8192 host"), expected);
        assert_eq!(split("-tsn8192 host"), expected);
        assert_eq!(split("-"), [Ok(Argument::Word("-"))]);
        assert_eq!(split("-x"), [Err(Wrong::UnknownOption('x'))]);
        assert_eq!(split("-n"), [Err(Wrong::MissingValue('n'))]);
    }

    #[test]
    fn seconds_have_fractions() {
        assert_eq!(seconds('i', ".006"), Ok(6000));
        assert_eq!(seconds('i', "1"), Ok(1_000_000));
        assert_eq!(seconds('i', "2.5"), Ok(2_500_000));
        assert_eq!(seconds('i', "0.000001"), Ok(1));
        assert_eq!(seconds('i', "3."), Ok(3_000_000));
        for wrong in ["", ".", "-1", "1e3", "0.0000001", "3601", "+1", "99999999999"] {
            assert!(seconds('i', wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn suffixes_scale() {
        assert_eq!(scaled('b', "10m"), Ok(10_000_000));
        assert_eq!(scaled('n', "64M"), Ok(64 << 20));
        assert_eq!(scaled('n', "1470"), Ok(1470));
        for wrong in ["", "m", "0", "1x", "-1k", "99999999999G"] {
            assert!(scaled('n', wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_a_range() {
        assert_eq!(number('p', "5001", 1u16, u16::MAX, "a port"), Ok(5001));
        assert!(number('p', "0", 1u16, u16::MAX, "a port").is_err());
        assert!(number('p', "65536", 1u16, u16::MAX, "a port").is_err());
    }
}
