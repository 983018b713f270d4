//! Image table and configuration pages as bytes.

use abi::config::{self, TaskConfig};
use abi::image::{self, Image};

/// The kernel's table: header of [`image::HEADER_SIZE`] bytes, then postcard.
///
/// # Panics
/// If the table is longer than 4 GiB; its lists are bounded far below.
#[must_use]
pub fn encode_image(table: &Image) -> Vec<u8> {
    let body = postcard::to_stdvec(table).expect("the types hold only what postcard can write");
    let len = u32::try_from(body.len()).expect("bounded lists");
    let mut bytes = Vec::with_capacity(image::HEADER_SIZE + body.len());
    bytes.extend(image::MAGIC.to_le_bytes());
    bytes.extend(u32::from(image::VERSION).to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend(body);
    bytes
}

/// The content of a task's configuration page, without the zeroes up to its end.
///
/// # Panics
/// If it is longer than 64 KiB; its lists are bounded far below.
#[must_use]
pub fn encode_config(values: &TaskConfig) -> Vec<u8> {
    let body = postcard::to_stdvec(values).expect("the types hold only what postcard can write");
    let len = u16::try_from(body.len()).expect("bounded lists");
    let mut bytes = Vec::with_capacity(config::HEADER_SIZE + body.len());
    bytes.extend(config::MAGIC.to_le_bytes());
    bytes.extend(config::VERSION.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend(body);
    bytes
}
