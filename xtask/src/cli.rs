//! The command line: commands, options, help.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};

/// Builds, runs, tests and measures Leasehold images.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  cargo xtask bench zcu102               build, boot in the emulator, measure, print a table
  cargo xtask test                       host tests, then the self-tests on the emulated board
  cargo xtask run --ip 10.0.2.15/24      boot with the console on this terminal
  cargo xtask dist zcu102                write the image and its memory map to target/dist/zcu102/

BOARD is a folder under boards/; the default is the one that app.toml names.
Every command first runs `setup`, which takes no time and no network when nothing is missing.";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Find or install what is needed: the target's `core`, a linker, the emulator, iperf.
    #[command(after_help = "\
Example:
  cargo xtask setup

What is there is used. What is missing is installed through rustup or the system's package manager, after
saying what and why; where that is not allowed, the exact command is printed instead.
LEASEHOLD_CORE=rust-src builds `core` from its source even if a built one is installed.")]
    Setup,
    /// Build an image and write it to target/dist/BOARD/.
    #[command(after_help = "\
Examples:
  cargo xtask dist
  cargo xtask dist zcu102 --ip 192.168.7.2/24 --gateway 192.168.7.1

Writes image.elf (for `qemu-system-aarch64 -kernel`), image.bin, map.txt, manifest.json and BOARD.zip.")]
    Dist(DistArgs),
    /// Boot an image in the emulator with the console on this terminal.
    #[command(after_help = "\
Examples:
  cargo xtask run
  cargo xtask run zcu102 --net tap:tap0 --ip 192.168.7.2/24 --pcap trace.pcap

Leave with Ctrl-A x. Ctrl-C goes to the board's console.")]
    Run(RunArgs),
    /// Run the host tests and the self-tests on the emulated board.
    #[command(after_help = "\
Examples:
  cargo xtask test
  cargo xtask test --filter frames

The last line is `N passed, N failed`.")]
    Test(TestArgs),
    /// Move real traffic between the emulated board and this host, and print a table of results.
    #[command(after_help = "\
Examples:
  cargo xtask bench zcu102
  cargo xtask bench --json figures.json")]
    Bench(BenchArgs),
    /// Print the memory map, the size of each task and the bounds of its stack.
    #[command(after_help = "Example:\n  cargo xtask map zcu102")]
    Map(DistArgs),
    /// List the boards.
    Boards,
}

/// The board, and values that replace those in app.toml.
#[derive(Args, Debug, Clone, Default)]
pub struct DistArgs {
    /// Folder under boards/ [default: `board` in app.toml].
    pub board: Option<String>,
    /// Addresses for the image.
    #[command(flatten)]
    pub address: AddressArgs,
}

/// Addresses that replace those in app.toml.
#[derive(Args, Debug, Clone, Default, PartialEq, Eq)]
#[command(next_help_heading = "Addresses (default: app.toml)")]
pub struct AddressArgs {
    /// The board's own address and prefix length, or `dhcp`.
    #[arg(long, value_name = "A.B.C.D/N")]
    pub ip: Option<Ip>,
    /// Router for addresses outside the own network.
    #[arg(long, value_name = "A.B.C.D")]
    pub gateway: Option<Ipv4Addr>,
    /// Ethernet address, six bytes in hexadecimal; it must be a station's (not a group's).
    #[arg(long, value_name = "MAC", value_parser = parse_mac)]
    pub mac: Option<MacAddress>,
}

/// How to run an image in the emulator.
#[derive(Args, Debug, Clone, Default)]
pub struct RunArgs {
    /// Board and addresses.
    #[command(flatten)]
    pub dist: DistArgs,
    /// Network and clock.
    #[command(flatten)]
    pub machine: MachineArgs,
}

/// Network and clock of the emulated board.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Emulator")]
pub struct MachineArgs {
    /// `user`: behind the emulator's own router, services forwarded to ports of this host, no root needed;
    /// `tap:IFACE`: on an existing TAP interface.
    #[arg(long, default_value = "user", value_parser = parse_net)]
    pub net: Net,
    /// Write the frames on the wire to a file.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Tie the clock to the count of executed instructions: one per nanosecond, the same in each run.
    #[arg(long)]
    pub icount: bool,
}

/// Arguments of `test`.
#[derive(Args, Debug, Clone, Default)]
pub struct TestArgs {
    /// Board, addresses, network and clock.
    #[command(flatten)]
    pub run: RunArgs,
    /// Only tests whose name contains this text.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
}

/// Arguments of `bench`.
#[derive(Args, Debug, Clone, Default)]
pub struct BenchArgs {
    /// Board, addresses, network and clock.
    #[command(flatten)]
    pub run: RunArgs,
    /// Also write the results to a file as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Where the board's network goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Net {
    /// The emulator's user-mode network.
    #[default]
    User,
    /// An existing TAP interface.
    Tap(String),
}

fn parse_net(text: &str) -> Result<Net, String> {
    match text.split_once(':') {
        None if text == "user" => Ok(Net::User),
        // 15 bytes is the kernel's limit for interface names; a comma would end the emulator's option.
        Some(("tap", name))
            if (1..=15).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic() && !",/".contains(c)) =>
        {
            Ok(Net::Tap(name.to_owned()))
        }
        Some(("tap", _)) => {
            Err("the name of an interface has 1 to 15 letters, as `ip link` shows it: tap:tap0".to_owned())
        }
        _ => Err("expected `user` or `tap:IFACE`".to_owned()),
    }
}

/// The board's own address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ip {
    /// Ask the network.
    Dhcp,
    /// Address and prefix length (1 to 30).
    Static(Ipv4Addr, u8),
}

impl std::fmt::Display for Ip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Dhcp => f.write_str("dhcp"),
            Self::Static(address, prefix) => write!(f, "{address}/{prefix}"),
        }
    }
}

impl FromStr for Ip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "dhcp" {
            return Ok(Ip::Dhcp);
        }
        let expected = || "expected an address with its prefix length, such as 192.168.7.2/24, or `dhcp`".to_owned();
        let (address, prefix) = text.split_once('/').ok_or_else(expected)?;
        let address: Ipv4Addr = address.parse().map_err(|_| expected())?;
        let prefix: u8 = prefix.parse().map_err(|_| expected())?;
        if !(1..=30).contains(&prefix) {
            return Err("the prefix length is 1 to 30".to_owned());
        }
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() || address.is_loopback() {
            return Err(format!("{address} cannot be the address of a board"));
        }
        let host = u32::from(address) & (u32::MAX >> prefix);
        if host == 0 || host == u32::MAX >> prefix {
            return Err(format!(
                "{address} is the first or last address of its network /{prefix}, which no host may have"
            ));
        }
        Ok(Ip::Static(address, prefix))
    }
}

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MacAddress(pub [u8; 6]);

impl std::fmt::Display for MacAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected six bytes in hexadecimal, such as 02:00:00:00:00:01".to_owned();
        let parts: Vec<&str> = text.split([':', '-']).collect();
        let mut bytes = [0; 6];
        if parts.len() != bytes.len()
            || parts.iter().any(|part| part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_hexdigit()))
        {
            return Err(expected());
        }
        for (byte, part) in bytes.iter_mut().zip(parts) {
            *byte = u8::from_str_radix(part, 16).map_err(|_| expected())?;
        }
        Ok(Self(bytes))
    }
}

fn parse_mac(text: &str) -> Result<MacAddress, String> {
    let mac: MacAddress = text.parse()?;
    if mac.0[0] & 1 != 0 {
        return Err(format!("{mac} is a group's address (lowest bit of the first byte is set)"));
    }
    if mac.0 == [0; 6] {
        return Err("an address of zeroes is nobody's".to_owned());
    }
    Ok(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("cargo xtask").chain(line.split_whitespace()))
    }

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn run_takes_all_options() {
        let line = "run zcu102 --net tap:tap0 --ip 10.1.2.3/16 --gateway 10.1.0.1 --mac 02:00:00:00:00:01 --pcap x.pcap --icount";
        let Command::Run(args) = parse(line).expect("valid").command else { panic!("not run") };
        assert_eq!(args.dist.board.as_deref(), Some("zcu102"));
        assert_eq!(args.machine.net, Net::Tap("tap0".to_owned()));
        assert_eq!(args.dist.address.ip, Some(Ip::Static(Ipv4Addr::new(10, 1, 2, 3), 16)));
        assert_eq!(args.dist.address.gateway, Some(Ipv4Addr::new(10, 1, 0, 1)));
        assert_eq!(args.dist.address.mac, Some(MacAddress([2, 0, 0, 0, 0, 1])));
        assert_eq!(args.machine.pcap, Some(PathBuf::from("x.pcap")));
        assert!(args.machine.icount);
    }

    #[test]
    fn defaults_need_no_argument() {
        for line in ["setup", "dist", "run", "test", "bench", "map", "boards"] {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        let Command::Run(args) = parse("run").expect("valid").command else { panic!("not run") };
        assert_eq!(args.machine.net, Net::User);
        assert_eq!(args.dist.address, AddressArgs::default());
    }

    #[test]
    fn wrong_values_are_refused_with_a_reason() {
        for (line, reason) in [
            ("run --net bridge", "expected `user` or `tap:IFACE`"),
            ("run --net tap:", "1 to 15"),
            ("run --net tap:a,b", "1 to 15"),
            ("dist --ip 10.0.2.15", "prefix length"),
            ("dist --ip 10.0.2.15/33", "1 to 30"),
            ("dist --ip 10.0.2.0/24", "first or last"),
            ("dist --ip 10.0.2.255/24", "first or last"),
            ("dist --ip 224.0.0.1/24", "cannot be"),
            ("dist --mac 01:00:00:00:00:00", "group"),
            ("dist --mac 00:00:00:00:00:00", "nobody"),
            ("dist --mac 2:0:0:0:0:1", "hexadecimal"),
            ("dist --mac +2:00:00:00:00:01", "hexadecimal"),
        ] {
            let error = parse(line).expect_err(line).to_string();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
