//! Interface of the supervisor.
//!
//! Users call [`Supervisor`]; the supervisor implements [`SupervisorServer`] and runs [`serve`]. Generated from `supervisor.idol`.

#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/supervisor.rs"));
