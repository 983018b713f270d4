//! A panic stops the task; the kernel keeps the first 128 bytes of the message.

use core::fmt::Write;
use core::panic::PanicInfo;

struct Buffer {
    bytes: [u8; 128],
    len: usize,
}

impl Write for Buffer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            let Some(slot) = self.bytes.get_mut(self.len) else {
                return Err(core::fmt::Error);
            };
            *slot = byte;
            self.len += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut buffer = Buffer { bytes: [0; 128], len: 0 };
    // A message that does not fit is cut.
    let _ = match info.location() {
        Some(place) => write!(buffer, "{}:{}: {}", place.file(), place.line(), info.message()),
        None => write!(buffer, "{}", info.message()),
    };
    crate::kernel::panic(str_prefix(&buffer.bytes[..buffer.len]))
}

/// The longest valid UTF-8 prefix: a cut may have split a character.
fn str_prefix(bytes: &[u8]) -> &str {
    match core::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or(""),
    }
}
