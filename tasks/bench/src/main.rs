//! Benchmarks: services for peers, and clients on command.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

#[cfg(not(target_os = "none"))]
fn main() {}
