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

use crate::desc::{rx_address, rx_status, tx_control};
use crate::driver::{Events, Kernel, Mac};
use crate::phy::{Link, Mdio};
use crate::ring::{RX_BUFFER, Words};
use crate::stats::MacCounts;

mod stack;
pub use stack::Bench;

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
    /// The MAC gives the descriptor back without having written its status.
    NoStatus,
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
    /// The cache may hold lines of it that memory does not have yet.
    dirty: Vec<bool>,
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
    /// Calls for completing and for arming since they were last looked at.
    pub calls: (u32, u32),
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
            Arrival::NoStatus => *self.word(at + 4),
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
    fn arm(&mut self, list: &[FrameDesc], direction: Direction) -> Result<(), KernelError> {
        let mut world = self.0.borrow_mut();
        world.stir();
        world.calls.1 += 1;
        let World { ledger, dirty, .. } = &mut *world;
        ledger.arm(DRIVER, list, |moved| {
            let frame = moved.index - usize::from(OTHERS);
            // What is sent is written back as far as it is sent; the rest of the frame may stay dirty.
            if direction == Direction::Receive {
                dirty[frame] &= moved.desc.len < RX_BUFFER as u16;
                assert!(!dirty[frame], "what the MAC writes may be overwritten by the cache");
            }
        })
    }

    fn complete(&mut self, list: &[FrameDesc]) -> Result<(), KernelError> {
        let mut world = self.0.borrow_mut();
        world.stir();
        world.calls.0 += 1;
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
