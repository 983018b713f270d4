//! How arguments and results travel.
//!
//! Fixed-size ones as they lie in memory, variable ones in postcard's form.

use serde::{Deserialize, Serialize};
use zerocopy::{Immutable, IntoBytes, KnownLayout, TryFromBytes};

use crate::Refusal;

/// A byte buffer aligned for every type that an interface can declare.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Aligned<const N: usize>(pub [u8; N]);

impl<const N: usize> Aligned<N> {
    /// A buffer of zeros.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Default for Aligned<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads a fixed-size value in place. `None` if the length is another, or a field holds bits that its type has not.
#[inline]
#[must_use]
pub fn decode_fixed<T: TryFromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Option<&T> {
    T::try_ref_from_bytes(bytes).ok()
}

/// Writes a fixed-size value and returns its length.
///
/// # Errors
/// [`Refusal::ReplyRoom`] if it does not fit.
#[inline]
pub fn encode_fixed<T: IntoBytes + Immutable>(value: &T, to: &mut [u8]) -> Result<usize, Refusal> {
    value.write_to_prefix(to).map_err(|_| Refusal::ReplyRoom)?;
    Ok(size_of::<T>())
}

/// Reads a value in postcard's form. `None` if it is malformed, or followed by anything.
#[inline]
#[must_use]
pub fn decode_compact<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

/// Writes a value in postcard's form and returns its length.
///
/// # Errors
/// [`Refusal::ReplyRoom`] if it does not fit.
#[inline]
pub fn encode_compact<T: Serialize>(value: &T, to: &mut [u8]) -> Result<usize, Refusal> {
    postcard::to_slice(value, to).map(|used| used.len()).map_err(|_| Refusal::ReplyRoom)
}
