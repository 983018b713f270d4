//! iperf 2 as a peer that others have written.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use miette::{Result, WrapErr, bail};

use crate::process;

/// Sends a stream of `megabytes` to the board.
///
/// # Errors
/// If iperf fails or does not say that it sent them.
pub fn tcp(iperf: &Path, to: SocketAddr, megabytes: u32) -> Result<()> {
    let amount = format!("{megabytes}M");
    let said = run(iperf, to, &["-n", &amount, "-f", "m"])?;
    if !said.contains("MBytes") {
        bail!("iperf tells of no transfer:\n{said}");
    }
    Ok(())
}

/// Sends datagrams to the board for a second, and checks that the board's report comes and misses none.
///
/// # Errors
/// If iperf fails, gets no report, or one with losses.
pub fn udp(iperf: &Path, to: SocketAddr) -> Result<()> {
    let said = run(iperf, to, &["-u", "-b", "10m", "-t", "1"])?;
    match lost(&said) {
        Some((0, _)) => Ok(()),
        Some((lost, total)) => bail!("the board reports {lost} of {total} datagrams as lost"),
        None => bail!("iperf got no report from the board:\n{said}"),
    }
}

fn run(iperf: &Path, to: SocketAddr, options: &[&str]) -> Result<String> {
    let (host, port) = (to.ip().to_string(), to.port().to_string());
    process::output(Command::new(iperf).args(["-c", &host, "-p", &port]).args(options)).wrap_err("iperf failed")
}

/// Lost and sent datagrams, from a server's report.
fn lost(said: &str) -> Option<(u64, u64)> {
    let report = said.split("Server Report").nth(1)?;
    let (lost, total) = report.split(" ms ").nth(1)?.split_once('/')?;
    let total = total.trim_start().split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some((lost.trim().parse().ok()?, total.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_is_found() {
        let said = "[  1] Sent 855 datagrams\n[  1] Server Report:\n[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
                    [  1] 0.0000-0.6877 sec  1.20 MBytes  14.6 Mbits/sec   0.453 ms 3/ 853 (0.35%)\n";
        assert_eq!(lost(said), Some((3, 853)));
        assert_eq!(lost("[  1] Sent 855 datagrams\n"), None);
    }
}
