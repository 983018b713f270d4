//! The driver as server of `serial-api`.
//!
//! Output has no buffer here: a writer's bytes go from its lease straight to the FIFO, and the writer waits until the last one is in.
//! While the FIFO is full the driver serves others; the interrupt of an empty FIFO lets it go on.

use heapless::Deque;
use idol_runtime::{Deferred, Kernel, Leased, Read, Request, RequestError, TaskId, Write};
use serial_api::{SerialInterface, SerialServer, Status};

use crate::input::Input;
use crate::port::Port;

/// Bytes of input that are kept for the reader.
const INPUT: usize = 2048;
/// Bytes fetched from a lease at a time: a FIFO's worth.
const CHUNK: usize = 64;
/// Input bytes taken per interrupt, so that a babbling line leaves time for others.
const MOST_INPUT: usize = 256;
/// A task waits for one answer at a time.
const MOST_JOBS: usize = abi::MAX_TASKS;

/// What leaves the server beside replies.
pub trait Outside {
    /// Tells the reader that input has arrived.
    fn tell(&mut self);
    /// Unmasks the UART's interrupt.
    fn enable_interrupt(&mut self);
}

/// A caller that waits.
#[derive(Debug)]
enum Job<K> {
    /// For its output to get into the FIFO; `at` bytes are.
    Write { caller: TaskId, data: Leased<Read, [u8], K>, at: usize },
    /// For the FIFO to be empty.
    Flush { caller: TaskId },
}

/// Port, input, and callers that wait.
#[derive(Debug)]
pub struct Server<P, O, K> {
    port: P,
    outside: O,
    irq: u32,
    input: Input<INPUT>,
    jobs: Deque<Job<K>, MOST_JOBS>,
    received: u64,
    sent: u64,
}

impl<P: Port, O: Outside, K: Kernel> Server<P, O, K> {
    /// A server over a port that is set up. `irq` is the notification of its interrupt.
    pub fn new(port: P, mut outside: O, irq: u32) -> Self {
        outside.enable_interrupt();
        Self { port, outside, irq, input: Input::new(), jobs: Deque::new(), received: 0, sent: 0 }
    }

    /// What the port is attached to.
    pub const fn port(&mut self) -> &mut P {
        &mut self.port
    }

    fn interrupt(&mut self, kernel: &K) {
        if self.port.acknowledge() {
            // At least one; the FIFO does not say how many.
            self.input.count_lost(1);
        }
        let before = self.received;
        for _ in 0..MOST_INPUT {
            let Some(byte) = self.port.get() else { break };
            self.received += 1;
            self.input.push(byte);
        }
        self.work(kernel);
        self.outside.enable_interrupt();
        if self.received != before {
            self.outside.tell();
        }
    }

    /// Goes on with the callers that wait, in their order.
    fn work(&mut self, kernel: &K) {
        while let Some(mut job) = self.jobs.pop_front() {
            if let Some(answer) = self.advance(&mut job) {
                reply(kernel, &job, answer);
            } else {
                // There is room: it was there just now.
                let _ = self.jobs.push_front(job);
                self.port.watch_empty(true);
                return;
            }
        }
        self.port.watch_empty(false);
    }

    /// Does what can be done of a job now; its result if that is all.
    fn advance(&mut self, job: &mut Job<K>) -> Option<u32> {
        match job {
            Job::Flush { .. } => self.port.is_sent().then_some(0),
            Job::Write { data, at, .. } => {
                let mut chunk = [0; CHUNK];
                while *at < data.len() {
                    let count = CHUNK.min(data.len() - *at);
                    let bytes = &mut chunk[..count];
                    if data.read_at(*at, bytes).is_err() {
                        // The caller is gone; nobody will see the answer.
                        return Some(*at as u32);
                    }
                    for byte in bytes {
                        if !self.port.put(*byte) {
                            return None;
                        }
                        *at += 1;
                        self.sent += 1;
                    }
                }
                Some(*at as u32)
            }
        }
    }

    /// Does a job at once if none waits before it and it can be done; else it waits.
    fn do_or_queue(&mut self, mut job: Job<K>) -> Result<u32, RequestError<core::convert::Infallible, Deferred>> {
        if self.jobs.is_empty()
            && let Some(answer) = self.advance(&mut job)
        {
            return Ok(answer);
        }
        if self.jobs.push_back(job).is_err() {
            // More than there are tasks: callers that died. The interrupt drops them; this one may try again.
            return Ok(0);
        }
        self.port.watch_empty(true);
        Err(RequestError::Deferred(Deferred))
    }
}

/// Answers a caller that waited. One that died needs none.
fn reply<K: Kernel>(kernel: &K, job: &Job<K>, answer: u32) {
    let _ = match job {
        Job::Write { caller, .. } => SerialInterface::reply_write(kernel, *caller, Ok(answer)),
        Job::Flush { caller } => SerialInterface::reply_flush(kernel, *caller, Ok(())),
    };
}

impl<P: Port, O: Outside, K: Kernel> SerialServer<K> for Server<P, O, K> {
    fn write(
        &mut self,
        request: &Request<K>,
        data: Leased<Read, [u8], K>,
    ) -> Result<u32, RequestError<core::convert::Infallible, Deferred>> {
        self.do_or_queue(Job::Write { caller: request.caller, data, at: 0 })
    }

    fn read(&mut self, _: &Request<K>, buffer: Leased<Write, [u8], K>) -> Result<u32, RequestError> {
        let mut at = 0;
        while at < buffer.len() && !self.input.is_empty() {
            let piece = self.input.front(buffer.len() - at);
            buffer.write_at(at, piece).map_err(RequestError::lost)?;
            let count = piece.len();
            self.input.consume(count);
            at += count;
        }
        Ok(at as u32)
    }

    fn flush(&mut self, request: &Request<K>) -> Result<(), RequestError<core::convert::Infallible, Deferred>> {
        self.do_or_queue(Job::Flush { caller: request.caller }).map(drop)
    }

    fn status(&mut self, _: &Request<K>) -> Result<Status, RequestError> {
        Ok(Status { received: self.received, sent: self.sent, lost: self.input.lost() })
    }

    fn notification_mask(&self) -> u32 {
        self.irq
    }

    fn handle_notification(&mut self, kernel: &K, bits: u32) {
        if bits & self.irq != 0 {
            self.interrupt(kernel);
        }
    }
}
