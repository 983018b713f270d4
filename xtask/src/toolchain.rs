//! The Rust toolchain that builds images: compiler, `core` of the targets, linker.

use std::path::{Path, PathBuf};
use std::process::Command;

use miette::{Result, miette};

use crate::process;

/// Target of tasks.
pub const HARD_FLOAT: &str = "aarch64-unknown-none";
/// Target of the kernel, and of tasks without floating point.
pub const SOFT_FLOAT: &str = "aarch64-unknown-none-softfloat";
/// All targets of images.
pub const TARGETS: [&str; 2] = [HARD_FLOAT, SOFT_FLOAT];

/// A compiler and where its parts are.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// Cargo.
    pub cargo: PathBuf,
    /// The compiler.
    pub rustc: PathBuf,
    /// Its folder.
    pub sysroot: PathBuf,
    /// The host's target triple.
    pub host: String,
    /// Version in full, one line.
    pub version: String,
    /// Commit of the compiler, as it appears in paths of `core`.
    pub commit: String,
}

impl Compiler {
    /// Asks a compiler about itself.
    ///
    /// # Errors
    /// If it does not run.
    pub fn ask(cargo: &Path, rustc: &Path) -> Result<Self> {
        let about = process::output(Command::new(rustc).arg("-vV"))?;
        let sysroot = process::output(Command::new(rustc).args(["--print", "sysroot"]))?;
        let field =
            |name: &str| about.lines().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_owned());
        Ok(Self {
            cargo: cargo.to_owned(),
            rustc: rustc.to_owned(),
            sysroot: PathBuf::from(sysroot),
            host: field("host:").ok_or_else(|| miette!("{} does not name its host", rustc.display()))?,
            version: about.lines().find(|line| line.starts_with("rustc ")).unwrap_or("rustc").to_owned(),
            commit: field("commit-hash:").unwrap_or_else(|| "unknown".to_owned()),
        })
    }

    /// The compiler of the cargo that runs this tool.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn current() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        Self::ask(&crate::workspace::cargo(), &rustc)
    }

    /// True if a built `core` for `target` is there.
    #[must_use]
    pub fn has_core(&self, target: &str) -> bool {
        let folder = self.sysroot.join("lib/rustlib").join(target).join("lib");
        let is_core = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("libcore-");
        std::fs::read_dir(folder).is_ok_and(|files| files.flatten().any(|file| is_core(&file.file_name())))
    }

    /// The folder of the standard library's source.
    #[must_use]
    pub fn source(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust")
    }

    /// True if the source of `core` is there.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.source().join("library/core/src/lib.rs").is_file()
    }
}

/// All that is needed to build an image.
#[derive(Debug, Clone)]
pub struct Toolchain {
    /// The compiler.
    pub compiler: Compiler,
    /// True if `core` is built from its source.
    pub build_core: bool,
    /// The linker.
    pub linker: Linker,
}

/// LLD: as it comes with Rust, or as a package of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linker {
    /// `rust-lld`, which must be told to be a GNU linker.
    Rust(PathBuf),
    /// `ld.lld`.
    Lld(PathBuf),
}

impl Linker {
    /// Finds one.
    #[must_use]
    pub fn find(compiler: &Compiler) -> Option<Self> {
        let own = compiler.sysroot.join("lib/rustlib").join(&compiler.host).join("bin/rust-lld");
        if own.is_file() {
            return Some(Self::Rust(own));
        }
        process::find("ld.lld").or_else(newest_lld).map(Self::Lld)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Rust(path) | Self::Lld(path) => path,
        }
    }

    /// The start of a linker's command line.
    #[must_use]
    pub fn command(&self) -> Command {
        match self {
            Self::Rust(path) => {
                let mut command = Command::new(path);
                command.args(["-flavor", "gnu"]);
                command
            }
            Self::Lld(path) => Command::new(path),
        }
    }

    /// Flags that make the compiler use this linker; none for its own.
    #[must_use]
    pub fn compiler_flags(&self) -> Vec<String> {
        match self {
            Self::Rust(_) => Vec::new(),
            Self::Lld(path) => vec![format!("-Clinker={}", path.display()), "-Clinker-flavor=ld.lld".to_owned()],
        }
    }
}

/// Debian's versioned packages install `ld.lld-19` and the like.
fn newest_lld() -> Option<PathBuf> {
    (14..40).rev().find_map(|version| process::find(&format!("ld.lld-{version}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_tells_about_itself() {
        let compiler = Compiler::current().expect("a compiler builds this test");
        assert!(compiler.version.starts_with("rustc 1."), "{}", compiler.version);
        assert!(compiler.sysroot.is_dir(), "{}", compiler.sysroot.display());
        assert!(compiler.has_core(&compiler.host));
        assert!(!compiler.has_core("no-such-target"));
    }
}
