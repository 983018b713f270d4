//! TCP between two hosts.

mod common;

use abi::TaskId;
use common::{CLIENT, Node, Pair, Settings, address, arp_reply, frame_of, ip, ipv4};
use net::packet::Ipv4Header;
use net_api::{Endpoint, NetError, Options, SocketId, cause, state};
use smoltcp::time::Duration;

/// A connection from `a` to `b`.
fn connect(pair: &mut Pair, options: Options) -> (SocketId, SocketId) {
    let listener = pair.b.server.listen_for(CLIENT, &options, 5001).expect("listens");
    let ours = pair.a.server.connect_for(CLIENT, &options, Endpoint::new(address(2), 5001)).expect("asks");
    pair.settle();
    let accepted = pair.b.server.accept_for(CLIENT, listener).expect("a connection");
    assert_eq!(accepted.peer.address, address(1));
    (ours, accepted.socket)
}

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

/// Sends from `a` as much as finds room; returns the new position.
fn send(node: &mut Node, socket: SocketId, at: usize, total: usize) -> usize {
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    let len = (total - at).min(step.writable_len as usize);
    for (index, to) in node.writable(&step)[..len].iter_mut().enumerate() {
        *to = byte(at + index);
    }
    if len > 0 {
        node.server.step_for(CLIENT, socket, 0, len as u32).expect("open");
    }
    at + len
}

/// Checks and consumes what is there; returns the new position.
fn receive(node: &mut Node, socket: SocketId, at: usize) -> usize {
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    for (index, got) in node.readable(&step).iter().enumerate() {
        assert_eq!(*got, byte(at + index), "at {}", at + index);
    }
    node.server.step_for(CLIENT, socket, step.readable_len, 0).expect("open");
    at + step.readable_len as usize
}

fn bulk(pair: &mut Pair, options: Options, total: usize) {
    let (ours, theirs) = connect(pair, options);
    let (mut sent, mut received) = (0, 0);
    let mut rounds = 0;
    while received < total {
        let before = (sent, received);
        sent = send(&mut pair.a, ours, sent, total);
        pair.settle();
        received = receive(&mut pair.b, theirs, received);
        pair.settle();
        if before == (sent, received) {
            pair.tick();
        }
        rounds += 1;
        assert!(rounds < 100_000, "stuck at {received} of {total}");
    }
    pair.a.server.shutdown_for(CLIENT, ours).expect("open");
    pair.settle();
    let end = pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
    assert_eq!(end.state & (state::MAY_RECEIVE | state::CLOSED), 0);
    pair.b.server.close_for(CLIENT, theirs, false).expect("open");
    pair.settle();
    pair.a.server.close_for(CLIENT, ours, false).expect("open");
}

#[test]
fn bulk_arrives_whole() {
    let mut pair = Pair::new();
    bulk(&mut pair, Options::BULK, 4 << 20);
}

#[test]
fn bulk_with_and_without_help_of_the_mac() {
    for (verifies, inserts) in [(true, true), (false, false), (true, false)] {
        let settings = || Settings { verifies, inserts, ..Settings::default() };
        let mut pair = Pair::with(settings(), settings());
        bulk(&mut pair, Options::BULK, 1 << 20);
        let statistics = &pair.b.server.stack().core.link.statistics;
        if verifies {
            assert_eq!(statistics.verified_in_software, 0);
        } else {
            assert_eq!(statistics.verified_by_mac, 0);
            assert!(statistics.verified_in_software > 700);
        }
        assert_eq!(statistics.drop_l4_checksum, 0);
    }
}

#[test]
fn buffers_of_any_size() {
    for size in [1 << 10, 5000, 16 << 10, 100_000, 256 << 10] {
        let options = Options { receive: size, send: size, ..Options::BULK };
        bulk(&mut Pair::new(), options, 600_000);
    }
}

#[test]
fn a_driver_with_little_room() {
    let settings = || Settings { room: 2, ..Settings::default() };
    bulk(&mut Pair::with(settings(), settings()), Options::BULK, 1 << 20);
}

#[test]
fn one_connection_after_the_other_reuses_the_window() {
    let mut pair = Pair::new();
    let listener = pair.b.server.listen_for(CLIENT, &Options::BULK, 5001).expect("listens");
    for round in 0..200 {
        let remote = Endpoint::new(address(2), 5001);
        let ours = pair.a.server.connect_for(CLIENT, &Options::BULK, remote).expect("asks");
        pair.settle();
        let theirs = pair.b.server.accept_for(CLIENT, listener).expect("a connection").socket;
        assert_eq!(send(&mut pair.a, ours, 0, 1000), 1000, "round {round}");
        pair.settle();
        assert_eq!(receive(&mut pair.b, theirs, 0), 1000);
        let (first, second) = if round % 2 == 0 { (ours, theirs) } else { (theirs, ours) };
        let (a, b) = (&mut pair.a.server, &mut pair.b.server);
        if round % 2 == 0 {
            a.close_for(CLIENT, first, false).expect("open");
            pair.settle();
            pair.b.server.close_for(CLIENT, second, false).expect("open");
        } else {
            b.close_for(CLIENT, first, false).expect("open");
            pair.settle();
            pair.a.server.close_for(CLIENT, second, false).expect("open");
        }
        pair.settle();
    }
}

#[test]
fn a_slow_reader_is_told_of_its_window() {
    let mut pair = Pair::new();
    let options = Options { receive: 16 << 10, ..Options::BULK };
    let (ours, theirs) = connect(&mut pair, options);
    let total = 200_000;
    let (mut sent, mut received) = (0, 0);
    // 1 KiB every 100 ms: the window closes, opens a little, closes again.
    for _ in 0..40 {
        sent = send(&mut pair.a, ours, sent, total);
        pair.pass(Duration::from_millis(100));
        let step = pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
        let len = step.readable_len.min(1024);
        assert!(len > 0, "nothing to read at {received}");
        assert!(pair.b.readable(&step)[..len as usize].iter().enumerate().all(|(at, got)| *got == byte(received + at)));
        pair.b.server.step_for(CLIENT, theirs, len, 0).expect("open");
        received += len as usize;
    }
    // Then at full speed: it must take no time worth mentioning.
    let start = pair.clock.get();
    while received < total {
        sent = send(&mut pair.a, ours, sent, total);
        pair.settle();
        let before = received;
        received = receive(&mut pair.b, theirs, received);
        pair.settle();
        if received == before {
            pair.tick();
        }
    }
    assert!(pair.clock.get() - start < 1_000_000, "stalled for {} us", pair.clock.get() - start);
}

/// A wire that loses, swaps and doubles frames.
fn bad_wire(seed: u64) -> common::Fault {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut held: Option<Vec<u8>> = None;
    std::rc::Rc::new(std::cell::RefCell::new(move |frame: Vec<u8>| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut out = Vec::new();
        match (state >> 33) % 100 {
            0..3 => {}
            3..5 if held.is_none() => held = Some(frame),
            5 => out.extend([frame.clone(), frame]),
            6 => {
                let mut damaged = frame;
                let at = (state >> 40) as usize % damaged.len();
                damaged[at] ^= 0x10;
                out.push(damaged);
            }
            _ => {
                out.push(frame);
                out.extend(held.take());
            }
        }
        out
    }))
}

#[test]
fn everything_arrives_over_a_bad_wire() {
    for seed in 0..20 {
        let faulty = |seed| Settings { fault: Some(bad_wire(seed)), ..Settings::default() };
        let mut pair = Pair::with(faulty(seed), faulty(seed + 1000));
        let listener = pair.b.server.listen_for(CLIENT, &Options::BULK, 5001).expect("listens");
        let remote = Endpoint::new(address(2), 5001);
        let ours = pair.a.server.connect_for(CLIENT, &Options::BULK, remote).expect("asks");
        let mut theirs = None;
        let total = 300_000;
        let (mut sent, mut received, mut back, mut returned) = (0, 0, 0, 0);
        let start = pair.clock.get();
        let mut last_progress = start;
        while received < total || returned < total {
            pair.settle();
            let before = (received, returned);
            sent = send(&mut pair.a, ours, sent, total);
            if let Some(theirs) = theirs {
                received = receive(&mut pair.b, theirs, received);
                back = send(&mut pair.b, theirs, back, total);
            } else {
                theirs = pair.b.server.accept_for(CLIENT, listener).ok().map(|accepted| accepted.socket);
            }
            returned = receive(&mut pair.a, ours, returned);
            if before != (received, returned) {
                last_progress = pair.clock.get();
            }
            assert!(pair.clock.get() - last_progress < 30_000_000, "seed {seed}: stuck at {received}, {returned}");
            pair.tick();
        }
    }
}

#[test]
fn a_refused_connection_says_so() {
    let mut pair = Pair::new();
    let remote = Endpoint::new(address(2), 99);
    let socket = pair.a.server.connect_for(CLIENT, &Options::SMALL, remote).expect("asks");
    pair.settle();
    let step = pair.a.server.step_for(CLIENT, socket, 0, 0).expect("known");
    assert_eq!((step.state, step.cause), (state::CLOSED, cause::REFUSED));
}

#[test]
fn an_absent_host_times_out() {
    let mut pair = Pair::new();
    let remote = Endpoint::new(address(77), 99);
    let socket = pair.a.server.connect_for(CLIENT, &Options::SMALL, remote).expect("asks");
    pair.pass(Duration::from_secs(40));
    let step = pair.a.server.step_for(CLIENT, socket, 0, 0).expect("known");
    assert_eq!((step.state, step.cause), (state::CLOSED, cause::TIMED_OUT));
    // Nothing is left that would wake the stack more often than its sweep.
    let wakes = (0..1000).filter(|_| {
        pair.clock.set(pair.clock.get() + 1000);
        pair.a.wake()
    });
    assert!(wakes.count() <= 3);
}

#[test]
fn a_peer_that_vanishes_is_noticed() {
    let mut pair = Pair::new();
    let (ours, _) = connect(&mut pair, Options::SMALL);
    pair.b.alive.set(false);
    pair.pass(Duration::from_secs(100));
    let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("known");
    assert_eq!((step.state, step.cause), (state::CLOSED, cause::TIMED_OUT));
}

#[test]
fn an_idle_connection_stays() {
    let mut pair = Pair::new();
    let (ours, theirs) = connect(&mut pair, Options::SMALL);
    pair.pass(Duration::from_secs(600));
    assert_eq!(send(&mut pair.a, ours, 0, 100), 100);
    pair.settle();
    assert_eq!(receive(&mut pair.b, theirs, 0), 100);
}

/// A TCP segment without payload.
fn segment(ports: (u16, u16), sequence: u32, ack: u32, flags: u8, options: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([((20 + options.len()) / 4 * 16) as u8, flags, 0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes
}

const SYN: u8 = 2;
const ACK: u8 = 16;
const PSH_ACK: u8 = 24;

#[test]
fn a_flood_of_requests_does_not_lock_others_out() {
    let mut node = Node::alone(Settings::default());
    let options = Options { backlog: 4, ..Options::BULK };
    let listener = node.server.listen_for(CLIENT, &options, 5001).expect("listens");
    for round in 0..500u32 {
        let from = 20 + (round % 200) as u8;
        node.receive(ipv4(from, 1, 6, &segment((1000 + round as u16, 5001), round, 0, SYN, &[])));
        node.pass(Duration::from_millis(10));
    }
    assert!(node.server.stack().core.link.statistics.drop_syn > 300);
    // A real peer gets in when the next half-open connection gives way.
    node.sent();
    let mut answered = false;
    for _ in 0..3 {
        node.receive(arp_reply(9));
        node.receive(ipv4(9, 1, 6, &segment((4000, 5001), 7, 0, SYN, &[])));
        if let Some(answer) = node
            .sent()
            .into_iter()
            .find(|frame| frame[12] == 8 && frame[34..36] == 5001u16.to_be_bytes() && frame[0..6] == common::mac(9).0)
        {
            let sequence = u32::from_be_bytes(answer[38..42].try_into().unwrap());
            node.receive(ipv4(9, 1, 6, &segment((4000, 5001), 8, sequence + 1, ACK, &[])));
            answered = true;
            break;
        }
        node.pass(Duration::from_secs(1));
    }
    assert!(answered);
    assert!(node.server.accept_for(CLIENT, listener).is_ok());
}

#[test]
fn malformed_options_hurt_nobody() {
    let many = [254, 2].repeat(20);
    let cases: [&[u8]; 9] = [
        &[2, 0, 0, 0],
        &[2, 1, 5, 0xb4],
        &[1, 1, 1, 2],
        &[2, 4, 0, 0],
        &[2, 4, 0, 1],
        &[3, 3, 255, 0],
        &[8, 10, 0, 0],
        &[5, 255, 1, 1],
        &many,
    ];
    let mut node = Node::alone(Settings::default());
    let listener = node.server.listen_for(CLIENT, &Options { backlog: 16, ..Options::SMALL }, 5001).expect("listens");
    node.receive(arp_reply(9));
    for (at, options) in cases.into_iter().enumerate() {
        let ports = (2000 + at as u16, 5001);
        node.sent();
        node.receive(ipv4(9, 1, 6, &segment(ports, 100, 0, SYN, options)));
        let Some(answer) = node.sent().into_iter().find(|frame| frame[34..36] == 5001u16.to_be_bytes()) else {
            continue;
        };
        if answer[47] & SYN == 0 {
            continue;
        }
        let sequence = u32::from_be_bytes(answer[38..42].try_into().unwrap());
        node.receive(ipv4(9, 1, 6, &segment(ports, 101, sequence + 1, ACK, &[])));
        let socket = node.server.accept_for(CLIENT, listener).expect("connected").socket;
        assert_eq!(send(&mut node, socket, 0, 4000), 4000);
        let frames = node.sent();
        // No stream of empty segments: each carries something.
        assert!(frames.len() <= 100, "case {at}: {} segments", frames.len());
        assert!(frames.iter().all(|frame| u16::from_be_bytes([frame[16], frame[17]]) > 40));
        node.server.close_for(CLIENT, socket, true).expect("open");
    }
}

/// More than the window in one go: two segments of the greatest size, in fragments whose last pieces come together.
#[test]
fn a_peer_that_overruns_its_window_is_cut_short() {
    let mut node = Node::alone(Settings::default());
    let listener = node.server.listen_for(CLIENT, &Options::BULK, 5001).expect("listens");
    node.receive(arp_reply(9));
    let ports = (4000, 5001);
    // The greatest segment size, and window scaling.
    node.receive(ipv4(9, 1, 6, &segment(ports, 100, 0, SYN, &[2, 4, 0xff, 0xff, 3, 3, 7, 0])));
    let answer = node.sent().into_iter().find(|frame| frame[47] & SYN != 0 && frame[23] == 6).expect("an answer");
    let ours = u32::from_be_bytes(answer[38..42].try_into().unwrap()) + 1;
    node.receive(ipv4(9, 1, 6, &segment(ports, 101, ours, ACK, &[])));
    let socket = node.server.accept_for(CLIENT, listener).expect("connected").socket;
    let mut last = Vec::new();
    let size = 65_000u32;
    for part in 0..3u32 {
        let mut whole = segment(ports, 101 + part * size, ours, PSH_ACK, &[]);
        whole.extend((0..size).map(|at| byte((part * size + at) as usize)));
        let header = Ipv4Header { id: part as u16, ..Ipv4Header::new(ip(9), ip(1), 6, 0) };
        let sum = header.with_pseudo_header(net::checksum::Sum::new().bytes(&whole), whole.len());
        whole[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
        let pieces = whole.len().div_ceil(1480);
        for (at, piece) in whole.chunks(1480).enumerate() {
            let header = Ipv4Header {
                fragment_offset: at * 1480,
                more_fragments: at + 1 < pieces,
                total_len: 20 + piece.len(),
                ..header
            };
            let frame = frame_of(9, 1, header, piece);
            if at + 1 < pieces { node.receive(frame) } else { last.push(frame) }
        }
    }
    node.inbox.borrow_mut().extend(last);
    while node.wake() {}
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    assert!(step.readable_total as usize >= 65_000);
    assert!(node.readable(&step).iter().enumerate().all(|(at, got)| *got == byte(at)));
}

#[test]
fn what_was_written_before_the_buffer_emptied_is_sent() {
    let mut pair = Pair::new();
    let (ours, theirs) = connect(&mut pair, Options::BULK);
    let mut at = 0;
    for len in [10u32, 1000, 3, 20_000, 1] {
        // Write where the last step said, but only after everything before was acknowledged.
        let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("open");
        pair.a.window_mut(step.writable_offset, len).fill(7);
        pair.a.server.step_for(CLIENT, ours, 0, len).expect("open");
        let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("open");
        pair.pass(Duration::from_millis(50));
        for (index, to) in pair.a.window_mut(step.writable_offset, len).iter_mut().enumerate() {
            *to = byte(index);
        }
        pair.a.server.step_for(CLIENT, ours, 0, len).expect("offered before");
        pair.pass(Duration::from_millis(50));
        let step = pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
        let got: Vec<u8> = pair.b.readable(&step).to_vec();
        let want: Vec<u8> = std::iter::repeat_n(7, len as usize).chain((0..len as usize).map(byte)).collect();
        assert_eq!(got, want[..got.len()], "after {at} bytes");
        pair.b.server.step_for(CLIENT, theirs, step.readable_len, 0).expect("open");
        let step = pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
        let rest = pair.b.readable(&step).to_vec();
        assert_eq!([got, rest].concat(), want);
        pair.b.server.step_for(CLIENT, theirs, step.readable_len, 0).expect("open");
        at += 2 * len;
    }
}

#[test]
fn the_client_hears_once_until_it_looks() {
    let mut pair = Pair::new();
    let (ours, theirs) = connect(&mut pair, Options::BULK);
    pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
    pair.b.posts.set(0);
    // 40 segments, one batch after the other, and nobody reads.
    for round in 0..40 {
        send(&mut pair.a, ours, round * 1000, round * 1000 + 1000);
        pair.settle();
    }
    pair.pass(Duration::from_millis(500));
    assert_eq!(pair.b.posts.get(), 1);
    assert_eq!(pair.b.server.events_for(CLIENT), 1 << theirs.place());
    assert_eq!(receive(&mut pair.b, theirs, 0), 40_000);
    pair.settle();
    assert_eq!(pair.b.posts.get(), 1);
    assert_eq!(send(&mut pair.a, ours, 40_000, 40_100), 40_100);
    pair.settle();
    assert_eq!(pair.b.posts.get(), 2);
}

#[test]
fn a_dead_client_leaves_nothing_behind() {
    let mut pair = Pair::new();
    let (ours, theirs) = connect(&mut pair, Options::BULK);
    send(&mut pair.a, ours, 0, 50_000);
    pair.settle();
    let next = TaskId::new(CLIENT.index(), CLIENT.generation() + 1);
    pair.b.client.set(next);
    pair.pass(Duration::from_secs(2));
    // The peer was told by a reset.
    let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("known");
    assert_eq!((step.state, step.cause), (state::CLOSED, cause::RESET));
    // The new instance cannot use the old id, and gets port and buffers.
    assert_eq!(pair.b.server.step_for(next, theirs, 0, 0), Err(NetError::BadSocket));
    assert!(pair.b.server.listen_for(next, &Options::BULK, 5001).is_ok());
}

#[test]
fn sockets_survive_the_driver() {
    let mut pair = Pair::new();
    let (ours, theirs) = connect(&mut pair, Options::BULK);
    pair.b.alive.set(false);
    send(&mut pair.a, ours, 0, 5000);
    send(&mut pair.b, theirs, 0, 3000);
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.b.server.stack().core.link.statistics.driver_restarts, 1);
    pair.b.alive.set(true);
    pair.pass(Duration::from_secs(8));
    assert_eq!(receive(&mut pair.b, theirs, 0), 5000);
    assert_eq!(receive(&mut pair.a, ours, 0), 3000);
}

#[test]
fn hostile_arguments_are_refused_and_change_nothing() {
    let mut pair = Pair::new();
    let (ours, theirs) = connect(&mut pair, Options::BULK);
    send(&mut pair.a, ours, 0, 3000);
    pair.pass(Duration::from_millis(100));
    let server = &mut pair.b.server;
    let step = server.step_for(CLIENT, theirs, 0, 0).expect("open");
    for (consume, commit) in
        [(step.readable_len + 1, 0), (u32::MAX, 0), (0, step.writable_len + 1), (0, u32::MAX), (u32::MAX, u32::MAX)]
    {
        assert_eq!(server.step_for(CLIENT, theirs, consume, commit), Err(NetError::BadArgument));
    }
    for raw in 0..2000 {
        let socket = SocketId(raw * 0x101);
        if socket != theirs {
            assert!(server.close_for(CLIENT, socket, true).is_err() || raw == 0);
        }
    }
    let stranger = TaskId::new(9, 0);
    assert_eq!(server.step_for(stranger, theirs, 0, 0), Err(NetError::NoWindow));
    let options = Options { receive: 0, ..Options::BULK };
    assert_eq!(server.listen_for(CLIENT, &options, 80), Err(NetError::BadArgument));
    let options = Options { send: u32::MAX, ..Options::BULK };
    assert_eq!(server.bind_for(CLIENT, &options, 80), Err(NetError::BadArgument));
    let options = Options { flags: 2, ..Options::BULK };
    assert_eq!(server.bind_for(CLIENT, &options, 80), Err(NetError::BadArgument));
    assert_eq!(server.listen_for(CLIENT, &Options::BULK, 65_536), Err(NetError::BadArgument));
    assert_eq!(server.bind_for(CLIENT, &Options::BULK, u32::MAX), Err(NetError::BadArgument));
    let everyone = Endpoint::new(net_api::Address([255; 4]), 5);
    assert_eq!(server.connect_for(CLIENT, &Options::BULK, everyone), Err(NetError::BadArgument));
    assert_eq!(receive(&mut pair.b, theirs, 0), 3000);
}

#[test]
fn the_window_and_the_places_run_out_in_good_order() {
    let mut node = Node::alone(Settings::default());
    let options = Options { receive: 512 << 10, send: 512 << 10, ..Options::BULK };
    let mut sockets = Vec::new();
    let refused = loop {
        match node.server.bind_for(CLIENT, &options, 0) {
            Ok(bound) => sockets.push(bound.socket),
            Err(error) => break error,
        }
    };
    assert_eq!((refused, sockets.len()), (NetError::NoMemory, 4));
    for socket in sockets {
        node.server.close_for(CLIENT, socket, false).expect("open");
    }
    assert!(node.server.bind_for(CLIENT, &options, 7).is_ok());
    assert_eq!(node.server.bind_for(CLIENT, &options, 7), Err(NetError::PortInUse));
}
