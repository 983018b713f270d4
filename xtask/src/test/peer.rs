//! Peers of the board's network tests on this host: a TCP and UDP echo service, and a client.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

/// Starts echo services on one free port for both protocols; returns it. They run until this program ends.
///
/// # Errors
/// If no port is free for both.
pub fn serve(address: Ipv4Addr) -> Result<u16> {
    let (tcp, udp) = (0..50).find_map(|_| pair(address)).ok_or_else(|| miette!("no port of {address} is free"))?;
    let port = tcp.local_addr().into_diagnostic()?.port();
    std::thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            std::thread::spawn(move || echo(stream));
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok((len, from)) = udp.recv_from(&mut buffer) {
            let _ = udp.send_to(&buffer[..len], from);
        }
    });
    Ok(port)
}

fn pair(address: Ipv4Addr) -> Option<(TcpListener, UdpSocket)> {
    let tcp = TcpListener::bind((address, 0)).ok()?;
    let udp = UdpSocket::bind((address, tcp.local_addr().ok()?.port())).ok()?;
    Some((tcp, udp))
}

/// Sends everything back, and then the end of the stream.
fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
}

/// Connects to an echo service of the board, `times` one after the other, and checks what comes back.
///
/// The board may not listen yet: a connection that ends before a byte came is tried again until `patience` is over.
pub fn call(board: SocketAddr, times: usize, patience: Duration) -> JoinHandle<Result<()>> {
    std::thread::spawn(move || {
        let deadline = Instant::now() + patience;
        (0..times).try_for_each(|_| {
            loop {
                match call_once(board) {
                    Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
                    other => return other.wrap_err_with(|| format!("no echo from the board at {board}")),
                }
            }
        })
    })
}

fn call_once(board: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(board).into_diagnostic()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).into_diagnostic()?;
    let sent: Vec<u8> = (0..20_000u32).map(|number| (number * 7 + number / 256) as u8).collect();
    let mut writer = stream.try_clone().into_diagnostic()?;
    let copy = sent.clone();
    let writing = std::thread::spawn(move || writer.write_all(&copy).and_then(|()| writer.shutdown(Shutdown::Write)));
    let mut back = Vec::new();
    stream.read_to_end(&mut back).into_diagnostic()?;
    writing.join().map_err(|_| miette!("the writer failed"))?.into_diagnostic()?;
    if back == sent { Ok(()) } else { Err(miette!("{} bytes sent, {} came back, or others", sent.len(), back.len())) }
}

/// The address to serve at, so that a board that knows this host as `host` reaches it.
#[must_use]
pub fn serving_address(host: Ipv4Addr, behind_router: bool) -> Ipv4Addr {
    // The emulator's router leads to the loopback interface.
    if behind_router { Ipv4Addr::LOCALHOST } else { host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_content_with_the_service() {
        let port = serve(Ipv4Addr::LOCALHOST).expect("a port");
        let called = call((Ipv4Addr::LOCALHOST, port).into(), 3, Duration::from_secs(20));
        called.join().expect("ends").expect("echoes");
    }

    #[test]
    fn datagrams_come_back() {
        let port = serve(Ipv4Addr::LOCALHOST).expect("a port");
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        socket.send_to(b"hello", (Ipv4Addr::LOCALHOST, port)).expect("sent");
        let mut buffer = [0; 16];
        let (len, _) = socket.recv_from(&mut buffer).expect("an answer");
        assert_eq!(&buffer[..len], b"hello");
    }

    #[test]
    fn a_service_that_answers_wrongly_is_noticed() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.write_all(b"something else");
            }
        });
        assert!(call(address, 1, Duration::ZERO).join().expect("ends").is_err());
    }
}
