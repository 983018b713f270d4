//! The command `run`: a board with its console on the terminal.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr, bail};

use crate::cli::{Ip, Net};
use crate::emulator::{
    Forward, Options, PortChoice, Protocol, SERVICES, SerialTo, arguments, choose, host_address, worth_showing,
};
use crate::ui::say;

/// Boots `image` and connects the terminal to its serial port, until the user leaves or the board powers off.
///
/// # Errors
/// If the emulator cannot be started or fails.
pub fn run(launch: &manifest::Run, image: &Path, options: &Options) -> Result<()> {
    let forwards = if options.net == Net::User { choose(PortChoice::Fixed)? } else { Vec::new() };
    let mut command = Command::new(&launch.emulator);
    command.args(arguments(launch, image, options, &forwards, &SerialTo::Terminal)?).stderr(Stdio::piped());
    say(reachable(options, &forwards));
    say("Leave with Ctrl-A x. Ctrl-C goes to the board.");
    let mut child = command.spawn().into_diagnostic().wrap_err_with(|| format!("cannot start {}", launch.emulator))?;
    // The terminal is in raw mode now: a new line needs its carriage return.
    let end = if std::io::stdin().is_terminal() { "\r\n" } else { "\n" };
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines().map_while(std::io::Result::ok).filter(|line| worth_showing(line)) {
            eprint!("{line}{end}");
        }
    }
    let status = child.wait().into_diagnostic()?;
    if !status.success() {
        bail!("the emulator ended with {status}");
    }
    Ok(())
}

/// How this host reaches the board, for people.
fn reachable(options: &Options, forwards: &[Forward]) -> String {
    match (&options.net, options.address) {
        (Net::Tap(interface), Some(Ip::Static(address, _))) => {
            format!("The board has the address {address} on {interface}.")
        }
        (Net::Tap(interface), _) => format!("The board asks for an address on {interface}."),
        (Net::User, _) => {
            let mut text = String::from("Services of the board on this host:\n");
            for (guest, _, udp, what) in SERVICES {
                let Some(forward) =
                    forwards.iter().find(|forward| forward.guest == guest && forward.protocol == Protocol::Tcp)
                else {
                    continue;
                };
                let protocols = if udp { "tcp, udp" } else { "tcp" };
                text +=
                    &format!("  {:<16} -> port {guest:<5} {protocols:<9} {what}\n", forward.host_address().to_string());
            }
            if let Ok(host) = host_address(options) {
                text += &format!("The board reaches this host as {host}.");
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_board_is_told() {
        let forwards = [
            Forward { protocol: Protocol::Tcp, guest: 7, host: 10007 },
            Forward { protocol: Protocol::Udp, guest: 7, host: 10007 },
        ];
        let text = reachable(&Options::default(), &forwards);
        assert!(text.contains("127.0.0.1:10007  -> port 7     tcp, udp  echo\n"), "{text}");
        assert!(text.contains("10.0.2.2"), "{text}");
        let options = Options {
            net: Net::Tap("tap0".to_owned()),
            address: Some(Ip::Static([192, 168, 7, 2].into(), 24)),
            ..Options::default()
        };
        assert_eq!(reachable(&options, &[]), "The board has the address 192.168.7.2 on tap0.");
    }
}
