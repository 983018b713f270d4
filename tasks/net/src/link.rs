//! The lower edge: frames, the MAC driver, neighbours, and what goes out.
//!
//! Everything that is sent passes [`Link::send`]: it finds the neighbour, writes the Ethernet header in front of the packet,
//! pads the frame, and leaves it in the books for the next exchange with the driver.

use smoltcp::time::Instant;
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, Ipv4Address, Ipv4Cidr};

use abi::MAX_FRAME_LIST;
use net_api::Statistics;

use crate::arp::{Ask, Neighbours, Resolution};
use crate::checksum::Sum;
use crate::packet::{
    self, ETHERNET_HEADER, ETHERTYPE_ARP, ETHERTYPE_IPV4, IPV4_HEADER, Ipv4Header, MIN_FRAME, MTU, UDP, UDP_HEADER,
};

/// Most frames of the pool.
pub const FRAMES: usize = abi::image::MAX_FRAMES;
/// The books of our frames.
pub type Books = frame::Frames<FRAMES>;
/// A received frame.
pub type Rx<'f> = frame::RxFrame<'f, FRAMES>;
/// A frame to build a packet in.
pub type Tx<'f> = frame::TxFrame<'f, FRAMES>;

/// Payload of a fragment: what fits, in whole units of eight bytes.
const FRAGMENT: usize = (MTU - IPV4_HEADER) & !7;
/// Bytes of an ARP packet for Ethernet and IPv4.
const ARP_LEN: usize = 28;

/// What an exchange with the driver brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exchanged {
    /// False if the driver is dead or refused.
    pub alive: bool,
    /// Frames received.
    pub received: usize,
    /// More wait at the driver.
    pub more: bool,
    /// Frames for sending that the driver took.
    pub sent: usize,
    /// Frames for sending that it will take next time.
    pub room: usize,
    /// The link is up.
    pub link_up: bool,
}

/// The MAC driver, as the stack sees it.
pub trait Mac {
    /// Gives the driver the first outgoing frames of the books, as many as one list takes and not more than `room` to send, and
    /// enters what it answers.
    fn exchange(&mut self, books: &Books, room: usize) -> Exchanged;
}

/// No free frame, or no way there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// Try again when frames have come back.
    NoFrame,
    /// The interface has no address, or no route leads there.
    Unreachable,
}

/// A packet that waits for its neighbour's address.
#[derive(Debug)]
pub struct Waiting<'f> {
    frame: Tx<'f>,
    ip_len: usize,
}

/// The lower edge of the stack.
#[derive(Debug)]
pub struct Link<'f, M> {
    /// Frames that we hold.
    pub books: &'f Books,
    /// The driver.
    pub mac: M,
    /// Who has which address.
    pub neighbours: Neighbours<Waiting<'f>>,
    /// Own hardware address.
    pub hardware: EthernetAddress,
    /// Own address and network.
    pub address: Option<Ipv4Cidr>,
    /// Router.
    pub gateway: Option<Ipv4Address>,
    /// Counters.
    pub statistics: Statistics,
    /// The time of this round.
    pub now: Instant,
    /// True if the MAC inserts checksums into IPv4, TCP and UDP headers.
    pub inserts_checksums: bool,
    /// False once the driver was found dead, until it answers again.
    pub driver_alive: bool,
    /// More frames wait at the driver.
    pub more: bool,
    /// The link is up, as far as the driver has said.
    pub link_up: bool,
    /// Frames to send in the books.
    queued: usize,
    /// Frames to send that the driver takes.
    room: usize,
    next_id: u16,
}

impl<'f, M: Mac> Link<'f, M> {
    /// A link without an address.
    #[must_use]
    pub fn new(books: &'f Books, mac: M, hardware: EthernetAddress, inserts_checksums: bool) -> Self {
        Self {
            books,
            mac,
            neighbours: Neighbours::new(),
            hardware,
            address: None,
            gateway: None,
            statistics: Statistics::default(),
            now: Instant::ZERO,
            inserts_checksums,
            driver_alive: true,
            more: false,
            link_up: false,
            queued: 0,
            room: MAX_FRAME_LIST,
            next_id: 1,
        }
    }

    /// Exchanges frames with the driver. Returns how many were received.
    pub fn exchange(&mut self) -> usize {
        self.statistics.exchanges += 1;
        let result = self.mac.exchange(self.books, self.room);
        self.statistics.driver_restarts += u64::from(self.driver_alive && !result.alive);
        self.driver_alive = result.alive;
        self.more = result.more;
        self.link_up = result.link_up;
        self.queued = self.queued.saturating_sub(result.sent);
        self.room = result.room;
        result.received
    }

    /// True if frames wait to be sent, and the driver takes some.
    #[must_use]
    pub const fn has_queued(&self) -> bool {
        self.queued > 0 && self.room > 0
    }

    /// A frame to build a packet in. When a whole list of frames waits, or the driver's ring is full, or no frame is free, the
    /// driver is asked first.
    #[inline]
    pub fn frame(&mut self) -> Option<Tx<'f>> {
        if self.books.outgoing_len() >= MAX_FRAME_LIST || self.queued >= self.room || self.books.stock_len() == 0 {
            self.make_room();
            if self.queued >= self.room.max(1) {
                return None;
            }
        }
        self.books.transmit()
    }

    #[cold]
    fn make_room(&mut self) {
        if self.driver_alive {
            self.exchange();
        }
    }

    /// Our address for packets to `target`, if there is a way.
    #[must_use]
    pub fn source_for(&self, target: Ipv4Address) -> Option<Ipv4Address> {
        self.next_hop(target)?;
        self.address.map(|own| own.address())
    }

    /// True if `address` is our unicast address.
    #[inline]
    #[must_use]
    pub fn is_ours(&self, address: Ipv4Address) -> bool {
        self.address.is_some_and(|own| own.address().to_bits() == address.to_bits())
    }

    /// True if `address` means every host of our network.
    #[must_use]
    pub fn is_broadcast(&self, address: Ipv4Address) -> bool {
        address.is_broadcast() || self.address.is_some_and(|own| own.broadcast() == Some(address))
    }

    fn next_hop(&self, target: Ipv4Address) -> Option<Ipv4Address> {
        match self.address {
            _ if target.is_broadcast() => Some(target),
            // There is no loopback.
            Some(own) if own.address() == target => None,
            Some(own) if own.contains_addr(&target) => Some(target),
            Some(_) if target.is_multicast() => Some(target),
            Some(_) if target.is_unspecified() => None,
            Some(_) => self.gateway,
            None => None,
        }
    }

    /// Sends the IPv4 packet of `ip_len` bytes that stands behind the place for the Ethernet header.
    #[inline]
    pub fn send(&mut self, mut frame: Tx<'f>, ip_len: usize) {
        let packet = &mut frame[ETHERNET_HEADER..ETHERNET_HEADER + ip_len];
        if !self.inserts_checksums {
            packet::fill_checksums(packet);
        }
        let target = Ipv4Address::new(packet[16], packet[17], packet[18], packet[19]);
        let Some(hop) = self.next_hop(target) else {
            self.statistics.drop_neighbour += 1;
            return;
        };
        if let Some(to) = self.group_address(hop) {
            self.emit(frame, to, ETHERTYPE_IPV4, ip_len);
            return;
        }
        match self.neighbours.resolve(hop, Waiting { frame, ip_len }, self.now) {
            Resolution::Send(packet, to) => {
                self.emit(packet.frame, to, ETHERTYPE_IPV4, packet.ip_len);
            }
            Resolution::Wait { ask, dropped } => {
                self.statistics.drop_neighbour += u64::from(dropped.is_some());
                if ask {
                    self.ask(Ask { ip: hop, to: EthernetAddress::BROADCAST });
                }
            }
        }
    }

    /// The hardware address for broadcast and multicast (RFC 1112, section 6.4).
    fn group_address(&self, hop: Ipv4Address) -> Option<EthernetAddress> {
        if hop.is_multicast() {
            let [_, b, c, d] = hop.octets();
            Some(EthernetAddress([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
        } else if self.is_broadcast(hop) {
            Some(EthernetAddress::BROADCAST)
        } else {
            None
        }
    }

    /// Completes a frame and leaves it for the next exchange. Padding is zero: no old bytes get out.
    #[inline]
    fn emit(&mut self, mut frame: Tx<'f>, to: EthernetAddress, ethertype: [u8; 2], len: usize) {
        packet::write_ethernet(&mut frame, to, self.hardware, ethertype);
        let mut len = ETHERNET_HEADER + len;
        if len < MIN_FRAME {
            frame[len..MIN_FRAME].fill(0);
            len = MIN_FRAME;
        }
        self.statistics.tx_frames += 1;
        self.statistics.tx_bytes += len as u64;
        self.queued += 1;
        // Cannot fail: the longest packet is shorter than a frame. If it did, the frame would go back to stock.
        let _ = frame.send(len);
    }

    /// Sends `payload_len` bytes, fragmented if they do not fit a frame. `fill` writes the payload: it gets an offset and room.
    ///
    /// # Errors
    /// [`SendError`]; then nothing was sent.
    pub fn send_with(
        &mut self,
        mut header: Ipv4Header,
        payload_len: usize,
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), SendError> {
        if self.next_hop(header.target).is_none() {
            return Err(SendError::Unreachable);
        }
        let whole = IPV4_HEADER + payload_len <= MTU;
        let pieces = if whole { 1 } else { payload_len.div_ceil(FRAGMENT) };
        if pieces > 1 {
            self.gather(pieces)?;
        }
        header.id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        for piece in 0..pieces {
            let offset = piece * FRAGMENT;
            let len = (payload_len - offset).min(if whole { MTU } else { FRAGMENT });
            header.fragment_offset = offset;
            header.more_fragments = offset + len < payload_len;
            header.total_len = IPV4_HEADER + len;
            let mut frame = self.frame().ok_or(SendError::NoFrame)?;
            header.write(&mut frame[ETHERNET_HEADER..]);
            let start = ETHERNET_HEADER + IPV4_HEADER;
            fill(offset, &mut frame[start..start + len]);
            self.send(frame, header.total_len);
        }
        self.statistics.fragments_sent += if whole { 0 } else { pieces as u64 };
        self.statistics.tx_copied += payload_len as u64;
        Ok(())
    }

    /// Sees to it that `count` frames are free, so that a datagram goes out whole or not at all.
    fn gather(&mut self, count: usize) -> Result<(), SendError> {
        if self.books.stock_len() < count && self.driver_alive {
            self.exchange();
        }
        if self.books.stock_len() < count {
            self.statistics.drop_no_frame += 1;
            return Err(SendError::NoFrame);
        }
        Ok(())
    }

    /// Sends a UDP datagram.
    ///
    /// # Errors
    /// As [`Link::send_with`].
    pub fn send_udp(
        &mut self,
        source: Ipv4Address,
        source_port: u16,
        target: Ipv4Address,
        target_port: u16,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let len = UDP_HEADER + payload.len();
        let header = Ipv4Header::new(source, target, UDP, len);
        let mut udp = [0; UDP_HEADER];
        udp[..2].copy_from_slice(&source_port.to_be_bytes());
        udp[2..4].copy_from_slice(&target_port.to_be_bytes());
        udp[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        if IPV4_HEADER + len > MTU {
            // No MAC sees the whole of a fragmented datagram.
            let sum = header.with_pseudo_header(Sum::new().bytes(&udp).bytes(payload), len);
            udp[6..8].copy_from_slice(&packet::udp_checksum(sum).to_be_bytes());
        }
        self.send_with(header, len, |offset, room| {
            if offset == 0 {
                let (head, body) = room.split_at_mut(UDP_HEADER);
                head.copy_from_slice(&udp);
                body.copy_from_slice(&payload[..body.len()]);
            } else {
                let offset = offset - UDP_HEADER;
                room.copy_from_slice(&payload[offset..offset + room.len()]);
            }
        })?;
        self.statistics.udp_sent += 1;
        Ok(())
    }

    /// Takes an ARP packet.
    pub fn receive_arp(&mut self, payload: &[u8]) {
        let Some(ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: from,
            source_protocol_addr: sender,
            target_protocol_addr: wanted,
            ..
        }) = ArpPacket::new_checked(payload).ok().and_then(|packet| ArpRepr::parse(&packet).ok())
        else {
            self.statistics.drop_malformed += 1;
            return;
        };
        let Some(own) = self.address else {
            return;
        };
        let for_us = wanted == own.address();
        let believable = from.is_unicast()
            && sender != own.address()
            && own.contains_addr(&sender)
            && own.broadcast() != Some(sender)
            && matches!(operation, ArpOperation::Request | ArpOperation::Reply);
        if !believable {
            return;
        }
        self.neighbours.learn(sender, from, for_us, self.now);
        while let Some((packet, to)) = self.neighbours.take_waiting(sender) {
            self.emit(packet.frame, to, ETHERTYPE_IPV4, packet.ip_len);
        }
        if for_us && operation == ArpOperation::Request {
            self.send_arp(ArpOperation::Reply, from, from, sender);
        }
    }

    /// Tells the network our address, so that others forget who had it before.
    pub fn announce(&mut self) {
        if let Some(own) = self.address {
            let everyone = EthernetAddress::BROADCAST;
            self.send_arp(ArpOperation::Request, everyone, everyone, own.address());
        }
    }

    fn ask(&mut self, ask: Ask) {
        self.send_arp(ArpOperation::Request, ask.to, EthernetAddress([0; 6]), ask.ip);
    }

    fn send_arp(
        &mut self,
        operation: ArpOperation,
        to: EthernetAddress,
        target_hardware_addr: EthernetAddress,
        target_protocol_addr: Ipv4Address,
    ) {
        let Some(own) = self.address else {
            return;
        };
        let Some(mut frame) = self.frame() else {
            return;
        };
        let repr = ArpRepr::EthernetIpv4 {
            operation,
            source_hardware_addr: self.hardware,
            source_protocol_addr: own.address(),
            target_hardware_addr,
            target_protocol_addr,
        };
        let room = &mut frame[ETHERNET_HEADER..ETHERNET_HEADER + ARP_LEN];
        repr.emit(&mut ArpPacket::new_unchecked(room));
        self.emit(frame, to, ETHERTYPE_ARP, ARP_LEN);
    }

    /// Does what time asks of the neighbour table.
    pub fn tick(&mut self) {
        let mut asks = [None; crate::arp::ENTRIES];
        let mut count = 0;
        let mut dropped = 0;
        self.neighbours.tick(
            self.now,
            |ask| {
                asks[count] = Some(ask);
                count += 1;
            },
            |packet| {
                dropped += 1;
                drop(packet);
            },
        );
        self.statistics.drop_neighbour += dropped;
        for ask in asks.into_iter().flatten() {
            self.ask(ask);
        }
    }

    /// Takes on a new address, or none.
    pub fn set_address(&mut self, address: Option<Ipv4Cidr>, gateway: Option<Ipv4Address>) {
        if (self.address, self.gateway) == (address, gateway) {
            return;
        }
        self.neighbours.clear(drop);
        self.address = address;
        self.gateway = gateway;
        self.announce();
    }
}
