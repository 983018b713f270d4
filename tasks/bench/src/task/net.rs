//! The network stack as a client sees it: calls, and pieces of the window that both share.

use bench_api::{Failure, Peer};
use idol_runtime::{Error, TaskId, TaskSlot};
use net_api::{
    Address, DATAGRAM_HEADER, DatagramHeader, Endpoint, Net, NetError, SocketId, Step, cause, datagram_space,
};
use zerocopy::{FromBytes, IntoBytes};

/// The stack.
#[derive(Debug)]
pub struct Stack {
    net: Net,
    slot: u8,
    instance: TaskId,
    window: &'static mut [u8],
}

impl Stack {
    /// The stack behind slot `net`.
    pub fn new() -> Self {
        let slot = TaskSlot::named("net");
        let net = Net::from(slot);
        let instance = net.id();
        let window = userlib::memory::take_bytes("net").unwrap_or_default();
        Self { net, slot: slot.0, instance, window }
    }

    /// Calls.
    pub const fn net(&self) -> &Net {
        &self.net
    }

    /// True, once, when there is another instance of the stack: it has no sockets of ours.
    pub fn was_restarted(&mut self) -> bool {
        let current = userlib::ipc::current_id(self.slot);
        if current == self.instance {
            return false;
        }
        // The client looks for the new instance when a call has failed.
        self.net = Net::from(TaskSlot(self.slot));
        self.instance = current;
        true
    }

    /// [`Net::step`], and the pieces of the window that it names.
    pub fn step(&mut self, socket: SocketId, consume: usize, commit: usize) -> Result<View<'_>, Error<NetError>> {
        let step = self.net.step(socket, consume as u32, commit as u32)?;
        let (input, output) = pieces(self.window, &step);
        Ok(View { step, input, output })
    }
}

/// Where a socket stands, and the bytes to read and to write.
#[derive(Debug)]
pub struct View<'a> {
    /// Where it stands.
    pub step: Step,
    /// What can be read in one piece.
    pub input: &'a [u8],
    /// What can be written in one piece.
    pub output: &'a mut [u8],
}

/// The two pieces of a window that a step names. Empty where they are not inside, or overlap: the stack is another program.
fn pieces<'a>(window: &'a mut [u8], step: &Step) -> (&'a [u8], &'a mut [u8]) {
    let (read, read_len) = (step.readable_offset as usize, step.readable_len as usize);
    let (write, write_len) = (step.writable_offset as usize, step.writable_len as usize);
    if read <= write {
        let (low, high) = window.split_at_mut(write.min(window.len()));
        (piece(low, read, read_len), high.get_mut(..write_len).unwrap_or_default())
    } else {
        let (low, high) = window.split_at_mut(read.min(window.len()));
        let output = write.checked_add(write_len).and_then(|end| low.get_mut(write..end)).unwrap_or_default();
        (piece(high, 0, read_len), output)
    }
}

fn piece(bytes: &[u8], from: usize, len: usize) -> &[u8] {
    bytes.get(from..).and_then(|bytes| bytes.get(..len)).unwrap_or_default()
}

/// A datagram at the front of a UDP socket's input: who sent it, its payload, and the bytes that it takes in the buffer.
pub fn first_datagram(input: &[u8]) -> Option<(Peer, &[u8], usize)> {
    let (header, rest) = DatagramHeader::read_from_prefix(input).ok()?;
    let len = usize::from(header.len);
    Some((
        Peer { address: header.address.0, port: header.port },
        rest.get(..len)?,
        datagram_space(len).min(input.len()),
    ))
}

/// Room for a datagram of `len` bytes at the front of a UDP socket's output: writes the header and returns the payload's place.
pub fn datagram_room(output: &mut [u8], to: Peer, len: usize) -> Option<&mut [u8]> {
    let record = output.get_mut(..datagram_space(len))?;
    let header = DatagramHeader { address: Address(to.address), port: to.port, len: u16::try_from(len).ok()? };
    let (head, body) = record.split_at_mut(DATAGRAM_HEADER);
    head.copy_from_slice(header.as_bytes());
    body.get_mut(..len)
}

/// As the stack names it.
pub const fn endpoint(peer: Peer) -> Endpoint {
    Endpoint::new(Address(peer.address), peer.port)
}

/// As our interface names it.
pub const fn peer(endpoint: Endpoint) -> Peer {
    Peer { address: endpoint.address.0, port: endpoint.port }
}

/// What a refusal of the stack means for a job.
pub const fn failure(error: Error<NetError>) -> Failure {
    match error {
        Error::Server(NetError::Unreachable) => Failure::Unreachable,
        Error::Server(NetError::NoMemory | NetError::TooMany | NetError::NoWindow) => Failure::NoSocket,
        Error::Server(NetError::Closed) => Failure::Reset,
        Error::Server(NetError::BadSocket) | Error::Died { .. } => Failure::StackRestarted,
        _ => Failure::BadArgument,
    }
}

/// Why a connection is closed.
pub const fn closed(step: &Step) -> Failure {
    match step.cause {
        cause::REFUSED => Failure::Refused,
        cause::TIMED_OUT => Failure::TimedOut,
        cause::ADDRESS_LOST => Failure::Unreachable,
        _ => Failure::Reset,
    }
}
