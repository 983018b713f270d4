//! The network stack task: takes its memory and its peers, then serves.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

#[cfg(target_os = "none")]
mod task {
    use abi::TaskId;
    use frame::FrameMemory;
    use idol_runtime::TaskSlot;
    use net::config::addressing;
    use net::driver::Driver;
    use net::link::{Books, Link};
    use net::reassembly::{PLACE_SIZE, PLACES};
    use net::server::{Host, Notifications, Server};
    use net::stack::Stack;
    use net::tcp::Storage;
    use smoltcp::iface::SocketStorage;
    use smoltcp::time::Instant;
    use smoltcp::wire::EthernetAddress;
    use userlib::{config, ipc, memory, time};

    /// Free frames kept for sending: a fragmented datagram of any size, and a list more.
    const STOCK: u16 = 80;
    /// Between two looks for a driver that does not answer.
    const RETRY_MICROS: u64 = 20_000;

    const ALL_CHECKSUMS: u8 = mac_api::checksum::IPV4 | mac_api::checksum::TCP | mac_api::checksum::UDP;

    /// The system below.
    struct Machine {
        timer: u32,
    }

    impl Host for Machine {
        fn now(&self) -> Instant {
            Instant::from_micros(time::micros() as i64)
        }

        fn wake_at(&mut self, at: Instant) {
            let micros = u64::try_from(at.total_micros()).unwrap_or(0);
            time::set_timer(time::from_micros(micros), self.timer);
        }

        fn post(&mut self, task: u8, mask: u32) {
            // The build allows it: the mask comes from this task's own `notifies`.
            let _ = ipc::post(task, mask);
        }

        fn current(&self, task: u8) -> TaskId {
            ipc::current_id(task)
        }
    }

    userlib::entry!(main);

    fn main() -> ! {
        let notifications =
            Notifications { frames: config::notification("frames"), timer: config::notification("timer") };
        let machine = Machine { timer: notifications.timer };
        let mac = mac_api::Mac::from(TaskSlot::named("mac"));
        let info = driver_info(&mac, notifications.timer);

        let pool = FrameMemory::take(0).expect("a frame pool: name net under `holders` of the MAC");
        let books = Books::new(pool, STOCK).expect("a pool that the books have room for");
        let mut storage: Storage<'_> = [SocketStorage::EMPTY; net::tcp::SLOTS];
        let parts = memory::take_bytes("reassembly").expect("memory for reassembly");
        assert!(parts.len() >= PLACES * PLACE_SIZE, "reassembly too small");
        let addressing = addressing(config::find_value("address"), config::find_value("gateway"));
        let addressing = addressing.unwrap_or_else(|mistake| panic!("{mistake}"));

        let link = Link::new(
            &books,
            Driver::new(mac),
            EthernetAddress(info.address),
            info.tx_checksums & ALL_CHECKSUMS == ALL_CHECKSUMS,
        );
        let now = machine.now();
        let seed = seed(info.address);
        let mut stack = Stack::new(link, &mut storage, parts, addressing, seed, now);
        add_clients(&mut stack);
        let mut server = Server::new(stack, machine, notifications);
        let mut buffers = net_api::NetBuffers::new();
        net_api::serve(&mut server, &mut buffers)
    }

    /// Asks the driver who it is; it may still be starting.
    fn driver_info(mac: &mac_api::Mac, timer: u32) -> mac_api::Info {
        let mut seen = 0;
        loop {
            if let Ok(info) = mac.info() {
                return info;
            }
            time::set_timer(time::ticks() + time::from_micros(RETRY_MICROS), timer);
            seen = ipc::wait(timer, seen).1;
        }
    }

    /// A number that differs from boot to boot as far as time does, and from device to device.
    fn seed(address: [u8; 6]) -> u64 {
        let [a, b, c, d, e, f] = address;
        let device = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        // A multiplication spreads what differs over all bits.
        (time::ticks() ^ device.rotate_left(16)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Every task with a window is a client.
    fn add_clients<M: net::link::Mac>(stack: &mut Stack<'_, M>) {
        for task in 0..abi::MAX_TASKS as u8 {
            let Some(name) = config::task_name(task) else {
                break;
            };
            // DMA memory of our own has other names than tasks; the build sees to that.
            let Some(window) = memory::take_bytes(name) else {
                continue;
            };
            let mut mask = 0;
            config::for_each_notify("client", |to, bits| {
                if to == task {
                    mask |= bits;
                }
            });
            stack.core.clients.add(ipc::current_id(task), mask, window);
            // After a restart, whoever waits for news of its sockets would wait for ever: it looks, and finds them gone.
            let _ = ipc::post(task, mask);
        }
    }
}

/// Not for the host: there it is built so that its library can be tested.
#[cfg(not(target_os = "none"))]
fn main() {}
