//! Every state that three tasks, four frames and their devices can reach, and every list in each of them.
//!
//! Breadth-first over clones of the shipping ledger. A state is known again by the holders of its frames:
//! generations only grow, and the ledger compares them for equality only, so each state is visited once, with the
//! generations of the shortest way to it. In each state, all lists of up to three or four entries are tried in all
//! operations and compared with the reference; and so are handles from before and after the valid one. Page tables are
//! kept as the kernel keeps them, from what the ledger tells it, and must show a frame to its holder only.

mod reference;

use std::collections::{BTreeSet, HashSet, VecDeque};

use abi::{FrameDesc, FrameHandle, KernelError};
use ledger::{Event, Holder, Ledger};
use reference::{Operation, Outcome, PoolSpec, Reference, apply};

const DRIVER: u8 = 0;
const NET: u8 = 1;
const CLIENT: u8 = 2;
const TASKS: [u8; 3] = [DRIVER, NET, CLIENT];
const FRAMES: usize = 4;
type Pools = [PoolSpec];
/// One driver.
const ONE: &Pools = &[(DRIVER, 4, &[(NET, 3), (CLIENT, 2)])];
/// Two drivers, of which one also holds frames of the other.
const TWO: &Pools = &[(DRIVER, 2, &[(NET, 2), (CLIENT, 1)]), (CLIENT, 2, &[(DRIVER, 1), (NET, 2)])];

#[derive(Clone)]
struct World {
    ledger: Ledger<4>,
    reference: Reference,
    /// Tasks, beside the owner, whose page tables show the frame.
    mapped: [BTreeSet<u8>; FRAMES],
}

impl World {
    fn new(pools: &Pools) -> Self {
        let mut ledger = Ledger::new();
        for &(owner, count, holders) in pools {
            ledger.add_pool(owner, count, holders).expect("a good image");
        }
        Self { ledger, reference: Reference::new(pools), mapped: Default::default() }
    }

    fn holders(&self) -> [Holder; FRAMES] {
        std::array::from_fn(|index| self.ledger.holder(index).expect("in the pool"))
    }

    /// Does what the kernel does with page tables. A driver does not see the payload of its own frames.
    fn remap(&mut self, operation: &Operation, outcome: &Outcome) {
        if let Operation::Transfer { from, to, .. } = operation {
            for &(index, pool) in &outcome.told {
                let owner = self.ledger.owner(pool).expect("a pool");
                if *from != owner {
                    assert!(self.mapped[index].remove(from), "unmapped twice");
                }
                if *to != owner {
                    assert!(self.mapped[index].insert(*to), "mapped twice");
                }
            }
        }
        if let Operation::Die { task } = operation {
            for event in &outcome.events {
                if let Event::Returned { index, .. } = event {
                    assert!(self.mapped[*index].remove(task), "unmapped twice");
                }
            }
        }
    }

    fn step(&mut self, operation: &Operation) -> Outcome {
        let before = self.ledger.clone();
        let expected = self.reference.apply(operation);
        let outcome = apply(&mut self.ledger, operation);
        assert_eq!(outcome, expected, "{operation:?}");
        if outcome.result.is_err() {
            assert_eq!(self.ledger, before, "{operation:?} was refused and changed something");
        }
        self.remap(operation, &outcome);
        outcome
    }

    fn check(&self) {
        self.reference.assert_agrees(&self.ledger);
        let mut sum = 0;
        for pool in 0..self.ledger.pools() {
            let census = self.ledger.census(pool).expect("a pool");
            sum += census.owner + census.lent + census.device + census.quarantined;
            for &(task, quota) in &self.reference.pools[pool].holders {
                assert!(self.ledger.held_count(task, pool) <= quota, "over quota");
            }
        }
        assert_eq!(usize::from(sum), FRAMES, "frames are lost or doubled");
        for (index, holder) in self.holders().into_iter().enumerate() {
            let allowed: BTreeSet<u8> = match holder {
                Holder::Task(task) if task != self.reference.owner(index) => [task].into(),
                _ => BTreeSet::new(),
            };
            assert_eq!(self.mapped[index], allowed, "a frame is mapped for others than its holder");
        }
    }
}

/// All operations on a list, by anybody to anybody.
fn operations(list: &[FrameDesc]) -> impl Iterator<Item = Operation> {
    let transfers = TASKS.into_iter().flat_map(move |from| {
        let to = TASKS.into_iter().filter(move |&to| to != from);
        to.map(move |to| Operation::Transfer { from, to, list: list.to_vec() })
    });
    let arms = TASKS.into_iter().map(|task| Operation::Arm { task, list: list.to_vec() });
    let completes = TASKS.into_iter().map(|task| Operation::Complete { task, list: list.to_vec() });
    transfers.chain(arms).chain(completes)
}

/// All sequences of up to `len` frames, repetitions included.
fn sequences(len: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![vec![]];
    let mut longest = all.clone();
    for _ in 0..len {
        longest = longest
            .iter()
            .flat_map(|sequence| (0..FRAMES).map(move |next| [sequence.as_slice(), &[next]].concat()))
            .collect();
        all.extend_from_slice(&longest);
    }
    all
}

fn entry(handle: FrameHandle) -> FrameDesc {
    FrameDesc { handle, len: 60, offset: 2, meta: 0 }
}

/// Handles of other generations, next to good entries, are refused in every operation by everybody.
fn refuse_stale(world: &World) {
    for index in 0..FRAMES {
        let valid = world.reference.handle(index);
        let beside = world.reference.handle((index + 1) % FRAMES);
        let generations = (0..valid.generation() + 4).filter(|&generation| generation != valid.generation());
        for generation in generations {
            let bad = entry(FrameHandle::new(index, generation));
            for list in [vec![bad], vec![entry(beside), bad], vec![bad, entry(valid)]] {
                for operation in operations(&list) {
                    let mut ledger = world.ledger.clone();
                    let outcome = apply(&mut ledger, &operation);
                    let expected = [Err(KernelError::FrameStale), Err(KernelError::FrameNotHeld)];
                    assert!(expected.contains(&outcome.result), "{operation:?}: {:?}", outcome.result);
                    assert_eq!(ledger, world.ledger);
                }
            }
        }
    }
}

/// Visits all states and returns how many there are.
fn explore(pools: &Pools, len: usize) -> usize {
    let sequences = sequences(len);
    let start = World::new(pools);
    let mut known = HashSet::from([start.holders()]);
    let mut queue = VecDeque::from([start]);
    let (mut tried, mut refused) = (0u32, 0u32);
    while let Some(world) = queue.pop_front() {
        world.check();
        refuse_stale(&world);
        let mut steps: Vec<_> = TASKS.map(|task| Operation::Die { task }).into();
        steps.extend((0..pools.len()).map(|pool| Operation::Quiesce { pool }));
        for sequence in &sequences {
            let list: Vec<_> = sequence.iter().map(|&index| entry(world.reference.handle(index))).collect();
            steps.extend(operations(&list));
        }
        for operation in steps {
            let mut next = world.clone();
            tried += 1;
            if next.step(&operation).result.is_err() {
                refused += 1;
            } else if known.insert(next.holders()) {
                queue.push_back(next);
            }
        }
    }
    println!("{} states, {tried} operations, {refused} refused", known.len());
    assert!(refused > 0 && refused < tried);
    known.len()
}

#[test]
fn one_driver() {
    // Each frame in one of five places, less those where a quota is exceeded: all four with net (1),
    // three or four with the client (4 * 4 + 1).
    assert_eq!(explore(ONE, 4), 5 * 5 * 5 * 5 - 1 - 17);
}

#[test]
fn two_drivers() {
    // In each pool two frames in five places, less both with the one that may hold one.
    assert_eq!(explore(TWO, 3), (5 * 5 - 1) * (5 * 5 - 1));
}
