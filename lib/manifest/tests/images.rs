//! Which tasks an image has, and what becomes of names of those that it does not have.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{ImageKind, Overrides, System, load};

/// The good files with lines added to app.toml.
fn changed(name: &str, added: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    common::copy(&common::base(), &root);
    let app = fs::read_to_string(root.join("app.toml")).expect("app.toml");
    fs::write(root.join("app.toml"), app + added).expect("writable");
    root
}

fn names(system: &System) -> Vec<&str> {
    system.tasks.iter().map(|task| task.name.value.as_str()).collect()
}

#[test]
fn names_of_other_images_are_left_out() {
    let normal = common::system(ImageKind::Normal);
    assert_eq!(names(&normal), ["supervisor", "mac", "serial", "net", "client", "idle"]);
    assert_eq!(normal.tasks[1].notifies, [("rx".to_owned(), 3, 1)]);
    assert_eq!(normal.pools[0].holders, [(3, 48)]);
    let test = common::system(ImageKind::Test);
    assert_eq!(names(&test), ["supervisor", "mac", "serial", "net", "client", "suite", "idle"]);
    assert_eq!(test.tasks[1].notifies, [("rx".to_owned(), 3, 1), ("rx".to_owned(), 5, 1)]);
    assert_eq!(test.pools[0].holders, [(3, 48), (5, 8)]);
}

#[test]
fn images_add_and_remove() {
    let root = changed("images", "[images.normal]\nadd = [\"suite\"]\nremove = [\"serial\"]\n");
    let system = load(&root, None, ImageKind::Normal, &Overrides::default()).expect("good files");
    assert_eq!(names(&system), ["supervisor", "mac", "net", "client", "suite", "idle"]);
    // Removed with its peripheral's interrupt.
    let numbers: Vec<u32> = system.interrupts.iter().map(|interrupt| interrupt.number).collect();
    assert_eq!(numbers, [57]);
    let test = load(&root, None, ImageKind::Test, &Overrides::default()).expect("good files");
    assert_eq!(names(&test).len(), 7);
}

#[test]
fn an_optional_slot_of_a_task_that_is_not_there_is_unbound() {
    let root = changed("optional", "[images.test]\nremove = [\"serial\"]\n");
    let app = fs::read_to_string(root.join("app.toml")).expect("app.toml");
    let app =
        app.replace("task-slots = { net = \"net\" }\nstack", "task-slots = { net = \"net\", log = \"serial\" }\nstack");
    fs::write(root.join("app.toml"), app).expect("writable");
    let slots = |image| {
        let system = load(&root, None, image, &Overrides::default())
            .unwrap_or_else(|problems| panic!("{}", common::render(&problems)));
        let client = names(&system).iter().position(|name| *name == "client").expect("a client");
        system.tasks[client]
            .slots
            .iter()
            .map(|(slot, task)| format!("{slot} -> {}", names(&system)[*task]))
            .collect::<Vec<_>>()
    };
    assert_eq!(slots(ImageKind::Normal), ["net -> net", "log -> serial"]);
    assert_eq!(slots(ImageKind::Test), ["net -> net"]);
}

#[test]
fn app_toml_beats_board_toml_and_both_beat_defaults() {
    let value =
        |system: &System, key: &str| format!("{:?}", system.tasks[1].values.iter().find(|(name, _)| name == key));
    let system = common::system(ImageKind::Normal);
    assert_eq!(value(&system, "phy"), "Some((\"phy\", Integer(3)))");
    assert_eq!(value(&system, "strategy"), "Some((\"strategy\", Text(\"lease\")))");
    let root = changed("values", "[tasks.mac.config]\nphy = 7\n");
    let system = load(&root, None, ImageKind::Normal, &Overrides::default()).expect("good files");
    assert_eq!(value(&system, "phy"), "Some((\"phy\", Integer(7)))");
}

#[test]
fn a_new_address_voids_the_old_gateway() {
    let overrides = Overrides { address: Some("192.168.7.2/24".to_owned()), ..Overrides::default() };
    let system = load(&common::base(), None, ImageKind::Normal, &overrides).expect("good files");
    assert!(system.tasks[3].values.iter().all(|(name, _)| name != "gateway"), "{:?}", system.tasks[3].values);
    let overrides = Overrides { address: Some("dhcp".to_owned()), ..Overrides::default() };
    let system = load(&common::base(), None, ImageKind::Normal, &overrides).expect("good files");
    assert_eq!(format!("{:?}", system.tasks[3].values[0]), "(\"address\", Text(\"dhcp\"))");
}
