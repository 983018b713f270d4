//! Two hosts on a wire: the whole stack over frames that no kernel moves.
//!
//! The driver is imitated down to who holds which frame: the books of a host panic when a frame is touched that it has given away.

#![allow(dead_code, reason = "each test uses a part")]

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use abi::frame::FrameMeta;
use abi::{FrameDesc, FrameHandle, MAX_FRAME_LIST, TaskId};
use frame::FrameMemory;
use idol_runtime::System;
use net::link::{Books, Exchanged, Link, Mac};
use net::reassembly::{PLACE_SIZE, PLACES};
use net::server::{Host, Notifications, Server};
use net::stack::{Addressing, Stack};
use net::tcp::{SLOTS, Storage};
use net_api::{Address, NetServer, Step};
use smoltcp::iface::SocketStorage;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{EthernetAddress, Ipv4Address, Ipv4Cidr};

/// Frames of a host's pool.
const POOL: u16 = 256;
/// The client of each host.
pub const CLIENT: TaskId = TaskId::new(5, 0);
/// Bytes of its window.
pub const WINDOW: usize = 4 << 20;
pub const FRAMES_BIT: u32 = 1;
pub const TIMER_BIT: u32 = 2;

pub fn address(host: u8) -> Address {
    Address([10, 0, 0, host])
}

pub fn ip(host: u8) -> Ipv4Address {
    Ipv4Address::new(10, 0, 0, host)
}

pub fn mac(host: u8) -> EthernetAddress {
    EthernetAddress([2, 0, 0, 0, 0, host])
}

/// What is on its way to a host.
pub type Inbox = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// What may happen to a frame on the wire. Returns the frames that arrive instead.
pub type Fault = Rc<RefCell<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>>>>;

/// The driver and the wire behind it.
pub struct FakeMac {
    free: Vec<FrameHandle>,
    pub inbox: Inbox,
    pub outbox: Inbox,
    pub fault: Option<Fault>,
    /// What the MAC says of received frames.
    pub verifies: bool,
    pub inserts: bool,
    /// False: the driver is dead.
    pub alive: Rc<Cell<bool>>,
    pub room: usize,
    /// What was received into which frame.
    written: HashMap<usize, Vec<u8>>,
    /// Received frames that came back with what they held.
    pub intact: Rc<Cell<usize>>,
}

impl Mac for FakeMac {
    fn exchange(&mut self, books: &Books, room: usize) -> Exchanged {
        if !self.alive.get() {
            return Exchanged { room, ..Exchanged::default() };
        }
        let mut out: Vec<FrameDesc> = Vec::new();
        let mut sent = 0;
        for desc in books.outgoing() {
            let tx = desc.meta & FrameMeta::TX.bits() != 0;
            if tx && sent == room || out.len() == MAX_FRAME_LIST {
                break;
            }
            sent += usize::from(tx);
            out.push(desc);
        }
        books.sent(out.len());
        for desc in out {
            if desc.meta & FrameMeta::TX.bits() != 0 {
                let mut bytes = books.device_read(desc);
                assert!((60..=1514).contains(&bytes.len()), "frame of {} bytes", bytes.len());
                if self.inserts {
                    insert_checksums(&mut bytes);
                }
                let arriving = match &self.fault {
                    Some(fault) => (fault.borrow_mut())(bytes),
                    None => vec![bytes],
                };
                self.outbox.borrow_mut().extend(arriving);
            }
            if let Some(bytes) = self.written.remove(&desc.handle.index())
                && desc.meta & FrameMeta::TX.bits() == 0
            {
                let whole = FrameDesc { len: bytes.len() as u16 + 2, offset: 2, ..desc };
                assert!(books.device_read(whole) == bytes, "a received frame was written to");
                self.intact.set(self.intact.get() + 1);
            }
            // A new generation, as after each hand-over.
            self.free.push(FrameHandle::new(desc.handle.index(), desc.handle.generation() + 1));
        }
        let want = books.wanted().min(MAX_FRAME_LIST / 2);
        for _ in 0..want {
            let Some(handle) = self.free.pop() else { break };
            let desc = FrameDesc { handle, len: 0, offset: 0, meta: FrameMeta::TX.bits() };
            books.accept(desc).expect("a free frame of the pool");
        }
        let mut received = 0;
        while received < MAX_FRAME_LIST - want && !self.free.is_empty() {
            let Some(bytes) = self.inbox.borrow_mut().pop_front() else { break };
            let handle = self.free.pop().expect("not empty");
            books.device_write(handle.index(), 2, &bytes);
            self.written.insert(handle.index(), bytes.clone());
            let meta = if self.verifies { FrameMeta::IP_VERIFIED | FrameMeta::L4_VERIFIED } else { FrameMeta::empty() };
            let desc = FrameDesc { handle, len: bytes.len() as u16 + 2, offset: 2, meta: meta.bits() };
            books.accept(desc).expect("a frame of the pool");
            received += 1;
        }
        Exchanged { alive: true, received, more: !self.inbox.borrow().is_empty(), sent, room: self.room, link_up: true }
    }
}

/// What a MAC with checksum insertion does.
pub fn insert_checksums(frame: &mut [u8]) {
    if frame[12..14] == [8, 0] {
        net::packet::fill_checksums(&mut frame[14..]);
    }
}

/// The system of a host.
pub struct FakeHost {
    pub clock: Rc<Cell<i64>>,
    pub timer: Rc<Cell<Option<i64>>>,
    pub posts: Rc<Cell<u32>>,
    pub client: Rc<Cell<TaskId>>,
}

impl Host for FakeHost {
    fn now(&self) -> Instant {
        Instant::from_micros(self.clock.get())
    }

    fn wake_at(&mut self, at: Instant) {
        self.timer.set(Some(at.total_micros()));
    }

    fn post(&mut self, task: u8, mask: u32) {
        assert_eq!((usize::from(task), mask), (CLIENT.index(), 1));
        self.posts.set(self.posts.get() + 1);
    }

    fn current(&self, _task: u8) -> TaskId {
        self.client.get()
    }
}

/// One host: a stack and a client task.
pub struct Node {
    pub server: Server<'static, FakeMac, FakeHost>,
    pub books: &'static Books,
    window: *mut u8,
    pub inbox: Inbox,
    pub outbox: Inbox,
    pub timer: Rc<Cell<Option<i64>>>,
    pub posts: Rc<Cell<u32>>,
    pub client: Rc<Cell<TaskId>>,
    pub alive: Rc<Cell<bool>>,
    pub clock: Rc<Cell<i64>>,
    /// Received frames that came back to the driver with what they held.
    pub intact: Rc<Cell<usize>>,
}

pub struct Settings {
    pub verifies: bool,
    pub inserts: bool,
    pub addressing: Option<Addressing>,
    pub fault: Option<Fault>,
    pub room: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { verifies: false, inserts: true, addressing: None, fault: None, room: 64 }
    }
}

impl Node {
    pub fn new(host: u8, clock: &Rc<Cell<i64>>, inbox: &Inbox, outbox: &Inbox, settings: Settings) -> Self {
        let memory = FrameMemory::fake(10, POOL);
        let books: &'static Books = Box::leak(Box::new(Books::new(memory, 80).expect("room")));
        let alive = Rc::new(Cell::new(true));
        let intact = Rc::new(Cell::new(0));
        let fake = FakeMac {
            free: (0..POOL).map(|at| FrameHandle::new(usize::from(at) + 10, 1)).collect(),
            inbox: inbox.clone(),
            outbox: outbox.clone(),
            fault: settings.fault,
            verifies: settings.verifies,
            inserts: settings.inserts,
            alive: alive.clone(),
            room: settings.room,
            written: HashMap::new(),
            intact: intact.clone(),
        };
        let link = Link::new(books, fake, mac(host), settings.inserts);
        let storage: &'static mut Storage<'static> = Box::leak(Box::new([SocketStorage::EMPTY; SLOTS]));
        let reassembly = vec![0; PLACES * PLACE_SIZE].leak();
        let addressing = settings.addressing.unwrap_or(Addressing::Static(Ipv4Cidr::new(ip(host), 24), Some(ip(254))));
        let now = Instant::from_micros(clock.get());
        let mut stack = Stack::new(link, storage, reassembly, addressing, u64::from(host), now);
        let window = vec![0u8; WINDOW].leak();
        let pointer = window.as_mut_ptr();
        assert!(stack.core.clients.add(CLIENT, 1, window));
        let timer = Rc::new(Cell::new(None));
        let posts = Rc::new(Cell::new(0));
        let client = Rc::new(Cell::new(CLIENT));
        let system =
            FakeHost { clock: clock.clone(), timer: timer.clone(), posts: posts.clone(), client: client.clone() };
        let notifications = Notifications { frames: FRAMES_BIT, timer: TIMER_BIT };
        Self {
            server: Server::new(stack, system, notifications),
            books,
            window: pointer,
            inbox: inbox.clone(),
            outbox: outbox.clone(),
            timer,
            posts,
            client,
            alive,
            clock: clock.clone(),
            intact,
        }
    }

    /// A host alone, with both ends of its wire in the test's hands.
    pub fn alone(settings: Settings) -> Self {
        let clock = Rc::new(Cell::new(1_000_000));
        let (inbox, outbox) = (Inbox::default(), Inbox::default());
        Self::new(1, &clock, &inbox, &outbox, settings)
    }

    pub fn notify(&mut self, bits: u32) {
        let server: &mut dyn NetServer<System> = &mut self.server;
        server.handle_notification(&System, bits);
    }

    /// Delivers what is in the inbox and what time has brought; true if there was something.
    pub fn wake(&mut self) -> bool {
        let mut bits = 0;
        let mask = {
            let server: &dyn NetServer<System> = &self.server;
            server.notification_mask()
        };
        if !self.inbox.borrow().is_empty() && self.alive.get() {
            bits |= FRAMES_BIT & mask;
        }
        if self.timer.get().is_some_and(|at| at <= self.clock.get()) {
            self.timer.set(None);
            bits |= TIMER_BIT;
        }
        if bits != 0 {
            self.notify(bits);
        }
        bits != 0
    }

    /// Lets time pass in steps, and does what it brings.
    pub fn pass(&mut self, time: Duration) {
        let end = self.clock.get() + time.total_micros() as i64;
        while self.clock.get() < end {
            self.clock.set((self.clock.get() + 1000).min(end));
            while self.wake() {}
        }
    }

    /// Puts a frame on the wire to this host and lets it work.
    pub fn receive(&mut self, frame: Vec<u8>) {
        self.inbox.borrow_mut().push_back(frame);
        while self.wake() {}
    }

    /// Takes what it has sent.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.outbox.borrow_mut().drain(..).collect()
    }

    /// The client's view of its window.
    pub fn window(&self, offset: u32, len: u32) -> &[u8] {
        assert!(offset as usize + len as usize <= WINDOW);
        // SAFETY: inside the window, which is never freed. The stack does not run while the test looks.
        unsafe { std::slice::from_raw_parts(self.window.add(offset as usize), len as usize) }
    }

    /// As above, to write.
    #[allow(clippy::mut_from_ref, reason = "the memory is another's")]
    pub fn window_mut(&self, offset: u32, len: u32) -> &mut [u8] {
        assert!(offset as usize + len as usize <= WINDOW);
        // SAFETY: as in `window`.
        unsafe { std::slice::from_raw_parts_mut(self.window.add(offset as usize), len as usize) }
    }

    pub fn readable(&self, step: &Step) -> &[u8] {
        self.window(step.readable_offset, step.readable_len)
    }

    pub fn writable(&self, step: &Step) -> &mut [u8] {
        self.window_mut(step.writable_offset, step.writable_len)
    }
}

/// Two hosts.
pub struct Pair {
    pub a: Node,
    pub b: Node,
    pub clock: Rc<Cell<i64>>,
}

impl Pair {
    pub fn new() -> Self {
        Self::with(Settings::default(), Settings::default())
    }

    pub fn with(a: Settings, b: Settings) -> Self {
        let clock = Rc::new(Cell::new(1_000_000));
        let (to_a, to_b) = (Inbox::default(), Inbox::default());
        Self { a: Node::new(1, &clock, &to_a, &to_b, a), b: Node::new(2, &clock, &to_b, &to_a, b), clock }
    }

    /// Lets both work until nothing moves. Time stands still.
    pub fn settle(&mut self) {
        while self.a.wake() | self.b.wake() {}
    }

    /// Lets time pass to the next timer.
    pub fn tick(&mut self) {
        let next = [&self.a, &self.b].into_iter().filter_map(|node| node.timer.get()).min();
        let now = self.clock.get();
        self.clock.set(next.unwrap_or(now + 1000).max(now + 1));
        self.settle();
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Duration) {
        self.settle();
        let end = self.clock.get() + time.total_micros() as i64;
        while self.clock.get() < end {
            self.tick();
        }
    }
}

/// An Ethernet frame with an IPv4 packet from host `from` to host `to`, checksums filled in.
pub fn ipv4(from: u8, to: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = net::packet::Ipv4Header::new(ip(from), ip(to), protocol, payload.len());
    frame_of(from, to, header, payload)
}

pub fn frame_of(from: u8, to: u8, header: net::packet::Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 34 + payload.len()];
    net::packet::write_ethernet(&mut frame, mac(to), mac(from), [8, 0]);
    frame[34..].copy_from_slice(payload);
    header.write(&mut frame[14..]);
    net::packet::fill_checksums(&mut frame[14..]);
    if frame.len() < 60 {
        frame.resize(60, 0);
    }
    frame
}

/// An ARP packet that tells host 1 who host `from` is.
pub fn arp_reply(from: u8) -> Vec<u8> {
    arp(from, 2)
}

/// An ARP packet from host `from` about host 1: 1 asks, 2 answers.
pub fn arp(from: u8, operation: u8) -> Vec<u8> {
    let mut frame = vec![0; 60];
    net::packet::write_ethernet(&mut frame, mac(1), mac(from), [8, 6]);
    frame[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, operation]);
    frame[22..28].copy_from_slice(&mac(from).0);
    frame[28..32].copy_from_slice(&ip(from).octets());
    frame[32..38].copy_from_slice(&mac(1).0);
    frame[38..42].copy_from_slice(&ip(1).octets());
    frame
}

/// UDP header and payload, without checksum.
pub fn udp(from_port: u16, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(from_port.to_be_bytes());
    datagram.extend(port.to_be_bytes());
    datagram.extend((payload.len() as u16 + 8).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}
