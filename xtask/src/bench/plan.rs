//! What is measured, in which order, and against what.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use miette::{Result, bail, miette};

use super::board::Board;
use super::cost::{self, Cost};
use super::peers::{self, TcpSink, UdpSink};
use super::ping::Pinger;
use super::table::{Check, Measurement};
use super::{iperf, tap};
use crate::emulator::Protocol;

/// Bytes of each measured stream.
const STREAM: u64 = 64 << 20;
/// Echoes of each size.
const ECHOES: u16 = 1000;
/// Rounds of calls and hand-overs.
const ROUNDS: u32 = 1000;
/// A command on the board may take so long.
const PATIENCE: Duration = Duration::from_secs(300);

/// What is to be measured: names, and figures to stand beside.
struct Item {
    name: &'static str,
    what: String,
    unit: &'static str,
    units: u64,
    linux: Option<f64>,
    target: Option<f64>,
    bytes: u64,
}

impl Item {
    fn new(name: &'static str, what: impl Into<String>, unit: &'static str, units: u64) -> Self {
        Self { name, what: what.into(), unit, units, linux: None, target: None, bytes: 0 }
    }

    /// Linux 6.1 took so many instructions for one; half of that is the target.
    fn linux(self, linux: f64) -> Self {
        Self { linux: Some(linux), target: Some(linux / 2.0), ..self }
    }

    fn target(self, target: f64) -> Self {
        Self { target: Some(target), ..self }
    }

    fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}

/// A run of everything.
pub struct Run {
    /// The board.
    pub board: Board,
    /// What a reading of the counters takes.
    pub reading: Cost,
    /// Results so far.
    pub measurements: Vec<Measurement>,
    /// Results so far.
    pub checks: Vec<Check>,
    pinger: Pinger,
    iperf: Option<PathBuf>,
}

impl Run {
    /// Nothing is measured yet.
    pub fn new(board: Board, pinger: Pinger, iperf: Option<PathBuf>) -> Self {
        Self { board, reading: Cost::default(), measurements: Vec::new(), checks: Vec::new(), pinger, iperf }
    }

    /// Measures everything. What fails is noted, and the rest goes on.
    ///
    /// # Errors
    /// If the board stops to answer on its console.
    pub fn everything(&mut self) -> Result<()> {
        self.read()?;
        self.streams()?;
        self.pings()?;
        self.datagrams()?;
        self.calls()?;
        self.others()
    }

    /// What reading the counters costs: two readings with nothing between.
    fn read(&mut self) -> Result<()> {
        // The first one warms up.
        self.board.snapshot()?;
        let before = self.board.snapshot()?;
        let now = self.board.snapshot()?;
        self.reading = Cost::between(&before, &now);
        Ok(())
    }

    /// Does `work` between two readings.
    fn measure(&mut self, item: Item, work: impl FnOnce(&mut Self, &ProgressBar) -> Result<()>) -> Result<()> {
        let bar = bar(&item.what, if item.bytes > 0 { item.bytes } else { item.units });
        let before = self.board.snapshot()?;
        let start = Instant::now();
        let done = work(self, &bar);
        let wall = start.elapsed().as_secs_f64();
        let now = self.board.snapshot()?;
        bar.finish_and_clear();
        let cost = Cost::between(&before, &now).without(&self.reading);
        let by_task = cost::by_task(&before, &now);
        let failure = done.err().map(|error| reason(&error));
        let Item { name, what, unit, units, linux, target, bytes } = item;
        self.measurements.push(Measurement {
            name,
            what,
            unit,
            units,
            cost,
            by_task,
            linux,
            target,
            wall,
            bytes,
            failure,
        });
        Ok(())
    }

    fn streams(&mut self) -> Result<()> {
        let item = Item::new("tcp-receive", "TCP received, 64 MiB, per byte", "byte", STREAM).linux(3.2).bytes(STREAM);
        self.measure(item, |run, bar| {
            peers::send(run.board.machine.endpoint(Protocol::Tcp, 5001)?, STREAM, |done| bar.set_position(done))
        })?;
        let sessions = self.board.command("sessions", PATIENCE)?.text;
        let taken = sessions.lines().next().is_some_and(|line| line.contains(&format!(": {STREAM} bytes")));
        if let (false, Some(one)) = (taken, self.measurements.last_mut()) {
            one.failure.get_or_insert_with(|| format!("the board did not count {STREAM} bytes"));
        }
        let item = Item::new("tcp-send", "TCP sent, 64 MiB, per byte", "byte", STREAM).linux(5.9).bytes(STREAM);
        self.measure(item, |run, bar| {
            peers::pull(run.board.machine.endpoint(Protocol::Tcp, 5002)?, STREAM, |done| bar.set_position(done))
        })
    }

    fn pings(&mut self) -> Result<()> {
        for (name, size, linux) in [("ping-56", 56, 16_100.0), ("ping-1500", 1500, 46_400.0)] {
            let item = Item::new(name, format!("ping echo, {size} bytes, each"), "echo", ECHOES.into()).linux(linux);
            self.copies("on")?;
            // Outside the measurement, so that it holds echoes only.
            let found = self.pinger.find();
            self.measure(item, |run, bar| {
                found?;
                run.pinger.run(size, ECHOES, |done| bar.set_position(done))
            })?;
            self.copies("off")?;
        }
        Ok(())
    }

    /// Lets the emulator copy what the board sends, or not.
    fn copies(&mut self, status: &str) -> Result<()> {
        let said = self.board.machine.monitor(&format!("qom-set {} status {status}", tap::COPIES))?;
        if said.trim().is_empty() { Ok(()) } else { Err(miette!("the emulator says: {}", said.trim())) }
    }

    fn datagrams(&mut self) -> Result<()> {
        for (name, size) in [("udp-echo-64", 64), ("udp-echo-1472", 1472)] {
            let item = Item::new(name, format!("UDP echo, {size} bytes, each"), "echo", ECHOES.into());
            self.measure(item, |run, bar| {
                let to = run.board.machine.endpoint(Protocol::Udp, 7)?;
                peers::udp_echo(to, size, ECHOES.into(), |done| bar.set_position(done))
            })?;
        }
        for (name, size, count, linux) in
            [("udp-send-1472", 1472, 1000, Some(9060.0)), ("udp-send-65000", 65_000, 200, None)]
        {
            let what = format!("UDP sent, ttcp -u -l {size}, per datagram");
            let mut item = Item::new(name, what, "datagram", count).bytes(size * count);
            if let Some(linux) = linux {
                item = item.linux(linux);
            }
            self.measure(item, |run, _| run.send_datagrams(size, count))?;
            self.expect_frames(count * (size + 8).div_ceil(1480));
        }
        Ok(())
    }

    fn send_datagrams(&mut self, size: u64, count: u64) -> Result<()> {
        let sink = UdpSink::open(self.listen_on()?)?;
        let line = format!("ttcp -t -u -s -l {size} -n {count} -p {} {}", sink.port, self.board.machine.host()?);
        let said = self.board.command(&line, PATIENCE)?.text;
        if !said.contains(&format!("{} bytes in", size * count)) {
            bail!("ttcp on the board says:\n{said}");
        }
        let received = sink.finish()?;
        if received.wrong > 0 {
            bail!("{} of {} datagrams hold wrong data", received.wrong, received.datagrams);
        }
        // This host drops datagrams when it does not read as fast as the board sends; what left the board is checked by its frames.
        if received.datagrams == 0 {
            bail!("no datagram came");
        }
        Ok(())
    }

    /// The last measurement has failed if the board did not send so many frames.
    fn expect_frames(&mut self, frames: u64) {
        if let Some(one) = self.measurements.last_mut()
            && one.cost.tx_frames < frames
        {
            one.failure
                .get_or_insert_with(|| format!("the board sent {} frames instead of {frames}", one.cost.tx_frames));
        }
    }

    /// Where peers on this host listen: behind the emulator's router, or on the board's network.
    fn listen_on(&self) -> Result<std::net::Ipv4Addr> {
        if self.board.machine.forwards().is_empty() {
            self.board.machine.host()
        } else {
            Ok(std::net::Ipv4Addr::LOCALHOST)
        }
    }

    fn calls(&mut self) -> Result<()> {
        let item = Item::new("ipc-call", "empty call and reply between two tasks", "call", ROUNDS.into()).target(600.0);
        self.micro(item, &format!("measure call -n {ROUNDS}"))?;
        for (name, list) in [("frames-1", 1u32), ("frames-8", 8), ("frames-32", 32)] {
            // There and back, each a hand-over.
            let units = 2 * u64::from(list) * u64::from(ROUNDS);
            let mut item = Item::new(name, format!("frame handed over, in lists of {list}"), "frame", units);
            if list == 32 {
                item = item.target(60.0);
            }
            self.micro(item, &format!("measure frames -l {list} -n {ROUNDS}"))?;
        }
        Ok(())
    }

    /// A measurement that the board makes itself, by the same counter.
    fn micro(&mut self, item: Item, line: &str) -> Result<()> {
        let start = Instant::now();
        let said = self.board.command(line, PATIENCE)?.text;
        let before = |word: &str| said.split(word).next()?.rsplit(' ').next()?.parse::<u64>().ok();
        let found = before(" instructions").zip(before(" us:"));
        let failure = found.is_none().then(|| format!("the board says: {}", said.trim()));
        let (instructions, micros) = found.unwrap_or_default();
        let (cost, by_task) = (Cost { instructions, micros, ..Cost::default() }, BTreeMap::new());
        let Item { name, what, unit, units, linux, target, bytes } = item;
        let wall = start.elapsed().as_secs_f64();
        self.measurements.push(Measurement {
            name,
            what,
            unit,
            units,
            cost,
            by_task,
            linux,
            target,
            wall,
            bytes,
            failure,
        });
        Ok(())
    }

    /// Transfers whose data are checked and whose price is not told.
    fn others(&mut self) -> Result<()> {
        self.check("TCP echo, 4 MiB", 4 << 20, |run, bar| {
            peers::echo(run.board.machine.endpoint(Protocol::Tcp, 7)?, 4 << 20, |done| bar.set_position(done))
        });
        self.check("chargen, 1 MiB", 1 << 20, |run, bar| {
            peers::chargen(run.board.machine.endpoint(Protocol::Tcp, 19)?, 1 << 20, |done| bar.set_position(done))
        });
        self.check("TCP discard, 4 MiB", 4 << 20, |run, bar| {
            peers::send(run.board.machine.endpoint(Protocol::Tcp, 9)?, 4 << 20, |done| bar.set_position(done))
        });
        self.check("ttcp -t -s -n2048 on the board", 16 << 20, |run, _| {
            let sink = TcpSink::open(run.listen_on()?, 8192)?;
            let line = format!("ttcp -t -s -n2048 -p {} {}", sink.port, run.board.machine.host()?);
            let said = run.board.command(&line, PATIENCE)?.text;
            if !said.contains("16777216 bytes in") {
                bail!("ttcp on the board says:\n{said}");
            }
            let came = sink.finish()?;
            if came == 16 << 20 { Ok(()) } else { Err(miette!("{came} bytes came")) }
        });
        self.check("ping -s 1500 -c 100 -i .006 on the board", 0, |run, _| {
            let line = format!("ping -s 1500 -c 100 -i .006 {}", run.board.machine.host()?);
            let said = run.board.command(&line, PATIENCE)?.text;
            if said.contains("100 packets transmitted, 100 packets received") {
                Ok(())
            } else {
                Err(miette!("ping says:\n{said}"))
            }
        });
        if let Some(path) = self.iperf.clone() {
            self.check("iperf 2, TCP, 32 MiB", 32 << 20, |run, _| {
                iperf::tcp(&path, run.board.machine.endpoint(Protocol::Tcp, 5001)?, 32)
            });
            self.check("iperf 2, UDP, 10 Mbit/s", 1_250_000, |run, _| {
                iperf::udp(&path, run.board.machine.endpoint(Protocol::Udp, 5001)?)
            });
        }
        // The board is well after all of it.
        self.board.snapshot().map(drop)
    }

    fn check(&mut self, what: &str, bytes: u64, work: impl FnOnce(&mut Self, &ProgressBar) -> Result<()>) {
        let bar = bar(what, bytes);
        let start = Instant::now();
        let failure = work(self, &bar).err().map(|error| reason(&error));
        bar.finish_and_clear();
        self.checks.push(Check { what: what.to_owned(), wall: start.elapsed().as_secs_f64(), bytes, failure });
    }
}

/// An error and its causes in one line.
fn reason(error: &miette::Report) -> String {
    error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A bar that fills; not shown in a pipe or a log.
fn bar(what: &str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template("{msg:44} {wide_bar} {percent:>3} %  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar
}
