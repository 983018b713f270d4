//! AArch64: traps, start-up, counters.

use core::arch::{asm, global_asm};

use abi::call::Call;

// The stack pointer is set by the kernel. `.data` is copied from its read-only image and `.bss` cleared here, on each start,
// so that a restarted task finds the memory that a new one finds. All symbols are 8-byte aligned by the linker script.
global_asm!(
    ".pushsection .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "    adrp x0, __data_start",
    "    add  x0, x0, :lo12:__data_start",
    "    adrp x1, __data_end",
    "    add  x1, x1, :lo12:__data_end",
    "    adrp x2, __data_load",
    "    add  x2, x2, :lo12:__data_load",
    "1:  cmp  x0, x1",
    "    b.hs 2f",
    "    ldr  x3, [x2], #8",
    "    str  x3, [x0], #8",
    "    b    1b",
    "2:  adrp x0, __bss_start",
    "    add  x0, x0, :lo12:__bss_start",
    "    adrp x1, __bss_end",
    "    add  x1, x1, :lo12:__bss_end",
    "3:  cmp  x0, x1",
    "    b.hs 4f",
    "    str  xzr, [x0], #8",
    "    b    3b",
    "4:  bl   task_main",
    "    brk  #0",
    ".popsection",
);

// Copies on the way of every packet: 64 bytes per turn with the vector registers where the target has them.
// `memmove` and the rest come from compiler_builtins.
#[cfg(target_feature = "neon")]
global_asm!(include_str!("memcpy_neon.S"));

/// Traps into the kernel.
#[inline(always)]
pub(crate) fn syscall(call: Call, args: [usize; 8]) -> [usize; 8] {
    let mut r = args;
    // SAFETY: the kernel preserves every register but x0..x7, which are declared, and touches only memory
    // that the arguments name; the callers in `ipc`, `frames` and `kernel` derive those from live references.
    unsafe {
        asm!(
            "svc #0",
            in("x8") call as usize,
            inout("x0") r[0], inout("x1") r[1], inout("x2") r[2], inout("x3") r[3],
            inout("x4") r[4], inout("x5") r[5], inout("x6") r[6], inout("x7") r[7],
            options(nostack),
        );
    }
    r
}

/// Waits until an interrupt is pending (idle task).
#[inline(always)]
pub fn wait_for_interrupt() {
    // SAFETY: a hint; the kernel leaves it untrapped.
    unsafe { asm!("wfi", options(nostack, nomem, preserves_flags)) }
}

/// Sum of 32-bit words in the machine's byte order: what checksums of packets are made of.
///
/// UADALP adds four words to two sums at once; the compiler does not find it by itself.
#[cfg(target_feature = "neon")]
#[inline]
#[must_use]
pub fn sum_words(blocks: &[[u8; 64]]) -> u64 {
    use core::arch::aarch64::{uint32x4_t, vaddq_u64, vaddvq_u64, vdupq_n_u64, vpadalq_u32};

    #[inline]
    #[target_feature(enable = "neon")]
    fn sum(blocks: &[[u8; 64]]) -> u64 {
        let mut sums = [vdupq_n_u64(0); 4];
        for block in blocks {
            let quarters: [uint32x4_t; 4] = zerocopy::transmute!(*block);
            for (sum, quarter) in sums.iter_mut().zip(quarters) {
                *sum = vpadalq_u32(*sum, quarter);
            }
        }
        let [a, b, c, d] = sums;
        vaddvq_u64(vaddq_u64(vaddq_u64(a, b), vaddq_u64(c, d)))
    }

    // SAFETY: this is compiled only where every function may use NEON.
    unsafe { sum(blocks) }
}

/// Sum of 32-bit words in the machine's byte order: what checksums of packets are made of.
#[cfg(not(target_feature = "neon"))]
#[must_use]
pub fn sum_words(blocks: &[[u8; 64]]) -> u64 {
    let words = blocks.iter().flat_map(|block| block.as_chunks::<4>().0);
    words.map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

/// Instructions executed by the CPU since boot, modulo 2^32 (PMU event 0x08); 0 where the CPU or emulator does not count.
#[inline(always)]
pub fn instructions() -> u32 {
    let count: u64;
    // SAFETY: the kernel programs counter 0 and opens it for reading (PMUSERENR_EL0.ER).
    unsafe { asm!("mrs {}, pmevcntr0_el0", out(reg) count, options(nostack, nomem, preserves_flags)) }
    count as u32
}

/// Ticks since boot.
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    let count: u64;
    // SAFETY: the kernel opens the virtual counter for user code (CNTKCTL_EL1.EL0VCTEN).
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, nomem, preserves_flags)) }
    count
}

/// Ticks per second.
#[inline(always)]
pub(crate) fn tick_rate() -> u64 {
    let rate: u64;
    // SAFETY: readable at EL0 with CNTKCTL_EL1.EL0VCTEN set.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) rate, options(nostack, nomem, preserves_flags)) }
    rate
}

/// Orders memory writes before a register write that hands the memory to a device (Arm ARM, B2.3.12 DSB).
#[inline(always)]
pub(crate) fn release_to_device() {
    // SAFETY: a barrier.
    unsafe { asm!("dsb st", options(nostack, preserves_flags)) }
}

/// Orders a read that told us the device is done before reads of what it wrote.
#[inline(always)]
pub(crate) fn acquire_from_device() {
    // SAFETY: a barrier.
    unsafe { asm!("dmb ld", options(nostack, preserves_flags)) }
}
