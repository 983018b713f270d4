//! Each error, and that it changes nothing.

use abi::{FrameDesc, FrameHandle, KernelError};
use ledger::{Event, Holder, Ledger};

const DRIVER: u8 = 0;
const NET: u8 = 1;
const OTHER: u8 = 2;
const STRANGER: u8 = 3;

/// Pool 0: frames 0..4 of `DRIVER`, `NET` may hold 3. Pool 1: frames 4..7 of `OTHER`, `NET` may hold 1.
fn ledger() -> Ledger<8> {
    let mut ledger = Ledger::new();
    assert_eq!(ledger.add_pool(DRIVER, 4, &[(NET, 3)]), Ok(0));
    assert_eq!(ledger.add_pool(OTHER, 3, &[(NET, 1), (DRIVER, 3)]), Ok(1));
    ledger
}

fn frame(index: usize, generation: u32) -> FrameDesc {
    FrameDesc { handle: FrameHandle::new(index, generation), len: 60, offset: 2, meta: 5 }
}

#[track_caller]
fn refused(ledger: &mut Ledger<8>, from: u8, to: u8, list: &[FrameDesc], error: KernelError) {
    let before = ledger.clone();
    let mut out = [FrameDesc::default(); 32];
    let result = ledger.transfer(from, to, list, &mut out, |_| panic!("told of a refused frame"));
    assert_eq!(result, Err(error));
    assert_eq!(out, [FrameDesc::default(); 32]);
    assert_eq!(*ledger, before);
    let mut copy = list.to_vec();
    let result = ledger.transfer_in_place(from, to, &mut copy, 32);
    assert_eq!((result, &copy[..]), (Err(error), list));
    assert_eq!(*ledger, before);
}

fn give(ledger: &mut Ledger<8>, from: u8, to: u8, list: &[FrameDesc]) -> Vec<FrameDesc> {
    let mut list = list.to_vec();
    ledger.transfer_in_place(from, to, &mut list, 32).expect("a good list");
    list
}

#[test]
fn a_hand_over_moves_and_renames() {
    let mut ledger = ledger();
    let list = [frame(1, 1), frame(0, 1)];
    let mut out = [FrameDesc::default(); 3];
    let mut told = Vec::new();
    ledger
        .transfer(DRIVER, NET, &list, &mut out, |moved| told.push((moved.index, moved.pool, *moved.desc)))
        .expect("a good list");
    assert_eq!(out, [frame(1, 2), frame(0, 2), FrameDesc::default()]);
    assert_eq!(told, [(1, 0, frame(1, 2)), (0, 0, frame(0, 2))]);
    assert_eq!(ledger.holder(1), Some(Holder::Task(NET)));
    assert_eq!((ledger.held_count(DRIVER, 0), ledger.held_count(NET, 0), ledger.held(NET)), (2, 2, 2));
}

#[test]
fn an_empty_list_is_good() {
    let mut ledger = ledger();
    let before = ledger.clone();
    assert_eq!(ledger.transfer(DRIVER, NET, &[], &mut [], |_| panic!()), Ok(()));
    assert_eq!(ledger.arm(STRANGER, &[], |_| panic!()), Ok(()));
    assert_eq!(ledger, before);
}

#[test]
fn too_long() {
    let mut ledger = ledger();
    refused(&mut ledger, DRIVER, NET, &[frame(0, 1); 33], KernelError::FrameListTooLong);
    let before = ledger.clone();
    let mut small = [FrameDesc::default(); 1];
    let list = [frame(0, 1), frame(1, 1)];
    let result = ledger.transfer(DRIVER, NET, &list, &mut small, |_| panic!());
    assert_eq!(result, Err(KernelError::FrameListTooLong));
    let result = ledger.transfer_in_place(DRIVER, NET, &mut list.clone(), 1);
    assert_eq!(result, Err(KernelError::FrameListTooLong));
    assert_eq!(ledger.arm(DRIVER, &[frame(0, 1); 33], |_| panic!()), Err(KernelError::FrameListTooLong));
    assert_eq!(ledger, before);
}

#[test]
fn unknown() {
    let mut ledger = ledger();
    // In no pool; the line of another frame modulo the table's size; the largest index.
    for index in [7, 8, 8 + 1, 4095] {
        refused(&mut ledger, DRIVER, NET, &[frame(0, 1), frame(index, 1)], KernelError::FrameUnknown);
    }
}

#[test]
fn stale() {
    let mut ledger = ledger();
    for generation in [0, 2, FrameHandle::GENERATIONS - 1] {
        refused(&mut ledger, DRIVER, NET, &[frame(1, 1), frame(0, generation)], KernelError::FrameStale);
    }
    // Given away and come back: the old name is over.
    let list = give(&mut ledger, DRIVER, NET, &[frame(0, 1)]);
    refused(&mut ledger, DRIVER, NET, &[frame(0, 1)], KernelError::FrameStale);
    assert_eq!(give(&mut ledger, NET, DRIVER, &list), [frame(0, 3)]);
    refused(&mut ledger, DRIVER, NET, &[frame(0, 1)], KernelError::FrameStale);
    refused(&mut ledger, NET, DRIVER, &list, KernelError::FrameStale);
    // The name that it will have after the first entry of this list moved it.
    refused(&mut ledger, DRIVER, NET, &[frame(0, 3), frame(0, 4)], KernelError::FrameStale);
}

#[test]
fn not_held() {
    let mut ledger = ledger();
    refused(&mut ledger, NET, DRIVER, &[frame(0, 1)], KernelError::FrameNotHeld);
    refused(&mut ledger, STRANGER, DRIVER, &[frame(0, 1)], KernelError::FrameNotHeld);
    ledger.arm(DRIVER, &[frame(0, 1)], |_| {}).expect("held");
    refused(&mut ledger, DRIVER, NET, &[frame(1, 1), frame(0, 1)], KernelError::FrameNotHeld);
    let before = ledger.clone();
    assert_eq!(ledger.arm(DRIVER, &[frame(0, 1)], |_| panic!()), Err(KernelError::FrameNotHeld));
    assert_eq!(ledger.complete(DRIVER, &[frame(0, 1), frame(1, 1)], |_| panic!()), Err(KernelError::FrameNotHeld));
    assert_eq!(ledger, before);
}

#[test]
fn duplicate() {
    let mut ledger = ledger();
    let list = [frame(0, 1), frame(1, 1), frame(0, 1)];
    refused(&mut ledger, DRIVER, NET, &list, KernelError::FrameDuplicate);
    let before = ledger.clone();
    assert_eq!(ledger.arm(DRIVER, &list, |_| panic!()), Err(KernelError::FrameDuplicate));
    assert_eq!(ledger, before);
    ledger.arm(DRIVER, &list[..2], |_| {}).expect("held");
    let before = ledger.clone();
    assert_eq!(ledger.complete(DRIVER, &list, |_| panic!()), Err(KernelError::FrameDuplicate));
    assert_eq!(ledger, before);
}

#[test]
fn length() {
    let mut ledger = ledger();
    let page = FrameDesc { len: 4096, ..frame(0, 1) };
    let long = FrameDesc { len: 4097, ..frame(1, 1) };
    refused(&mut ledger, DRIVER, NET, &[page, long], KernelError::FrameLength);
    assert_eq!(give(&mut ledger, DRIVER, NET, &[page])[0].len, 4096);
}

#[test]
fn pool() {
    let mut ledger = ledger();
    refused(&mut ledger, DRIVER, STRANGER, &[frame(0, 1)], KernelError::FramePool);
    refused(&mut ledger, DRIVER, OTHER, &[frame(0, 1)], KernelError::FramePool);
    // Held, but not owned: only the owner has a device.
    let list = give(&mut ledger, OTHER, DRIVER, &[frame(4, 1)]);
    let mixed = [frame(0, 1), list[0]];
    let before = ledger.clone();
    assert_eq!(ledger.arm(DRIVER, &mixed, |_| panic!()), Err(KernelError::FramePool));
    assert_eq!(ledger, before);
    // On a device, but another's.
    ledger.arm(OTHER, &[frame(5, 1)], |_| {}).expect("owned");
    let before = ledger.clone();
    assert_eq!(ledger.complete(DRIVER, &[frame(5, 1)], |_| panic!()), Err(KernelError::FramePool));
    assert_eq!(ledger, before);
}

#[test]
fn quota() {
    let mut ledger = ledger();
    let all: Vec<_> = (0..4).map(|index| frame(index, 1)).collect();
    refused(&mut ledger, DRIVER, NET, &all, KernelError::FrameQuota);
    let held = give(&mut ledger, DRIVER, NET, &all[..3]);
    refused(&mut ledger, DRIVER, NET, &all[3..], KernelError::FrameQuota);
    give(&mut ledger, NET, DRIVER, &held[..1]);
    give(&mut ledger, DRIVER, NET, &all[3..]);
    // Each pool has its own.
    give(&mut ledger, OTHER, NET, &[frame(4, 1)]);
    refused(&mut ledger, OTHER, NET, &[frame(5, 1)], KernelError::FrameQuota);
}

#[test]
fn no_two_tasks() {
    let mut ledger = ledger();
    for (from, to) in [(0, 0), (0, 32), (32, 0), (0xfd, 0), (0, 0xfd), (0, 0xfe), (0xff, 1)] {
        refused(&mut ledger, from, to, &[frame(0, 1)], KernelError::BadArgument);
    }
    assert_eq!(ledger.arm(0xfd, &[frame(0, 1)], |_| panic!()), Err(KernelError::BadArgument));
    assert_eq!(ledger.complete(0xfd, &[frame(0, 1)], |_| panic!()), Err(KernelError::BadArgument));
    let before = ledger.clone();
    ledger.task_died(0xfd, |_| panic!());
    assert_eq!(ledger.quiesced(2), 0);
    assert_eq!(ledger, before);
    assert_eq!((ledger.held_by(0xfd, 0, 0).count(), ledger.held_count(0xfd, 0)), (0, 0));
}

#[test]
fn images_that_are_wrong() {
    let error = Err(KernelError::BadArgument);
    let mut ledger = ledger();
    let before = ledger.clone();
    assert_eq!(ledger.add_pool(0, 2, &[]), error);
    assert_eq!(ledger.add_pool(0, 0, &[]), error);
    assert_eq!(ledger.add_pool(32, 1, &[]), error);
    assert_eq!(ledger.add_pool(0, 1, &[(32, 1)]), error);
    assert_eq!(ledger.add_pool(0, 1, &[(0, 1)]), error);
    assert_eq!(ledger.add_pool(0, 1, &[(1, 1), (1, 1)]), error);
    assert_eq!(ledger, before);
    let mut ledger = Ledger::<8>::new();
    for _ in 0..4 {
        assert!(ledger.add_pool(0, 1, &[]).is_ok());
    }
    assert_eq!(ledger.add_pool(0, 1, &[]), error);
}

#[test]
fn lists_of_held_frames_go_on_where_they_stopped() {
    let mut ledger = ledger();
    give(&mut ledger, DRIVER, NET, &[frame(1, 1)]);
    let mut to = [FrameDesc::default(); 2];
    assert_eq!(ledger.list(DRIVER, 0, 0, &mut to), Ok((2, 3)));
    assert_eq!(to.map(|desc| desc.handle), [FrameHandle::new(0, 1), FrameHandle::new(2, 1)]);
    assert_eq!(ledger.list(DRIVER, 0, 3, &mut to), Ok((1, 0)));
    assert_eq!(ledger.list(DRIVER, 0, 4000, &mut to), Ok((0, 0)));
    // Exactly full, nothing left.
    assert_eq!(ledger.list(NET, 0, 0, &mut to[..1]), Ok((1, 0)));
    assert_eq!(ledger.list(STRANGER, 0, 0, &mut to), Err(KernelError::FramePool));
    assert_eq!(ledger.list(DRIVER, 2, 0, &mut to), Err(KernelError::FramePool));
}

#[test]
fn the_death_of_a_holder_and_of_an_owner() {
    let mut ledger = ledger();
    let lent = give(&mut ledger, DRIVER, NET, &[frame(0, 1), frame(1, 1)]);
    ledger.arm(DRIVER, &[frame(2, 1)], |_| {}).expect("held");

    let mut events = Vec::new();
    let mut owner_dead = ledger.clone();
    owner_dead.task_died(DRIVER, |event| events.push(event));
    assert_eq!(events, [Event::OwnerDied { pool: 0, quarantined: 1 }]);
    assert_eq!(owner_dead.holder(2), Some(Holder::Quarantine));
    // The late completion, and the dead instance's own frame.
    assert_eq!(owner_dead.complete(DRIVER, &[frame(2, 1)], |_| {}), Err(KernelError::FrameStale));
    assert_eq!(owner_dead.arm(DRIVER, &[frame(3, 1)], |_| {}), Err(KernelError::FrameStale));
    assert_eq!(owner_dead.arm(DRIVER, &[frame(3, 2)], |_| {}), Ok(()));
    assert_eq!(owner_dead.quiesced(0), 1);
    assert_eq!(owner_dead.complete(DRIVER, &[frame(2, 1)], |_| {}), Err(KernelError::FrameStale));
    assert_eq!(owner_dead.holder(2), Some(Holder::Task(DRIVER)));
    // What was lent is valid still.
    give(&mut owner_dead, NET, DRIVER, &lent);

    events.clear();
    ledger.task_died(NET, |event| events.push(event));
    assert_eq!(
        events,
        [
            Event::Returned { pool: 0, index: 0 },
            Event::Returned { pool: 0, index: 1 },
            Event::Notice { pool: 0, owner: DRIVER, frames: 2 },
        ]
    );
    refused(&mut ledger, NET, DRIVER, &lent, KernelError::FrameStale);
    assert_eq!((ledger.held_count(NET, 0), ledger.held_count(DRIVER, 0)), (0, 3));
}
