//! Finds or installs what this machine lacks.
//!
//! Every command calls [`ensure`] first. What is there is used, in a few milliseconds and without network; what is missing is
//! installed through rustup or the system's package manager, after saying what and why. Where that is not allowed, the
//! error holds the exact command.

mod apt;
mod qemu;
mod rust;
mod sources;

use std::path::PathBuf;

use miette::Result;

use crate::process;
use crate::toolchain::Toolchain;
use crate::ui::say;
use crate::workspace::Workspace;

/// What a command is going to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Build images.
    Build,
    /// Also run them in the emulator.
    Run,
    /// Also measure them against the host's own tools.
    Peers,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Compiler, `core`, linker.
    pub toolchain: Toolchain,
    /// iperf 2, if it was asked for and could be had.
    pub iperf: Option<PathBuf>,
}

/// Finds or installs what `need` says.
///
/// # Errors
/// If something is missing and may not or cannot be installed.
pub fn ensure(workspace: &Workspace, need: Need) -> Result<Tools> {
    let toolchain = rust::ensure(workspace)?;
    if need >= Need::Run {
        qemu::ensure(workspace)?;
    }
    let iperf = if need >= Need::Peers { iperf() } else { None };
    Ok(Tools { toolchain, iperf })
}

/// iperf 2 makes traffic that we did not write ourselves; without it a few measurements are left out.
fn iperf() -> Option<PathBuf> {
    if let Some(path) = process::find("iperf") {
        return Some(path);
    }
    if let Err(error) = apt::install(&["iperf"], "iperf 2 is the peer of some measurements and tests") {
        say(format!("iperf is left out: {error:?}"));
    }
    process::find("iperf")
}

/// The command `setup`: ensures everything, and says what is used.
///
/// # Errors
/// As [`ensure`].
pub fn command(workspace: &Workspace) -> Result<()> {
    let tools = ensure(workspace, Need::Peers)?;
    let compiler = &tools.toolchain.compiler;
    println!("compiler  {}", compiler.version);
    println!(
        "core      {}",
        if tools.toolchain.build_core {
            format!("built from {}", compiler.source().display())
        } else {
            "built, installed with the compiler".to_owned()
        }
    );
    println!("linker    {}", tools.toolchain.linker.path().display());
    let emulator = process::find(qemu::PROGRAM);
    println!("emulator  {}", emulator.as_deref().map_or_else(|| "none".to_owned(), qemu::describe));
    println!(
        "iperf     {}",
        tools
            .iperf
            .map_or_else(|| "none; measurements with it are left out".to_owned(), |path| path.display().to_string())
    );
    Ok(())
}
