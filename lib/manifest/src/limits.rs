//! Limits that the formats of `abi` set, and checks against them.

use abi::PAGE_SIZE;

use crate::diagnostic::Problem;
use crate::read::{Log, Size};
use crate::system::At;
use crate::value::show_size;

/// Bytes of a page.
pub const PAGE: u64 = PAGE_SIZE as u64;

/// Longest name in bytes: that of [`abi::config::Name`].
pub const NAME_LENGTH: usize = 24;

/// Largest stack of a task.
pub const MAX_STACK: u64 = 1 << 20;

/// Largest memory or window of a task.
const MAX_MEMORY: u64 = 64 << 20;

/// Checks a name that ends up in the image; `what` says of what.
pub fn check_name(log: &Log, name: &At<String>, what: &str) -> bool {
    let text = &name.value;
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.len() > NAME_LENGTH {
        let label = format!("{} bytes, at most {NAME_LENGTH} fit", text.len());
        log.add(
            Problem::new(&name.at, format!("the {what} name `{text}` is too long"), label).help("choose a shorter one"),
        );
    } else if text.is_empty() || !text.bytes().all(allowed) || !text.as_bytes()[0].is_ascii_lowercase() {
        let help = "names start with a letter and consist of lower-case letters, digits and `-`";
        log.add(Problem::new(&name.at, format!("`{text}` cannot be a {what} name"), "not a name").help(help));
    } else {
        return true;
    }
    false
}

/// Reports the first name over `most`.
pub fn limit<'a>(log: &Log, names: impl IntoIterator<Item = &'a At<String>>, most: usize, what: &str) {
    let names: Vec<_> = names.into_iter().collect();
    if let Some(name) = names.get(most) {
        let message = format!("{} {what}, at most {most} are possible", names.len());
        log.add(
            Problem::new(&name.at, message, "the first one too many")
                .help("leave some out, or raise the limit in lib/abi"),
        );
    }
}

/// Checks a task's stack.
pub fn check_stack(log: &Log, size: At<Size>) -> Option<At<u64>> {
    let bytes = size.value.0;
    let refuse = |what: &str, label: String, right: u64| {
        let help = format!(
            "stacks are whole pages from {} to {}: \"{}\"",
            show_size(PAGE),
            show_size(MAX_STACK),
            show_size(right)
        );
        log.add(Problem::new(&size.at, format!("the stack is {what}"), label).help(help));
    };
    if bytes < PAGE {
        refuse("too small", format!("{bytes} bytes, at least {PAGE} are needed"), PAGE);
    } else if bytes > MAX_STACK {
        refuse("too large", format!("{bytes} bytes, at most {MAX_STACK} are possible"), MAX_STACK);
    } else if !bytes.is_multiple_of(PAGE) {
        refuse("not a number of whole pages", format!("{bytes} bytes"), bytes.next_multiple_of(PAGE));
    } else {
        return Some(At { value: bytes, at: size.at });
    }
    None
}

/// Checks the size of memory that is mapped as a whole.
pub fn check_pages(log: &Log, size: At<Size>, what: &str) -> Option<At<u64>> {
    let bytes = size.value.0;
    if bytes > 0 && bytes <= MAX_MEMORY && bytes.is_multiple_of(PAGE) {
        return Some(At { value: bytes, at: size.at });
    }
    let right = show_size(bytes.clamp(1, MAX_MEMORY).next_multiple_of(PAGE));
    let help = format!("a multiple of {} up to {}: \"{right}\"", show_size(PAGE), show_size(MAX_MEMORY));
    log.add(Problem::new(&size.at, format!("bad size of {what}"), format!("{bytes} bytes")).help(help));
    None
}
