//! What an image is made of: reads app.toml, board.toml and task.toml, checks them, and plans memory.
//!
//! * [`load`] reads the files and resolves every name in them into a [`System`]; it reports all errors that it finds,
//!   each with file, line and remedy, before anything is compiled,
//! * [`plan`] gives every part of the system its address, from the sizes that the linker found,
//! * [`encode_image`] and [`encode_config`] write what the kernel and the tasks read at run time.
//!
//! The formats are described in `docs/architecture.md`.

#![forbid(unsafe_code)]

mod app;
mod board;
mod diagnostic;
mod encode;
mod limits;
mod load;
mod plan;
mod read;
mod resolve;
mod suggest;
mod system;
mod table;
mod task_manifest;
mod value;

pub use diagnostic::{Diagnostics, Origin, Problem, Source};
pub use encode::{encode_config, encode_image};
pub use load::{boards, load};
pub use plan::{KernelPlacement, MapEntry, MemoryMap, Plan, Sizes, Span, TaskPlacement, Use, plan};
pub use system::{
    At, Board, BoardPeripheral, Console, ImageKind, Interrupt, Kernel, Memory, MemoryAccess, Overrides, Peripheral,
    Pool, QuiesceStep, Ram, Run, System, Task, Window,
};
