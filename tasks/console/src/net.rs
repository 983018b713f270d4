//! Output of ifconfig, netstat and sessions.

use core::fmt::{Result, Write};

use bench_api::{Ending, Session};
use net_api::{Endpoint, InterfaceInfo, SocketInfo, Statistics, TcpState};

/// Shows the interface.
///
/// # Errors
/// Those of `out`.
pub fn ifconfig(out: &mut impl Write, info: &InterfaceInfo) -> Result {
    let up = if info.driver == 0 { "" } else { ",RUNNING" };
    writeln!(out, "eth0: flags=<UP,BROADCAST{up}> mtu {}", info.mtu)?;
    let [a, b, c, d, e, f] = info.mac;
    writeln!(out, "\tether {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")?;
    if info.address.0 == [0; 4] {
        writeln!(out, "\tinet none{}", if info.dhcp == 0 { "" } else { " (asking by DHCP)" })?;
    } else {
        let address = u32::from_be_bytes(info.address.0);
        let mask = u32::MAX.checked_shl(32 - u32::from(info.prefix.min(32))).unwrap_or(0);
        let broadcast = net_api::Address((address | !mask).to_be_bytes());
        let by = if info.dhcp == 0 { "" } else { " (DHCP)" };
        writeln!(out, "\tinet {} netmask 0x{mask:08x} broadcast {broadcast}{by}", info.address)?;
        if info.gateway.0 != [0; 4] {
            writeln!(out, "\tgateway {}", info.gateway)?;
        }
    }
    writeln!(out, "\tstatus: {}", if info.link == 0 { "no carrier" } else { "active" })?;
    if info.driver == 0 {
        writeln!(out, "\tdriver: does not answer")?;
    }
    Ok(())
}

/// What stands above the rows of netstat.
///
/// # Errors
/// Those of `out`.
pub fn netstat_head(out: &mut impl Write) -> Result {
    writeln!(out, "Active Internet connections (including servers)")?;
    writeln!(
        out,
        "{:5} {:>6} {:>6}  {:22} {:22} {:12} Task",
        "Proto", "Recv-Q", "Send-Q", "Local Address", "Foreign Address", "(state)"
    )
}

/// An endpoint, as `1.2.3.4.80` or with a star for what is not fixed.
fn name(endpoint: Endpoint) -> heapless::String<24> {
    let mut text = heapless::String::new();
    // 15 bytes for the address, 1 for the dot, 5 for the port.
    let _ = match (endpoint.address.0, endpoint.port) {
        ([0, 0, 0, 0], 0) => write!(text, "*.*"),
        ([0, 0, 0, 0], port) => write!(text, "*.{port}"),
        (_, port) => write!(text, "{}.{port}", endpoint.address),
    };
    text
}

/// A row of netstat.
///
/// # Errors
/// Those of `out`.
pub fn netstat_row(out: &mut impl Write, row: &SocketInfo, owner: &str) -> Result {
    let (protocol, state) = match row.protocol {
        6 => ("tcp4", TcpState::from_number(row.state).map_or("?", TcpState::name)),
        17 => ("udp4", ""),
        _ => ("?", ""),
    };
    let (local, remote) = (name(row.local), name(row.remote));
    writeln!(out, "{protocol:5} {:6} {:6}  {local:22} {remote:22} {state:12} {owner}", row.received, row.unsent)
}

/// What the stack counts; lines that are 0 are left out.
///
/// # Errors
/// Those of `out`.
pub fn statistics(out: &mut impl Write, counts: &Statistics) -> Result {
    let groups: [(&str, &[(u64, &str)]); 4] = [
        (
            "frames",
            &[
                (counts.rx_frames, "received"),
                (counts.rx_bytes, "bytes received"),
                (counts.tx_frames, "sent"),
                (counts.tx_bytes, "bytes sent"),
                (counts.exchanges, "exchanges with the driver"),
                (counts.driver_restarts, "times the driver was found dead or restarted"),
            ],
        ),
        (
            "checksums and copies",
            &[
                (counts.verified_by_mac, "packets verified by the MAC"),
                (counts.verified_in_software, "packets verified in software"),
                (counts.rx_copied, "payload bytes copied out of frames"),
                (counts.tx_copied, "payload bytes copied into frames"),
            ],
        ),
        (
            "protocols",
            &[
                (counts.fragments_received, "fragments received"),
                (counts.reassembled, "datagrams put together"),
                (counts.fragments_sent, "fragments sent"),
                (counts.echoes, "echo requests answered"),
                (counts.tcp_segments, "TCP segments received"),
                (counts.udp_delivered, "UDP datagrams delivered"),
                (counts.udp_sent, "UDP datagrams sent"),
                (counts.posts, "notifications to clients"),
            ],
        ),
        (
            "dropped",
            &[
                (counts.drop_malformed, "malformed"),
                (counts.drop_not_ours, "for another host"),
                (counts.drop_protocol, "of a protocol that is not spoken here"),
                (counts.drop_ip_checksum, "with a wrong IP checksum"),
                (counts.drop_l4_checksum, "with a wrong TCP, UDP or ICMP checksum"),
                (counts.drop_fragment, "fragments of what stayed incomplete"),
                (counts.drop_no_port, "for a UDP port that nobody has"),
                (counts.drop_udp_full, "for a UDP socket whose buffer is full"),
                (counts.drop_syn, "connection requests beyond a backlog"),
                (counts.drop_neighbour, "to a neighbour that does not answer"),
                (counts.drop_no_frame, "for want of a frame"),
            ],
        ),
    ];
    for (title, lines) in groups {
        writeln!(out, "{title}:")?;
        for (count, what) in lines.iter().filter(|(count, _)| *count != 0) {
            writeln!(out, "\t{count} {what}")?;
        }
    }
    Ok(())
}

/// A row of sessions.
///
/// # Errors
/// Those of `out`.
pub fn session(out: &mut impl Write, session: &Session) -> Result {
    let transfer = &session.transfer;
    let protocol = match (session.udp, session.numbered) {
        (true, true) => "udp iperf",
        (true, false) => "udp",
        _ => "tcp",
    };
    let seconds = transfer.micros.max(1) as f64 / 1e6;
    let ending = match transfer.ending {
        Ending::Mark => "",
        Ending::Silence => ", ended by silence",
        Ending::Reset => ", reset",
        Ending::Stopped => ", stopped",
    };
    write!(
        out,
        "{} {protocol}: {} bytes in {seconds:.2} s = {:.2} KB/s",
        transfer.peer,
        transfer.bytes,
        transfer.bytes as f64 / seconds / 1024.0
    )?;
    if session.udp {
        write!(out, ", {} datagrams", transfer.calls)?;
    }
    if session.numbered {
        write!(out, ", {} lost, {} out of order", transfer.lost, transfer.out_of_order)?;
    }
    writeln!(out, "{ending}")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use net_api::Address;
    use std::string::String;

    #[test]
    fn ifconfig_shows_mask_and_broadcast() {
        let mut info = InterfaceInfo {
            address: Address([10, 0, 2, 15]),
            gateway: Address([10, 0, 2, 2]),
            prefix: 24,
            dhcp: 1,
            link: 1,
            driver: 1,
            mac: [2, 0, 0, 0, 0xab, 1],
            mtu: 1500,
        };
        let mut out = String::new();
        ifconfig(&mut out, &info).expect("written");
        assert_eq!(
            out,
            "eth0: flags=<UP,BROADCAST,RUNNING> mtu 1500\n\tether 02:00:00:00:ab:01\n\
             \tinet 10.0.2.15 netmask 0xffffff00 broadcast 10.0.2.255 (DHCP)\n\tgateway 10.0.2.2\n\tstatus: active\n"
        );
        info = InterfaceInfo { dhcp: 1, ..InterfaceInfo::default() };
        out.clear();
        ifconfig(&mut out, &info).expect("written");
        assert!(
            out.contains("inet none (asking by DHCP)") && out.contains("no carrier") && out.contains("does not answer"),
            "{out}"
        );
    }

    #[test]
    fn netstat_rows_line_up() {
        let mut out = String::new();
        netstat_head(&mut out).expect("written");
        let listener =
            SocketInfo { local: Endpoint::new(Address([0; 4]), 5001), protocol: 6, state: 1, ..SocketInfo::default() };
        netstat_row(&mut out, &listener, "bench").expect("written");
        let connection = SocketInfo {
            local: Endpoint::new(Address([255, 255, 255, 255]), 65535),
            remote: Endpoint::new(Address([10, 0, 2, 2]), 80),
            protocol: 6,
            state: 4,
            received: 12,
            ..SocketInfo::default()
        };
        netstat_row(&mut out, &connection, "bench").expect("written");
        let lines: std::vec::Vec<_> = out.lines().skip(1).collect();
        assert!(lines[1].contains("*.5001") && lines[1].contains("*.*") && lines[1].contains("LISTEN"), "{out}");
        assert!(lines[2].contains("255.255.255.255.65535") && lines[2].contains("ESTABLISHED"), "{out}");
        let column = |line: &str, word: &str| line.find(word);
        assert_eq!(column(lines[0], "(state)"), column(lines[1], "LISTEN"));
        assert_eq!(column(lines[0], "(state)"), column(lines[2], "ESTABLISHED"));
    }

    #[test]
    fn statistics_leave_zeros_out() {
        let counts = Statistics { rx_frames: 7, drop_l4_checksum: 1, ..Statistics::default() };
        let mut out = String::new();
        statistics(&mut out, &counts).expect("written");
        assert!(
            out.contains("\t7 received\n") && out.contains("\t1 with a wrong TCP, UDP or ICMP checksum\n"),
            "{out}"
        );
        assert_eq!(out.lines().count(), 4 + 2);
    }
}
