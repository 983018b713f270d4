//! Host: no kernel. Lets the libraries of tasks build for their tests.

use abi::call::Call;

pub(crate) fn syscall(call: Call, _args: [usize; 8]) -> [usize; 8] {
    panic!("system call {call:?} on the host: only the target has a kernel")
}

/// Exists for the target only.
pub fn wait_for_interrupt() {
    core::hint::spin_loop();
}

/// Sum of 32-bit words in the machine's byte order: what checksums of packets are made of.
#[must_use]
pub fn sum_words(blocks: &[[u8; 64]]) -> u64 {
    let words = blocks.iter().flat_map(|block| block.as_chunks::<4>().0);
    words.map(|word| u64::from(u32::from_ne_bytes(*word))).sum()
}

/// Not counted on the host.
pub fn instructions() -> u32 {
    0
}

pub(crate) fn ticks() -> u64 {
    0
}

pub(crate) fn tick_rate() -> u64 {
    1_000_000
}

pub(crate) fn release_to_device() {}

pub(crate) fn acquire_from_device() {}
