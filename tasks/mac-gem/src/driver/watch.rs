//! What the driver watches without being asked: link, receiver, transmitter, and frames that were lost sight of.

use userlib::FrameList;

use super::{Driver, Kernel, Mac, VAIN_INTERRUPTS};
use crate::phy::Mdio;
use crate::ring::{Words, free_frame};

/// Ticks ([`Driver::tick`]) per look at the link.
const LINK_TICKS: u8 = 5;
/// Ticks in which frames were missed, with none received in between, after which the receiver counts as hung
/// (AMD answer record 52028).
const HANG_TICKS: u8 = 2;
/// Ticks without progress after which the transmitter is restarted.
const TX_STUCK_TICKS: u8 = 10;

impl<W: Words, K: Kernel, M: Mac + Mdio> Driver<W, K, M> {
    /// After an error: all frames out of the ring, MAC and driver begin at descriptor 0 again.
    #[cold]
    pub(super) fn restart_transmitter(&mut self) {
        self.mac.stop_transmitter();
        let (kernel, free, stats) = (&mut self.kernel, &mut self.free, &mut self.stats);
        let unsent = self.tx.abort(|handle| match kernel.complete(&[free_frame(handle)]) {
            Ok(()) => free.push(handle),
            Err(_) => stats.stale += 1,
        });
        self.stats.tx_errors += unsent as u64;
        self.stats.tx_restarts += 1;
        self.mac.start_transmitter(self.tx.address());
    }

    /// For a receiver that hangs or met an error: MAC and driver begin at descriptor 0 again.
    #[cold]
    pub(super) fn restart_receiver(&mut self) {
        self.mac.stop_receiver();
        self.stats.rx_lost += self.rx.rewind(&self.pool) as u64;
        self.stats.rx_restarts += 1;
        self.mac.start_receiver(self.rx.address());
    }

    /// Work of each tenth of a second. Returns true if the stack should be told that something changed.
    pub fn tick(&mut self) -> bool {
        self.watch_receiver();
        self.watch_transmitter();
        let mut tell = core::mem::take(&mut self.refused);
        if self.vain >= VAIN_INTERRUPTS && self.masked {
            self.unmask();
            tell |= self.has_news();
        }
        self.vain = 0;
        self.reclaim_sent();
        tell |= self.recount_frames();
        self.ticks += 1;
        if self.ticks < LINK_TICKS {
            return tell;
        }
        self.ticks = 0;
        self.watch_link() || tell
    }

    /// Looks at the link. Returns true if it changed.
    pub(super) fn watch_link(&mut self) -> bool {
        if !self.phy.poll(&mut self.mac) {
            return false;
        }
        self.stats.link_changes += 1;
        if let Some(link) = self.phy.link() {
            self.mac.set_link(link);
        }
        true
    }

    /// Restarts the receiver if it takes nothing though it has buffers and frames go by. A line that is merely idle has no errors.
    fn watch_receiver(&mut self) {
        let counts = self.mac.take_counts();
        self.stats.mac.add(&counts);
        if counts.received > 0 || !self.rx.has_free_buffer() {
            self.failed_ticks = 0;
        } else if counts.no_buffer + counts.overruns > 0 {
            self.failed_ticks += 1;
        }
        if self.failed_ticks >= HANG_TICKS {
            self.failed_ticks = 0;
            self.restart_receiver();
        }
    }

    /// Rings the doorbell again for frames that wait, and restarts a transmitter that does not move.
    fn watch_transmitter(&mut self) {
        let moved = self.stats.tx_frames != self.sent_seen || self.tx.has_finished();
        self.sent_seen = self.stats.tx_frames;
        if self.link().is_none() || !self.tx.is_pending() {
            self.stuck_ticks = 0;
            return;
        }
        self.stuck_ticks = if moved { 0 } else { self.stuck_ticks + 1 };
        if self.stuck_ticks >= TX_STUCK_TICKS {
            self.stuck_ticks = 0;
            self.restart_transmitter();
        } else {
            self.mac.kick(true);
        }
    }

    /// Takes back what was sent since the last exchange: while nothing else happens, nobody else does.
    fn reclaim_sent(&mut self) {
        while self.tx.has_finished() {
            let mut list = FrameList::new();
            let sent = self.tx.reclaim(&mut list);
            self.stats.tx_frames += sent.frames as u64;
            self.stats.tx_errors += sent.errors as u64;
            if self.kernel.complete(list.as_slice()).is_err() {
                self.complete_each(&mut list);
            }
            for frame in list.as_slice() {
                self.free.push(frame.handle);
            }
        }
    }

    /// Frames of a task that died have come back. Returns true if the stack should be told.
    pub fn frames_returned(&mut self) -> bool {
        self.recount = true;
        self.recount_frames()
    }

    /// Counts the free frames anew if some may have been lost sight of, and fills the receive ring from them: a ring that
    /// ran dry brings no interrupt and so no exchange. Returns true if the stack waits for free frames and there are some.
    fn recount_frames(&mut self) -> bool {
        let short = self.needs_refill() || self.tx_starved;
        if self.recount || short && self.free.is_empty() {
            // Without a pool there are no frames to find.
            let _ = self.find_frames();
        }
        let mut filled = false;
        while self.top_up() {
            filled = true;
        }
        if filled {
            self.rx.release();
            self.mac.kick(false);
        }
        self.tx_starved && !self.free.is_empty()
    }
}
