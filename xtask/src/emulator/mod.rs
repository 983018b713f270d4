//! An emulated board: start it, talk to its serial port and network, stop it.
//!
//! ```no_run
//! let machine = Machine::start(&launch, &artifacts.image, &Options::default())?;
//! machine.serial().expect("listening", Duration::from_secs(20))?;
//! let stream = TcpStream::connect(machine.endpoint(Protocol::Tcp, 7)?)?;
//! ```
//!
//! The emulator is a child process. It is ended when [`Machine`] is dropped, by its process id and no other.

mod command;
mod ports;
mod qmp;
mod serial;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};

pub use command::{Launch, SerialTo, arguments};
pub use ports::{Forward, PortChoice, Protocol, SERVICES, choose};
pub use serial::{Serial, SerialError};

use crate::cli::{Ip, MacAddress, MachineArgs, Net};
use qmp::Monitor;

/// How to run a machine, beside what the board says.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where the network goes.
    pub net: Net,
    /// The address that the image was built with; tells the emulator's router where to forward to.
    pub address: Option<Ip>,
    /// The gateway that the image was built with: the address that the emulator's router takes.
    pub gateway: Option<std::net::Ipv4Addr>,
    /// The MAC's address.
    pub mac: Option<MacAddress>,
    /// Where to write the frames on the wire.
    pub pcap: Option<PathBuf>,
    /// Tie the clock to the count of instructions.
    pub icount: bool,
    /// Leave the emulator when the board resets, instead of booting again.
    pub stop_on_reset: bool,
    /// Further arguments for the emulator, behind all others.
    pub extra: Vec<String>,
}

impl Options {
    /// Takes what the command line says.
    #[must_use]
    pub fn from_args(machine: &MachineArgs) -> Self {
        Self {
            net: machine.net.clone(),
            pcap: machine.pcap.clone(),
            icount: machine.icount,
            ..Self::default()
        }
    }
}

/// A running emulated board.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    serial: Serial,
    monitor: Monitor,
    forwards: Vec<Forward>,
    address: Option<Ip>,
    // Holds the monitor's socket; removed when dropped.
    _folder: tempfile::TempDir,
}

/// How long the emulator may take to answer on its monitor.
const MONITOR_TIMEOUT: Duration = Duration::from_secs(10);

impl Machine {
    /// Boots `image` on the board that `launch` describes.
    ///
    /// Free ports of the loopback interface are chosen for the services of the board (see [`SERVICES`]).
    ///
    /// # Errors
    /// If the emulator cannot be started, or ends at once; its own words are in the error.
    pub fn start(launch: &Launch, image: &Path, options: &Options) -> Result<Self> {
        // Between the choice of a free port and its use by the emulator somebody else may take it: then try again.
        let mut last = None;
        for _ in 0..3 {
            let forwards = if options.net == Net::User {
                choose(PortChoice::Free)?
            } else {
                Vec::new()
            };
            match Self::start_with(launch, image, options, forwards) {
                Err(error) if format!("{error:?}").contains("host forwarding") => {
                    last = Some(error)
                }
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| miette!("no free ports")))
    }

    fn start_with(
        launch: &Launch,
        image: &Path,
        options: &Options,
        forwards: Vec<Forward>,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("leasehold-")
            .tempdir()
            .into_diagnostic()
            .wrap_err("no temporary folder")?;
        let socket = folder.path().join("monitor");
        let mut command = std::process::Command::new(&launch.emulator);
        command.args(arguments(
            launch,
            image,
            options,
            &forwards,
            &SerialTo::Pipe {
                monitor: socket.clone(),
            },
        )?);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot start {}", launch.emulator))?;
        let serial = Serial::attach(&mut child)?;
        let mut machine = match Monitor::connect(&socket, MONITOR_TIMEOUT, || {
            child.try_wait().ok().flatten().is_some()
        }) {
            Ok(monitor) => Self {
                child,
                serial,
                monitor,
                forwards,
                address: options.address,
                _folder: folder,
            },
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                let said = serial.complaints();
                return Err(error.wrap_err(if said.is_empty() {
                    "the emulator did not start".to_owned()
                } else {
                    said
                }));
            }
        };
        machine.monitor.execute("qmp_capabilities", None)?;
        Ok(machine)
    }

    /// The board's serial port.
    pub const fn serial(&mut self) -> &mut Serial {
        &mut self.serial
    }

    /// Where this host reaches a port of the board.
    ///
    /// # Errors
    /// If the port is not forwarded, or, on a TAP interface, if the board's address is not known.
    pub fn endpoint(&self, protocol: Protocol, port: u16) -> Result<SocketAddr> {
        if let Some(forward) = self
            .forwards
            .iter()
            .find(|forward| forward.protocol == protocol && forward.guest == port)
        {
            return Ok(forward.host_address());
        }
        match self.address {
            Some(Ip::Static(address, _)) if self.forwards.is_empty() => {
                Ok(SocketAddr::new(IpAddr::V4(address), port))
            }
            _ if self.forwards.is_empty() => {
                bail!("the board's address is not known: give it with --ip A.B.C.D/N")
            }
            _ => bail!("{protocol} port {port} of the board is not forwarded"),
        }
    }

    /// The forwarded ports.
    #[must_use]
    pub fn forwards(&self) -> &[Forward] {
        &self.forwards
    }

    /// Executes a command of the emulator's monitor (`info network`, `set_link NAME off`, `system_reset`, …) and
    /// returns what it printed.
    ///
    /// # Errors
    /// If the emulator ended or does not answer.
    pub fn monitor(&mut self, command: &str) -> Result<String> {
        self.monitor.human(command)
    }

    /// Takes the cable of the MAC out (`false`) or puts it in again.
    ///
    /// # Errors
    /// As [`monitor`](Self::monitor).
    pub fn set_link(&mut self, up: bool) -> Result<()> {
        let said = self.monitor(&format!(
            "set_link {} {}",
            command::NETDEV,
            if up { "on" } else { "off" }
        ))?;
        if said.trim().is_empty() {
            Ok(())
        } else {
            Err(miette!("{}", said.trim()))
        }
    }

    /// The emulator's exit status, if it ended by itself within `timeout` (the board powered off).
    ///
    /// # Errors
    /// If the operating system cannot tell.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().into_diagnostic()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// What the emulator itself complained about, without the harmless warnings.
    #[must_use]
    pub fn complaints(&self) -> String {
        self.serial.complaints()
    }

    /// Switches the board off and waits for the emulator to end, so that a capture file is complete.
    ///
    /// # Errors
    /// If the emulator had to be killed.
    pub fn stop(mut self) -> Result<()> {
        if self.child.try_wait().into_diagnostic()?.is_some() {
            return Ok(());
        }
        // The answer may be cut off by the end of the emulator.
        let _ = self.monitor.execute("quit", None);
        match self.wait(Duration::from_secs(5))? {
            Some(_) => Ok(()),
            None => bail!("the emulator did not stop when told; killed it"),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
