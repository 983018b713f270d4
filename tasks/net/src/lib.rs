//! Network stack: TCP, UDP, ICMP and ARP in place on leased frames.

#![cfg_attr(target_os = "none", no_std)]
#![forbid(unsafe_code)]
