//! What wakes the task, and who gets what.

use bench_api::{BenchError, BenchServer, Event, Failure, Job, Peer, Session};
use heapless::Deque;
use idol_runtime::{Kernel, Request, RequestError, System};
use userlib::{config, ipc, time};

use super::jobs::{Events, Running};
use super::micro;
use super::net::Stack;
use super::tcp::TcpServices;
use super::udp::UdpServices;

/// Sessions of port 5001 that are kept.
const SESSIONS: usize = 8;
/// Between two attempts to open what could not be opened, in microseconds.
const RETRY: u64 = 50_000;
/// So long after a crash of some task is the stack's instance looked at.
const WATCH: u64 = 2_000_000;

pub struct Server {
    stack: Stack,
    tcp: TcpServices,
    udp: UdpServices,
    job: Option<Running>,
    events: Events,
    sessions: Deque<Session, SESSIONS>,
    bits: Bits,
    /// Some service has no socket yet.
    incomplete: bool,
    /// Until then the stack may be restarted.
    watch: u64,
    armed: Option<u64>,
    later: Option<u64>,
    told: usize,
}

#[derive(Clone, Copy)]
struct Bits {
    net: u32,
    timer: u32,
    crash: u32,
}

impl Server {
    pub fn new() -> Self {
        let bits = Bits {
            net: config::notification("socket"),
            timer: config::notification("timer"),
            crash: config::notification("crash"),
        };
        Self {
            stack: Stack::new(),
            tcp: TcpServices::default(),
            udp: UdpServices::new(),
            job: None,
            events: Events::new(),
            sessions: Deque::new(),
            bits,
            incomplete: true,
            watch: 0,
            armed: None,
            later: None,
            told: 0,
        }
    }

    /// Opens the services.
    pub fn begin(&mut self) {
        self.open();
        self.rest();
    }

    fn open(&mut self) {
        let tcp = self.tcp.listen(&self.stack);
        let udp = self.udp.bind(&self.stack);
        self.incomplete = !(tcp && udp);
    }

    /// Serves the sockets that have news.
    fn sockets(&mut self) {
        let Ok(mut places) = self.stack.net().events() else { return };
        while places != 0 {
            let place = places.trailing_zeros() as usize;
            places &= places - 1;
            self.socket(place);
        }
    }

    fn socket(&mut self, place: usize) {
        if self.job.as_ref().and_then(Running::socket).is_some_and(|socket| socket.place() == place) {
            return self.work();
        }
        let Self { stack, tcp, udp, job, sessions, events, .. } = self;
        let mut done = |session| finish(job, sessions, events, session);
        let mut begun = None;
        let was_full = tcp.is_full();
        tcp.serve(stack, place, &mut done, |port, peer| begun = (port == 5001).then_some(peer).or(begun));
        udp.serve(stack, place, &mut done);
        if let (Some(Running::Receive { udp: false }), Some(remote)) = (&self.job, begun) {
            let local = Peer { address: self.own_address(), port: 5001 };
            let _ = self.events.push_back(Event::Accepted { local, remote });
        }
        if was_full && !self.tcp.is_full() {
            // Somebody may wait at a listener that was told of no more.
            let mut listeners = [None; 8];
            listeners.iter_mut().zip(self.tcp.sockets()).for_each(|(place, socket)| *place = Some(socket.place()));
            listeners.into_iter().flatten().for_each(|place| self.socket(place));
        }
    }

    fn own_address(&self) -> [u8; 4] {
        self.stack.net().interface().map(|interface| interface.address.0).unwrap_or_default()
    }

    /// Goes on with the job.
    fn work(&mut self) {
        let Some(job) = &mut self.job else { return };
        self.later = job.work(&mut self.stack, &mut self.events);
        if self.events.back().is_some_and(Event::is_last) {
            self.end();
        }
    }

    fn end(&mut self) {
        // What has ended well has closed its socket; then this is refused, and nothing else happens.
        if let Some(socket) = self.job.take().as_ref().and_then(Running::socket) {
            let _ = self.stack.net().close(socket, 1);
        }
        self.later = None;
    }

    /// If there is a new instance of the stack, starts over.
    fn watch(&mut self, now: u64) {
        if self.stack.was_restarted() {
            self.tcp.forget();
            self.udp.forget();
            if self.job.as_ref().is_some_and(|job| job.socket().is_some()) {
                self.job = None;
                self.later = None;
                let _ = self.events.push_back(Event::Failed(Failure::StackRestarted));
            }
            self.incomplete = true;
            self.watch = now;
        }
        if self.incomplete {
            self.open();
        }
    }

    /// Before the task waits: tells the console, sets the timer.
    fn rest(&mut self) {
        if self.events.len() > self.told {
            config::for_each_notify("progress", |task, mask| {
                // The build checked that we may post there.
                let _ = ipc::post(task, mask);
            });
        }
        self.told = self.events.len();
        let now = time::micros();
        let retry = (self.incomplete || now < self.watch).then_some(now + RETRY);
        let deadline = [retry, self.later, self.udp.deadline()].into_iter().flatten().min();
        // A timer that fires too early does no harm, and is cheaper than to set it each time.
        if let Some(deadline) = deadline
            && self.armed.is_none_or(|armed| deadline < armed || armed <= now)
        {
            self.armed = Some(deadline);
            time::set_timer(time::from_micros(deadline), self.bits.timer);
        }
    }

    fn timer(&mut self) {
        self.armed = None;
        let now = time::micros();
        if self.incomplete || now < self.watch {
            self.watch(now);
        }
        let Self { udp, job, sessions, events, .. } = self;
        udp.expire(|session| finish(job, sessions, events, session));
        self.work();
    }
}

/// A stream or series to port 5001 has ended.
fn finish(job: &mut Option<Running>, sessions: &mut Deque<Session, SESSIONS>, events: &mut Events, session: Session) {
    if sessions.is_full() {
        sessions.pop_back();
    }
    let _ = sessions.push_front(session);
    if let Some(Running::Receive { udp }) = job
        && *udp == session.udp
    {
        let _ = events.push_back(Event::Transfer(session.transfer));
        *job = None;
    }
}

impl<K: Kernel> BenchServer<K> for Server {
    fn start(&mut self, _: &Request<K>, job: Job) -> Result<(), RequestError<BenchError>> {
        if self.job.is_some() {
            return Err(BenchError::Busy.into());
        }
        self.events.clear();
        self.told = 0;
        if let Job::Micro { what, rounds } = job {
            let _ = self.events.push_back(micro::measure(what, rounds));
        } else {
            match Running::start(&job, &self.stack) {
                Ok(running) => self.job = Some(running),
                Err(failure) => drop(self.events.push_back(Event::Failed(failure))),
            }
            self.work();
        }
        self.rest();
        Ok(())
    }

    fn stop(&mut self, _: &Request<K>) -> Result<(), RequestError> {
        if let Some(Running::Receive { .. }) = self.job {
            let _ = self.events.push_back(Event::Failed(Failure::TimedOut));
            self.job = None;
        } else if let Some(job) = &mut self.job {
            job.stop();
            self.work();
        }
        self.rest();
        Ok(())
    }

    fn abandon(&mut self, _: &Request<K>) -> Result<(), RequestError> {
        self.end();
        self.events.clear();
        self.told = 0;
        Ok(())
    }

    fn event(&mut self, _: &Request<K>) -> Result<Event, RequestError<BenchError>> {
        let event = self.events.pop_front().ok_or(BenchError::Nothing)?;
        self.told = self.events.len();
        // A job that waited for room in the queue goes on.
        if self.events.len() + 1 == self.events.capacity() / 2 {
            self.work();
        }
        self.rest();
        Ok(event)
    }

    fn session(&mut self, _: &Request<K>, index: u32) -> Result<Session, RequestError<BenchError>> {
        Ok(*self.sessions.iter().nth(index as usize).ok_or(BenchError::Nothing)?)
    }

    fn notification_mask(&self) -> u32 {
        self.bits.net | self.bits.timer | self.bits.crash
    }

    fn handle_notification(&mut self, _: &K, bits: u32) {
        // No bit: one may have been taken elsewhere, so look at everything.
        let bits = if bits == 0 { u32::MAX } else { bits };
        if bits & self.bits.crash != 0 {
            let now = time::micros();
            self.watch = now + WATCH;
            self.watch(now);
        }
        if bits & self.bits.net != 0 {
            self.sockets();
            // Echo replies belong to no socket.
            if let Some(Running::Ping(_)) = self.job {
                self.work();
            }
        }
        if bits & self.bits.timer != 0 {
            self.timer();
        }
        self.rest();
    }
}

// The real system is what `serve` runs on.
const _: fn(&Server) -> u32 = |server| <Server as BenchServer<System>>::notification_mask(server);
