//! Page tables.
//!
//! Arm ARM D8: 4 KiB granule. The upper half (TTBR1, 39 bits) is the kernel's view of all RAM and of the
//! registers that it uses, at physical + [`KERNEL_OFFSET`]. The lower half (TTBR0, 32 bits) is a task's: its own
//! regions and the frames that it holds, one to one. Each task has an ASID, so a switch is one register write.

use core::arch::asm;

use abi::image::Access;
use abi::{MAX_TASKS, PAGE_SIZE};
use cortex_a::registers::TTBR0_EL1;
use tock_registers::interfaces::Writeable;

/// Virtual address of physical address 0 in the kernel.
pub const KERNEL_OFFSET: usize = 0xffff_ff80_0000_0000;

const BLOCK_SIZE: usize = 2 << 20;
const ENTRIES: usize = 512;

// Descriptor bits (Arm ARM D8.3.1, D8.3.2).
const VALID: u64 = 1;
const TABLE_OR_PAGE: u64 = 1 << 1;
const DEVICE: u64 = 0 << 2;
const NORMAL: u64 = 1 << 2;
const UNCACHED: u64 = 2 << 2;
const USER: u64 = 1 << 6;
const READ_ONLY: u64 = 1 << 7;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
const NOT_GLOBAL: u64 = 1 << 11;
const KERNEL_NEVER_EXECUTES: u64 = 1 << 53;
const USER_NEVER_EXECUTES: u64 = 1 << 54;
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;

/// A held frame: the holder may read and write it.
const FRAME: u64 = VALID
    | TABLE_OR_PAGE
    | NORMAL
    | USER
    | INNER_SHAREABLE
    | ACCESSED
    | NOT_GLOBAL
    | KERNEL_NEVER_EXECUTES
    | USER_NEVER_EXECUTES;

/// Translates a physical address of RAM or of a mapped register to the kernel's.
#[inline]
pub const fn window(physical: usize) -> usize {
    physical.wrapping_add(KERNEL_OFFSET)
}

/// Bits of a page for user code.
fn user_bits(access: Access) -> u64 {
    let memory = if access.contains(Access::DEVICE) {
        DEVICE
    } else if access.contains(Access::UNCACHED) {
        UNCACHED
    } else {
        NORMAL
    };
    let mut bits = memory | USER | INNER_SHAREABLE | ACCESSED | NOT_GLOBAL | KERNEL_NEVER_EXECUTES;
    if !access.contains(Access::WRITE) {
        bits |= READ_ONLY;
    }
    if !access.contains(Access::EXECUTE) {
        bits |= USER_NEVER_EXECUTES;
    }
    bits
}

/// What the kernel's own memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelMemory {
    /// Code.
    Text,
    /// Constants.
    ReadOnly,
    /// Everything else in RAM.
    Data,
    /// Registers.
    Device,
}

fn kernel_bits(memory: KernelMemory) -> u64 {
    let bits = INNER_SHAREABLE | ACCESSED | USER_NEVER_EXECUTES;
    match memory {
        KernelMemory::Text => bits | NORMAL | READ_ONLY,
        KernelMemory::ReadOnly => bits | NORMAL | READ_ONLY | KERNEL_NEVER_EXECUTES,
        KernelMemory::Data => bits | NORMAL | KERNEL_NEVER_EXECUTES,
        KernelMemory::Device => bits | DEVICE | KERNEL_NEVER_EXECUTES,
    }
}

/// All page tables, and the memory that they are made of.
#[derive(Debug)]
pub struct PageTables {
    /// Memory for tables that is still free.
    next: usize,
    end: usize,
    kernel_root: usize,
    /// Root table and ASID of each task, as TTBR0 takes them.
    roots: [u64; MAX_TASKS],
    /// First address of the memory that holds all frame pools; a multiple of 2 MiB.
    frames: usize,
    /// Level 3 tables that they take.
    frame_tables: usize,
    /// Kernel address of the page entry of the first frame, for tasks that may hold frames.
    frame_entries: [usize; MAX_TASKS],
}

impl PageTables {
    /// No tables at all, until [`configure`](Self::configure).
    pub const UNSET: Self = Self {
        next: 0,
        end: 0,
        kernel_root: 0,
        roots: [0; MAX_TASKS],
        frames: 0,
        frame_tables: 0,
        frame_entries: [0; MAX_TASKS],
    };

    /// Takes the memory for tables and creates the kernel's root.
    pub fn configure(&mut self, tables: (usize, usize)) -> Result<(), &'static str> {
        (self.next, self.end) = (tables.0, tables.0 + tables.1);
        self.kernel_root = self.allocate(1)?;
        Ok(())
    }

    /// Takes `count` pages side by side, cleared.
    fn allocate(&mut self, count: usize) -> Result<usize, &'static str> {
        let page = self.next;
        self.next += count * PAGE_SIZE;
        if self.next > self.end {
            return Err("the memory for page tables is too small");
        }
        for offset in (0..count * PAGE_SIZE).step_by(8) {
            write_entry(window(page + offset), 0);
        }
        Ok(page)
    }

    /// The table that the entry at `slot` refers to, made if there is none.
    fn next_level(&mut self, slot: usize) -> Result<usize, &'static str> {
        let entry = read_entry(slot);
        if entry & VALID == 0 {
            let table = self.allocate(1)?;
            write_entry(slot, table as u64 | VALID | TABLE_OR_PAGE);
            return Ok(table);
        }
        if entry & TABLE_OR_PAGE == 0 {
            return Err("a page inside a mapped block");
        }
        Ok((entry & ADDRESS) as usize)
    }

    /// Slot of the level 3 entry for an address below 512 GiB.
    fn page_slot(&mut self, root: usize, address: usize) -> Result<usize, &'static str> {
        let level2 = self.next_level(window(root) + (address >> 30) % ENTRIES * 8)?;
        let level3 = self.next_level(window(level2) + (address >> 21) % ENTRIES * 8)?;
        Ok(window(level3) + (address >> 12) % ENTRIES * 8)
    }

    fn map(&mut self, root: usize, base: usize, size: usize, bits: u64) -> Result<(), &'static str> {
        for address in (base..base + size).step_by(PAGE_SIZE) {
            let slot = self.page_slot(root, address)?;
            write_entry(slot, address as u64 | bits | VALID | TABLE_OR_PAGE);
        }
        Ok(())
    }

    /// Maps memory for the kernel: whole blocks where they fit, else pages. Later mappings of single pages win over
    /// earlier ones, but not inside a block.
    pub fn map_kernel(&mut self, base: usize, size: usize, memory: KernelMemory) -> Result<(), &'static str> {
        let (mut address, end) = (base, base + size);
        let bits = kernel_bits(memory);
        while address < end {
            let level2 = self.next_level(window(self.kernel_root) + (address >> 30) % ENTRIES * 8)?;
            let slot = window(level2) + (address >> 21) % ENTRIES * 8;
            if address % BLOCK_SIZE == 0 && end - address >= BLOCK_SIZE && read_entry(slot) & VALID == 0 {
                write_entry(slot, address as u64 | bits | VALID);
                address += BLOCK_SIZE;
            } else {
                self.map(self.kernel_root, address, PAGE_SIZE, bits)?;
                address += PAGE_SIZE;
            }
        }
        Ok(())
    }

    /// Maps the register page of `address` for the kernel, if it is not mapped.
    pub fn map_registers(&mut self, address: usize) -> Result<(), &'static str> {
        self.map(self.kernel_root, address & !(PAGE_SIZE - 1), PAGE_SIZE, kernel_bits(KernelMemory::Device))
    }

    /// Makes the kernel's tables the ones in use.
    pub fn install_kernel(&self) {
        unsafe extern "C" {
            fn install_kernel_table_low();
        }
        let low = (install_kernel_table_low as *const () as usize).wrapping_sub(KERNEL_OFFSET);
        // SAFETY: the routine lies in the kernel image, which the boot table maps one to one in the lower half; the new
        // table maps the whole kernel image, its stack and all RAM at the addresses that the old one had.
        unsafe {
            asm!("dsb ish", "blr {low}", low = in(reg) low, inout("x0") self.kernel_root => _, out("x30") _);
        }
    }

    /// Creates the table of a task with its regions.
    pub fn add_task(&mut self, task: usize, regions: &[abi::image::Region]) -> Result<(), &'static str> {
        let root = self.allocate(1)?;
        for region in regions {
            self.map(root, region.base as usize, region.size as usize, user_bits(region.access))?;
        }
        // ASID 0 stays unused: the boot table ran with it.
        self.roots[task % MAX_TASKS] = root as u64 | (task as u64 + 1) << 48;
        Ok(())
    }

    /// Prepares page entries for all frames in the table of a task that may hold some.
    ///
    /// The level 3 tables lie side by side, so that the entry of a frame is found by its address alone.
    pub fn add_frames(&mut self, task: usize, frames: (usize, usize)) -> Result<(), &'static str> {
        let (base, end) = (frames.0 & !(BLOCK_SIZE - 1), frames.1);
        self.frames = base;
        let count = (end - base).div_ceil(BLOCK_SIZE);
        self.frame_tables = count;
        let first = self.allocate(count)?;
        let root = (self.roots[task % MAX_TASKS] & ADDRESS) as usize;
        for table in 0..count {
            let address = base + table * BLOCK_SIZE;
            let level2 = self.next_level(window(root) + (address >> 30) % ENTRIES * 8)?;
            let slot = window(level2) + (address >> 21) % ENTRIES * 8;
            if read_entry(slot) & VALID != 0 {
                return Err("a frame pool shares 2 MiB with a task's region");
            }
            write_entry(slot, (first + table * PAGE_SIZE) as u64 | VALID | TABLE_OR_PAGE);
        }
        self.frame_entries[task % MAX_TASKS] = window(first);
        Ok(())
    }

    /// The page entry of a frame lies at this plus eight times the number of its page.
    #[inline]
    fn frame_slots(&self, task: usize) -> usize {
        self.frame_entries[task % MAX_TASKS].wrapping_sub(self.frames / PAGE_SIZE * 8)
    }

    /// See [`kernel::Machine::remap`].
    #[inline]
    pub fn remap(&self, from: Option<usize>, to: Option<usize>, pages: impl Iterator<Item = usize> + Clone) {
        if let Some(from) = from {
            let slots = self.frame_slots(from);
            for page in pages.clone() {
                write_entry(slots.wrapping_add(page * 8), 0);
            }
        }
        if let Some(to) = to {
            let slots = self.frame_slots(to);
            for page in pages.clone() {
                write_entry(slots.wrapping_add(page * 8), (page * PAGE_SIZE) as u64 | FRAME);
            }
        }
        // SAFETY: barriers and TLB maintenance; dropping a translation is always allowed. New entries must be visible to the
        // table walker, and old ones gone, before user code runs again: one sequence for the whole list.
        unsafe {
            asm!("dsb ishst", options(nostack, preserves_flags));
            if let Some(from) = from {
                // Operand of TLBI VAE1: ASID in bits 63..48, page number in 43..0.
                let space = self.roots[from % MAX_TASKS] & !0xffff_ffff_ffff;
                for page in pages {
                    asm!("tlbi vae1, {}", in(reg) space | page as u64, options(nostack, preserves_flags));
                }
                asm!("dsb ish", options(nostack, preserves_flags));
            }
        }
    }

    /// See [`kernel::Machine::unmap_all`].
    pub fn unmap_all(&mut self, task: usize) {
        let first = self.frame_entries[task % MAX_TASKS];
        if first == 0 {
            return;
        }
        for slot in (first..first + self.frame_tables * PAGE_SIZE).step_by(8) {
            write_entry(slot, 0);
        }
        let space = self.roots[task % MAX_TASKS] & !0xffff_ffff_ffff;
        // SAFETY: as in `remap`; all translations of the task's address space are dropped.
        unsafe {
            asm!("dsb ishst", "tlbi aside1, {}", "dsb ish", in(reg) space, options(nostack, preserves_flags));
        }
    }

    /// Makes a task's table the current one.
    #[inline]
    pub fn activate(&self, task: usize) {
        TTBR0_EL1.set(self.roots[task % MAX_TASKS]);
        // The return to user code synchronises.
    }
}

#[inline]
fn read_entry(slot: usize) -> u64 {
    // SAFETY: slots are computed from tables that `allocate` took from the reserved memory, all of which the kernel maps.
    unsafe { (slot as *const u64).read_volatile() }
}

#[inline]
fn write_entry(slot: usize, value: u64) {
    // SAFETY: as in `read_entry`; nothing else refers to that memory but the table walker.
    unsafe { (slot as *mut u64).write_volatile(value) }
}
