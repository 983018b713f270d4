//! What the portable kernel asks of an AArch64 board.

use core::arch::asm;

use abi::PAGE_SIZE;
use abi::frame::Direction;
use abi::image::{Image, Platform, Pool, Quiesce, Reader};
use cortex_a::registers::{CNTFRQ_EL0, CNTV_CTL_EL0, CNTV_CVAL_EL0, CNTVCT_EL0, CPACR_EL1};
use kernel::Sample;
use tock_registers::interfaces::{Readable, Writeable};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::cache;
use super::console::Console;
use super::context::Context;
use super::gic::Gic;
use super::mmu::{KernelMemory, PageTables, window};
use super::registers::{read, write};

// PSCI functions (ARM DEN 0022, 5.1); the SMC conduit, which TF-A and QEMU offer to EL1.
const PSCI_SYSTEM_OFF: u64 = 0x8400_0008;
const PSCI_SYSTEM_RESET: u64 = 0x8400_0009;

/// The hardware of one board.
#[derive(Debug)]
pub struct Machine {
    /// Page tables.
    pub tables: PageTables,
    /// Interrupt controller.
    pub gic: Gic,
    /// The kernel's output.
    pub console: Console,
    /// Number of the timer's interrupt.
    pub timer_interrupt: u32,
    vectors_enabled: bool,
}

impl Machine {
    /// A machine before it is known which.
    pub const UNSET: Self = Self {
        tables: PageTables::UNSET,
        gic: Gic::UNSET,
        console: Console::UNSET,
        timer_interrupt: 0,
        vectors_enabled: true,
    };

    /// Builds the kernel's page tables from the board's facts, then sets up console, interrupts and counters.
    pub fn configure(&mut self, platform: &Platform, pools: &[Pool]) -> Result<(), &'static str> {
        self.tables.configure((platform.tables.0 as usize, platform.tables.1 as usize))?;
        self.map_memory(platform)?;
        let console = &platform.console;
        let registers = platform.interrupt_controller.iter().chain([&console.data, &console.status]);
        for &address in registers.chain(console.init.iter().map(|(address, _)| address)) {
            self.tables.map_registers(address as usize)?;
        }
        for step in pools.iter().flat_map(|pool| &pool.quiesce) {
            let (Quiesce::Write { address, .. } | Quiesce::Poll { address, .. }) = step;
            self.tables.map_registers(*address as usize)?;
        }
        self.tables.install_kernel();
        self.console.configure(console);
        let &[distributor, cpu] = platform.interrupt_controller.as_slice() else {
            return Err("a GICv2 has two register blocks");
        };
        self.gic.configure(distributor as usize, cpu as usize);
        self.timer_interrupt = platform.timer_interrupt;
        self.gic.prepare(self.timer_interrupt);
        self.gic.enable(self.timer_interrupt, true);
        super::counters::open();
        if cache::reported_line() < cache::LINE {
            return Err("the data cache has shorter lines than the kernel assumes");
        }
        Ok(())
    }

    /// Maps all RAM as data, but the kernel's code and constants as what they are.
    fn map_memory(&mut self, platform: &Platform) -> Result<(), &'static str> {
        unsafe extern "C" {
            static __kernel_text_start: u8;
            static __kernel_text_end: u8;
            static __kernel_rodata_start: u8;
            static __kernel_rodata_end: u8;
        }
        let physical = |symbol: *const u8| (symbol as usize).wrapping_sub(window(0));
        let text = physical(&raw const __kernel_text_start)..physical(&raw const __kernel_text_end);
        let rodata = physical(&raw const __kernel_rodata_start)..physical(&raw const __kernel_rodata_end);
        let pages = |end: usize| end.next_multiple_of(PAGE_SIZE);
        self.tables.map_kernel(text.start, pages(text.end) - text.start, KernelMemory::Text)?;
        self.tables.map_kernel(rodata.start, pages(rodata.end) - rodata.start, KernelMemory::ReadOnly)?;
        let ram = platform.ram.0 as usize..(platform.ram.0 + platform.ram.1) as usize;
        self.tables.map_kernel(ram.start, text.start - ram.start, KernelMemory::Data)?;
        self.tables.map_kernel(pages(rodata.end), ram.end - pages(rodata.end), KernelMemory::Data)
    }

    /// Creates the page tables of all tasks from a second reading of the image table.
    pub fn add_tasks(&mut self, mut image: Reader<'_>, pools: &[Pool]) -> Result<(), &'static str> {
        let mut result = Ok(());
        let mut index = 0;
        let frames = pools.iter().fold(None, |all, pool| {
            let (start, end) = (pool.base as usize, pool.base as usize + usize::from(pool.count) * PAGE_SIZE);
            Some(all.map_or((start, end), |(first, last): (usize, usize)| (first.min(start), last.max(end))))
        });
        image.take::<Platform>().ok_or(TABLE_ENDS)?;
        image
            .list(|task: abi::image::Task| {
                result = self.tables.add_task(index, &task.regions);
                let holds =
                    pools.iter().any(|pool| pool.holders.iter().any(|&(holder, _)| usize::from(holder) == index));
                if let Some(frames) = frames.filter(|_| holds && result.is_ok()) {
                    result = self.tables.add_frames(index, frames);
                }
                index += 1;
                result.is_ok().then_some(())
            })
            .ok_or(result.err().unwrap_or(TABLE_ENDS))
    }
}

/// The image table is cut short or not one.
pub const TABLE_ENDS: &str = "the image table ends early";

const _: fn(&Image) = |image| {
    // The order in which the table is read; see `Reader`.
    let Image { platform: _, tasks: _, interrupts: _, pools: _, supervisor: _ } = image;
};

impl kernel::Machine for Machine {
    type Context = Context;

    #[inline]
    fn load<T: FromBytes>(&self, address: usize) -> T {
        // SAFETY: the kernel checked that the range is RAM of a task, and aligned; any bytes are a `T`.
        unsafe { (window(address) as *const T).read() }
    }

    #[inline]
    fn store<T: IntoBytes + Immutable>(&mut self, address: usize, value: &T) {
        // SAFETY: as in `load`; no reference into task memory exists in the kernel.
        unsafe { core::ptr::copy_nonoverlapping(value, window(address) as *mut T, 1) }
    }

    #[inline]
    fn copy(&mut self, from: usize, to: usize, len: usize) {
        if len == 0 {
            return;
        }
        let (source, target) = (window(from) as *const u8, window(to) as *mut u8);
        // SAFETY: both ranges are RAM of tasks. They overlap only where two tasks share a window, which `copy` allows.
        unsafe {
            if from.abs_diff(to) >= len {
                core::ptr::copy_nonoverlapping(source, target, len);
            } else {
                core::ptr::copy(source, target, len);
            }
        }
    }

    #[inline]
    fn read_bytes(&self, address: usize, to: &mut [u8]) {
        // SAFETY: as in `load`; `to` is kernel memory, so the ranges do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(window(address) as *const u8, to.as_mut_ptr(), to.len()) }
    }

    #[inline]
    fn write_bytes(&mut self, address: usize, from: &[u8]) {
        // SAFETY: as in `read_bytes`.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), window(address) as *mut u8, from.len()) }
    }

    #[inline]
    fn remap(&mut self, from: Option<usize>, to: Option<usize>, pages: impl Iterator<Item = usize> + Clone) {
        self.tables.remap(from, to, pages);
    }

    fn unmap_all(&mut self, task: usize) {
        self.tables.unmap_all(task);
    }

    #[inline]
    fn release_to_device(&mut self, address: usize, len: usize, direction: Direction) -> usize {
        match direction {
            Direction::Receive => cache::invalidate(window(address), len),
            Direction::Transmit => cache::clean(window(address), len),
        }
    }

    #[inline]
    fn acquire_from_device(&mut self, address: usize, len: usize) -> usize {
        cache::invalidate(window(address), len)
    }

    #[inline]
    fn finish_maintenance(&mut self) {
        // SAFETY: a barrier.
        unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
    }

    fn quiesce(&mut self, pool: &Pool) -> bool {
        pool.quiesce.iter().all(|step| match *step {
            Quiesce::Write { address, value } => {
                write(address as usize, value);
                true
            }
            Quiesce::Poll { address, mask, expected, tries } => {
                (0..tries).any(|_| read(address as usize) & mask == expected)
            }
        })
    }

    #[inline]
    fn sample(&self) -> Sample {
        Sample { ticks: CNTVCT_EL0.get(), instructions: super::counters::instructions() }
    }

    #[inline]
    fn ticks(&self) -> u64 {
        CNTVCT_EL0.get()
    }

    fn tick_rate(&self) -> u64 {
        CNTFRQ_EL0.get()
    }

    #[inline]
    fn set_alarm(&mut self, deadline: Option<u64>) {
        match deadline {
            Some(deadline) => {
                CNTV_CVAL_EL0.set(deadline);
                CNTV_CTL_EL0.set(1);
            }
            None => CNTV_CTL_EL0.set(0),
        }
    }

    fn prepare_interrupt(&mut self, number: u32) {
        self.gic.prepare(number);
    }

    #[inline]
    fn enable_interrupt(&mut self, number: u32, enable: bool) {
        self.gic.enable(number, enable);
    }

    #[inline]
    fn switch(&mut self, to: usize, vectors: bool) {
        if vectors != self.vectors_enabled {
            self.vectors_enabled = vectors;
            // The return to user code synchronises.
            if vectors {
                CPACR_EL1.write(CPACR_EL1::FPEN::TrapNothing);
            } else {
                CPACR_EL1.write(CPACR_EL1::FPEN::TrapEl0);
            }
        }
        self.tables.activate(to);
    }

    #[inline]
    fn move_vectors(&mut self, save: Option<&mut Context>, load: &Context) {
        if let Some(save) = save {
            save.save_vectors();
        }
        load.load_vectors();
    }

    fn log(&mut self, bytes: &[u8]) {
        self.console.write(bytes);
    }

    fn power(&mut self, reset: bool) -> ! {
        let function = if reset { PSCI_SYSTEM_RESET } else { PSCI_SYSTEM_OFF };
        // SAFETY: PSCI calls take no memory; these two do not return.
        unsafe { asm!("smc #0", in("x0") function, options(nostack)) };
        super::halt()
    }
}
