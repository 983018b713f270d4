//! Waits for interrupts when nobody else wants the CPU.

#![no_std]
#![no_main]
#![deny(unsafe_code)]

userlib::entry!(main);

fn main() -> ! {
    loop {
        userlib::wait_for_interrupt();
    }
}
