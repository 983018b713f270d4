//! Driver for the Cadence GEM.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(target_os = "none")]
userlib::entry!(main);

#[cfg(target_os = "none")]
fn main() -> ! {
    loop {}
}

#[cfg(not(target_os = "none"))]
fn main() {}
