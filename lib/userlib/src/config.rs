//! What the build knows of this task, by name.
//!
//! Names are those of the task's `task.toml`. The build tool refused images in which a required one is unbound, so
//! the functions for those panic when it is missing; optional ones have `find_` functions.

use abi::TaskId;
use abi::config::{Item, ValueRef, View};

/// The configuration page of this task.
///
/// # Panics
/// If the page is not a configuration page: the image was not built by `cargo xtask`.
#[must_use]
pub fn view() -> View<'static> {
    View::new(crate::memory::config_page()).expect("no configuration page")
}

/// Index of the task behind a slot, if it is bound.
#[must_use]
pub fn find_slot(name: &str) -> Option<u8> {
    view().find(|item| match item {
        Item::Slot(slot, task) if slot == name => Some(task),
        _ => None,
    })
}

/// Index of the task behind a slot.
///
/// # Panics
/// If the slot is unbound.
#[must_use]
pub fn slot(name: &str) -> u8 {
    find_slot(name).unwrap_or_else(|| panic!("no slot {name}"))
}

/// The current instance of the task behind a slot.
///
/// # Panics
/// If the slot is unbound.
#[must_use]
pub fn slot_id(name: &str) -> TaskId {
    crate::ipc::current_id(slot(name))
}

/// Calls `post` with task index and mask of each binding of a `notifies` name.
pub fn for_each_notify(name: &str, mut post: impl FnMut(u8, u32)) {
    view().find(|item| {
        if let Item::Notify(notify, task, mask) = item
            && notify == name
        {
            post(task, mask);
        }
        None::<()>
    });
}

/// Mask of an own notification.
///
/// # Panics
/// If `task.toml` does not declare it.
#[must_use]
pub fn notification(name: &str) -> u32 {
    view()
        .find(|item| match item {
            Item::Notification(own, mask) if own == name => Some(mask),
            _ => None,
        })
        .unwrap_or_else(|| panic!("no notification {name}"))
}

/// A value of the `config` table.
#[must_use]
pub fn find_value(name: &str) -> Option<ValueRef<'static>> {
    view().find(|item| match item {
        Item::Value(key, value) if key == name => Some(value),
        _ => None,
    })
}

/// A whole number from the `config` table.
///
/// # Panics
/// If it is missing or of another type.
#[must_use]
pub fn integer(name: &str) -> i64 {
    match find_value(name) {
        Some(ValueRef::Integer(value)) => value,
        _ => panic!("no integer {name}"),
    }
}

/// Name of a task of the image (tasks with the `stats` privilege only).
#[must_use]
pub fn task_name(index: u8) -> Option<&'static str> {
    view().find(|item| match item {
        Item::Task(at, name) if at == index => Some(name),
        _ => None,
    })
}

/// A frame pool: base address, first frame index, count. `pool` counts the pools that the task may use.
#[must_use]
pub fn pool(pool: usize) -> Option<(u64, u16, u16)> {
    let mut seen = 0;
    view().find(|item| match item {
        Item::Pool(_, base, first, count) => {
            seen += 1;
            (seen == pool + 1).then_some((base, first, count))
        }
        _ => None,
    })
}
