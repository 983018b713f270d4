//! Network stack: TCP, UDP, ICMP and ARP in place on leased frames.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
pub mod clients;
pub mod device;
pub mod dhcp;
pub mod icmp;
pub mod stack;
pub mod tcp;
pub mod udp;
pub mod window;
pub mod link;
pub mod packet;
pub mod reassembly;
pub mod ring;
