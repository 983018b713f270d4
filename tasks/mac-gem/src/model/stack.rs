//! The stack's side of the model, and the bench that holds all of it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use abi::{FrameDesc, KernelError};
use ledger::Ledger;
use userlib::FrameList;

use super::{Arrival, DRIVER, Habits, MEMORY, Memory, NET, OTHERS, POOL, Shared, World};
use crate::desc::{rx_address, tx_control};
use crate::driver::{Answer, Ask, Driver, Events};
use crate::free::FreeFrames;
use crate::phy::Phy;
use crate::ring::{Handles, Pool, RX_OFFSET, RxRing, TxRing};
use crate::stats::MacCounts;

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
    let handles = |count: usize| -> Handles { vec![Default::default(); count].leak() };
    let rx_words = habits.rx_len * 2;
    let rx = RxRing::new(part(0, rx_words), 2, handles(habits.rx_len));
    let tx = TxRing::new(part(rx_words, habits.tx_len * 2), 2, handles(habits.tx_len));
    let free = FreeFrames::new(handles(usize::from(habits.frames)));
    let pool = Pool { base: POOL, first: OTHERS, count: habits.frames };
    let mut driver = Driver::new(rx, tx, world.clone(), world.clone(), Phy::new(23, true), pool, free);
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
            dirty: vec![true; usize::from(habits.frames)],
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
            calls: (0, 0),
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
            {
                let mut world = self.world.0.borrow_mut();
                world.content[index] = id;
                world.dirty[index] = true;
            }
            self.queued.push(id);
            let offset = (id % 7) as u8;
            let frame = FrameDesc { len: 60 + u16::from(offset), offset, meta: crate::ring::TX, ..frame };
            list.push(frame).expect("at most a list");
        }
        for _ in 0..give_back {
            let Some(frame) = self.used.pop() else { break };
            if list.push(FrameDesc { meta: 0, len: 0, ..frame }).is_err() {
                self.used.push(frame);
                break;
            }
        }
        self.hand_over(NET, DRIVER, &mut list).expect("the stack sends what it holds");
        let answer = self.counted_exchange(&mut list, ask);
        if self.hand_over(DRIVER, NET, &mut list).is_err() {
            self.driver.reply_refused(&mut list);
            self.more = false;
            return;
        }
        self.take_reply(&list, ask, answer);
    }

    /// One call to complete and one to arm for each direction are enough, unless a list is refused or something fails.
    fn counted_exchange(&mut self, list: &mut FrameList, ask: Ask) -> Answer {
        let restarts = self.driver.stats().tx_restarts;
        let refusal = {
            let mut world = self.world.0.borrow_mut();
            world.calls = (0, 0);
            world.refuse_next
        };
        let answer = self.driver.exchange(list, ask);
        let (completes, arms) = self.world.0.borrow().calls;
        if !refusal && restarts == self.driver.stats().tx_restarts {
            assert!(completes <= 1 && arms <= 2, "{completes} calls to complete, {arms} to arm");
        }
        answer
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
        world.ledger.transfer_in_place(from, to, list.as_mut_slice(), 32).map(drop)
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

    /// Before it sleeps, the stack gives back what it has used up.
    pub fn give_back_all(&mut self) {
        while !self.used.is_empty() {
            self.exchange(0, 32, Ask { rx: 32, tx: 0 });
        }
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
        let interrupts = world.irq_line() && !world.irq_masked;
        !sending && !interrupts && (world.wire_in.is_empty() || blocked)
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
