//! Start: registers, UART, and then service.

use idol_runtime::System;
use serial_api::SerialBuffers;
use uart_cadence::port::Uart;
use uart_cadence::regs::Registers;
use uart_cadence::server::{Outside, Server};
use userlib::{config, ipc};

/// Whom to tell, looked up once.
struct Neighbours {
    readers: heapless::Vec<(u8, u32), 4>,
    irq: u32,
}

impl Outside for Neighbours {
    fn tell(&mut self) {
        for (task, mask) in &self.readers {
            // Refused only without the right to post, which the build has checked.
            let _ = ipc::post(*task, *mask);
        }
    }

    fn enable_interrupt(&mut self) {
        // Refused only for a bit without interrupt, which the build does not allow.
        let _ = ipc::enable_interrupts(self.irq);
    }
}

/// Starts the driver and serves for ever.
pub fn main() -> ! {
    let irq = config::notification("irq");
    let registers = Registers::take("uart").expect("register block of the UART");
    let mut neighbours = Neighbours { readers: heapless::Vec::new(), irq };
    config::for_each_notify("rx", |task, mask| {
        // More than four are not told.
        let _ = neighbours.readers.push((task, mask));
    });
    let mut server = Server::<_, _, System>::new(Uart::set_up(registers), neighbours, irq);
    serial_api::serve(&mut server, &mut SerialBuffers::new())
}
