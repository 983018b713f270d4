//! Frames and the device: for MAC drivers, and for whoever wants to know what it holds.

use abi::call::Call;
use abi::code::check;
use abi::frame::Direction;
use abi::{Code, FrameDesc, KernelError};

use crate::arch::syscall;

/// Gives frames to the device: caches are made to agree, and until [`complete`] no task may touch them.
///
/// # Errors
/// One bad entry refuses the whole list; see [`KernelError`]. Only the owner of the pool may call.
#[inline]
pub fn arm(list: &[FrameDesc], direction: Direction) -> Result<(), KernelError> {
    let args = [list.as_ptr() as usize, list.len(), direction as usize, 0, 0, 0, 0, 0];
    check(syscall(Call::FrameArm, args)[0] as Code).map(drop)
}

/// Takes frames back from the device, which must have finished with them. `len` of each entry says how many
/// bytes of the frame are new.
///
/// # Errors
/// As [`arm`].
#[inline]
pub fn complete(list: &[FrameDesc]) -> Result<(), KernelError> {
    check(syscall(Call::FrameComplete, [list.as_ptr() as usize, list.len(), 0, 0, 0, 0, 0, 0])[0] as Code).map(drop)
}

/// Lists frames of a pool that this task holds, from frame index `from` on. Returns how many entries
/// were written, and where to go on, or `None` at the end.
///
/// `pool` counts the pools that this task may use, as [`crate::config::pool`] does.
///
/// # Errors
/// [`KernelError::FramePool`] if there is no such pool.
#[inline]
pub fn list(pool: usize, to: &mut [FrameDesc], from: usize) -> Result<(usize, Option<usize>), KernelError> {
    let result = syscall(Call::FrameList, [pool, to.as_mut_ptr() as usize, to.len(), from, 0, 0, 0, 0]);
    check(result[0] as Code)?;
    Ok((result[1], (result[2] != 0).then_some(result[2])))
}
