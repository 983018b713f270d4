//! Crash records travel, the longest ones too.

use std::thread;

use abi::FaultInfo;
use abi::fault::FaultRecord;
use idol_runtime::fake::{STOP, Task, World};
use idol_runtime::{Error, Request, RequestError, TaskSlot, serve_while};
use supervisor_api::{
    CrashRecord, Restarts, Supervisor, SupervisorBuffers, SupervisorError, SupervisorInterface, SupervisorServer,
};

/// Every kind of fault, with the numbers that take the most room.
fn faults() -> Vec<FaultInfo> {
    let address = u64::MAX;
    vec![
        FaultInfo::MemoryAccess { address, write: true },
        FaultInfo::StackOverflow { address },
        FaultInfo::Execute { address },
        FaultInfo::IllegalInstruction,
        FaultInfo::Alignment { address },
        FaultInfo::UnknownCall { number: u32::MAX },
        FaultInfo::BadMemoryArgument { address, len: u64::MAX },
        FaultInfo::Panic,
        FaultInfo::Injected { by: u32::MAX },
        FaultInfo::Other { syndrome: u64::MAX },
    ]
}

fn record(info: FaultInfo) -> CrashRecord {
    let fault = FaultRecord { info, pc: u64::MAX, sp: u64::MAX, time: u64::MAX, generation: u32::MAX };
    CrashRecord { task: 31, fault, backoff: u32::MAX, message: "x".repeat(128).parse().expect("fits") }
}

struct Toy {
    stopped: bool,
}

impl SupervisorServer<Task> for Toy {
    fn crash_record(&mut self, _: &Request<Task>, index: u32) -> Result<CrashRecord, RequestError<SupervisorError>> {
        let info = *faults().get(index as usize).ok_or(SupervisorError::NoRecord)?;
        Ok(record(info))
    }

    fn restarts(&mut self, _: &Request<Task>, task: u8) -> Result<Restarts, RequestError<SupervisorError>> {
        match task {
            0..32 => Ok(Restarts { crashes: u32::from(task), requested: 1, backoff: 100 }),
            _ => Err(SupervisorError::NoTask.into()),
        }
    }

    fn restart(&mut self, _: &Request<Task>, task: u8) -> Result<(), RequestError<SupervisorError>> {
        if task == 0 { Err(SupervisorError::Protected.into()) } else { Ok(()) }
    }

    fn handle_notification(&mut self, _: &Task, bits: u32) {
        self.stopped = bits == STOP;
    }
}

#[test]
fn answers_reach_the_client() {
    let world = World::new(2);
    let task = world.task(1);
    let server = thread::spawn(move || {
        let mut toy = Toy { stopped: false };
        let mut buffers = SupervisorBuffers::new();
        serve_while::<SupervisorInterface, _, _, _, _>(&task, &mut toy, &mut buffers, |toy| !toy.stopped);
    });
    let supervisor = Supervisor::with_kernel(TaskSlot(1), world.task(0));
    for (index, info) in faults().into_iter().enumerate() {
        assert_eq!(
            supervisor.crash_record(index as u32),
            Ok(record(info)),
            "`max_size` in the interface has room for it"
        );
    }
    assert_eq!(supervisor.crash_record(10), Err(Error::Server(SupervisorError::NoRecord)));
    assert_eq!(supervisor.restarts(7), Ok(Restarts { crashes: 7, requested: 1, backoff: 100 }));
    assert_eq!(supervisor.restarts(32), Err(Error::Server(SupervisorError::NoTask)));
    assert_eq!(supervisor.restart(3), Ok(()));
    assert_eq!(supervisor.restart(0), Err(Error::Server(SupervisorError::Protected)));
    world.kill(1);
    server.join().expect("no panic");
}
