//! Scripts for a victim, in the window that it shares with the suite.
//!
//! ```text
//! 0      MAX_STEPS steps of STEP_SIZE bytes: action, 9 arguments, 8 results, 1 if done
//! MESSAGE  message that the victim received with its script
//! FRAMES   frames that came with it
//! SCRATCH  for the tests: arguments of system calls, buffers
//! ```

#![no_std]
#![forbid(unsafe_code)]

use userlib::memory::DmaWords;

/// Bytes of the window.
pub const WINDOW: usize = 16 << 10;
/// Most steps of a script.
pub const MAX_STEPS: usize = 32;
/// Arguments of a step.
pub const ARGS: usize = 9;
/// Results of a step.
pub const RESULTS: usize = 8;
/// Bytes of a step.
pub const STEP_SIZE: usize = (1 + ARGS + RESULTS + 1) * 8;
/// Offset of the message that came with a script.
pub const MESSAGE: usize = 0x1400;
/// Longest message that a victim takes.
pub const MESSAGE_LEN: usize = 256;
/// Offset of the frames that came with a script.
pub const FRAMES: usize = 0x1600;
/// Offset of the memory for tests.
pub const SCRATCH: usize = 0x2000;

const _: () = assert!(MAX_STEPS * STEP_SIZE <= MESSAGE && FRAMES + 32 * 8 <= SCRATCH);

/// Operations between suite and victims.
pub mod operation {
    /// To `victim-high`: run a script of so many steps (the first byte of the message), then reply.
    pub const RUN: u16 = 1;
    /// To `victim-high`: reply, then run the script.
    pub const DETACH: u16 = 2;
    /// From the others: the last script is over; the reply holds the number of steps of the next one in its code.
    pub const NEXT: u16 = 3;
    /// Operations from here on are the tests' own.
    pub const TESTS: u16 = 100;
}

/// What a step does. The arguments are those of the variant's description, in order.
pub mod action {
    /// System call: number, eight arguments. Results: the registers.
    pub const SYSCALL: u64 = 1;
    /// Loads 8 bytes: address. Result: the value.
    pub const LOAD: u64 = 2;
    /// Stores 8 bytes: address, value.
    pub const STORE: u64 = 3;
    /// Calls what is at an address.
    pub const JUMP: u64 = 4;
    /// Recurses for ever.
    pub const OVERFLOW: u64 = 5;
    /// Executes an instruction that it may not: 0 undefined, 1 breakpoint, 2 privileged read, 3 privileged write.
    pub const ILLEGAL: u64 = 6;
    /// Panics; the number is in the message.
    pub const PANIC: u64 = 7;
    /// Is busy: microseconds.
    pub const SPIN: u64 = 8;
    /// Is busy as long as the word at an address has a value: address, value, most microseconds. Result: 1 if it changed.
    pub const SPIN_WHILE: u64 = 9;
    /// Fills the vector registers, is busy, and looks at them: seed, microseconds. Result: registers that changed.
    pub const VECTORS: u64 = 10;
    /// Result: vector registers that hold a value.
    pub const FIND_VECTORS: u64 = 11;
    /// Results: two static variables, one of `.data`, one of `.bss`. Then sets both to the argument.
    pub const STATICS: u64 = 12;
    /// Results: addresses of code, of a constant, of a variable, of the stack.
    pub const PLACES: u64 = 13;
    /// Result: ticks since boot.
    pub const STAMP: u64 = 14;
    /// Fills memory: address, length, byte.
    pub const FILL: u64 = 15;
    /// Adds bytes up: address, length. Result: the sum.
    pub const SUM: u64 = 16;
    /// Result: floating-point control register. Then sets it to the argument.
    pub const ROUNDING: u64 = 17;
    /// Fills the integer registers, makes a system call that does nothing, is busy, and looks at them: seed,
    /// microseconds. Result: registers that changed.
    pub const REGISTERS: u64 = 18;
    /// Random system calls: seed, how many. The arguments are chosen among own addresses, foreign ones and numbers.
    pub const RANDOM_CALLS: u64 = 19;
}

/// What [`action::STATICS`] finds in `.data` after a start.
pub const DATA_AT_START: u64 = 0x1eaf_1e55_5eed;

/// A step, as the suite writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// One of [`action`].
    pub action: u64,
    /// Arguments.
    pub args: [u64; ARGS],
}

impl Step {
    /// A step; missing arguments are 0.
    ///
    /// # Panics
    /// With more than [`ARGS`] arguments.
    #[must_use]
    pub fn new(action: u64, args: &[u64]) -> Self {
        let mut all = [0; ARGS];
        all[..args.len()].copy_from_slice(args);
        Self { action, args: all }
    }

    /// A system call with up to eight arguments.
    ///
    /// # Panics
    /// With more.
    #[must_use]
    pub fn call(number: u64, args: &[u64]) -> Self {
        let mut all = [0; ARGS];
        all[0] = number;
        all[1..=args.len()].copy_from_slice(args);
        Self { action: action::SYSCALL, args: all }
    }
}

/// The shared window. Both sides read and write it word by word.
#[derive(Debug)]
pub struct Window(DmaWords);

impl Window {
    /// A window over shared memory of [`WINDOW`] bytes.
    ///
    /// # Panics
    /// If it is shorter.
    #[must_use]
    pub fn new(words: DmaWords) -> Self {
        assert!(words.len() * 4 >= WINDOW, "the window of a victim has {WINDOW} bytes");
        Self(words)
    }

    /// Its address, the same in both tasks.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.0.address() as u64
    }

    /// Reads a 64-bit word; `offset` is a multiple of 4.
    #[must_use]
    pub fn get(&self, offset: usize) -> u64 {
        u64::from(self.0.read(offset / 4)) | u64::from(self.0.read(offset / 4 + 1)) << 32
    }

    /// Writes a 64-bit word; `offset` is a multiple of 4.
    pub fn put(&mut self, offset: usize, value: u64) {
        self.0.write(offset / 4, value as u32);
        self.0.write(offset / 4 + 1, (value >> 32) as u32);
    }

    /// Reads bytes from an offset that is a multiple of 4.
    pub fn get_bytes(&self, offset: usize, to: &mut [u8]) {
        for (index, chunk) in to.chunks_mut(4).enumerate() {
            let word = self.0.read(offset / 4 + index).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Writes bytes to an offset that is a multiple of 4; the last word is filled up with zeros.
    pub fn put_bytes(&mut self, offset: usize, from: &[u8]) {
        for (index, chunk) in from.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0.write(offset / 4 + index, u32::from_le_bytes(word));
        }
    }

    /// Writes a script and clears its results.
    ///
    /// # Panics
    /// If it has more than [`MAX_STEPS`] steps.
    pub fn write_script(&mut self, steps: &[Step]) {
        assert!(steps.len() <= MAX_STEPS, "a script of {} steps", steps.len());
        for (index, step) in steps.iter().enumerate() {
            let at = index * STEP_SIZE;
            self.put(at, step.action);
            for (argument, value) in step.args.iter().enumerate() {
                self.put(at + 8 + 8 * argument, *value);
            }
            for result in 0..=RESULTS {
                self.put(at + 8 * (1 + ARGS + result), 0);
            }
        }
    }

    /// Reads a step.
    #[must_use]
    pub fn step(&self, index: usize) -> Step {
        let at = index * STEP_SIZE;
        Step { action: self.get(at), args: core::array::from_fn(|argument| self.get(at + 8 + 8 * argument)) }
    }

    /// Notes the results of a step.
    pub fn finish(&mut self, index: usize, results: [u64; RESULTS]) {
        let at = index * STEP_SIZE + 8 * (1 + ARGS);
        for (result, value) in results.into_iter().enumerate() {
            self.put(at + 8 * result, value);
        }
        self.put(at + 8 * RESULTS, 1);
    }

    /// A result of a step.
    #[must_use]
    pub fn result(&self, index: usize, result: usize) -> u64 {
        self.get(index * STEP_SIZE + 8 * (1 + ARGS + result))
    }

    /// True once a step is over.
    #[must_use]
    pub fn is_done(&self, index: usize) -> bool {
        self.get(index * STEP_SIZE + 8 * (1 + ARGS + RESULTS)) != 0
    }
}
