//! GICv2 interrupt controller (ARM IHI 0048B).

use super::registers::{read, write};

// Distributor (4.3).
const GICD_CTLR: usize = 0x000;
const GICD_ISENABLER: usize = 0x100;
const GICD_ICENABLER: usize = 0x180;
const GICD_ICPENDR: usize = 0x280;
const GICD_IPRIORITYR: usize = 0x400;
const GICD_ITARGETSR: usize = 0x800;
// CPU interface (4.4).
const GICC_CTLR: usize = 0x00;
const GICC_PMR: usize = 0x04;
const GICC_IAR: usize = 0x0c;
const GICC_EOIR: usize = 0x10;

/// First shared interrupt: those below belong to one CPU and have no target register.
const FIRST_SHARED: u32 = 32;
/// Numbers from here on mean that no interrupt is pending.
const SPURIOUS: u32 = 1020;

/// The distributor and the CPU interface of the one CPU that we use.
#[derive(Debug)]
pub struct Gic {
    distributor: usize,
    cpu: usize,
}

impl Gic {
    /// No controller, until [`configure`](Self::configure).
    pub const UNSET: Self = Self { distributor: 0, cpu: 0 };

    /// Takes the register blocks and lets interrupts through to the CPU.
    pub fn configure(&mut self, distributor: usize, cpu: usize) {
        (self.distributor, self.cpu) = (distributor, cpu);
        write(distributor + GICD_CTLR, 1);
        write(cpu + GICC_PMR, 0xff);
        write(cpu + GICC_CTLR, 1);
    }

    /// Routes an interrupt to CPU 0, masked and not pending.
    pub fn prepare(&mut self, number: u32) {
        self.enable(number, false);
        let byte = number as usize & !3;
        let shift = (number & 3) * 8;
        let priority = self.distributor + GICD_IPRIORITYR + byte;
        write(priority, read(priority) & !(0xff << shift) | 0x80 << shift);
        if number >= FIRST_SHARED {
            let target = self.distributor + GICD_ITARGETSR + byte;
            write(target, read(target) & !(0xff << shift) | 1 << shift);
        }
        write(self.distributor + GICD_ICPENDR + number as usize / 32 * 4, 1 << (number % 32));
    }

    /// Lets an interrupt through, or masks it.
    #[inline]
    pub fn enable(&mut self, number: u32, enable: bool) {
        let register = if enable { GICD_ISENABLER } else { GICD_ICENABLER };
        write(self.distributor + register + number as usize / 32 * 4, 1 << (number % 32));
    }

    /// Takes the pending interrupt of the highest priority, if there is one.
    #[inline]
    pub fn acknowledge(&mut self) -> Option<u32> {
        let number = read(self.cpu + GICC_IAR) & 0x3ff;
        (number < SPURIOUS).then_some(number)
    }

    /// Ends an interrupt that [`acknowledge`](Self::acknowledge) took.
    #[inline]
    pub fn end(&mut self, number: u32) {
        write(self.cpu + GICC_EOIR, number);
    }
}
