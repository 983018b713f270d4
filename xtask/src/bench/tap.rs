//! A place on the board's wire: two sockets of the emulator, one that takes frames for the board, one that gives a copy of what it sends.
//!
//! Each frame has its length in front, four bytes in network order. The emulator waits until the copies are read, so it makes none
//! unless [`COPIES`] is switched on.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, bail};

/// Longest frame that makes sense.
const LONGEST: usize = 64 << 10;

/// The object of the emulator that makes copies; its property `status` is `off` at first.
pub const COPIES: &str = "/objects/wire1";

/// Arguments that give the emulator these sockets, on the network with this name.
#[must_use]
pub fn arguments(folder: &Path, network: &str) -> Vec<String> {
    let socket = |name: &str| format!("socket,id={name},path={},server=on,wait=off", path(folder, name).display());
    let args = [
        "-chardev",
        &socket("wire-in"),
        "-chardev",
        &socket("wire-out"),
        "-object",
        &format!("filter-redirector,id=wire0,netdev={network},queue=tx,indev=wire-in"),
        "-object",
        &format!("filter-mirror,id=wire1,netdev={network},queue=rx,outdev=wire-out,status=off"),
    ];
    args.map(str::to_owned).to_vec()
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}

/// The connections.
#[derive(Debug)]
pub struct Tap {
    to_board: UnixStream,
    from_board: UnixStream,
    received: Vec<u8>,
}

impl Tap {
    /// Connects to a running emulator.
    ///
    /// # Errors
    /// If it has no such sockets.
    pub fn connect(folder: &Path) -> Result<Self> {
        let connect =
            |name| UnixStream::connect(path(folder, name)).into_diagnostic().wrap_err("no place on the board's wire");
        Ok(Self { to_board: connect("wire-in")?, from_board: connect("wire-out")?, received: Vec::new() })
    }

    /// Sends a frame to the board.
    ///
    /// # Errors
    /// If the emulator has ended.
    pub fn send(&mut self, frame: &[u8]) -> Result<()> {
        let bytes = [&(frame.len() as u32).to_be_bytes(), frame].concat();
        self.to_board.write_all(&bytes).into_diagnostic().wrap_err("the emulator takes no frames")
    }

    /// The next frame that the board sends, if one comes before `deadline`.
    ///
    /// # Errors
    /// If the emulator has ended, or sends nonsense.
    pub fn receive(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>> {
        let mut buffer = [0; 16 << 10];
        loop {
            if let Some(frame) = self.first()? {
                return Ok(Some(frame));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.from_board.set_read_timeout(Some(left.max(Duration::from_millis(1)))).into_diagnostic()?;
            match self.from_board.read(&mut buffer) {
                Ok(0) => bail!("the emulator ended"),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(error).into_diagnostic().wrap_err("the emulator gives no frames"),
            }
        }
    }

    fn first(&mut self) -> Result<Option<Vec<u8>>> {
        let Some((len, rest)) = self.received.split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_be_bytes(*len) as usize;
        if len > LONGEST {
            bail!("the emulator sent a frame of {len} bytes");
        }
        let Some(frame) = rest.get(..len).map(<[u8]>::to_vec) else { return Ok(None) };
        self.received.drain(..4 + len);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_apart_however_they_come() {
        let (mut there, from_board) = UnixStream::pair().expect("sockets");
        let (to_board, mut here) = UnixStream::pair().expect("sockets");
        let mut tap = Tap { to_board, from_board, received: Vec::new() };
        tap.send(b"abc").expect("sent");
        let mut sent = [0; 7];
        here.read_exact(&mut sent).expect("came");
        assert_eq!(&sent, b"\0\0\0\x03abc");
        there.write_all(b"\0\0\0\x01x\0\0\0\x02").expect("sent");
        let soon = || Instant::now() + Duration::from_millis(20);
        assert_eq!(tap.receive(soon()).expect("works"), Some(b"x".to_vec()));
        assert_eq!(tap.receive(soon()).expect("works"), None);
        there.write_all(b"yz\xff\xff\xff\xff").expect("sent");
        assert_eq!(tap.receive(soon()).expect("works"), Some(b"yz".to_vec()));
        assert!(tap.receive(soon()).is_err());
        drop(there);
    }
}
