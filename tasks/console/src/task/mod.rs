//! The task: waits for input, events and time, and calls whom it takes.

mod out;
mod show;

use core::fmt::Write;

use bench_api::{Bench, BenchError, Event, Failure, Job};
use console::command::{self, Command, Tool};
use console::line::{Editor, Input};
use console::system::Sample;
use console::{iperf, ping, system, ttcp};
use heapless::Deque;
use idol_runtime::{Error, TaskSlot};
use net_api::Net;
use serial_api::Serial;
use supervisor_api::Supervisor;
use userlib::{config, ipc, kernel, time};

use out::Out;

const PROMPT: &str = "leasehold> ";
const BANNER: &str = "\n\nLeasehold. `help` lists the commands.\n";

/// Crashes of the last so many microseconds are shown at the start.
const NEWS: u64 = 2_000_000;

/// What the console is about.
#[derive(Clone, Copy, Debug)]
enum Activity {
    /// A line is edited.
    Line,
    /// A job of the benchmark task runs.
    Job(Job, Tool),
    /// vmstat writes rows: microseconds between them, and when the next is due.
    Vmstat { every: u64, due: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Bits {
    input: u32,
    progress: u32,
    crash: u32,
    timer: u32,
}

#[derive(Debug)]
struct Console {
    out: Out,
    net: Net,
    bench: Bench,
    supervisor: Supervisor,
    editor: Editor,
    activity: Activity,
    // What the next row of vmstat is compared with.
    before: Sample,
    // Typed while something runs.
    ahead: Deque<u8, 512>,
    // Prompts so far, so that none is shown twice.
    prompts: u32,
    // Time of the last crash that was shown.
    shown: u64,
    bits: Bits,
}

pub fn run() -> ! {
    let bits = Bits {
        input: config::notification("input"),
        progress: config::notification("progress"),
        crash: config::notification("crash"),
        timer: config::notification("timer"),
    };
    let mut console = Console {
        out: Out::new(Serial::from(TaskSlot::named("serial"))),
        net: Net::from(TaskSlot::named("net")),
        bench: Bench::from(TaskSlot::named("bench")),
        supervisor: Supervisor::from(TaskSlot::named("supervisor")),
        editor: Editor::new(PROMPT, &command::NAMES),
        activity: Activity::Line,
        before: Sample::zero(),
        ahead: Deque::new(),
        prompts: 0,
        shown: 0,
        bits,
    };
    // An instance of us that has died may have left a job behind.
    let _ = console.bench.abandon();
    let _ = console.out.write_str(BANNER);
    // What has just happened (perhaps to us) is shown; what is older, `crash` tells.
    console.shown = time::ticks().saturating_sub(time::from_micros(NEWS));
    console.crashed();
    let mut seen = 0;
    loop {
        console.out.flush();
        let (bits, sequence) = ipc::wait(bits.input | bits.progress | bits.crash | bits.timer, seen);
        seen = sequence;
        console.look(if bits == 0 { u32::MAX } else { bits });
    }
}

impl Console {
    fn look(&mut self, bits: u32) {
        if bits & self.bits.progress != 0 {
            self.progress();
        }
        if bits & self.bits.timer != 0 {
            self.row();
        }
        if bits & self.bits.crash != 0 {
            self.crashed();
        }
        if bits & self.bits.input != 0 {
            self.input();
        }
    }

    /// Shows the prompt; `Out` never fails.
    fn prompt(&mut self) {
        self.prompts = self.prompts.wrapping_add(1);
        let _ = self.editor.show(&mut self.out);
    }

    fn input(&mut self) {
        let mut buffer = [0; 128];
        while let Ok(count @ 1..) = self.out.serial().read(&mut buffer) {
            for &byte in buffer.iter().take(count as usize) {
                self.byte(byte);
            }
        }
    }

    fn byte(&mut self, byte: u8) {
        if matches!(self.activity, Activity::Line) {
            let taken = self.editor.take(byte, &mut self.out);
            match taken {
                Ok(Some(Input::Line(line))) => self.line(&line),
                Ok(Some(Input::Interrupt)) => self.prompt(),
                _ => {}
            }
        } else if byte == 0x03 {
            self.ahead.clear();
            self.interrupt();
        } else {
            // More than fits is lost, as on any terminal.
            let _ = self.ahead.push_back(byte);
        }
    }

    fn interrupt(&mut self) {
        let _ = self.out.write_str("^C\n");
        match self.activity {
            Activity::Line => {}
            Activity::Vmstat { .. } => self.done(),
            Activity::Job(..) => {
                let _ = self.bench.stop();
                self.progress();
            }
        }
    }

    /// What ran has ended.
    fn done(&mut self) {
        self.activity = Activity::Line;
        self.prompt();
        while matches!(self.activity, Activity::Line)
            && let Some(byte) = self.ahead.pop_front()
        {
            self.byte(byte);
        }
    }

    fn line(&mut self, line: &str) {
        let name = line.split_ascii_whitespace().next().unwrap_or_default();
        let prompts = self.prompts;
        match command::parse(line) {
            Ok(command) => self.execute(command),
            Err(wrong) => {
                let _ = writeln!(self.out, "{name}: {wrong}");
                if let Some((name, usage, _)) = command::COMMANDS.iter().find(|(known, ..)| *known == name) {
                    let _ = writeln!(self.out, "usage: {name} {usage}");
                }
            }
        }
        if matches!(self.activity, Activity::Line) && self.prompts == prompts {
            self.prompt();
        }
    }

    fn execute(&mut self, command: Command<'_>) {
        match command {
            Command::Nothing => {}
            Command::Help(name) => self.help(name),
            Command::Run(job, tool) => self.start(job, tool),
            Command::Ifconfig => self.ifconfig(),
            Command::Netstat { statistics: false } => self.netstat(),
            Command::Netstat { statistics: true } => self.statistics(),
            Command::Sessions => self.sessions(),
            Command::Ps => self.ps(),
            Command::Vmstat(None) => {
                let _ = system::vmstat_head(&mut self.out);
                self.vmstat(&Sample::zero());
            }
            Command::Vmstat(Some(seconds)) => {
                let _ = system::vmstat_head(&mut self.out);
                let every = u64::from(seconds) * 1_000_000;
                self.before = show::sample();
                self.wait_for_row(every, self.before.micros + every);
            }
            Command::Fault(name) => self.on_task(name, |console, task| {
                if let Err(error) = kernel::inject_fault(task) {
                    let _ = writeln!(console.out, "fault: {error:?}");
                }
            }),
            Command::Restart(name) => self.on_task(name, |console, task| {
                if let Err(error) = console.supervisor.restart(task) {
                    let _ = writeln!(console.out, "restart: {error:?}");
                }
            }),
            Command::Crash => self.crashes(),
            Command::Counters => self.counters(),
            Command::Reboot => self.power(kernel::reset),
            Command::PowerOff => self.power(kernel::power_off),
        }
    }

    fn on_task(&mut self, name: &str, act: impl Fn(&mut Self, u8)) {
        match show::tasks().find(|(_, known)| *known == name) {
            Some((task, _)) => act(self, task),
            None => {
                let _ = writeln!(self.out, "{name}: no such task (ps lists them)");
            }
        }
    }

    fn power(&mut self, act: fn() -> abi::KernelError) {
        self.out.flush();
        let _ = self.out.serial().flush();
        let error = act();
        let _ = writeln!(self.out, "refused: {error:?}");
    }

    fn start(&mut self, job: Job, tool: Tool) {
        let _ = match tool {
            Tool::Ttcp => ttcp::head(&mut self.out, &job),
            Tool::Iperf => iperf::head(&mut self.out, &job),
            Tool::Ping => ping::head(&mut self.out, &job),
            Tool::Measure => Ok(()),
        };
        // The user sees what begins before it has ended.
        self.out.flush();
        self.activity = Activity::Job(job, tool);
        match self.bench.start(job) {
            Ok(()) => self.progress(),
            Err(error) => {
                let _ = writeln!(self.out, "bench: {error:?}");
                self.activity = Activity::Line;
            }
        }
    }

    /// Shows the events of the job.
    fn progress(&mut self) {
        while let Activity::Job(job, tool) = self.activity {
            let event = match self.bench.event() {
                Ok(event) => event,
                Err(Error::Server(BenchError::Nothing | BenchError::Busy)) => return,
                // The task died, and the job with it.
                Err(_) => Event::Failed(Failure::BenchRestarted),
            };
            self.event(&job, tool, &event);
            if event.is_last() {
                self.done();
            }
        }
    }

    fn event(&mut self, job: &Job, tool: Tool, event: &Event) {
        let out = &mut self.out;
        // `Out` never fails.
        let _ = match (tool, event) {
            (Tool::Ttcp, Event::Connected { .. }) => ttcp::connected(out),
            (Tool::Ttcp, Event::Accepted { remote, .. }) => ttcp::accepted(out, *remote),
            (Tool::Ttcp, Event::Transfer(transfer)) => ttcp::report(out, job, transfer),
            (Tool::Ttcp, Event::Failed(failure)) => ttcp::failed(out, job, *failure),
            (Tool::Iperf, event) => iperf::event(out, job, event),
            (Tool::Ping, event) => ping::event(out, job, event),
            (Tool::Measure, Event::Figure { what, rounds, instructions, micros }) => {
                system::measure(out, *what, *rounds, *instructions, *micros)
            }
            (Tool::Measure, Event::Failed(failure)) => writeln!(out, "measure: {failure}"),
            _ => Ok(()),
        };
    }

    /// The next row of vmstat, if one is due.
    fn row(&mut self) {
        let Activity::Vmstat { every, due } = self.activity else { return };
        if time::micros() >= due {
            let before = self.before.clone();
            self.before = self.vmstat(&before);
            self.wait_for_row(every, (due + every).max(self.before.micros));
        }
    }

    fn wait_for_row(&mut self, every: u64, due: u64) {
        time::set_timer(time::from_micros(due), self.bits.timer);
        self.activity = Activity::Vmstat { every, due };
    }

    /// A task has failed: says so, wherever the cursor is.
    fn crashed(&mut self) {
        let mut newest = self.shown;
        let fresh = (0..)
            .map_while(|index| self.supervisor.crash_record(index).ok())
            .take_while(|record| record.fault.time > self.shown);
        for record in fresh {
            newest = newest.max(record.fault.time);
            let _ = self.out.write_str("\r\x1b[K");
            show::crash(&mut self.out, &record);
        }
        self.shown = newest;
        match self.activity {
            Activity::Line => self.prompt(),
            // It may have been the one that works for us.
            _ => self.progress(),
        }
    }
}
