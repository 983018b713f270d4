//! What a CPU does in its own way: system calls with any number, any address, and all that is forbidden.

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod aarch64;
#[cfg(not(target_os = "none"))]
mod host;

#[cfg(all(target_arch = "aarch64", target_os = "none"))]
pub use aarch64::*;
#[cfg(not(target_os = "none"))]
pub use host::*;
