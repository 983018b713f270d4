//! The counters that accounting and benchmarks read (Arm ARM D13, performance monitors).

use core::arch::asm;

use cortex_a::registers::CNTKCTL_EL1;
use tock_registers::interfaces::Writeable;

/// Event number of architecturally executed instructions.
const INST_RETIRED: u64 = 0x08;

/// Starts event counter 0 on executed instructions, and lets user code read it and the virtual timer count.
pub fn open() {
    CNTKCTL_EL1.write(CNTKCTL_EL1::EL0VCTEN::SET);
    // SAFETY: writes performance monitor registers only. PMCR.E starts the counters, PMCNTENSET bit 0 is counter 0,
    // PMUSERENR.ER (bit 3) lets EL0 read event counters.
    unsafe {
        asm!(
            "msr pmevtyper0_el0, {event}",
            "msr pmevcntr0_el0, xzr",
            "msr pmcntenset_el0, {one}",
            "mrs {pmcr}, pmcr_el0",
            "orr {pmcr}, {pmcr}, #1",
            "msr pmcr_el0, {pmcr}",
            "msr pmuserenr_el0, {user}",
            "isb",
            event = in(reg) INST_RETIRED,
            one = in(reg) 1u64,
            user = in(reg) 1u64 << 3,
            pmcr = out(reg) _,
            options(nostack),
        );
    }
}

/// Instructions executed, modulo 2^32.
#[inline]
pub fn instructions() -> u32 {
    let count: u64;
    // SAFETY: reads a counter.
    unsafe { asm!("mrs {}, pmevcntr0_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count as u32
}
