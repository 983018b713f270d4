//! The driver as server of `mac-api`.

use idol_runtime::{FrameList, Kernel as Caller, KernelError, Request, RequestError, TaskId};
use mac_api::{Exchanged, Info, MacServer, Statistics, checksum};

use crate::driver::{Ask, Driver, Kernel, Mac};
use crate::phy::Mdio;
use crate::ring::{RX_OFFSET, Words};

/// What leaves the server beside replies.
pub trait Outside {
    /// Tells the stack that there is something to fetch.
    fn tell(&mut self);
    /// Posts the timer notification after a tenth of a second.
    fn set_timer(&mut self);
}

/// Notification bits of this task.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    /// The MAC's interrupt.
    pub irq: u32,
    /// The timer.
    pub timer: u32,
    /// Frames of a dead task have come back.
    pub frames_back: u32,
}

/// Driver, and who is to be told.
#[derive(Debug)]
pub struct Server<W, K, M, O> {
    driver: Driver<W, K, M>,
    outside: O,
    bits: Bits,
    address: [u8; 6],
    caller: TaskId,
}

impl<W: Words, K: Kernel, M: Mac + Mdio, O: Outside> Server<W, K, M, O> {
    /// A server over a driver that has been started.
    pub fn new(driver: Driver<W, K, M>, mut outside: O, bits: Bits, address: [u8; 6]) -> Self {
        outside.set_timer();
        // Frames may have come in, and a stack that knew an earlier instance has to learn of this one.
        outside.tell();
        Self { driver, outside, bits, address, caller: TaskId::KERNEL }
    }
}

impl<W, K, M, O, C> MacServer<C> for Server<W, K, M, O>
where
    W: Words,
    K: Kernel,
    M: Mac + Mdio,
    O: Outside,
    C: Caller,
{
    #[inline]
    fn exchange(
        &mut self,
        request: &Request<C>,
        take: u16,
        want: u16,
        frames: &mut FrameList,
    ) -> Result<Exchanged, RequestError> {
        if request.caller != self.caller {
            self.caller = request.caller;
            self.driver.new_caller();
        }
        let ask = Ask { rx: usize::from(take), tx: usize::from(want) };
        let answer = self.driver.exchange(frames, ask);
        Ok(Exchanged {
            tx_room: self.driver.tx_room() as u16,
            more_waiting: answer.more,
            link_up: self.driver.link().is_some(),
        })
    }

    fn info(&mut self, _: &Request<C>) -> Result<Info, RequestError> {
        let link = self.driver.link();
        let all = checksum::IPV4 | checksum::TCP | checksum::UDP;
        Ok(Info {
            address: self.address,
            mtu: 1500,
            speed: link.map_or(0, |link| link.speed.megabits()),
            rx_ring: self.driver.rx_len() as u16,
            tx_ring: self.driver.tx_len() as u16,
            rx_offset: RX_OFFSET,
            tx_checksums: all,
            rx_checksums: all,
            link_up: link.is_some(),
            full_duplex: link.is_some_and(|link| link.full_duplex),
            reserved: 0,
        })
    }

    fn statistics(&mut self, _: &Request<C>) -> Result<Statistics, RequestError> {
        let stats = self.driver.stats();
        Ok(Statistics {
            rx_frames: stats.rx_frames,
            rx_bytes: stats.rx_bytes,
            tx_frames: stats.tx_frames,
            tx_bytes: stats.tx_bytes,
            rx_no_buffer: stats.mac.no_buffer,
            rx_overruns: stats.mac.overruns,
            rx_bad: stats.mac.bad,
            rx_odd: stats.rx_broken,
            rx_recoveries: stats.rx_restarts,
            tx_errors: stats.tx_errors,
            tx_dropped: stats.tx_dropped,
            tx_collisions: stats.mac.collisions,
            interrupts: stats.interrupts,
            exchanges: stats.exchanges,
            link_changes: stats.link_changes,
        })
    }

    #[inline]
    fn notification_mask(&self) -> u32 {
        self.bits.irq | self.bits.timer | self.bits.frames_back
    }

    #[inline]
    fn handle_notification(&mut self, _: &C, bits: u32) {
        let mut tell = false;
        if bits & self.bits.irq != 0 {
            tell |= self.driver.interrupt();
        }
        if bits & self.bits.frames_back != 0 {
            tell |= self.driver.frames_returned();
        }
        if bits & self.bits.timer != 0 {
            tell |= self.driver.tick();
            self.outside.set_timer();
        }
        if tell {
            self.outside.tell();
        }
    }

    fn reply_refused(&mut self, _: TaskId, _: KernelError, frames: &mut FrameList) {
        self.driver.reply_refused(frames);
    }
}
