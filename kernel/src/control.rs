//! Operations of the kernel itself: status, counters, restarts, power, log.

use abi::call::kernel_op;
use abi::image::{Access, Privileges};
use abi::stats::TaskStatus;
use abi::{FaultInfo, KernelError};
use zerocopy::IntoBytes;

use crate::{CallResult, Context, Kernel, Machine, State};

impl<M: Machine> Kernel<M> {
    fn require(&self, me: usize, privilege: Privileges) -> Result<(), KernelError> {
        if self.tasks[me].privileges.contains(privilege) { Ok(()) } else { Err(KernelError::NoPrivilege) }
    }

    /// Writes a result into the caller's buffer (arguments 2 and 3).
    fn answer(&mut self, me: usize, bytes: &[u8]) -> CallResult {
        let context = &self.tasks[me].context;
        let (address, capacity) = (context.argument(2), context.argument(3));
        if bytes.len() > capacity {
            return Err(KernelError::BadArgument.into());
        }
        self.check_user(me, address, bytes.len(), Access::WRITE)?;
        self.machine.write_bytes(address, bytes);
        self.finish(me, bytes.len())
    }

    fn finish(&mut self, me: usize, result: usize) -> CallResult {
        let context = &mut self.tasks[me].context;
        context.set_result(0, 0);
        context.set_result(1, result);
        Ok(())
    }

    pub(crate) fn call_kernel(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let (operation, argument) = (context.argument(0) as u32, context.argument(1));
        let needed = match operation {
            kernel_op::TASK_STATUS | kernel_op::COUNTERS | kernel_op::PANIC_MESSAGE | kernel_op::FRAME_CENSUS => {
                Privileges::STATS
            }
            kernel_op::RESTART | kernel_op::STOP | kernel_op::NEXT_FAULTED => Privileges::SUPERVISE,
            kernel_op::FAULT => Privileges::INJECT,
            kernel_op::POWER => Privileges::POWER,
            _ => return Err(KernelError::BadArgument.into()),
        };
        self.require(me, needed)?;
        match operation {
            kernel_op::FRAME_CENSUS => self.answer_census(me, argument),
            kernel_op::NEXT_FAULTED => {
                let faulted = (argument..self.tasks.len()).find(|&index| self.tasks[index].state == State::Faulted);
                self.finish(me, faulted.unwrap_or(kernel_op::NO_TASK))
            }
            kernel_op::POWER => self.machine.power(argument == 1),
            _ if argument >= self.tasks.len() => Err(KernelError::BadArgument.into()),
            kernel_op::TASK_STATUS => self.answer_status(me, argument),
            kernel_op::COUNTERS => {
                self.account();
                let counters = self.tasks[argument].counters;
                self.answer(me, counters.as_bytes())
            }
            kernel_op::PANIC_MESSAGE => {
                let message = self.tasks[argument].panic_message.clone();
                self.answer(me, &message)
            }
            kernel_op::FAULT => {
                self.finish(me, 0)?;
                if !matches!(self.tasks[argument].state, State::Faulted | State::Stopped) {
                    self.fault(argument, FaultInfo::Injected { by: me as u32 });
                }
                Ok(())
            }
            // Nobody would have the CPU when all others wait.
            kernel_op::STOP if self.is_idle(argument) => Err(KernelError::BadArgument.into()),
            kernel_op::STOP => {
                self.finish(me, 0)?;
                if !matches!(self.tasks[argument].state, State::Faulted | State::Stopped) {
                    self.bury(argument, State::Stopped);
                }
                Ok(())
            }
            _ => {
                self.finish(me, 0)?;
                if !matches!(self.tasks[argument].state, State::Faulted | State::Stopped) {
                    self.bury(argument, State::Stopped);
                }
                self.start(argument);
                Ok(())
            }
        }
    }

    fn answer_status(&mut self, me: usize, index: usize) -> CallResult {
        let task = &self.tasks[index];
        let status = TaskStatus {
            state: task.status(),
            generation: task.generation,
            priority: task.priority,
            frames_held: self.ledger.held(index as u8),
            fault: task.fault,
        };
        let mut buffer = [0; 96];
        let bytes = postcard::to_slice(&status, &mut buffer).map_err(|_| KernelError::BadArgument)?;
        self.answer(me, bytes)
    }

    fn answer_census(&mut self, me: usize, pool: usize) -> CallResult {
        let census = self.ledger.census(pool).ok_or(KernelError::BadArgument)?;
        let mut buffer = [0; 32];
        let bytes = postcard::to_slice(&census, &mut buffer).map_err(|_| KernelError::BadArgument)?;
        self.answer(me, bytes)
    }

    pub(crate) fn call_log(&mut self, me: usize) -> CallResult {
        self.require(me, Privileges::LOG)?;
        let context = &self.tasks[me].context;
        let (address, len) = (context.argument(0), context.argument(1));
        self.check_user(me, address, len, Access::READ)?;
        let mut chunk = [0; 64];
        for start in (0..len).step_by(chunk.len()) {
            let part = &mut chunk[..(len - start).min(64)];
            self.machine.read_bytes(address + start, part);
            self.machine.log(part);
        }
        self.tasks[me].context.set_result(0, 0);
        Ok(())
    }
}
