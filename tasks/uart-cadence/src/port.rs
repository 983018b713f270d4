//! The UART behind a small trait, so that the server runs on the host against a model.

use tock_registers::interfaces::{Readable, Writeable};

use crate::regs::{Control, Interrupt, Registers, Status};

/// Reads of the status register until a byte has left the shift register: over 1 ms at any bus speed.
const PATIENCE: u32 = 20_000;

/// What the server asks of the UART.
pub trait Port {
    /// Takes a byte of input.
    fn get(&mut self) -> Option<u8>;
    /// Queues a byte of output; false if the FIFO is full.
    fn put(&mut self, byte: u8) -> bool;
    /// Takes the interrupt request away and returns true if the FIFO lost input.
    ///
    /// To be called before the FIFOs are looked at: what comes later interrupts again.
    fn acknowledge(&mut self) -> bool;
    /// Switches the interrupt for an empty transmit FIFO.
    fn watch_empty(&mut self, on: bool);
    /// True if all output has left. Waits for the last byte, but no longer than that takes.
    fn is_sent(&mut self) -> bool;
}

/// The UART itself. Its speed is left as firmware set it.
#[derive(Clone, Copy)]
pub struct Uart(&'static Registers);

impl Uart {
    /// Enables receiver, transmitter and the interrupts for input. Bytes in the FIFOs stay.
    #[must_use]
    pub fn set_up(registers: &'static Registers) -> Self {
        registers.interrupt_disable.set(u32::MAX);
        registers.rx_trigger.set(1);
        // Some ten bit times; with a trigger level of 1 only for safety.
        registers.rx_timeout.set(10);
        registers.control.write(Control::RX_ENABLE::SET + Control::TX_ENABLE::SET);
        registers
            .interrupt_enable
            .write(Interrupt::RX_TRIGGER::SET + Interrupt::RX_TIMEOUT::SET + Interrupt::RX_OVERRUN::SET);
        Self(registers)
    }
}

impl Port for Uart {
    fn get(&mut self) -> Option<u8> {
        (!self.0.status.is_set(Status::RX_EMPTY)).then(|| self.0.fifo.get() as u8)
    }

    fn put(&mut self, byte: u8) -> bool {
        if self.0.status.is_set(Status::TX_FULL) {
            return false;
        }
        self.0.fifo.set(u32::from(byte));
        true
    }

    fn acknowledge(&mut self) -> bool {
        let lost = self.0.interrupt_status.is_set(Interrupt::RX_OVERRUN);
        self.0.interrupt_status.set(u32::MAX);
        lost
    }

    fn watch_empty(&mut self, on: bool) {
        if on {
            self.0.interrupt_enable.write(Interrupt::TX_EMPTY::SET);
        } else {
            self.0.interrupt_disable.write(Interrupt::TX_EMPTY::SET);
        }
    }

    fn is_sent(&mut self) -> bool {
        if !self.0.status.is_set(Status::TX_EMPTY) {
            return false;
        }
        // The last byte causes no interrupt of its own. A line so slow that patience ends first has at least got it.
        let _ = (0..PATIENCE).any(|_| !self.0.status.is_set(Status::TX_ACTIVE));
        true
    }
}
