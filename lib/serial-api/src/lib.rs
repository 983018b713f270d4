//! Interface of a serial port driver.
//!
//! Users call [`Serial`]; a driver implements [`SerialServer`] and runs [`serve`]. Generated from `serial.idol`.

#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/serial.rs"));
