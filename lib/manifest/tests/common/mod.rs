//! A small application and board to start from.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{Diagnostics, ImageKind, Overrides, Sizes, System};
use miette::{GraphicalReportHandler, GraphicalTheme};

/// Where the good files are.
pub fn base() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/base")
}

/// The good files as a system.
pub fn system(image: ImageKind) -> System {
    manifest::load(&base(), None, image, &Overrides::default())
        .unwrap_or_else(|problems| panic!("{}", render(&problems)))
}

/// Sizes such as programs have.
pub const SIZES: Sizes = Sizes { text: 30_000, rodata: 5000, data: 100, bss: 9000 };

/// The text that a user sees, without colours.
pub fn render(problems: &Diagnostics) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(120);
    handler.render_report(&mut text, problems).expect("a string takes everything");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder for tests");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}
