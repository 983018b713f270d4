//! What the steps do.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use userlib::time;
use victim::{DATA_AT_START, RESULTS, Step, action};

use crate::arch;

static DATA: AtomicU64 = AtomicU64::new(DATA_AT_START);
static BSS: AtomicU64 = AtomicU64::new(0);
static CONSTANT: u64 = 0xc0_5a7e;

/// Does a step; returns if it can be survived.
pub fn step(step: Step) -> [u64; RESULTS] {
    let [a, b, c, ..] = step.args;
    let mut results = [0; RESULTS];
    match step.action {
        action::SYSCALL => {
            let [_, rest @ ..] = step.args;
            return arch::syscall(a, rest);
        }
        action::LOAD => results[0] = arch::load(a),
        action::STORE => arch::store(a, b),
        action::JUMP => arch::jump(a),
        action::OVERFLOW => results[0] = recurse(a),
        action::ILLEGAL => arch::illegal(a),
        action::PANIC => panic!("asked to panic: {a}"),
        action::SPIN => spin(a, || false),
        action::SPIN_WHILE => {
            spin(c, || arch::load(a) != b);
            results[0] = u64::from(arch::load(a) != b);
        }
        action::VECTORS => results[0] = arch::vectors(a, time::ticks() + time::from_micros(b)),
        action::FIND_VECTORS => results[0] = arch::find_vectors(a),
        action::STATICS => {
            results[0] = DATA.swap(a, Ordering::Relaxed);
            results[1] = BSS.swap(a, Ordering::Relaxed);
        }
        action::PLACES => {
            let local = 0u64;
            results[0] = self::step as *const () as u64;
            results[1] = black_box(&raw const CONSTANT) as u64;
            results[2] = &raw const DATA as u64;
            results[3] = black_box(&raw const local) as u64;
        }
        action::STAMP => results[0] = time::ticks(),
        action::FILL => (0..b).for_each(|at| arch::store_byte(a + at, c as u8)),
        action::SUM => results[0] = (0..b).map(|at| u64::from(arch::load_byte(a + at))).sum(),
        action::ROUNDING => results[0] = arch::rounding(a),
        action::REGISTERS => results[0] = arch::registers(a, time::ticks() + time::from_micros(b)),
        action::RANDOM_CALLS => results[0] = random_calls(a, b, c),
        _ => panic!("no action {}", step.action),
    }
    results
}

fn spin(micros: u64, mut done: impl FnMut() -> bool) {
    let end = time::ticks() + time::from_micros(micros);
    while time::ticks() < end && !done() {}
}

/// Uses up the stack, in steps smaller than a guard page.
#[expect(unconditional_recursion, reason = "the stack ends it")]
fn recurse(depth: u64) -> u64 {
    let mut room = [depth; 16];
    black_box(&mut room);
    // The addition keeps this from becoming a loop.
    recurse(depth + 1) + room[black_box(3)]
}

/// Random system calls. They may block or end the task; the suite sees to both.
fn random_calls(seed: u64, count: u64, window: u64) -> u64 {
    let mut state = seed | 1;
    let mut next = || {
        // Xorshift, Marsaglia 2003.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..count {
        let number = next() % 20;
        let args = core::array::from_fn(|_| {
            let value = next();
            match next() % 8 {
                0 => value,
                1 => value % 16,
                2 => value % 4096,
                3 => u64::from(value as u32),
                4 => u64::MAX - value % 64,
                // Own memory, mostly aligned: what gets past the first check is the interesting part.
                5 => window + value % 2048 * 8,
                6 => window + value % 0x5000,
                _ => 0,
            }
        });
        arch::syscall(number, args);
    }
    count
}
