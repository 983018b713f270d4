//! An address by DHCP (RFC 2131): a state machine that is told the time and what arrived.
//!
//! It owns no socket and sends nothing itself: [`Dhcp::poll`] writes the next message, if one is due, and says where it goes.
//! smoltcp's client would need an Ethernet interface, and ours ends at IP (see [`crate::arp`] for why); the message format is smoltcp's.

use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, Ipv4Address, Ipv4Cidr};

/// Port of clients.
pub const CLIENT_PORT: u16 = 68;
/// Port of servers.
pub const SERVER_PORT: u16 = 67;
/// Room for a message that we send.
pub const MESSAGE_SIZE: usize = 300;

/// First repetition of a question; doubled up to [`MAX_WAIT`].
const FIRST_WAIT: Duration = Duration::from_secs(2);
const MAX_WAIT: Duration = Duration::from_secs(32);
/// Requests for one offer before a new search begins.
const REQUESTS: u32 = 4;
/// Shortest time between two renewals (RFC 2131, section 4.4.5).
const MIN_RENEW: Duration = Duration::from_secs(60);
/// A lease without a duration counts this long.
const DEFAULT_LEASE: u32 = 3600;
/// Options that we ask for: mask, router, lease time, renewal, rebinding.
const WANTED: [u8; 5] = [1, 3, 51, 58, 59];
/// Option number of the router list.
const OPTION_ROUTER: u8 = 3;

/// What a lease gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Own address and prefix length.
    pub address: Ipv4Cidr,
    /// Router, if the server named one.
    pub gateway: Option<Ipv4Address>,
    /// The server.
    pub server: Ipv4Address,
}

/// What changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Use this from now on.
    Bound(Lease),
    /// The address must not be used any more.
    Lost,
}

/// A message to send, from [`CLIENT_PORT`] to [`SERVER_PORT`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Source address.
    pub source: Ipv4Address,
    /// Target address; broadcast at first.
    pub target: Ipv4Address,
    /// Bytes written.
    pub len: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Looks for a server.
    Searching,
    /// Asks for what a server offered.
    Requesting { offered: Ipv4Address, server: Ipv4Address, left: u32 },
    /// Has an address.
    Bound { lease: Lease, rebind_at: Instant, expires_at: Instant },
}

/// The client.
#[derive(Debug)]
pub struct Dhcp {
    mac: EthernetAddress,
    state: State,
    transaction: u32,
    /// When to send next.
    due: Instant,
    wait: Duration,
    began: Instant,
}

impl Dhcp {
    /// A client that searches at once. `seed` makes its transaction numbers differ from those of other devices.
    #[must_use]
    pub fn new(mac: EthernetAddress, seed: u32, now: Instant) -> Self {
        Self { mac, state: State::Searching, transaction: seed, due: now, wait: FIRST_WAIT, began: now }
    }

    /// Starts over, as after the link was down: asks for the old address first, if there is one.
    pub fn restart(&mut self, now: Instant) {
        if let State::Bound { .. } = self.state {
            self.due = now;
        } else {
            self.search(now);
        }
    }

    /// When [`Dhcp::poll`] has something to do next.
    #[must_use]
    pub fn next_due(&self) -> Instant {
        match self.state {
            State::Bound { expires_at, .. } => self.due.min(expires_at),
            _ => self.due,
        }
    }

    /// Writes the message that is due, if any, and reports a lease that ran out.
    pub fn poll(&mut self, now: Instant, buffer: &mut [u8; MESSAGE_SIZE]) -> (Option<Change>, Option<Outgoing>) {
        let mut change = None;
        if let State::Bound { expires_at, .. } = self.state
            && now >= expires_at
        {
            change = Some(Change::Lost);
            self.search(now);
        }
        if now < self.due {
            return (change, None);
        }
        if let State::Requesting { left: 0, .. } = self.state {
            self.search(now);
        }
        (change, self.write(now, buffer))
    }

    /// Takes a message that arrived for [`CLIENT_PORT`] from [`SERVER_PORT`].
    pub fn receive(&mut self, now: Instant, payload: &[u8]) -> Option<Change> {
        let packet = DhcpPacket::new_checked(payload).ok()?;
        let message = DhcpRepr::parse(&packet).ok()?;
        if message.transaction_id != self.transaction || message.client_hardware_address != self.mac {
            return None;
        }
        let server = message.server_identifier?;
        match (self.state, message.message_type) {
            (State::Searching, DhcpMessageType::Offer) if usable(message.your_ip) => {
                self.state = State::Requesting { offered: message.your_ip, server, left: REQUESTS };
                self.due = now;
                self.wait = FIRST_WAIT;
                None
            }
            (State::Requesting { server: asked, .. }, DhcpMessageType::Ack) if asked == server => {
                self.bind(now, &packet, &message, server)
            }
            (State::Bound { .. }, DhcpMessageType::Ack) => self.bind(now, &packet, &message, server),
            (State::Requesting { server: asked, .. }, DhcpMessageType::Nak) if asked == server => {
                self.search(now);
                None
            }
            (State::Bound { .. }, DhcpMessageType::Nak) => {
                self.search(now);
                Some(Change::Lost)
            }
            _ => None,
        }
    }

    fn search(&mut self, now: Instant) {
        self.state = State::Searching;
        self.due = now;
        self.wait = FIRST_WAIT;
        self.began = now;
        self.transaction = self.transaction.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }

    fn bind(
        &mut self,
        now: Instant,
        packet: &DhcpPacket<&[u8]>,
        message: &DhcpRepr<'_>,
        server: Ipv4Address,
    ) -> Option<Change> {
        let mask = message.subnet_mask?.to_bits();
        if !usable(message.your_ip) || mask.leading_ones() + mask.trailing_zeros() != 32 {
            return None;
        }
        // smoltcp's parser takes a list of one router only; servers may name several, the best first.
        let gateway = packet
            .options()
            .find(|option| option.kind == OPTION_ROUTER)
            .and_then(|option| option.data.first_chunk::<4>())
            .map(|bytes| Ipv4Address::from(*bytes))
            .filter(|&router| usable(router));
        let lease = Lease { address: Ipv4Cidr::new(message.your_ip, mask.leading_ones() as u8), gateway, server };
        let seconds = u64::from(message.lease_duration.unwrap_or(DEFAULT_LEASE).max(60));
        let renew = message.renew_duration.map_or(seconds / 2, u64::from);
        let rebind = message.rebind_duration.map_or(seconds * 7 / 8, u64::from);
        let rebind = rebind.min(seconds);
        let after = |seconds| now + Duration::from_secs(seconds);
        let before = self.state;
        self.state = State::Bound { lease, rebind_at: after(rebind), expires_at: after(seconds) };
        self.due = after(renew.min(rebind));
        match before {
            State::Bound { lease: old, .. } if old == lease => None,
            _ => Some(Change::Bound(lease)),
        }
    }

    /// Writes the message for the present state and plans its repetition.
    fn write(&mut self, now: Instant, buffer: &mut [u8; MESSAGE_SIZE]) -> Option<Outgoing> {
        let mut message = DhcpRepr {
            message_type: DhcpMessageType::Discover,
            transaction_id: self.transaction,
            secs: (now - self.began).secs().min(u64::from(u16::MAX)) as u16,
            client_hardware_address: self.mac,
            client_ip: Ipv4Address::UNSPECIFIED,
            your_ip: Ipv4Address::UNSPECIFIED,
            server_ip: Ipv4Address::UNSPECIFIED,
            router: None,
            subnet_mask: None,
            relay_agent_ip: Ipv4Address::UNSPECIFIED,
            // Until we have an address, only a broadcast is sure to reach us.
            broadcast: true,
            requested_ip: None,
            client_identifier: Some(self.mac),
            server_identifier: None,
            parameter_request_list: Some(&WANTED),
            dns_servers: None,
            max_size: Some(1500),
            lease_duration: None,
            renew_duration: None,
            rebind_duration: None,
            additional_options: &[],
        };
        let mut source = Ipv4Address::UNSPECIFIED;
        let mut target = Ipv4Address::BROADCAST;
        match &mut self.state {
            State::Searching => {
                self.due = now + self.wait;
                self.wait = (self.wait * 2).min(MAX_WAIT);
            }
            State::Requesting { offered, server, left } => {
                *left -= 1;
                message.message_type = DhcpMessageType::Request;
                message.requested_ip = Some(*offered);
                message.server_identifier = Some(*server);
                self.due = now + self.wait;
                self.wait = (self.wait * 2).min(MAX_WAIT);
            }
            State::Bound { lease, rebind_at, expires_at } => {
                message.message_type = DhcpMessageType::Request;
                message.broadcast = false;
                message.client_ip = lease.address.address();
                source = lease.address.address();
                // Until T2 the server is asked that gave the lease, then any.
                let until = if now < *rebind_at {
                    target = lease.server;
                    *rebind_at
                } else {
                    *expires_at
                };
                self.due = now + ((until - now) / 2).max(MIN_RENEW);
            }
        }
        buffer.fill(0);
        let len = message.buffer_len();
        let room = buffer.get_mut(..len)?;
        message.emit(&mut DhcpPacket::new_unchecked(room)).ok()?;
        // Old relays expect the length of a BOOTP message.
        Some(Outgoing { source, target, len: MESSAGE_SIZE })
    }
}

/// True if a host can have this address.
fn usable(address: Ipv4Address) -> bool {
    !address.is_unspecified() && !address.is_broadcast() && !address.is_multicast() && !address.is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);
    const SERVER: Ipv4Address = Ipv4Address::new(10, 0, 2, 2);
    const OURS: Ipv4Address = Ipv4Address::new(10, 0, 2, 15);

    fn at(secs: i64) -> Instant {
        Instant::from_secs(secs)
    }

    /// What a server would answer.
    fn answer(request: &[u8], kind: DhcpMessageType) -> std::vec::Vec<u8> {
        let packet = DhcpPacket::new_checked(request).expect("a message");
        let request = DhcpRepr::parse(&packet).expect("a valid message");
        let reply = DhcpRepr {
            message_type: kind,
            your_ip: OURS,
            server_identifier: Some(SERVER),
            router: Some(SERVER),
            subnet_mask: Some(Ipv4Address::new(255, 255, 255, 0)),
            lease_duration: Some(1000),
            client_identifier: None,
            parameter_request_list: None,
            requested_ip: None,
            max_size: None,
            ..request
        };
        let mut bytes = std::vec![0; reply.buffer_len()];
        reply.emit(&mut DhcpPacket::new_unchecked(&mut bytes[..])).expect("room");
        bytes
    }

    fn sent(client: &mut Dhcp, now: Instant) -> Option<(std::vec::Vec<u8>, Outgoing)> {
        let mut buffer = [0; MESSAGE_SIZE];
        let (change, out) = client.poll(now, &mut buffer);
        assert_eq!(change, None);
        out.map(|out| (buffer[..out.len].to_vec(), out))
    }

    fn bound() -> Dhcp {
        let mut client = Dhcp::new(MAC, 1, at(0));
        let (discover, to) = sent(&mut client, at(0)).expect("discover");
        assert_eq!(to.target, Ipv4Address::BROADCAST);
        assert_eq!(client.receive(at(0), &answer(&discover, DhcpMessageType::Offer)), None);
        let (request, _) = sent(&mut client, at(0)).expect("request");
        let change = client.receive(at(0), &answer(&request, DhcpMessageType::Ack));
        let lease = Lease { address: Ipv4Cidr::new(OURS, 24), gateway: Some(SERVER), server: SERVER };
        assert_eq!(change, Some(Change::Bound(lease)));
        client
    }

    #[test]
    fn gets_and_renews_a_lease() {
        let mut client = bound();
        assert_eq!(sent(&mut client, at(499)), None);
        let (renewal, to) = sent(&mut client, at(500)).expect("renewal at half time");
        assert_eq!((to.source, to.target), (OURS, SERVER));
        // The same lease again is no change, but a new term.
        assert_eq!(client.receive(at(500), &answer(&renewal, DhcpMessageType::Ack)), None);
        assert_eq!(client.next_due(), at(1000));
    }

    #[test]
    fn without_answer_the_lease_ends_and_the_search_begins_again() {
        let mut client = bound();
        let mut to_all = false;
        let mut buffer = [0; MESSAGE_SIZE];
        for now in 0..1000 {
            if let (None, Some(out)) = client.poll(at(now), &mut buffer) {
                to_all |= out.target == Ipv4Address::BROADCAST;
            }
        }
        assert!(to_all, "rebinding asks every server");
        let (change, out) = client.poll(at(1000), &mut buffer);
        assert_eq!(change, Some(Change::Lost));
        assert_eq!(out.map(|out| out.source), Some(Ipv4Address::UNSPECIFIED));
    }

    #[test]
    fn repeats_with_growing_pauses() {
        let mut client = Dhcp::new(MAC, 1, at(0));
        let times: std::vec::Vec<i64> = (0..100).filter(|&now| sent(&mut client, at(now)).is_some()).collect();
        assert_eq!(times, [0, 2, 6, 14, 30, 62, 94]);
    }

    #[test]
    fn a_refusal_starts_over_and_strangers_are_ignored() {
        let mut client = Dhcp::new(MAC, 1, at(0));
        let (discover, _) = sent(&mut client, at(0)).expect("discover");
        let mut other = answer(&discover, DhcpMessageType::Offer);
        other[4] ^= 1;
        client.receive(at(0), &other);
        assert_eq!(client.state, State::Searching);
        client.receive(at(0), &answer(&discover, DhcpMessageType::Offer));
        let (request, _) = sent(&mut client, at(0)).expect("request");
        client.receive(at(0), &answer(&request, DhcpMessageType::Nak));
        assert_eq!(client.state, State::Searching);
        assert_ne!(sent(&mut client, at(0)).expect("new search").0[4..8], discover[4..8]);
    }

    #[test]
    fn garbage_is_ignored() {
        let mut client = bound();
        for len in 0..400 {
            assert_eq!(client.receive(at(1), &std::vec![0xff; len]), None);
        }
    }
}
