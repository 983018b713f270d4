//! Registers of the Cadence UART.
//!
//! Offsets and bits: Zynq UltraScale+ Devices Register Reference (UG1087), module UART. The FIFOs are 64 bytes deep.

#![allow(missing_docs, reason = "the names are the manual's; what is not plain has a comment")]

use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! [u32,
    /// Control.
    pub Control [
        RX_ENABLE OFFSET(2) NUMBITS(1) [],
        RX_DISABLE OFFSET(3) NUMBITS(1) [],
        TX_ENABLE OFFSET(4) NUMBITS(1) [],
        TX_DISABLE OFFSET(5) NUMBITS(1) []
    ],

    /// Interrupts: enable, disable, mask and status have the same bits. Status bits are cleared by writing 1.
    pub Interrupt [
        /// The receive FIFO reached the trigger level.
        RX_TRIGGER OFFSET(0) NUMBITS(1) [],
        TX_EMPTY OFFSET(3) NUMBITS(1) [],
        /// Input was lost in the FIFO.
        RX_OVERRUN OFFSET(5) NUMBITS(1) [],
        /// Input waits, and the line has been quiet.
        RX_TIMEOUT OFFSET(8) NUMBITS(1) []
    ],

    /// Channel status.
    pub Status [
        RX_EMPTY OFFSET(1) NUMBITS(1) [],
        TX_EMPTY OFFSET(3) NUMBITS(1) [],
        TX_FULL OFFSET(4) NUMBITS(1) [],
        /// The transmitter is shifting a byte out.
        TX_ACTIVE OFFSET(11) NUMBITS(1) []
    ],
];

register_structs! {
    /// The register file.
    pub Registers {
        (0x00 => pub control: ReadWrite<u32, Control::Register>),
        (0x04 => pub mode: ReadWrite<u32>),
        (0x08 => pub interrupt_enable: WriteOnly<u32, Interrupt::Register>),
        (0x0c => pub interrupt_disable: WriteOnly<u32, Interrupt::Register>),
        (0x10 => pub interrupt_mask: ReadOnly<u32, Interrupt::Register>),
        (0x14 => pub interrupt_status: ReadWrite<u32, Interrupt::Register>),
        (0x18 => pub baud_generator: ReadWrite<u32>),
        /// In units of four bit times.
        (0x1c => pub rx_timeout: ReadWrite<u32>),
        (0x20 => pub rx_trigger: ReadWrite<u32>),
        (0x24 => _reserved0),
        (0x2c => pub status: ReadOnly<u32, Status::Register>),
        (0x30 => pub fifo: ReadWrite<u32>),
        (0x34 => @END),
    }
}

impl Registers {
    /// The register block `name` of this task; `None` if there is none, or it was taken before.
    #[cfg(target_os = "none")]
    #[must_use]
    #[allow(unsafe_code)]
    pub fn take(name: &str) -> Option<&'static Self> {
        let (base, size) = userlib::memory::take_peripheral(name)?;
        if size < size_of::<Self>() {
            return None;
        }
        // SAFETY: the build gives this block to this task alone, the kernel maps it page-aligned as device memory for the
        // task's life, it holds at least a whole register file, and it is handed out once.
        Some(unsafe { base.cast::<Self>().as_ref() })
    }
}
