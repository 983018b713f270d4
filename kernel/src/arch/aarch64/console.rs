//! The kernel's polled output.

use super::registers::{read, write};

/// Polls of a full transmitter before a byte is given up: a dead UART must not stop the system.
const PATIENCE: u32 = 1_000_000;

/// A transmitter as the image table describes it.
#[derive(Debug)]
pub struct Console {
    data: usize,
    status: usize,
    full: u32,
}

impl Console {
    /// No output, until [`configure`](Self::configure).
    pub const UNSET: Self = Self { data: 0, status: 0, full: 0 };

    /// Takes the registers and enables the transmitter.
    pub fn configure(&mut self, console: &abi::image::Console) {
        for &(address, value) in &console.init {
            write(address as usize, value);
        }
        (self.data, self.status, self.full) = (console.data as usize, console.status as usize, console.full);
    }

    /// Writes bytes, waiting for room.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.data == 0 {
            return;
        }
        for &byte in bytes {
            let mut patience = PATIENCE;
            while read(self.status) & self.full != 0 && patience > 0 {
                patience -= 1;
            }
            write(self.data, byte.into());
        }
    }
}

impl core::fmt::Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        Console::write(self, text.as_bytes());
        Ok(())
    }
}
