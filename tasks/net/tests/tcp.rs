//! TCP between two hosts.

mod common;

use common::{CLIENT, Node, Pair, address};
use net_api::{Endpoint, Options, SocketId, state};

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
