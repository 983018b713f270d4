//! Peers of the board on this host: real sockets, through the emulator's network. Every byte that comes back is checked.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};

/// A transfer that makes no progress for so long has failed.
const STALL: Duration = Duration::from_secs(60);
const BUFFER: usize = 64 << 10;
/// Before an echo is asked for the board comes to rest, so that each pays for all of its wake-ups, however busy this host is.
pub const REST: Duration = Duration::from_millis(1);

/// ttcp's pattern: the printable characters of ASCII, over and over. A byte is known by its place.
#[must_use]
pub fn pattern(place: u64) -> u8 {
    b' ' + (place % 95) as u8
}

/// A buffer of the pattern that can be sent again and again: a whole number of periods.
fn pattern_buffer() -> Vec<u8> {
    (0..(BUFFER / 95 * 95) as u64).map(pattern).collect()
}

/// Bytes that look like noise, the same for the same seed.
fn noise(seed: u64, to: &mut [u8]) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for chunk in to.chunks_mut(8) {
        // Marsaglia's xorshift.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

fn connect(to: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, STALL).into_diagnostic().wrap_err("cannot connect to the board")?;
    stream.set_read_timeout(Some(STALL)).into_diagnostic()?;
    stream.set_write_timeout(Some(STALL)).into_diagnostic()?;
    Ok(stream)
}

/// Sends `count` bytes to a sink, and waits until the board has taken them all and closed.
///
/// # Errors
/// If the connection breaks or stalls.
pub fn send(to: SocketAddr, count: u64, mut progress: impl FnMut(u64)) -> Result<()> {
    let mut stream = connect(to)?;
    let buffer = pattern_buffer();
    let mut sent = 0;
    while sent < count {
        let piece = usize::try_from(count - sent).unwrap_or(usize::MAX).min(buffer.len());
        stream
            .write_all(&buffer[..piece])
            .into_diagnostic()
            .wrap_err_with(|| format!("the board took no more after {sent} bytes"))?;
        sent += piece as u64;
        progress(sent);
    }
    stream.shutdown(Shutdown::Write).into_diagnostic()?;
    match stream.read(&mut [0; 1]) {
        Ok(0) => Ok(()),
        Ok(_) => bail!("the sink sent something back"),
        Err(error) => Err(error).into_diagnostic().wrap_err("the board did not close the connection"),
    }
}

/// Reads to the end of a stream and checks it against `expected`; returns the bytes.
fn check(
    stream: &mut impl Read,
    limit: u64,
    expected: impl Fn(u64) -> u8,
    mut progress: impl FnMut(u64),
) -> Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut place = 0;
    while place < limit {
        let count = stream
            .read(&mut buffer)
            .into_diagnostic()
            .wrap_err_with(|| format!("nothing came any more after {place} bytes"))?;
        if count == 0 {
            break;
        }
        let count = usize::try_from(limit - place).unwrap_or(usize::MAX).min(count);
        if let Some(wrong) = (0..count).find(|&at| buffer[at] != expected(place + at as u64)) {
            bail!("byte {} of the stream is wrong", place + wrong as u64);
        }
        place += count as u64;
        progress(place);
    }
    Ok(place)
}

/// Asks a source for `count` bytes and checks each of them.
///
/// # Errors
/// If the connection breaks or stalls, or a byte is wrong, missing or too many.
pub fn pull(from: SocketAddr, count: u64, progress: impl FnMut(u64)) -> Result<()> {
    let mut stream = connect(from)?;
    writeln!(stream, "{count}").into_diagnostic()?;
    let came = check(&mut stream, u64::MAX, pattern, progress)?;
    if came == count { Ok(()) } else { Err(miette!("{came} bytes came instead of {count}")) }
}

/// Sends `count` bytes of noise to an echo service and checks that the same come back.
///
/// # Errors
/// As [`pull`].
pub fn echo(to: SocketAddr, count: usize, progress: impl FnMut(u64)) -> Result<()> {
    let mut stream = connect(to)?;
    let mut data = vec![0; count];
    noise(count as u64, &mut data);
    let mut writer = stream.try_clone().into_diagnostic()?;
    let came = std::thread::scope(|scope| {
        let data = &data;
        let sender = scope.spawn(move || writer.write_all(data).and_then(|()| writer.shutdown(Shutdown::Write)));
        let came = check(
            &mut stream,
            u64::MAX,
            |place| usize::try_from(place).ok().and_then(|at| data.get(at)).copied().unwrap_or_default(),
            progress,
        );
        let sent = sender.join().map_err(|_| miette!("the sender failed"))?;
        sent.into_diagnostic().wrap_err("the board took no more")?;
        came
    })?;
    if came == count as u64 { Ok(()) } else { Err(miette!("{came} bytes came back out of {count}")) }
}

/// A byte of chargen's stream (RFC 864): lines of 72 characters, each starting one further than the last.
fn chargen_byte(place: u64) -> u8 {
    match (place / 74, place % 74) {
        (_, 72) => b'\r',
        (_, 73) => b'\n',
        (line, column) => pattern(line + column),
    }
}

/// Reads `count` bytes of chargen and checks them.
///
/// # Errors
/// As [`pull`].
pub fn chargen(from: SocketAddr, count: u64, progress: impl FnMut(u64)) -> Result<()> {
    let mut stream = connect(from)?;
    let came = check(&mut stream, count, chargen_byte, progress)?;
    if came == count { Ok(()) } else { Err(miette!("chargen ended after {came} bytes")) }
}

/// Exchanges `rounds` datagrams of `size` bytes with an echo service, one at a time, and checks each.
///
/// # Errors
/// If one does not come back in time, or comes back changed.
pub fn udp_echo(to: SocketAddr, size: usize, rounds: u64, mut progress: impl FnMut(u64)) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .or_else(|_| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))
        .into_diagnostic()?;
    socket.connect(to).into_diagnostic()?;
    socket.set_read_timeout(Some(Duration::from_secs(10))).into_diagnostic()?;
    let (mut data, mut buffer) = (vec![0; size], vec![0; 65_536]);
    for round in 0..rounds {
        noise(round + 1, &mut data);
        std::thread::sleep(REST);
        socket.send(&data).into_diagnostic()?;
        let came = socket
            .recv(&mut buffer)
            .into_diagnostic()
            .wrap_err_with(|| format!("datagram {round} did not come back"))?;
        if buffer[..came] != data {
            bail!("datagram {round} came back changed");
        }
        progress(round + 1);
    }
    Ok(())
}

/// What a [`UdpSink`] received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Datagrams, marks of ttcp left out.
    pub datagrams: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Datagrams that do not hold ttcp's pattern.
    pub wrong: u64,
}

/// Receives datagrams until ttcp's end mark, or two seconds of silence.
#[derive(Debug)]
pub struct UdpSink {
    /// Its port.
    pub port: u16,
    thread: JoinHandle<Received>,
}

impl UdpSink {
    /// Opens a port on `address`.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(address: Ipv4Addr) -> Result<Self> {
        let socket = UdpSocket::bind((address, 0)).into_diagnostic().wrap_err("no port for datagrams of the board")?;
        let port = socket.local_addr().into_diagnostic()?.port();
        socket.set_read_timeout(Some(Duration::from_secs(2))).into_diagnostic()?;
        let thread = std::thread::spawn(move || {
            let mut received = Received::default();
            let mut buffer = vec![0; 65_536];
            let start = Instant::now();
            // Before the first one, more patience.
            loop {
                match socket.recv(&mut buffer) {
                    Ok(count @ 0..=4) => {
                        if received.datagrams > 0 && count > 0 {
                            return received;
                        }
                    }
                    Ok(count) => {
                        received.datagrams += 1;
                        received.bytes += count as u64;
                        let good = buffer[..count].iter().zip(0..).all(|(&byte, place)| byte == pattern(place));
                        received.wrong += u64::from(!good);
                    }
                    Err(_) if received.datagrams > 0 || start.elapsed() > STALL => return received,
                    Err(_) => {}
                }
            }
        });
        Ok(Self { port, thread })
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// If the receiver failed.
    pub fn finish(self) -> Result<Received> {
        self.thread.join().map_err(|_| miette!("the receiver failed"))
    }
}

/// Takes one connection of the board and checks what it sends: buffers of `length` bytes that start with the pattern's first byte each.
#[derive(Debug)]
pub struct TcpSink {
    /// Its port.
    pub port: u16,
    thread: JoinHandle<Result<u64>>,
}

impl TcpSink {
    /// Listens on `address`.
    ///
    /// # Errors
    /// If no port is free.
    pub fn open(address: Ipv4Addr, length: u64) -> Result<Self> {
        let listener =
            TcpListener::bind((address, 0)).into_diagnostic().wrap_err("no port for a stream of the board")?;
        let port = listener.local_addr().into_diagnostic()?.port();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().into_diagnostic()?;
            stream.set_read_timeout(Some(STALL)).into_diagnostic()?;
            check(&mut stream, u64::MAX, |place| pattern(place % length), |_| {})
        });
        Ok(Self { port, thread })
    }

    /// Waits for the end of the stream; returns its bytes.
    ///
    /// # Errors
    /// If a byte is wrong, or nothing came.
    pub fn finish(self) -> Result<u64> {
        self.thread.join().map_err(|_| miette!("the receiver failed"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A peer that answers one connection with `answer`, whatever it gets.
    fn serve(answer: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("port");
        let address = listener.local_addr().expect("address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("client");
            stream.write_all(&answer).expect("client reads");
            let _ = stream.shutdown(Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        address
    }

    #[test]
    fn a_source_is_checked_byte_by_byte() {
        let good: Vec<u8> = (0..200_000).map(pattern).collect();
        pull(serve(good.clone()), 200_000, |_| {}).expect("good");
        let error = pull(serve(good.clone()), 200_001, |_| {}).expect_err("short").to_string();
        assert!(error.contains("200000 bytes came"), "{error}");
        let mut bad = good;
        bad[123_456] ^= 1;
        let error = pull(serve(bad), 200_000, |_| {}).expect_err("wrong").to_string();
        assert!(error.contains("byte 123456"), "{error}");
    }

    #[test]
    fn an_echo_that_changes_or_swallows_bytes_is_noticed() {
        let mut data = vec![0; 5000];
        noise(5000, &mut data);
        echo(serve(data.clone()), 5000, |_| {}).expect("good");
        assert!(echo(serve(data[..4999].to_vec()), 5000, |_| {}).is_err());
        data[17] ^= 0x80;
        assert!(echo(serve(data), 5000, |_| {}).is_err());
    }

    #[test]
    fn sinks_of_ours_count_and_check() {
        let sink = UdpSink::open(Ipv4Addr::LOCALHOST).expect("port");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("port");
        let to = (Ipv4Addr::LOCALHOST, sink.port);
        let data: Vec<u8> = (0..100).map(pattern).collect();
        for payload in [&data[..4], &data, &data, &[0; 10], &data[..4]] {
            socket.send_to(payload, to).expect("sent");
        }
        assert_eq!(sink.finish().expect("ended"), Received { datagrams: 3, bytes: 210, wrong: 1 });
        let sink = TcpSink::open(Ipv4Addr::LOCALHOST, 100).expect("port");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, sink.port)).expect("listens");
        stream.write_all(&[&data[..], &data].concat()).expect("reads");
        drop(stream);
        assert_eq!(sink.finish().expect("right"), 200);
    }

    #[test]
    fn chargen_has_the_lines_of_the_rfc() {
        let text: Vec<u8> = (0..150).map(chargen_byte).collect();
        assert!(text.starts_with(b" !\"#$%&'()*+"));
        assert_eq!(&text[70..78], b"fg\r\n!\"#$");
    }
}
