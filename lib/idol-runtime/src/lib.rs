//! What generated client and server stubs need.
//!
//! `lib/idol` compiles `*.idol` files to code that uses this crate and nothing else:
//!
//! * [`Peer`] makes a call and repeats it when the server died, as far as the operation's [`Restart`] allows;
//! * [`serve`] receives, dispatches and replies, one kernel entry per request;
//! * [`Request`] and [`Leased`] are what a handler sees of its caller;
//! * [`Error`], [`RequestError`] and [`Refusal`] are what can go wrong, on either side;
//! * [`Kernel`] is what all of it asks of the system: [`System`] is the real one, `fake` one of threads for tests.
//!
//! Nothing here allocates, and nothing that a peer sends makes it panic.

#![cfg_attr(not(feature = "fake"), no_std)]
#![forbid(unsafe_code)]

mod client;
mod error;
#[cfg(feature = "fake")]
pub mod fake;
mod kernel;
mod lease;
mod server;
mod wire;

pub use abi::{Code, FrameDesc, KernelError, TaskId};
pub use client::{MAX_TRIES, Peer, Restart, TaskSlot};
pub use error::{Deferred, Error, ErrorCode, Refusal, RequestError};
pub use kernel::{Kernel, Lent, System};
pub use lease::{Both, Leased, Read, Readable, Rights, Writable, Write};
pub use server::{Buffers, Interface, Outcome, Request, serve, serve_while};
pub use userlib::{FrameList, Received, RecvBuffers};
pub use wire::{Aligned, decode_compact, decode_fixed, encode_compact, encode_fixed};

// For generated code, so that interface crates need no dependency but this one.
pub use heapless;
pub use serde;
pub use zerocopy;
