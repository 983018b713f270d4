//! Interface of an Ethernet MAC driver.
//!
//! The stack calls [`Mac`]; a driver implements [`MacServer`] and runs [`serve`]. Generated from `mac.idol`.

#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/mac.rs"));

/// Bits of [`Info::tx_checksums`] and [`Info::rx_checksums`].
pub mod checksum {
    /// IPv4 header.
    pub const IPV4: u8 = 1 << 0;
    /// TCP over IPv4.
    pub const TCP: u8 = 1 << 1;
    /// UDP over IPv4.
    pub const UDP: u8 = 1 << 2;
}
