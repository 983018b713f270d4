//! Messages and borrows.
//!
//! What every call and reply runs through is forced inline: the two system calls of an exchange become one function
//! each, which saves a tenth of their instructions.

use abi::call::{Lease, ReceivedMessage, RecvArgs, SendExtra, lease};
use abi::code::FIRST_KERNEL_CODE;
use abi::image::Access;
use abi::{FrameDesc, KernelError, MAX_LEASES, MAX_MESSAGE, TaskId};

use crate::task::{Message, Receive};
use crate::{CallResult, Context, Kernel, Machine, State, Trap};

impl<M: Machine> Kernel<M> {
    /// Index of the living instance that an id names.
    #[inline]
    pub(crate) fn living(&self, id: TaskId) -> Option<usize> {
        let index = id.index();
        (self.tasks.get(index)?.id(index) == id).then_some(index)
    }

    #[inline(always)]
    pub(crate) fn call_send(&mut self, me: usize) -> CallResult {
        let task = &self.tasks[me];
        let target = TaskId(task.context.argument(0) as u32);
        if target.index() >= self.tasks.len() || task.slots & (1 << target.index()) == 0 {
            return Err(KernelError::NoCapability.into());
        }
        let Some(target) = self.living(target) else {
            self.tasks[me].context.set_result(1, 0);
            return Err(KernelError::Dead.into());
        };
        self.describe_message(me)?;
        let peer = &self.tasks[target];
        let waiting =
            peer.state == State::Receiving && peer.receive.from.is_none_or(|from| from == self.tasks[me].id(me));
        self.tasks[me].counters.messages += 1;
        if waiting {
            self.deliver(me, target)?;
            self.block(me, State::AwaitingReply(target as u8));
            self.wake(target);
        } else {
            self.tasks[target].senders |= 1 << self.tasks[me].rank;
            self.block(me, State::Sending(target as u8));
        }
        Ok(())
    }

    /// Checks what the caller of `send` describes and keeps it.
    #[inline(always)]
    fn describe_message(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let mut message = Message {
            operation: context.argument(1),
            address: context.argument(2),
            len: context.argument(3),
            reply: context.argument(4),
            reply_capacity: context.argument(5),
            frames: 0,
            frame_count: 0,
            frame_capacity: 0,
        };
        let extra_address = context.argument(6);
        if message.len > MAX_MESSAGE {
            return Err(KernelError::MessageTooLong.into());
        }
        self.check_user(me, message.address, message.len, Access::READ)?;
        self.check_user(me, message.reply, message.reply_capacity, Access::WRITE)?;
        self.tasks[me].leases.clear();
        if extra_address != 0 {
            let extra: SendExtra = self.load_user(me, extra_address)?;
            message.frames = extra.frames;
            message.frame_count = extra.frame_count;
            message.frame_capacity = extra.frame_capacity;
            if extra.frame_count > extra.frame_capacity {
                return Err(KernelError::FrameListTooLong.into());
            }
            self.check_frame_list(me, extra.frames, extra.frame_capacity, Access::READ | Access::WRITE)?;
            self.keep_leases(me, extra.leases, extra.lease_count)?;
        }
        self.tasks[me].message = message;
        Ok(())
    }

    /// Copies the lease table into the kernel, so that nothing can change it while it is in use.
    #[inline]
    fn keep_leases(&mut self, me: usize, address: usize, count: usize) -> CallResult {
        if count > MAX_LEASES {
            return Err(KernelError::TooManyLeases.into());
        }
        self.check_values::<Lease>(me, address, count, Access::READ)?;
        for index in 0..count {
            let lease: Lease = self.machine.load(address + index * size_of::<Lease>());
            let mut need = Access::empty();
            need.set(Access::READ, lease.rights & lease::READ != 0);
            need.set(Access::WRITE, lease.rights & lease::WRITE != 0);
            if lease.rights & !(lease::READ | lease::WRITE) != 0 {
                return Err(KernelError::BadArgument.into());
            }
            self.check_user(me, lease.address, lease.len, need)?;
            // Cannot fail: the count was checked.
            let _ = self.tasks[me].leases.push(lease);
        }
        Ok(())
    }

    /// Hands the described message of `from` to `to`, which waits for it. On an error nothing has happened.
    #[inline]
    fn deliver(&mut self, from: usize, to: usize) -> Result<(), KernelError> {
        let message = self.tasks[from].message;
        let receive = self.tasks[to].receive;
        if message.len > receive.capacity {
            return Err(KernelError::MessageTooLong);
        }
        if message.frame_count > 0 {
            if message.frame_count > receive.frame_capacity {
                return Err(KernelError::FrameListTooLong);
            }
            self.move_frames(from, to, message.frames, receive.frames, message.frame_count)?;
        }
        self.machine.copy(message.address, receive.buffer, message.len);
        let sender = &mut self.tasks[from];
        sender.counters.bytes_copied += message.len as u64;
        let received = ReceivedMessage {
            sender: sender.id(from).0 as usize,
            operation: message.operation,
            len: message.len,
            reply_capacity: message.reply_capacity,
            lease_count: sender.leases.len(),
            frame_count: message.frame_count,
            sequence: self.tasks[to].notifications.sequence() as usize,
            reply_frame_capacity: message.frame_capacity,
        };
        self.set_received(to, received);
        Ok(())
    }

    /// Ends the wait of a sender with a code.
    #[inline(always)]
    pub(crate) fn complete_send(&mut self, index: usize, code: u32, len: usize, frames: usize) {
        let context = &mut self.tasks[index].context;
        context.set_result(0, code as usize);
        context.set_result(1, len);
        context.set_result(2, frames);
        self.wake(index);
    }

    /// `recv`; its argument block's address is in argument `at`.
    #[inline(always)]
    pub(crate) fn call_recv(&mut self, me: usize, at: usize) -> CallResult {
        let args: RecvArgs = self.load_user(me, self.tasks[me].context.argument(at))?;
        self.check_user(me, args.buffer, args.capacity, Access::WRITE)?;
        self.check_frame_list(me, args.frames, args.frame_capacity, Access::WRITE)?;
        let from = (args.from != 0).then(|| TaskId((args.from - 1) as u32));
        let receive = Receive {
            buffer: args.buffer,
            capacity: args.capacity,
            mask: args.mask as u32,
            from,
            frames: args.frames,
            frame_capacity: args.frame_capacity,
        };
        self.tasks[me].receive = receive;
        if let Some(woken) = self.tasks[me].notifications.poll(receive.mask, args.seen as u32) {
            self.deliver_notification(me, woken.bits, woken.sequence);
            return Ok(());
        }
        match from {
            None => self.receive_from(me, u32::MAX),
            Some(TaskId::KERNEL) => self.block(me, State::Receiving),
            Some(sender) => {
                let Some(index) = self.living(sender) else {
                    let sequence = self.tasks[me].notifications.sequence();
                    self.deliver_notification(me, KernelError::SenderDead.code(), sequence);
                    return Ok(());
                };
                self.receive_from(me, 1 << self.tasks[index].rank);
            }
        }
        Ok(())
    }

    /// Receives from the first waiting sender among `ranks`, or waits. Senders whose message cannot be
    /// delivered get the error and are passed over.
    #[inline(always)]
    fn receive_from(&mut self, me: usize, ranks: u32) {
        loop {
            let candidates = self.tasks[me].senders & ranks;
            if candidates == 0 {
                self.block(me, State::Receiving);
                return;
            }
            let rank = candidates.trailing_zeros();
            let sender = self.by_rank(rank);
            self.tasks[me].senders &= !(1 << rank);
            match self.deliver(sender, me) {
                Ok(()) => {
                    self.tasks[sender].state = State::AwaitingReply(me as u8);
                    return;
                }
                Err(error) => self.complete_send(sender, error.code(), 0, 0),
            }
        }
    }

    pub(crate) fn call_reply(&mut self, me: usize) -> CallResult {
        self.reply(me)?;
        self.tasks[me].context.set_result(0, 0);
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn call_reply_recv(&mut self, me: usize) -> CallResult {
        match self.reply(me) {
            Ok(()) => self.call_recv(me, 6),
            Err(Trap::Error(error)) => {
                let context = &mut self.tasks[me].context;
                context.set_result(0, TaskId::REPLY_REFUSED.0 as usize);
                context.set_result(1, error.code() as usize);
                for index in 2..8 {
                    context.set_result(index, 0);
                }
                Ok(())
            }
            Err(stop) => Err(stop),
        }
    }

    /// Answers a caller; a dead one is no error.
    #[inline(always)]
    fn reply(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let (caller, code) = (TaskId(context.argument(0) as u32), context.argument(1) as u32);
        let (address, len) = (context.argument(2), context.argument(3));
        let (frames, frame_count) = (context.argument(4), context.argument(5));
        self.check_user(me, address, len, Access::READ)?;
        self.check_frame_list(me, frames, frame_count, Access::READ)?;
        if caller.index() >= self.tasks.len() || code >= FIRST_KERNEL_CODE {
            return Err(KernelError::BadArgument.into());
        }
        let Some(peer) = self.living(caller) else {
            return Ok(());
        };
        if self.tasks[peer].state != State::AwaitingReply(me as u8) {
            return Err(KernelError::NotWaiting.into());
        }
        let message = self.tasks[peer].message;
        if len > message.reply_capacity {
            return Err(KernelError::ReplyTooLong.into());
        }
        if frame_count > 0 {
            if frame_count > message.frame_capacity {
                return Err(KernelError::FrameListTooLong.into());
            }
            self.move_frames(me, peer, frames, message.frames, frame_count)?;
        }
        self.machine.copy(address, message.reply, len);
        self.tasks[me].counters.bytes_copied += len as u64;
        self.complete_send(peer, code, len, frame_count);
        Ok(())
    }

    /// The lease that the caller's arguments 0 and 1 name.
    #[inline]
    fn borrowed(&self, me: usize) -> Result<(usize, Lease), KernelError> {
        let context = &self.tasks[me].context;
        let lender = self.living(TaskId(context.argument(0) as u32)).ok_or(KernelError::BadLease)?;
        if self.tasks[lender].state != State::AwaitingReply(me as u8) {
            return Err(KernelError::BadLease);
        }
        let lease = self.tasks[lender].leases.get(context.argument(1)).ok_or(KernelError::BadLease)?;
        Ok((lender, *lease))
    }

    pub(crate) fn call_borrow(&mut self, me: usize, write: bool) -> CallResult {
        let (_, lease) = self.borrowed(me)?;
        let context = &self.tasks[me].context;
        let (offset, address, len) = (context.argument(2), context.argument(3), context.argument(4));
        let (right, need) = if write { (lease::WRITE, Access::READ) } else { (lease::READ, Access::WRITE) };
        if lease.rights & right == 0 {
            return Err(KernelError::LeaseDirection.into());
        }
        if offset.checked_add(len).is_none_or(|end| end > lease.len) {
            return Err(KernelError::LeaseBounds.into());
        }
        self.check_user(me, address, len, need)?;
        let lent = lease.address + offset;
        if write {
            self.machine.copy(address, lent, len);
        } else {
            self.machine.copy(lent, address, len);
        }
        let task = &mut self.tasks[me];
        task.counters.bytes_copied += len as u64;
        task.context.set_result(0, 0);
        Ok(())
    }

    pub(crate) fn call_borrow_info(&mut self, me: usize) -> CallResult {
        let (_, lease) = self.borrowed(me)?;
        let context = &mut self.tasks[me].context;
        context.set_result(0, 0);
        context.set_result(1, lease.rights);
        context.set_result(2, lease.len);
        Ok(())
    }

    pub(crate) fn call_refresh_id(&mut self, me: usize) -> CallResult {
        let index = self.tasks[me].context.argument(0);
        let id = self.tasks.get(index).ok_or(KernelError::BadArgument)?.id(index);
        let context = &mut self.tasks[me].context;
        context.set_result(0, 0);
        context.set_result(1, id.0 as usize);
        Ok(())
    }
}

const _: () = assert!(size_of::<FrameDesc>() == 8, "two words, so that a list of 32 fits 256 bytes");
