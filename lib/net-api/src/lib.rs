//! Interface of the network stack, and sockets for its clients.

#![no_std]
#![forbid(unsafe_code)]

mod types;

pub use types::*;

include!(concat!(env!("OUT_DIR"), "/net.rs"));
