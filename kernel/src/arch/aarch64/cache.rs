//! Data cache maintenance by address (Arm ARM D7.5), to the point of coherency.

use core::arch::asm;

/// Bytes in a line of the smallest data cache; 64 on every A-profile core that we run on, checked at boot.
pub const LINE: usize = 64;

/// The line size that the CPU reports (CTR_EL0.DminLine).
pub fn reported_line() -> usize {
    let ctr: u64;
    // SAFETY: reads an identification register.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack, preserves_flags)) };
    4 << (ctr >> 16 & 0xf)
}

/// Applies an instruction to each line of a range and returns how many there were. Four lines a turn: this runs over
/// each frame twice.
macro_rules! each_line {
    ($instruction:literal, $address:expr, $len:expr) => {{
        let (address, len): (usize, usize) = ($address, $len);
        let first = address / LINE;
        let lines = (address + len).div_ceil(LINE) - first;
        let mut line = first * LINE;
        for _ in 0..lines / 4 {
            // SAFETY: the kernel maps the range; the callers use invalidation only on frames that the device holds, whose content
            // in the cache nobody needs.
            unsafe {
                asm!(
                    concat!("dc ", $instruction, ", {0}"),
                    concat!("add {1}, {0}, #64\n dc ", $instruction, ", {1}"),
                    concat!("add {1}, {0}, #128\n dc ", $instruction, ", {1}"),
                    concat!("add {1}, {0}, #192\n dc ", $instruction, ", {1}"),
                    in(reg) line, out(reg) _, options(nostack, preserves_flags),
                );
            }
            line += 4 * LINE;
        }
        for _ in 0..lines % 4 {
            // SAFETY: as above.
            unsafe { asm!(concat!("dc ", $instruction, ", {}"), in(reg) line, options(nostack, preserves_flags)) };
            line += LINE;
        }
        lines
    }};
}

/// Writes dirty lines back to memory.
#[inline]
pub fn clean(address: usize, len: usize) -> usize {
    each_line!("cvac", address, len)
}

/// Forgets lines without writing them back.
#[inline]
pub fn invalidate(address: usize, len: usize) -> usize {
    each_line!("ivac", address, len)
}
