//! The targets' `core`, from wherever this machine has it, and a linker.
//!
//! In this order: targets that are installed; rustup; the compiler's own source of `core`; Debian's packages of
//! compiler, cargo and source in one version.

use std::path::Path;
use std::process::Command;

use miette::{Result, miette};

use super::apt;
use crate::process;
use crate::toolchain::{Compiler, Linker, TARGETS, Toolchain};
use crate::ui::{Activity, say};
use crate::workspace::Workspace;

/// Compiler, cargo and library source of one version, in Debian 12's security suite.
const DEBIAN: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// Finds or installs `core` and a linker.
///
/// # Errors
/// If there is no way to get them.
pub fn ensure(workspace: &Workspace) -> Result<Toolchain> {
    let (compiler, build_core) = core(workspace)?;
    let linker = linker(&compiler)?;
    Ok(Toolchain { compiler, build_core, linker })
}

fn core(workspace: &Workspace) -> Result<(Compiler, bool)> {
    let compiler = Compiler::current()?;
    let wish = std::env::var("LEASEHOLD_CORE").unwrap_or_default();
    let missing: Vec<&str> = TARGETS.into_iter().filter(|target| !compiler.has_core(target)).collect();
    if wish.is_empty() {
        if missing.is_empty() {
            return Ok((compiler, false));
        }
        if add_targets(&compiler, &missing) {
            return Ok((compiler, false));
        }
    }
    if wish != "debian" {
        if compiler.has_source() {
            return Ok((compiler, true));
        }
        // Debian's compiler is in use, without its source.
        if compiler.sysroot == Path::new("/usr") && apt::owner(&compiler.rustc).as_deref() == Some(DEBIAN[0]) {
            apt::install(&DEBIAN[2..], "the source of Rust's `core`, to build it for the board")?;
            return Ok((Compiler::current()?, true));
        }
    }
    debian(workspace, &missing)
}

/// Asks rustup for targets. False if rustup is not what the compiler came from, or fails (as it does without network).
fn add_targets(compiler: &Compiler, missing: &[&str]) -> bool {
    let Some(rustup) = process::find("rustup") else {
        return false;
    };
    let toolchains = compiler.sysroot.parent().filter(|folder| folder.ends_with("toolchains"));
    let (Some(_), Some(name)) = (toolchains, compiler.sysroot.file_name()) else {
        return false;
    };
    let mut command = Command::new(rustup);
    command.args(["target", "add", "--toolchain"]).arg(name).args(missing);
    say(format!(
        "Installing Rust's `core` for {} (the board's processor): {}",
        missing.join(" and "),
        process::shown(&command)
    ));
    let _activity = Activity::start("Waiting for rustup");
    match process::output(&mut command) {
        Ok(_) => missing.iter().all(|target| compiler.has_core(target)),
        Err(error) => {
            say(format!("rustup could not: {error:?}"));
            false
        }
    }
}

/// Debian's compiler and the source of its library.
fn debian(workspace: &Workspace, missing: &[&str]) -> Result<(Compiler, bool)> {
    let ask = || Compiler::ask(Path::new("/usr/bin/cargo"), Path::new("/usr/bin/rustc"));
    if let Some(compiler) = ask().ok().filter(Compiler::has_source) {
        return Ok((compiler, true));
    }
    let remedy = || {
        format!(
            "no `core` for {}; with rustup: rustup target add {}; without: install the source of your compiler's library (`rust-src`)",
            missing.join(" and "),
            missing.join(" ")
        )
    };
    if !apt::available() {
        return Err(miette!("{}", remedy()));
    }
    apt::install(&DEBIAN, "a compiler with the source of its library, to build `core` for the board")
        .map_err(|error| error.wrap_err(remedy()))?;
    let compiler = ask()?;
    if !compiler.has_source() {
        return Err(miette!(
            "the packages {} hold no source of `core` for {}",
            DEBIAN.join(", "),
            workspace.root.display()
        ));
    }
    Ok((compiler, true))
}

fn linker(compiler: &Compiler) -> Result<Linker> {
    if let Some(linker) = Linker::find(compiler) {
        return Ok(linker);
    }
    apt::install(&["lld"], "the linker: this Rust compiler came without one")?;
    Linker::find(compiler)
        .ok_or_else(|| miette!("the package lld holds no ld.lld; install LLVM's linker and try again"))
}
