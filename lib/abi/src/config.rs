//! The configuration page of a task.
//!
//! `cargo xtask dist` fills one read-only page per task with a
//! [`TaskConfig`]: magic, length, and the value in postcard form. What a task
//! may ask for is declared in its `task.toml`, so a look-up that fails here is
//! a bug that the build tool should have refused.

use heapless::{String, Vec};
use serde::{Deserialize, Serialize};

/// First four bytes of a configuration page, little-endian.
pub const MAGIC: u32 = 0x4746_434c; // "LCFG"

/// Version of this format; follows the magic.
pub const VERSION: u16 = 1;

/// Bytes before the postcard data: magic (4), version (2), length (2), little-endian.
pub const HEADER_SIZE: usize = 8;

/// Names in configuration pages.
pub type Name = String<24>;

/// A device register block that the task drives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Peripheral {
    /// Name in the task's `task.toml`.
    pub name: Name,
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// A memory region of the task beside its own image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// Name in the task's `task.toml`, or for a window the name of the other task.
    pub name: Name,
    /// First address, page-aligned.
    pub base: u64,
    /// Bytes, a multiple of the page size.
    pub size: u64,
}

/// Frames that the task may hold.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PoolInfo {
    /// Name of the pool's owner task.
    pub name: Name,
    /// Address of the frame with index `first`.
    pub base: u64,
    /// Index of the pool's first frame.
    pub first: u16,
    /// Frames in the pool.
    pub count: u16,
}

/// A value from the task's `config` table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String<64>),
    /// Bytes: MAC addresses (6), IPv4 addresses (4), prefixes (4 + 1).
    Bytes(Vec<u8, 16>),
}

/// Everything that the build knows and a task needs at run time.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TaskConfig {
    /// The task's own name in `app.toml`.
    pub name: Name,
    /// Task slots: slot name, task index.
    pub slots: Vec<(Name, u8), 16>,
    /// Notifications of other tasks that this task may post: name, task index, mask.
    /// The name is the slot-like name given under `notifies`.
    pub notifies: Vec<(Name, u8, u32), 16>,
    /// The task's own notification bits: name, mask with one bit.
    pub notifications: Vec<(Name, u32), 16>,
    /// Register blocks.
    pub peripherals: Vec<Peripheral, 4>,
    /// DMA memory and shared windows.
    pub memory: Vec<Memory, 12>,
    /// Pools of which the task may hold frames.
    pub pools: Vec<PoolInfo, 4>,
    /// The task's `config` table.
    pub values: Vec<(Name, Value), 16>,
    /// Names of all tasks in table order (filled for tasks with the `stats` privilege, else empty).
    pub tasks: Vec<Name, { crate::MAX_TASKS }>,
}

/// A value as [`View`] reads it, without copying.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
pub enum ValueRef<'a> {
    /// A whole number.
    Integer(i64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(&'a str),
    /// Bytes.
    #[serde(borrow)]
    Bytes(ByteList<'a>),
}

/// Bytes in a configuration page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(transparent)]
pub struct ByteList<'a>(pub &'a [u8]);

/// One entry of a configuration page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item<'a> {
    /// The task's own name.
    Name(&'a str),
    /// Slot name, task index.
    Slot(&'a str, u8),
    /// Name under `notifies`, task index, mask.
    Notify(&'a str, u8, u32),
    /// Own notification: name, mask.
    Notification(&'a str, u32),
    /// Register block: name, base, size.
    Peripheral(&'a str, u64, u64),
    /// Memory: name, base, size.
    Memory(&'a str, u64, u64),
    /// Frame pool: owner's name, base, first index, count.
    Pool(&'a str, u64, u16, u16),
    /// Value from the `config` table.
    Value(&'a str, ValueRef<'a>),
    /// A task of the image: index, name.
    Task(u8, &'a str),
}

/// Reads a configuration page in place: no copy of the whole, little stack.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Checks the header of a page and takes the data behind it.
    ///
    /// Returns `None` if magic, version or length are wrong.
    #[must_use]
    pub fn new(page: &'a [u8]) -> Option<Self> {
        let magic = u32::from_le_bytes(page.get(0..4)?.try_into().ok()?);
        let version = u16::from_le_bytes(page.get(4..6)?.try_into().ok()?);
        let len = u16::from_le_bytes(page.get(6..8)?.try_into().ok()?);
        if magic != MAGIC || version != VERSION {
            return None;
        }
        page.get(HEADER_SIZE..HEADER_SIZE + usize::from(len)).map(Self)
    }

    /// Calls `visit` for each entry in the order of [`TaskConfig`]'s fields, until
    /// it returns `Some`. A page that ends early ends the walk.
    pub fn find<T>(self, visit: impl FnMut(Item<'a>) -> Option<T>) -> Option<T> {
        self.items().find_map(visit)
    }

    /// The entries in the order of [`TaskConfig`]'s fields. A page that ends early ends them.
    #[must_use]
    pub const fn items(self) -> Items<'a> {
        Items { rest: self.0, field: 0, left: 1, index: 0 }
    }
}

/// The entries of a configuration page.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a [u8],
    /// Number of the field of [`TaskConfig`].
    field: u8,
    /// Entries left in it.
    left: u32,
    /// Entries taken from it.
    index: u32,
}

impl<'a> Iterator for Items<'a> {
    type Item = Item<'a>;

    // Once in the program, and not once for each thing that is looked for.
    #[inline(never)]
    fn next(&mut self) -> Option<Item<'a>> {
        while self.left == 0 {
            self.field += 1;
            // The last field are the names of tasks.
            if self.field > 8 {
                return None;
            }
            self.left = take(&mut self.rest)?;
            self.index = 0;
        }
        self.left -= 1;
        self.index += 1;
        let rest = &mut self.rest;
        // In wire order. The element types have the same wire form as the owned ones.
        Some(match self.field {
            0 => Item::Name(take(rest)?),
            1 => {
                let (name, task) = take(rest)?;
                Item::Slot(name, task)
            }
            2 => {
                let (name, task, mask) = take(rest)?;
                Item::Notify(name, task, mask)
            }
            3 => {
                let (name, mask) = take(rest)?;
                Item::Notification(name, mask)
            }
            4 => {
                let (name, base, size) = take(rest)?;
                Item::Peripheral(name, base, size)
            }
            5 => {
                let (name, base, size) = take(rest)?;
                Item::Memory(name, base, size)
            }
            6 => {
                let (name, base, first, count) = take(rest)?;
                Item::Pool(name, base, first, count)
            }
            7 => {
                let (name, value) = take(rest)?;
                Item::Value(name, value)
            }
            _ => Item::Task((self.index - 1) as u8, take(rest)?),
        })
    }
}

fn take<'a, T: Deserialize<'a>>(rest: &mut &'a [u8]) -> Option<T> {
    let (value, left) = postcard::take_from_bytes(rest).ok()?;
    *rest = left;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> ([u8; 512], usize) {
        let name = |text: &str| Name::try_from(text).expect("short name");
        let mut config = TaskConfig { name: name("net"), ..TaskConfig::default() };
        config.slots.push((name("mac"), 3)).expect("room");
        config.notifications.push((name("frames"), 1)).expect("room");
        config.notifications.push((name("timer"), 2)).expect("room");
        config.pools.push(PoolInfo { name: name("mac"), base: 0x20_0000, first: 0, count: 64 }).expect("room");
        config
            .values
            .push((name("address"), Value::Bytes(Vec::from_slice(&[10, 0, 2, 15, 24]).expect("room"))))
            .expect("room");
        config.values.push((name("dhcp"), Value::Bool(false))).expect("room");
        config.tasks.push(name("supervisor")).expect("room");
        config.tasks.push(name("net")).expect("room");
        let mut page = [0; 512];
        let len = postcard::to_slice(&config, &mut page[HEADER_SIZE..]).expect("fits").len();
        page[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        page[4..6].copy_from_slice(&VERSION.to_le_bytes());
        page[6..8].copy_from_slice(&(len as u16).to_le_bytes());
        (page, HEADER_SIZE + len)
    }

    #[test]
    fn view_reads_what_the_builder_wrote() {
        let (page, _) = page();
        let view = View::new(&page).expect("valid header");
        let mask = view.find(|item| match item {
            Item::Notification("timer", mask) => Some(mask),
            _ => None,
        });
        assert_eq!(mask, Some(2));
        let address = view.find(|item| match item {
            Item::Value("address", ValueRef::Bytes(bytes)) => Some(bytes.0),
            _ => None,
        });
        assert_eq!(address, Some(&[10, 0, 2, 15, 24][..]));
        let pool = view.find(|item| match item {
            Item::Pool("mac", base, first, count) => Some((base, first, count)),
            _ => None,
        });
        assert_eq!(pool, Some((0x20_0000, 0, 64)));
        let last = view.find(|item| match item {
            Item::Task(1, name) => Some(name),
            _ => None,
        });
        assert_eq!(last, Some("net"));
    }

    #[test]
    fn broken_pages_are_refused_or_end_early() {
        let (page, len) = page();
        assert!(View::new(&[]).is_none());
        assert!(View::new(&page[..len - 1]).is_none());
        let mut wrong = page;
        wrong[0] ^= 1;
        assert!(View::new(&wrong).is_none());
        let mut garbled = page;
        garbled[HEADER_SIZE..len].fill(0xff);
        let view = View::new(&garbled).expect("header still valid");
        assert_eq!(view.find(|_| Some(())), None);
    }
}
