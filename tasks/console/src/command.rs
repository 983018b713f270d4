//! What a line asks for.

use bench_api::{Job, Limit, Marks, Micro, Peer};

use crate::options::{Argument, Arguments, Wrong, address, number, scaled, seconds};

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<'a> {
    /// Nothing: an empty line.
    Nothing,
    /// Lists the commands, or explains one.
    Help(Option<&'a str>),
    /// Runs a job of the benchmark task, and shows it as this tool does.
    Run(Job, Tool),
    /// Shows the interface.
    Ifconfig,
    /// Shows sockets, or with `-s` what the stack counts.
    Netstat {
        /// Counters.
        statistics: bool,
    },
    /// Shows what peers have sent to port 5001.
    Sessions,
    /// Shows the tasks.
    Ps,
    /// Shows the kernel's counters: once since boot, or each so many seconds.
    Vmstat(Option<u32>),
    /// Lets a task fail.
    Fault(&'a str),
    /// Restarts a task.
    Restart(&'a str),
    /// Shows what has crashed.
    Crash,
    /// Sends a record with all counters.
    Counters,
    /// Resets the board.
    Reboot,
    /// Switches the board off.
    PowerOff,
}

/// Whose format to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    /// ttcp.
    Ttcp,
    /// iperf 2.
    Iperf,
    /// ping.
    Ping,
    /// Our own measurements.
    Measure,
}

/// Names of the commands, how they are used, and what they do.
pub const COMMANDS: [(&str, &str, &str); 16] = [
    ("help", "[COMMAND]", "this list, or one command of it"),
    ("ttcp", "-t|-r [-u] -s [-l LEN] [-n COUNT] [-p PORT] [HOST]", "send or receive a stream or datagrams, as ttcp"),
    ("iperf", "-c HOST [-u] [-b RATE] [-t SECONDS | -n BYTES] [-l LEN] [-p PORT]", "send to an iperf 2 server"),
    (
        "ping",
        "[-q] [-f] [-s SIZE] [-c COUNT] [-i SECONDS] HOST",
        "echo requests; -f sends each when the one before is answered",
    ),
    ("ifconfig", "", "address, link and hardware address"),
    ("netstat", "[-s]", "sockets; with -s what the network stack counts"),
    ("sessions", "", "what peers have sent to port 5001"),
    ("ps", "", "tasks: state, CPU time, restarts"),
    (
        "vmstat",
        "[SECONDS]",
        "interrupts, calls, switches, messages, frames, copies: since boot, or each so many seconds",
    ),
    ("fault", "TASK", "let a task fail"),
    ("restart", "TASK", "restart a task"),
    ("crash", "", "what has crashed"),
    ("measure", "call|frames [-l LIST] [-n ROUNDS]", "instructions of a call, or of handing over a list of frames"),
    ("counters", "", "all counters as a record for programs"),
    ("reboot", "", "reset the board"),
    ("poweroff", "", "switch the board off"),
];

/// Names that Tab completes.
pub const NAMES: [&str; 16] = [
    "help", "ttcp", "iperf", "ping", "ifconfig", "netstat", "sessions", "ps", "vmstat", "fault", "restart", "crash",
    "measure", "counters", "reboot", "poweroff",
];

const PORT: u16 = 5001;

/// Reads a line.
///
/// # Errors
/// What is wrong with it.
pub fn parse(line: &str) -> Result<Command<'_>, Wrong<'_>> {
    let mut words = line.split_ascii_whitespace();
    let Some(name) = words.next() else { return Ok(Command::Nothing) };
    let rest = words.clone();
    let command = match name {
        "help" | "?" => Command::Help(words.next()),
        "ttcp" => return ttcp(rest),
        "iperf" => return iperf(rest),
        "ping" => return ping(rest),
        "measure" => return measure(rest),
        "ifconfig" => Command::Ifconfig,
        "netstat" => return netstat(rest),
        "sessions" => Command::Sessions,
        "ps" => Command::Ps,
        "vmstat" => Command::Vmstat(match words.next() {
            None => None,
            Some(word) => {
                let wanted = Wrong::Bad(word, "seconds from 1 to 3600 are wanted");
                Some(word.parse().ok().filter(|seconds| (1..=3600).contains(seconds)).ok_or(wanted)?)
            }
        }),
        "fault" => Command::Fault(words.next().ok_or(Wrong::Missing("the name of a task (ps lists them)"))?),
        "restart" => Command::Restart(words.next().ok_or(Wrong::Missing("the name of a task (ps lists them)"))?),
        "crash" => Command::Crash,
        "counters" => Command::Counters,
        "reboot" => Command::Reboot,
        "poweroff" => Command::PowerOff,
        "quit" | "exit" => {
            return Err(Wrong::Unsupported("there is nothing to go back to (poweroff ends the machine)"));
        }
        _ => return Err(Wrong::UnknownCommand),
    };
    match words.next() {
        Some(word) => Err(Wrong::TooMany(word)),
        None => Ok(command),
    }
}

type Words<'a> = core::str::SplitAsciiWhitespace<'a>;

/// Puts the one word of a command line into its place.
fn one<'a>(place: &mut Option<&'a str>, word: &'a str) -> Result<(), Wrong<'a>> {
    match place.replace(word) {
        None => Ok(()),
        Some(_) => Err(Wrong::TooMany(word)),
    }
}

const LENGTH: &str = "a length from 1 to 65536 is wanted";
const DATAGRAM: &str = "a length from 1 to 65507 is wanted";
const COUNT: &str = "a number from 1 on is wanted";
const A_PORT: &str = "a port from 1 to 65535 is wanted";

fn ttcp(words: Words<'_>) -> Result<Command<'_>, Wrong<'_>> {
    let (mut transmit, mut receive, mut udp, mut generate) = (false, false, false, false);
    let (mut length, mut count, mut port, mut host) = (None, 2048, PORT, None);
    for argument in Arguments::new(words, "trusD", "lnpbA") {
        match argument? {
            Argument::Option('t', _) => transmit = true,
            Argument::Option('r', _) => receive = true,
            Argument::Option('u', _) => udp = true,
            Argument::Option('s', _) => generate = true,
            Argument::Option('l', value) => length = Some((value, number('l', value, 1, 65_536u32, LENGTH)?)),
            Argument::Option('n', value) => count = number('n', value, 1, u64::MAX, COUNT)?,
            Argument::Option('p', value) => port = number('p', value, 1, u16::MAX, A_PORT)?,
            // Socket buffers and alignment are not what limits here; taken so that old command lines work.
            Argument::Option(..) => {}
            Argument::Word(word) => one(&mut host, word)?,
        }
    }
    if transmit == receive {
        return Err(Wrong::Missing("one of -t (transmit) and -r (receive)"));
    }
    if !generate {
        return Err(Wrong::Unsupported("there is no standard input or output here: add -s"));
    }
    if receive {
        if port != PORT {
            return Err(Wrong::Unsupported("only port 5001 receives"));
        }
        return match host {
            Some(word) => Err(Wrong::TooMany(word)),
            None => Ok(Command::Run(Job::Receive { udp }, Tool::Ttcp)),
        };
    }
    let peer = Peer { address: address(host.ok_or(Wrong::Missing("the host to send to"))?)?, port };
    let limit = Limit::Buffers(count);
    let length = match length {
        Some((value, length)) if udp && length > 65_507 => return Err(Wrong::BadValue('l', value, DATAGRAM)),
        Some((_, length)) => length,
        None => 8192,
    };
    let job = if udp {
        Job::SendUdp { peer, length, limit, marks: Marks::Ttcp, rate: 0 }
    } else {
        Job::SendTcp { peer, length, limit }
    };
    Ok(Command::Run(job, Tool::Ttcp))
}

fn iperf(words: Words<'_>) -> Result<Command<'_>, Wrong<'_>> {
    let (mut host, mut udp, mut rate, mut limit, mut length, mut port) =
        (None, false, None, Limit::Millis(10_000), None, PORT);
    for argument in Arguments::new(words, "us", "cbtnlpwi") {
        match argument? {
            Argument::Option('c', value) => one(&mut host, value)?,
            Argument::Option('u', _) => udp = true,
            Argument::Option('s', _) => {
                return Err(Wrong::Unsupported(
                    "the server runs always, on port 5001 (sessions shows what it received)",
                ));
            }
            Argument::Option('b', value) => rate = Some(scaled('b', value)?),
            Argument::Option('t', value) => limit = Limit::Millis(seconds('t', value)?.div_ceil(1000)),
            Argument::Option('n', value) => limit = Limit::Bytes(scaled('n', value)?),
            Argument::Option('l', value) => {
                let bytes = scaled('l', value)?;
                length = Some(u32::try_from(bytes).map_err(|_| Wrong::BadValue('l', value, LENGTH))?);
            }
            Argument::Option('p', value) => port = number('p', value, 1, u16::MAX, A_PORT)?,
            Argument::Option(..) => {}
            Argument::Word(word) => return Err(Wrong::TooMany(word)),
        }
    }
    let peer = Peer { address: address(host.ok_or(Wrong::Missing("-c HOST"))?)?, port };
    if udp {
        let length = length.unwrap_or(1470);
        if !(40..=65_507).contains(&length) {
            return Err(Wrong::Unsupported("-l: datagrams of iperf have 40 to 65507 bytes"));
        }
        let job = Job::SendUdp { peer, length, limit, marks: Marks::Iperf, rate: rate.unwrap_or(1_000_000) };
        return Ok(Command::Run(job, Tool::Iperf));
    }
    if rate.is_some() {
        return Err(Wrong::Unsupported("-b is for datagrams: add -u"));
    }
    let length = length.unwrap_or(65_536);
    if length > 65_536 {
        return Err(Wrong::Unsupported("-l: 65536 bytes are the most"));
    }
    Ok(Command::Run(Job::SendTcp { peer, length, limit }, Tool::Iperf))
}

fn ping(words: Words<'_>) -> Result<Command<'_>, Wrong<'_>> {
    let (mut host, mut size, mut count, mut interval, mut quiet) = (None, 56, 0, 1_000_000, false);
    for argument in Arguments::new(words, "qf", "sci") {
        match argument? {
            Argument::Option('q', _) => quiet = true,
            Argument::Option('f', _) => (interval, quiet) = (0, true),
            Argument::Option('s', value) => size = number('s', value, 0, 65_507, "a size from 0 to 65507 is wanted")?,
            Argument::Option('c', value) => count = number('c', value, 1, u32::MAX, COUNT)?,
            Argument::Option(_, value) => interval = seconds('i', value)?,
            Argument::Word(word) => one(&mut host, word)?,
        }
    }
    let address = address(host.ok_or(Wrong::Missing("the host to ping"))?)?;
    Ok(Command::Run(Job::Ping { address, size, count, interval, quiet }, Tool::Ping))
}

fn measure(words: Words<'_>) -> Result<Command<'_>, Wrong<'_>> {
    let (mut list, mut rounds, mut what) = (1, 1000, None);
    for argument in Arguments::new(words, "", "ln") {
        match argument? {
            Argument::Option('l', value) => list = number('l', value, 1, 32, "a list has 1 to 32 frames")?,
            Argument::Option(_, value) => {
                rounds = number('n', value, 1, 1_000_000, "1 to 1000000 rounds are possible")?
            }
            Argument::Word(word) => one(&mut what, word)?,
        }
    }
    let what = match what.ok_or(Wrong::Missing("what: call or frames"))? {
        "call" => Micro::Call,
        "frames" => Micro::Frames(list),
        word => return Err(Wrong::Bad(word, "call or frames is wanted")),
    };
    Ok(Command::Run(Job::Micro { what, rounds }, Tool::Measure))
}

fn netstat(words: Words<'_>) -> Result<Command<'_>, Wrong<'_>> {
    let mut statistics = false;
    for argument in Arguments::new(words, "san", "") {
        match argument? {
            Argument::Option('s', _) => statistics = true,
            // All sockets in numbers is what we show anyway.
            Argument::Option(..) => {}
            Argument::Word(word) => return Err(Wrong::TooMany(word)),
        }
    }
    Ok(Command::Netstat { statistics })
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
