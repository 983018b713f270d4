//! Echo requests to the board, from a host on its wire.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use miette::{Result, bail};

use super::peers::REST;
use super::tap::Tap;
use super::wire::{Host, Seen};

/// How long the board may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A host on the board's wire.
#[derive(Debug)]
pub struct Pinger {
    tap: Tap,
    host: Host,
}

impl Pinger {
    /// One beside `board`, with an address that is not among those that are `taken`.
    #[must_use]
    pub fn new(tap: Tap, board: Ipv4Addr, taken: &[Ipv4Addr]) -> Self {
        Self { tap, host: Host::new(neighbour(board, taken), board) }
    }

    /// Finds the board.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn find(&mut self) -> Result<()> {
        self.tap.send(&self.host.ask())?;
        let found = |seen: &Seen| matches!(seen, Seen::Board(_) | Seen::Asked(_));
        match self.wait(found)? {
            Some(_) => Ok(()),
            None => bail!("the board does not answer to ARP"),
        }
    }

    /// Sends `rounds` requests with `size` bytes of data, one at a time; checks each answer.
    ///
    /// # Errors
    /// If an answer does not come, or is wrong.
    pub fn run(&mut self, size: usize, rounds: u16, mut progress: impl FnMut(u64)) -> Result<()> {
        for round in 0..rounds {
            let data: Vec<u8> = (0..size).map(|at| (at as u8).wrapping_add(round as u8)).collect();
            std::thread::sleep(REST);
            for frame in self.host.echo(round, &data) {
                self.tap.send(&frame)?;
            }
            let ours = |seen: &Seen| matches!(seen, Seen::Echo(number, _) if *number == round);
            match self.wait(ours)? {
                Some(Seen::Echo(_, came)) if came == data => progress(u64::from(round) + 1),
                Some(_) => bail!("the answer to echo request {round} has other data"),
                None => bail!("no answer to echo request {round}"),
            }
        }
        Ok(())
    }

    /// Waits for a frame that means what is wanted; answers the board's questions meanwhile.
    fn wait(&mut self, wanted: impl Fn(&Seen) -> bool) -> Result<Option<Seen>> {
        let deadline = Instant::now() + PATIENCE;
        while let Some(frame) = self.tap.receive(deadline)? {
            let seen = self.host.take(&frame);
            if let Seen::Asked(answer) = &seen {
                self.tap.send(answer)?;
            }
            if wanted(&seen) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }
}

/// An address beside the board's that nobody has.
fn neighbour(board: Ipv4Addr, taken: &[Ipv4Addr]) -> Ipv4Addr {
    let [a, b, c, _] = board.octets();
    let candidates = (77..=99).map(|last| Ipv4Addr::new(a, b, c, last));
    candidates.into_iter().find(|address| *address != board && !taken.contains(address)).unwrap_or(board)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbour_has_an_address_of_its_own() {
        let address = |last| Ipv4Addr::new(10, 0, 2, last);
        assert_eq!(neighbour(address(15), &[]), address(77));
        assert_eq!(neighbour(address(77), &[address(78)]), address(79));
    }
}
