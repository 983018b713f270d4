//! The end of a task, and its next beginning.
//!
//! A task's generation ends when it dies, not when it is restarted: whoever refreshes its id after an
//! error names the next instance, and a message to that one simply waits until it has been started.

use abi::fault::FaultRecord;
use abi::image::Access;
use abi::{FaultInfo, KernelError, TaskId};

use crate::task::PANIC_MESSAGE_LEN;
use crate::{CallResult, Context, Kernel, Machine, State, Trap};

impl<M: Machine> Kernel<M> {
    /// Stops a task for a reason and tells the supervisor. The supervisor itself starts anew at once, and so does the task
    /// of the lowest priority: somebody has to have the CPU when all others wait.
    pub(crate) fn fault(&mut self, index: usize, info: FaultInfo) {
        let time = self.machine.ticks();
        let task = &mut self.tasks[index];
        task.fault = Some(FaultRecord {
            info,
            pc: task.context.program_counter() as u64,
            sp: task.context.stack_pointer() as u64,
            time,
            generation: task.generation,
        });
        if !matches!(info, FaultInfo::Panic) {
            task.panic_message.clear();
        }
        self.bury(index, State::Faulted);
        let (supervisor, mask) = self.supervisor;
        if index == supervisor {
            self.machine.log(b"kernel: the supervisor faulted and starts anew\r\n");
            self.start(index);
        } else if self.is_idle(index) {
            self.start(index);
        }
        self.post(supervisor, mask);
    }

    /// True for the task of the lowest priority.
    pub(crate) fn is_idle(&self, index: usize) -> bool {
        usize::from(self.tasks[index].rank) + 1 == self.tasks.len()
    }

    /// Starts a task that is dead or new.
    pub(crate) fn start(&mut self, index: usize) {
        self.tasks[index].reset();
        if self.vectors_of == index {
            self.machine.move_vectors(None, &self.tasks[index].context);
        }
        self.wake(index);
    }

    /// Ends an instance: everyone who deals with it learns of it, what it held goes back.
    pub(crate) fn bury(&mut self, index: usize, state: State) {
        let id = self.tasks[index].id(index);
        if let State::Sending(target) = self.tasks[index].state {
            let bit = 1 << self.tasks[index].rank;
            self.tasks[usize::from(target)].senders &= !bit;
        }
        self.block(index, state);
        let task = &mut self.tasks[index];
        task.generation = (task.generation + 1) & TaskId::GENERATION_MASK;
        task.senders = 0;
        task.leases.clear();
        self.timers &= !(1 << index);
        for interrupt in &self.interrupts {
            if usize::from(interrupt.task) == index {
                self.machine.enable_interrupt(interrupt.number, false);
            }
        }
        for peer in 0..self.tasks.len() {
            let waits = &self.tasks[peer];
            match waits.state {
                State::Sending(to) | State::AwaitingReply(to) if usize::from(to) == index => {
                    let received = matches!(waits.state, State::AwaitingReply(_));
                    self.complete_send(peer, KernelError::Dead.code(), usize::from(received), 0);
                }
                State::Receiving if waits.receive.from == Some(id) => {
                    let sequence = waits.notifications.sequence();
                    self.deliver_notification(peer, KernelError::SenderDead.code(), sequence);
                    self.wake(peer);
                }
                _ => {}
            }
        }
        self.return_frames(index);
    }

    pub(crate) fn call_panic(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let (address, len) = (context.argument(0), context.argument(1).min(PANIC_MESSAGE_LEN));
        self.check_user(me, address, len, Access::READ)?;
        let mut message = [0; PANIC_MESSAGE_LEN];
        self.machine.read_bytes(address, &mut message[..len]);
        let kept = &mut self.tasks[me].panic_message;
        kept.clear();
        // Cannot fail: the length was cut.
        let _ = kept.extend_from_slice(&message[..len]);
        Err(Trap::Panic)
    }
}
