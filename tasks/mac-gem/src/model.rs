//! A GEM, a kernel and a stack for tests: the device side of the same descriptor words, the real ledger, random timing.
//!
//! The MAC may move at every access that the driver makes to ring, register or kernel, as real hardware does. It checks that it touches
//! only frames that the ledger says the device holds.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use abi::frame::Direction;
use abi::{FrameDesc, KernelError};
use ledger::{Holder, Ledger};
use userlib::FrameList;

use crate::desc::{rx_address, rx_status, tx_control};
use crate::driver::{Answer, Ask, Driver, Events, Kernel, MAX_RX, MAX_TX, Mac};
use crate::phy::{Link, Mdio, Phy};
use crate::ring::{Pool, RX_OFFSET, RxRing, TxRing, Words};
use crate::stats::MacCounts;

pub const DRIVER: u8 = 0;
pub const NET: u8 = 1;
const MEMORY: u32 = 0x1000_0000;
const POOL: u32 = 0x2000_0000;
/// The pool is not the first of the image.
const OTHERS: u16 = 5;

/// What arrives from the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// A good frame with a number for content.
    Good(u64),
    /// Its end never comes.
    NoEnd,
    /// Its start never came.
    NoStart,
    /// Nothing in it.
    Empty,
}

/// How the model behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Habits {
    /// As QEMU: sends within the doorbell, looks at a refilled ring at the doorbell only, sets no event that is masked.
    pub emulator: bool,
    /// One doorbell in so many is lost; 0 for none.
    pub lost_doorbells: u32,
    /// Descriptors of the rings.
    pub rx_len: usize,
    pub tx_len: usize,
    /// Frames in the pool.
    pub frames: u16,
    /// Frames that the stack may hold.
    pub quota: u16,
}

/// MAC, wire and memory.
pub struct World {
    pub habits: Habits,
    pub ledger: Ledger<64>,
    memory: Vec<u32>,
    /// What each frame holds.
    content: Vec<u64>,
    pub wire_in: VecDeque<Arrival>,
    pub wire_out: Vec<u64>,
    rx_on: bool,
    tx_on: bool,
    rx_base: u32,
    rx_at: u32,
    /// The emulator's notion of the current descriptor: no buffer there.
    rx_parked: bool,
    tx_base: u32,
    tx_at: u32,
    going: bool,
    events: Events,
    enabled: Events,
    pub irq_masked: bool,
    pub counts: MacCounts,
    /// Ignores all frames until it is switched off and on.
    pub hung: bool,
    pub receiver_starts: u32,
    pub transmitter_starts: u32,
    pub doorbells: u32,
    pub broken: u64,
    pub refuse_next: bool,
    pub partner_link: bool,
    pub speed: Option<Link>,
    seed: u64,
}

impl World {
    fn random(&mut self) -> u32 {
        // xorshift64
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 32) as u32
    }

    /// The MAC does something, or not.
    pub fn stir(&mut self) {
        match self.random() % 4 {
            0 => self.receive_one(),
            1 if !self.habits.emulator => self.send_one(),
            _ => (),
        }
    }

    fn raise(&mut self, events: Events) {
        if self.habits.emulator {
            self.events |= events & self.enabled;
        } else {
            self.events |= events;
        }
    }

    pub fn irq_line(&self) -> bool {
        self.events.intersects(self.enabled)
    }

    fn word(&mut self, address: u32) -> &mut u32 {
        &mut self.memory[(address - MEMORY) as usize / 4]
    }

    /// The frame at a buffer address; the device must hold it.
    fn frame_at(&self, address: u32) -> usize {
        let frame = (address - POOL) as usize / 4096;
        let index = frame + usize::from(OTHERS);
        assert_eq!(self.ledger.holder(index), Some(Holder::Device), "the MAC touches a frame that it does not hold");
        frame
    }

    pub fn receive_one(&mut self) {
        if !self.rx_on || self.wire_in.is_empty() {
            return;
        }
        let at = self.rx_at;
        let address = *self.word(at);
        if self.rx_parked && self.habits.emulator || address & rx_address::USED != 0 {
            self.rx_parked = true;
            return;
        }
        let Some(arrival) = self.wire_in.pop_front() else {
            return;
        };
        if self.hung {
            self.counts.no_buffer += 1;
            return;
        }
        let frame = self.frame_at(address & rx_address::ADDRESS);
        let whole = rx_status::START | rx_status::END;
        let status = match arrival {
            Arrival::Good(id) => {
                self.content[frame] = id;
                whole | (60 + id as u32 % 1400)
            }
            Arrival::NoEnd => rx_status::START | 60,
            Arrival::NoStart => rx_status::END | 60,
            Arrival::Empty => whole,
        };
        self.broken += u64::from(!matches!(arrival, Arrival::Good(_)));
        *self.word(at + 4) = status;
        *self.word(at) |= rx_address::USED;
        self.rx_at = if address & rx_address::WRAP != 0 { self.rx_base } else { at + 8 };
        self.counts.received += 1;
        self.look_at_rx();
        self.raise(Events::RECEIVED);
    }

    fn look_at_rx(&mut self) {
        let at = self.rx_at;
        self.rx_parked = *self.word(at) & rx_address::USED != 0;
    }

    pub fn send_one(&mut self) {
        if !self.tx_on || !self.going {
            return;
        }
        let at = self.tx_at;
        let address = *self.word(at);
        let control = *self.word(at + 4);
        if control & tx_control::USED != 0 {
            self.going = false;
            return;
        }
        assert_ne!(control & tx_control::LAST, 0);
        assert!(control & tx_control::LENGTH >= 60);
        let frame = self.frame_at(address);
        self.wire_out.push(self.content[frame]);
        *self.word(at + 4) |= tx_control::USED;
        self.tx_at = if control & tx_control::WRAP != 0 { self.tx_base } else { at + 8 };
        self.raise(Events::SENT);
    }

    /// An event that means nothing to anybody.
    pub fn babble(&mut self) {
        self.raise(Events::RX_OVERRUN);
    }

    /// The bus fails: both directions stand still.
    pub fn fail_bus(&mut self) {
        self.rx_on = false;
        self.tx_on = false;
        self.going = false;
        self.raise(Events::BUS_ERROR);
    }
}

/// What the driver is given: the world, shared.
#[derive(Clone)]
pub struct Shared(pub Rc<RefCell<World>>);

/// Part of the world's memory.
pub struct Memory {
    world: Shared,
    base: usize,
    count: usize,
}

impl Words for Memory {
    fn count(&self) -> usize {
        self.count
    }

    fn device_address(&self) -> u32 {
        MEMORY + self.base as u32 * 4
    }

    fn get(&self, index: usize) -> u32 {
        assert!(index < self.count);
        let mut world = self.world.0.borrow_mut();
        world.stir();
        world.memory[self.base + index]
    }

    fn set(&mut self, index: usize, value: u32) {
        assert!(index < self.count);
        let mut world = self.world.0.borrow_mut();
        world.memory[self.base + index] = value;
        world.stir();
    }

    fn release(&mut self) {}

    fn acquire(&self) {}
}

impl Mac for Shared {
    fn kick(&mut self, transmit: bool) {
        let mut world = self.0.borrow_mut();
        world.doorbells += 1;
        let lost = world.habits.lost_doorbells;
        if transmit && world.tx_on && (lost == 0 || !world.random().is_multiple_of(lost)) {
            world.going = true;
            while world.habits.emulator && world.going {
                world.send_one();
            }
        }
        if world.rx_on {
            world.look_at_rx();
        }
        world.stir();
    }

    fn take_events(&mut self) -> Events {
        let mut world = self.0.borrow_mut();
        world.stir();
        let events = world.events;
        world.events = Events::empty();
        world.stir();
        events
    }

    fn watch_sent(&mut self, on: bool) {
        self.0.borrow_mut().enabled.set(Events::SENT, on);
    }

    fn stop_receiver(&mut self) {
        self.0.borrow_mut().rx_on = false;
    }

    fn start_receiver(&mut self, ring: u32) {
        let mut world = self.0.borrow_mut();
        (world.rx_base, world.rx_at) = (ring, ring);
        world.rx_on = true;
        world.hung = false;
        world.receiver_starts += 1;
        world.look_at_rx();
    }

    fn stop_transmitter(&mut self) {
        let mut world = self.0.borrow_mut();
        world.tx_on = false;
        world.going = false;
    }

    fn start_transmitter(&mut self, ring: u32) {
        let mut world = self.0.borrow_mut();
        (world.tx_base, world.tx_at) = (ring, ring);
        world.tx_on = true;
        world.transmitter_starts += 1;
    }

    fn take_counts(&mut self) -> MacCounts {
        core::mem::take(&mut self.0.borrow_mut().counts)
    }

    fn set_link(&mut self, link: Link) {
        self.0.borrow_mut().speed = Some(link);
    }
}

impl Mdio for Shared {
    fn read(&mut self, _phy: u8, register: u8) -> Option<u16> {
        let up = self.0.borrow().partner_link;
        Some(match register {
            1 => 0x7949 | u16::from(up) << 2 | u16::from(up) << 5,
            2 => 0x0141,
            3 => 0x0cc2,
            5 => 0xcde1,
            10 => 0x7c00,
            _ => 0,
        })
    }

    fn write(&mut self, _phy: u8, _register: u8, _value: u16) {}
}

impl Kernel for Shared {
    fn arm(&mut self, list: &[FrameDesc], _direction: Direction) -> Result<(), KernelError> {
        let mut world = self.0.borrow_mut();
        world.stir();
        world.ledger.arm(DRIVER, list, |_| ())
    }

    fn complete(&mut self, list: &[FrameDesc]) -> Result<(), KernelError> {
        let mut world = self.0.borrow_mut();
        world.stir();
        if list.len() > 1 && core::mem::take(&mut world.refuse_next) {
            return Err(KernelError::FrameStale);
        }
        world.ledger.complete(DRIVER, list, |_| ())
    }

    fn list(&mut self, to: &mut [FrameDesc], from: usize) -> Result<(usize, Option<usize>), KernelError> {
        let world = self.0.borrow();
        let (count, next) = world.ledger.list(DRIVER, 1, from, to)?;
        Ok((count, (next != 0).then_some(next)))
    }

    fn enable_interrupt(&mut self) {
        let mut world = self.0.borrow_mut();
        world.irq_masked = false;
        world.stir();
    }
}

/// The stack, and the driver under test.
pub struct Bench {
    pub world: Shared,
    pub driver: Driver<Memory, Shared, Shared>,
    /// Free frames, held by the stack.
    pub stock: Vec<FrameDesc>,
    /// Received frames, held by the stack.
    pub used: Vec<FrameDesc>,
    /// Contents received, in order.
    pub received: Vec<u64>,
    /// Contents handed over for sending, in order.
    pub queued: Vec<u64>,
    pub notified: bool,
    pub more: bool,
    /// The stack asks for free frames up to this many.
    pub most_stock: usize,
    next_id: u64,
    next_arrival: u64,
}

fn start_driver(world: &Shared) -> Driver<Memory, Shared, Shared> {
    let habits = world.0.borrow().habits;
    let part = |base, count| Memory { world: world.clone(), base, count };
    let rx_words = habits.rx_len * 2;
    let rx: RxRing<_, MAX_RX> = RxRing::new(part(0, rx_words), 2, habits.rx_len);
    let tx: TxRing<_, MAX_TX> = TxRing::new(part(rx_words, habits.tx_len * 2), 2, habits.tx_len);
    let pool = Pool { base: POOL, first: OTHERS, count: habits.frames };
    let mut driver = Driver::new(rx, tx, world.clone(), world.clone(), Phy::new(23, true), pool);
    driver.start().expect("there is a pool");
    driver
}

impl Bench {
    pub fn new(habits: Habits, seed: u64) -> Self {
        let mut ledger = Ledger::new();
        ledger.add_pool(2, OTHERS, &[]).expect("fits");
        ledger.add_pool(DRIVER, habits.frames, &[(NET, habits.quota)]).expect("fits");
        let world = Shared(Rc::new(RefCell::new(World {
            habits,
            ledger,
            memory: vec![0; 2 * (habits.rx_len + habits.tx_len)],
            content: vec![0; usize::from(habits.frames)],
            wire_in: VecDeque::new(),
            wire_out: Vec::new(),
            rx_on: false,
            tx_on: false,
            rx_base: MEMORY,
            rx_at: MEMORY,
            rx_parked: false,
            tx_base: MEMORY,
            tx_at: MEMORY,
            going: false,
            events: Events::empty(),
            enabled: Events::ALWAYS,
            irq_masked: true,
            counts: MacCounts::default(),
            hung: false,
            receiver_starts: 0,
            transmitter_starts: 0,
            doorbells: 0,
            broken: 0,
            refuse_next: false,
            partner_link: true,
            speed: None,
            seed: seed | 1,
        })));
        Self {
            driver: start_driver(&world),
            world,
            stock: Vec::new(),
            used: Vec::new(),
            received: Vec::new(),
            queued: Vec::new(),
            // As `main` does after a start.
            notified: true,
            more: false,
            most_stock: usize::MAX,
            next_id: 1 << 32,
            next_arrival: 1,
        }
    }

    /// A frame comes over the wire.
    pub fn arrive(&mut self) {
        let id = self.next_arrival;
        self.next_arrival += 1;
        self.world.0.borrow_mut().wire_in.push_back(Arrival::Good(id));
    }

    pub fn arrive_broken(&mut self, arrival: Arrival) {
        self.world.0.borrow_mut().wire_in.push_back(arrival);
    }

    pub fn arrivals(&self) -> u64 {
        self.next_arrival - 1
    }

    /// Delivers the interrupt if it is due.
    pub fn interrupt(&mut self) {
        let due = {
            let mut world = self.world.0.borrow_mut();
            let due = world.irq_line() && !world.irq_masked;
            world.irq_masked |= due;
            due
        };
        if due {
            self.notified |= self.driver.interrupt();
        }
    }

    /// The stack calls: sends up to `send` frames from its stock, brings up to `give_back` used ones.
    pub fn exchange(&mut self, send: usize, give_back: usize, ask: Ask) {
        self.notified = false;
        let mut list = FrameList::new();
        for _ in 0..send {
            let Some(frame) = self.stock.pop() else { break };
            let id = self.next_id;
            self.next_id += 1;
            let index = frame.handle.index() - usize::from(OTHERS);
            self.world.0.borrow_mut().content[index] = id;
            self.queued.push(id);
            let offset = (id % 7) as u8;
            let frame = FrameDesc { len: 60 + u16::from(offset), offset, meta: crate::ring::TX, ..frame };
            list.push(frame).expect("at most a list");
        }
        for _ in 0..give_back {
            let Some(frame) = self.used.pop() else { break };
            if list.push(FrameDesc { meta: 0, ..frame }).is_err() {
                self.used.push(frame);
                break;
            }
        }
        self.hand_over(NET, DRIVER, &mut list).expect("the stack sends what it holds");
        let answer = self.driver.exchange(&mut list, ask);
        if self.hand_over(DRIVER, NET, &mut list).is_err() {
            self.driver.reply_refused(&mut list);
            self.more = false;
            return;
        }
        self.take_reply(&list, ask, answer);
    }

    fn take_reply(&mut self, list: &FrameList, ask: Ask, answer: Answer) {
        let (received, free) = list.as_slice().split_at(answer.received);
        assert!(received.len() <= ask.rx && free.len() <= ask.tx);
        for frame in received {
            let index = frame.handle.index() - usize::from(OTHERS);
            let id = self.world.0.borrow().content[index];
            assert_eq!((frame.offset, frame.meta), (RX_OFFSET, 0));
            assert_eq!(u64::from(frame.len), 62 + id % 1400, "length of frame {id}");
            self.received.push(id);
        }
        self.used.extend_from_slice(received);
        assert!(free.iter().all(|frame| frame.meta == crate::ring::TX));
        self.stock.extend_from_slice(free);
        self.more = answer.more;
    }

    /// As the kernel does it, with the new handles.
    fn hand_over(&mut self, from: u8, to: u8, list: &mut FrameList) -> Result<(), KernelError> {
        let mut world = self.world.0.borrow_mut();
        world.stir();
        world.ledger.transfer_in_place(from, to, list.as_mut_slice(), 32, |_| ())
    }

    pub fn tick(&mut self) {
        self.notified |= self.driver.tick();
    }

    /// The stack dies and starts again.
    pub fn restart_net(&mut self) {
        let mut returned = false;
        self.world.0.borrow_mut().ledger.task_died(NET, |event| {
            returned |= matches!(event, ledger::Event::Notice { .. });
        });
        self.stock.clear();
        self.used.clear();
        if returned {
            self.notified |= self.driver.frames_returned();
        }
        // A stack that starts looks for frames first.
        self.more = true;
    }

    /// The driver dies: quiesce, then a new instance. Its handles end, the stack's stay valid.
    pub fn restart_driver(&mut self) {
        {
            let mut world = self.world.0.borrow_mut();
            (world.rx_on, world.tx_on, world.going) = (false, false, false);
            world.events = Events::empty();
            world.enabled = Events::ALWAYS;
            world.ledger.task_died(DRIVER, |_| ());
            world.ledger.quiesced(1);
        }
        self.driver = start_driver(&self.world);
        self.notified = true;
    }

    /// Lets everything go on until nothing more happens; with `ticks`, time passes as well.
    pub fn settle(&mut self, ticks: usize) {
        let mut ticks_left = ticks;
        for _ in 0..100_000 {
            for _ in 0..4 {
                let mut world = self.world.0.borrow_mut();
                world.receive_one();
                world.send_one();
            }
            self.interrupt();
            if self.notified || self.more {
                self.run_net();
            } else if self.is_still() {
                if ticks_left == 0 {
                    return;
                }
                ticks_left -= 1;
                self.tick();
            }
        }
        panic!("no rest: the driver keeps the stack busy for nothing");
    }

    /// The stack does what it should: gives back what it has used, and asks for no more than it may hold.
    pub fn run_net(&mut self) {
        let quota = usize::from(self.world.0.borrow().habits.quota);
        let held = self.stock.len() + self.used.len().saturating_sub(32);
        // One that has hoarded lets some go.
        let send = if held < quota { 0 } else { 1 };
        let rx = (quota + send).saturating_sub(held).min(32);
        self.exchange(send, 32, Ask { rx, tx: 0 });
    }

    fn is_still(&self) -> bool {
        let world = self.world.0.borrow();
        let tx_control = world.memory[(world.tx_at - MEMORY) as usize / 4 + 1];
        let sending = world.tx_on && world.going && tx_control & tx_control::USED == 0;
        let blocked = world.memory[(world.rx_at - MEMORY) as usize / 4] & rx_address::USED != 0
            || world.rx_parked && world.habits.emulator
            || !world.rx_on;
        !sending && (world.wire_in.is_empty() || blocked) && !(world.irq_line() && !world.irq_masked)
    }

    /// Every frame of the pool is somewhere.
    pub fn check_census(&self) {
        let world = self.world.0.borrow();
        let census = world.ledger.census(1).expect("the pool");
        let sum = census.owner + census.lent + census.device + census.quarantined;
        assert_eq!(sum, world.habits.frames);
        assert_eq!(
            usize::from(census.owner),
            self.driver.free_frames(),
            "frames that the driver holds and has lost sight of"
        );
        assert_eq!(usize::from(census.lent), self.stock.len() + self.used.len());
    }
}
