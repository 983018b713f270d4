//! Response codes.
//!
//! A call returns one 32-bit code. Zero is success, codes below
//! [`FIRST_KERNEL_CODE`] belong to the server, the rest to the kernel.

/// A raw response code as it travels in a register.
pub type Code = u32;

/// Success.
pub const OK: Code = 0;

/// Codes from here on come from the kernel.
pub const FIRST_KERNEL_CODE: Code = 0xffff_ff00;

/// Errors that the kernel itself reports. The caller's state is unchanged by
/// a failed call: nothing was sent, moved or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum KernelError {
    /// The peer died, or was dead already. Refresh its id and decide by the
    /// operation's restart policy.
    Dead = FIRST_KERNEL_CODE,
    /// No task slot of the caller allows this target.
    NoCapability,
    /// The message is longer than [`crate::MAX_MESSAGE`], or longer than the receiver's buffer.
    MessageTooLong,
    /// The reply is longer than the caller's reply buffer. The caller keeps waiting.
    ReplyTooLong,
    /// More than [`crate::MAX_LEASES`] leases.
    TooManyLeases,
    /// The lender is not waiting for a reply from this task, or has no such lease.
    BadLease,
    /// The lease does not allow this direction.
    LeaseDirection,
    /// Offset or length outside the lease.
    LeaseBounds,
    /// The task is not waiting for a reply from the caller.
    NotWaiting,
    /// A frame list is longer than [`crate::MAX_FRAME_LIST`] or than the receiver's room.
    FrameListTooLong,
    /// A frame index outside every pool.
    FrameUnknown,
    /// A frame whose generation is over.
    FrameStale,
    /// A frame that the caller does not hold.
    FrameNotHeld,
    /// A frame named twice in one list.
    FrameDuplicate,
    /// A frame length over the frame's size.
    FrameLength,
    /// The receiver may not hold frames of this pool, or the caller does not own it.
    FramePool,
    /// The privilege for this operation is missing.
    NoPrivilege,
    /// An argument outside its documented range.
    BadArgument,
    /// The sender filter of `recv` names a dead task.
    SenderDead,
    /// The receiver would hold more frames of the pool than its quota.
    FrameQuota,
}

impl KernelError {
    /// Every kernel error, in code order.
    pub const ALL: [Self; 20] = [
        Self::Dead,
        Self::NoCapability,
        Self::MessageTooLong,
        Self::ReplyTooLong,
        Self::TooManyLeases,
        Self::BadLease,
        Self::LeaseDirection,
        Self::LeaseBounds,
        Self::NotWaiting,
        Self::FrameListTooLong,
        Self::FrameUnknown,
        Self::FrameStale,
        Self::FrameNotHeld,
        Self::FrameDuplicate,
        Self::FrameLength,
        Self::FramePool,
        Self::NoPrivilege,
        Self::BadArgument,
        Self::SenderDead,
        Self::FrameQuota,
    ];

    /// The error for a code, if it is one of the kernel's.
    #[must_use]
    pub fn from_code(code: Code) -> Option<Self> {
        let index = code.checked_sub(FIRST_KERNEL_CODE)?;
        Self::ALL.get(index as usize).copied()
    }

    /// The code that stands for this error in a register.
    #[must_use]
    pub const fn code(self) -> Code {
        self as Code
    }
}

/// Splits a raw code into success or kernel error; server codes are passed on as `Ok`.
///
/// # Errors
/// The kernel error that the code stands for; a kernel code that this version
/// does not know becomes [`KernelError::BadArgument`].
pub fn check(code: Code) -> Result<Code, KernelError> {
    if code < FIRST_KERNEL_CODE {
        Ok(code)
    } else {
        Err(KernelError::from_code(code).unwrap_or(KernelError::BadArgument))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for error in KernelError::ALL {
            assert_eq!(KernelError::from_code(error.code()), Some(error));
            assert_eq!(check(error.code()), Err(error));
        }
        assert_eq!(check(7), Ok(7));
        assert_eq!(KernelError::from_code(u32::MAX), None);
    }
}
