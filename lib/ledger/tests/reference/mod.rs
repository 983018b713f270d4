//! The ledger as one would write it without a thought for speed: what the shipping one is compared with.

use abi::stats::FrameCensus;
use abi::{FrameDesc, FrameHandle, KernelError};
use ledger::{Event, Holder, Ledger};

/// A pool as a test describes it: owner, frames, and the quotas of other holders.
pub type PoolSpec = (u8, u16, &'static [(u8, u16)]);

/// A frame, spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub pool: usize,
    pub holder: Holder,
    pub generation: u32,
}

/// A pool, spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub owner: u8,
    pub holders: Vec<(u8, u16)>,
}

/// Frames and pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub frames: Vec<Frame>,
    pub pools: Vec<Pool>,
}

/// An operation on the ledger.
#[derive(Clone, Debug)]
pub enum Operation {
    Transfer { from: u8, to: u8, list: Vec<FrameDesc> },
    Arm { task: u8, list: Vec<FrameDesc> },
    Complete { task: u8, list: Vec<FrameDesc> },
    Die { task: u8 },
    Quiesce { pool: usize },
}

/// What an operation answered: the result, the receiver's list, the frames that the kernel is told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub result: Result<(), KernelError>,
    pub list: Vec<FrameDesc>,
    pub told: Vec<(usize, usize)>,
    pub events: Vec<Event>,
}

impl Outcome {
    fn of(result: Result<(), KernelError>) -> Self {
        Self { result, list: Vec::new(), told: Vec::new(), events: Vec::new() }
    }
}

impl Reference {
    pub fn new(pools: &[PoolSpec]) -> Self {
        let mut this = Self { frames: Vec::new(), pools: Vec::new() };
        for (number, &(owner, count, holders)) in pools.iter().enumerate() {
            this.pools.push(Pool { owner, holders: holders.to_vec() });
            let frame = Frame { pool: number, holder: Holder::Task(owner), generation: 1 };
            this.frames.extend(std::iter::repeat_n(frame, count.into()));
        }
        this
    }

    pub fn handle(&self, index: usize) -> FrameHandle {
        FrameHandle::new(index, self.frames[index].generation)
    }

    pub fn owner(&self, index: usize) -> u8 {
        self.pools[self.frames[index].pool].owner
    }

    fn held(&self, task: u8, pool: usize) -> usize {
        let held = |frame: &&Frame| frame.pool == pool && frame.holder == Holder::Task(task);
        self.frames.iter().filter(held).count()
    }

    fn give(&mut self, index: usize, holder: Holder) {
        let frame = &mut self.frames[index];
        frame.holder = holder;
        frame.generation = (frame.generation + 1) % FrameHandle::GENERATIONS;
    }

    fn check_list(&self, holder: Holder, list: &[FrameDesc]) -> Result<(), KernelError> {
        if list.len() > 32 {
            return Err(KernelError::FrameListTooLong);
        }
        for (place, desc) in list.iter().enumerate() {
            let index = desc.handle.index();
            if index >= self.frames.len() {
                return Err(KernelError::FrameUnknown);
            }
            if self.handle(index) != desc.handle {
                return Err(KernelError::FrameStale);
            }
            if self.frames[index].holder != holder {
                return Err(KernelError::FrameNotHeld);
            }
            if list[..place].iter().any(|earlier| earlier.handle.index() == index) {
                return Err(KernelError::FrameDuplicate);
            }
            if desc.len > 4096 {
                return Err(KernelError::FrameLength);
            }
        }
        Ok(())
    }

    fn check_receiver(&self, to: u8, list: &[FrameDesc]) -> Result<(), KernelError> {
        for (number, pool) in self.pools.iter().enumerate() {
            let more = list.iter().filter(|desc| self.frames[desc.handle.index()].pool == number).count();
            if more == 0 || pool.owner == to {
                continue;
            }
            match pool.holders.iter().find(|holder| holder.0 == to) {
                None => return Err(KernelError::FramePool),
                Some(&(_, quota)) if self.held(to, number) + more > quota.into() => {
                    return Err(KernelError::FrameQuota);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn transfer(&mut self, from: u8, to: u8, list: &[FrameDesc]) -> Outcome {
        let checked = if from == to || from >= 32 || to >= 32 {
            Err(KernelError::BadArgument)
        } else {
            self.check_list(Holder::Task(from), list).and_then(|()| self.check_receiver(to, list))
        };
        let mut outcome = Outcome::of(checked);
        if checked.is_ok() {
            for desc in list {
                let index = desc.handle.index();
                self.give(index, Holder::Task(to));
                outcome.list.push(FrameDesc { handle: self.handle(index), ..*desc });
                outcome.told.push((index, self.frames[index].pool));
            }
        }
        outcome
    }

    fn with_device(&mut self, task: u8, from: Holder, to: Holder, list: &[FrameDesc]) -> Outcome {
        let foreign = |desc: &FrameDesc| self.owner(desc.handle.index()) != task;
        let checked = self
            .check_list(from, list)
            .and_then(|()| if list.iter().any(foreign) { Err(KernelError::FramePool) } else { Ok(()) });
        let mut outcome = Outcome::of(checked);
        if checked.is_ok() {
            for desc in list {
                let index = desc.handle.index();
                self.frames[index].holder = to;
                outcome.told.push((index, self.frames[index].pool));
            }
        }
        outcome
    }

    fn die(&mut self, task: u8) -> Outcome {
        let mut outcome = Outcome::of(Ok(()));
        for pool in 0..self.pools.len() {
            let owner = self.pools[pool].owner;
            let (mut returned, mut quarantined) = (0, 0);
            for index in 0..self.frames.len() {
                if self.frames[index].pool != pool {
                    continue;
                }
                let holder = self.frames[index].holder;
                if holder == Holder::Task(task) {
                    self.give(index, Holder::Task(owner));
                    if owner != task {
                        outcome.events.push(Event::Returned { pool, index });
                        returned += 1;
                    }
                } else if holder == Holder::Device && owner == task {
                    self.give(index, Holder::Quarantine);
                    quarantined += 1;
                }
            }
            if owner == task {
                outcome.events.push(Event::OwnerDied { pool, quarantined });
            } else if returned > 0 {
                outcome.events.push(Event::Notice { pool, owner, frames: returned });
            }
        }
        outcome
    }

    fn quiesce(&mut self, pool: usize) -> Outcome {
        for index in 0..self.frames.len() {
            let frame = &self.frames[index];
            if frame.pool == pool && frame.holder == Holder::Quarantine {
                self.give(index, Holder::Task(self.pools[pool].owner));
            }
        }
        Outcome::of(Ok(()))
    }

    pub fn apply(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::Transfer { from, to, list } => self.transfer(*from, *to, list),
            Operation::Arm { task, list } => self.with_device(*task, Holder::Task(*task), Holder::Device, list),
            Operation::Complete { task, list } => self.with_device(*task, Holder::Device, Holder::Task(*task), list),
            Operation::Die { task } => self.die(*task),
            Operation::Quiesce { pool } => self.quiesce(*pool),
        }
    }

    /// Fails unless the ledger's answers are the reference's, for everything that can be asked.
    pub fn assert_agrees<const N: usize>(&self, ledger: &Ledger<N>) {
        for index in 0..N + 1 {
            assert_eq!(ledger.holder(index), self.frames.get(index).map(|frame| frame.holder), "holder of {index}");
        }
        for pool in 0..self.pools.len() + 1 {
            let mut census = FrameCensus::default();
            for frame in self.frames.iter().filter(|frame| frame.pool == pool) {
                match frame.holder {
                    Holder::Device => census.device += 1,
                    Holder::Quarantine => census.quarantined += 1,
                    Holder::Task(task) if task == self.pools[pool].owner => census.owner += 1,
                    Holder::Task(_) => census.lent += 1,
                }
            }
            assert_eq!(ledger.census(pool), (pool < self.pools.len()).then_some(census));
            for task in 0..4 {
                assert_eq!(usize::from(ledger.held_count(task, pool)), self.held(task, pool));
                let mut held: Vec<_> = (0..self.frames.len())
                    .filter(|&index| self.frames[index].pool == pool)
                    .filter(|&index| self.frames[index].holder == Holder::Task(task))
                    .map(|index| self.handle(index))
                    .collect();
                assert_eq!(ledger.held_by(task, pool, 0).collect::<Vec<_>>(), held);
                held.retain(|handle| handle.index() >= 2);
                assert_eq!(ledger.held_by(task, pool, 2).collect::<Vec<_>>(), held);
            }
        }
    }
}

/// Applies an operation to the shipping ledger, a transfer in both its forms.
pub fn apply<const N: usize>(ledger: &mut Ledger<N>, operation: &Operation) -> Outcome {
    const UNTOUCHED: FrameDesc = FrameDesc { handle: FrameHandle(0xdead_beef), len: 1, offset: 2, meta: 3 };
    let mut told = Vec::new();
    let mut events = Vec::new();
    let mut out = [UNTOUCHED; 40];
    let mut moved = |moved: ledger::Moved<'_>| told.push((moved.index, moved.pool));
    let (result, len) = match operation {
        Operation::Transfer { from, to, list } => {
            let mut twin = ledger.clone();
            let mut in_place = list.clone();
            let same = twin.transfer_in_place(*from, *to, &mut in_place, 32);
            let result = ledger.transfer(*from, *to, list, &mut out, &mut moved);
            assert_eq!((same.map(drop), &twin), (result, &*ledger));
            if result.is_ok() {
                assert_eq!(in_place, out[..list.len()]);
            } else {
                assert_eq!(&in_place, list);
            }
            (result, if result.is_ok() { list.len() } else { 0 })
        }
        Operation::Arm { task, list } => (ledger.arm(*task, list, &mut moved), 0),
        Operation::Complete { task, list } => (ledger.complete(*task, list, &mut moved), 0),
        Operation::Die { task } => {
            ledger.task_died(*task, |event| events.push(event));
            (Ok(()), 0)
        }
        Operation::Quiesce { pool } => {
            ledger.quiesced(*pool);
            (Ok(()), 0)
        }
    };
    assert!(out[len..].iter().all(|desc| *desc == UNTOUCHED), "wrote past the list");
    Outcome { result, list: out[..len].to_vec(), told, events }
}
