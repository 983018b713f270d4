//! smoltcp's device: one packet in, frames out.
//!
//! A device lives for one call of smoltcp. The packet that comes in stays in its frame (or in its place in reassembly), and what goes out
//! is built in the frame that the MAC will read. The interface ends at IP, so the adapter adds nothing to a packet and takes nothing away;
//! checksums are the business of [`crate::stack`] on the way in and of the MAC on the way out.

use smoltcp::phy::{ChecksumCapabilities, Device as SmoltcpDevice, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

use crate::link::{Link, Mac, Tx};
use crate::packet::{ETHERNET_HEADER, IPV4_HEADER, MTU};

/// The device, for one call.
#[derive(Debug)]
pub struct Device<'d, 'f, M> {
    link: &'d mut Link<'f, M>,
    packet: Option<&'d [u8]>,
}

impl<'d, 'f, M: Mac> Device<'d, 'f, M> {
    /// A device that has received `packet`.
    #[inline]
    pub const fn with(link: &'d mut Link<'f, M>, packet: &'d [u8]) -> Self {
        Self { link, packet: Some(packet) }
    }

    /// A device that only sends.
    #[inline]
    pub const fn sender(link: &'d mut Link<'f, M>) -> Self {
        Self { link, packet: None }
    }

    /// The time of this round.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.link.now
    }
}

/// What smoltcp is told of every device here.
#[must_use]
pub fn capabilities() -> DeviceCapabilities {
    let mut capabilities = DeviceCapabilities::default();
    capabilities.medium = Medium::Ip;
    capabilities.max_transmission_unit = MTU;
    capabilities.checksum = ChecksumCapabilities::ignored();
    capabilities
}

impl<'f, M: Mac> SmoltcpDevice for Device<'_, 'f, M> {
    type RxToken<'t>
        = Received<'t>
    where
        Self: 't;
    type TxToken<'t>
        = Sender<'t, 'f, M>
    where
        Self: 't;

    #[inline]
    fn receive(&mut self, _now: Instant) -> Option<(Received<'_>, Sender<'_, 'f, M>)> {
        let packet = self.packet.take()?;
        Some((Received(packet), Sender { link: self.link, frame: None }))
    }

    #[inline]
    fn transmit(&mut self, _now: Instant) -> Option<Sender<'_, 'f, M>> {
        let frame = self.link.frame()?;
        Some(Sender { link: self.link, frame: Some(frame) })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        capabilities()
    }
}

/// A received packet.
#[derive(Debug)]
pub struct Received<'t>(&'t [u8]);

impl RxToken for Received<'_> {
    #[inline]
    fn consume<R, F>(self, f: F) -> R
    where
        F: FnOnce(&[u8]) -> R,
    {
        f(self.0)
    }
}

/// The right to send one packet.
#[derive(Debug)]
pub struct Sender<'t, 'f, M> {
    link: &'t mut Link<'f, M>,
    /// `None`: taken when it is needed, as most received packets have no direct answer.
    frame: Option<Tx<'f>>,
}

impl<M: Mac> TxToken for Sender<'_, '_, M> {
    #[inline]
    fn consume<R, F>(self, len: usize, f: F) -> R
    where
        F: FnOnce(&mut [u8]) -> R,
    {
        match self.frame.or_else(|| self.link.frame()) {
            Some(mut frame) => {
                let packet = &mut frame[ETHERNET_HEADER..ETHERNET_HEADER + len];
                let result = f(packet);
                let headers = IPV4_HEADER + usize::from(packet[IPV4_HEADER + 12] >> 4) * 4;
                self.link.statistics.tx_copied += len.saturating_sub(headers) as u64;
                self.link.send(frame, len);
                result
            }
            None => discard(len, f),
        }
    }
}

/// smoltcp must write its answer somewhere even when there is no frame for it: TCP makes up for a lost packet.
#[cold]
fn discard<R>(len: usize, f: impl FnOnce(&mut [u8]) -> R) -> R {
    let mut nowhere = [0; MTU];
    f(&mut nowhere[..len])
}
