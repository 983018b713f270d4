//! Files that were hit by something: an error or a system, but never a panic.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{ImageKind, Overrides};
use proptest::prelude::*;

const FILES: [&str; 5] = [
    "app.toml",
    "boards/desk/board.toml",
    "tasks/mac-desk/task.toml",
    "tasks/net/task.toml",
    "tasks/supervisor/task.toml",
];

/// What is written over a part of a file.
fn patch() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[ -~]{1,12}",
        prop::sample::select(vec![
            "0",
            "-1",
            "9223372036854775807",
            "0xffff_ffff_ffff_f000",
            "1e9",
            "true",
            "[]",
            "{}",
            "\"\"",
            "\"é\"",
            "\n",
            "[tasks.mac]\n",
            "=",
            "'",
            "\"\"\"",
            "\"18446744073709551615 B\"",
            "\"4095 MiB\"",
            "\u{feff}",
            "[[tasks]]\n",
            "\"net\"",
            "nan",
        ])
        .prop_map(str::to_owned),
    ]
}

fn scratch(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    common::copy(&common::base(), &root);
    root
}

#[test]
fn damaged_files_never_panic() {
    let root = scratch("damaged");
    let config = ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (0..FILES.len(), any::<prop::sample::Index>(), 0..24usize, patch(), any::<bool>());
    proptest!(config, |((file, place, len, patch, test) in strategy)| {
        let path = root.join(FILES[file]);
        let good = fs::read_to_string(common::base().join(FILES[file])).expect("a good file");
        let start = place.index(good.len());
        let mut text = good.clone();
        text.replace_range(start..(start + len).min(good.len()), &patch);
        fs::write(&path, &text).expect("writable");
        let image = if test { ImageKind::Test } else { ImageKind::Normal };
        match manifest::load(&root, None, image, &Overrides::default()) {
            Ok(system) => {
                // What loads can be planned, encoded, or is refused.
                if let Ok(plan) = manifest::plan(&system, common::SIZES, &vec![common::SIZES; system.tasks.len()]) {
                    prop_assert_eq!(plan.map.overlap(), None);
                    prop_assert!(!manifest::encode_image(&plan.image(&system, &vec![0; system.tasks.len()])).is_empty());
                }
            }
            Err(problems) => {
                prop_assert!(!problems.problems.is_empty());
                prop_assert!(!common::render(&problems).is_empty());
            }
        }
        fs::write(&path, good).expect("writable");
    });
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let root = scratch("no-text");
    fs::write(root.join("app.toml"), [0xff, 0xfe, 0]).expect("writable");
    let problems = manifest::load(&root, None, ImageKind::Normal, &Overrides::default()).expect_err("no text");
    assert!(common::render(&problems).contains("cannot read app.toml: it is not UTF-8"));
}
