//! Restarts tasks that fail, and remembers why they did.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

use abi::config::Item;
use idol_runtime::{Kernel, Request, RequestError, System};
use supervisor::{Log, Policy};
use supervisor_api::{CrashRecord, Restarts, SupervisorBuffers, SupervisorError, SupervisorServer};
use userlib::{config, ipc, kernel, time};

#[cfg(target_os = "none")]
userlib::entry!(main);

/// The host has no tasks to supervise; the library is what it tests.
#[cfg(not(target_os = "none"))]
fn main() {
    let _: fn() -> ! = supervise;
}

#[cfg(target_os = "none")]
fn main() -> ! {
    supervise()
}

fn supervise() -> ! {
    let mut server = Server {
        policy: Policy::new(),
        log: Log::new(),
        fault: config::notification("fault"),
        timer: config::notification("timer"),
    };
    // Tasks may have failed before we were ready.
    server.look();
    supervisor_api::serve(&mut server, &mut SupervisorBuffers::new())
}

struct Server {
    policy: Policy,
    log: Log,
    fault: u32,
    timer: u32,
}

impl Server {
    /// Records what has failed, restarts what is due, sets the timer for what is not.
    fn look(&mut self) {
        let mut news = false;
        let mut from = Some(0);
        while let Some(task) = from.and_then(|from| kernel::next_faulted(from).ok().flatten()) {
            news |= self.record(task);
            from = task.checked_add(1);
        }
        while let Some(task) = self.policy.due(time::micros()) {
            // Refused only for a task that does not exist.
            let _ = kernel::restart(task);
        }
        match self.policy.deadline() {
            Some(deadline) => time::set_timer(time::from_micros(deadline), self.timer),
            None => time::cancel_timer(),
        }
        if news {
            // The build checked that we may post there.
            config::for_each_notify("crash", |task, mask| {
                let _ = ipc::post(task, mask);
            });
        }
    }

    fn record(&mut self, task: u8) -> bool {
        let Some(wait) = self.policy.failed(task, time::micros()) else { return false };
        let Some(fault) = kernel::task_status(task).ok().and_then(|status| status.fault) else { return false };
        let mut buffer = [0; 128];
        let message = match fault.info {
            abi::FaultInfo::Panic => kernel::panic_message(task, &mut buffer).ok(),
            _ => None,
        };
        let message = message.and_then(|len| str::from_utf8(buffer.get(..len)?).ok()).unwrap_or_default();
        let backoff = u32::try_from(wait / 1000).unwrap_or(u32::MAX);
        self.log.add(CrashRecord { task, fault, backoff, message: message.try_into().unwrap_or_default() });
        true
    }
}

/// The supervisor's own place in the table of tasks.
fn own_index() -> Option<u8> {
    let own = config::view().find(|item| match item {
        Item::Name(name) => Some(name),
        _ => None,
    })?;
    (0..).take_while(|&task| config::task_name(task).is_some()).find(|&task| config::task_name(task) == Some(own))
}

impl<K: Kernel> SupervisorServer<K> for Server {
    fn crash_record(&mut self, _: &Request<K>, index: u32) -> Result<CrashRecord, RequestError<SupervisorError>> {
        Ok(self.log.get(index).cloned().ok_or(SupervisorError::NoRecord)?)
    }

    fn restarts(&mut self, _: &Request<K>, task: u8) -> Result<Restarts, RequestError<SupervisorError>> {
        kernel::task_status(task).map_err(|_| SupervisorError::NoTask)?;
        let history = self.policy.history(task).ok_or(SupervisorError::NoTask)?;
        let backoff = u32::try_from(history.wait(time::micros()) / 1000).unwrap_or(u32::MAX);
        Ok(Restarts { crashes: history.crashes, requested: history.requested, backoff })
    }

    fn restart(&mut self, _: &Request<K>, task: u8) -> Result<(), RequestError<SupervisorError>> {
        kernel::task_status(task).map_err(|_| SupervisorError::NoTask)?;
        if own_index() == Some(task) {
            return Err(SupervisorError::Protected.into());
        }
        kernel::restart(task).map_err(|_| SupervisorError::NoTask)?;
        self.policy.requested(task, time::micros());
        Ok(())
    }

    fn notification_mask(&self) -> u32 {
        self.fault | self.timer
    }

    fn handle_notification(&mut self, _: &K, _: u32) {
        self.look();
    }
}

// The real system is what `serve` runs on.
const _: fn(&Server) -> u32 = |server| <Server as SupervisorServer<System>>::notification_mask(server);
