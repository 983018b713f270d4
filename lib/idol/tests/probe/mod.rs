//! The server that the stubs are tried on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use idol_runtime::fake::{STOP, Task, World};
use idol_runtime::{
    Both, Deferred, FrameDesc, FrameList, Kernel, KernelError, Leased, Read, RecvBuffers, Refusal, Request,
    RequestError, TaskId, Write, heapless, serve_while,
};
use serde::{Deserialize, Serialize};
use zerocopy::FromZeros;

/// What `tests/good/probe.idol` becomes; `golden.rs` keeps it up to date.
#[allow(dead_code, missing_docs, reason = "not every part is used")]
#[rustfmt::skip]
pub mod stubs {
    include!("../good/probe.rs");
}

use stubs::{Colour, Label, Point, ProbeBuffers, ProbeError, ProbeInterface, ProbeServer, Sample, Told, Wide};

/// A type that Rust code defines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shared(pub u64);

pub const CLIENT: usize = 0;
pub const SERVER: usize = 1;

pub const NOTHING: u16 = 1;
pub const MIX: u16 = 2;
pub const FALLIBLE: u16 = 3;
pub const DETAILED: u16 = 4;
pub const NAME: u16 = 5;
pub const SUM: u16 = 7;
pub const TURN: u16 = 8;
pub const SWAP: u16 = 9;

/// Answers what was deferred.
pub const ANSWER: u32 = 1;
/// Is counted.
pub const COUNT: u32 = 2;
/// Ends the server.
const QUIT: u32 = 4;
pub const MASK: u32 = ANSWER | COUNT | QUIT;

/// A frame by its number.
pub fn frame(index: usize) -> FrameDesc {
    FrameDesc { handle: abi::FrameHandle::new(index, 1), len: 64, offset: 2, meta: 0 }
}

#[derive(Default)]
struct Seen {
    handled: u32,
    counted: u32,
    deferred: usize,
    lost_leases: u32,
    refused: Option<(KernelError, Vec<FrameDesc>)>,
}

type Lent = Leased<Write, [u8], Task>;

#[derive(Default)]
struct Handlers {
    seen: Arc<Mutex<Seen>>,
    waiting: VecDeque<(TaskId, Lent)>,
    with_frames: VecDeque<(TaskId, FrameList)>,
    quit: bool,
}

impl Handlers {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no panic")
    }

    fn handled(&self) {
        self.seen().handled += 1;
    }

    fn answer(&mut self, kernel: &Task) {
        while let Some((caller, to)) = self.waiting.pop_front() {
            let written = to.write_at(0, &vec![7; to.len()]);
            if written.is_err() {
                self.seen().lost_leases += 1;
            }
            ProbeInterface::reply_later(kernel, caller, Ok(to.len() as u32)).expect("accepted");
        }
        while let Some((caller, frames)) = self.with_frames.pop_front() {
            let mut back = FrameList::new();
            for frame in frames.as_slice().iter().rev() {
                back.push(*frame).expect("room");
            }
            ProbeInterface::reply_later_frames(kernel, caller, Err(back.len() as u32), &mut back).expect("accepted");
        }
    }
}

impl ProbeServer<Task> for Handlers {
    fn nothing(&mut self, _: &Request<Task>) -> Result<(), RequestError> {
        self.handled();
        Ok(())
    }

    fn mix(
        &mut self,
        _: &Request<Task>,
        small: u8,
        wide: Wide,
        large: u64,
        flag: bool,
        handle: FrameDesc,
        colours: [Colour; 2],
    ) -> Result<Sample, RequestError> {
        self.handled();
        let values = [i16::from(small), wide as i16, handle.handle.index() as i16];
        Ok(Sample { time: large, values, colour: colours[0], valid: flag })
    }

    fn fallible(&mut self, _: &Request<Task>, which: u32) -> Result<u16, RequestError<ProbeError>> {
        self.handled();
        match which {
            0 => Ok(11),
            1 => Err(ProbeError::Busy)?,
            2 => Err(ProbeError::TooHot.into()),
            _ => Err(RequestError::Refused(Refusal::LeaseLost)),
        }
    }

    fn detailed(&mut self, _: &Request<Task>, fail: bool) -> Result<u8, RequestError<Told>> {
        self.handled();
        if fail {
            return Err(Told { detail: 77, point: Point { x: 1.5, y: -2.0 }, flag: 1, reserved: [0; 3] }.into());
        }
        Ok(3)
    }

    fn name(&mut self, _: &Request<Task>, text: &str, bytes: &[u8], shared: Shared) -> Result<Label, RequestError> {
        self.handled();
        assert!(text.len() <= 16 && bytes.len() <= 4);
        let colour = (shared.0 == u64::MAX).then_some(Colour::Green);
        Ok(Label { name: text.parse().expect("short"), colour })
    }

    fn labelled(
        &mut self,
        _: &Request<Task>,
        fail: Option<u16>,
    ) -> Result<heapless::Vec<u8, 8>, RequestError<heapless::String<20>>> {
        self.handled();
        match fail {
            Some(number) => Err(RequestError::Server(format!("error {number}").parse().expect("short"))),
            None => Ok(heapless::Vec::from([8; 8])),
        }
    }

    fn sum(&mut self, _: &Request<Task>, words: Leased<Read, [u32], Task>) -> Result<u32, RequestError> {
        self.handled();
        let mut all = [0; 8];
        let all = &mut all[..words.len()];
        words.read_at(0, all).map_err(RequestError::lost)?;
        assert_eq!(words.read_at(1, all), Err(KernelError::LeaseBounds));
        Ok(all.iter().fold(0, |sum: u32, word| sum.wrapping_add(*word)))
    }

    fn turn(
        &mut self,
        _: &Request<Task>,
        by: u8,
        data: Leased<Both, [u8], Task>,
        before: Leased<Write, [u8], Task>,
        point: Leased<Write, Point, Task>,
        seed: Leased<Read, u32, Task>,
    ) -> Result<(), RequestError> {
        self.handled();
        let mut bytes = vec![0; data.len()];
        data.read_at(0, &mut bytes).map_err(RequestError::lost)?;
        before.write_at(0, &bytes[..before.len().min(bytes.len())]).map_err(RequestError::lost)?;
        let by = usize::from(by).min(bytes.len());
        bytes.rotate_left(by);
        data.write_at(0, &bytes).map_err(RequestError::lost)?;
        let mut corner = Point::new_zeroed();
        corner.x = seed.read().map_err(RequestError::lost)? as f32;
        corner.y = bytes.len() as f32;
        point.write(&corner).map_err(RequestError::lost)
    }

    fn swap(&mut self, _: &Request<Task>, keep: u8, frames: &mut FrameList) -> Result<u8, RequestError<ProbeError>> {
        self.handled();
        let sent = frames.len();
        match keep {
            200 => return Err(ProbeError::Busy.into()),
            100 => frames.push(frame(500)).expect("room"),
            keep => {
                let rest = frames.as_slice().get(usize::from(keep)..).unwrap_or_default().to_vec();
                frames.clear();
                rest.into_iter().for_each(|frame| frames.push(frame).expect("room"));
            }
        }
        Ok(sent as u8)
    }

    fn later(
        &mut self,
        request: &Request<Task>,
        to: Leased<Write, [u8], Task>,
    ) -> Result<u32, RequestError<ProbeError, Deferred>> {
        self.waiting.push_back((request.caller, to));
        self.seen().deferred += 1;
        Err(RequestError::Deferred(Deferred))
    }

    fn later_frames(
        &mut self,
        request: &Request<Task>,
        text: &str,
        frames: &mut FrameList,
    ) -> Result<u8, RequestError<u32, Deferred>> {
        assert_eq!(text, "later");
        self.with_frames.push_back((request.caller, std::mem::take(frames)));
        self.seen().deferred += 1;
        Err(RequestError::Deferred(Deferred))
    }

    fn retry(&mut self, _: &Request<Task>, value: u32) -> Result<u32, RequestError> {
        Ok(value + 1)
    }

    fn notification_mask(&self) -> u32 {
        MASK
    }

    fn handle_notification(&mut self, kernel: &Task, bits: u32) {
        if bits == STOP || bits & QUIT != 0 {
            self.quit = true;
            return;
        }
        if bits & COUNT != 0 {
            self.seen().counted += 1;
        }
        if bits & ANSWER != 0 {
            self.answer(kernel);
        }
    }

    fn reply_refused(&mut self, _: TaskId, error: KernelError, frames: &mut FrameList) {
        self.seen().refused = Some((error, frames.as_slice().to_vec()));
    }
}

/// A running server.
pub struct Server {
    world: World,
    seen: Arc<Mutex<Seen>>,
    thread: JoinHandle<()>,
}

/// A world with a running server.
pub fn start() -> (World, Server) {
    let world = World::new(4);
    let server = Server::run(&world);
    (world, server)
}

impl Server {
    /// Runs the current instance.
    pub fn run(world: &World) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (shared, task) = (Arc::clone(&seen), world.task(SERVER));
        let thread = thread::spawn(move || {
            let mut handlers = Handlers { seen: shared, ..Handlers::default() };
            let mut buffers = ProbeBuffers::new();
            serve_while::<ProbeInterface, _, _, _, _>(&task, &mut handlers, &mut buffers, |handlers| !handlers.quit);
        });
        Self { world: world.clone(), seen, thread }
    }

    /// A world whose server does not receive yet.
    pub fn held() -> (World, HeldServer) {
        let world = World::new(4);
        let server = Self::hold(&world);
        (world, server)
    }

    /// An instance that does not receive yet.
    pub fn hold(world: &World) -> HeldServer {
        HeldServer(world.task(SERVER))
    }

    /// Ends it; a panic in it ends the test.
    pub fn stop(self) {
        self.world.post(SERVER, QUIT);
        self.thread.join().expect("the server did not panic");
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("no panic")
    }

    /// Requests that handlers have seen.
    pub fn handled(&self) -> u32 {
        self.seen().handled
    }

    /// `COUNT` notifications.
    pub fn counted(&self) -> u32 {
        self.seen().counted
    }

    /// Requests deferred so far.
    pub fn deferred(&self) -> usize {
        self.seen().deferred
    }

    /// Leases whose owner had gone.
    pub fn lost_leases(&self) -> u32 {
        self.seen().lost_leases
    }

    /// The last refused reply.
    pub fn take_refused(&self) -> Option<(KernelError, Vec<FrameDesc>)> {
        self.seen().refused.take()
    }
}

/// An instance under the control of the test.
pub struct HeldServer(Task);

impl HeldServer {
    /// Receives one message and does nothing about it.
    pub fn receive_only(self) {
        let mut message = [0; 128];
        let mut frames = FrameList::new();
        let received = self.0.recv(RecvBuffers { message: &mut message, frames: Some(&mut frames) }, 0, 0);
        assert_ne!(received.sender, TaskId::KERNEL);
    }
}
