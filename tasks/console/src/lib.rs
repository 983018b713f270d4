//! Commands for people, on a serial line: what needs no system call.
//!
//! * [`line`]: editing of the line and its history,
//! * [`command`]: what a line asks for,
//! * [`ttcp`], [`iperf`], [`ping`], [`net`], [`system`]: output in the format of the tool of that name.

#![no_std]
#![forbid(unsafe_code)]

pub mod command;
pub mod iperf;
pub mod line;
pub mod net;
pub mod options;
pub mod ping;
pub mod system;
pub mod ttcp;
