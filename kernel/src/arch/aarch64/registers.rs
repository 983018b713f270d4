//! Device registers that the kernel itself uses, through its window.

use super::mmu::window;

/// Reads a 32-bit register at a physical address that [`PageTables::map_registers`](super::mmu::PageTables::map_registers)
/// mapped at boot.
#[inline]
pub fn read(address: usize) -> u32 {
    // SAFETY: the callers name registers of the image table only, all of which boot maps as device memory.
    unsafe { (window(address) as *const u32).read_volatile() }
}

/// Writes a 32-bit register; see [`read`].
#[inline]
pub fn write(address: usize, value: u32) {
    // SAFETY: as in `read`.
    unsafe { (window(address) as *mut u32).write_volatile(value) }
}
