//! UDP, ARP and ICMP: one host, with both ends of its wire in the test's hands, or two hosts.

mod common;

use common::{CLIENT, Node, Pair, Settings, address, arp, arp_reply, frame_of, insert_checksums, ip, ipv4, mac, udp};
use net::packet::Ipv4Header;
use net_api::{Address, DatagramHeader, Endpoint, NetError, Options, SocketId, Step, datagram_space, state};
use smoltcp::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

const BIG: Options = Options { receive: 256 << 10, send: 256 << 10, flags: 0, backlog: 1 };

/// Writes a record at the place that the last step offered; returns its space.
fn record(node: &Node, step: &Step, at: u32, host: u8, port: u16, payload: &[u8]) -> u32 {
    let space = datagram_space(payload.len()) as u32;
    let room = node.window_mut(step.writable_offset + at, space);
    let header = DatagramHeader { address: address(host), port, len: payload.len() as u16 };
    room[..8].copy_from_slice(header.as_bytes());
    room[8..8 + payload.len()].copy_from_slice(payload);
    space
}

fn send(node: &mut Node, socket: SocketId, host: u8, port: u16, payload: &[u8]) -> Step {
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    let space = record(node, &step, 0, host, port, payload);
    node.server.step_for(CLIENT, socket, 0, space).expect("offered")
}

/// Takes all records that wait.
fn take(node: &mut Node, socket: SocketId) -> Vec<(Address, u16, Vec<u8>)> {
    let mut records = Vec::new();
    loop {
        let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
        if step.readable_len == 0 {
            return records;
        }
        let mut rest = node.readable(&step);
        while let Ok((header, behind)) = DatagramHeader::read_from_prefix(rest) {
            let len = usize::from(header.len);
            records.push((header.address, header.port, behind[..len].to_vec()));
            rest = &rest[datagram_space(len)..];
        }
        node.server.step_for(CLIENT, socket, step.readable_len, 0).expect("offered");
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn datagrams_of_any_size_both_ways() {
    for (verifies, inserts) in [(true, true), (false, false)] {
        let settings = || Settings { verifies, inserts, ..Settings::default() };
        let mut pair = Pair::with(settings(), settings());
        let ours = pair.a.server.bind_for(CLIENT, &BIG, 0).expect("opens");
        let theirs = pair.b.server.bind_for(CLIENT, &BIG, 7).expect("opens").socket;
        for len in [0, 1, 64, 1471, 1472, 1473, 2952, 2953, 30_000, 65_000, 65_507] {
            let payload = pattern(len);
            send(&mut pair.a, ours.socket, 2, 7, &payload);
            pair.settle();
            let got = take(&mut pair.b, theirs);
            assert_eq!(got, [(address(1), ours.port, payload.clone())], "{len} bytes");
            send(&mut pair.b, theirs, 1, ours.port, &payload);
            pair.settle();
            assert_eq!(take(&mut pair.a, ours.socket), [(address(2), 7, payload)], "{len} bytes back");
        }
        let statistics = &pair.b.server.stack().core.link.statistics;
        assert_eq!(statistics.drop_l4_checksum + statistics.drop_fragment + statistics.drop_no_frame, 0);
        assert_eq!(statistics.reassembled, 6);
    }
}

#[test]
fn many_records_go_with_one_request() {
    let mut pair = Pair::new();
    let ours = pair.a.server.bind_for(CLIENT, &BIG, 0).expect("opens").socket;
    let theirs = pair.b.server.bind_for(CLIENT, &BIG, 7).expect("opens").socket;
    send(&mut pair.a, ours, 2, 7, b"first, for the neighbour's address");
    pair.settle();
    let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("open");
    let mut at = 0;
    for number in 0..100u32 {
        at += record(&pair.a, &step, at, 2, 7, &pattern(1000 + number as usize));
    }
    let exchanges = pair.a.server.stack().core.link.statistics.exchanges;
    pair.a.server.step_for(CLIENT, ours, 0, at).expect("offered");
    assert!(pair.a.server.stack().core.link.statistics.exchanges - exchanges <= 8);
    pair.settle();
    let got = take(&mut pair.b, theirs);
    assert_eq!(got.len(), 101);
    assert!(got[1..].iter().enumerate().all(|(number, (.., payload))| *payload == pattern(1000 + number)));
}

#[test]
fn a_damaged_datagram_is_dropped_and_counted() {
    let mut node = Node::alone(Settings::default());
    let socket = node.server.bind_for(CLIENT, &Options::SMALL, 7).expect("opens").socket;
    let good = ipv4(9, 1, 17, &udp(99, 7, b"hello"));
    for at in [15, 18, 24, 26, 30, 34, 36, 38, 42, 46] {
        let mut bad = good.clone();
        bad[at] ^= 0x21;
        node.receive(bad);
    }
    assert_eq!(take(&mut node, socket), []);
    let statistics = node.server.stack().core.link.statistics;
    let drops = statistics.drop_malformed + statistics.drop_ip_checksum + statistics.drop_l4_checksum;
    assert_eq!(drops, 10);
    for len in 0..good.len() {
        node.receive(good[..len].to_vec());
    }
    node.receive(good);
    // The frame is padded: its last bytes carry nothing.
    assert!(take(&mut node, socket).iter().all(|(.., payload)| payload == b"hello"));
}

#[test]
fn damage_inside_fragments_is_seen() {
    let mut node = Node::alone(Settings { verifies: true, ..Settings::default() });
    let socket = node.server.bind_for(CLIENT, &BIG, 7).expect("opens").socket;
    let mut whole = udp(99, 7, &pattern(4000));
    let header = Ipv4Header::new(ip(9), ip(1), 17, whole.len());
    let sum = header.with_pseudo_header(net::checksum::Sum::new().bytes(&whole), whole.len());
    whole[6..8].copy_from_slice(&net::packet::udp_checksum(sum).to_be_bytes());
    for damage in [None, Some(3000)] {
        let mut whole = whole.clone();
        if let Some(at) = damage {
            whole[at] ^= 1;
        }
        for (at, piece) in whole.chunks(1480).enumerate() {
            let header = Ipv4Header {
                id: 5,
                fragment_offset: at * 1480,
                more_fragments: at < 2,
                total_len: 20 + piece.len(),
                ..header
            };
            node.receive(frame_of(9, 1, header, piece));
        }
        assert_eq!(take(&mut node, socket).len(), usize::from(damage.is_none()));
    }
    assert_eq!(node.server.stack().core.link.statistics.drop_l4_checksum, 1);
}

#[test]
fn a_full_ring_drops_and_says_so() {
    let mut node = Node::alone(Settings::default());
    let socket = node.server.bind_for(CLIENT, &Options::SMALL, 7).expect("opens").socket;
    for _ in 0..10 {
        node.receive(ipv4(9, 1, 17, &udp(99, 7, &[1; 1000])));
    }
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    assert_ne!(step.state & state::DROPPED, 0);
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    assert_eq!(step.state & state::DROPPED, 0);
    assert_eq!(take(&mut node, socket).len(), 4);
    assert_eq!(node.server.stack().core.link.statistics.drop_udp_full, 6);
}

#[test]
fn a_port_that_nobody_has_is_answered_but_not_without_end() {
    let mut node = Node::alone(Settings::default());
    node.receive(arp_reply(9));
    for _ in 0..100 {
        node.receive(ipv4(9, 1, 17, &udp(99, 7, b"hello")));
    }
    let answers = node.sent();
    let errors: Vec<_> = answers.iter().filter(|frame| frame[23] == 1 && frame[34..36] == [3, 3]).collect();
    assert!((1..=50).contains(&errors.len()), "{} answers", errors.len());
    // It quotes header and ports (RFC 792).
    assert_eq!(errors[0][42 + 20..42 + 24], [0, 99, 0, 7]);
    assert!(net::checksum::Sum::new().bytes(&errors[0][34..34 + 36]).is_valid());
}

#[test]
fn an_unreachable_peer_holds_nobody_up() {
    let mut node = Node::alone(Settings::default());
    let socket = node.server.bind_for(CLIENT, &Options::BULK, 7).expect("opens").socket;
    node.sent();
    for _ in 0..20 {
        node.receive(ipv4(66, 1, 17, &udp(99, 7, b"spoofed")));
        send(&mut node, socket, 66, 99, b"to nobody");
    }
    node.receive(arp_reply(9));
    node.receive(ipv4(9, 1, 17, &udp(99, 7, b"real")));
    send(&mut node, socket, 9, 99, b"answer");
    let answered = node.sent().iter().any(|frame| frame[..6] == mac(9).0 && frame[42..48] == *b"answer");
    assert!(answered, "the good peer is served at once");
    // An unknown good peer is served as soon as it answers.
    send(&mut node, socket, 10, 99, b"answer");
    assert!(node.sent().iter().any(|frame| frame[12..14] == [8, 6] && frame[38..42] == ip(10).octets()));
    node.receive(arp_reply(10));
    assert!(node.sent().iter().any(|frame| frame[..6] == mac(10).0 && frame[42..48] == *b"answer"));
    // And nothing spins afterwards: three requests, then silence.
    node.pass(Duration::from_secs(10));
    let requests = node.sent().iter().filter(|frame| frame[38..42] == ip(66).octets()).count();
    assert!(requests <= 3);
    assert!(node.server.stack().core.link.statistics.drop_neighbour >= 20);
}

#[test]
fn a_known_peer_is_never_without_address() {
    let mut node = Node::alone(Settings::default());
    let socket = node.server.bind_for(CLIENT, &Options::BULK, 7).expect("opens").socket;
    node.receive(arp_reply(9));
    node.sent();
    for second in 0..200 {
        send(&mut node, socket, 9, 99, b"tick");
        let sent = node.sent();
        assert!(sent.iter().any(|frame| frame[..6] == mac(9).0 && frame[12..14] == [8, 0]), "gap at {second} s");
        if sent.iter().any(|frame| frame[12..14] == [8, 6]) {
            node.receive(arp_reply(9));
        }
        node.pass(Duration::from_secs(1));
        if node.sent().iter().any(|frame| frame[12..14] == [8, 6]) {
            node.receive(arp_reply(9));
        }
    }
}

#[test]
fn arp_requests_are_answered() {
    let mut node = Node::alone(Settings::default());
    node.sent();
    node.receive(arp(9, 1));
    let sent = node.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][..6], mac(9).0);
    assert_eq!(sent[0][20..32], [&[0, 2][..], &mac(1).0, &ip(1).octets()].concat()[..]);
    assert!(sent[0][42..].iter().all(|&byte| byte == 0), "padding is zero");
    // From another network, from ourselves, from a group address: no answer, and nothing learned.
    for (at, value) in [(28, 99), (31, 1), (22, 1)] {
        let mut bad = arp(9, 1);
        bad[at] = value;
        node.receive(bad);
        assert!(node.sent().is_empty());
    }
}

/// An echo request.
fn echo(len: usize) -> Vec<u8> {
    let mut message = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    message.extend(pattern(len));
    let sum = net::checksum::Sum::new().bytes(&message);
    message[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
    message
}

#[test]
fn echo_requests_of_any_size_are_answered() {
    let mut node = Node::alone(Settings::default());
    node.receive(arp_reply(9));
    for len in [0, 1, 56, 1472, 1500, 3000, 65_507] {
        node.sent();
        let message = echo(len);
        let pieces = message.len().div_ceil(1480);
        for (at, piece) in message.chunks(1480).enumerate() {
            let header = Ipv4Header {
                id: len as u16,
                fragment_offset: at * 1480,
                more_fragments: at + 1 < pieces,
                total_len: 20 + piece.len(),
                ..Ipv4Header::new(ip(9), ip(1), 1, 0)
            };
            node.receive(frame_of(9, 1, header, piece));
        }
        let mut answer = Vec::new();
        for frame in node.sent() {
            let header = Ipv4Header::parse(&frame[14..]).expect("IPv4");
            assert_eq!(header.fragment_offset, answer.len());
            answer.extend(&frame[34..14 + header.total_len]);
        }
        assert!(net::checksum::Sum::new().bytes(&answer).is_valid(), "{len} bytes");
        assert_eq!(answer[0], 0);
        assert_eq!(answer[4..], message[4..]);
    }
}

#[test]
fn pings_are_sent_and_timed() {
    let mut pair = Pair::new();
    for (sequence, len) in [(1, 0), (2, 56), (3, 1472), (4, 1500), (5, 65_507)] {
        pair.a.server.ping_for(CLIENT, address(2), len, sequence).expect("sent");
        assert_eq!(pair.a.server.ping_reply_for(CLIENT), Err(NetError::WouldBlock));
        pair.clock.set(pair.clock.get() + 250);
        pair.settle();
        let reply = pair.a.server.ping_reply_for(CLIENT).expect("answered");
        assert_eq!((reply.address, reply.sequence, reply.len), (address(2), sequence, len));
        assert_eq!((reply.micros, reply.time_to_live), (250, 64));
        assert!(pair.a.posts.get() >= 1);
    }
    assert_eq!(pair.a.server.ping_for(CLIENT, address(2), 65_508, 1), Err(NetError::TooLong));
    assert_eq!(pair.a.server.ping_for(CLIENT, Address([0; 4]), 1, 1), Err(NetError::Unreachable));
}

#[test]
fn a_flood_leaves_time_for_others() {
    let mut node = Node::alone(Settings::default());
    let flood = ipv4(9, 1, 17, &udp(99, 7, b"flood"));
    for _ in 0..10_000 {
        node.inbox.borrow_mut().push_back(flood.clone());
    }
    node.notify(common::FRAMES_BIT);
    let left = node.inbox.borrow().len();
    assert!(left > 5000, "only {left} left: the stack did not pause");
    assert!(!node.wake(), "during the pause no frame wakes it");
    let wake = node.timer.get().expect("a timer ends the pause");
    assert!(wake - node.clock.get() <= 2000);
    node.pass(Duration::from_millis(20));
    assert!(node.inbox.borrow().is_empty());
}

#[test]
fn strange_frames_are_counted_and_dropped() {
    let mut node = Node::alone(Settings::default());
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for round in 0..20_000 {
        let len = random() % 120;
        let mut frame: Vec<u8> = (0..len).map(|_| random() as u8).collect();
        // Most of them with a plausible beginning, so that they get further.
        if round % 4 != 0 && len >= 34 {
            frame[..6].copy_from_slice(&mac(1).0);
            frame[12..14].copy_from_slice(if round % 8 == 1 { &[8, 6] } else { &[8, 0] });
            frame[14] = 0x45;
            frame[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
            frame[23] = [1, 6, 17, 2][random() % 4];
            frame[30..34].copy_from_slice(&ip(1).octets());
            insert_checksums(&mut frame);
            frame[24..26].fill(0);
            let sum = net::checksum::Sum::new().bytes(&frame[14..34]).checksum();
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        node.receive(frame);
    }
    node.pass(Duration::from_secs(5));
    let census = node.books.census();
    assert_eq!(census.open + census.received, 0, "no frame got lost");
}

#[test]
fn hostile_records_are_refused() {
    let mut node = Node::alone(Settings::default());
    let socket = node.server.bind_for(CLIENT, &Options::SMALL, 7).expect("opens").socket;
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    for (len, commit) in [(u16::MAX, 16), (100, 16), (0, 3), (4000, 4096)] {
        let header = DatagramHeader { address: address(9), port: 5, len };
        node.window_mut(step.writable_offset, 8).copy_from_slice(header.as_bytes());
        assert!(
            node.server.step_for(CLIENT, socket, 0, commit).is_err() || usize::from(len) + 8 <= commit as usize,
            "{len} in {commit}"
        );
    }
    assert_eq!(node.server.step_for(CLIENT, socket, 0, 4097), Err(NetError::BadArgument));
    assert_eq!(node.server.step_for(CLIENT, socket, 1, 0), Err(NetError::BadArgument));
    // It still works.
    node.receive(ipv4(9, 1, 17, &udp(99, 7, b"hello")));
    assert_eq!(take(&mut node, socket).len(), 1);
    let remote = Endpoint::new(address(9), 99);
    assert_eq!(remote.port, 99);
}
