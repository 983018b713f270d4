//! Debian's package manager: what it has, and installing from it.

use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use miette::{Result, bail};

use super::sources::SourceList;
use crate::process;
use crate::ui::{Activity, say};

/// True if this machine's packages are managed by apt.
#[must_use]
pub fn available() -> bool {
    process::find("apt-get").is_some()
}

/// The version that would be installed, if any is known.
#[must_use]
pub fn candidate(package: &str) -> Option<String> {
    let policy = process::output(Command::new("apt-cache").env("LC_ALL", "C").args(["policy", package])).ok()?;
    candidate_in(&policy)
}

fn candidate_in(policy: &str) -> Option<String> {
    let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate:"))?.trim();
    (version != "(none)").then(|| version.to_owned())
}

/// The package that a file belongs to.
#[must_use]
pub fn owner(file: &Path) -> Option<String> {
    let file = if file.is_absolute() { file.to_owned() } else { process::find(&file.to_string_lossy())? };
    let said = process::output(Command::new("dpkg-query").arg("-S").arg(file.canonicalize().ok()?)).ok()?;
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
    commands.push(words(&["apt-get", "install", "--yes", "--no-install-recommends"], packages));
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
    let install =
        [&["apt-get"], &options[..], &["install", "--yes", "--no-install-recommends", "--target-release", &list.suite]]
            .concat();
    carry_out(&[update, words(&install, packages)], packages, why)
}

fn words(command: &[&str], packages: &[&str]) -> Vec<String> {
    command.iter().chain(packages).map(|&word| word.to_owned()).collect()
}

/// Who may install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Right {
    Root,
    /// Through sudo, which may ask for a password on the terminal.
    Sudo {
        asks: bool,
    },
    No,
}

fn right() -> Right {
    // The owner of our own process.
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return Right::Root;
    }
    if process::find("sudo").is_none() {
        return Right::No;
    }
    let free = process::output(Command::new("sudo").args(["-n", "true"])).is_ok();
    // Nothing waits for a password that nobody types.
    if free || std::io::stdin().is_terminal() { Right::Sudo { asks: !free } } else { Right::No }
}

fn carry_out(commands: &[Vec<String>], packages: &[&str], why: &str) -> Result<()> {
    let names = packages.join(", ");
    if !available() {
        bail!("{names} is missing ({why}); install it with your system's package manager, and try again");
    }
    let right = right();
    if right == Right::No {
        say(format!("Missing: {names}, {why}. Only root may install it. Type this, then try again:\n"));
        for words in commands {
            say(format!("  {}", process::shown(&prepare(words, Right::Sudo { asks: true }))));
        }
        say("");
        bail!("{names} is missing, and may not be installed from here");
    }
    say(format!("Installing {names}: {why}"));
    for words in commands {
        let mut command = prepare(words, right);
        say(format!("  {}", process::shown(&command)));
        if right == (Right::Sudo { asks: true }) {
            process::run(&mut command)?;
        } else {
            let _activity = Activity::start("Waiting for apt-get");
            process::output(&mut command)?;
        }
    }
    Ok(())
}

/// The command for whoever may install. The variable keeps packages from asking questions.
fn prepare(words: &[String], right: Right) -> Command {
    const QUIET: &str = "DEBIAN_FRONTEND=noninteractive";
    let mut command = Command::new(if right == Right::Root { "env" } else { "sudo" });
    command.arg(QUIET).args(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_candidate_is_read_from_the_policy() {
        let policy = "qemu-system-arm:\n  Installed: (none)\n  Candidate: 1:7.2+dfsg-7\n  Version table:\n";
        assert_eq!(candidate_in(policy).as_deref(), Some("1:7.2+dfsg-7"));
        assert_eq!(candidate_in("x:\n  Installed: (none)\n  Candidate: (none)\n"), None);
        assert_eq!(candidate_in(""), None);
    }

    #[test]
    fn sudo_stands_before_the_command() {
        let words = words(&["apt-get", "install"], &["lld"]);
        let shown = |right| process::shown(&prepare(&words, right));
        assert_eq!(shown(Right::Sudo { asks: true }), "sudo DEBIAN_FRONTEND=noninteractive apt-get install lld");
        assert_eq!(shown(Right::Root), "env DEBIAN_FRONTEND=noninteractive apt-get install lld");
    }
}
