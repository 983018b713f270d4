//! AArch64: boot, traps, and the machine below the portable kernel.

mod cache;
mod console;
mod context;
mod counters;
mod gic;
mod machine;
mod mmu;
mod registers;

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::fmt::Write;

use abi::FaultInfo;
use abi::image::{Interrupt, MAX_POOLS, Platform, Pool, Reader};
use cortex_a::registers::{CPACR_EL1, ESR_EL1, FAR_EL1};
use heapless::Vec;
use kernel::Kernel;
use tock_registers::interfaces::{Readable, Writeable};

use context::Context;
use machine::{Machine, TABLE_ENDS};

// Values for boot.S. Memory types by index: 0 Device-nGnRnE, 1 normal write-back, 2 normal non-cacheable.
global_asm!(
    ".equ MAIR_VALUE, {mair}",
    ".equ TCR_VALUE, {tcr}",
    ".equ SCTLR_VALUE, {sctlr}",
    include_str!("boot.S"),
    include_str!("memory.S"),
    mair = const 0x44_ff_00u64,
    tcr = const TCR,
    sctlr = const SCTLR,
);

/// Lower half 32 bits, upper half 39 bits; walks are cached and shared; 4 KiB granules; 40-bit physical addresses.
const TCR: u64 = 32 | 1 << 8 | 1 << 10 | 3 << 12 | 25 << 16 | 1 << 24 | 1 << 26 | 3 << 28 | 2 << 30 | 2 << 32 | 1 << 36;

/// MMU and caches on, stack alignment checked, user code may wait for interrupts; the rest as RES1 demands.
const SCTLR: u64 =
    1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 11 | 1 << 12 | 1 << 16 | 1 << 20 | 1 << 22 | 1 << 23 | 1 << 28 | 1 << 29;

/// The one kernel.
struct Cell(UnsafeCell<Kernel<Machine>>);

// SAFETY: one CPU runs the kernel, with interrupts masked, and `kernel` is called once in an entry.
unsafe impl Sync for Cell {}

static KERNEL: Cell = Cell(UnsafeCell::new(Kernel::new(Machine::UNSET)));

/// The kernel, for one entry.
#[inline(always)]
fn kernel() -> &'static mut Kernel<Machine> {
    // SAFETY: entries come from boot and the exception vectors, one at a time, and each calls this once: see `Cell`. The
    // handlers of the kernel's own failures call it again, and never return to what they interrupted.
    unsafe { &mut *KERNEL.0.get() }
}

unsafe extern "C" {
    /// First byte of the image table, placed by the build tool.
    static __image_table: u8;
    static __image_table_end: u8;
    fn resume(context: *mut Context) -> !;
}

/// Called by boot.S in the upper half, on the kernel stack.
#[unsafe(no_mangle)]
extern "C" fn kernel_main() -> ! {
    CPACR_EL1.write(CPACR_EL1::FPEN::TrapNothing);
    let kernel = kernel();
    if let Err(reason) = boot(kernel) {
        let _ = write!(kernel.machine.console, "\r\nkernel: cannot start: {reason}\r\n");
        halt();
    }
    // SAFETY: the registers of the current task, whose page table `start_all` made the active one.
    unsafe { resume(kernel.context_mut()) }
}

fn boot(kernel: &mut Kernel<Machine>) -> Result<(), &'static str> {
    let start = &raw const __image_table;
    let len = (&raw const __image_table_end as usize).wrapping_sub(start as usize);
    // SAFETY: the build tool reserves this range of the image for the table, and nothing writes to it.
    let bytes = unsafe { core::slice::from_raw_parts(start, len) };
    let image = Reader::new(bytes).ok_or("no image table of this version")?;

    let mut rest = image;
    let platform: Platform = rest.take().ok_or(TABLE_ENDS)?;
    rest.list(|task| kernel.add_task(task).ok()).ok_or("too many tasks, or the image table ends early")?;
    rest.list(|interrupt: Interrupt| kernel.add_interrupt(interrupt).ok()).ok_or("too many interrupts")?;
    let mut pools: Vec<Pool, MAX_POOLS> = Vec::new();
    rest.list(|pool| pools.push(pool).ok()).ok_or("too many frame pools")?;
    let supervisor = rest.take().ok_or(TABLE_ENDS)?;

    kernel.machine.configure(&platform, &pools)?;
    kernel.machine.add_tasks(image, &pools)?;
    for pool in &pools {
        kernel.add_pool(pool)?;
    }
    kernel.start_all(supervisor)
}

#[unsafe(no_mangle)]
extern "C" fn on_synchronous() -> *mut Context {
    const SVC: u64 = 0x15;
    let kernel = kernel();
    let esr = ESR_EL1.get();
    let class = esr >> 26 & 0x3f;
    if class == SVC {
        kernel.system_call();
    } else {
        kernel.exception(explain(class, esr, FAR_EL1.get()));
    }
    kernel.context_mut()
}

/// What an exception from user code means (Arm ARM D17.2.37, ESR_EL1).
fn explain(class: u64, esr: u64, address: u64) -> FaultInfo {
    const ALIGNMENT_FAULT: u64 = 0x21;
    match class {
        // Unknown, traps of system registers, BRK.
        0x00 | 0x07 | 0x0e | 0x18 | 0x3c => FaultInfo::IllegalInstruction,
        0x20 => FaultInfo::Execute { address },
        0x22 | 0x26 => FaultInfo::Alignment { address },
        0x24 if esr & 0x3f == ALIGNMENT_FAULT => FaultInfo::Alignment { address },
        0x24 => FaultInfo::MemoryAccess { address, write: esr & 1 << 6 != 0 },
        _ => FaultInfo::Other { syndrome: esr },
    }
}

#[unsafe(no_mangle)]
extern "C" fn on_interrupt() -> *mut Context {
    let kernel = kernel();
    if let Some(number) = kernel.machine.gic.acknowledge() {
        if number == kernel.machine.timer_interrupt {
            kernel.timer_interrupt();
        } else {
            kernel.device_interrupt(number);
        }
        kernel.machine.gic.end(number);
    }
    kernel.context_mut()
}

#[unsafe(no_mangle)]
extern "C" fn on_system_error() -> *mut Context {
    let kernel = kernel();
    kernel.exception(FaultInfo::Other { syndrome: ESR_EL1.get() });
    kernel.context_mut()
}

/// Called by boot.S for an exception in the kernel: says what is known and stops.
#[unsafe(no_mangle)]
extern "C" fn kernel_trapped(esr: u64, pc: u64, address: u64) -> ! {
    let _ = write!(
        kernel().machine.console,
        "\r\nkernel: exception in the kernel: syndrome {esr:#x}, pc {pc:#x}, address {address:#x}\r\n"
    );
    halt()
}

/// Stops the CPU for good.
fn halt() -> ! {
    loop {
        // SAFETY: waiting; interrupts stay masked in the kernel.
        unsafe { asm!("wfi", options(nomem, nostack, preserves_flags)) }
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let _ = write!(kernel().machine.console, "\r\nkernel: {info}\r\n");
    halt()
}
