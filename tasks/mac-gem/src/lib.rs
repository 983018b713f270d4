//! Driver for the Cadence GEM: everything that can be tested on the host.
//!
//! In the order in which the chip is best read:
//!
//! * [`regs`]: the register file,
//! * [`desc`]: descriptor formats,
//! * [`ring`]: receive and transmit ring, with the rules that the MAC sets for them,
//! * [`arm`]: where frames enter a ring,
//! * [`free`]: frames that are in no ring,
//! * [`driver`]: an exchange with the stack, an interrupt, a tick,
//! * [`device`]: the MAC behind the driver's trait: set-up, doorbell, events,
//! * [`phy`]: negotiation and link,
//! * [`stats`]: what is counted,
//! * [`server`]: all of it as server of `mac-api`,
//! * [`system`]: the real kernel and memory.

#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

pub mod arm;
pub mod desc;
pub mod device;
pub mod driver;
pub mod free;
#[cfg(test)]
mod model;
pub mod phy;
pub mod regs;
pub mod ring;
pub mod server;
pub mod stats;
pub mod system;
#[cfg(test)]
mod tests;
