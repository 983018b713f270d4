//! Waits for interrupts when nobody else wants the CPU.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(target_os = "none")]
userlib::entry!(main);

/// The host has its own way to be idle.
#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
fn main() -> ! {
    loop {
        userlib::wait_for_interrupt();
    }
}
