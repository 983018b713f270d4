//! Commands for people, on a serial line.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

mod task;

#[cfg(target_os = "none")]
userlib::entry!(main);

/// The host has no tasks; the library is what it tests.
#[cfg(not(target_os = "none"))]
fn main() {
    let _: fn() -> ! = task::run;
}

#[cfg(target_os = "none")]
fn main() -> ! {
    task::run()
}
