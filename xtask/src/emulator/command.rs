//! The emulator's command line.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use manifest::Run;
use miette::{Result, bail};

use super::{Forward, Options, ports};
use crate::cli::{Ip, Net};

/// Name of the network that the MAC is connected to, as the monitor knows it.
pub const NETDEV: &str = "net0";

/// Where the board's serial port goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SerialTo {
    /// To the terminal, shared with the emulator's monitor (Ctrl-A is its escape key).
    Terminal,
    /// To the standard streams, alone; the monitor listens on a socket.
    Pipe {
        /// Path of the socket.
        monitor: PathBuf,
    },
}

/// All arguments.
///
/// # Errors
/// If the network cannot be had as asked, or a path cannot be said to the emulator.
pub fn arguments(
    launch: &Run,
    image: &Path,
    options: &Options,
    forwards: &[Forward],
    serial: &SerialTo,
) -> Result<Vec<String>> {
    let mut args = launch.args.clone();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|&word| word.to_owned()));
    add(&["-display", "none"]);
    for _ in 0..launch.serial {
        add(&["-serial", "null"]);
    }
    match serial {
        SerialTo::Terminal => add(&["-serial", "mon:stdio"]),
        SerialTo::Pipe { monitor } => {
            let socket = format!("unix:{},server=on,wait=off", escape(monitor)?);
            add(&[
                "-monitor",
                "none",
                "-chardev",
                "stdio,id=console,signal=off",
                "-serial",
                "chardev:console",
                "-qmp",
                &socket,
            ]);
        }
    }
    for _ in 0..launch.nic {
        add(&["-net", "nic"]);
    }
    let nic =
        options.mac.map_or_else(|| format!("nic,netdev={NETDEV}"), |mac| format!("nic,netdev={NETDEV},macaddr={mac}"));
    add(&["-netdev", &netdev(options, forwards)?, "-net", &nic]);
    if let Some(pcap) = &options.pcap {
        add(&["-object", &format!("filter-dump,id=dump0,netdev={NETDEV},file={}", escape(pcap)?)]);
    }
    if options.icount {
        add(&["-icount", "shift=0,sleep=on"]);
    }
    if options.stop_on_reset {
        add(&["-no-reboot"]);
    }
    args.extend(options.extra.iter().cloned());
    let Some(image) = image.to_str() else { bail!("the path of the image is not UTF-8: {}", image.display()) };
    args.extend(["-kernel".to_owned(), image.to_owned()]);
    Ok(args)
}

/// A path as a value inside one of the emulator's options, where a comma is written twice.
fn escape(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(path) => Ok(path.replace(',', ",,")),
        None => bail!("the emulator takes only paths in UTF-8: {}", path.display()),
    }
}

fn netdev(options: &Options, forwards: &[Forward]) -> Result<String> {
    match &options.net {
        Net::Tap(interface) => {
            ports::check_tap(interface)?;
            Ok(format!("tap,id={NETDEV},ifname={interface},script=no,downscript=no"))
        }
        Net::User => {
            let mut netdev = format!("user,id={NETDEV}");
            let mut guest = String::new();
            if let Some(Ip::Static(address, prefix)) = options.address {
                netdev += &UserNetwork::around(address, prefix, options.gateway)?.option();
                guest = address.to_string();
            }
            for forward in forwards {
                netdev +=
                    &format!(",hostfwd={}:127.0.0.1:{}-{guest}:{}", forward.protocol, forward.host, forward.guest);
            }
            Ok(netdev)
        }
    }
}

/// The emulator's user-mode network, moved to where a board with a static address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UserNetwork {
    base: Ipv4Addr,
    prefix: u8,
    board: Ipv4Addr,
    host: Ipv4Addr,
    dns: Ipv4Addr,
}

impl UserNetwork {
    /// The emulator's router takes the gateway's address, or else the network's first that the board does not have; its name
    /// server, which must lie in the same network, takes another.
    fn around(board: Ipv4Addr, prefix: u8, gateway: Option<Ipv4Addr>) -> Result<Self> {
        let mask = u32::MAX << (32 - u32::from(prefix));
        let number = u32::from(board) & mask;
        let base = Ipv4Addr::from(number);
        // Inside the emulator's own default network its usual addresses stay, among them 10.0.2.2 for this host.
        let usual = base == Ipv4Addr::new(10, 0, 2, 0) && prefix == 24;
        if let Some(gateway) = gateway
            && (u32::from(gateway) & mask != number || gateway == board)
        {
            bail!(
                "the gateway {gateway} is not another address of the board's network {base}/{prefix}; give one with --gateway"
            );
        }
        let mut free = (u32::from(usual) + 1..(!mask).min(64))
            .map(|host| Ipv4Addr::from(number + host))
            .filter(|&host| host != board);
        let host = gateway.or_else(|| free.next());
        let dns = free.find(|&other| Some(other) != host);
        let (Some(host), Some(dns)) = (host, dns) else {
            bail!("the network {base}/{prefix} is too small for the emulator's router; use a prefix of 29 or less");
        };
        Ok(Self { base, prefix, board, host, dns })
    }

    fn option(&self) -> String {
        let Self { base, prefix, board, host, dns } = self;
        // This board does not ask for an address, but the emulator wants the range that it gives out inside the network.
        format!(",net={base}/{prefix},host={host},dns={dns},dhcpstart={board}")
    }
}

/// The address by which the board reaches this host.
///
/// # Errors
/// If a TAP interface has no address, or the network is not one for the emulator.
pub fn host_address(options: &Options) -> Result<Ipv4Addr> {
    match (&options.net, options.address) {
        (Net::Tap(interface), _) => ports::interface_address(interface),
        (Net::User, Some(Ip::Static(address, prefix))) => {
            Ok(UserNetwork::around(address, prefix, options.gateway)?.host)
        }
        (Net::User, _) => Ok(Ipv4Addr::new(10, 0, 2, 2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::MacAddress;
    use crate::emulator::Protocol;

    fn launch() -> Run {
        Run { emulator: "emulator".to_owned(), args: vec!["-M".to_owned(), "board".to_owned()], nic: 2, serial: 1 }
    }

    fn line(options: &Options, forwards: &[Forward], serial: &SerialTo) -> String {
        arguments(&launch(), Path::new("image.elf"), options, forwards, serial).expect("valid").join(" ")
    }

    #[test]
    fn the_default_is_the_user_network() {
        let forward = Forward { protocol: Protocol::Udp, guest: 7, host: 10007 };
        assert_eq!(
            line(&Options::default(), &[forward], &SerialTo::Terminal),
            "-M board -display none -serial null -serial mon:stdio -net nic -net nic \
             -netdev user,id=net0,hostfwd=udp:127.0.0.1:10007-:7 -net nic,netdev=net0 -kernel image.elf"
        );
    }

    #[test]
    fn every_option_reaches_the_emulator() {
        let options = Options {
            mac: Some(MacAddress([2, 0, 0, 0, 0, 1])),
            pcap: Some("a,b.pcap".into()),
            icount: true,
            stop_on_reset: true,
            extra: vec!["-d".to_owned(), "int".to_owned()],
            ..Options::default()
        };
        let line = line(&options, &[], &SerialTo::Pipe { monitor: "/run/m".into() });
        for part in [
            "-monitor none -chardev stdio,id=console,signal=off -serial chardev:console -qmp unix:/run/m,server=on,wait=off",
            "-net nic,netdev=net0,macaddr=02:00:00:00:00:01",
            "-object filter-dump,id=dump0,netdev=net0,file=a,,b.pcap",
            "-icount shift=0,sleep=on -no-reboot -d int -kernel image.elf",
        ] {
            assert!(line.contains(part), "{part} is not in {line}");
        }
    }

    #[test]
    fn the_router_moves_into_the_network_of_a_static_address() {
        let address = |text: &str| text.parse::<Ipv4Addr>().expect("address");
        for (own, prefix, gateway, expected) in [
            ("10.0.2.15", 24, None, ",net=10.0.2.0/24,host=10.0.2.2,dns=10.0.2.3,dhcpstart=10.0.2.15"),
            ("192.168.7.2", 24, None, ",net=192.168.7.0/24,host=192.168.7.1,dns=192.168.7.3,dhcpstart=192.168.7.2"),
            (
                "192.168.7.1",
                24,
                Some("192.168.7.254"),
                ",net=192.168.7.0/24,host=192.168.7.254,dns=192.168.7.2,dhcpstart=192.168.7.1",
            ),
            ("10.9.0.6", 29, None, ",net=10.9.0.0/29,host=10.9.0.1,dns=10.9.0.2,dhcpstart=10.9.0.6"),
        ] {
            assert_eq!(
                UserNetwork::around(address(own), prefix, gateway.map(address)).expect("valid").option(),
                expected
            );
        }
        assert!(UserNetwork::around(address("10.0.0.1"), 30, None).is_err());
        let error = UserNetwork::around(address("10.0.2.15"), 24, Some(address("10.0.3.1"))).expect_err("outside");
        assert!(error.to_string().contains("--gateway"));
    }
}
