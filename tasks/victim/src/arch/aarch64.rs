//! AArch64.
//!
//! The safety of these functions is that of the kernel: whatever a task does, it harms itself at most. Within this task
//! nothing but the shared window and the two variables of `perform` outlives a step.

#![allow(unsafe_code)]

use core::arch::asm;

/// Any system call with any arguments.
pub fn syscall(number: u64, args: [u64; 8]) -> [u64; 8] {
    let mut r = args;
    // SAFETY: x0..x7 are declared, the kernel preserves the rest. What the arguments name may be written: the tests name
    // the shared window, frames, or memory that is not this task's.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inout("x0") r[0], inout("x1") r[1], inout("x2") r[2], inout("x3") r[3],
            inout("x4") r[4], inout("x5") r[5], inout("x6") r[6], inout("x7") r[7],
            options(nostack),
        );
    }
    r
}

/// Loads from any address.
pub fn load(address: u64) -> u64 {
    let value;
    // SAFETY: reads memory or faults.
    unsafe { asm!("ldr {}, [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags)) }
    value
}

/// Stores to any address.
pub fn store(address: u64, value: u64) {
    // SAFETY: the tests name the window, a frame, or memory where the store faults.
    unsafe { asm!("str {}, [{}]", in(reg) value, in(reg) address, options(nostack, preserves_flags)) }
}

/// Loads a byte from any address.
pub fn load_byte(address: u64) -> u8 {
    let value: u32;
    // SAFETY: as `load`.
    unsafe { asm!("ldrb {:w}, [{}]", out(reg) value, in(reg) address, options(nostack, readonly, preserves_flags)) }
    value as u8
}

/// Stores a byte to any address.
pub fn store_byte(address: u64, value: u8) {
    // SAFETY: as `store`.
    unsafe { asm!("strb {:w}, [{}]", in(reg) u32::from(value), in(reg) address, options(nostack, preserves_flags)) }
}

/// Goes to any address.
pub fn jump(address: u64) {
    // SAFETY: the tests name addresses without code, where it faults.
    unsafe { asm!("blr {}", in(reg) address, clobber_abi("C")) }
}

/// Executes what it may not.
pub fn illegal(which: u64) {
    // SAFETY: none of these does anything at EL0 but fault.
    unsafe {
        match which {
            0 => asm!("udf #0"),
            1 => asm!("brk #7"),
            2 => asm!("mrs {}, sctlr_el1", out(reg) _),
            _ => asm!("msr ttbr0_el1, xzr"),
        }
    }
}

/// Fills all vector registers from `seed`, waits until `until`, and counts those that changed.
pub fn vectors(seed: u64, until: u64) -> u64 {
    let mut changed = 0u64;
    // SAFETY: all registers that it writes are declared.
    unsafe {
        asm!(
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "add {t}, {seed}, #\\n",
            "dup v\\n\\().2d, {t}",
            ".endr",
            "1: isb",
            "mrs {t}, cntvct_el0",
            "cmp {t}, {until}",
            "b.lo 1b",
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "add {e}, {seed}, #\\n",
            "umov {t}, v\\n\\().d[0]",
            "cmp {t}, {e}",
            "cinc {changed}, {changed}, ne",
            "umov {t}, v\\n\\().d[1]",
            "cmp {t}, {e}",
            "cinc {changed}, {changed}, ne",
            ".endr",
            seed = in(reg) seed, until = in(reg) until, changed = inout(reg) changed, t = out(reg) _, e = out(reg) _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _,
            out("v24") _, out("v25") _, out("v26") _, out("v27") _, out("v28") _, out("v29") _, out("v30") _, out("v31") _,
            options(nostack, nomem),
        );
    }
    changed
}

/// Counts halves of vector registers that hold one of the 32 values from `value` on.
pub fn find_vectors(value: u64) -> u64 {
    let mut found = 0u64;
    // SAFETY: reads registers.
    unsafe {
        asm!(
            ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
            "umov {t}, v\\n\\().d[0]",
            "sub {t}, {t}, {value}",
            "cmp {t}, #32",
            "cinc {found}, {found}, lo",
            "umov {t}, v\\n\\().d[1]",
            "sub {t}, {t}, {value}",
            "cmp {t}, #32",
            "cinc {found}, {found}, lo",
            ".endr",
            value = in(reg) value, found = inout(reg) found, t = out(reg) _,
            options(nostack, nomem),
        );
    }
    found
}

/// Sets the floating-point control register and returns what it was.
pub fn rounding(value: u64) -> u64 {
    let before;
    // SAFETY: the tests set rounding modes, and this task computes nothing with fractions.
    unsafe { asm!("mrs {}, fpcr", "msr fpcr, {}", out(reg) before, in(reg) value, options(nostack, nomem)) }
    before
}

/// Fills the integer registers, makes a system call, waits, and counts registers that changed.
///
/// x0..x7 carry the call's results, x8 its number; x16 and up to x18 belong to nobody here; x19 and x29 are the compiler's.
pub fn registers(seed: u64, until: u64) -> u64 {
    let mut changed = 0u64;
    // SAFETY: all registers that it writes are declared; call 10, `Time`, touches no memory.
    unsafe {
        asm!(
            "mov x9, x7",
            "mov x10, x6",
            ".irp n,11,12,13,14,15,16,17,20,21,22,23,24,25,26,27,28",
            "add x\\n, x9, #\\n",
            ".endr",
            "mov x8, #10",
            "svc #0",
            "1: isb",
            "mrs x0, cntvct_el0",
            "cmp x0, x10",
            "b.lo 1b",
            "mov x1, #0",
            ".irp n,11,12,13,14,15,16,17,20,21,22,23,24,25,26,27,28",
            "add x0, x9, #\\n",
            "cmp x0, x\\n",
            "cinc x1, x1, ne",
            ".endr",
            inout("x7") seed => _, inout("x6") until => _, inout("x1") changed,
            out("x0") _, out("x2") _, out("x3") _, out("x4") _, out("x5") _, out("x8") _, out("x9") _, out("x10") _,
            out("x11") _, out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _, out("x17") _,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _, out("x25") _, out("x26") _,
            out("x27") _, out("x28") _,
            options(nostack),
        );
    }
    changed
}
