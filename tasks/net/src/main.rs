//! The network stack task.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(target_os = "none")]
userlib::entry!(main);

#[cfg(target_os = "none")]
fn main() -> ! {
    loop {
        userlib::wait_for_interrupt();
    }
}

#[cfg(not(target_os = "none"))]
fn main() {}
