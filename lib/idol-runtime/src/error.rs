//! What can go wrong, on either side.

use core::convert::Infallible;

use abi::{Code, KernelError};

use crate::Outcome;

/// Errors of an interface that travel as a response code.
///
/// Implemented by the enums that a `.idol` file names in `CLike(..)`.
pub trait ErrorCode: Sized {
    /// Its code: not 0, and below [`Refusal::FIRST_CODE`].
    fn code(self) -> Code;
    /// The error for a code.
    fn from_code(code: Code) -> Option<Self>;
}

/// Operations without errors of their own.
impl ErrorCode for Infallible {
    #[inline]
    fn code(self) -> Code {
        match self {}
    }

    #[inline]
    fn from_code(_: Code) -> Option<Self> {
        None
    }
}

/// Why generated dispatch did not pass a request to the server. The server did nothing, and frames that came with the
/// request went back with the refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Refusal {
    /// The interface has no such operation. Build client and server from the same `.idol` file.
    UnknownOperation = Refusal::FIRST_CODE,
    /// Length or content of the message is not what the operation's arguments allow.
    BadMessage,
    /// Too few or too many leases.
    LeaseCount,
    /// A lease lacks the right to read or to write that the operation needs.
    LeaseDirection,
    /// A lease is shorter than `min_len`, or its length is not a whole number of elements.
    LeaseTooShort,
    /// A lease is longer than `max_len`.
    LeaseTooLong,
    /// More frames than the operation takes.
    FrameCount,
    /// The caller's reply buffer is shorter than the longest reply.
    ReplyRoom,
    /// The caller has less room for frames than the operation may return.
    ReplyFrameRoom,
    /// The server's reply was refused by the kernel: a fault of the server.
    ReplyRefused,
    /// The server could not use a lease that it had checked before.
    LeaseLost,
}

impl Refusal {
    /// Codes from here up to the kernel's are refusals.
    pub const FIRST_CODE: Code = 0xffff_fe00;

    /// Every refusal, in code order.
    pub const ALL: [Self; 11] = [
        Self::UnknownOperation,
        Self::BadMessage,
        Self::LeaseCount,
        Self::LeaseDirection,
        Self::LeaseTooShort,
        Self::LeaseTooLong,
        Self::FrameCount,
        Self::ReplyRoom,
        Self::ReplyFrameRoom,
        Self::ReplyRefused,
        Self::LeaseLost,
    ];

    /// The refusal for a code.
    #[must_use]
    pub fn from_code(code: Code) -> Option<Self> {
        let index = code.checked_sub(Self::FIRST_CODE)?;
        Self::ALL.get(index as usize).copied()
    }

    /// The code that stands for it.
    #[must_use]
    pub const fn code(self) -> Code {
        self as Code
    }
}

/// What a client stub returns instead of a result. `E` is the interface's own error type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error<E = Infallible> {
    /// The server answered with an error of its interface.
    Server(E),
    /// The server died, and the operation's `restart` does not allow to repeat it (or it was repeated often enough).
    /// The next call goes to the new instance.
    Died {
        /// It had received the request, so it may have done part of it; frames sent with it are no longer ours.
        received: bool,
    },
    /// The server's dispatch refused the request.
    Refused(Refusal),
    /// The kernel refused the request; nothing was sent.
    Kernel(KernelError),
    /// The reply is not what the interface says. Build client and server from the same `.idol` file.
    BadReply,
}

impl<E> Error<E> {
    /// The error for a code that is not 0; `of_server` decodes those below the reserved ranges. `len` is the reply's length.
    #[inline]
    pub fn from_code(code: Code, len: usize, of_server: impl FnOnce(Code) -> Option<E>) -> Self {
        if code < Refusal::FIRST_CODE {
            return of_server(code).map_or(Self::BadReply, Self::Server);
        }
        Self::reserved(code, len)
    }

    #[cold]
    fn reserved(code: Code, len: usize) -> Self {
        if let Some(refusal) = Refusal::from_code(code) {
            return Self::Refused(refusal);
        }
        match KernelError::from_code(code) {
            Some(KernelError::Dead) => Self::Died { received: len != 0 },
            Some(error) => Self::Kernel(error),
            None => Self::BadReply,
        }
    }
}

/// What a handler returns instead of a result. `E` is the interface's own error type; `D` is [`Deferred`] for operations
/// that may answer later (`defer: true`), and for others a type without values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestError<E = Infallible, D = Infallible> {
    /// An error of the interface.
    Server(E),
    /// As if dispatch had refused it.
    Refused(Refusal),
    /// The caller goes on waiting. Keep its id (and leases), and answer with the interface's `reply_...` function.
    Deferred(D),
}

impl<E, D> RequestError<E, D> {
    /// What to return when a lease could not be read or written: its owner died, so nobody will see it.
    #[must_use]
    pub fn lost(_: KernelError) -> Self {
        Self::Refused(Refusal::LeaseLost)
    }

    /// For generated code: what happens to a request whose error travels in the reply, as `encode` writes it.
    ///
    /// # Errors
    /// The refusal that the caller gets.
    #[inline]
    pub fn complex(self, encode: impl FnOnce(&E) -> Result<usize, Refusal>) -> Result<Outcome, Refusal> {
        match self {
            Self::Server(error) => Ok(Outcome::Reply { code: 1, len: encode(&error)? }),
            Self::Refused(refusal) => Err(refusal),
            Self::Deferred(_) => Ok(Outcome::Deferred),
        }
    }
}

/// Lets `?` pass an interface's error on.
impl<E, D> From<E> for RequestError<E, D> {
    fn from(error: E) -> Self {
        Self::Server(error)
    }
}

/// States that a handler keeps its caller waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deferred;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_stay_apart() {
        for (index, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal.code(), Refusal::FIRST_CODE + index as u32);
            assert_eq!(Refusal::from_code(refusal.code()), Some(refusal));
            assert_eq!(Error::<Infallible>::from_code(refusal.code(), 0, |_| None), Error::Refused(refusal));
        }
        assert!(Refusal::FIRST_CODE + (Refusal::ALL.len() as u32) < abi::code::FIRST_KERNEL_CODE);
        for error in KernelError::ALL {
            assert_eq!(Refusal::from_code(error.code()), None);
        }
    }

    #[test]
    fn every_code_becomes_an_error() {
        let decode = |code| Error::<u8>::from_code(code, 1, |code| u8::try_from(code).ok());
        assert_eq!(decode(7), Error::Server(7));
        assert_eq!(decode(700), Error::BadReply);
        assert_eq!(decode(KernelError::Dead.code()), Error::Died { received: true });
        assert_eq!(decode(KernelError::BadLease.code()), Error::Kernel(KernelError::BadLease));
        assert_eq!(decode(u32::MAX), Error::BadReply);
        assert_eq!(decode(Refusal::FIRST_CODE + 200), Error::BadReply);
    }
}
