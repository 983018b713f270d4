//! Debian's package manager: what it has, and installing from it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use miette::{Result, bail};

use super::sources::SourceList;
use crate::process;
use crate::ui::say;

/// True if this machine's packages are managed by apt.
#[must_use]
pub fn available() -> bool {
    process::find("apt-get").is_some()
}

/// The version that would be installed, if any is known.
#[must_use]
pub fn candidate(package: &str) -> Option<String> {
    let policy = process::output(
        Command::new("apt-cache")
            .env("LC_ALL", "C")
            .args(["policy", package]),
    )
    .ok()?;
    candidate_in(&policy)
}

fn candidate_in(policy: &str) -> Option<String> {
    let version = policy
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate:"))?
        .trim();
    (version != "(none)").then(|| version.to_owned())
}

/// The package that a file belongs to.
#[must_use]
pub fn owner(file: &Path) -> Option<String> {
    let file = if file.is_absolute() {
        file.to_owned()
    } else {
        process::find(&file.to_string_lossy())?
    };
    let said = process::output(
        Command::new("dpkg-query")
            .arg("-S")
            .arg(file.canonicalize().ok()?),
    )
    .ok()?;
    said.split([':', ',']).next().map(str::to_owned)
}

/// Installs packages from the machine's own sources.
///
/// # Errors
/// If that is not allowed (with the command to type), or fails.
pub fn install(packages: &[&str], why: &str) -> Result<()> {
    let known = packages.iter().all(|package| candidate(package).is_some());
    let mut commands = Vec::new();
    if !known {
        commands.push(words(&["apt-get", "update"], &[]));
    }
    commands.push(words(
        &["apt-get", "install", "--yes", "--no-install-recommends"],
        packages,
    ));
    carry_out(&commands, packages, why)
}

/// Installs packages with the help of a source list of our own; the machine's own lists stay as they are.
///
/// # Errors
/// As [`install`].
pub fn install_from(list: &SourceList, packages: &[&str], why: &str) -> Result<()> {
    let folder = list.folder.display();
    let options = [
        "Dir::Etc::sourcelist=/dev/null".to_owned(),
        format!("Dir::Etc::sourceparts={folder}/sources"),
        format!("Dir::State::lists={folder}/lists"),
        // apt's own user cannot read a folder under somebody's home.
        "APT::Sandbox::User=root".to_owned(),
    ];
    let options: Vec<&str> = options.iter().flat_map(|option| ["-o", option]).collect();
    let update = words(&[&["apt-get"], &options[..], &["update"]].concat(), &[]);
    let install = [
        &["apt-get"],
        &options[..],
        &[
            "install",
            "--yes",
            "--no-install-recommends",
            "--target-release",
            &list.suite,
        ],
    ]
    .concat();
    carry_out(&[update, words(&install, packages)], packages, why)
}

fn words(command: &[&str], packages: &[&str]) -> Vec<String> {
    command
        .iter()
        .chain(packages)
        .map(|&word| word.to_owned())
        .collect()
}

/// Who may install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Root,
    Sudo,
    No,
}

fn right() -> Right {
    // The owner of our own process.
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return Right::Root;
    }
    // Without a password, so that nothing waits for one that nobody types.
    let sudo = process::find("sudo").is_some()
        && process::output(Command::new("sudo").args(["-n", "true"])).is_ok();
    if sudo { Right::Sudo } else { Right::No }
}

fn carry_out(commands: &[Vec<String>], packages: &[&str], why: &str) -> Result<()> {
    let names = packages.join(", ");
    if !available() {
        bail!(
            "{names} is missing ({why}); install it with your system's package manager, and try again"
        );
    }
    let right = right();
    let prepared: Vec<Command> = commands.iter().map(|words| prepare(words, right)).collect();
    if right == Right::No {
        let lines: Vec<String> = commands
            .iter()
            .map(|words| process::shown(&prepare(words, Right::Sudo)))
            .collect();
        bail!(
            "{names} is missing ({why}), and only root may install it. Type this, then try again:\n{}",
            lines.join(" && \\\n")
        );
    }
    say(format!("Installing {names}: {why}"));
    for mut command in prepared {
        say(format!("  {}", process::shown(&command)));
        let _activity = crate::ui::Activity::start("Waiting for apt-get");
        process::output(command.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

fn prepare(words: &[String], right: Right) -> Command {
    let mut command = Command::new(if right == Right::Sudo {
        "sudo"
    } else {
        words[0].as_str()
    });
    if right == Right::Sudo {
        command.arg(&words[0]);
    }
    command.args(&words[1..]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidate_is_read_from_the_policy() {
        let policy =
            "qemu-system-arm:\n  Installed: (none)\n  Candidate: 1:7.2+dfsg-7\n  Version table:\n";
        assert_eq!(candidate_in(policy).as_deref(), Some("1:7.2+dfsg-7"));
        assert_eq!(
            candidate_in("x:\n  Installed: (none)\n  Candidate: (none)\n"),
            None
        );
        assert_eq!(candidate_in(""), None);
    }

    #[test]
    fn sudo_stands_before_the_command() {
        let words = words(&["apt-get", "install"], &["lld"]);
        assert_eq!(
            process::shown(&prepare(&words, Right::Sudo)),
            "sudo apt-get install lld"
        );
        assert_eq!(
            process::shown(&prepare(&words, Right::Root)),
            "apt-get install lld"
        );
    }
}
