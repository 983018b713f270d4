//! How often a payload byte is copied, and that the frames in between are left alone.
//!
//! The counts are the ones that the README of this task names, and that `netstat` shows.

mod common;

use common::{CLIENT, Node, Pair, Settings, address, ipv4, udp};
use net_api::{DatagramHeader, Endpoint, Options, SocketId, datagram_space};
use zerocopy::IntoBytes;

const BIG: Options = Options { receive: 256 << 10, send: 256 << 10, flags: 0, backlog: 1 };

/// Copies out of frames and into frames so far.
fn copies(node: &mut Node) -> (u64, u64) {
    let statistics = &node.server.stack().core.link.statistics;
    (statistics.rx_copied, statistics.tx_copied)
}

fn send_datagram(node: &mut Node, socket: SocketId, len: usize) {
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    let space = datagram_space(len) as u32;
    let header = DatagramHeader { address: address(2), port: 7, len: len as u16 };
    node.window_mut(step.writable_offset, 8).copy_from_slice(header.as_bytes());
    node.server.step_for(CLIENT, socket, 0, space).expect("offered");
}

#[test]
fn a_tcp_byte_is_copied_once_into_its_frame_and_once_out_of_it() {
    let total = 1 << 20;
    let mut pair = Pair::new();
    let listener = pair.b.server.listen_for(CLIENT, &Options::BULK, 5001).expect("listens");
    let remote = Endpoint::new(address(2), 5001);
    let ours = pair.a.server.connect_for(CLIENT, &Options::BULK, remote).expect("asks");
    pair.settle();
    let theirs = pair.b.server.accept_for(CLIENT, listener).expect("a connection").socket;
    let before = (copies(&mut pair.a), copies(&mut pair.b));
    let (mut sent, mut received) = (0, 0);
    while received < total {
        let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("open");
        let len = (total - sent).min(step.writable_len as usize);
        if len > 0 {
            pair.a.server.step_for(CLIENT, ours, 0, len as u32).expect("open");
            sent += len;
        }
        pair.settle();
        let step = pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
        received += step.readable_len as usize;
        // Read in place: giving the bytes back moves none.
        pair.b.server.step_for(CLIENT, theirs, step.readable_len, 0).expect("open");
        if step.readable_len == 0 {
            pair.tick();
        }
        pair.settle();
    }
    let after = (copies(&mut pair.a), copies(&mut pair.b));
    assert_eq!(after.0.1 - before.0.1, total as u64, "copies into frames at the sender");
    assert_eq!(after.1.0 - before.1.0, total as u64, "copies out of frames at the receiver");
    // Acknowledgements carry nothing.
    assert_eq!((after.0.0 - before.0.0, after.1.1 - before.1.1), (0, 0));
}

#[test]
fn a_datagram_byte_is_copied_once_each_way_and_once_more_if_it_came_in_fragments() {
    let mut pair = Pair::new();
    let ours = pair.a.server.bind_for(CLIENT, &BIG, 0).expect("opens").socket;
    pair.b.server.bind_for(CLIENT, &BIG, 7).expect("opens");
    for (len, again) in [(1000usize, false), (30_000, true)] {
        let before = (copies(&mut pair.a), copies(&mut pair.b));
        send_datagram(&mut pair.a, ours, len);
        pair.settle();
        let after = (copies(&mut pair.a), copies(&mut pair.b));
        let udp = len as u64 + 8;
        assert_eq!(after.0.1 - before.0.1, udp, "into frames, header included");
        assert_eq!(after.1.0 - before.1.0, if again { udp + len as u64 } else { len as u64 }, "out of frames");
    }
}

#[test]
fn a_received_frame_goes_back_as_it_came() {
    let mut node = Node::alone(Settings::default());
    node.server.bind_for(CLIENT, &BIG, 7).expect("opens");
    let frame = ipv4(9, 1, 17, &udp(99, 7, &[0xa5; 1400]));
    for _ in 0..400 {
        node.receive(frame.clone());
    }
    // The imitated driver compares; some frames stay in stock instead.
    assert!(node.intact.get() >= 200, "{} came back", node.intact.get());
}
