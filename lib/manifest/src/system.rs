//! The system as it will be built, every name resolved.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use abi::config::Value;
use abi::image::Privileges;

use crate::diagnostic::Origin;

/// A value, and where it was written.
#[derive(Clone, Debug)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub at: Origin,
}

/// Which image is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ImageKind {
    /// What `dist`, `run` and `bench` build.
    #[default]
    Normal,
    /// What `test` builds.
    Test,
}

impl ImageKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Normal, Self::Test];

    /// Its name in app.toml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Test => "test",
        }
    }
}

/// Values of the network's configuration that the command line gives instead of app.toml.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overrides {
    /// `dhcp`, or address and prefix length: `10.0.2.15/24`. Replaces `address` of the network stack.
    pub address: Option<String>,
    /// Replaces `gateway` of the network stack.
    pub gateway: Option<Ipv4Addr>,
    /// Replaces `mac` of the task in the role `ethernet`.
    pub mac: Option<[u8; 6]>,
}

/// Everything that one image consists of.
#[derive(Clone, Debug)]
pub struct System {
    /// Name of the application.
    pub name: String,
    /// Which of its images.
    pub image: ImageKind,
    /// The board.
    pub board: Board,
    /// The kernel.
    pub kernel: Kernel,
    /// Tasks in the order of app.toml; the index is that of the kernel's table.
    pub tasks: Vec<Task>,
    /// Task index of the supervisor, and its notification bit for faults.
    pub supervisor: (usize, u32),
    /// Interrupts of all tasks.
    pub interrupts: Vec<Interrupt>,
    /// Frame pools.
    pub pools: Vec<Pool>,
    /// Memory that two tasks share.
    pub windows: Vec<Window>,
    /// The files that all of this was read from, relative to the root.
    pub files: Vec<PathBuf>,
}

/// What app.toml says of the kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Bytes of its stack.
    pub stack: At<u64>,
    /// Most bytes of code and constants.
    pub code_limit: Option<At<u64>>,
    /// Most bytes of variables.
    pub data_limit: Option<At<u64>>,
}

/// One task of the image.
#[derive(Clone, Debug)]
pub struct Task {
    /// Name in app.toml.
    pub name: At<String>,
    /// Package, and the binary in it.
    pub package: String,
    /// One line about it.
    pub description: String,
    /// 0 is the highest.
    pub priority: u8,
    /// Bytes, a multiple of the page size.
    pub stack: At<u64>,
    /// Whether it is built to use floating-point and vector registers.
    pub floating_point: bool,
    /// Most bytes of code and constants.
    pub code_limit: Option<At<u64>>,
    /// Most bytes of variables.
    pub data_limit: Option<At<u64>>,
    /// What it may ask of the kernel.
    pub privileges: Privileges,
    /// Own notifications; the position is the bit.
    pub notifications: Vec<String>,
    /// Bound slots: name, task index.
    pub slots: Vec<(String, usize)>,
    /// Notifications it posts: name, task index, mask.
    pub notifies: Vec<(String, usize, u32)>,
    /// Register blocks.
    pub peripherals: Vec<Peripheral>,
    /// DMA memory.
    pub memory: Vec<Memory>,
    /// The `config` table, defaults filled in.
    pub values: Vec<(String, Value)>,
}

/// A register block that a task drives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peripheral {
    /// Name in task.toml.
    pub name: String,
    /// Name in board.toml.
    pub board_name: String,
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// DMA memory of a task.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Name in task.toml.
    pub name: String,
    /// Bytes, a multiple of the page size.
    pub size: At<u64>,
    /// How it is mapped.
    pub access: MemoryAccess,
}

/// How DMA memory is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryAccess {
    /// As other memory: cheap to read, the driver maintains the cache.
    Cached,
    /// Past the cache, as descriptor rings want it.
    Uncached,
}

/// One interrupt and who is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Number at the interrupt controller.
    pub number: u32,
    /// Task index.
    pub task: usize,
    /// Notification bit.
    pub mask: u32,
}

/// A frame pool.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Task index of the driver that owns it.
    pub owner: usize,
    /// The owner's bit for frames that came back from a dead holder.
    pub returned: u32,
    /// Frames.
    pub frames: At<u16>,
    /// Task index and quota of each other task that may hold frames.
    pub holders: Vec<(usize, u16)>,
    /// How the device's DMA is stopped; offsets in the peripheral resolved to addresses.
    pub quiesce: Vec<abi::image::Quiesce>,
}

/// Memory that two tasks share.
#[derive(Clone, Debug)]
pub struct Window {
    /// Task index of the one that declares it.
    pub owner: usize,
    /// Task index of the other.
    pub peer: usize,
    /// Bytes, a multiple of the page size.
    pub size: At<u64>,
}

/// What board.toml says.
#[derive(Clone, Debug)]
pub struct Board {
    /// Name of its folder.
    pub name: String,
    /// One line about it.
    pub description: String,
    /// Architecture, `aarch64`.
    pub arch: String,
    /// Processor, as the compiler names it.
    pub cpu: String,
    /// RAM.
    pub ram: Ram,
    /// Where the kernel's image starts.
    pub image: At<u64>,
    /// Blocks of the interrupt controller.
    pub interrupt_controller: Vec<u64>,
    /// Interrupt numbers are below this.
    pub lines: u32,
    /// Interrupt of the kernel's timer.
    pub timer_interrupt: At<u32>,
    /// The kernel's own output.
    pub console: Console,
    /// Peripherals by name.
    pub peripherals: BTreeMap<String, BoardPeripheral>,
    /// Peripheral of each role.
    pub roles: BTreeMap<String, At<String>>,
    /// How to boot it in an emulator.
    pub run: Run,
}

/// RAM that the kernel may use.
#[derive(Clone, Debug)]
pub struct Ram {
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: At<u64>,
}

/// A polled transmitter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Console {
    /// Register that takes a byte.
    pub data: u64,
    /// Status register.
    pub status: u64,
    /// Bits that tell that it is full.
    pub full: u32,
    /// Writes at boot: register, value.
    pub init: Vec<(u64, u32)>,
}

/// A peripheral of the board.
#[derive(Clone, Debug)]
pub struct BoardPeripheral {
    /// What kind of device it is.
    pub kind: String,
    /// Task crate that drives it, if there is one.
    pub driver: Option<String>,
    /// First address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// Interrupt number.
    pub interrupt: Option<At<u32>>,
    /// How its DMA is stopped.
    pub quiesce: Vec<QuiesceStep>,
    /// Where it is declared.
    pub at: Origin,
}

/// A step of a quiesce sequence, with offsets in the peripheral's block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuiesceStep {
    /// Writes a register.
    Write {
        /// Offset.
        offset: u64,
        /// Value.
        value: u32,
    },
    /// Reads a register until the masked value is as expected.
    Poll {
        /// Offset.
        offset: u64,
        /// Bits that count.
        mask: u32,
        /// What they must be.
        expected: u32,
        /// Reads before it is given up.
        tries: u32,
    },
}

/// How to boot the board in an emulator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Program.
    pub emulator: String,
    /// Arguments that choose the machine.
    pub args: Vec<String>,
    /// Index of the MAC among the machine's NICs.
    pub nic: usize,
    /// Index of the console among the machine's serial ports.
    pub serial: usize,
}
