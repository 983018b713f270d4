//! Network stack: TCP, UDP, ICMP and ARP in place on leased frames.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
pub mod dhcp;
pub mod reassembly;
pub mod ring;
