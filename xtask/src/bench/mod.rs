//! The command `bench`: moves real traffic between the emulated board and this host, and tells what it cost.
//!
//! The clock of the emulator is tied to the count of instructions, so what the CPU executed between two readings of the board's counters is exact.
//! Peers are real: sockets of this host ([`peers`]), a host on the board's wire ([`ping`]), iperf 2 ([`iperf`]). Everything that comes back is
//! checked byte by byte.

mod board;
mod cost;
mod iperf;
mod peers;
mod ping;
mod plan;
mod table;
mod tap;
mod wire;

use std::fs;
use std::time::Duration;

use manifest::ImageKind;
use miette::{IntoDiagnostic, Result, WrapErr};

use crate::build;
use crate::cli::BenchArgs;
use crate::emulator::{Machine, NETDEV, Options};
use crate::setup::{self, Need};
use crate::ui::{Activity, say};
use crate::workspace::Workspace;
use board::Board;
use ping::Pinger;
use plan::Run;
use table::Results;

/// How long the board may take to boot and to get an address.
const BOOT: Duration = Duration::from_secs(120);

/// Builds, boots, measures, prints. Returns whether every transfer worked.
///
/// # Errors
/// If the image cannot be built, or the board does not boot or stops to answer.
pub fn command(workspace: &Workspace, args: &BenchArgs) -> Result<bool> {
    let tools = setup::ensure(workspace, Need::Peers)?;
    let artifacts = build::dist(workspace, &tools.toolchain, &build::Options::new(&args.run.dist, ImageKind::Normal))?;
    let folder = tempfile::Builder::new()
        .prefix("leasehold-wire-")
        .tempdir()
        .into_diagnostic()
        .wrap_err("no temporary folder")?;
    let mut options = Options::new(&args.run.machine, &artifacts.system);
    options.icount = true;
    options.extra = tap::arguments(folder.path(), NETDEV);
    let activity = Activity::start("Booting");
    let machine = Machine::start(&artifacts.system.board.run, &artifacts.image(), &options)?;
    let wire = tap::Tap::connect(folder.path())?;
    let (board, address) = Board::ready(machine, BOOT)?;
    drop(activity);
    say(format!("The board is up, with address {address}"));
    let host = board.machine.host()?;
    let taken: Vec<_> = [Some(host), options.gateway].into_iter().flatten().collect();
    let pinger = Pinger::new(wire, address, &taken);
    let mut run = Run::new(board, pinger, tools.iperf);
    let outcome = run.everything();
    let results = Results {
        board: artifacts.system.board.name.clone(),
        clock: "exact, by the emulator's deterministic clock",
        reading: run.reading,
        measurements: run.measurements,
        checks: run.checks,
    };
    print!("{}", results.text());
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&results).into_diagnostic()?;
        fs::write(path, json + "\n").into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    outcome?;
    run.board.machine.stop()?;
    Ok(results.all_worked())
}
