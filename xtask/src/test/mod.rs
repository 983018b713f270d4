//! The command `test`: formatting, lints, host tests, then the self-tests on the emulated board.
//!
//! Everything is a test with a name, and counts: [`host`] runs cargo, [`board`] the suite on the board, [`Tally`] keeps the score.

mod board;
mod host;
mod libtest;
mod peer;
mod session;
mod tally;

use miette::Result;

use crate::cli::TestArgs;
use crate::setup::{self, Need};
use crate::workspace::Workspace;
use tally::Tally;

/// Runs all tests, or those whose name contains the filter. The last line says how many passed and how many failed; returns
/// whether all passed.
///
/// # Errors
/// If what the tests need is missing and cannot be installed.
pub fn command(workspace: &Workspace, args: &TestArgs) -> Result<bool> {
    let tools = setup::ensure(workspace, Need::Run)?;
    let mut tally = Tally::new(args.filter.as_deref());
    host::run(workspace, &tools.toolchain, args, &mut tally);
    board::run(workspace, &tools.toolchain, args, &mut tally);
    Ok(tally.finish())
}
