//! Frames through a toy driver that receives what it sends.

use std::collections::VecDeque;
use std::thread;

use abi::frame::FrameMeta;
use abi::{FrameDesc, FrameHandle};
use idol_runtime::fake::{STOP, Task, World};
use idol_runtime::{FrameList, Request, RequestError, TaskSlot, serve_while};
use mac_api::{Exchanged, Info, Mac, MacBuffers, MacInterface, MacServer, Statistics, checksum};

#[derive(Default)]
struct Loopback {
    free: Vec<FrameDesc>,
    received: VecDeque<FrameDesc>,
    statistics: Statistics,
    stopped: bool,
}

impl MacServer<Task> for Loopback {
    fn exchange(
        &mut self,
        _: &Request<Task>,
        take: u16,
        want: u16,
        frames: &mut FrameList,
    ) -> Result<Exchanged, RequestError> {
        self.statistics.exchanges += 1;
        for frame in frames.as_slice() {
            if frame.meta & FrameMeta::TX.bits() != 0 {
                self.statistics.tx_frames += 1;
                self.received.push_back(FrameDesc { meta: 0, ..*frame });
            } else {
                self.free.push(*frame);
            }
        }
        frames.clear();
        for _ in 0..take {
            let Some(frame) = self.received.pop_front() else { break };
            frames.push(frame).expect("room");
        }
        for _ in 0..want {
            let Some(frame) = self.free.pop() else { break };
            frames.push(FrameDesc { meta: FrameMeta::TX.bits(), len: 0, ..frame }).expect("room");
        }
        Ok(Exchanged { tx_room: 8, more_waiting: !self.received.is_empty(), link_up: true })
    }

    fn info(&mut self, _: &Request<Task>) -> Result<Info, RequestError> {
        Ok(Info { address: [2, 0, 0, 0, 0, 1], mtu: 1500, tx_checksums: checksum::IPV4, ..Info::default() })
    }

    fn statistics(&mut self, _: &Request<Task>) -> Result<Statistics, RequestError> {
        Ok(self.statistics)
    }

    fn handle_notification(&mut self, _: &Task, bits: u32) {
        self.stopped = bits == STOP;
    }
}

#[test]
fn all_four_flows() {
    let world = World::new(2);
    let frames: Vec<FrameDesc> =
        (0..4).map(|index| FrameDesc { handle: FrameHandle::new(index, 0), len: 60, offset: 0, meta: 0 }).collect();
    frames.iter().for_each(|frame| world.give(1, frame.handle));
    let (task, free) = (world.task(1), frames.clone());
    let server = thread::spawn(move || {
        let mut driver = Loopback { free, ..Loopback::default() };
        let mut buffers = MacBuffers::new();
        serve_while::<MacInterface, _, _, _, _>(&task, &mut driver, &mut buffers, |driver| !driver.stopped);
    });
    let mac = Mac::with_kernel(TaskSlot(1), world.task(0));
    assert_eq!(mac.info().map(|info| (info.address, info.mtu)), Ok(([2, 0, 0, 0, 0, 1], 1500)));

    let mut list = FrameList::new();
    let state = mac.exchange(4, 3, &mut list).expect("an answer");
    assert_eq!(state, Exchanged { tx_room: 8, more_waiting: false, link_up: true });
    assert_eq!(list.len(), 3, "free frames");
    assert!(list.as_slice().iter().all(|frame| world.holder(frame.handle) == Some(0)));

    list.as_mut_slice().iter_mut().for_each(|frame| frame.len = 64);
    let state = mac.exchange(2, 0, &mut list).expect("an answer");
    assert!(state.more_waiting, "sent three, took two");
    assert_eq!(list.as_slice().iter().map(|frame| (frame.meta, frame.len)).collect::<Vec<_>>(), [(0, 64), (0, 64)]);

    // Used up: back to the driver.
    assert_eq!(mac.exchange(0, 0, &mut list).map(|state| state.more_waiting), Ok(true));
    assert!(list.is_empty());
    assert_eq!(mac.statistics().map(|counted| (counted.exchanges, counted.tx_frames)), Ok((3, 3)));
    assert!(frames.iter().all(|frame| world.holder(frame.handle) == Some(1)));

    world.kill(1);
    server.join().expect("no panic");
    // The next instance: the call waits for it, as it had not been received by the old one.
    let task = world.task(1);
    let server = thread::spawn(move || {
        let mut driver = Loopback::default();
        serve_while::<MacInterface, _, _, _, _>(&task, &mut driver, &mut MacBuffers::new(), |driver| !driver.stopped);
    });
    assert_eq!(mac.exchange(1, 1, &mut list).map(|state| state.more_waiting), Ok(false));
    assert_eq!(mac.id().generation(), 1);
    world.kill(1);
    server.join().expect("no panic");
}
