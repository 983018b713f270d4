//! The repository's own application on its own board.

use std::path::{Path, PathBuf};

use abi::config::Value;
use manifest::{ImageKind, Overrides, Sizes, System, load, plan};
use miette::{GraphicalReportHandler, GraphicalTheme};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("lib/manifest lies in the root").to_owned()
}

fn system(image: ImageKind, overrides: &Overrides) -> System {
    load(&root(), None, image, overrides).unwrap_or_else(|problems| {
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(120);
        handler.render_report(&mut text, &problems).expect("a string takes everything");
        panic!("{text}");
    })
}

#[test]
fn both_images_load_and_can_be_planned() {
    for image in ImageKind::ALL {
        let system = system(image, &Overrides::default());
        let sizes = Sizes { text: 100_000, rodata: 20_000, data: 300, bss: 50_000 };
        let plan = plan(&system, sizes, &vec![sizes; system.tasks.len()]).expect("fits");
        assert_eq!(plan.map.overlap(), None);
        assert_eq!(system.tasks[system.supervisor.0].package, "supervisor");
    }
}

#[test]
fn the_command_line_beats_the_files() {
    let overrides = Overrides {
        address: Some("192.168.7.2/24".to_owned()),
        gateway: Some([192, 168, 7, 1].into()),
        mac: Some([2, 0, 0, 0x12, 0x34, 0x56]),
    };
    let system = system(ImageKind::Normal, &overrides);
    let value = |task: &str, key: &str| {
        let task = system.tasks.iter().find(|other| other.name.value == task).expect("a task");
        task.values.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone())
    };
    let bytes = |bytes: &[u8]| Some(Value::Bytes(bytes.iter().copied().collect()));
    assert_eq!(value("net", "address"), bytes(&[192, 168, 7, 2, 24]));
    assert_eq!(value("net", "gateway"), bytes(&[192, 168, 7, 1]));
    assert_eq!(value("mac", "mac"), bytes(&[2, 0, 0, 0x12, 0x34, 0x56]));
    // The emulator's PHY, as board.toml says.
    assert_eq!(value("mac", "phy"), Some(Value::Integer(23)));
}

#[test]
fn the_board_is_listed() {
    let boards = manifest::boards(&root()).expect("good boards");
    assert!(
        boards.iter().any(|(name, description)| name == "zcu102" && description.contains("Cortex-A53")),
        "{boards:?}"
    );
}
