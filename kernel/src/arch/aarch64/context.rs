//! Registers of a task.

use core::arch::asm;

/// Registers of a task that is not running. `boot.S` knows the layout of the integer part.
#[derive(Clone, Debug)]
#[repr(C, align(16))]
pub struct Context {
    x: [u64; 31],
    sp: u64,
    pc: u64,
    spsr: u64,
    vectors: Vectors,
}

/// The vector registers, which only a task switch moves: the kernel does not use them.
#[derive(Clone, Debug)]
#[repr(C, align(16))]
struct Vectors {
    q: [u128; 32],
    fpcr: u64,
    fpsr: u64,
}

/// EL0, AArch64, no exception masked.
const SPSR_USER: u64 = 0;

impl Context {
    /// Stores the CPU's vector registers here.
    #[inline]
    pub fn save_vectors(&mut self) {
        // SAFETY: stores 528 bytes into `self.vectors`, which has exactly that layout; reads registers only.
        unsafe {
            asm!(
                ".arch_extension fp", ".arch_extension simd",
                "stp q0, q1, [{0}, #0]", "stp q2, q3, [{0}, #32]", "stp q4, q5, [{0}, #64]", "stp q6, q7, [{0}, #96]",
                "stp q8, q9, [{0}, #128]", "stp q10, q11, [{0}, #160]", "stp q12, q13, [{0}, #192]", "stp q14, q15, [{0}, #224]",
                "stp q16, q17, [{0}, #256]", "stp q18, q19, [{0}, #288]", "stp q20, q21, [{0}, #320]", "stp q22, q23, [{0}, #352]",
                "stp q24, q25, [{0}, #384]", "stp q26, q27, [{0}, #416]", "stp q28, q29, [{0}, #448]", "stp q30, q31, [{0}, #480]",
                "mrs {1}, fpcr", "mrs {2}, fpsr", "stp {1}, {2}, [{3}]",
                in(reg) &raw mut self.vectors.q, out(reg) _, out(reg) _, in(reg) &raw mut self.vectors.fpcr,
                options(nostack, preserves_flags),
            );
        }
    }

    /// Loads the CPU's vector registers from here.
    #[inline]
    pub fn load_vectors(&self) {
        // SAFETY: loads 528 bytes from `self.vectors`; the kernel is compiled without vector registers, so none of
        // its values are lost.
        unsafe {
            asm!(
                ".arch_extension fp", ".arch_extension simd",
                "ldp q0, q1, [{0}, #0]", "ldp q2, q3, [{0}, #32]", "ldp q4, q5, [{0}, #64]", "ldp q6, q7, [{0}, #96]",
                "ldp q8, q9, [{0}, #128]", "ldp q10, q11, [{0}, #160]", "ldp q12, q13, [{0}, #192]", "ldp q14, q15, [{0}, #224]",
                "ldp q16, q17, [{0}, #256]", "ldp q18, q19, [{0}, #288]", "ldp q20, q21, [{0}, #320]", "ldp q22, q23, [{0}, #352]",
                "ldp q24, q25, [{0}, #384]", "ldp q26, q27, [{0}, #416]", "ldp q28, q29, [{0}, #448]", "ldp q30, q31, [{0}, #480]",
                "ldp {1}, {2}, [{3}]", "msr fpcr, {1}", "msr fpsr, {2}",
                in(reg) &raw const self.vectors.q, out(reg) _, out(reg) _, in(reg) &raw const self.vectors.fpcr,
                options(nostack, preserves_flags, readonly),
            );
        }
    }
}

impl kernel::Context for Context {
    const CLEAR: Self =
        Self { x: [0; 31], sp: 0, pc: 0, spsr: SPSR_USER, vectors: Vectors { q: [0; 32], fpcr: 0, fpsr: 0 } };

    fn reset(&mut self, entry: usize, stack: usize) {
        *self = Self::CLEAR;
        self.pc = entry as u64;
        self.sp = stack as u64;
    }

    #[inline]
    fn call_number(&self) -> usize {
        self.x[8] as usize
    }

    #[inline]
    fn argument(&self, index: usize) -> usize {
        self.x[index & 7] as usize
    }

    #[inline]
    fn set_result(&mut self, index: usize, value: usize) {
        self.x[index & 7] = value as u64;
    }

    fn program_counter(&self) -> usize {
        self.pc as usize
    }

    fn stack_pointer(&self) -> usize {
        self.sp as usize
    }
}
