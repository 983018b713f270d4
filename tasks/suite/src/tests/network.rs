//! The network, from wire to socket: with the emulator's router and the host as peers.

use abi::stats::TaskState;
use idol_runtime::Error;
use net_api::{Address, Endpoint, InterfaceInfo, NetError, Options, SocketId, cause, state};
use userlib::{kernel, time};

use super::Test;
use crate::check::{Expect, Failure, Outcome, equal, holds};
use crate::memory::{is_pattern, pattern};
use crate::suite::Suite;
use crate::victims::{generation, revive, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("network.link_and_address", link_and_address),
    Test::new("network.ping", ping),
    Test::new("network.ping_in_fragments", ping_in_fragments),
    Test::new("network.tcp_echo", tcp_echo),
    Test::new("network.tcp_several_at_a_time", several),
    Test::new("network.tcp_accept", tcp_accept),
    Test::new("network.udp_echo", udp_echo),
    Test::new("network.connection_refused", refused),
    Test::new("network.sockets_that_are_not_ours", bad_sockets),
    Test::new("network.cable_goes_and_comes", cable),
    Test::restarting(&["net"], "network.stack_restarts_with_traffic", net_restarts),
    Test::restarting(&["mac"], "network.driver_restarts_with_traffic", mac_restarts),
    Test::restarting(&["mac"], "network.driver_restarts_again_and_again", mac_again),
    Test::restarting(&["mac", "net"], "network.driver_and_stack_fail_together", both_fail),
    Test::new("network.the_driver_copies_no_payload", no_copies),
];

/// Waits for the link and for an address.
pub fn up(s: &mut Suite) -> Outcome<InterfaceInfo> {
    let mut last = InterfaceInfo::default();
    let there = s.until(20_000_000, |s| {
        s.net.interface().is_ok_and(|info| {
            last = info;
            info.link == 1 && info.driver == 1 && info.address != Address::default()
        })
    });
    if there { Ok(last) } else { Err(Failure::new(format_args!("no link or no address in 20 s: {last:?}"))) }
}

/// The host's echo services.
fn peer(s: &mut Suite) -> Outcome<Endpoint> {
    up(s)?;
    s.peer.ok_or("say `peer A.B.C.D PORT` first").expecting("no peer on the host")
}

fn link_and_address(s: &mut Suite) -> Outcome {
    let info = up(s)?;
    holds((1..=30).contains(&info.prefix), "prefix length", info.prefix)?;
    holds(info.mac != [0; 6] && info.mac[0] & 1 == 0, "hardware address", info.mac)?;
    equal(info.mtu, 1500, "largest packet")?;
    let mac = s.mac.info().expecting("what the driver says")?;
    equal((mac.address, mac.link_up), (info.mac, true), "the driver says the same")
}

/// Pings once; microseconds of the round trip.
pub fn ping_once(s: &mut Suite, host: Address, len: u16, sequence: u16) -> Outcome<u32> {
    s.net.ping(host, len, sequence).expecting("an echo request")?;
    let end = time::micros() + 5_000_000;
    loop {
        match s.net.ping_reply() {
            Ok(reply) if reply.sequence == sequence => {
                equal((reply.address, reply.len), (host, len), "address and length of the reply")?;
                return Ok(reply.micros);
            }
            Ok(_) => {}
            Err(Error::Server(NetError::WouldBlock)) if time::micros() < end => {
                s.wait(s.bits.socket, 20_000);
            }
            Err(error) => {
                return Err(Failure::new(format_args!(
                    "no reply to echo request {sequence} of {len} bytes: {error:?}"
                )));
            }
        }
    }
}

fn ping(s: &mut Suite) -> Outcome {
    let host = up(s)?.gateway;
    for (sequence, len) in [0, 1, 56, 57, 1000, 1472].into_iter().enumerate() {
        ping_once(s, host, len, sequence as u16)?;
    }
    Ok(())
}

fn ping_in_fragments(s: &mut Suite) -> Outcome {
    // The emulator's router does not put datagrams together; the stack itself does, on the way out of its own address.
    let info = up(s)?;
    let before = s.net.statistics().expecting("statistics")?.fragments_sent;
    s.net.ping(info.gateway, 4000, 77).expecting("an echo request")?;
    let sent = s.until(2_000_000, |s| s.net.statistics().is_ok_and(|now| now.fragments_sent >= before + 3));
    holds(sent, "fragments of an echo request of 4000 bytes", before)?;
    equal(
        s.net.ping(info.gateway, 65_508, 1).err(),
        Some(Error::Server(NetError::TooLong)),
        "an echo request that cannot be",
    )
}

/// Opens a connection to the host.
fn connect(s: &mut Suite, remote: Endpoint) -> Outcome<SocketId> {
    let socket = s.net.connect(Options::SMALL, remote).expecting("connect")?;
    let end = time::micros() + 10_000_000;
    loop {
        let step = s.net.step(socket, 0, 0).expecting("step")?;
        if step.state & state::MAY_SEND != 0 && step.state & state::CONNECTING == 0 {
            return Ok(socket);
        }
        if step.state & state::CLOSED != 0 || time::micros() > end {
            return Err(Failure::new(format_args!("no connection: {step:?}")));
        }
        s.wait(s.bits.socket, 20_000);
    }
}

/// Sends bytes and reads them back.
fn echo(s: &mut Suite, socket: SocketId, len: usize, seed: u8) -> Outcome {
    let (mut sent, mut got) = (0, 0);
    let end = time::micros() + 20_000_000;
    let mut block = [0; 1024];
    while got < len {
        let before = (sent, got);
        if sent < len {
            // Each block has its own pattern; a part of it is sent from where the last write ended.
            pattern(&mut block, seed.wrapping_add((sent / 1024) as u8));
            let from = sent % 1024;
            let to = 1024.min(from + len - sent);
            match s.net.write(socket, &block[from..to]) {
                Ok(count) => sent += count as usize,
                Err(Error::Server(NetError::WouldBlock)) => {}
                Err(error) => return Err(Failure::new(format_args!("write after {sent} bytes: {error:?}"))),
            }
        }
        let mut expected = [0; 1024];
        pattern(&mut expected, seed.wrapping_add((got / 1024) as u8));
        let from = got % 1024;
        match s.net.read(socket, &mut block[..1024 - from]) {
            Ok(0) => return Err(Failure::new(format_args!("the stream ended after {got} of {len} bytes"))),
            Ok(count) => {
                let count = count as usize;
                holds(block[..count] == expected[from..from + count], "bytes of the stream, from", got)?;
                got += count;
            }
            Err(Error::Server(NetError::WouldBlock)) => {}
            Err(error) => return Err(Failure::new(format_args!("read after {got} bytes: {error:?}"))),
        }
        if before == (sent, got) {
            if time::micros() > end {
                return Err(Failure::new(format_args!("{sent} bytes sent and {got} of {len} back in 20 s")));
            }
            s.wait(s.bits.socket, 20_000);
        }
    }
    Ok(())
}

fn close(s: &mut Suite, socket: SocketId) -> Outcome {
    s.net.close(socket, 0).expecting("close")
}

fn tcp_echo(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let socket = connect(s, remote)?;
    echo(s, socket, 1, 1)?;
    echo(s, socket, 64 << 10, 2)?;
    // The peer echoes the end of the stream too.
    s.net.shutdown(socket).expecting("shutdown")?;
    let mut byte = [0];
    let ended = s.until(5_000_000, |s| s.net.read(socket, &mut byte) == Ok(0));
    holds(ended, "the end of the stream comes back", byte)?;
    close(s, socket)
}

fn several(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let mut sockets = [SocketId::default(); 5];
    for socket in &mut sockets {
        *socket = connect(s, remote)?;
    }
    for round in 0..3 {
        for (index, socket) in sockets.into_iter().enumerate() {
            echo(s, socket, 500 + 100 * index, round)?;
        }
    }
    sockets.into_iter().try_for_each(|socket| close(s, socket))
}

/// The host connects three times, one after the other, and wants its bytes back.
fn tcp_accept(s: &mut Suite) -> Outcome {
    up(s)?;
    let listener = s.net.listen(Options::SMALL, 7).expecting("listen")?;
    for number in 0..3 {
        let mut accepted = None;
        let came = s.until(30_000_000, |s| {
            accepted = s.net.accept(listener).ok();
            accepted.is_some()
        });
        holds(came, "the host connects, for time number", number)?;
        let socket = accepted.ok_or(()).expecting("a connection")?.socket;
        let total = serve_echo(s, socket)?;
        equal(total, 20_000, "bytes from the host")?;
        close(s, socket)?;
    }
    close(s, listener)
}

/// Sends everything back until the peer ends its stream; returns how much there was.
fn serve_echo(s: &mut Suite, socket: SocketId) -> Outcome<usize> {
    let (mut total, mut buffer) = (0, [0; 1024]);
    let end = time::micros() + 30_000_000;
    loop {
        match s.net.read(socket, &mut buffer) {
            Ok(0) => return Ok(total),
            Ok(count) => {
                let mut rest = &buffer[..count as usize];
                total += rest.len();
                while !rest.is_empty() {
                    match s.net.write(socket, rest) {
                        Ok(count) => rest = &rest[count as usize..],
                        Err(Error::Server(NetError::WouldBlock)) if time::micros() < end => {
                            s.wait(s.bits.socket, 20_000);
                        }
                        Err(error) => return Err(Failure::new(format_args!("write after {total} bytes: {error:?}"))),
                    }
                }
            }
            Err(Error::Server(NetError::WouldBlock)) if time::micros() < end => {
                s.wait(s.bits.socket, 20_000);
            }
            Err(error) => return Err(Failure::new(format_args!("read after {total} bytes: {error:?}"))),
        }
    }
}

fn udp_echo(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let socket = s.net.bind(Options::SMALL, 0).expecting("bind")?.socket;
    let mut out = [0; 1472];
    for len in [1, 64, 512, 1472] {
        pattern(&mut out, len as u8);
        // Datagrams may be lost on the way through the host.
        let mut back = [0; 1500];
        let answered = (0..5).any(|_| {
            if s.net.send_to(socket, remote, &out[..len]).is_err() {
                return false;
            }
            s.until(400_000, |s| s.net.receive_from(socket, &mut back).is_ok_and(|datagram| datagram.len == len as u32))
        });
        holds(answered, "a datagram came back, of bytes", len)?;
        holds(is_pattern(&back[..len], len as u8), "bytes of the datagram", len)?;
    }
    close(s, socket)
}

fn refused(s: &mut Suite) -> Outcome {
    let mut remote = peer(s)?;
    // Nothing listens there: a port that only root could have taken, and that no service has.
    remote.port = 4;
    let socket = s.net.connect(Options::SMALL, remote).expecting("connect")?;
    let mut last = Default::default();
    let closed = s.until(10_000_000, |s| {
        s.net.step(socket, 0, 0).is_ok_and(|step| {
            last = (step.state, step.cause);
            step.state & state::CLOSED != 0
        })
    });
    holds(closed, "the connection is closed: state and cause", last)?;
    equal(last.1, cause::REFUSED, "cause")?;
    equal(s.net.write(socket, &[1]).err(), Some(Error::Server(NetError::Closed)), "a write")?;
    close(s, socket)
}

fn bad_sockets(s: &mut Suite) -> Outcome {
    let socket = s.net.bind(Options::SMALL, 0).expecting("bind")?.socket;
    let old = s.net.bind(Options::SMALL, 0).expecting("bind")?.socket;
    close(s, old)?;
    let bad = Some(Error::Server(NetError::BadSocket));
    for id in [old, SocketId::new(socket.place(), 0xffff), SocketId(u32::MAX), SocketId::new(31, 0)] {
        equal(s.net.step(id, 0, 0).err(), bad, "a step")?;
        equal(s.net.read(id, &mut [0; 4]).err(), bad, "a read")?;
        equal(s.net.close(id, 0).err(), bad, "a close")?;
    }
    equal(s.net.read(socket, &mut [0; 4]).err(), bad, "a stream read of a UDP socket")?;
    let argument = Some(Error::Server(NetError::BadArgument));
    equal(s.net.step(socket, 1, 0).err(), argument, "more consumed than there was")?;
    equal(s.net.step(socket, 0, u32::MAX).err(), argument, "more committed than there was room")?;
    let huge = Options { receive: u32::MAX, send: u32::MAX, ..Options::SMALL };
    holds(s.net.bind(huge, 0).is_err(), "buffers of 4 GiB", ())?;
    close(s, socket)
}

/// The host takes the cable out for a while, and puts it in again.
fn cable(s: &mut Suite) -> Outcome {
    let link = |s: &mut Suite, up: u8| s.until(20_000_000, |s| s.net.interface().is_ok_and(|info| info.link == up));
    holds(link(s, 0), "the link goes down", s.mac.info())?;
    equal(s.mac.info().map(|info| (info.link_up, info.speed)), Ok((false, 0)), "what the driver says")?;
    holds(link(s, 1), "the link comes up again", s.mac.info())?;
    let host = up(s)?.gateway;
    let answered = (0..20).any(|number| ping_once_or_lose(s, host, 40_000 + number));
    holds(answered, "an echo reply afterwards", host)
}

fn net_restarts(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let socket = connect(s, remote)?;
    echo(s, socket, 2000, 3)?;
    s.net.write(socket, &[7; 500]).expecting("write")?;
    let before = generation(task("net"))?;
    kernel::inject_fault(task("net")).expecting("a fault")?;
    // What belonged to the dead instance is over, and the client is told.
    match s.net.write(socket, &[7; 10]) {
        Err(Error::Died { .. } | Error::Server(NetError::BadSocket)) => {}
        other => return Err(Failure::new(format_args!("a write to a socket of a dead stack: {other:?}"))),
    }
    equal(s.net.write(socket, &[7; 10]).err(), Some(Error::Server(NetError::BadSocket)), "the next write")?;
    equal(generation(task("net"))?, before + 1, "generation of the stack")?;
    // The driver was not touched, and the new instance works.
    let socket = peer(s).and_then(|remote| connect(s, remote))?;
    echo(s, socket, 20_000, 4)?;
    close(s, socket)
}

fn mac_restarts(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let socket = connect(s, remote)?;
    echo(s, socket, 5000, 5)?;
    for round in 0..3 {
        // With segments in flight.
        s.net.write(socket, &[round; 800]).expecting("write")?;
        kernel::inject_fault(task("mac")).expecting("a fault")?;
        let mut back = [0; 800];
        let mut got = 0;
        let came = s.until(20_000_000, |s| {
            if let Ok(count) = s.net.read(socket, &mut back[got..]) {
                got += count as usize;
            }
            got == back.len()
        });
        holds(came, "bytes that came back over a driver that died", got)?;
        holds(back == [round; 800], "what they are", round)?;
    }
    let census = kernel::frame_census(0).expecting("census")?;
    equal(census.quarantined, 0, "frames in quarantine")?;
    echo(s, socket, 20_000, 6)?;
    close(s, socket)
}

fn mac_again(s: &mut Suite) -> Outcome {
    let host = up(s)?.gateway;
    for round in 0..10 {
        // After 0, 1, 2 … frames, so that every place of the ring is met.
        for sequence in 0..round {
            ping_once(s, host, 56, 1000 + 100 * round + sequence)?;
        }
        revive(task("mac"))?;
        // Requests that were on their way are lost.
        let answered = (0..20).any(|try_number| {
            s.until(20_000, |s| s.net.interface().is_ok_and(|info| info.driver == 1 && info.link == 1));
            ping_once_or_lose(s, host, 5000 + 100 * round + try_number)
        });
        holds(answered, "an echo reply after restart number", round)?;
    }
    Ok(())
}

/// Pings once; false if no reply comes in 300 ms.
fn ping_once_or_lose(s: &mut Suite, host: Address, sequence: u16) -> bool {
    if s.net.ping(host, 56, sequence).is_err() {
        s.sleep(50_000);
        return false;
    }
    s.until(300_000, |s| s.net.ping_reply().is_ok_and(|reply| reply.sequence == sequence))
}

fn both_fail(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let socket = connect(s, remote)?;
    s.net.write(socket, &[1; 1000]).expecting("write")?;
    for task in [task("mac"), task("net")] {
        kernel::inject_fault(task).expecting("a fault")?;
    }
    let remote = peer(s)?;
    let socket = connect(s, remote)?;
    echo(s, socket, 5000, 9)?;
    close(s, socket)?;
    let alive = |name| kernel::task_status(task(name)).is_ok_and(|status| status.state != TaskState::Faulted);
    holds(alive("mac") && alive("net"), "driver and stack live", ())
}

fn no_copies(s: &mut Suite) -> Outcome {
    let remote = peer(s)?;
    let socket = connect(s, remote)?;
    let mac = task("mac");
    let before = (kernel::counters(mac).expecting("counters")?, s.mac.statistics().expecting("statistics")?);
    echo(s, socket, 100_000, 11)?;
    let after = (kernel::counters(mac).expecting("counters")?, s.mac.statistics().expecting("statistics")?);
    let bytes = after.1.rx_bytes + after.1.tx_bytes - before.1.rx_bytes - before.1.tx_bytes;
    holds(bytes > 200_000, "bytes through the driver", bytes)?;
    // What the kernel copies for it are arguments and results of exchanges, a few bytes for each.
    let copied = after.0.bytes_copied - before.0.bytes_copied;
    let exchanges = after.1.exchanges - before.1.exchanges;
    holds(copied <= 32 * exchanges + 200, "bytes copied for the driver, in exchanges", (copied, exchanges))?;
    close(s, socket)
}
