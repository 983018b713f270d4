//! Builds, runs, tests and measures Leasehold images: `cargo xtask`.
//!
//! * [`cli`]: commands and options,
//! * [`setup`]: finds or installs what is needed,
//! * [`build`]: from app.toml and board.toml to `target/dist/BOARD/`, in steps: [`compile`], [`link`] with [`script`]s,
//!   [`assemble`], [`archive`]; and what it tells: [`map`], [`stack`], [`record`],
//! * [`emulator`]: boots an image and talks to it,
//! * [`run`]: the console on the terminal,
//! * [`test`]: all tests.

#![forbid(unsafe_code)]

mod archive;
mod assemble;
mod bench;
mod build;
mod cli;
mod compile;
mod emulator;
mod link;
mod map;
mod process;
mod record;
mod run;
mod script;
mod setup;
mod stack;
mod test;
mod toolchain;
mod ui;
mod workspace;

use clap::Parser;
use manifest::ImageKind;
use miette::{MietteHandlerOpts, Result, bail};

use build::Artifacts;
use cli::{Cli, Command, DistArgs};
use setup::Need;
use workspace::Workspace;

fn main() -> Result<()> {
    // Paths and commands in messages stay in one piece.
    miette::set_hook(Box::new(|_| Box::new(MietteHandlerOpts::new().break_words(false).build())))?;
    let cli = Cli::parse();
    let workspace = Workspace::find()?;
    match cli.command {
        Command::Setup => setup::command(&workspace),
        Command::Dist(args) => {
            let artifacts = dist(&workspace, &args, Need::Build)?;
            println!("{}", artifacts.image().display());
            Ok(())
        }
        Command::Run(args) => {
            let artifacts = dist(&workspace, &args.dist, Need::Run)?;
            let options = emulator::Options::new(&args.machine, &artifacts.system);
            run::run(&artifacts.system.board.run, &artifacts.image(), &options)
        }
        Command::Map(args) => {
            print!("{}", map::text(&dist(&workspace, &args, Need::Build)?));
            Ok(())
        }
        Command::Boards => {
            for (name, description) in manifest::boards(&workspace.root)? {
                println!("{name:<16} {description}");
            }
            Ok(())
        }
        Command::Test(args) => {
            if !test::command(&workspace, &args)? {
                // The score has been printed, and is the last line.
                std::process::exit(1);
            }
            Ok(())
        }
        Command::Bench(args) => {
            if !bench::command(&workspace, &args)? {
                bail!("a transfer failed; the table says which");
            }
            Ok(())
        }
    }
}

/// Builds the normal image.
fn dist(workspace: &Workspace, args: &DistArgs, need: Need) -> Result<Artifacts> {
    let tools = setup::ensure(workspace, need)?;
    build::dist(workspace, &tools.toolchain, &build::Options::new(args, ImageKind::Normal))
}
