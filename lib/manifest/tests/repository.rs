//! The repository's own application on its own board.

use std::path::{Path, PathBuf};

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
