//! The line to the host.

use report::{MAX_FRAME, Record};
use serial_api::Serial;

/// Output as records, input as bytes.
pub struct Console {
    serial: Serial,
    frame: [u8; MAX_FRAME],
}

impl Console {
    /// Over a serial port.
    pub const fn new(serial: Serial) -> Self {
        Self { serial, frame: [0; MAX_FRAME] }
    }

    /// The serial port.
    pub const fn serial(&self) -> &Serial {
        &self.serial
    }

    /// Sends a record. A driver that dies meanwhile may have sent a part: then it is sent again whole, and
    /// the host skips the torn one.
    pub fn send(&mut self, record: &Record<'_>) {
        let Ok(bytes) = report::encode(record, &mut self.frame) else { return };
        for _ in 0..4 {
            if self.serial.write(bytes).is_ok() {
                return;
            }
        }
    }
}
