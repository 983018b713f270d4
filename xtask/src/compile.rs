//! Compiles tasks and kernel, each to one relocatable object.
//!
//! The objects hold neither addresses nor anything from app.toml, so a change there compiles nothing anew. They hold no
//! path of this machine either: the same source gives the same bytes in another folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{Result, WrapErr, bail};

use crate::process;
use crate::toolchain::{HARD_FLOAT, SOFT_FLOAT, Toolchain};
use crate::workspace::Workspace;

/// A program of the image.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// Its package, and the binary in it.
    pub package: String,
    /// Whether it may use the floating-point and vector registers.
    pub floating_point: bool,
}

impl Unit {
    const fn target(&self) -> &'static str {
        if self.floating_point { HARD_FLOAT } else { SOFT_FLOAT }
    }
}

/// Compiles `units` for the processor `cpu`; returns the object of each.
///
/// # Errors
/// If cargo fails; it has said why on the terminal.
pub fn compile(
    workspace: &Workspace,
    toolchain: &Toolchain,
    cpu: &str,
    units: &[Unit],
) -> Result<BTreeMap<Unit, PathBuf>> {
    let target_dir = workspace.target.join("images");
    let mut objects = BTreeMap::new();
    for target in [SOFT_FLOAT, HARD_FLOAT] {
        let mut here: Vec<&Unit> = units.iter().filter(|unit| unit.target() == target).collect();
        here.sort();
        here.dedup();
        if here.is_empty() {
            continue;
        }
        // One call for all, so that cargo shares what they have in common and keeps all processors busy.
        let mut command = cargo(workspace, toolchain, cpu, &target_dir, target);
        for unit in &here {
            command.args(["--package", &unit.package, "--bin", &unit.package]);
        }
        process::run(&mut command).wrap_err("cannot compile")?;
        for unit in here {
            let object = target_dir.join(target).join("release").join(&unit.package);
            if !object.is_file() {
                bail!("cargo left no {}", object.display());
            }
            objects.insert(unit.clone(), object);
        }
    }
    Ok(objects)
}

fn cargo(workspace: &Workspace, toolchain: &Toolchain, cpu: &str, target_dir: &Path, target: &str) -> Command {
    let mut command = Command::new(&toolchain.compiler.cargo);
    command
        .current_dir(&workspace.root)
        .args(["build", "--release", "--locked", "--target", target, "--target-dir"])
        .arg(target_dir);
    if toolchain.build_core {
        command.args(["-Zbuild-std=core,alloc,compiler_builtins", "-Zbuild-std-features=compiler-builtins-mem"]);
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command.env("RUSTC", &toolchain.compiler.rustc);
    // What decides about the bytes of an image is said here, and not in the environment.
    for variable in ["RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_BUILD_RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags(workspace, toolchain, cpu, target_dir).join("\x1f"));
    command
}

fn flags(workspace: &Workspace, toolchain: &Toolchain, cpu: &str, target_dir: &Path) -> Vec<String> {
    let mut flags = toolchain.linker.compiler_flags();
    flags.extend(["-Clink-arg=-r", "-Clink-arg=--entry=_start"].map(str::to_owned));
    flags.push(format!("-Ctarget-cpu={cpu}"));
    // Ordinary memory takes unaligned accesses once the MMU is on, which is before the first Rust code. The bare-metal
    // targets forbid them to the compiler, which then takes packet headers apart byte by byte. rustc warns of the option for each crate;
    // all other warnings are errors in `cargo xtask test` anyhow.
    flags.extend(["-Ctarget-feature=-strict-align", "-Awarnings"].map(str::to_owned));
    let mut remap = |from: &Path, to: &str| flags.push(format!("--remap-path-prefix={}={to}", from.display()));
    remap(&workspace.root, "/leasehold");
    remap(target_dir, "/leasehold/target");
    for folder in registries() {
        remap(&folder, "/crates");
    }
    remap(&toolchain.compiler.source(), &format!("/rustc/{}", toolchain.compiler.commit));
    flags
}

/// Folders with the source of dependencies; their names depend on where the machine gets them from.
fn registries() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let folders = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    let mut folders: Vec<PathBuf> = folders.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    folders.sort();
    folders
}
