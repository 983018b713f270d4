//! What needs no board: formatting, lints, host tests, the image's bytes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Instant;

use manifest::{ImageKind, Overrides};
use miette::{IntoDiagnostic, Report, Result, WrapErr, miette};

use super::libtest::{Found, Reader};
use super::tally::Tally;
use crate::build;
use crate::cli::TestArgs;
use crate::process;
use crate::toolchain::{HARD_FLOAT, SOFT_FLOAT, Toolchain};
use crate::ui::Activity;
use crate::workspace::Workspace;

/// Runs them.
pub fn run(workspace: &Workspace, toolchain: &Toolchain, args: &TestArgs, tally: &mut Tally) {
    step(tally, "host: formatting", || {
        require(toolchain, "fmt", "rustfmt")?;
        quiet(cargo(workspace, toolchain).args(["fmt", "--all", "--check"]))
    });
    step(tally, "host: lints of host code", || {
        require(toolchain, "clippy", "clippy")?;
        let mut command = cargo(workspace, toolchain);
        command.args(["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]);
        quiet(&mut command)
    });
    for target in [SOFT_FLOAT, HARD_FLOAT] {
        step(tally, &format!("host: lints of code for {target}"), || {
            require(toolchain, "clippy", "clippy")?;
            quiet(&mut target_lints(workspace, toolchain, args, target)?)
        });
    }
    if tally.wants_some("host: ") {
        host_tests(workspace, toolchain, tally);
    }
    step(tally, "image: the same bytes from another folder", || {
        let options = build::Options::new(&args.run.dist, ImageKind::Test);
        Ok(build::check_reproducible(workspace, toolchain, &options)?)
    });
}

/// Runs one that has a single result.
fn step(tally: &mut Tally, name: &str, work: impl FnOnce() -> Result<(), Complaint>) {
    if !tally.wants(name) {
        return;
    }
    let start = Instant::now();
    let activity = Activity::start(name);
    let outcome = work().map_err(|complaint| complaint.0);
    drop(activity);
    tally.book(name, start.elapsed(), outcome);
}

/// Why a step failed, as it is to be shown.
struct Complaint(String);

impl From<Report> for Complaint {
    fn from(error: Report) -> Self {
        Self(format!("{error:?}"))
    }
}

fn cargo(workspace: &Workspace, toolchain: &Toolchain) -> Command {
    let mut command = Command::new(&toolchain.compiler.cargo);
    command.current_dir(&workspace.root).env_remove("RUSTFLAGS");
    command
}

/// Runs to the end; what it said is only of interest if it failed, and then line by line as it said it.
fn quiet(command: &mut Command) -> Result<(), Complaint> {
    let said = |error: Report| error.chain().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    process::output(command).map(drop).map_err(|error| Complaint(said(error)))
}

/// Checks that cargo has a subcommand; asks rustup for it if it has not.
fn require(toolchain: &Toolchain, subcommand: &str, component: &str) -> Result<()> {
    let has = || process::output(Command::new(&toolchain.compiler.cargo).args([subcommand, "--version"]));
    if has().is_ok() {
        return Ok(());
    }
    if let Some(rustup) = process::find("rustup") {
        process::output(Command::new(rustup).args(["component", "add", component]))?;
    }
    has().map(drop).wrap_err_with(|| format!("install {component}: with rustup, `rustup component add {component}`"))
}

/// The lints of everything that both images build for a target.
fn target_lints(workspace: &Workspace, toolchain: &Toolchain, args: &TestArgs, target: &str) -> Result<Command> {
    let mut packages = BTreeSet::new();
    if target == SOFT_FLOAT {
        packages.insert("kernel".to_owned());
    }
    for image in ImageKind::ALL {
        let board = args.run.dist.board.as_deref();
        let system = manifest::load(&workspace.root, board, image, &Overrides::default())?;
        let tasks = system.tasks.into_iter().filter(|task| task.floating_point == (target == HARD_FLOAT));
        packages.extend(tasks.map(|task| task.package));
    }
    let mut command = cargo(workspace, toolchain);
    command.args(["clippy", "--quiet", "--locked", "--target", target, "--lib", "--bins", "--target-dir"]);
    command.arg(workspace.target.join("lints"));
    if toolchain.build_core {
        command.args(["-Zbuild-std=core,alloc,compiler_builtins", "-Zbuild-std-features=compiler-builtins-mem"]);
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    for package in packages {
        command.args(["--package", &package]);
    }
    command.args(["--", "-D", "warnings"]);
    Ok(command)
}

/// `cargo test`, each test counted.
fn host_tests(workspace: &Workspace, toolchain: &Toolchain, tally: &mut Tally) {
    let mut reader = Reader::default();
    let mut failed = Vec::new();
    let filter = tally.filter().map(str::to_owned);
    let outcome = follow(workspace, toolchain, filter.as_deref(), |line| match reader.line(line) {
        Some(Found::Passed(program, count)) => tally.pass_many(&format!("host: {program}"), count),
        Some(Found::Failed(name)) => failed.push(name),
        None => {}
    });
    for name in &failed {
        tally.fail(&format!("host: {name}"), &reader.section(name));
    }
    if let Err(error) = outcome
        && failed.is_empty()
    {
        tally.fail("host: cargo test", &format!("{}\n{error:?}", reader.detail()));
    }
}

/// Runs `cargo test` and passes its lines on as they come.
fn follow(
    workspace: &Workspace,
    toolchain: &Toolchain,
    filter: Option<&str>,
    mut line: impl FnMut(&str),
) -> Result<()> {
    let activity = Activity::start("host tests");
    // Results come on one stream and the names of their programs on the other: both into one pipe, to keep their order.
    let (output, input) = std::io::pipe().into_diagnostic()?;
    let mut command = cargo(workspace, toolchain);
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(filter);
    command.stdin(Stdio::null()).stdout(input.try_clone().into_diagnostic()?).stderr(input);
    let mut child = command.spawn().into_diagnostic().wrap_err("cannot start cargo")?;
    // The command holds the pipe's other end.
    drop(command);
    let mut reader = BufReader::new(output);
    let mut bytes = Vec::new();
    while reader.by_ref().read_until(b'\n', &mut bytes).into_diagnostic()? > 0 {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        activity.update(format!("host tests: {}", text.trim()));
        line(&text);
        bytes.clear();
    }
    let status = child.wait().into_diagnostic()?;
    if status.success() {
        Ok(())
    } else {
        Err(miette!("`{}` failed ({status})", process::shown(&cargo_test_shown(toolchain))))
    }
}

/// The command for a message.
fn cargo_test_shown(toolchain: &Toolchain) -> Command {
    let mut command = Command::new(&toolchain.compiler.cargo);
    command.args(["test", "--workspace"]);
    command
}
