//! Builds, runs, tests and measures Leasehold images: `cargo xtask`.
//!
//! * [`cli`]: commands and options,
//! * [`setup`]: finds or installs what is needed,
//! * [`build`]: from app.toml and board.toml to `target/dist/BOARD/`,
//! * [`emulator`]: boots an image and talks to it,
//! * [`run`]: the console on the terminal.

#![forbid(unsafe_code)]

mod archive;
mod assemble;
mod cli;
mod compile;
mod emulator;
mod link;
mod process;
mod run;
mod script;
mod setup;
mod stack;
mod toolchain;
mod ui;
mod workspace;

use clap::Parser;
use miette::{MietteHandlerOpts, Result};

use cli::{Cli, Command};
use workspace::Workspace;

fn main() -> Result<()> {
    // Paths and commands in messages stay in one piece.
    miette::set_hook(Box::new(|_| Box::new(MietteHandlerOpts::new().break_words(false).build())))?;
    let cli = Cli::parse();
    let workspace = Workspace::find()?;
    match cli.command {
        Command::Setup => setup::command(&workspace),
        other => todo!("{other:?}"),
    }
}
