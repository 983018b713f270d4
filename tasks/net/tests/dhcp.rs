//! An address by DHCP, from a server in the test's hands.

mod common;

use common::{CLIENT, Node, Settings, frame_of, mac};
use net::packet::Ipv4Header;
use net::stack::Addressing;
use net_api::{Address, Endpoint, NetError, Options, cause, state};
use smoltcp::time::Duration;
use smoltcp::wire::{DhcpMessageType, DhcpPacket, DhcpRepr, Ipv4Address};

const SERVER: Ipv4Address = Ipv4Address::new(10, 0, 0, 2);
const OURS: Ipv4Address = Ipv4Address::new(10, 0, 0, 77);

fn host() -> Node {
    Node::alone(Settings { addressing: Some(Addressing::Dhcp), ..Settings::default() })
}

/// The DHCP message in a frame, if it is one to the server.
fn message(frame: &[u8]) -> Option<&[u8]> {
    (frame[23] == 17 && frame[34..38] == [0, 68, 0, 67]).then(|| &frame[42..])
}

/// What the server answers; unicast, as servers do that take the broadcast flag for advice.
fn answer(request: &[u8], kind: DhcpMessageType, seconds: u32) -> Vec<u8> {
    let packet = DhcpPacket::new_checked(request).expect("a message");
    let request = DhcpRepr::parse(&packet).expect("a valid one");
    let reply = DhcpRepr {
        message_type: kind,
        your_ip: OURS,
        server_identifier: Some(SERVER),
        router: Some(SERVER),
        subnet_mask: Some(Ipv4Address::new(255, 255, 255, 0)),
        lease_duration: Some(seconds),
        client_identifier: None,
        parameter_request_list: None,
        requested_ip: None,
        max_size: None,
        ..request
    };
    let mut payload = vec![0; reply.buffer_len()];
    reply.emit(&mut DhcpPacket::new_unchecked(&mut payload[..])).expect("room");
    let datagram = common::udp(67, 68, &payload);
    frame_of(2, 1, Ipv4Header::new(SERVER, OURS, 17, datagram.len()), &datagram)
}

/// Plays the server until the host has its address.
fn lease(node: &mut Node, seconds: u32) {
    let address = |node: &mut Node| node.server.stack().core.link.address.map(|own| own.address());
    for _ in 0..40 {
        for frame in node.sent() {
            let Some(request) = message(&frame) else { continue };
            let packet = DhcpPacket::new_checked(request).expect("a message");
            let kind = match DhcpRepr::parse(&packet).expect("a valid one").message_type {
                DhcpMessageType::Discover => DhcpMessageType::Offer,
                _ => DhcpMessageType::Ack,
            };
            node.receive(answer(request, kind, seconds));
        }
        if address(node) == Some(OURS) {
            return;
        }
        node.pass(Duration::from_secs(1));
    }
    panic!("no address");
}

#[test]
fn an_address_is_found_announced_and_used() {
    let mut node = host();
    let peer = Endpoint::new(Address([10, 0, 0, 9]), 80);
    assert_eq!(node.server.connect_for(CLIENT, &Options::SMALL, peer), Err(NetError::Unreachable));
    lease(&mut node, 3600);
    let sent = node.sent();
    let announced = sent.iter().any(|frame| frame[12..14] == [8, 6] && frame[28..32] == OURS.octets());
    assert!(announced, "others learn whose address it is now");
    assert_eq!(node.server.stack().core.link.gateway, Some(SERVER));
    // A peer in another network is asked for by way of the router.
    let far = Endpoint::new(Address([192, 0, 2, 1]), 80);
    node.server.connect_for(CLIENT, &Options::SMALL, far).expect("a way");
    assert!(node.sent().iter().any(|frame| frame[12..14] == [8, 6] && frame[38..42] == SERVER.octets()));
}

#[test]
fn without_a_server_the_host_goes_on_asking_and_rests_in_between() {
    let mut node = host();
    let asked = |node: &mut Node| node.sent().iter().filter(|frame| message(frame).is_some()).count();
    node.pass(Duration::from_secs(100));
    assert!((4..=8).contains(&asked(&mut node)));
    let frames = node.sent();
    assert!(frames.iter().all(|frame| frame[6..12] == mac(1).0));
    lease(&mut node, 3600);
}

#[test]
fn a_lease_that_ends_ends_connections() {
    let mut node = host();
    lease(&mut node, 120);
    let peer = Endpoint::new(Address([10, 0, 0, 9]), 80);
    let socket = node.server.connect_for(CLIENT, &Options::SMALL, peer).expect("asks");
    // Nobody renews it.
    node.pass(Duration::from_secs(10));
    let connecting = node.server.step_for(CLIENT, socket, 0, 0).expect("open");
    assert_eq!(connecting.state, state::CONNECTING);
    node.pass(Duration::from_secs(20));
    node.sent();
    node.pass(Duration::from_secs(100));
    assert_eq!(node.server.stack().core.link.address, None);
    let step = node.server.step_for(CLIENT, socket, 0, 0).expect("known");
    assert_eq!(step.state, state::CLOSED);
    assert!(matches!(step.cause, cause::TIMED_OUT | cause::ADDRESS_LOST));
    lease(&mut node, 3600);
}
