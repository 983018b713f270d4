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

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use abi::config::Value;
use manifest::{Run, System};
use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};

pub use command::{NETDEV, SerialTo, arguments, host_address};
pub use ports::{Forward, PortChoice, Protocol, SERVICES, choose};
pub use serial::{Serial, SerialError, worth_showing};

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
    pub gateway: Option<Ipv4Addr>,
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
    /// What the command line says, for an image of `system`.
    #[must_use]
    pub fn new(machine: &MachineArgs, system: &System) -> Self {
        let network = Network::of(system);
        Self {
            net: machine.net.clone(),
            address: network.address,
            gateway: network.gateway,
            mac: network.mac,
            pcap: machine.pcap.clone(),
            icount: machine.icount,
            ..Self::default()
        }
    }
}

/// What an image says of its own place in the network, in the `config` tables of its tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Network {
    /// Own address; `None` if no task has one.
    pub address: Option<Ip>,
    /// Router.
    pub gateway: Option<Ipv4Addr>,
    /// Address of the MAC, if it is not left to the hardware.
    pub mac: Option<MacAddress>,
}

impl Network {
    /// Reads the values `address` (`dhcp`, or address and length), `gateway` and `mac`.
    #[must_use]
    pub fn of(system: &System) -> Self {
        let values: Vec<_> = system.tasks.iter().flat_map(|task| &task.values).collect();
        Self::read(&values)
    }

    fn read(values: &[&(String, Value)]) -> Self {
        let value = |name: &str| values.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let bytes = |name: &str| match value(name) {
            Some(Value::Bytes(bytes)) => &bytes[..],
            _ => &[],
        };
        Self {
            address: match (bytes("address"), value("address")) {
                (&[a, b, c, d, prefix], _) => Some(Ip::Static(Ipv4Addr::new(a, b, c, d), prefix)),
                (_, Some(Value::Text(text))) => text.parse().ok(),
                _ => None,
            },
            gateway: <[u8; 4]>::try_from(bytes("gateway")).ok().map(Ipv4Addr::from),
            mac: <[u8; 6]>::try_from(bytes("mac")).ok().map(MacAddress),
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
    options: Options,
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
    pub fn start(launch: &Run, image: &Path, options: &Options) -> Result<Self> {
        // Between the choice of a free port and its use by the emulator somebody else may take it: then try again.
        let mut last = None;
        for _ in 0..3 {
            let forwards = if options.net == Net::User { choose(PortChoice::Free)? } else { Vec::new() };
            match Self::start_with(launch, image, options, forwards) {
                Err(error) if format!("{error:?}").contains("host forwarding") => last = Some(error),
                other => return other,
            }
        }
        Err(last.unwrap_or_else(|| miette!("no free ports")))
    }

    fn start_with(launch: &Run, image: &Path, options: &Options, forwards: Vec<Forward>) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("leasehold-")
            .tempdir()
            .into_diagnostic()
            .wrap_err("no temporary folder")?;
        let socket = folder.path().join("monitor");
        let mut command = std::process::Command::new(&launch.emulator);
        command.args(arguments(launch, image, options, &forwards, &SerialTo::Pipe { monitor: socket.clone() })?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().into_diagnostic().wrap_err_with(|| format!("cannot start {}", launch.emulator))?;
        let serial = Serial::attach(&mut child)?;
        let mut machine = match Monitor::connect(&socket, MONITOR_TIMEOUT, || child.try_wait().ok().flatten().is_some())
        {
            Ok(monitor) => Self { child, serial, monitor, forwards, options: options.clone(), _folder: folder },
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
        if let Some(forward) =
            self.forwards.iter().find(|forward| forward.protocol == protocol && forward.guest == port)
        {
            return Ok(forward.host_address());
        }
        match self.options.address {
            Some(Ip::Static(address, _)) if self.forwards.is_empty() => Ok(SocketAddr::new(IpAddr::V4(address), port)),
            _ if self.forwards.is_empty() => {
                bail!("the board's address is not known: give it with --ip A.B.C.D/N")
            }
            _ => bail!("{protocol} port {port} of the board is not forwarded"),
        }
    }

    /// The address by which the board reaches this host.
    ///
    /// # Errors
    /// If the board is on a TAP interface without an address.
    pub fn host(&self) -> Result<Ipv4Addr> {
        host_address(&self.options)
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
        let said = self.monitor(&format!("set_link {} {}", command::NETDEV, if up { "on" } else { "off" }))?;
        if said.trim().is_empty() { Ok(()) } else { Err(miette!("{}", said.trim())) }
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

    /// For tests: what the emulator itself complained about, without the harmless warnings.
    #[cfg(test)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble;
    use crate::link::Segment;

    /// A program for the zcu102 that greets with `>`, echoes what it receives, and powers off on `q`.
    const ECHO: [u32; 15] = [
        0xd2bf_e000, // mov  x0, #0xff000000   UART0
        0x5280_0281, // mov  w1, #0x14         enable both directions
        0xb900_0001, // str  w1, [x0]
        0x5280_07c1, // mov  w1, #'>'
        0xb900_3001, // str  w1, [x0, #0x30]   FIFO
        0xb940_2c02, // ldr  w2, [x0, #0x2c]   status
        0x370f_ffe2, // tbnz w2, #1, .-4       nothing received
        0xb940_3001, // ldr  w1, [x0, #0x30]
        0xb900_3001, // str  w1, [x0, #0x30]
        0x7101_c43f, // cmp  w1, #'q'
        0x54ff_ff61, // b.ne .-20
        0x5280_0100, // mov  w0, #8            PSCI SYSTEM_OFF
        0x72b0_8000, // movk w0, #0x8400, lsl #16
        0xd400_0003, // smc  #0
        0x1400_0000, // b    .
    ];

    fn boot(folder: &Path, options: &Options) -> Machine {
        let data: Vec<u8> = ECHO.iter().flat_map(|word| word.to_le_bytes()).collect();
        let memory = data.len() as u64;
        let image = folder.join("image.elf");
        let elf =
            assemble::elf(&[Segment { address: 0x20_0000, data, memory, flags: 5 }], 0x20_0000).expect("an ELF file");
        std::fs::write(&image, elf).expect("writable");
        let args = ["-M", "xlnx-zcu102", "-m", "512M", "-audio", "none"].map(str::to_owned).to_vec();
        let launch = Run { emulator: "qemu-system-aarch64".to_owned(), args, nic: 3, serial: 0 };
        Machine::start(&launch, &image, options).expect("boots")
    }

    #[test]
    fn the_place_in_the_network_is_read_from_the_configuration() {
        let bytes = |name: &str, bytes: &[u8]| (name.to_owned(), Value::Bytes(bytes.iter().copied().collect()));
        let fixed = [
            bytes("address", &[192, 168, 7, 2, 24]),
            bytes("gateway", &[192, 168, 7, 1]),
            bytes("mac", &[2, 0, 0, 0, 0, 1]),
        ];
        let fixed = Network::read(&fixed.iter().collect::<Vec<_>>());
        assert_eq!(fixed.address, Some(Ip::Static(Ipv4Addr::new(192, 168, 7, 2), 24)));
        assert_eq!(fixed.gateway, Some(Ipv4Addr::new(192, 168, 7, 1)));
        assert_eq!(fixed.mac, Some(MacAddress([2, 0, 0, 0, 0, 1])));
        let asked = [("address".to_owned(), Value::Text("dhcp".try_into().expect("short")))];
        let asked = Network::read(&asked.iter().collect::<Vec<_>>());
        assert_eq!(asked, Network { address: Some(Ip::Dhcp), gateway: None, mac: None });
        assert_eq!(Network::read(&[]), Network::default());
    }

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn an_image_boots_and_its_serial_port_and_monitor_answer() {
        let folder = tempfile::tempdir().expect("folder");
        let pcap = folder.path().join("a,b.pcap");
        let mut machine =
            boot(folder.path(), &Options { icount: true, pcap: Some(pcap.clone()), ..Options::default() });
        machine.serial().expect(">", PATIENCE).expect("greets");
        machine.serial().write(b"hello.").expect("takes bytes");
        assert_eq!(machine.serial().expect(".", PATIENCE).expect("echoes"), "hello.");
        let network = machine.monitor("info network").expect("answers");
        assert!(network.contains(command::NETDEV), "{network}");
        machine.set_link(false).expect("unplugs");
        assert!(machine.endpoint(Protocol::Udp, 5002).is_err());
        assert!(machine.endpoint(Protocol::Tcp, 5002).is_ok());
        assert_eq!(machine.host().expect("known"), Ipv4Addr::new(10, 0, 2, 2));
        assert_eq!(machine.complaints(), "");
        machine.stop().expect("ends when told");
        assert!(pcap.is_file());
    }

    #[test]
    fn a_board_that_powers_off_ends_the_emulator() {
        let folder = tempfile::tempdir().expect("folder");
        let mut machine = boot(folder.path(), &Options::default());
        machine.serial().expect(">", PATIENCE).expect("greets");
        assert_eq!(machine.wait(Duration::ZERO).expect("known"), None);
        machine.serial().write(b"q").expect("takes bytes");
        assert!(machine.wait(PATIENCE).expect("known").expect("ended").success());
        assert!(matches!(machine.serial().expect("more", PATIENCE), Err(SerialError::Ended(_))));
    }

    #[test]
    fn a_dropped_machine_is_gone() {
        let folder = tempfile::tempdir().expect("folder");
        let machine = boot(folder.path(), &Options::default());
        let process = format!("/proc/{}", machine.child.id());
        assert!(Path::new(&process).exists());
        drop(machine);
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn an_emulator_that_refuses_is_quoted() {
        let launch = Run {
            emulator: "qemu-system-aarch64".to_owned(),
            args: vec!["-M".to_owned(), "no-such-board".to_owned()],
            nic: 0,
            serial: 0,
        };
        let error = Machine::start(&launch, Path::new("image.elf"), &Options::default()).expect_err("no such board");
        assert!(format!("{error:?}").contains("no-such-board"), "{error:?}");
    }
}
