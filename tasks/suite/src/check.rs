//! Complaints of tests.

use core::fmt::{self, Debug, Write};
use core::panic::Location;

use heapless::String;

/// What a test returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a test failed: place and complaint. What is too long is cut.
pub struct Failure(String<240>);

impl Failure {
    /// A complaint about the caller's place.
    #[track_caller]
    pub fn new(complaint: fmt::Arguments<'_>) -> Self {
        let place = Location::caller();
        let file = place.file().rsplit('/').next().unwrap_or_default();
        let mut text = Cut(String::new());
        // Cut, it never fails.
        let _ = write!(text, "{file}:{}: {complaint}", place.line());
        Self(text.0)
    }

    /// Place and complaint.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Takes as much as fits.
struct Cut(String<240>);

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let _ = self.0.push(character);
        }
        Ok(())
    }
}

/// Errors of stubs and system calls, with the place where they came up.
pub trait Expect<T> {
    /// The value, or a complaint that names what was done.
    #[track_caller]
    fn expecting(self, what: &str) -> Outcome<T>;
}

impl<T, E: Debug> Expect<T> for Result<T, E> {
    #[track_caller]
    fn expecting(self, what: &str) -> Outcome<T> {
        match self {
            Ok(value) => Ok(value),
            Err(error) => Err(Failure::new(format_args!("{what}: {error:?}"))),
        }
    }
}

/// Compares; the complaint shows both values.
#[track_caller]
pub fn equal<T: PartialEq<U> + Debug, U: Debug>(found: T, expected: U, what: &str) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(Failure::new(format_args!("{what}: {found:?}, expected {expected:?}")))
}

/// Checks a condition; the complaint shows a value that explains it.
#[track_caller]
pub fn holds(condition: bool, what: &str, value: impl Debug) -> Outcome {
    if condition { Ok(()) } else { Err(Failure::new(format_args!("{what}: {value:?}"))) }
}
