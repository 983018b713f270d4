//! The driver proper: what happens in an exchange, at an interrupt, and each tenth of a second.
//!
//! It knows the kernel and the MAC by two small traits only, so the same code runs on the host against a model of both.
//!
//! Interrupts: the kernel masks the MAC's interrupt when it delivers it. It stays masked while frames come in quick succession,
//! and is unmasked by an exchange that finds the ring dry after few or no frames. The answer of an exchange says which it
//! was: after `more`, the stack calls again without waiting for a notification; without it, one will come.

use abi::frame::Direction;
use abi::{FrameDesc, KernelError, MAX_FRAME_LIST};
use userlib::FrameList;

use crate::arm;
use crate::free::{FreeFrames, is_read};
use crate::phy::{Link, Mdio, Phy};
use crate::ring::{self, Pool, RxRing, TxRing, Words};
use crate::stats::{MacCounts, Stats};

mod watch;

/// Room for receive buffers that is left open before they are filled in one go: each `FrameArm` has its price.
const REFILL: usize = 16;
/// Received frames up to which an exchange that leaves the ring dry counts as light load.
const LIGHT: usize = 4;
/// Entries of a reply that received frames leave to free frames for sending, if those are asked for.
const TX_SHARE: usize = 8;

/// Interrupts per tick that may turn out to be for nothing before the interrupt is left masked until the next tick.
const VAIN_INTERRUPTS: u8 = 8;

bitflags::bitflags! {
    /// What the MAC reports, in the bits of its interrupt status register.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Events: u32 {
        /// A frame was received.
        const RECEIVED = 1 << 1;
        /// Data for a frame came too late.
        const TX_UNDERRUN = 1 << 4;
        /// Too many collisions, or a late one.
        const TX_COLLISIONS = 1 << 5;
        /// A frame could not be fetched.
        const TX_BUS_ERROR = 1 << 6;
        /// A frame was sent.
        const SENT = 1 << 7;
        /// Received data came too fast for the bus.
        const RX_OVERRUN = 1 << 10;
        /// The bus answered with an error, in either direction.
        const BUS_ERROR = 1 << 11;
    }
}

impl Events {
    /// After these the transmitter stands still and has forgotten its place.
    pub const TX_HALTED: Self =
        Self::TX_UNDERRUN.union(Self::TX_COLLISIONS).union(Self::TX_BUS_ERROR).union(Self::BUS_ERROR);
    /// What is enabled always. `SENT` comes and goes.
    pub const ALWAYS: Self = Self::TX_HALTED.union(Self::RECEIVED).union(Self::RX_OVERRUN);
}

/// What the driver asks of the MAC.
pub trait Mac {
    /// Tells the MAC to look at its rings: always the receive ring, with `transmit` also the transmit ring.
    ///
    /// In silicon the receiver finds new buffers by itself; QEMU's model does only at this register write.
    fn kick(&mut self, transmit: bool);
    /// Takes the events since the last call; this also takes the interrupt request away.
    fn take_events(&mut self) -> Events;
    /// Switches the interrupt for sent frames.
    fn watch_sent(&mut self, on: bool);
    /// Stops the receiver: from now on it touches neither ring nor buffers.
    fn stop_receiver(&mut self);
    /// Starts the receiver at descriptor 0 of the ring at this address.
    fn start_receiver(&mut self, ring: u32);
    /// Stops the transmitter.
    fn stop_transmitter(&mut self);
    /// Starts the transmitter at descriptor 0 of the ring at this address.
    fn start_transmitter(&mut self, ring: u32);
    /// Takes the counters since the last call.
    fn take_counts(&mut self) -> MacCounts;
    /// Sets speed and duplex.
    fn set_link(&mut self, link: Link);
}

/// What the driver asks of the kernel; see `userlib::frames`.
pub trait Kernel {
    /// Gives frames to the device.
    ///
    /// # Errors
    /// One bad entry refuses the list.
    fn arm(&mut self, list: &[FrameDesc], direction: Direction) -> Result<(), KernelError>;
    /// Takes frames back from the device.
    ///
    /// # Errors
    /// As [`arm`](Self::arm).
    fn complete(&mut self, list: &[FrameDesc]) -> Result<(), KernelError>;
    /// Lists frames that this task holds, from an index on.
    ///
    /// # Errors
    /// If there is no pool.
    fn list(&mut self, to: &mut [FrameDesc], from: usize) -> Result<(usize, Option<usize>), KernelError>;
    /// Unmasks the MAC's interrupt.
    fn enable_interrupt(&mut self);
}

/// What the stack wants of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Most received frames.
    pub rx: usize,
    /// Free frames for sending.
    pub tx: usize,
}

/// What the stack learns beside the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Received frames in the list; free ones follow.
    pub received: usize,
    /// Call again without waiting for a notification.
    pub more: bool,
}

/// Rings, free frames, and the rest of a running driver.
#[derive(Debug)]
pub struct Driver<W, K, M> {
    rx: RxRing<W>,
    tx: TxRing<W>,
    kernel: K,
    mac: M,
    phy: Phy,
    pool: Pool,
    /// Held by this task, and in no ring.
    free: FreeFrames,
    /// Frames on their way into a ring.
    batch: FrameList,
    stats: Stats,
    /// The kernel has delivered the interrupt and keeps it masked.
    masked: bool,
    /// The last answer said that the stack calls again without being told.
    polling: bool,
    /// Interrupts since the last tick that had nothing for the stack.
    vain: u8,
    /// The stack went away with fewer free frames than it asked for.
    tx_starved: bool,
    /// Frames are held that are in neither ring nor list.
    recount: bool,
    /// An answer did not reach the stack.
    refused: bool,
    ticks: u8,
    failed_ticks: u8,
    stuck_ticks: u8,
    sent_seen: u64,
}

impl<W: Words, K: Kernel, M: Mac + Mdio> Driver<W, K, M> {
    /// A driver over empty rings and a MAC that has been set up but not started.
    #[must_use]
    pub fn new(rx: RxRing<W>, tx: TxRing<W>, kernel: K, mac: M, phy: Phy, pool: Pool, free: FreeFrames) -> Self {
        Self {
            rx,
            tx,
            kernel,
            mac,
            phy,
            pool,
            free,
            batch: FrameList::new(),
            stats: Stats::default(),
            masked: true,
            polling: false,
            vain: 0,
            tx_starved: false,
            recount: false,
            refused: false,
            ticks: 0,
            failed_ticks: 0,
            stuck_ticks: 0,
            sent_seen: 0,
        }
    }

    /// Finds the frames that this task holds, fills the receive ring, looks for the link, and starts the MAC. Then the stack must be told:
    /// frames may have come in already.
    ///
    /// # Errors
    /// If the kernel knows no pool of this task.
    pub fn start(&mut self) -> Result<(), KernelError> {
        self.find_frames()?;
        while self.refill() > 0 {}
        self.watch_link();
        self.mac.start_receiver(self.rx.address());
        self.mac.start_transmitter(self.tx.address());
        self.unmask();
        Ok(())
    }

    /// Counters.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The link; `None` if it is down.
    pub const fn link(&self) -> Option<Link> {
        self.phy.link()
    }

    /// Frames that the stack may bring for sending.
    #[inline]
    #[must_use]
    pub const fn tx_room(&self) -> usize {
        self.tx.room()
    }

    /// Frames that the transmit ring holds.
    #[must_use]
    pub const fn tx_len(&self) -> usize {
        self.tx.len() - 1
    }

    /// Descriptors of the receive ring.
    #[must_use]
    pub const fn rx_len(&self) -> usize {
        self.rx.len()
    }

    /// Another instance of the stack, or a new caller: what was lent to the one before may have come back in silence.
    pub const fn new_caller(&mut self) {
        self.recount = true;
    }

    /// Frames that this task holds and that are in no ring.
    #[must_use]
    pub fn free_frames(&self) -> usize {
        self.free.len()
    }

    /// One exchange with the stack.
    ///
    /// `list` brings frames to send (marked `TX`) and used-up ones, and takes away received and free ones.
    #[inline]
    pub fn exchange(&mut self, list: &mut FrameList, ask: Ask) -> Answer {
        self.stats.exchanges += 1;
        self.sort_in(list);
        let received = self.collect(list, ask);
        let sending = self.send();
        if self.top_up() || sending {
            self.rx.release();
            self.mac.kick(sending);
        }
        self.hand_out(list, received, ask.tx);
        let more = self.settle(received);
        self.polling = more;
        Answer { received, more }
    }

    /// Sorts what the stack brings: frames to send into the batch, others to the free ones.
    #[inline]
    fn sort_in(&mut self, list: &mut FrameList) {
        self.batch.clear();
        if self.free.take_read(list.as_slice()) {
            for frame in list.as_slice().iter().filter(|frame| !is_read(frame)) {
                self.sort_other(frame);
            }
        }
        list.clear();
    }

    /// A frame to send goes into the batch, unless there is something wrong with it. Others come back as they went.
    #[inline]
    fn sort_other(&mut self, frame: &FrameDesc) {
        let to_send = frame.meta & ring::TX != 0;
        let len = usize::from(frame.len).wrapping_sub(usize::from(frame.offset));
        if to_send && (ring::MIN_TX_FRAME..=ring::MAX_FRAME).contains(&len) && self.batch.push(*frame).is_ok() {
            self.stats.tx_bytes += len as u64;
        } else {
            self.stats.tx_dropped += u64::from(to_send && frame.len != 0);
            self.free.push(frame.handle);
        }
    }

    /// Takes finished frames from both rings into `list`: received ones first, then sent ones. Returns how many were received.
    #[inline]
    fn collect(&mut self, list: &mut FrameList, ask: Ask) -> usize {
        let most = ask.rx.min(MAX_FRAME_LIST - ask.tx.min(TX_SHARE));
        let collected = self.rx.collect(most, list);
        let sent = self.tx.reclaim(list);
        if collected.broken != 0 {
            // Their buffers are back in the ring; QEMU's model must be told.
            self.stats.rx_broken += collected.broken as u64;
            self.rx.release();
            self.mac.kick(false);
        }
        if list.is_empty() {
            return 0;
        }
        self.stats.rx_frames += collected.frames as u64;
        self.stats.rx_bytes += collected.bytes;
        self.stats.tx_frames += sent.frames as u64;
        self.stats.tx_errors += sent.errors as u64;
        match self.kernel.complete(list.as_slice()) {
            Ok(()) => collected.frames,
            Err(_) => self.complete_each(list),
        }
    }

    /// Completes what can be completed of a list that was refused; the rest is dropped. Returns how many received frames are left.
    #[cold]
    fn complete_each(&mut self, list: &mut FrameList) -> usize {
        let refused = core::mem::take(list);
        let mut received = 0;
        for frame in refused.as_slice() {
            if self.kernel.complete(core::slice::from_ref(frame)).is_ok() {
                received += usize::from(frame.meta & ring::TX == 0);
                let _ = list.push(*frame);
            } else {
                self.stats.stale += 1;
            }
        }
        received
    }

    /// Arms and queues the batch. Returns true if the MAC has something to send.
    #[inline]
    fn send(&mut self) -> bool {
        if self.batch.is_empty() {
            // A doorbell that fell into the moment when the MAC stopped is rung again; an empty ring never is.
            return self.tx.is_pending();
        }
        while self.batch.len() > self.tx.room() {
            self.give_up_last();
        }
        let refused = arm::transmit(&mut self.kernel, &mut self.tx, &self.pool, &mut self.batch);
        self.stats.stale += refused as u64;
        true
    }

    /// A frame for which the ring has no room. It has more than the pool has frames, so this does not happen.
    #[cold]
    fn give_up_last(&mut self) {
        if let Some(frame) = self.batch.pop() {
            self.stats.tx_dropped += 1;
            self.free.push(frame.handle);
        }
    }

    #[inline]
    fn needs_refill(&self) -> bool {
        self.rx.room() >= REFILL.min(self.rx.len() / 4).max(1)
    }

    /// Refills the receive ring if it has got some room. Returns true if the MAC has new buffers.
    #[inline]
    fn top_up(&mut self) -> bool {
        self.needs_refill() && self.refill() > 0
    }

    /// Arms free frames and puts them into the receive ring, up to a list's worth. Returns how many.
    #[inline]
    fn refill(&mut self) -> usize {
        self.batch.clear();
        self.free.take_out(self.rx.room(), &mut self.batch);
        if self.batch.is_empty() {
            return 0;
        }
        let refused = arm::receive(&mut self.kernel, &mut self.rx, &self.pool, &mut self.batch);
        self.stats.stale += refused as u64;
        self.recount |= refused > 0;
        self.batch.len()
    }

    /// Completes the reply: as many free frames as are asked for, the rest stays here.
    #[inline]
    fn hand_out(&mut self, list: &mut FrameList, received: usize, wanted: usize) {
        let wanted = wanted.min(MAX_FRAME_LIST - received);
        let mut free = list.len() - received;
        while free > wanted {
            if let Some(frame) = list.pop() {
                self.free.push(frame.handle);
            }
            free -= 1;
        }
        while free < wanted {
            let Some(handle) = self.free.pop() else {
                self.starve();
                return;
            };
            let _ = list.push(ring::free_frame(handle));
            free += 1;
        }
        if self.tx_starved {
            self.tx_starved = false;
            self.mac.watch_sent(false);
        }
    }

    /// The stack goes away without all it wants: the next sent frame shall wake it.
    #[cold]
    fn starve(&mut self) {
        if !self.tx_starved {
            self.tx_starved = true;
            self.mac.watch_sent(true);
        }
    }

    /// Decides between polling on and waiting for an interrupt. Returns true for polling.
    #[inline]
    fn settle(&mut self, received: usize) -> bool {
        // With the ring nearly empty the stack shall bring the frames that it got, rather than wait with them.
        if received > LIGHT || self.rx.has_finished() || received > 0 && self.rx.is_low() {
            return true;
        }
        if self.masked {
            self.unmask();
        }
        self.has_news()
    }

    /// Takes the events so far, then lets the next one interrupt.
    ///
    /// Frames whose events are taken here cause no interrupt any more: look for [news](Self::has_news) afterwards.
    fn unmask(&mut self) {
        let events = self.mac.take_events();
        self.handle(events);
        self.masked = false;
        self.kernel.enable_interrupt();
    }

    /// True if there is something that the stack waits for.
    #[inline]
    fn has_news(&self) -> bool {
        self.rx.has_finished() || self.tx_starved && self.tx.has_finished()
    }

    /// At an interrupt, which the kernel has masked. Returns true if the stack must be told; its exchange will unmask.
    #[inline]
    pub fn interrupt(&mut self) -> bool {
        self.stats.interrupts += 1;
        self.masked = true;
        let events = self.mac.take_events();
        self.handle(events);
        if self.polling {
            // It will call without being told, and that call unmasks.
            return false;
        }
        if self.has_news() {
            return true;
        }
        // An exchange was faster, or it was an error. Should such come without end, the next tick is soon enough.
        if self.vain < VAIN_INTERRUPTS {
            self.vain += 1;
            self.unmask();
        }
        self.has_news()
    }

    #[inline]
    fn handle(&mut self, events: Events) {
        if events.intersects(Events::TX_HALTED) {
            self.restart_transmitter();
        }
        if events.intersects(Events::BUS_ERROR) {
            self.restart_receiver();
        }
    }

    /// A reply was refused and its frames are still here; what was received in them is lost. The stack, which asked for more than it may
    /// hold, did not see the answer either: the next tick tells it to ask again.
    #[cold]
    pub fn reply_refused(&mut self, list: &mut FrameList) {
        self.refused = true;
        for frame in list.as_slice() {
            self.stats.rx_lost += u64::from(frame.meta & ring::TX == 0);
            self.free.push(frame.handle);
        }
        list.clear();
    }

    /// The free frames are exactly those that the kernel says this task holds: what is in a ring the device holds.
    fn find_frames(&mut self) -> Result<(), KernelError> {
        self.free.clear();
        self.recount = false;
        let mut from = Some(0);
        let mut page = [FrameDesc::default(); MAX_FRAME_LIST];
        while let Some(start) = from {
            let (count, next) = self.kernel.list(&mut page, start)?;
            for frame in &page[..count.min(MAX_FRAME_LIST)] {
                self.free.push(frame.handle);
            }
            from = next;
        }
        Ok(())
    }
}
