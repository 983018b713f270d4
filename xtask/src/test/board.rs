//! The self-tests on the emulated board.
//!
//! The host names one test at a time over the serial port, so that a test that hangs has a name: it fails, the board is booted
//! anew, and the next test runs.

use std::time::{Duration, Instant};

use manifest::ImageKind;
use miette::Result;

use super::peer;
use super::session::Session;
use super::tally::Tally;
use crate::build::{self, Artifacts};
use crate::cli::{Net, TestArgs};
use crate::emulator::{Machine, Options, Protocol};
use crate::toolchain::Toolchain;
use crate::ui::Activity;
use crate::workspace::Workspace;

/// For the suite to start.
const BOOT: Duration = Duration::from_secs(60);
/// For one test.
const TEST: Duration = Duration::from_secs(60);
/// How much slower a board with a counted clock may be.
const COUNTED: u32 = 4;

/// A test in which this host connects to the board, and not the other way round.
const CALLED: &str = "network.tcp_accept";
/// The port there, and how often.
const CALLS: (u16, usize) = (7, 3);
/// A test in which this host takes the cable out.
const UNPLUGGED: &str = "network.cable_goes_and_comes";
/// For how long. The driver looks at the link ten times a second.
const UNPLUGGED_FOR: Duration = Duration::from_secs(1);

/// Builds the test image and runs the tests that are wanted.
pub fn run(workspace: &Workspace, toolchain: &Toolchain, args: &TestArgs, tally: &mut Tally) {
    if !tally.wants_some("board: ") {
        return;
    }
    let image = build::dist(workspace, toolchain, &build::Options::new(&args.run.dist, ImageKind::Test));
    let board = image.and_then(|image| Board::new(image, args));
    let mut board = match board {
        Ok(board) => board,
        Err(error) => return tally.fail("board: build of the image", &format!("{error:?}")),
    };
    let names = board.session().and_then(|session| session.list(BOOT));
    let names = match names {
        Ok(names) if !names.is_empty() => names,
        Ok(_) => return tally.fail("board: boot", "the suite has no tests"),
        Err(complaint) => return tally.fail("board: boot", &complaint),
    };
    for name in names {
        let shown = format!("board: {name}");
        if tally.wants(&shown) {
            let start = Instant::now();
            let activity = Activity::start(&shown);
            let outcome = board.test(&name);
            drop(activity);
            let took = outcome.as_ref().map_or(start.elapsed(), |micros| Duration::from_micros(*micros));
            tally.book(&shown, took, outcome.map(drop));
        }
    }
}

/// The board, booted when it is needed.
struct Board {
    image: Artifacts,
    options: Options,
    patience: u32,
    /// Port of the echo services on this host.
    peer: u16,
    session: Option<Session>,
}

impl Board {
    fn new(image: Artifacts, args: &TestArgs) -> Result<Self> {
        let options = Options::new(&args.run.machine, &image.system);
        let host = crate::emulator::host_address(&options)?;
        let peer = peer::serve(peer::serving_address(host, options.net == Net::User))?;
        let patience = if options.icount { COUNTED } else { 1 };
        Ok(Self { image, options, patience, peer, session: None })
    }

    /// A session with a board that runs; boots one if there is none.
    fn session(&mut self) -> Result<&mut Session, String> {
        if self.session.is_none() {
            let machine = Machine::start(&self.image.system.board.run, &self.image.image(), &self.options)
                .map_err(|error| format!("{error:?}"))?;
            let mut session = Session::start(machine, BOOT * self.patience)?;
            let host = session.machine.host().map_err(|error| format!("{error:?}"))?;
            session.say(&format!("peer {host} {}", self.peer))?;
            self.session = Some(session);
        }
        self.session.as_mut().ok_or_else(|| "no session".to_owned())
    }

    /// Runs a test; microseconds of the board.
    fn test(&mut self, name: &str) -> Result<u64, String> {
        let (scale, patience) = (self.patience, TEST * self.patience);
        let session = self.session()?;
        let mut client = None;
        let outcome = session.run(name, patience, |machine| {
            match name {
                CALLED => {
                    let (port, times) = CALLS;
                    client = Some(peer::call(machine.endpoint(Protocol::Tcp, port)?, times, patience));
                }
                UNPLUGGED => {
                    machine.set_link(false)?;
                    std::thread::sleep(UNPLUGGED_FOR * scale);
                    machine.set_link(true)?;
                }
                _ => {}
            }
            Ok(())
        });
        if outcome.is_err() {
            // What a failed test left behind could make the next one fail, too.
            self.session = None;
        }
        let micros = outcome?;
        match client.map(std::thread::JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(micros),
            Some(Ok(Err(error))) => Err(format!("{error:?}")),
            Some(Err(_)) => Err("the host's client failed".to_owned()),
        }
    }
}
