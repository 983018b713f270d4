//! Memory that system call arguments name.
//!
//! An address from a task is an allegation until it is checked here; what fails is
//! that task's own fault.

use abi::image::Access;
use abi::{FrameDesc, KernelError, MAX_FRAME_LIST};
use zerocopy::FromBytes;

use crate::{CallResult, Kernel, Machine, Trap};

impl<M: Machine> Kernel<M> {
    /// Checks that task `task` may read (or write) the range.
    #[inline]
    pub(crate) fn check_user(&self, task: usize, address: usize, len: usize, need: Access) -> CallResult {
        if self.tasks[task].may_access(address, len, need) {
            Ok(())
        } else {
            self.alleged.set((address, len));
            Err(Trap::BadMemory)
        }
    }

    /// Checks that task `task` may read (or write) `count` values of type `T` from an aligned address on.
    #[inline]
    pub(crate) fn check_values<T>(&self, task: usize, address: usize, count: usize, need: Access) -> CallResult {
        let len = count * size_of::<T>();
        if count > 0 && !address.is_multiple_of(align_of::<T>()) {
            self.alleged.set((address, len));
            return Err(Trap::BadMemory);
        }
        self.check_user(task, address, len, need)
    }

    /// Reads a value from a task's memory.
    #[inline]
    pub(crate) fn load_user<T: FromBytes>(&self, task: usize, address: usize) -> Result<T, Trap> {
        self.check_values::<T>(task, address, 1, Access::READ)?;
        Ok(self.machine.load(address))
    }

    /// Checks a frame list that a task names: its length, then its memory.
    #[inline]
    pub(crate) fn check_frame_list(&self, task: usize, address: usize, count: usize, need: Access) -> CallResult {
        if count > MAX_FRAME_LIST {
            return Err(KernelError::FrameListTooLong.into());
        }
        self.check_values::<FrameDesc>(task, address, count, need)
    }
}
