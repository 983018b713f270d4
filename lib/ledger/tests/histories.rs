//! Long random histories, step by step against the reference.

mod reference;

use abi::{FrameDesc, FrameHandle};
use ledger::Ledger;
use proptest::prelude::*;
use reference::{Operation, PoolSpec, Reference, apply};

const POOLS: [PoolSpec; 2] = [(0, 20, &[(1, 12), (2, 3)]), (2, 9, &[(1, 4), (0, 9)])];
const FRAMES: usize = 29;

/// How a list entry is made from what there is when its turn comes.
#[derive(Clone, Debug)]
enum Pick {
    /// A frame that the sender holds.
    Held(usize),
    /// The valid handle of any frame.
    Valid(usize),
    /// A handle that was valid once.
    Old(usize),
    /// Any number.
    Junk(u32),
}

#[derive(Clone, Debug)]
enum Step {
    Transfer(u8, u8, Vec<(Pick, u16)>),
    Arm(u8, Vec<(Pick, u16)>),
    Complete(u8, Vec<(Pick, u16)>),
    Die(u8),
    Quiesce(usize),
}

fn picks() -> impl Strategy<Value = Vec<(Pick, u16)>> {
    let pick = prop_oneof![
        60 => any::<usize>().prop_map(Pick::Held),
        1 => any::<usize>().prop_map(Pick::Valid),
        1 => any::<usize>().prop_map(Pick::Old),
        1 => any::<u32>().prop_map(Pick::Junk),
    ];
    let len = prop_oneof![60 => 0..=4096u16, 1 => any::<u16>()];
    prop_oneof![
        20 => prop::collection::vec((pick.clone(), len.clone()), 0..6),
        1 => prop::collection::vec((pick, len), 28..36),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        10 => (0..4u8, 0..4u8, picks()).prop_map(|(from, to, picks)| Step::Transfer(from, to, picks)),
        4 => (0..4u8, picks()).prop_map(|(task, picks)| Step::Arm(task, picks)),
        4 => (0..4u8, picks()).prop_map(|(task, picks)| Step::Complete(task, picks)),
        1 => (0..4u8).prop_map(Step::Die),
        1 => (0..3usize).prop_map(Step::Quiesce),
    ];
    prop::collection::vec(step, 1..200)
}

/// Entries for a list. Held frames are taken without repetition, so that most lists are good.
fn list(reference: &Reference, old: &[FrameHandle], from: Option<u8>, picks: &[(Pick, u16)]) -> Vec<FrameDesc> {
    let wanted = from.map_or(ledger::Holder::Device, ledger::Holder::Task);
    let mut held: Vec<_> = (0..FRAMES).filter(|&index| reference.frames[index].holder == wanted).collect();
    let mut list = Vec::new();
    for (number, (pick, len)) in picks.iter().enumerate() {
        let handle = match *pick {
            Pick::Held(_) if held.is_empty() => continue,
            Pick::Held(at) => reference.handle(held.swap_remove(at % held.len())),
            Pick::Valid(at) => reference.handle(at % FRAMES),
            Pick::Old(at) => old[at % old.len()],
            Pick::Junk(raw) => FrameHandle(raw),
        };
        list.push(FrameDesc { handle, len: *len, offset: number as u8, meta: 0x80 | number as u8 });
    }
    list
}

fn operation(step: &Step, reference: &Reference, old: &[FrameHandle]) -> Operation {
    match step {
        Step::Transfer(from, to, picks) => {
            Operation::Transfer { from: *from, to: *to, list: list(reference, old, Some(*from), picks) }
        }
        Step::Arm(task, picks) => Operation::Arm { task: *task, list: list(reference, old, Some(*task), picks) },
        Step::Complete(task, picks) => Operation::Complete { task: *task, list: list(reference, old, None, picks) },
        Step::Die(task) => Operation::Die { task: *task },
        Step::Quiesce(pool) => Operation::Quiesce { pool: *pool },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_answer_is_the_references(steps in steps()) {
        let mut reference = Reference::new(&POOLS);
        let mut ledger = Ledger::<32>::new();
        for (owner, count, holders) in POOLS {
            ledger.add_pool(owner, count, holders).expect("a good image");
        }
        let mut old: Vec<_> = (0..FRAMES).map(|index| FrameHandle::new(index, 0)).collect();
        for step in &steps {
            let operation = operation(step, &reference, &old);
            let (before, valid) = (ledger.clone(), reference.clone());
            let expected = reference.apply(&operation);
            prop_assert_eq!(apply(&mut ledger, &operation), expected.clone());
            reference.assert_agrees(&ledger);
            if expected.result.is_err() {
                prop_assert_eq!(&ledger, &before, "a refused list changed something");
            }
            old.extend((0..FRAMES).map(|index| valid.handle(index)).filter(|h| reference.handle(h.index()) != *h));
        }
    }
}
