//! Sockets for tasks: blocking, with their bytes in place.
//!
//! A task has one [`Network`]. It needs the slot `net`, the notification `socket` (named in the stack's `notifies` as `TASK.socket`),
//! and a window (named in the stack's `windows`). The calls of [`TcpStream`], [`TcpListener`] and [`UdpSocket`] wait as long as it
//! takes; a task that serves several sockets uses `sync` and [`Network::wait`] instead, which never block and block for all of them.
//!
//! What is read and written stays in the window until `sync`: a call to the stack is made when there is nothing left to read, or
//! no room left to write, not for each read and write.

use core::cell::{Cell, RefCell};

use zerocopy::{FromBytes, IntoBytes};

use idol_runtime::{Error, TaskSlot};
use userlib::{config, ipc, memory};

use crate::{
    Accepted, Address, DATAGRAM_HEADER, DatagramHeader, Endpoint, MAX_DATAGRAM, Net, NetError, Options, PingReply,
    SocketId, Step, cause, datagram_space, state,
};

/// Why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The stack refused it.
    Net(NetError),
    /// The peer reset or refused the connection, or did not answer: a value of [`cause`].
    Connection(u32),
    /// The connection is closed in this direction.
    Closed,
    /// The stack was restarted, or cannot be called. All sockets are gone; open new ones.
    Stack,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Net(error) => error.fmt(f),
            Self::Connection(cause::RESET) => f.write_str("connection reset by peer"),
            Self::Connection(cause::REFUSED) => f.write_str("connection refused"),
            Self::Connection(cause::TIMED_OUT) => f.write_str("connection timed out"),
            Self::Connection(cause::ADDRESS_LOST) => f.write_str("own address lost"),
            Self::Connection(_) | Self::Closed => f.write_str("connection closed"),
            Self::Stack => f.write_str("network stack restarted"),
        }
    }
}

impl From<Error<NetError>> for Failure {
    fn from(error: Error<NetError>) -> Self {
        match error {
            Error::Server(error) => Self::Net(error),
            _ => Self::Stack,
        }
    }
}

/// The stack, as this task sees it.
#[derive(Debug)]
pub struct Network {
    net: Net,
    window: RefCell<&'static mut [u8]>,
    mask: u32,
    seen: Cell<u32>,
}

impl Network {
    /// Takes the task's window. `None` if it has none, or it was taken before.
    ///
    /// # Panics
    /// If `task.toml` declares no slot `net` or no notification `socket`.
    #[must_use]
    pub fn take() -> Option<Self> {
        Some(Self {
            net: Net::from(TaskSlot::named("net")),
            window: RefCell::new(memory::take_bytes("net")?),
            mask: config::notification("socket"),
            seen: Cell::new(0),
        })
    }

    /// The interface itself.
    #[must_use]
    pub const fn net(&self) -> &Net {
        &self.net
    }

    /// The notification that says that a socket has news.
    #[must_use]
    pub const fn mask(&self) -> u32 {
        self.mask
    }

    /// Waits until a socket has news, or a notification in `also` comes. Returns the bits that came; it may be none.
    ///
    /// Nothing is lost between a look at the sockets and this call.
    pub fn wait(&self, also: u32) -> u32 {
        let (bits, seen) = ipc::wait(self.mask | also, self.seen.get());
        self.seen.set(seen);
        bits
    }

    /// Lets `f` look at bytes of the window; at fewer if the window ends before.
    pub fn look<R>(&self, offset: u32, len: u32, f: impl FnOnce(&[u8]) -> R) -> R {
        let window = self.window.borrow();
        let (start, end) = part(window.len(), offset, len);
        f(&window[start..end])
    }

    /// Lets `f` write bytes of the window.
    pub fn fill<R>(&self, offset: u32, len: u32, f: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut window = self.window.borrow_mut();
        let (start, end) = part(window.len(), offset, len);
        f(&mut window[start..end])
    }

    /// Sends an echo request. The reply comes by [`Network::ping_reply`].
    ///
    /// # Errors
    /// [`Failure`].
    pub fn ping(&self, host: Address, len: u16, sequence: u16) -> Result<(), Failure> {
        Ok(self.net.ping(host, len, sequence)?)
    }

    /// An echo reply, if one has come.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn ping_reply(&self) -> Result<Option<PingReply>, Failure> {
        match self.net.ping_reply() {
            Ok(reply) => Ok(Some(reply)),
            Err(Error::Server(NetError::WouldBlock)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The part of a window of `size` bytes that an offset and a length name.
fn part(size: usize, offset: u32, len: u32) -> (usize, usize) {
    let start = (offset as usize).min(size);
    (start, start.saturating_add(len as usize).min(size))
}

/// A socket's two regions, and how far this task has come in them.
#[derive(Debug)]
struct Flow<'n> {
    network: &'n Network,
    socket: SocketId,
    step: Step,
    /// Bytes read since the last step.
    read: u32,
    /// Bytes written since the last step.
    written: u32,
}

impl<'n> Flow<'n> {
    fn new(network: &'n Network, socket: SocketId) -> Result<Self, Failure> {
        let mut flow = Self { network, socket, step: Step::default(), read: 0, written: 0 };
        flow.sync()?;
        Ok(flow)
    }

    fn sync(&mut self) -> Result<&Step, Failure> {
        let answer = self.network.net.step(self.socket, self.read, self.written);
        self.read = 0;
        self.written = 0;
        self.step = match answer {
            Ok(step) => step,
            // Only a restarted stack does not know a socket that was never closed.
            Err(Error::Server(NetError::BadSocket)) => return Err(Failure::Stack),
            Err(error) => return Err(error.into()),
        };
        Ok(&self.step)
    }

    /// Offset and length of what is left to read.
    const fn readable(&self) -> (u32, u32) {
        (self.step.readable_offset + self.read, self.step.readable_len - self.read)
    }

    /// Offset and length of what is left to write.
    const fn writable(&self) -> (u32, u32) {
        (self.step.writable_offset + self.written, self.step.writable_len - self.written)
    }

    /// Why nothing more will come.
    const fn failure(&self) -> Failure {
        match self.step.cause {
            cause::NONE => Failure::Closed,
            cause => Failure::Connection(cause),
        }
    }

    fn close(&self, cut: bool) {
        // If the stack was restarted, the socket is closed already.
        let _ = self.network.net.close(self.socket, cut.into());
    }
}

/// A TCP connection. Dropped, it is closed in good order behind what was written.
#[derive(Debug)]
pub struct TcpStream<'n> {
    flow: Flow<'n>,
}

impl<'n> TcpStream<'n> {
    /// Connects.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn connect(network: &'n Network, remote: Endpoint, options: Options) -> Result<Self, Failure> {
        let mut stream = Self::start(network, remote, options)?;
        while stream.flow.step.state & state::CONNECTING != 0 {
            network.wait(0);
            stream.flow.sync()?;
        }
        if stream.flow.step.state & state::CLOSED != 0 { Err(stream.flow.failure()) } else { Ok(stream) }
    }

    /// Starts to connect, and does not wait.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn start(network: &'n Network, remote: Endpoint, options: Options) -> Result<Self, Failure> {
        let socket = network.net.connect(options, remote)?;
        Ok(Self { flow: Flow::new(network, socket)? })
    }

    /// The socket.
    #[must_use]
    pub const fn socket(&self) -> SocketId {
        self.flow.socket
    }

    /// Where the connection stood at the last call to the stack.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.flow.step
    }

    /// Tells the stack what was read and written, and learns what is new. Does not wait.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn sync(&mut self) -> Result<&Step, Failure> {
        self.flow.sync()
    }

    /// Bytes that can be read at once.
    #[must_use]
    pub const fn readable(&self) -> usize {
        self.flow.readable().1 as usize
    }

    /// Bytes that can be written at once.
    #[must_use]
    pub const fn writable(&self) -> usize {
        self.flow.writable().1 as usize
    }

    /// Lets `f` read in place; it returns how many bytes it is done with. Does not wait: `f` may see none.
    pub fn read_in_place(&mut self, f: impl FnOnce(&[u8]) -> usize) -> usize {
        let (offset, len) = self.flow.readable();
        let done = self.flow.network.look(offset, len, f).min(len as usize);
        self.flow.read += done as u32;
        done
    }

    /// Lets `f` write in place; it returns how many bytes it wrote. Does not wait: there may be no room. Sent with the next `sync`.
    pub fn write_in_place(&mut self, f: impl FnOnce(&mut [u8]) -> usize) -> usize {
        let (offset, len) = self.flow.writable();
        let done = self.flow.network.fill(offset, len, f).min(len as usize);
        self.flow.written += done as u32;
        done
    }

    /// Reads some bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        if !buffer.is_empty() && !self.wait_readable()? {
            return Ok(0);
        }
        Ok(self.read_in_place(|data| {
            let len = data.len().min(buffer.len());
            buffer[..len].copy_from_slice(&data[..len]);
            len
        }))
    }

    /// Waits until something can be read; false at the end of the stream.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn wait_readable(&mut self) -> Result<bool, Failure> {
        while self.readable() == 0 {
            let step = *self.flow.sync()?;
            if step.readable_len > 0 {
                break;
            }
            if step.state & (state::MAY_RECEIVE | state::CONNECTING) == 0 {
                return if step.cause == cause::NONE { Ok(false) } else { Err(self.flow.failure()) };
            }
            self.flow.network.wait(0);
        }
        Ok(true)
    }

    /// Waits until something can be written.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn wait_writable(&mut self) -> Result<(), Failure> {
        while self.writable() == 0 {
            let step = *self.flow.sync()?;
            if step.writable_len > 0 {
                break;
            }
            if step.state & (state::MAY_SEND | state::CONNECTING) == 0 {
                return Err(self.flow.failure());
            }
            self.flow.network.wait(0);
        }
        Ok(())
    }

    /// Writes all of `data` into the send buffer, and sends it.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn write_all(&mut self, mut data: &[u8]) -> Result<(), Failure> {
        while !data.is_empty() {
            self.wait_writable()?;
            let len = self.write_in_place(|room| {
                let len = room.len().min(data.len());
                room[..len].copy_from_slice(&data[..len]);
                len
            });
            data = &data[len..];
        }
        self.flow.sync()?;
        Ok(())
    }

    /// Waits until the peer has acknowledged everything.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn flush(&mut self) -> Result<(), Failure> {
        while self.flow.sync()?.unsent > 0 {
            if self.flow.step.state & state::CLOSED != 0 {
                return Err(self.flow.failure());
            }
            self.flow.network.wait(0);
        }
        Ok(())
    }

    /// Ends the sending direction, behind what was written.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn shutdown(&mut self) -> Result<(), Failure> {
        self.flow.sync()?;
        Ok(self.flow.network.net.shutdown(self.flow.socket)?)
    }

    /// Ends the connection with a reset.
    pub fn cut(self) {
        self.flow.close(true);
        core::mem::forget(self);
    }
}

impl Drop for TcpStream<'_> {
    fn drop(&mut self) {
        if self.flow.written > 0 {
            let _ = self.flow.sync();
        }
        self.flow.close(false);
    }
}

/// A port with TCP connections to come. Dropped, it is closed.
#[derive(Debug)]
pub struct TcpListener<'n> {
    network: &'n Network,
    socket: SocketId,
}

impl<'n> TcpListener<'n> {
    /// Listens on a port.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn bind(network: &'n Network, port: u16, options: Options) -> Result<Self, Failure> {
        let socket = network.net.listen(options, port.into())?;
        Ok(Self { network, socket })
    }

    /// The socket.
    #[must_use]
    pub const fn socket(&self) -> SocketId {
        self.socket
    }

    /// Takes a connection, if there is one. Does not wait.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn try_accept(&self) -> Result<Option<(TcpStream<'n>, Endpoint)>, Failure> {
        match self.network.net.accept(self.socket) {
            Ok(Accepted { socket, peer }) => Ok(Some((TcpStream { flow: Flow::new(self.network, socket)? }, peer))),
            Err(Error::Server(NetError::WouldBlock)) => Ok(None),
            Err(Error::Server(NetError::BadSocket)) => Err(Failure::Stack),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn accept(&self) -> Result<(TcpStream<'n>, Endpoint), Failure> {
        loop {
            if let Some(connection) = self.try_accept()? {
                return Ok(connection);
            }
            self.network.wait(0);
        }
    }
}

impl Drop for TcpListener<'_> {
    fn drop(&mut self) {
        let _ = self.network.net.close(self.socket, 0);
    }
}

/// A UDP socket. Dropped, it is closed.
#[derive(Debug)]
pub struct UdpSocket<'n> {
    flow: Flow<'n>,
    port: u16,
}

impl<'n> UdpSocket<'n> {
    /// Opens a socket on a port; 0 for any.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn bind(network: &'n Network, port: u16, options: Options) -> Result<Self, Failure> {
        let bound = network.net.bind(options, port.into())?;
        Ok(Self { flow: Flow::new(network, bound.socket)?, port: bound.port })
    }

    /// The socket.
    #[must_use]
    pub const fn socket(&self) -> SocketId {
        self.flow.socket
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Where the socket stood at the last call to the stack.
    #[must_use]
    pub const fn step(&self) -> &Step {
        &self.flow.step
    }

    /// Tells the stack what was read, sends what was written, and learns what is new. Does not wait.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn sync(&mut self) -> Result<&Step, Failure> {
        self.flow.sync()
    }

    /// Lets `f` look at the next datagram in place, and takes it off. `None` if all that the last `sync` showed were taken.
    pub fn next<R>(&mut self, f: impl FnOnce(Endpoint, &[u8]) -> R) -> Option<R> {
        let (offset, len) = self.flow.readable();
        if len == 0 {
            return None;
        }
        let (space, result) = self.flow.network.look(offset, len, |records| {
            let (header, rest) = DatagramHeader::read_from_prefix(records).ok()?;
            let payload = rest.get(..header.len.into())?;
            let peer = Endpoint::new(header.address, header.port);
            Some((datagram_space(payload.len()), f(peer, payload)))
        })?;
        self.flow.read = self.flow.step.readable_len.min(self.flow.read + space as u32);
        Some(result)
    }

    /// Waits for a datagram and lets `f` look at it in place.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn receive<R>(&mut self, f: impl FnOnce(Endpoint, &[u8]) -> R) -> Result<R, Failure> {
        while self.flow.readable().1 == 0 {
            if self.flow.sync()?.readable_len == 0 {
                self.flow.network.wait(0);
            }
        }
        self.next(f).ok_or(Failure::Stack)
    }

    /// Lets `f` write a datagram of `len` bytes in place, for the next `sync`. `None` if there is no room for it now.
    pub fn push<R>(&mut self, remote: Endpoint, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> Option<R> {
        let (offset, room) = self.flow.writable();
        let space = datagram_space(len);
        if len > MAX_DATAGRAM || space > room as usize {
            return None;
        }
        let header = DatagramHeader { address: remote.address, port: remote.port, len: len as u16 };
        let result = self.flow.network.fill(offset, space as u32, |record| {
            let (head, body) = record.split_at_mut_checked(DATAGRAM_HEADER)?;
            head.copy_from_slice(header.as_bytes());
            Some(f(body.get_mut(..len)?))
        })?;
        self.flow.written += space as u32;
        Some(result)
    }

    /// Sends a datagram, waiting for room.
    ///
    /// # Errors
    /// [`Failure`]; [`NetError::TooLong`] if it is longer than the send buffer takes.
    pub fn send(&mut self, remote: Endpoint, data: &[u8]) -> Result<(), Failure> {
        loop {
            if self.push(remote, data.len(), |room| room.copy_from_slice(data)).is_some() {
                self.flow.sync()?;
                return Ok(());
            }
            let step = *self.flow.sync()?;
            if datagram_space(data.len()) <= step.writable_len as usize {
                continue;
            }
            if step.unsent == 0 {
                return Err(Failure::Net(NetError::TooLong));
            }
            self.flow.network.wait(0);
        }
    }
}

impl Drop for UdpSocket<'_> {
    fn drop(&mut self) {
        self.flow.close(false);
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_stay_inside() {
        assert_eq!(part(100, 10, 20), (10, 30));
        assert_eq!(part(100, 90, 20), (90, 100));
        assert_eq!(part(100, 200, 20), (100, 100));
        assert_eq!(part(100, u32::MAX, u32::MAX), (100, 100));
    }
}
