//! Interface of a task to measure and test with.
//!
//! Users call [`Partner`]; `tasks/partner` implements [`PartnerServer`] and runs [`serve`]. Generated from `partner.idol`.

#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/partner.rs"));
