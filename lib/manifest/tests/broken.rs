//! Broken files, and what the user is told.
//!
//! Each folder in `broken` has a file `change`: how the good files of `base` are broken. `expected.txt` is the message.
//!
//! ```text
//! in app.toml
//! -priority = 2
//! +prio = 2
//! ```
//!
//! A line with `-` stands in the file exactly once, and the lines with `+` behind it replace it; `+` alone adds at the end.
//! `delete FILE` removes a file; `with KEY VALUE` gives an argument: `board`, `image`, `ip`, `gateway` or `mac`. What loads is
//! also planned, for programs of usual size.
//!
//! `BLESS=1 cargo test -p manifest --test broken` writes the messages as they are; then look at what changed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{Diagnostics, ImageKind, Overrides};

#[derive(Default)]
struct Arguments {
    board: Option<String>,
    image: ImageKind,
    overrides: Overrides,
}

impl Arguments {
    fn set(&mut self, key: &str, value: &str) {
        match key {
            "board" => self.board = Some(value.to_owned()),
            "image" => self.image = ImageKind::ALL.into_iter().find(|image| image.name() == value).expect("an image"),
            "ip" => self.overrides.address = Some(value.to_owned()),
            "gateway" => self.overrides.gateway = Some(value.parse().expect("an address")),
            "mac" => {
                let bytes: Vec<u8> =
                    value.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("a byte")).collect();
                self.overrides.mac = Some(bytes.try_into().expect("six bytes"));
            }
            _ => panic!("unknown argument {key}"),
        }
    }
}

/// Breaks the files in `root`.
fn apply(change: &str, root: &Path) -> Arguments {
    let mut arguments = Arguments::default();
    let mut file = PathBuf::new();
    let mut place = None;
    for line in change.lines().filter(|line| !line.is_empty()) {
        if let Some(path) = line.strip_prefix("in ") {
            (file, place) = (root.join(path), None);
        } else if let Some(path) = line.strip_prefix("delete ") {
            fs::remove_file(root.join(path)).expect("a file to delete");
        } else if let Some(argument) = line.strip_prefix("with ") {
            let (key, value) = argument.split_once(' ').expect("key and value");
            arguments.set(key, value);
        } else {
            place = Some(edit(&file, line, place));
        }
    }
    arguments
}

/// Removes or adds one line, and tells where the next is to be added.
fn edit(file: &Path, line: &str, place: Option<usize>) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines: Vec<&str> = text.lines().collect();
    let next = match line.split_at(1) {
        ("-", old) => {
            let found: Vec<usize> = (0..lines.len()).filter(|&index| lines[index] == old).collect();
            let &[index] = &found[..] else { panic!("{old:?} stands {} times in {}", found.len(), file.display()) };
            lines.remove(index);
            index
        }
        ("+", new) => {
            let index = place.unwrap_or(lines.len());
            lines.insert(index, new);
            index + 1
        }
        _ => panic!("{line:?} is not a change"),
    };
    fs::write(file, lines.join("\n") + "\n").expect("a file to change");
    next
}

fn outcome(root: &Path, arguments: &Arguments) -> Result<(), Diagnostics> {
    let system = manifest::load(root, arguments.board.as_deref(), arguments.image, &arguments.overrides)?;
    manifest::plan(&system, common::SIZES, &vec![common::SIZES; system.tasks.len()])?;
    Ok(())
}

#[test]
fn every_broken_file_is_explained() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
    let bless = std::env::var_os("BLESS").is_some();
    let mut names: Vec<String> = fs::read_dir(&cases)
        .expect("cases")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    let mut failed = Vec::new();
    for name in &names {
        let root = scratch.join(name);
        let _ = fs::remove_dir_all(&root);
        common::copy(&common::base(), &root);
        let change = fs::read_to_string(cases.join(name).join("change")).expect("a change");
        let arguments = apply(&change, &root);
        let Err(problems) = outcome(&root, &arguments) else {
            failed.push(format!("{name}: nothing was found to be wrong"));
            continue;
        };
        let text = common::render(&problems);
        assert!(
            !text.contains(env!("CARGO_MANIFEST_DIR")) && !text.contains("/tmp"),
            "{name} shows a path of this machine"
        );
        let expected = cases.join(name).join("expected.txt");
        if bless {
            fs::write(expected, text).expect("writable");
        } else if fs::read_to_string(expected).unwrap_or_default() != text {
            failed.push(format!("{name}: the message is now\n{text}"));
        }
    }
    assert!(names.len() >= 45, "only {} cases", names.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_base_is_good() {
    for image in ImageKind::ALL {
        let arguments = Arguments { image, ..Arguments::default() };
        if let Err(problems) = outcome(&common::base(), &arguments) {
            panic!("{}", common::render(&problems));
        }
    }
}
