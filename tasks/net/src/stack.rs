//! What happens to a frame, from the driver's list to the socket, and when.
//!
//! One round: take the frames that wait, look at each in place, let the sockets that something happened to send, exchange frames
//! with the driver. Rounds go on until nothing is left, but not for ever: after [`ROUNDS`] of them the clients get
//! the CPU for a moment, however many frames still arrive.

use smoltcp::iface::{Config, Interface};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpCidr, Ipv4Address, Ipv4Cidr};

use abi::MAX_FRAME_LIST;
use abi::frame::FrameMeta;

use crate::checksum::Sum;
use crate::clients::{Clients, Kind};
use crate::device::Device;
use crate::dhcp::{self, Change, Dhcp};
use crate::icmp;
use crate::link::{Link, Mac, Rx};
use crate::packet::{ETHERNET_HEADER, ETHERTYPE_ARP, ETHERTYPE_IPV4, ICMP, Ipv4Header, TCP, UDP, UDP_HEADER, word};
use crate::reassembly::{Fragment, Key, Outcome, Reassembly};
use crate::tcp::{Input, Listen, SLOTS, Settled, Storage, Tcp};
use crate::udp::{Delivery, Record, Udp};

/// Rounds, of a list of frames each, before others get the CPU.
const ROUNDS: usize = 64;
/// How long they get it.
const PAUSE: Duration = Duration::from_millis(1);
/// Things that are not urgent are looked at this often.
const SWEEP: Duration = Duration::from_millis(500);
/// Frames that are done with are kept back up to this number, to go with the next frames to send.
const KEEP_BACK: usize = MAX_FRAME_LIST / 2;
/// "Port unreachable" messages between two sweeps.
const UNREACHABLE: u32 = 25;

/// How a round of work ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rest {
    /// When to call [`Stack::run`] again, at the latest.
    pub until: Instant,
    /// True if frames may wait at the driver, but others should run first: do not come back before `until` for frames.
    pub pause: bool,
}

/// Everything above the frames but reassembly, so that a datagram can be handed up from there.
#[derive(Debug)]
pub struct Core<'f, M> {
    /// The lower edge.
    pub link: Link<'f, M>,
    pub(crate) iface: Interface0,
    pub(crate) tcp: Tcp<'f>,
    pub(crate) udp: Udp<'f>,
    /// Who has which socket.
    pub clients: Clients<'f>,
    dhcp: Option<Dhcp>,
    unreachable_left: u32,
}

/// smoltcp's interface has no `Debug`.
pub(crate) struct Interface0(pub Interface);

impl core::fmt::Debug for Interface0 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Interface")
    }
}

/// How the stack gets its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// By DHCP.
    Dhcp,
    /// This one, with this router.
    Static(Ipv4Cidr, Option<Ipv4Address>),
}

/// The whole stack.
#[derive(Debug)]
pub struct Stack<'f, M> {
    /// All but reassembly.
    pub core: Core<'f, M>,
    reassembly: Reassembly<'f>,
    next_sweep: Instant,
    link_was_up: bool,
}

impl<'f, M: Mac> Stack<'f, M> {
    /// A stack without clients. `seed` should differ from boot to boot and from device to device.
    pub fn new(
        mut link: Link<'f, M>,
        storage: &'f mut Storage<'f>,
        reassembly: &'f mut [u8],
        addressing: Addressing,
        seed: u64,
        now: Instant,
    ) -> Self {
        link.now = now;
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let iface = Interface::new(config, &mut Device::sender(&mut link), now);
        let hardware = link.hardware;
        let mut core = Core {
            link,
            iface: Interface0(iface),
            tcp: Tcp::new(storage),
            udp: Udp::new(),
            clients: Clients::new(),
            dhcp: None,
            unreachable_left: UNREACHABLE,
        };
        match addressing {
            Addressing::Dhcp => core.dhcp = Some(Dhcp::new(hardware, seed as u32, now)),
            Addressing::Static(address, gateway) => core.set_address(Some(address), gateway),
        }
        Self { core, reassembly: Reassembly::new(reassembly), next_sweep: now, link_was_up: false }
    }

    /// True if the address comes by DHCP.
    #[must_use]
    pub const fn by_dhcp(&self) -> bool {
        self.core.dhcp.is_some()
    }

    /// Works until nothing is left to do. `clock` tells the time; `ask_driver` if frames may wait at the driver.
    pub fn run(&mut self, clock: impl Fn() -> Instant, ask_driver: bool) -> Rest {
        let mut now = clock();
        self.core.link.now = now;
        let mut ask = ask_driver;
        let mut pause = true;
        for _ in 0..ROUNDS {
            if ask {
                if self.core.link.exchange() > 0 {
                    now = clock();
                    self.core.link.now = now;
                }
                if self.core.link.link_up != self.link_was_up {
                    self.link_changed();
                }
            }
            // Not more than a list at a time: what was received must be acknowledged before it can outgrow a window.
            for _ in 0..MAX_FRAME_LIST {
                let Some(frame) = self.core.link.books.receive() else {
                    break;
                };
                self.receive(frame);
            }
            if now >= self.next_sweep {
                self.sweep(now);
            }
            self.core.tcp.tick(now);
            self.core.egress();
            let link = &self.core.link;
            if link.books.received_len() > 0 {
                ask = false;
                continue;
            }
            ask = link.driver_alive && (link.more || link.has_queued() || link.books.outgoing_len() >= KEEP_BACK);
            if !ask {
                pause = false;
                break;
            }
        }
        let until = self.core.tcp.next_due().min(self.next_sweep);
        Rest { until: if pause { now + PAUSE } else { until }, pause }
    }

    /// Posts what clients are waiting for: calls `post` with task index and mask.
    pub fn post(&mut self, mut post: impl FnMut(u8, u32)) {
        let mut waiting = self.core.clients.take_posts();
        while waiting != 0 {
            let number = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            if let Some(client) = self.core.clients.get(number) {
                post(client.task, client.mask);
                self.core.link.statistics.posts += 1;
            }
        }
    }

    /// Looks at a received frame in place. It goes back to the books at the end.
    fn receive(&mut self, frame: Rx<'f>) {
        let link = &mut self.core.link;
        link.statistics.rx_frames += 1;
        link.statistics.rx_bytes += frame.len() as u64;
        let Some((ethernet, payload)) = frame.split_first_chunk::<ETHERNET_HEADER>() else {
            link.statistics.drop_malformed += 1;
            return;
        };
        if ethernet[0] & 1 == 0 && ethernet[..6] != link.hardware.0 {
            link.statistics.drop_not_ours += 1;
            return;
        }
        match [ethernet[12], ethernet[13]] {
            ETHERTYPE_IPV4 => self.receive_ip(payload, frame.meta()),
            ETHERTYPE_ARP => link.receive_arp(payload),
            _ => link.statistics.drop_protocol += 1,
        }
    }

    fn receive_ip(&mut self, packet: &[u8], meta: FrameMeta) {
        let core = &mut self.core;
        let statistics = &mut core.link.statistics;
        let Some(header) = Ipv4Header::parse(packet) else {
            statistics.drop_malformed += 1;
            return;
        };
        if !meta.contains(FrameMeta::IP_VERIFIED) && !Sum::new().bytes(&packet[..header.header_len]).is_valid() {
            statistics.drop_ip_checksum += 1;
            return;
        }
        let packet = &packet[..header.total_len];
        if !core.is_for_us(&header, packet) {
            core.link.statistics.drop_not_ours += 1;
            return;
        }
        if header.is_fragment() {
            self.receive_fragment(&header, &packet[header.header_len..]);
        } else {
            core.transport(&header, packet, meta.contains(FrameMeta::L4_VERIFIED));
        }
    }

    fn receive_fragment(&mut self, header: &Ipv4Header, data: &[u8]) {
        let core = &mut self.core;
        core.link.statistics.fragments_received += 1;
        core.link.statistics.rx_copied += data.len() as u64;
        let fragment = Fragment {
            key: Key { source: header.source, target: header.target, id: header.id, protocol: header.protocol },
            offset: header.fragment_offset,
            more: header.more_fragments,
            data,
        };
        match self.reassembly.add(fragment, core.link.now) {
            Outcome::Kept => {}
            Outcome::Bad => core.link.statistics.drop_fragment += 1,
            Outcome::Complete(place, len) => {
                core.link.statistics.reassembled += 1;
                let whole = Ipv4Header {
                    time_to_live: header.time_to_live,
                    ..Ipv4Header::new(header.source, header.target, header.protocol, len)
                };
                let packet = self.reassembly.packet(place, len);
                whole.write(packet);
                // No MAC verifies what came in parts.
                core.transport(&whole, packet, false);
                // A large segment at once is acknowledged at once, before a second one could outgrow the window.
                core.egress();
            }
        }
    }

    /// Does what is not urgent.
    fn sweep(&mut self, now: Instant) {
        self.next_sweep = now + SWEEP;
        self.reassembly.tick(now);
        let core = &mut self.core;
        core.unreachable_left = UNREACHABLE;
        core.link.tick();
        core.tcp.sweep(now);
        core.poll_dhcp();
        core.send_pending_udp();
        if !core.link.driver_alive {
            // It may have been restarted meanwhile.
            core.link.exchange();
        }
    }

    /// The link went down or came up, as the driver says.
    #[cold]
    fn link_changed(&mut self) {
        let link = &mut self.core.link;
        self.link_was_up = link.link_up;
        if link.link_up {
            link.announce();
            if let Some(dhcp) = &mut self.core.dhcp {
                dhcp.restart(link.now);
                self.next_sweep = link.now;
            }
        }
    }

    /// Unfinished datagrams that were dropped.
    #[must_use]
    pub const fn given_up(&self) -> u64 {
        self.reassembly.given_up()
    }
}

impl<'f, M: Mac> Core<'f, M> {
    /// True for a packet that we should look at: to our address, to everyone, or an offer of an address.
    #[inline]
    fn is_for_us(&self, header: &Ipv4Header, packet: &[u8]) -> bool {
        if header.source.is_multicast() || header.source.is_broadcast() {
            return false;
        }
        self.link.is_ours(header.target)
            || self.link.is_broadcast(header.target)
            || self.dhcp.is_some()
                && header.protocol == UDP
                && !header.is_fragment()
                && word(&packet[header.header_len..], 2) == dhcp::CLIENT_PORT
    }

    /// Takes a whole packet up to its transport protocol.
    fn transport(&mut self, header: &Ipv4Header, packet: &[u8], verified: bool) {
        let payload = &packet[header.header_len..];
        if verified {
            self.link.statistics.verified_by_mac += 1;
        } else {
            if !header.verify(payload) {
                self.link.statistics.drop_l4_checksum += 1;
                return;
            }
            self.link.statistics.verified_in_software += 1;
        }
        match header.protocol {
            TCP => self.receive_tcp(header, packet),
            UDP => self.receive_udp(header, packet),
            ICMP => {
                if let Some(client) = icmp::receive(&mut self.link, &mut self.clients, header, payload) {
                    self.clients.post_to(client);
                }
            }
            _ => self.link.statistics.drop_protocol += 1,
        }
    }

    #[inline]
    fn receive_tcp(&mut self, header: &Ipv4Header, packet: &[u8]) {
        if !self.link.is_ours(header.target) {
            self.link.statistics.drop_not_ours += 1;
            return;
        }
        let data_offset = usize::from(*packet.get(header.header_len + 12).unwrap_or(&0) >> 4) * 4;
        let data = packet.len().saturating_sub(header.header_len + data_offset);
        self.link.statistics.tcp_segments += 1;
        self.link.statistics.rx_copied += data as u64;
        let (clients, now) = (&mut self.clients, self.link.now);
        let listen = |tcp: &mut Tcp<'f>, port| match clients.listener(port) {
            None => Listen::Nobody,
            Some(found) => match clients.get(found.1) {
                Some(client) => tcp.request(found, &mut client.window, now),
                None => Listen::Nobody,
            },
        };
        match self.tcp.input(&mut self.iface.0, &mut self.link, header, packet, listen) {
            Input::Taken => {}
            Input::Malformed => self.link.statistics.drop_malformed += 1,
            Input::NoRoom => self.link.statistics.drop_syn += 1,
        }
    }

    #[inline]
    fn receive_udp(&mut self, header: &Ipv4Header, packet: &[u8]) {
        let datagram = &packet[header.header_len..];
        let len = usize::from(word(datagram, 4));
        let (from_port, port) = (word(datagram, 0), word(datagram, 2));
        if datagram.len() < UDP_HEADER || len < UDP_HEADER || len > datagram.len() {
            self.link.statistics.drop_malformed += 1;
            return;
        }
        let payload = &datagram[UDP_HEADER..len];
        if port == dhcp::CLIENT_PORT && from_port == dhcp::SERVER_PORT && self.dhcp.is_some() {
            let now = self.link.now;
            let change = self.dhcp.as_mut().and_then(|dhcp| dhcp.receive(now, payload));
            self.take_change(change);
            self.poll_dhcp();
            return;
        }
        match self.udp.deliver(header.source, from_port, port, payload) {
            Delivery::Taken(at, place) => {
                self.link.statistics.udp_delivered += 1;
                self.link.statistics.rx_copied += payload.len() as u64;
                if let Some(socket) = self.udp.get(at) {
                    self.clients.offer(place, &socket.step());
                }
            }
            Delivery::Full => self.link.statistics.drop_udp_full += 1,
            Delivery::NoPort => {
                self.link.statistics.drop_no_port += 1;
                if self.link.is_ours(header.target) && self.unreachable_left > 0 {
                    self.unreachable_left -= 1;
                    icmp::port_unreachable(&mut self.link, header, packet);
                }
            }
        }
    }

    /// Lets each connection that something happened to send, and tells its client.
    pub(crate) fn egress(&mut self) {
        let mut dirty = self.tcp.take_dirty();
        // Twice is enough: an abort found while settling sends one reset.
        for _ in 0..2 {
            while dirty != 0 {
                let at = dirty.trailing_zeros() as usize;
                dirty &= dirty - 1;
                self.tcp.egress(at, &mut self.iface.0, &mut self.link);
                self.settle(at);
            }
            dirty = self.tcp.take_dirty();
            if dirty == 0 {
                break;
            }
        }
        const { assert!(SLOTS <= 32) };
    }

    fn settle(&mut self, at: usize) {
        match self.tcp.settle(at, self.link.now) {
            Settled::Nothing => {}
            Settled::Again => self.tcp.touch(at),
            Settled::Arrived(place) => self.clients.wake(place),
            Settled::Changed(place) => {
                if self.clients.is_armed(place) {
                    let client = self.tcp.slot(at).client;
                    if let Some(client) = self.clients.get(client) {
                        let step = self.tcp.step(at, &client.window);
                        self.clients.offer(place, &step);
                    }
                }
            }
        }
    }

    /// Sends the datagrams that a socket's client has committed, as far as there are frames. Returns false if one was no datagram.
    pub(crate) fn send_udp(&mut self, at: usize) -> bool {
        let Some(socket) = self.udp.get(at) else {
            return false;
        };
        let port = socket.port();
        loop {
            match socket.record() {
                Record::None => return true,
                Record::Bad => return false,
                Record::Send(target, target_port, payload) => {
                    let len = payload.len();
                    let sent = match self.link.source_for(target) {
                        Some(source) => self.link.send_udp(source, port, target, target_port, payload),
                        // Nobody can be told of it any more: it is lost, as on a real wire.
                        None => Ok(()),
                    };
                    if sent == Err(crate::link::SendError::NoFrame) {
                        return true;
                    }
                    socket.sent(len);
                }
            }
        }
    }

    /// Sends what found no frame before.
    pub(crate) fn send_pending_udp(&mut self) {
        for at in 0..crate::udp::SOCKETS {
            let pending = self.udp.get(at).is_some_and(|socket| socket.step().unsent > 0);
            if pending {
                self.send_udp(at);
            }
        }
    }

    fn poll_dhcp(&mut self) {
        let Some(dhcp) = &mut self.dhcp else {
            return;
        };
        let mut buffer = [0; dhcp::MESSAGE_SIZE];
        let (change, outgoing) = dhcp.poll(self.link.now, &mut buffer);
        if let Some(out) = outgoing {
            // Without a frame it is repeated, as when it is lost.
            let _ =
                self.link.send_udp(out.source, dhcp::CLIENT_PORT, out.target, dhcp::SERVER_PORT, &buffer[..out.len]);
        }
        self.take_change(change);
    }

    fn take_change(&mut self, change: Option<Change>) {
        match change {
            Some(Change::Bound(lease)) => self.set_address(Some(lease.address), lease.gateway),
            Some(Change::Lost) => self.set_address(None, None),
            None => {}
        }
    }

    /// Takes on an address. Connections that used another one are closed.
    fn set_address(&mut self, address: Option<Ipv4Cidr>, gateway: Option<Ipv4Address>) {
        let changed = self.link.address != address;
        self.link.set_address(address, gateway);
        if changed {
            self.iface.0.update_ip_addrs(|list| {
                list.clear();
                if let Some(address) = address {
                    // As a host of its own: network and broadcast are looked after here. The list has room for two.
                    let _ = list.push(IpCidr::Ipv4(Ipv4Cidr::new(address.address(), 32)));
                }
            });
            self.tcp.address_lost();
        }
    }

    /// Sockets of kinds that a client may have.
    pub(crate) fn release(&mut self, place: usize, kind: Kind, cut: bool) {
        match kind {
            Kind::Free => {}
            Kind::Listener(_) => self.tcp.close_listener(place),
            Kind::Tcp(at) => self.tcp.release(at, cut, self.link.now),
            Kind::Udp(at) => self.udp.close(at),
        }
        self.clients.close(place);
    }

    /// Own hardware address.
    #[must_use]
    pub const fn hardware(&self) -> EthernetAddress {
        self.link.hardware
    }
}
