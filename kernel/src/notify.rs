//! Notifications, timers and interrupts.

use abi::call::ReceivedMessage;
use abi::{KernelError, TaskId};

use crate::{CallResult, Context, Kernel, Machine, State};

impl<M: Machine> Kernel<M> {
    /// Posts bits to a task and wakes it if it waits for one of them.
    #[inline]
    pub(crate) fn post(&mut self, index: usize, mask: u32) {
        let task = &mut self.tasks[index];
        task.notifications.post(mask);
        if task.state == State::Receiving
            && let Some(woken) = task.notifications.take(task.receive.mask)
        {
            self.deliver_notification(index, woken.bits, woken.sequence);
            self.wake(index);
        }
    }

    /// Fills the results of a receive with notifications.
    #[inline]
    pub(crate) fn deliver_notification(&mut self, index: usize, operation: u32, sequence: u32) {
        self.set_received(
            index,
            ReceivedMessage {
                sender: TaskId::KERNEL.0 as usize,
                operation: operation as usize,
                sequence: sequence as usize,
                ..ReceivedMessage::default()
            },
        );
    }

    #[inline]
    pub(crate) fn set_received(&mut self, index: usize, received: ReceivedMessage) {
        let context = &mut self.tasks[index].context;
        context.set_result(0, received.sender);
        context.set_result(1, received.operation);
        context.set_result(2, received.len);
        context.set_result(3, received.reply_capacity);
        context.set_result(4, received.lease_count);
        context.set_result(5, received.frame_count);
        context.set_result(6, received.sequence);
        context.set_result(7, received.reply_frame_capacity);
    }

    pub(crate) fn call_post(&mut self, me: usize) -> CallResult {
        let task = &self.tasks[me];
        let (target, mask) = (task.context.argument(0), task.context.argument(1) as u32);
        if target >= self.tasks.len() {
            return Err(KernelError::BadArgument.into());
        }
        let allowed = target == me
            || task.notifies.iter().any(|&(index, allowed)| usize::from(index) == target && mask & !allowed == 0);
        if !allowed {
            return Err(KernelError::NoCapability.into());
        }
        self.tasks[me].context.set_result(0, 0);
        self.post(target, mask);
        Ok(())
    }

    pub(crate) fn call_set_timer(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let mut deadline = context.argument(0) as u64;
        if usize::BITS == 32 {
            deadline |= (context.argument(2) as u64) << 32;
        }
        let mask = context.argument(1) as u32;
        self.tasks[me].context.set_result(0, 0);
        self.tasks[me].timer = (deadline, mask);
        if mask == 0 {
            self.timers &= !(1 << me);
        } else {
            self.timers |= 1 << me;
        }
        self.expire_timers();
        Ok(())
    }

    /// Posts timers that are due and sets the alarm for the next one.
    pub(crate) fn expire_timers(&mut self) {
        let now = self.machine.ticks();
        let mut next = None;
        let mut left = self.timers;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            left &= left - 1;
            let (deadline, mask) = self.tasks[index].timer;
            if deadline <= now {
                self.timers &= !(1 << index);
                self.post(index, mask);
            } else if next.is_none_or(|earliest| deadline < earliest) {
                next = Some(deadline);
            }
        }
        self.machine.set_alarm(next);
    }

    pub(crate) fn call_time(&mut self, me: usize) -> CallResult {
        let (ticks, rate) = (self.machine.ticks(), self.machine.tick_rate());
        let context = &mut self.tasks[me].context;
        context.set_result(0, ticks as usize);
        context.set_result(1, rate as usize);
        Ok(())
    }

    /// Entry for the timer's interrupt.
    pub fn timer_interrupt(&mut self) {
        self.expire_timers();
        self.reschedule();
    }

    /// Entry for a device interrupt: masked until its task enables it again.
    pub fn device_interrupt(&mut self, number: u32) {
        self.machine.enable_interrupt(number, false);
        if let Some(interrupt) = self.interrupts.iter().find(|interrupt| interrupt.number == number) {
            let (task, mask) = (usize::from(interrupt.task), interrupt.mask);
            self.tasks[task].counters.interrupts += 1;
            self.post(task, mask);
        }
        self.reschedule();
    }

    pub(crate) fn call_irq_control(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let (mask, enable) = (context.argument(0) as u32, context.argument(1));
        if enable > 1 {
            return Err(KernelError::BadArgument.into());
        }
        let mut found = 0;
        for interrupt in &self.interrupts {
            if usize::from(interrupt.task) == me && interrupt.mask & mask != 0 {
                found |= interrupt.mask;
                self.machine.enable_interrupt(interrupt.number, enable == 1);
            }
        }
        if mask & !found != 0 {
            return Err(KernelError::BadArgument.into());
        }
        self.tasks[me].context.set_result(0, 0);
        Ok(())
    }
}
