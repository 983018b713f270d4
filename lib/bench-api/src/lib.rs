//! Interface of the benchmark task: what to do, and what came of it.

#![no_std]
#![forbid(unsafe_code)]

mod types;

pub use types::*;
