//! Benchmarks: what needs no system call.

#![no_std]
#![forbid(unsafe_code)]

pub mod iperf;
pub mod pattern;
pub mod ping;
pub mod send;
pub mod stream;
pub mod udp_sink;
