//! The kernel binary: the portable kernel on one machine.

#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(target_os = "none", no_main)]

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
#[path = "arch/aarch64/mod.rs"]
mod arch;

/// The kernel runs on boards only.
#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("The kernel runs on boards only: `cargo xtask run` builds an image and boots it.");
    std::process::exit(2);
}
