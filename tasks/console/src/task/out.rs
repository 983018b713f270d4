//! Output to the serial line, in pieces that are worth a message.

use core::fmt;

use serial_api::Serial;

/// Collects text; a newline becomes CR LF.
#[derive(Debug)]
pub struct Out {
    serial: Serial,
    buffer: heapless::Vec<u8, 1024>,
}

impl Out {
    pub const fn new(serial: Serial) -> Self {
        Self { serial, buffer: heapless::Vec::new() }
    }

    pub const fn serial(&self) -> &Serial {
        &self.serial
    }

    /// Sends what was collected.
    pub fn flush(&mut self) {
        if !self.buffer.is_empty() {
            // There is no other place to complain at.
            let _ = self.serial.write(&self.buffer);
            self.buffer.clear();
        }
    }

    /// Adds bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        if self.buffer.is_full() {
            self.flush();
        }
        let _ = self.buffer.push(byte);
    }
}

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut last = self.buffer.last().copied();
        for byte in text.bytes() {
            if byte == b'\n' && last != Some(b'\r') {
                self.byte(b'\r');
            }
            self.byte(byte);
            last = Some(byte);
        }
        Ok(())
    }
}
