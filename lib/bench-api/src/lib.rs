//! Interface of the benchmark task: what to do, and what came of it.
//!
//! Users call [`Bench`]; `tasks/bench` implements [`BenchServer`] and runs [`serve`]. Generated from `bench.idol`.

#![no_std]
#![forbid(unsafe_code)]

mod types;

pub use types::*;

include!(concat!(env!("OUT_DIR"), "/bench.rs"));
