//! Start: configuration, memory, MAC, and then service.

use abi::FrameHandle;
use abi::config::{Item, ValueRef};
use mac_api::MacBuffers;
use mac_gem::device::{DEFAULT_ADDRESS, Gem, Parking, Settings};
use mac_gem::driver::Driver;
use mac_gem::free::FreeFrames;
use mac_gem::phy::Phy;
use mac_gem::regs::Registers;
use mac_gem::ring::{self, Handles, PARK_WORDS, Pool, RxRing, TxRing};
use mac_gem::server::{Bits, Outside, Server};
use mac_gem::system::System;
use userlib::memory::{self, DmaWords};
use userlib::{config, ipc, time};
use zerocopy::FromBytes;

/// Time between ticks of the driver, in microseconds.
const TICK: u64 = 100_000;

/// Whom to tell, looked up once.
struct Neighbours {
    stacks: heapless::Vec<(u8, u32), 4>,
    timer: u32,
    tick: u64,
}

impl Outside for Neighbours {
    #[inline]
    fn tell(&mut self) {
        for (task, mask) in &self.stacks {
            // Refused only without the right to post, which the build has checked.
            let _ = ipc::post(*task, *mask);
        }
    }

    fn set_timer(&mut self) {
        time::set_timer(time::ticks() + self.tick, self.timer);
    }
}

/// Starts the driver and serves for ever.
pub fn main() -> ! {
    let bits = Bits {
        irq: config::notification("irq"),
        timer: config::notification("timer"),
        frames_back: config::notification("frames-back"),
    };
    let (number, pool) = own_pool().expect("a MAC driver owns a pool");
    let registers = Registers::take("mac").expect("register block of the MAC");
    let settings =
        Settings { queues: integer("queues"), mdio_divider: integer("mdio-divider") as u32, gigabit: bool("gigabit") };
    let address = station_address(registers);
    let Books { rx, tx, free } = books(&pool);
    let (rx, tx, parking) = rings(rx, tx);
    let mac = Gem::set_up(registers, &settings, parking, address);
    let phy = Phy::new(integer("phy") as u8, settings.gigabit);
    let system = System { pool: number, irq: bits.irq };
    let mut driver = Driver::new(rx, tx, system, mac, phy, pool, FreeFrames::new(free));
    driver.start().expect("the kernel knows the pool");
    let mut neighbours = Neighbours { stacks: heapless::Vec::new(), timer: bits.timer, tick: time::from_micros(TICK) };
    config::for_each_notify("rx", |task, mask| {
        // More than four are not told.
        let _ = neighbours.stacks.push((task, mask));
    });
    let mut server = Server::new(driver, neighbours, bits, address);
    mac_api::serve(&mut server, &mut MacBuffers::new())
}

/// Memory for the handles of frames, by where the frames are.
struct Books {
    rx: Handles,
    tx: Handles,
    free: Handles,
}

/// Sizes the books for the pool: half of it at most waits for the wire, and all of it could wait to be sent.
fn books(pool: &Pool) -> Books {
    let frames = usize::from(pool.count);
    let bytes = memory::take_bytes("books").expect("memory for the books");
    let (whole, _) = <[FrameHandle]>::mut_from_prefix_with_elems(bytes, bytes.len() / size_of::<FrameHandle>())
        .unwrap_or_else(|_| panic!("memory for the books is aligned to a page"));
    let (rx, rest) = whole.split_at_mut(integer("rx-buffers").min(frames / 2).max(2));
    let (tx, rest) = rest.split_at_mut(frames + 1);
    Books { rx, tx, free: &mut rest[..frames] }
}

/// Cuts the DMA memory into receive ring, transmit ring and parking place.
fn rings(rx: Handles, tx: Handles) -> (RxRing<DmaWords>, TxRing<DmaWords>, Parking) {
    let words: usize = integer("descriptor-words");
    let memory = DmaWords::take("ring").expect("DMA memory for the rings");
    let (rx_words, rest) = memory.split_at(rx.len() * words);
    let (tx_words, mut rest) = rest.split_at(tx.len() * words);
    assert!(rest.len() >= PARK_WORDS, "the DMA memory is too small");
    let (park_tx, park_rx) = ring::park(&mut rest);
    (RxRing::new(rx_words, words, rx), TxRing::new(tx_words, words, tx), Parking { tx: park_tx, rx: park_rx })
}

/// The configured address, else the one in the MAC, else one of our own.
fn station_address(registers: &Registers) -> [u8; 6] {
    let configured = match config::find_value("mac") {
        Some(ValueRef::Bytes(bytes)) => bytes.0.try_into().ok(),
        _ => None,
    };
    configured.or_else(|| Gem::burnt_in_address(registers)).unwrap_or(DEFAULT_ADDRESS)
}

/// The pool that bears this task's name: its place among the pools of the task, and where it is.
fn own_pool() -> Option<(usize, Pool)> {
    let mut own = "";
    let mut number = 0;
    config::view().find(|item| match item {
        Item::Name(name) => {
            own = name;
            None
        }
        Item::Pool(name, base, first, count) => {
            number += 1;
            (name == own).then_some((number - 1, Pool { base: base as u32, first, count }))
        }
        _ => None,
    })
}

/// A whole number of the configuration; `task.toml` gives its range.
fn integer(name: &str) -> usize {
    config::integer(name) as usize
}

fn bool(name: &str) -> bool {
    matches!(config::find_value(name), Some(ValueRef::Bool(true)))
}
