//! The MAC itself: set-up in the order of the manual, doorbell, events, MDIO.
//!
//! Set-up follows UG1085, "Gigabit Ethernet Controller", section "Programming model". What differs between chips with this MAC is in
//! [`Settings`], which come from the board's configuration.

use tock_registers::LocalRegisterCopy;
use tock_registers::interfaces::{ReadWriteable, Readable, Writeable};

use crate::driver::{Events, Mac};
use crate::phy::{Link, Mdio, Speed};
use crate::regs::{
    Design1, DmaConfig, Interrupt, NetworkConfig, NetworkControl, NetworkStatus, PhyMaintenance, Registers, TxStatus,
};
use crate::ring::{RX_BUFFER, RX_OFFSET};
use crate::stats::{self, MacCounts};

/// Reads of a status register before a wait is given up; an MDIO frame takes 64 MDIO clocks, some 30 us.
const PATIENCE: u32 = 20_000;

/// The address of a board that has none: locally administered.
pub const DEFAULT_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// What differs between boards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Queues that the MAC has. The driver uses queue 0 and parks the others.
    pub queues: usize,
    /// Code of the divider from bus clock to MDIO clock, see `MDIO_DIVIDER`.
    pub mdio_divider: u32,
    /// True if MAC and wiring can do a gigabit per second.
    pub gigabit: bool,
}

/// Descriptors for the queues that are not used: addresses of a transmit and a receive descriptor, see [`crate::ring::park`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parking {
    /// A transmit descriptor that is software's.
    pub tx: u32,
    /// A receive descriptor that is software's.
    pub rx: u32,
}

/// A MAC that is set up.
#[derive(Clone, Copy)]
pub struct Gem {
    registers: &'static Registers,
    /// What the control register holds: reading it back would be slow.
    control: LocalRegisterCopy<u32, NetworkControl::Register>,
}

impl Gem {
    /// Stops the MAC, whatever it was doing, and sets it up. It neither receives nor sends until told to.
    ///
    /// `address` replaces what the MAC may hold already, see [`Self::burnt_in_address`].
    #[must_use]
    pub fn set_up(registers: &'static Registers, settings: &Settings, parking: Parking, address: [u8; 6]) -> Self {
        let mut gem = Self { registers, control: LocalRegisterCopy::new(0) };
        gem.silence(settings);
        gem.configure(settings);
        gem.park(settings, parking);
        gem.set_address(address);
        gem.control.write(NetworkControl::MDIO_ENABLE::SET);
        gem.write_control();
        registers.interrupt_enable.set(Events::ALWAYS.bits());
        gem
    }

    /// The address that firmware or a previous instance has left, if it is one of a station.
    #[must_use]
    pub fn burnt_in_address(registers: &Registers) -> Option<[u8; 6]> {
        let [low, high] = &registers.specific_address[0];
        let low = low.get().to_le_bytes();
        let high = high.get().to_le_bytes();
        let address = [low[0], low[1], low[2], low[3], high[0], high[1]];
        (address[0] & 1 == 0 && address != [0; 6]).then_some(address)
    }

    /// No reception, no transmission, no interrupt, nothing left of earlier events.
    fn silence(&self, settings: &Settings) {
        let registers = self.registers;
        registers.network_control.set(0);
        registers.network_control.write(NetworkControl::CLEAR_STATISTICS::SET);
        registers.tx_status.set(u32::MAX);
        registers.rx_status.set(u32::MAX);
        registers.interrupt_disable.set(u32::MAX);
        // Reading clears.
        registers.interrupt_status.get();
        for queue in extra_queues(settings) {
            registers.queue_interrupt_disable[queue].set(u32::MAX);
            registers.queue_interrupt_status[queue].get();
        }
        for hash in &registers.hash {
            hash.set(0);
        }
    }

    fn configure(&self, settings: &Settings) {
        let registers = self.registers;
        let width = match registers.design1.read(Design1::BUS_WORDS) {
            4 => NetworkConfig::BUS_WIDTH::Bits128,
            2 => NetworkConfig::BUS_WIDTH::Bits64,
            _ => NetworkConfig::BUS_WIDTH::Bits32,
        };
        registers.network_config.write(
            NetworkConfig::FULL_DUPLEX::SET
                + NetworkConfig::GIGABIT.val(u32::from(settings.gigabit))
                + NetworkConfig::SPEED_100.val(u32::from(!settings.gigabit))
                + NetworkConfig::RX_1536::SET
                + NetworkConfig::FCS_REMOVE::SET
                + NetworkConfig::RX_OFFSET.val(u32::from(RX_OFFSET))
                + NetworkConfig::RX_CHECKSUM::SET
                + NetworkConfig::MDIO_DIVIDER.val(settings.mdio_divider)
                + width,
        );
        registers.dma_config.write(
            DmaConfig::BURST::Incr16
                + DmaConfig::RX_PACKET_BUFFER.val(3)
                + DmaConfig::TX_PACKET_BUFFER::SET
                + DmaConfig::TX_CHECKSUM::SET
                + DmaConfig::RX_BUFFER_SIZE.val(RX_BUFFER as u32 / 64)
                + DmaConfig::RX_DISCARD::SET,
        );
    }

    /// Every queue needs a valid ring before the MAC is enabled, used or not.
    fn park(&self, settings: &Settings, parking: Parking) {
        let registers = self.registers;
        registers.rx_queue.set(0);
        registers.tx_queue.set(0);
        for queue in extra_queues(settings) {
            registers.queue_tx[queue].set(parking.tx);
            registers.queue_rx[queue].set(parking.rx);
            registers.queue_rx_buffer_size[queue].set(RX_BUFFER as u32 / 64);
        }
        if settings.queues > 1 {
            registers.tx_queue_high.set(0);
            registers.rx_queue_high.set(0);
        }
    }

    /// Sets the station's address; the write of the upper half switches it on.
    fn set_address(&self, address: [u8; 6]) {
        let [a, b, c, d, e, f] = address;
        let [low, high] = &self.registers.specific_address[0];
        low.set(u32::from_le_bytes([a, b, c, d]));
        high.set(u32::from_le_bytes([e, f, 0, 0]));
    }

    fn write_control(&self) {
        self.registers.network_control.set(self.control.get());
    }

    /// Waits for the end of an MDIO frame; false if it does not come.
    fn mdio_idle(&self) -> bool {
        (0..PATIENCE).any(|_| self.registers.network_status.is_set(NetworkStatus::MDIO_IDLE))
    }
}

/// Indices of the queues beyond queue 0, in register arrays that start with queue 1.
fn extra_queues(settings: &Settings) -> core::ops::Range<usize> {
    0..settings.queues.saturating_sub(1).min(7)
}

impl Mac for Gem {
    #[inline]
    fn kick(&mut self, transmit: bool) {
        let start = if transmit { NetworkControl::TX_START::SET.value } else { 0 };
        self.registers.network_control.set(self.control.get() | start);
    }

    #[inline]
    fn take_events(&mut self) -> Events {
        Events::from_bits_truncate(self.registers.interrupt_status.get())
    }

    fn watch_sent(&mut self, on: bool) {
        if on {
            self.registers.interrupt_enable.write(Interrupt::TX_COMPLETE::SET);
        } else {
            self.registers.interrupt_disable.write(Interrupt::TX_COMPLETE::SET);
        }
    }

    fn stop_receiver(&mut self) {
        self.control.modify(NetworkControl::RX_ENABLE::CLEAR);
        self.write_control();
        // The read comes after the write has arrived; what was in the DMA engine is then dropped with its frame.
        self.registers.network_control.get();
        self.registers.rx_status.set(u32::MAX);
    }

    fn start_receiver(&mut self, ring: u32) {
        self.registers.rx_queue.set(ring);
        self.control.modify(NetworkControl::RX_ENABLE::SET);
        self.write_control();
    }

    fn stop_transmitter(&mut self) {
        self.registers.network_control.set(self.control.get() | NetworkControl::TX_HALT::SET.value);
        // A frame on the wire is sent to its end.
        let _ = (0..PATIENCE).any(|_| !self.registers.tx_status.is_set(TxStatus::GOING));
        self.control.modify(NetworkControl::TX_ENABLE::CLEAR);
        self.write_control();
        self.registers.tx_status.set(u32::MAX);
    }

    fn start_transmitter(&mut self, ring: u32) {
        self.registers.tx_queue.set(ring);
        self.control.modify(NetworkControl::TX_ENABLE::SET);
        self.write_control();
    }

    fn take_counts(&mut self) -> MacCounts {
        let statistics = &self.registers.statistics;
        let sum = |places: core::ops::RangeInclusive<usize>| -> u64 {
            places.map(|place| u64::from(statistics[place].get())).sum()
        };
        MacCounts {
            received: u64::from(statistics[stats::RECEIVED].get()),
            bad: sum(stats::BAD) + sum(stats::CHECKSUM),
            no_buffer: u64::from(statistics[stats::NO_BUFFER].get()),
            overruns: u64::from(statistics[stats::OVERRUNS].get()),
            collisions: sum(stats::COLLISIONS),
        }
    }

    fn set_link(&mut self, link: Link) {
        let bit = |on: bool| u32::from(on);
        // All three at once: no bit of the speed before may stay.
        self.registers.network_config.modify(
            NetworkConfig::GIGABIT.val(bit(link.speed == Speed::Mbit1000))
                + NetworkConfig::SPEED_100.val(bit(link.speed == Speed::Mbit100))
                + NetworkConfig::FULL_DUPLEX.val(bit(link.full_duplex)),
        );
    }
}

impl Mdio for Gem {
    fn read(&mut self, phy: u8, register: u8) -> Option<u16> {
        if !self.mdio_idle() {
            return None;
        }
        self.registers.phy_maintenance.write(
            PhyMaintenance::START::Clause22
                + PhyMaintenance::OPERATION::Read
                + PhyMaintenance::TURN_AROUND::Always
                + PhyMaintenance::PHY.val(u32::from(phy))
                + PhyMaintenance::REGISTER.val(u32::from(register)),
        );
        self.mdio_idle().then(|| self.registers.phy_maintenance.read(PhyMaintenance::DATA) as u16)
    }

    fn write(&mut self, phy: u8, register: u8, value: u16) {
        if !self.mdio_idle() {
            return;
        }
        self.registers.phy_maintenance.write(
            PhyMaintenance::START::Clause22
                + PhyMaintenance::OPERATION::Write
                + PhyMaintenance::TURN_AROUND::Always
                + PhyMaintenance::PHY.val(u32::from(phy))
                + PhyMaintenance::REGISTER.val(u32::from(register))
                + PhyMaintenance::DATA.val(u32::from(value)),
        );
    }
}
