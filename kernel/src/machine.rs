//! What the portable kernel asks of the hardware.

use abi::frame::Direction;
use abi::image::Pool;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Registers of a task that is not running.
pub trait Context {
    /// All registers zero.
    const CLEAR: Self;
    /// Sets up the first entry: everything zero but these.
    fn reset(&mut self, entry: usize, stack: usize);
    /// Number of the system call.
    fn call_number(&self) -> usize;
    /// Argument `index`, below 8.
    fn argument(&self, index: usize) -> usize;
    /// Sets result `index`, below 8.
    fn set_result(&mut self, index: usize, value: usize);
    /// Address of the next instruction.
    fn program_counter(&self) -> usize;
    /// Stack pointer.
    fn stack_pointer(&self) -> usize;
}

/// Readings of the two counters that accounting uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sample {
    /// Timer ticks since boot.
    pub ticks: u64,
    /// Instructions executed, modulo 2^32.
    pub instructions: u32,
}

/// The hardware, as seen by the portable kernel.
///
/// Addresses are physical, which are also the tasks' addresses. The kernel calls `load`, `store` and
/// the copies only for ranges inside RAM that it has checked against a task's regions.
pub trait Machine {
    /// Registers of a task.
    type Context: Context;

    /// Reads a value. The address is aligned for it.
    fn load<T: FromBytes>(&self, address: usize) -> T;
    /// Writes a value. The address is aligned for it.
    fn store<T: IntoBytes + Immutable>(&mut self, address: usize, value: &T);
    /// Copies between two ranges that do not overlap or are the same.
    fn copy(&mut self, from: usize, to: usize, len: usize);
    /// Reads bytes.
    fn read_bytes(&self, address: usize, to: &mut [u8]);
    /// Writes bytes.
    fn write_bytes(&mut self, address: usize, from: &[u8]);

    /// Takes frames, given as page numbers (address / page size), from the page table of `from` and puts them into that of `to`, as one step: when this
    /// returns, no translation for `from` is left. `None` stands for a task that never maps frames.
    fn remap(&mut self, from: Option<usize>, to: Option<usize>, pages: impl Iterator<Item = usize> + Clone);
    /// Takes all frames from a task's page table.
    fn unmap_all(&mut self, task: usize);
    /// Makes caches and memory agree before the device uses `len` bytes at `address`. Returns cache lines touched.
    fn release_to_device(&mut self, address: usize, len: usize, direction: Direction) -> usize;
    /// Drops what caches may have fetched of `len` bytes that the device wrote. Returns cache lines touched.
    fn acquire_from_device(&mut self, address: usize, len: usize) -> usize;
    /// Orders the maintenance of a list before what follows.
    fn finish_maintenance(&mut self);
    /// Stops the DMA of a pool's device by its quiesce sequence. False if it did not confirm.
    fn quiesce(&mut self, pool: &Pool) -> bool;

    /// Both counters.
    fn sample(&self) -> Sample;
    /// Ticks since boot.
    fn ticks(&self) -> u64;
    /// Ticks per second.
    fn tick_rate(&self) -> u64;
    /// Asks for a timer interrupt at `deadline`, or for none.
    fn set_alarm(&mut self, deadline: Option<u64>);
    /// Sets up an interrupt, masked.
    fn prepare_interrupt(&mut self, number: u32);
    /// Lets an interrupt through, or masks it.
    fn enable_interrupt(&mut self, number: u32, enable: bool);

    /// Makes a task's address space the current one, and lets it use vector registers or not.
    fn switch(&mut self, to: usize, vectors: bool);
    /// Loads a task's vector registers, after saving those of the task that they belong to now.
    fn move_vectors(&mut self, save: Option<&mut Self::Context>, load: &Self::Context);

    /// Writes to the polled console.
    fn log(&mut self, bytes: &[u8]);
    /// Powers off, or resets.
    fn power(&mut self, reset: bool) -> !;
}
