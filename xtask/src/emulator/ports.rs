//! Ports of this host that lead to services of the board.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::Command;

use miette::{IntoDiagnostic, Result, WrapErr, miette};

use crate::process;

/// Transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// Services of the board: port there, fixed port here, whether also on UDP, what it does.
pub const SERVICES: [(u16, u16, bool, &str); 5] = [
    (5001, 15001, true, "sink for ttcp and iperf"),
    (5002, 15002, false, "source: send a count and a newline"),
    (7, 10007, true, "echo"),
    (9, 10009, true, "discard"),
    (19, 10019, true, "chargen"),
];

/// One forwarded port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forward {
    /// Transport protocol.
    pub protocol: Protocol,
    /// Port of the board.
    pub guest: u16,
    /// Port of this host, on the loopback interface.
    pub host: u16,
}

impl Forward {
    /// Where to connect.
    #[must_use]
    pub fn host_address(self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.host))
    }
}

/// How to choose ports of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortChoice {
    /// Any that are free.
    Free,
    /// Those of [`SERVICES`], and any free one in place of one that is taken.
    Fixed,
}

/// Chooses a port of this host for each service of the board; TCP and UDP of a service get the same.
///
/// # Errors
/// If the host has no free port.
pub fn choose(choice: PortChoice) -> Result<Vec<Forward>> {
    let mut forwards = Vec::new();
    // Kept until all are chosen, so that no port is chosen twice.
    let mut held = Vec::new();
    for (guest, fixed, udp, _) in SERVICES {
        let wanted = (choice == PortChoice::Fixed).then_some(fixed);
        let pair = wanted.and_then(reserve).or_else(|| (0..64).find_map(|_| reserve(0)));
        let (host, sockets) = pair.ok_or_else(|| miette!("no port is free on the loopback interface"))?;
        held.push(sockets);
        forwards.push(Forward { protocol: Protocol::Tcp, guest, host });
        if udp {
            forwards.push(Forward { protocol: Protocol::Udp, guest, host });
        }
    }
    Ok(forwards)
}

/// Takes a port for both protocols, if it is free for both; 0 is any.
fn reserve(port: u16) -> Option<(u16, (TcpListener, UdpSocket))> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    let port = listener.local_addr().ok()?.port();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    Some((port, (listener, socket)))
}

/// Checks that a TAP interface exists, so that the error names the remedy.
///
/// # Errors
/// If there is no such interface.
pub fn check_tap(interface: &str) -> Result<()> {
    let flags = format!("/sys/class/net/{interface}/tun_flags");
    std::fs::read(&flags).map(drop).into_diagnostic().wrap_err_with(|| {
        format!(
            "there is no TAP interface {interface}; make one with: \
             ip tuntap add dev {interface} mode tap && ip addr add 192.168.7.1/24 dev {interface} && ip link set {interface} up"
        )
    })
}

/// The first IPv4 address of an interface of this host.
///
/// # Errors
/// If it has none.
pub fn interface_address(interface: &str) -> Result<Ipv4Addr> {
    let said = process::output(Command::new("ip").args(["-o", "-4", "addr", "show", "dev", interface]))?;
    let address = said
        .split_whitespace()
        .skip_while(|&word| word != "inet")
        .nth(1)
        .and_then(|address| address.split('/').next()?.parse().ok());
    address.ok_or_else(|| {
        miette!(
            "the interface {interface} has no address; give it one with: ip addr add 192.168.7.1/24 dev {interface}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_gets_a_port_of_its_own() {
        let forwards = choose(PortChoice::Free).expect("ports");
        assert_eq!(forwards.len(), 9);
        for (index, one) in forwards.iter().enumerate() {
            assert!(forwards[..index].iter().all(|other| (other.protocol, other.host) != (one.protocol, one.host)));
        }
    }

    #[test]
    fn a_fixed_port_that_is_taken_is_replaced() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 15002));
        let forwards = choose(PortChoice::Fixed).expect("ports");
        let source = forwards.iter().find(|forward| forward.guest == 5002).expect("forwarded");
        assert_ne!(source.host, 0);
        // Whether this test or somebody else holds it.
        assert_ne!(source.host, 15002);
        drop(taken);
    }

    #[test]
    fn a_missing_tap_interface_is_explained() {
        let error = format!("{:?}", check_tap("no-such-tap").expect_err("does not exist"));
        assert!(error.contains("ip tuntap add"), "{error}");
    }

    #[test]
    fn the_address_of_an_interface_is_read() {
        assert_eq!(interface_address("lo").expect("loopback"), Ipv4Addr::LOCALHOST);
        assert!(interface_address("no-such-if").is_err());
    }
}
