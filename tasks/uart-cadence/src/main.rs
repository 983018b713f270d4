//! Driver for the Cadence UART.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(target_os = "none")]
mod target;

#[cfg(target_os = "none")]
userlib::entry!(target::main);

/// The host has no such UART; the library is what it tests.
#[cfg(not(target_os = "none"))]
fn main() {}
