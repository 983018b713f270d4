//! Network stack: TCP, UDP, ICMP and ARP in place on leased frames.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
pub mod clients;
pub mod config;
pub mod device;
pub mod dhcp;
pub mod driver;
pub mod icmp;
pub mod link;
pub mod packet;
pub mod reassembly;
pub mod ring;
pub mod server;
pub mod stack;
pub mod tcp;
pub mod udp;
pub mod window;
