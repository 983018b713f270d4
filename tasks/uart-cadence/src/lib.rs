//! Driver for the Cadence UART: everything that can be tested on the host.
//!
//! * [`regs`]: the register file,
//! * [`port`]: the UART behind a trait,
//! * [`input`]: input that nobody has read yet,
//! * [`server`]: all of it as server of `serial-api`.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod input;
pub mod port;
pub mod regs;
pub mod server;
#[cfg(test)]
mod tests;
