//! Memory beyond the task's own image: DMA memory, shared windows, register blocks.
//!
//! Each named region can be taken once in the life of a task instance, so that two parts of a task
//! never believe that they own it.

use core::cell::Cell;
use core::ptr::NonNull;

use abi::config::Item;

use crate::{arch, config};

#[cfg(target_os = "none")]
unsafe extern "C" {
    static __config: [u8; abi::PAGE_SIZE];
}

/// The bytes of the configuration page.
pub(crate) fn config_page() -> &'static [u8] {
    #[cfg(target_os = "none")]
    // SAFETY: the linker script places the symbol at the task's configuration page, one page that the kernel maps read-only
    // for the life of the task.
    unsafe {
        &__config
    }
    #[cfg(not(target_os = "none"))]
    &[]
}

/// Names that are taken, as one bit per place in the configuration page.
struct Taken(Cell<u64>);

// SAFETY: a task has one thread.
unsafe impl Sync for Taken {}

static TAKEN: Taken = Taken(Cell::new(0));

/// Finds a region by `select` and marks it taken; `None` if there is none or it was taken before.
fn take(select: impl Fn(Item<'static>) -> Option<(u64, u64)>) -> Option<(usize, usize)> {
    let mut place = 0;
    let (bit, base, size) = config::view().find(|item| {
        place += 1;
        select(item).map(|(base, size)| (1u64 << (place - 1), base as usize, size as usize))
    })?;
    if TAKEN.0.get() & bit != 0 {
        return None;
    }
    TAKEN.0.set(TAKEN.0.get() | bit);
    Some((base, size))
}

fn take_memory(name: &str) -> Option<(usize, usize)> {
    take(|item| match item {
        Item::Memory(memory, base, size) if memory == name => Some((base, size)),
        _ => None,
    })
}

/// Takes cached memory or a shared window as bytes.
///
/// The task at the other end of a window can change its bytes at any time: treat them as data from the wire, read each
/// once, and keep nothing in them that this task relies on.
#[must_use]
pub fn take_bytes(name: &str) -> Option<&'static mut [u8]> {
    let (base, size) = take_memory(name)?;
    // SAFETY: the build gives the region to this task alone or, for a window, to one other task beside it; the kernel maps it
    // read-write for the task's life; `take` hands it out once. Writes of the other task are outside this program, like DMA;
    // the caller is told to expect them.
    Some(unsafe { core::slice::from_raw_parts_mut(base as *mut u8, size) })
}

/// Apart, so that accesses carry nothing but the comparison.
#[cold]
#[inline(never)]
fn outside(index: usize, len: usize) -> ! {
    panic!("DMA word {index} of {len}")
}

/// Uncached memory shared with a device, as 32-bit words.
#[derive(Debug)]
pub struct DmaWords {
    base: NonNull<u32>,
    len: usize,
}

impl DmaWords {
    /// Takes the region `name`; `None` if it does not exist or was taken before.
    #[must_use]
    pub fn take(name: &str) -> Option<Self> {
        let (base, size) = take_memory(name)?;
        Some(Self { base: NonNull::new(base as *mut u32)?, len: size / 4 })
    }

    /// Address of the first word, as the device sees it.
    #[must_use]
    pub fn address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// Words in the region.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if it has no word.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads word `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[inline]
    #[must_use]
    pub fn read(&self, index: usize) -> u32 {
        if index >= self.len {
            outside(index, self.len);
        }
        // SAFETY: inside the region, which is mapped and aligned to a page; volatile, as the device writes too.
        unsafe { self.base.add(index).read_volatile() }
    }

    /// Writes word `index`.
    ///
    /// # Panics
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(&mut self, index: usize, value: u32) {
        if index >= self.len {
            outside(index, self.len);
        }
        // SAFETY: as in `read`.
        unsafe { self.base.add(index).write_volatile(value) }
    }

    /// Splits off the words from `index` on.
    ///
    /// # Panics
    /// If `index` is over the length.
    #[must_use]
    pub fn split_at(self, index: usize) -> (Self, Self) {
        assert!(index <= self.len, "DMA split at {index} of {}", self.len);
        // SAFETY: one past the end at most, and the halves do not overlap.
        let upper = unsafe { self.base.add(index) };
        (Self { base: self.base, len: index }, Self { base: upper, len: self.len - index })
    }
}

/// Takes the register block `name` of this task: address and size.
///
/// The driver's register module turns the address into its `tock-registers` structure, once.
#[must_use]
pub fn take_peripheral(name: &str) -> Option<(NonNull<u8>, usize)> {
    let (base, size) = take(|item| match item {
        Item::Peripheral(block, base, size) if block == name => Some((base, size)),
        _ => None,
    })?;
    Some((NonNull::new(base as *mut u8)?, size))
}

/// Orders all memory writes before a following register write (doorbell) that hands the memory to a device.
#[inline]
pub fn release_to_device() {
    arch::release_to_device();
}

/// Orders a read that showed the device to be done before reads of what it wrote.
#[inline]
pub fn acquire_from_device() {
    arch::acquire_from_device();
}
