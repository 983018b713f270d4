//! Commands that show something and have done with it.

use core::fmt::Write;

use abi::stats::Counters;
use bench_api::BenchError;
use console::command::COMMANDS;
use console::net;
use console::system::{self, Row, Sample};
use idol_runtime::Error;
use net_api::{SocketInfo, Statistics};
use report::{Moment, Record, StackCounters, TaskCounters};
use supervisor_api::CrashRecord;
use userlib::{config, kernel, time};

use super::Console;
use super::out::Out;

/// The tasks of the image: index and name.
pub fn tasks() -> impl Iterator<Item = (u8, &'static str)> {
    (0..abi::MAX_TASKS as u8).map_while(|task| Some((task, config::task_name(task)?)))
}

/// The counters of all tasks now.
pub fn sample() -> Sample {
    Sample {
        micros: time::micros(),
        tasks: tasks().map(|(task, _)| kernel::counters(task).unwrap_or_default()).collect(),
    }
}

/// Writes a crash record; `Out` never fails.
pub fn crash(out: &mut Out, record: &CrashRecord) {
    let name = config::task_name(record.task).unwrap_or("?");
    let _ = system::crash(out, record, name, time::to_micros(record.fault.time));
}

fn stack_counters(counts: &Statistics) -> StackCounters {
    let dropped = counts.drop_malformed
        + counts.drop_not_ours
        + counts.drop_protocol
        + counts.drop_ip_checksum
        + counts.drop_l4_checksum
        + counts.drop_fragment
        + counts.drop_no_port
        + counts.drop_udp_full
        + counts.drop_syn
        + counts.drop_neighbour
        + counts.drop_no_frame;
    StackCounters {
        rx_frames: counts.rx_frames,
        tx_frames: counts.tx_frames,
        rx_copied: counts.rx_copied,
        tx_copied: counts.tx_copied,
        exchanges: counts.exchanges,
        echoes: counts.echoes,
        udp_sent: counts.udp_sent,
        dropped,
    }
}

impl Console {
    pub fn help(&mut self, name: Option<&str>) {
        for (command, usage, what) in COMMANDS.iter().filter(|(command, ..)| name.is_none_or(|name| name == *command)) {
            let _ = match name {
                Some(_) => writeln!(self.out, "{command} {usage}\n    {what}"),
                None => writeln!(self.out, "{command:9} {what}"),
            };
        }
        if let Some(name) = name
            && COMMANDS.iter().all(|(command, ..)| *command != name)
        {
            let _ = writeln!(self.out, "help: {name}: no such command");
        }
    }

    pub fn ifconfig(&mut self) {
        let _ = match self.net.interface() {
            Ok(info) => net::ifconfig(&mut self.out, &info),
            Err(error) => writeln!(self.out, "ifconfig: the network stack does not answer: {error:?}"),
        };
    }

    pub fn netstat(&mut self) {
        let mut rows = [SocketInfo::default(); 64];
        match self.net.sockets(0, &mut rows) {
            Ok(count) => {
                let _ = net::netstat_head(&mut self.out);
                for row in rows.iter().take(count as usize) {
                    let owner = config::task_name(row.owner).unwrap_or("?");
                    let _ = net::netstat_row(&mut self.out, row, owner);
                }
            }
            Err(error) => {
                let _ = writeln!(self.out, "netstat: the network stack does not answer: {error:?}");
            }
        }
    }

    pub fn statistics(&mut self) {
        let _ = match self.net.statistics() {
            Ok(counts) => net::statistics(&mut self.out, &counts),
            Err(error) => writeln!(self.out, "netstat: the network stack does not answer: {error:?}"),
        };
    }

    pub fn sessions(&mut self) {
        for index in 0.. {
            match self.bench.session(index) {
                Ok(session) => {
                    let _ = net::session(&mut self.out, &session);
                }
                Err(Error::Server(BenchError::Nothing)) => break,
                Err(error) => {
                    let _ = writeln!(self.out, "sessions: {error:?}");
                    break;
                }
            }
        }
    }

    pub fn ps(&mut self) {
        let uptime = time::micros();
        let _ = system::ps_head(&mut self.out);
        for (task, name) in tasks() {
            let (Ok(status), Ok(counters)) = (kernel::task_status(task), kernel::counters(task)) else { continue };
            let restarts = self.supervisor.restarts(task).ok();
            let row = Row { task, name, status, micros: time::to_micros(counters.ticks), uptime, restarts };
            let _ = system::ps_row(&mut self.out, &row, config::task_name);
        }
    }

    /// Writes a row of vmstat and returns the sample that it ended with.
    pub fn vmstat(&mut self, before: &Sample) -> Sample {
        let now = sample();
        let _ = system::vmstat_row(&mut self.out, before, &now, time::to_micros, config::task_name);
        now
    }

    pub fn crashes(&mut self) {
        let mut index = 0;
        while let Ok(record) = self.supervisor.crash_record(index) {
            crash(&mut self.out, &record);
            index += 1;
        }
        if index == 0 {
            let _ = writeln!(self.out, "no task has failed");
        }
    }

    /// Sends all counters as records.
    pub fn counters(&mut self) {
        // What is in the buffer goes out first, so that sending it is not counted.
        self.out.flush();
        let count = tasks().count();
        let moment = Moment {
            ticks: time::ticks(),
            tick_rate: time::tick_rate(),
            instructions: userlib::instructions(),
            tasks: u8::try_from(count).unwrap_or(u8::MAX),
        };
        // All at one moment, before any of them is sent.
        let mut counters = [Counters::ZERO; abi::MAX_TASKS];
        for (place, (task, _)) in counters.iter_mut().zip(tasks()) {
            *place = kernel::counters(task).unwrap_or_default();
        }
        // The stack is asked behind them, so that this call counts for nobody.
        let stack = self.net.statistics().map(|counts| stack_counters(&counts));
        self.record(&Record::Counters(moment));
        for ((_, name), counters) in tasks().zip(counters) {
            self.record(&Record::Task(TaskCounters { name, counters }));
        }
        if let Ok(stack) = stack {
            self.record(&Record::Stack(stack));
        }
    }

    fn record(&mut self, record: &Record<'_>) {
        let mut buffer = [0; report::MAX_FRAME];
        // None of ours is too long.
        if let Ok(frame) = report::encode(record, &mut buffer) {
            self.out.bytes(frame);
        }
    }
}
