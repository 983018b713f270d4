//! System calls, start-up code and configuration for tasks.
//!
//! Everything a task does with the outside world goes through this crate:
//!
//! * [`ipc`]: messages, replies, borrows, notifications;
//! * [`frames`]: arming, completing and listing frames (drivers);
//! * [`kernel`]: supervision, counters, power, for tasks with the privilege;
//! * [`config`]: what the build knows: slots, peripherals, notifications, values;
//! * [`memory`]: DMA memory, shared windows, register blocks;
//! * [`time`]: ticks and their conversion;
//! * [`entry!`]: where a task starts.
//!
//! The `unsafe` of user space lives in [`arch`](self) (traps and start-up) and
//! [`memory`]. On the host the crate builds so that the libraries of tasks can be tested; a
//! system call there panics.

#![no_std]

#[cfg_attr(all(target_arch = "aarch64", target_os = "none"), path = "arch/aarch64.rs")]
#[cfg_attr(not(target_os = "none"), path = "arch/host.rs")]
mod arch;

pub mod config;
pub mod frames;
pub mod ipc;
pub mod kernel;
pub mod memory;
#[cfg(target_os = "none")]
mod panic;
pub mod time;

pub use abi;
pub use arch::{instructions, sum_words, wait_for_interrupt};
pub use ipc::{FrameList, Received, RecvBuffers};

/// Names the function with which the task starts: `fn() -> !`.
///
/// ```ignore
/// userlib::entry!(main);
/// fn main() -> ! { loop { userlib::wait_for_interrupt() } }
/// ```
#[macro_export]
macro_rules! entry {
    ($function:path) => {
        /// Called by the start-up code once memory is set up.
        #[cfg(target_os = "none")]
        #[allow(unsafe_code)]
        // SAFETY: the start-up code refers to this one symbol by name, and calls it once.
        #[unsafe(export_name = "task_main")]
        extern "C" fn task_main() -> ! {
            let main: fn() -> ! = $function;
            main()
        }
    };
}
