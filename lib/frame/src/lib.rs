//! Leased frames as values: [`RxFrame`] and [`TxFrame`].
//!
//! A task that holds frames of a pool keeps its books in [`Frames`]. Each frame that it holds is in
//! exactly one place there:
//!
//! ```text
//!             accept                receive              drop
//!  driver ──────────────► received ─────────► RxFrame ───────────┬──► outgoing ──► driver
//!         ──────────────► stock ────────────► TxFrame ── send ───┤      outgoing(), sent()
//!             accept        ▲      transmit     │ drop           │
//!                           └───────────────────┴◄───────────────┘ while the stock is low
//! ```
//!
//! `RxFrame` and `TxFrame` deref to the packet's bytes, in the frame itself: nothing is copied and nothing
//! is cleared. They cannot be cloned, and go back to the books when dropped. A frame that was received
//! refills the stock while that is low, which spares a hand-over in each direction.
//!
//! The books never allocate and never call the kernel. Whoever calls the driver passes on
//! [`outgoing`](Frames::outgoing) with the call, strikes it with [`sent`](Frames::sent), and enters the
//! reply with [`accept`](Frames::accept).
//!
//! Unsafe code is in [`memory`](FrameMemory) only.

#![cfg_attr(target_os = "none", no_std)]
#![deny(unsafe_code)]

mod frames;
mod memory;
mod rx;
mod tx;

pub use frames::{Census, Frames};
pub use memory::FrameMemory;
pub use rx::RxFrame;
pub use tx::{TX_OFFSET, TxFrame};
