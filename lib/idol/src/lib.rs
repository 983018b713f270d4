//! Compiles interface definitions to client and server stubs.
//!
//! An interface is a `*.idol` file in RON, in the format that Oxide's Hubris made known, as far as it goes; what is
//! different is described in `docs/architecture.md`, "Interfaces". A crate `lib/NAME-api` holds the file, and this build script:
//!
//! ```no_run
//! idol::generate("name.idol");
//! ```
//!
//! and takes in what it wrote with `include!(concat!(env!("OUT_DIR"), "/name.rs"));`.
//! The build tool calls [`check_all`] before anything is compiled, so that users see all errors of a file at once.

#![forbid(unsafe_code)]

mod check;
mod emit;
mod model;
mod read;
mod report;
mod tree;
mod types;

use std::path::{Path, PathBuf};
use std::{env, fs};

pub use report::{Problem, Report};

/// Compiles the text of a file to Rust. `path` is for messages only.
///
/// # Errors
/// Everything that is wrong with it.
pub fn compile(path: &Path, text: &str) -> Result<String, Report> {
    match load(text) {
        Ok(interface) => Ok(emit::emit(&interface)),
        Err(problems) => Err(Report::new(path, text, problems)),
    }
}

fn load(text: &str) -> Result<model::Interface, Vec<Problem>> {
    let tree = tree::parse(text).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    let interface = read::interface(&tree, &mut problems);
    if let Some(interface) = interface {
        check::interface(&interface, &mut problems);
        if problems.is_empty() {
            return Ok(interface);
        }
    }
    Err(problems)
}

/// Checks a file.
///
/// # Errors
/// Everything that is wrong with it; also if it cannot be read.
pub fn check(path: &Path) -> Result<(), Report> {
    let text = fs::read_to_string(path).map_err(|error| {
        let problem = Problem::new(0..0, format!("cannot read the file: {error}"))
            .help("each interface crate holds one `*.idol` file");
        Report::new(path, "", vec![problem])
    })?;
    match load(&text) {
        Ok(_) => Ok(()),
        Err(problems) => Err(Report::new(path, &text, problems)),
    }
}

/// Checks the `*.idol` files of all crates in a folder, such as `lib`, and returns which there are.
///
/// # Errors
/// A report for each file that is wrong.
pub fn check_all(folder: &Path) -> Result<Vec<PathBuf>, Vec<Report>> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    };
    let mut files: Vec<PathBuf> = inside(folder).iter().flat_map(|sub| inside(sub)).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "idol"));
    files.sort();
    let reports: Vec<Report> = files.iter().filter_map(|file| check(file).err()).collect();
    if reports.is_empty() { Ok(files) } else { Err(reports) }
}

/// For build scripts: compiles a file beside `Cargo.toml` to a file of the same name, with `.rs`, in `OUT_DIR`.
///
/// # Panics
/// If the file is wrong; the message holds the whole report. Also if there is no `OUT_DIR`, or it cannot be written.
pub fn generate(file: impl AsRef<Path>) {
    let file = file.as_ref();
    println!("cargo::rerun-if-changed={}", file.display());
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    let code = match compile(file, &text) {
        Ok(code) => code,
        Err(report) => {
            eprintln!("{}", report.render());
            panic!("{report}");
        }
    };
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("OUT_DIR: call this from a build script"));
    let name = file.file_stem().expect("the file has a name");
    let to = out.join(name).with_extension("rs");
    fs::write(&to, code).unwrap_or_else(|error| panic!("cannot write {}: {error}", to.display()));
}
