//! Start: configuration, memory, MAC, and then service.

use abi::config::{Item, ValueRef};
use mac_api::MacBuffers;
use mac_gem::device::{DEFAULT_ADDRESS, Gem, Parking, Settings};
use mac_gem::driver::{Driver, MAX_RX, MAX_TX};
use mac_gem::phy::Phy;
use mac_gem::regs::Registers;
use mac_gem::ring::{self, PARK_WORDS, Pool, RxRing, TxRing};
use mac_gem::server::{Bits, Outside, Server};
use mac_gem::system::System;
use userlib::memory::DmaWords;
use userlib::{config, ipc, time};

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
    let (rx, tx, parking) = rings(&pool);
    let mac = Gem::set_up(registers, &settings, parking, address);
    let phy = Phy::new(integer("phy") as u8, settings.gigabit);
    let system = System { pool: number, irq: bits.irq };
    let mut driver = Driver::new(rx, tx, system, mac, phy, pool);
    driver.start().expect("the kernel knows the pool");
    let mut neighbours = Neighbours { stacks: heapless::Vec::new(), timer: bits.timer, tick: time::from_micros(TICK) };
    config::for_each_notify("rx", |task, mask| {
        // More than four are not told.
        let _ = neighbours.stacks.push((task, mask));
    });
    let mut server = Server::new(driver, neighbours, bits, address);
    mac_api::serve(&mut server, &mut MacBuffers::new())
}

/// Cuts the DMA memory into receive ring, transmit ring and parking place.
fn rings(pool: &Pool) -> (RxRing<DmaWords, MAX_RX>, TxRing<DmaWords, MAX_TX>, Parking) {
    let words: usize = integer("descriptor-words");
    let frames = usize::from(pool.count);
    // Half of the pool at most waits for the wire.
    let rx_len = integer("rx-buffers").min(frames / 2).clamp(2, MAX_RX);
    let tx_len = (frames + 1).clamp(2, MAX_TX);
    let memory = DmaWords::take("ring").expect("DMA memory for the rings");
    let (rx, rest) = memory.split_at(rx_len * words);
    let (tx, mut rest) = rest.split_at(tx_len * words);
    assert!(rest.len() >= PARK_WORDS, "the DMA memory is too small");
    let (park_tx, park_rx) = ring::park(&mut rest);
    (RxRing::new(rx, words, rx_len), TxRing::new(tx, words, tx_len), Parking { tx: park_tx, rx: park_rx })
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
