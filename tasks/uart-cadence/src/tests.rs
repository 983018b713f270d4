//! The server against a model of the UART, with real clients on threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use idol_runtime::TaskSlot;
use idol_runtime::fake::{Task, World};
use serial_api::{Serial, SerialBuffers, SerialInterface};

use crate::port::Port;
use crate::server::{Outside, Server};

const SERVER: usize = 0;
const WRITER: usize = 1;
const READER: usize = 2;
const IRQ: u32 = 1;
/// Bytes in a FIFO.
const DEPTH: usize = 64;

/// A UART whose line moves only when a test says so.
#[derive(Default)]
struct Line {
    transmit: VecDeque<u8>,
    out: Vec<u8>,
    receive: VecDeque<u8>,
    overrun: bool,
    watched: bool,
    told: u32,
    enabled: u32,
    stop: bool,
}

#[derive(Clone, Default)]
struct Model(Arc<Mutex<Line>>);

impl Model {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Port for Model {
    fn get(&mut self) -> Option<u8> {
        self.line().receive.pop_front()
    }

    fn put(&mut self, byte: u8) -> bool {
        let mut line = self.line();
        let room = line.transmit.len() < DEPTH;
        if room {
            line.transmit.push_back(byte);
        }
        room
    }

    fn acknowledge(&mut self) -> bool {
        std::mem::take(&mut self.line().overrun)
    }

    fn watch_empty(&mut self, on: bool) {
        self.line().watched = on;
    }

    fn is_sent(&mut self) -> bool {
        self.line().transmit.is_empty()
    }
}

impl Outside for Model {
    fn tell(&mut self) {
        self.line().told += 1;
    }

    fn enable_interrupt(&mut self) {
        self.line().enabled += 1;
    }
}

/// Server on its thread, and the line.
struct Bench {
    world: World,
    model: Model,
    server: Option<thread::JoinHandle<()>>,
}

impl Bench {
    fn new() -> Self {
        let world = World::new(4);
        let model = Model::default();
        let (task, port) = (world.task(SERVER), model.clone());
        let server = thread::spawn(move || {
            let mut server = Server::new(port.clone(), port.clone(), IRQ);
            let mut buffers = SerialBuffers::new();
            let go_on = |_: &Server<Model, Model, Task>| !port.line().stop;
            idol_runtime::serve_while::<SerialInterface, _, _, _, _>(&task, &mut server, &mut buffers, go_on);
        });
        Self { world, model, server: Some(server) }
    }

    fn client(&self, index: usize) -> Serial<Task> {
        Serial::with_kernel(TaskSlot(SERVER as u8), self.world.task(index))
    }

    /// The line takes all that is in the FIFO; the interrupt follows if it is watched.
    fn drain(&self) {
        let mut line = self.model.line();
        let sent: Vec<u8> = line.transmit.drain(..).collect();
        line.out.extend(sent);
        if line.watched {
            drop(line);
            self.world.post(SERVER, IRQ);
        }
    }

    fn input(&self, bytes: &[u8]) {
        self.model.line().receive.extend(bytes);
        self.world.post(SERVER, IRQ);
    }

    /// Drains until a thread is done.
    fn drain_until<T>(&self, thread: thread::JoinHandle<T>) -> T {
        while !thread.is_finished() {
            self.drain();
            thread::yield_now();
        }
        thread.join().expect("the client is content")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.model.line().stop = true;
        self.world.post(SERVER, IRQ);
        if let Some(server) = self.server.take()
            && server.join().is_err()
            && !thread::panicking()
        {
            panic!("the server panicked");
        }
    }
}

fn text(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

#[test]
fn what_fits_the_fifo_is_written_at_once() {
    let bench = Bench::new();
    let writer = bench.client(WRITER);
    assert_eq!(writer.write(&text(DEPTH)), Ok(64));
    assert_eq!(writer.write(&[]), Ok(0));
    bench.drain();
    assert_eq!(bench.model.line().out, text(DEPTH));
}

#[test]
fn a_long_write_waits_for_the_line_and_is_complete() {
    let bench = Bench::new();
    let writer = bench.client(WRITER);
    let thread = thread::spawn(move || writer.write(&text(1000)));
    assert_eq!(bench.drain_until(thread), Ok(1000));
    bench.drain();
    assert_eq!(bench.model.line().out, text(1000));
    assert!(!bench.model.line().watched, "nothing waits, so the empty FIFO is of no interest");
}

#[test]
fn two_writers_do_not_mix_and_the_reader_is_served_meanwhile() {
    let bench = Bench::new();
    let (first, second, reader) = (bench.client(WRITER), bench.client(3), bench.client(READER));
    let first = thread::spawn(move || first.write(&[b'a'; 200]));
    bench.world.wait_until_calling(WRITER, true);
    let second = thread::spawn(move || second.write(&[b'b'; 200]));
    bench.world.wait_until_calling(3, true);
    // Both wait for the line. Input still gets through.
    bench.input(b"ls\r");
    let mut buffer = [0; 16];
    let mut got = 0;
    while got == 0 {
        got = reader.read(&mut buffer).expect("served") as usize;
    }
    assert_eq!(&buffer[..got], b"ls\r");
    assert_eq!(bench.drain_until(first), Ok(200));
    assert_eq!(bench.drain_until(second), Ok(200));
    bench.drain();
    assert_eq!(bench.model.line().out, [[b'a'; 200], [b'b'; 200]].concat());
}

#[test]
fn flush_returns_when_the_line_is_quiet() {
    let bench = Bench::new();
    let writer = bench.client(WRITER);
    assert_eq!(writer.flush(), Ok(()));
    assert_eq!(writer.write(b"last words"), Ok(10));
    let thread = thread::spawn(move || writer.flush());
    bench.world.wait_until_calling(WRITER, true);
    assert!(bench.model.line().out.is_empty());
    assert_eq!(bench.drain_until(thread), Ok(()));
    assert_eq!(bench.model.line().out, b"last words");
}

#[test]
fn input_comes_in_order_and_what_is_lost_is_counted() {
    let bench = Bench::new();
    let reader = bench.client(READER);
    let mut buffer = [0; 4096];
    assert_eq!(reader.read(&mut buffer), Ok(0));
    // More than the driver keeps, in interrupts of 200 bytes.
    let input = text(3000);
    for (count, piece) in input.chunks(200).enumerate() {
        bench.input(piece);
        while bench.model.line().told as usize <= count {
            thread::yield_now();
        }
    }
    bench.model.line().overrun = true;
    bench.world.post(SERVER, IRQ);
    let mut status = reader.status().expect("served");
    while status.lost == 3000 - 2048 {
        status = reader.status().expect("served");
    }
    assert_eq!((status.received, status.lost), (3000, 3000 - 2048 + 1));
    assert_eq!(reader.read(&mut buffer[..100]), Ok(100));
    assert_eq!(reader.read(&mut buffer[100..]), Ok(1948));
    assert_eq!(buffer[..2048], input[..2048]);
    let line = bench.model.line();
    assert_eq!(line.told, 15);
    assert!(line.enabled >= 16, "each interrupt is enabled again, and once at the start");
}

#[test]
fn a_writer_that_dies_holds_nobody_up() {
    let bench = Bench::new();
    let (dying, other) = (bench.client(WRITER), bench.client(3));
    // Its thread goes on waiting; the instance is gone all the same.
    let _ = thread::Builder::new().spawn(move || dying.write(&[b'x'; 200]));
    while !bench.model.line().watched {
        thread::yield_now();
    }
    bench.world.kill(WRITER);
    let other = thread::spawn(move || other.write(b"alive"));
    bench.world.wait_until_calling(3, true);
    assert_eq!(bench.drain_until(other), Ok(5));
    bench.drain();
    let out = bench.model.line().out.clone();
    assert!(out.ends_with(b"alive"));
    assert_eq!(out.len(), DEPTH + 5, "what was in the FIFO, and then the next writer");
}
