//! When to restart a task that has failed, and what to remember of it.
//!
//! Times are microseconds since boot.

#![no_std]
#![forbid(unsafe_code)]

mod log;
mod policy;

pub use log::Log;
pub use policy::{FIRST_WAIT, GOOD_TIME, History, LONGEST_WAIT, Policy};
