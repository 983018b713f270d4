//! What the tests work with, and what is checked around each of them.

use core::fmt::Write;

use abi::stats::TaskState;
use abi::{MAX_TASKS, TaskId};
use idol_runtime::TaskSlot;
use net_api::{Address, Endpoint, Net};
use partner_api::Partner;
use report::Record;
use serial_api::Serial;
use suite::Line;
use supervisor_api::Supervisor;
use userlib::{FrameList, config, ipc, kernel, time};

use crate::check::{Expect, Failure, Outcome};
use crate::console::Console;
use crate::memory::Pool;
use crate::tests::Test;
use crate::victims::{High, Low, revive, task};

/// What the tests work with.
pub struct Suite {
    /// The line to the host.
    pub console: Console,
    /// The victim above the suite.
    pub high: High,
    /// The victim below.
    pub low: Low,
    /// The victim below both.
    pub last: Low,
    /// A well-behaved server with frames.
    pub partner: Partner,
    /// The supervisor.
    pub supervisor: Supervisor,
    /// The network stack.
    pub net: Net,
    /// The MAC driver.
    pub mac: mac_api::Mac,
    /// Frames of the partner.
    pub pool: Pool,
    /// Own index.
    pub own: u8,
    /// Own notification bits.
    pub bits: Bits,
    /// Where the host's echo services are.
    pub peer: Option<Endpoint>,
    /// Last notification sequence number.
    pub seen: u32,
    line: Line,
}

/// Own notification bits.
#[derive(Clone, Copy, Debug)]
pub struct Bits {
    /// Input from the host.
    pub input: u32,
    /// News of sockets.
    pub socket: u32,
    /// The timer of [`Suite::wait`].
    pub timer: u32,
    /// The supervisor has seen a crash.
    pub crash: u32,
    /// For tests.
    pub a: u32,
    /// For tests.
    pub b: u32,
}

impl Suite {
    /// Takes all windows and slots.
    pub fn new() -> Self {
        Self {
            console: Console::new(Serial::from(TaskSlot::named("uart"))),
            high: High::take(),
            low: Low::take("victim-low"),
            last: Low::take("victim-last"),
            partner: Partner::from(TaskSlot::named("partner")),
            supervisor: Supervisor::from(TaskSlot::named("supervisor")),
            net: Net::from(TaskSlot::named("net")),
            mac: mac_api::Mac::from(TaskSlot::named("mac")),
            pool: Pool::take(),
            own: task("suite"),
            bits: Bits {
                input: config::notification("input"),
                socket: config::notification("socket"),
                timer: config::notification("timer"),
                crash: config::notification("crash"),
                a: config::notification("a"),
                b: config::notification("b"),
            },
            peer: None,
            seen: 0,
            line: Line::new(),
        }
    }

    /// Own id.
    pub fn id(&self) -> TaskId {
        ipc::current_id(self.own)
    }

    /// Says why the instance before this one died, if there was one.
    pub fn report_own_death(&mut self) {
        let Some(fault) = kernel::task_status(self.own).ok().and_then(|status| status.fault) else { return };
        let mut message = [0; 128];
        let len = kernel::panic_message(self.own, &mut message).unwrap_or(0);
        let message = str::from_utf8(&message[..len]).unwrap_or_default();
        let mut text = heapless::String::<300>::new();
        let _ = write!(text, "the suite died: {:?} {message}", fault.info);
        self.console.send(&Record::Log(&text));
    }

    /// Notes where the host's echo services are.
    pub fn set_peer(&mut self, address: [u8; 4], port: u16) {
        self.peer = Some(Endpoint::new(Address(address), port));
    }

    /// Waits for a line of input.
    pub fn read_line(&mut self, text: &mut heapless::String<120>) {
        loop {
            // A byte at a time: what follows the line belongs to the next command.
            let mut byte = [0];
            while self.console.serial().read(&mut byte).is_ok_and(|count| count > 0) {
                if self.line.push(byte[0], |line| text.push_str(line)).is_some() {
                    return;
                }
            }
            self.seen = ipc::wait(self.bits.input, self.seen).1;
        }
    }

    /// Waits for bits of `mask`, for at most `micros`; returns those that came.
    pub fn wait(&mut self, mask: u32, micros: u64) -> u32 {
        let deadline = time::ticks() + time::from_micros(micros);
        time::set_timer(deadline, self.bits.timer);
        loop {
            let (bits, sequence) = ipc::wait(mask | self.bits.timer, self.seen);
            self.seen = sequence;
            if bits & mask != 0 {
                time::cancel_timer();
                return bits & mask;
            }
            // A bit that an earlier timer left comes before the deadline.
            if bits & self.bits.timer != 0 && time::ticks() >= deadline {
                return 0;
            }
        }
    }

    /// Lets others run.
    pub fn sleep(&mut self, micros: u64) {
        self.wait(0, micros);
    }

    /// Repeats `ready` every millisecond until it says yes; false if that took longer than `micros`.
    pub fn until(&mut self, micros: u64, mut ready: impl FnMut(&mut Self) -> bool) -> bool {
        let end = time::micros() + micros;
        while !ready(self) {
            if time::micros() > end {
                return false;
            }
            self.sleep(1000);
        }
        true
    }

    /// Lets others run until a task has come to a state.
    #[track_caller]
    pub fn reaches(&mut self, task: u8, state: TaskState, what: &str) -> Outcome {
        let there = |_: &mut Self| kernel::task_status(task).is_ok_and(|status| status.state == state);
        // The emulator may have to wait for its own CPU.
        if self.until(2_000_000, there) {
            return Ok(());
        }
        let found = kernel::task_status(task).map(|status| status.state);
        Err(Failure::new(format_args!("{what}: {found:?}, expected {state:?}")))
    }

    /// Borrows frames of the partner.
    #[track_caller]
    pub fn borrow_frames(&mut self, count: u32) -> Outcome<FrameList> {
        let mut frames = FrameList::new();
        self.partner.borrow_frames(count, &mut frames).expecting("frames of the partner")?;
        Ok(frames)
    }

    /// Gives frames back to the partner.
    #[track_caller]
    pub fn return_frames(&mut self, frames: &mut FrameList) -> Outcome {
        self.partner.return_frames(frames).expecting("return of frames")
    }

    /// Restarts all victims.
    #[track_caller]
    pub fn fresh_victims(&mut self) -> Outcome {
        for index in [self.high.index, self.low.index, self.last.index] {
            revive(index)?;
        }
        self.high.memory.window.write_script(&[]);
        self.low.forget();
        self.last.forget();
        Ok(())
    }

    /// Runs a test between checks of what no test may change.
    pub fn run(&mut self, test: &Test) -> Outcome {
        self.fresh_victims()?;
        self.tidy_frames()?;
        // The announcement of the test is out, and its interrupts are over.
        self.console.serial().flush().expecting("flush")?;
        let totals = Pool::totals();
        let before = self.bystanders(test);
        (test.run)(self)?;
        let after = self.bystanders(test);
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            if *before != after {
                let name = config::task_name(index as u8).unwrap_or_default();
                return Err(Failure::new(format_args!("{name} was hurt: generation {before:?}, now {after:?}")));
            }
        }
        self.tidy_frames()?;
        // Frames of the victims go home with them.
        self.fresh_victims()?;
        self.pool.all_home()?;
        crate::check::equal(Pool::totals(), totals, "frames of each pool")
    }

    /// Gives back what a test left with the suite.
    fn tidy_frames(&mut self) -> Outcome {
        loop {
            let mut left = self.pool.held()?;
            if left.is_empty() {
                return Ok(());
            }
            self.return_frames(&mut left)?;
        }
    }

    /// Generations of the tasks that the test may not hurt; `None` for one that has faulted.
    fn bystanders(&self, test: &Test) -> [Option<u32>; MAX_TASKS] {
        core::array::from_fn(|index| {
            let name = config::task_name(index as u8)?;
            if name.starts_with("victim") || test.restarts.contains(&name) {
                return None;
            }
            let status = kernel::task_status(index as u8).ok()?;
            (status.state != TaskState::Faulted).then_some(status.generation)
        })
    }
}
