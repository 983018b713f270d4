//! Registers of the Cadence GEM, and the one place where an address becomes a register file.
//!
//! Offsets and bits: Zynq UltraScale+ Devices Register Reference (UG1087), module GEM; the revision of the ZynqMP has
//! module id 4007_0106. Only what the driver uses has a name.

#![allow(missing_docs, reason = "the names are the manual's; what is not plain has a comment")]

use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

register_bitfields! [u32,
    /// Network control.
    pub NetworkControl [
        RX_ENABLE OFFSET(2) NUMBITS(1) [],
        TX_ENABLE OFFSET(3) NUMBITS(1) [],
        MDIO_ENABLE OFFSET(4) NUMBITS(1) [],
        CLEAR_STATISTICS OFFSET(5) NUMBITS(1) [],
        /// Starts the transmitter at the descriptor where it stopped. Never read back as set.
        TX_START OFFSET(9) NUMBITS(1) [],
        TX_HALT OFFSET(10) NUMBITS(1) [],
        /// Drops the oldest frame in the receiver's packet buffer.
        FLUSH_RX_PACKET OFFSET(18) NUMBITS(1) []
    ],

    /// Network configuration.
    pub NetworkConfig [
        SPEED_100 OFFSET(0) NUMBITS(1) [],
        FULL_DUPLEX OFFSET(1) NUMBITS(1) [],
        PROMISCUOUS OFFSET(4) NUMBITS(1) [],
        MULTICAST_HASH OFFSET(6) NUMBITS(1) [],
        /// Accepts frames up to 1536 bytes, FCS included (else 1518).
        RX_1536 OFFSET(8) NUMBITS(1) [],
        GIGABIT OFFSET(10) NUMBITS(1) [],
        /// Bytes between the start of the buffer and the frame.
        RX_OFFSET OFFSET(14) NUMBITS(2) [],
        FCS_REMOVE OFFSET(17) NUMBITS(1) [],
        /// Bus clock to MDIO clock; the standard allows 2.5 MHz at most.
        MDIO_DIVIDER OFFSET(18) NUMBITS(3) [Div8 = 0, Div16 = 1, Div32 = 2, Div48 = 3, Div64 = 4, Div96 = 5, Div128 = 6, Div224 = 7],
        BUS_WIDTH OFFSET(21) NUMBITS(2) [Bits32 = 0, Bits64 = 1, Bits128 = 2],
        /// Verifies IPv4, TCP and UDP checksums; frames with a wrong one are dropped and counted.
        RX_CHECKSUM OFFSET(24) NUMBITS(1) []
    ],

    /// Network status.
    pub NetworkStatus [
        MDIO_IDLE OFFSET(2) NUMBITS(1) []
    ],

    /// DMA configuration.
    pub DmaConfig [
        BURST OFFSET(0) NUMBITS(5) [Single = 1, Incr4 = 4, Incr8 = 8, Incr16 = 16],
        /// Size of the receiver's packet buffer; 3 is all of it.
        RX_PACKET_BUFFER OFFSET(8) NUMBITS(2) [],
        TX_PACKET_BUFFER OFFSET(10) NUMBITS(1) [],
        /// Fills in IPv4 header, TCP and UDP checksums of all frames. Needs the full packet buffer.
        TX_CHECKSUM OFFSET(11) NUMBITS(1) [],
        /// Size of receive buffers in units of 64 bytes.
        RX_BUFFER_SIZE OFFSET(16) NUMBITS(8) [],
        /// Drops a frame for which there is no buffer, instead of keeping it in the packet buffer.
        RX_DISCARD OFFSET(24) NUMBITS(1) []
    ],

    /// Transmit status; bits are cleared by writing 1.
    pub TxStatus [
        USED_BIT_READ OFFSET(0) NUMBITS(1) [],
        GOING OFFSET(3) NUMBITS(1) []
    ],

    /// Interrupts: status, enable, disable and mask have the same bits.
    pub Interrupt [
        RX_COMPLETE OFFSET(1) NUMBITS(1) [],
        TX_UNDERRUN OFFSET(4) NUMBITS(1) [],
        TX_RETRY_LIMIT OFFSET(5) NUMBITS(1) [],
        TX_BUS_ERROR OFFSET(6) NUMBITS(1) [],
        TX_COMPLETE OFFSET(7) NUMBITS(1) [],
        RX_OVERRUN OFFSET(10) NUMBITS(1) [],
        /// The bus answered with an error.
        BUS_ERROR OFFSET(11) NUMBITS(1) []
    ],

    /// PHY maintenance: one MDIO frame.
    pub PhyMaintenance [
        START OFFSET(30) NUMBITS(2) [Clause22 = 1],
        OPERATION OFFSET(28) NUMBITS(2) [Write = 1, Read = 2],
        PHY OFFSET(23) NUMBITS(5) [],
        REGISTER OFFSET(18) NUMBITS(5) [],
        TURN_AROUND OFFSET(16) NUMBITS(2) [Always = 2],
        DATA OFFSET(0) NUMBITS(16) []
    ],

    /// Design configuration 1.
    pub Design1 [
        /// Width of the DMA bus: 1, 2 or 4 times 32 bits.
        BUS_WORDS OFFSET(25) NUMBITS(3) []
    ],
];

register_structs! {
    /// The register file.
    pub Registers {
        (0x000 => pub network_control: ReadWrite<u32, NetworkControl::Register>),
        (0x004 => pub network_config: ReadWrite<u32, NetworkConfig::Register>),
        (0x008 => pub network_status: ReadOnly<u32, NetworkStatus::Register>),
        (0x00c => _reserved0),
        (0x010 => pub dma_config: ReadWrite<u32, DmaConfig::Register>),
        (0x014 => pub tx_status: ReadWrite<u32, TxStatus::Register>),
        (0x018 => pub rx_queue: ReadWrite<u32>),
        (0x01c => pub tx_queue: ReadWrite<u32>),
        (0x020 => pub rx_status: ReadWrite<u32>),
        /// Clear on read.
        (0x024 => pub interrupt_status: ReadOnly<u32, Interrupt::Register>),
        (0x028 => pub interrupt_enable: WriteOnly<u32, Interrupt::Register>),
        (0x02c => pub interrupt_disable: WriteOnly<u32, Interrupt::Register>),
        (0x030 => pub interrupt_mask: ReadOnly<u32, Interrupt::Register>),
        (0x034 => pub phy_maintenance: ReadWrite<u32, PhyMaintenance::Register>),
        (0x038 => _reserved1),
        (0x080 => pub hash: [ReadWrite<u32>; 2]),
        /// Low word, high word. Writing the low word disables the address, the high word enables it.
        (0x088 => pub specific_address: [[ReadWrite<u32>; 2]; 4]),
        (0x0a8 => _reserved2),
        (0x0fc => pub module_id: ReadOnly<u32>),
        /// Clear on read in silicon; see `stats` for the places.
        (0x100 => pub statistics: [ReadOnly<u32>; 45]),
        (0x1b4 => _reserved3),
        (0x280 => pub design1: ReadOnly<u32, Design1::Register>),
        (0x284 => _reserved4),
        /// Further queues, from queue 1 on.
        (0x400 => pub queue_interrupt_status: [ReadOnly<u32>; 7]),
        (0x41c => _reserved5),
        (0x440 => pub queue_tx: [ReadWrite<u32>; 7]),
        (0x45c => _reserved6),
        (0x480 => pub queue_rx: [ReadWrite<u32>; 7]),
        (0x49c => _reserved7),
        (0x4a0 => pub queue_rx_buffer_size: [ReadWrite<u32>; 7]),
        (0x4bc => _reserved8),
        /// Upper halves of the ring addresses of all queues.
        (0x4c8 => pub tx_queue_high: ReadWrite<u32>),
        (0x4cc => _reserved9),
        (0x4d4 => pub rx_queue_high: ReadWrite<u32>),
        (0x4d8 => _reserved10),
        (0x620 => pub queue_interrupt_disable: [WriteOnly<u32>; 7]),
        (0x63c => @END),
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
