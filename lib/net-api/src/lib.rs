//! Interface of the network stack, and sockets for its clients.
//!
//! Generated from `net.idol`: [`Net`], the client; [`NetServer`] and [`serve`], for the stack. On top of it, for tasks:
//! [`Network`], [`TcpStream`], [`TcpListener`] and [`UdpSocket`].
//!
//! A socket's buffers lie in the *window*, memory that the client shares with the stack. Received bytes are read, and bytes
//! to send are written, where they are; [`Net::step`] moves on, in both directions at a time.

#![no_std]
#![forbid(unsafe_code)]

mod client;
mod types;

pub use client::{Failure, Network, TcpListener, TcpStream, UdpSocket};
pub use types::*;

include!(concat!(env!("OUT_DIR"), "/net.rs"));
