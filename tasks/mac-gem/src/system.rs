//! The real system behind the driver's traits: uncached memory and the kernel.

use abi::FrameDesc;
use abi::KernelError;
use abi::frame::Direction;
use userlib::memory::{self, DmaWords};
use userlib::{frames, ipc};

use crate::driver::Kernel;
use crate::ring::Words;

impl Words for DmaWords {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    fn device_address(&self) -> u32 {
        self.address() as u32
    }

    #[inline]
    fn get(&self, index: usize) -> u32 {
        self.read(index)
    }

    #[inline]
    fn set(&mut self, index: usize, value: u32) {
        self.write(index, value);
    }

    #[inline]
    fn release(&mut self) {
        memory::release_to_device();
    }

    #[inline]
    fn acquire(&self) {
        memory::acquire_from_device();
    }
}

/// The kernel.
#[derive(Clone, Copy, Debug)]
pub struct System {
    /// The driver's pool, by its place among those that the task may use.
    pub pool: usize,
    /// Notification of the MAC's interrupt.
    pub irq: u32,
}

impl Kernel for System {
    #[inline]
    fn arm(&mut self, list: &[FrameDesc], direction: Direction) -> Result<(), KernelError> {
        frames::arm(list, direction)
    }

    #[inline]
    fn complete(&mut self, list: &[FrameDesc]) -> Result<(), KernelError> {
        frames::complete(list)
    }

    fn list(&mut self, to: &mut [FrameDesc], from: usize) -> Result<(usize, Option<usize>), KernelError> {
        frames::list(self.pool, to, from)
    }

    #[inline]
    fn enable_interrupt(&mut self) {
        // Refused only for a bit without interrupt, which the build does not allow.
        let _ = ipc::enable_interrupts(self.irq);
    }
}
