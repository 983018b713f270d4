//! The emulator: QEMU 8 or later.

use std::path::Path;
use std::process::Command;

use miette::{Result, bail, miette};

use super::{apt, sources};
use crate::process;
use crate::ui::say;
use crate::workspace::Workspace;

/// The emulator's program.
pub const PROGRAM: &str = "qemu-system-aarch64";

/// Debian's package that holds it.
const PACKAGE: &str = "qemu-system-arm";

/// First major version that is known to run the boards.
const OLDEST: u32 = 8;

/// Finds or installs the emulator.
///
/// # Errors
/// If it is missing or too old, and cannot be installed.
pub fn ensure(workspace: &Workspace) -> Result<()> {
    let found = process::find(PROGRAM).and_then(|path| version(&path));
    if found.is_some_and(|version| version >= OLDEST) {
        return Ok(());
    }
    let why = match found {
        Some(version) => {
            format!("the emulator; the installed QEMU {version} is older than {OLDEST}")
        }
        None => "the emulator: QEMU runs the boards".to_owned(),
    };
    if !apt::available() {
        bail!("{why}: install QEMU {OLDEST} or later ({PROGRAM}) with your system's package manager, and try again");
    }
    if apt::candidate(PACKAGE).is_some_and(|candidate| major(&candidate).is_some_and(|version| version >= OLDEST)) {
        apt::install(&[PACKAGE], &why)?;
    } else {
        let list = sources::backports(&workspace.setup().join("apt"))?;
        say(format!(
            "This Debian's own QEMU is older than {OLDEST}: taking it from {}, through a source list of our own",
            list.suite
        ));
        apt::install_from(&list, &[PACKAGE], &why)?;
    }
    let now = process::find(PROGRAM)
        .and_then(|path| version(&path))
        .ok_or_else(|| miette!("{PACKAGE} is installed, but {PROGRAM} does not run"))?;
    if now < OLDEST {
        bail!("QEMU {now} is still the first in the search path; remove it or put {OLDEST} or later before it");
    }
    Ok(())
}

/// Version line and path, for people.
pub fn describe(path: &Path) -> String {
    let line = process::output(Command::new(path).arg("--version")).unwrap_or_default();
    format!("{} ({})", line.lines().next().unwrap_or("does not run"), path.display())
}

fn version(path: &Path) -> Option<u32> {
    let text = process::output(Command::new(path).arg("--version")).ok()?;
    major(text.lines().next()?.split_once("version ")?.1)
}

/// The major version in `1:10.0.2+ds-2` or `7.2.15 (Debian …)`.
fn major(version: &str) -> Option<u32> {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_packages_and_programs() {
        for (text, expected) in [
            ("1:10.0.2+ds-2+deb13u1~bpo12+1", Some(10)),
            ("1:7.2+dfsg-7+deb12u18", Some(7)),
            ("8.2.2 (Debian 1:8.2.2+ds-0)", Some(8)),
            ("(none)", None),
            ("", None),
        ] {
            assert_eq!(major(text), expected, "{text}");
        }
    }
}
