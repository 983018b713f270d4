//! A driver with a small queue: a long write waits until all of it has been taken.

use std::thread;

use idol_runtime::fake::{STOP, Task, World};
use idol_runtime::{
    Deferred, Error, Leased, Read, Refusal, Request, RequestError, TaskId, TaskSlot, Write, serve_while,
};
use serial_api::{Serial, SerialBuffers, SerialInterface, SerialServer, Status};

const DRAINED: u32 = 1;
const QUEUE: usize = 16;

type Data = Leased<Read, [u8], Task>;

#[derive(Default)]
struct Port {
    wire: Vec<u8>,
    queue: Vec<u8>,
    input: Vec<u8>,
    writer: Option<(TaskId, Data, usize)>,
    flusher: Option<TaskId>,
    stopped: bool,
}

impl Port {
    /// Takes what fits; true if that was all.
    fn take(&mut self) -> bool {
        let Some((_, data, taken)) = &mut self.writer else { return true };
        let mut chunk = [0; QUEUE];
        let len = (QUEUE - self.queue.len()).min(data.len() - *taken);
        data.read_at(*taken, &mut chunk[..len]).expect("the caller waits");
        self.queue.extend(&chunk[..len]);
        *taken += len;
        *taken == data.len()
    }
}

impl SerialServer<Task> for Port {
    fn write(
        &mut self,
        request: &Request<Task>,
        data: Data,
    ) -> Result<u32, RequestError<core::convert::Infallible, Deferred>> {
        let len = data.len() as u32;
        self.writer = Some((request.caller, data, 0));
        if self.take() {
            self.writer = None;
            return Ok(len);
        }
        Err(RequestError::Deferred(Deferred))
    }

    fn read(&mut self, _: &Request<Task>, buffer: Leased<Write, [u8], Task>) -> Result<u32, RequestError> {
        let len = buffer.len().min(self.input.len());
        buffer.write_at(0, &self.input[..len]).map_err(RequestError::lost)?;
        self.input.drain(..len);
        Ok(len as u32)
    }

    fn flush(&mut self, request: &Request<Task>) -> Result<(), RequestError<core::convert::Infallible, Deferred>> {
        if self.queue.is_empty() {
            return Ok(());
        }
        self.flusher = Some(request.caller);
        Err(RequestError::Deferred(Deferred))
    }

    fn status(&mut self, _: &Request<Task>) -> Result<Status, RequestError> {
        Ok(Status { sent: self.wire.len() as u64, ..Status::default() })
    }

    fn notification_mask(&self) -> u32 {
        DRAINED
    }

    fn handle_notification(&mut self, kernel: &Task, bits: u32) {
        if bits == STOP {
            self.stopped = true;
            return;
        }
        self.wire.append(&mut self.queue);
        if self.take()
            && let Some((caller, data, _)) = self.writer.take()
        {
            SerialInterface::reply_write(kernel, caller, Ok(data.len() as u32)).expect("accepted");
        }
        if self.queue.is_empty()
            && let Some(caller) = self.flusher.take()
        {
            SerialInterface::reply_flush(kernel, caller, Ok(())).expect("accepted");
        }
    }
}

#[test]
fn writes_reads_and_flushes() {
    let world = World::new(2);
    let task = world.task(1);
    let server = thread::spawn(move || {
        let mut port = Port { input: b"hello".to_vec(), ..Port::default() };
        let mut buffers = SerialBuffers::new();
        serve_while::<SerialInterface, _, _, _, _>(&task, &mut port, &mut buffers, |port| !port.stopped);
        port.wire
    });
    let other = world.clone();
    let client = thread::spawn(move || {
        let serial = Serial::with_kernel(TaskSlot(1), other.task(0));
        let text: Vec<u8> = (0..100).collect();
        assert_eq!(serial.write(&text), Ok(100));
        assert_eq!(serial.flush(), Ok(()));
        assert_eq!(serial.status().map(|status| status.sent), Ok(100));
        assert_eq!(serial.write(&[]), Ok(0));
        let mut buffer = [0; 3];
        assert_eq!((serial.read(&mut buffer), &buffer), (Ok(3), b"hel"));
        assert_eq!((serial.read(&mut buffer), &buffer[..2]), (Ok(2), &b"lo"[..]));
        assert_eq!(serial.read(&mut buffer), Ok(0));
        assert_eq!(serial.read(&mut []), Err(Error::Refused(Refusal::LeaseTooShort)));
    });
    // The wire is as slow as it likes to be.
    while !client.is_finished() {
        world.post(1, DRAINED);
        thread::yield_now();
    }
    client.join().expect("no panic");
    world.kill(1);
    assert_eq!(server.join().expect("no panic"), (0..100).collect::<Vec<u8>>());
}
