//! Frames: who holds them is the ledger's, which page tables show them is ours.

use abi::frame::Direction;
use abi::image::{Access, Pool};
use abi::{FrameDesc, KernelError, MAX_FRAME_LIST, PAGE_SIZE};
use ledger::Event;

use crate::{CallResult, Context, Kernel, Machine};

/// Where the frames of a pool lie, and whose they are.
#[derive(Debug)]
pub struct FramePool {
    /// Number of the page in which the pool's frame with index 0 would lie; frame indices count through all pools.
    origin: usize,
    first: usize,
    count: usize,
    owner: usize,
    image: Pool,
}

impl FramePool {
    /// Address of a frame of this pool.
    #[inline]
    fn address(&self, frame: usize) -> usize {
        self.origin.wrapping_add(frame) * PAGE_SIZE
    }

    /// True if the frame is of this pool.
    #[inline]
    fn contains(&self, entry: &FrameDesc) -> bool {
        entry.handle.index().wrapping_sub(self.first) < self.count
    }
}

/// Reads a checked frame list into the kernel: what is checked further is what is moved.
#[inline]
fn load_frames<'a, M: Machine>(
    machine: &M,
    address: usize,
    to: &'a mut [FrameDesc; MAX_FRAME_LIST],
    count: usize,
) -> &'a mut [FrameDesc] {
    let list = &mut to[..count];
    for (index, entry) in list.iter_mut().enumerate() {
        *entry = machine.load(address + index * size_of::<FrameDesc>());
    }
    list
}

impl<M: Machine> Kernel<M> {
    /// Adds a frame pool, all of whose frames its owner holds.
    ///
    /// # Errors
    /// What is wrong with it; `cargo xtask dist` writes no such pool.
    pub fn add_pool(&mut self, pool: &Pool) -> Result<(), &'static str> {
        let number = self
            .ledger
            .add_pool(pool.owner, pool.count, &pool.holders)
            .map_err(|_| "a frame pool does not fit, or names a holder twice")?;
        let first = self.ledger.frames(number).start;
        let entry = FramePool {
            origin: (pool.base as usize / PAGE_SIZE).wrapping_sub(first),
            first,
            count: pool.count.into(),
            owner: pool.owner.into(),
            image: pool.clone(),
        };
        self.pools.push(entry).map_err(|_| "too many frame pools")
    }

    /// Moves the frames that `from` lists at one address to `to`, and writes their new handles at another.
    #[inline]
    pub(crate) fn move_frames(
        &mut self,
        from: usize,
        to: usize,
        from_list: usize,
        to_list: usize,
        count: usize,
    ) -> Result<(), KernelError> {
        let list = load_frames(&self.machine, from_list, &mut self.list, count);
        let single = self.ledger.transfer_in_place(from as u8, to as u8, list, MAX_FRAME_LIST)?;
        let mut writes = 0;
        let mut rest = &*list;
        while let Some(first) = rest.first() {
            // Almost every list is of one pool, which the ledger knows already.
            let Some(pool) = single.or_else(|| self.pools.iter().position(|pool| pool.contains(first))) else { break };
            let pool = &self.pools[pool];
            let run = match single {
                Some(_) => rest.len(),
                None => rest.iter().position(|entry| !pool.contains(entry)).unwrap_or(rest.len()),
            };
            let (frames, others) = rest.split_at(run);
            // The owner, a driver, never sees payload.
            let holders = [from, to].map(|task| (task != pool.owner).then_some(task));
            let origin = pool.origin;
            let pages = frames.iter().map(|entry| origin.wrapping_add(entry.handle.index()));
            self.machine.remap(holders[0], holders[1], pages);
            writes += run * holders.iter().flatten().count();
            rest = others;
        }
        for (index, entry) in list.iter().enumerate() {
            self.machine.store(to_list + index * size_of::<FrameDesc>(), entry);
        }
        let counters = &mut self.tasks[from].counters;
        counters.frames += count as u64;
        counters.map_writes += writes as u64;
        Ok(())
    }

    pub(crate) fn call_frame_arm(&mut self, me: usize) -> CallResult {
        let direction = match self.tasks[me].context.argument(2) {
            0 => Direction::Receive,
            1 => Direction::Transmit,
            _ => return Err(KernelError::BadArgument.into()),
        };
        self.device_list(me, |ledger, machine, pools, list| {
            let mut lines = 0;
            ledger.arm(me as u8, list, |moved| {
                if let Some(pool) = pools.get(moved.pool) {
                    let len = usize::from(moved.desc.len);
                    lines += machine.release_to_device(pool.address(moved.index), len, direction);
                }
            })?;
            Ok(lines)
        })
    }

    pub(crate) fn call_frame_complete(&mut self, me: usize) -> CallResult {
        self.device_list(me, |ledger, machine, pools, list| {
            let mut lines = 0;
            ledger.complete(me as u8, list, |moved| {
                if let Some(pool) = pools.get(moved.pool)
                    && moved.desc.len > 0
                {
                    lines += machine.acquire_from_device(pool.address(moved.index), moved.desc.len.into());
                }
            })?;
            Ok(lines)
        })
    }

    /// Reads the list in arguments 0 and 1, lets `step` move it to or from the device, and books the cache lines.
    #[inline]
    fn device_list(
        &mut self,
        me: usize,
        step: impl FnOnce(
            &mut ledger::Ledger<{ abi::image::MAX_FRAMES }>,
            &mut M,
            &[FramePool],
            &[FrameDesc],
        ) -> Result<usize, KernelError>,
    ) -> CallResult {
        let context = &self.tasks[me].context;
        let (address, count) = (context.argument(0), context.argument(1));
        self.check_frame_list(me, address, count, Access::READ)?;
        let list = load_frames(&self.machine, address, &mut self.list, count);
        let lines = step(&mut self.ledger, &mut self.machine, &self.pools, list)?;
        self.machine.finish_maintenance();
        let task = &mut self.tasks[me];
        task.counters.cache_lines += lines as u64;
        task.context.set_result(0, 0);
        Ok(())
    }

    pub(crate) fn call_frame_list(&mut self, me: usize) -> CallResult {
        let context = &self.tasks[me].context;
        let (pool, address) = (context.argument(0), context.argument(1));
        let (capacity, from) = (context.argument(2).min(MAX_FRAME_LIST), context.argument(3));
        self.check_frame_list(me, address, capacity, Access::WRITE)?;
        let mut list = [FrameDesc::default(); MAX_FRAME_LIST];
        // The task counts the pools that it may use, and knows of no others.
        let uses = |entry: &FramePool| {
            entry.owner == me || entry.image.holders.iter().any(|&(task, _)| usize::from(task) == me)
        };
        let mut own = self.pools.iter().enumerate().filter(|(_, entry)| uses(entry)).map(|(number, _)| number);
        let pool = own.nth(pool).ok_or(KernelError::FramePool)?;
        let (count, next) = self.ledger.list(me as u8, pool, from, &mut list[..capacity])?;
        for (index, entry) in list[..count].iter().enumerate() {
            self.machine.store(address + index * size_of::<FrameDesc>(), entry);
        }
        let context = &mut self.tasks[me].context;
        context.set_result(0, 0);
        context.set_result(1, count);
        context.set_result(2, next);
        Ok(())
    }

    /// Settles the frames of a task that died: those that it held go back to their owners, who get a notice;
    /// those that its own device held go back to it once the device is quiet.
    pub(crate) fn return_frames(&mut self, dead: usize) {
        let mut notices = 0u32;
        let mut orphans = 0u32;
        self.machine.unmap_all(dead);
        self.ledger.task_died(dead as u8, |event| match event {
            Event::Returned { .. } => {}
            Event::Notice { pool, .. } => notices |= 1 << pool,
            Event::OwnerDied { pool, .. } => orphans |= 1 << pool,
        });
        for number in 0..self.pools.len() {
            let pool = &self.pools[number];
            if notices & (1 << number) != 0 {
                let (owner, mask) = (pool.owner, pool.image.returned);
                self.post(owner, mask);
            }
            // A device that does not confirm keeps its frames: better lost than overwritten by DMA.
            if orphans & (1 << number) != 0 && self.machine.quiesce(&self.pools[number].image) {
                self.ledger.quiesced(number);
            }
        }
    }
}
