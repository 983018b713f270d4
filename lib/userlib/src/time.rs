//! Ticks and their conversion.

use abi::call::Call;

use crate::arch;

/// Ticks since boot, without a system call where the CPU allows it.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    arch::ticks()
}

/// Ticks per second.
#[inline]
#[must_use]
pub fn tick_rate() -> u64 {
    arch::tick_rate()
}

/// Microseconds since boot.
#[inline]
#[must_use]
pub fn micros() -> u64 {
    to_micros(ticks())
}

/// Converts ticks to microseconds. Exact up to 2^64 / 1,000,000 ticks (three days at 62.5 MHz), then by parts.
#[inline]
#[must_use]
pub fn to_micros(ticks: u64) -> u64 {
    let rate = tick_rate();
    match ticks.checked_mul(1_000_000) {
        Some(scaled) => scaled / rate,
        None => ticks / rate * 1_000_000 + ticks % rate * 1_000_000 / rate,
    }
}

/// Converts microseconds to ticks, rounding up so that a wait is never short.
#[inline]
#[must_use]
pub fn from_micros(micros: u64) -> u64 {
    let rate = tick_rate();
    micros / 1_000_000 * rate + (micros % 1_000_000 * rate).div_ceil(1_000_000)
}

/// Posts `mask` to this task at `deadline` (ticks since boot; at once if it is past). Replaces the timer that was set.
#[inline]
pub fn set_timer(deadline: u64, mask: u32) {
    arch::syscall(Call::SetTimer, [deadline as usize, mask as usize, (deadline >> 32) as usize, 0, 0, 0, 0, 0]);
}

/// Clears the timer.
#[inline]
pub fn cancel_timer() {
    arch::syscall(Call::SetTimer, [0; 8]);
}
