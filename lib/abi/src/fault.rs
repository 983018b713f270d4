//! Why a task stopped.

use serde::{Deserialize, Serialize};

/// The reason, with the address or number that explains it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FaultInfo {
    /// A load or store at this address that the task's regions do not allow.
    MemoryAccess {
        /// The address.
        address: u64,
        /// True for a store.
        write: bool,
    },
    /// A store or load in the guard page under the task's stack.
    StackOverflow {
        /// The address.
        address: u64,
    },
    /// Instruction fetch where the task may not execute.
    Execute {
        /// The address.
        address: u64,
    },
    /// An instruction that the CPU does not know or user code may not use.
    IllegalInstruction,
    /// A misaligned stack pointer, program counter or access.
    Alignment {
        /// The address.
        address: u64,
    },
    /// A system call number that does not exist.
    UnknownCall {
        /// What the task asked for.
        number: u32,
    },
    /// A system call argument named memory outside the task's regions.
    BadMemoryArgument {
        /// First address of the argument.
        address: u64,
        /// Its length in bytes.
        len: u64,
    },
    /// The task called `panic`; its message is in the task record.
    Panic,
    /// Another task with the privilege stopped it (a test, the console, a watchdog).
    Injected {
        /// Index of that task.
        by: u32,
    },
    /// An exception with this syndrome that none of the above covers.
    Other {
        /// The syndrome register.
        syndrome: u64,
    },
}

/// What the kernel keeps of the last fault of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FaultRecord {
    /// Why.
    pub info: FaultInfo,
    /// Program counter of the faulting instruction.
    pub pc: u64,
    /// Stack pointer at that time.
    pub sp: u64,
    /// Time since boot in timer ticks.
    pub time: u64,
    /// Generation of the task that faulted.
    pub generation: u32,
}
