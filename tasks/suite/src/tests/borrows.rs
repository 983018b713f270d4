//! Leases: exact to the byte, in one direction, for the time of a call.

use abi::call::{Call, Lease, SendExtra, lease};
use abi::stats::TaskState;
use abi::{FaultInfo, KernelError, MAX_LEASES, MAX_TASKS, TaskId};
use userlib::{ipc, kernel};
use victim::{Step, WINDOW, action, operation};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::memory::pattern;
use crate::suite::Suite;
use crate::victims::{refused, succeeded};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("borrows.read_of_every_length", reads),
    Test::new("borrows.write_of_every_length", writes),
    Test::new("borrows.read_and_write", read_and_write),
    Test::new("borrows.bounds", bounds),
    Test::new("borrows.direction", direction),
    Test::new("borrows.a_lease_without_rights", no_rights),
    Test::new("borrows.a_lease_that_does_not_exist", bad_index),
    Test::new("borrows.rights_and_length_are_told", info),
    Test::new("borrows.end_with_the_reply", revoked),
    Test::new("borrows.only_for_the_server", only_the_server),
    Test::new("borrows.end_with_the_lender", lender_dies),
    Test::new("borrows.of_a_task_that_lends_nothing", nothing_lent),
    Test::new("borrows.eight_leases_and_no_more", lease_count),
    Test::new("borrows.overlapping_leases", overlapping),
    Test::new("borrows.a_lease_over_the_end_of_a_region", crossing),
    Test::new("borrows.a_lease_of_foreign_memory", foreign_lease),
    Test::new("borrows.a_lease_table_in_foreign_memory", foreign_table),
    Test::new("borrows.the_lease_table_is_read_once", table_is_copied),
    Test::new("borrows.into_foreign_memory", foreign_buffer),
    Test::new("borrows.unknown_rights", unknown_rights),
];

const LENGTHS: [usize; 10] = [0, 1, 2, 31, 32, 33, 255, 511, 512, 513];

/// A pattern with room on both sides that must stay as it is.
fn buffer(seed: u8) -> [u8; 640] {
    let mut buffer = [0; 640];
    pattern(&mut buffer, seed);
    buffer
}

fn reads(s: &mut Suite) -> Outcome {
    let bytes = buffer(1);
    for start in [0, 1, 3] {
        for len in LENGTHS {
            let part = &bytes[start..start + len];
            let expected: u32 = part.iter().map(|&byte| u32::from(byte)).sum();
            equal(s.partner.sum(part).expecting("sum")?, expected, "sum of lent bytes")?;
        }
    }
    Ok(())
}

fn writes(s: &mut Suite) -> Outcome {
    for start in [32, 33, 35] {
        for len in LENGTHS {
            let mut bytes = [0xaa; 640];
            s.partner.fill(0x3c, &mut bytes[start..start + len]).expecting("fill")?;
            let (before, rest) = bytes.split_at(start);
            let (inside, after) = rest.split_at(len);
            holds(inside.iter().all(|&byte| byte == 0x3c), "bytes that should be filled", (start, len))?;
            holds(before.iter().chain(after).all(|&byte| byte == 0xaa), "bytes outside the lease", (start, len))?;
        }
    }
    Ok(())
}

fn read_and_write(s: &mut Suite) -> Outcome {
    let mut bytes = buffer(7);
    let before = bytes;
    s.partner.increment(&mut bytes[5..600]).expecting("increment")?;
    let plus_one = |(one, other): (&u8, &u8)| one.wrapping_add(1) == *other;
    holds(before[5..600].iter().zip(&bytes[5..600]).all(plus_one), "bytes in the lease", ())?;
    holds(before[..5] == bytes[..5] && before[600..] == bytes[600..], "bytes outside", ())
}

/// Borrows of the suite's lease 0, in the call that runs them.
fn borrow(s: &Suite, call: Call, index: u64, offset: u64, len: u64) -> Step {
    let [lender, at] = [s.id().0.into(), s.high.memory.scratch(0)];
    Step::call(call as u64, &[lender, index, offset, at, len])
}

fn bounds(s: &mut Suite) -> Outcome {
    const LEN: u64 = 64;
    let cases = [
        (0, LEN, true),
        (1, LEN - 1, true),
        (LEN - 1, 1, true),
        (LEN, 0, true),
        (0, 0, true),
        (0, LEN + 1, false),
        (1, LEN, false),
        (LEN, 1, false),
        (LEN + 1, 0, false),
        (u64::MAX, 1, false),
        (u64::MAX, 2, false),
        (u64::MAX - 15, 32, false),
        (1, u64::MAX, false),
        (0, u64::MAX, false),
        (1 << 63, 1 << 63, false),
    ];
    let mut bytes = [0x11; LEN as usize + 16];
    for call in [Call::BorrowRead, Call::BorrowWrite] {
        let steps = cases.map(|(offset, len, _)| borrow(s, call, 0, offset, len));
        let lent = ipc::lease_both(&mut bytes[8..8 + LEN as usize]);
        succeeded(s.high.call(&steps, &mut [], &[lent], None).0, "the call")?;
        for (step, (offset, len, allowed)) in cases.into_iter().enumerate() {
            let code = s.high.memory.code(step);
            let expected = if allowed { 0 } else { KernelError::LeaseBounds.code() };
            holds(code == expected, "offset, length and code of a borrow", (offset, len, code))?;
        }
    }
    holds(bytes[..8] == [0x11; 8] && bytes[72..] == [0x11; 8], "bytes around the lease", ())
}

fn direction(s: &mut Suite) -> Outcome {
    let mut bytes = [0x42; 32];
    let constant = [0x43; 32];
    let leases = [ipc::lease_read(&constant), ipc::lease_write(&mut bytes)];
    let steps = [
        borrow(s, Call::BorrowRead, 0, 0, 32),
        borrow(s, Call::BorrowWrite, 0, 0, 32),
        borrow(s, Call::BorrowRead, 1, 0, 32),
        borrow(s, Call::BorrowWrite, 1, 0, 8),
        borrow(s, Call::BorrowWrite, 0, 0, 0),
    ];
    succeeded(s.high.call(&steps, &mut [], &leases, None).0, "the call")?;
    s.high.memory.succeeded(0, "a read of what may be read")?;
    s.high.memory.refused(1, KernelError::LeaseDirection, "a write to what may be read")?;
    s.high.memory.refused(2, KernelError::LeaseDirection, "a read of what may be written")?;
    s.high.memory.succeeded(3, "a write to what may be written")?;
    s.high.memory.refused(4, KernelError::LeaseDirection, "an empty write to what may be read")?;
    equal(constant, [0x43; 32], "what may only be read")?;
    holds(bytes[..8] == [0x43; 8] && bytes[8..] == [0x42; 24], "what was written", bytes)
}

fn no_rights(s: &mut Suite) -> Outcome {
    let bytes = [0x42; 16];
    let lent = Lease { rights: 0, ..ipc::lease_read(&bytes) };
    let steps = [borrow(s, Call::BorrowRead, 0, 0, 1), borrow(s, Call::BorrowWrite, 0, 0, 1)];
    succeeded(s.high.call(&steps, &mut [], &[lent], None).0, "the call")?;
    s.high.memory.refused(0, KernelError::LeaseDirection, "a read")?;
    s.high.memory.refused(1, KernelError::LeaseDirection, "a write")
}

fn bad_index(s: &mut Suite) -> Outcome {
    let bytes = [0; 16];
    for lent in [&[][..], &[ipc::lease_read(&bytes); 2]] {
        let first = lent.len() as u64;
        let indices = [first, 8, 255, 0xffff_ffff, 1 << 32, u64::MAX];
        let steps = indices.map(|index| borrow(s, Call::BorrowRead, index, 0, 1));
        succeeded(s.high.call(&steps, &mut [], lent, None).0, "the call")?;
        for step in 0..steps.len() {
            s.high.memory.refused(step, KernelError::BadLease, "a lease that was not given")?;
        }
    }
    Ok(())
}

fn info(s: &mut Suite) -> Outcome {
    let mut bytes = [0; 100];
    let leases = [
        ipc::lease_read(&bytes[..100]),
        ipc::lease_write(&mut bytes[..31]),
        ipc::lease_both(&mut bytes[..1]),
        ipc::lease_read(&[]),
    ];
    let steps = [0, 1, 2, 3, 4].map(|index| Step::call(Call::BorrowInfo as u64, &[s.id().0.into(), index]));
    succeeded(s.high.call(&steps, &mut [], &leases, None).0, "the call")?;
    let both = lease::READ | lease::WRITE;
    for (step, expected) in
        [(lease::READ, 100), (lease::WRITE, 31), (both, 1), (lease::READ, 0)].into_iter().enumerate()
    {
        s.high.memory.succeeded(step, "info about a lease")?;
        let told = [1, 2].map(|result| s.high.memory.window.result(step, result) as usize);
        equal(told, [expected.0, expected.1], "rights and length")?;
    }
    s.high.memory.refused(4, KernelError::BadLease, "info about no lease")
}

fn revoked(s: &mut Suite) -> Outcome {
    let mut bytes = [0x42; 32];
    let own = s.id().0.into();
    let steps = [
        borrow(s, Call::BorrowWrite, 0, 0, 1),
        Step::call(Call::Reply as u64, &[own]),
        borrow(s, Call::BorrowRead, 0, 0, 1),
        borrow(s, Call::BorrowWrite, 0, 0, 32),
        Step::call(Call::BorrowInfo as u64, &[own, 0]),
    ];
    let lent = ipc::lease_both(&mut bytes);
    succeeded(s.high.call(&steps, &mut [], &[lent], None).0, "the call")?;
    s.high.memory.succeeded(0, "a borrow before the reply")?;
    s.high.memory.succeeded(1, "the reply")?;
    for step in 2..5 {
        s.high.memory.refused(step, KernelError::BadLease, "a borrow after the reply")?;
    }
    holds(bytes[1..] == [0x42; 31], "bytes after the reply", bytes)?;
    // A call without leases does not bring the old ones back.
    s.high.run(&[borrow(s, Call::BorrowRead, 0, 0, 1)])?;
    s.high.memory.refused(0, KernelError::BadLease, "a borrow in a later call")
}

/// While the suite lends to one task, another cannot borrow.
fn only_the_server(s: &mut Suite) -> Outcome {
    let bytes = [0x42; 32];
    let own: u64 = s.id().0.into();
    let at = s.low.memory.scratch(256);
    let call = |call: Call| Step::call(call as u64, &[own, 0, 0, at, 1]);
    let wake = Step::call(Call::Post as u64, &[s.high.index.into(), 1]);
    s.low.start(&[call(Call::BorrowRead), call(Call::BorrowWrite), call(Call::BorrowInfo), wake])?;
    let wait = s.high.memory.wait(0, 1);
    let lent = ipc::lease_read(&bytes);
    succeeded(s.high.call(&[wait, borrow(s, Call::BorrowRead, 0, 0, 32)], &mut [], &[lent], None).0, "the call")?;
    s.high.memory.succeeded(1, "a borrow by the server")?;
    s.low.finish()?;
    for step in 0..3 {
        s.low.memory.refused(step, KernelError::BadLease, "a borrow by another task")?;
    }
    s.low.memory.succeeded(3, "the post that let the server go on")
}

fn lender_dies(s: &mut Suite) -> Outcome {
    let lent = Lease { address: s.low.memory.scratch(0) as usize, len: 64, rights: lease::READ };
    let leases = s.low.memory.leases(1024, &[lent]) as usize;
    let extra = s.low.memory.extra(1200, &SendExtra { leases, lease_count: 1, ..SendExtra::default() });
    s.low.start(&[Step::call(
        Call::Send as u64,
        &[s.id().0.into(), operation::TESTS.into(), extra, 0, extra, 0, extra],
    )])?;
    let received = s.low.message(&mut [])?;
    equal(received.lease_count, 1, "leases")?;
    let mut to = [0; 8];
    ipc::borrow_read(received.sender, 0, 0, &mut to).expecting("a borrow of the living")?;
    kernel::inject_fault(s.low.index).expecting("a fault")?;
    let gone = Err(KernelError::BadLease);
    equal(ipc::borrow_read(received.sender, 0, 0, &mut to), gone, "a borrow of the dead")?;
    equal(ipc::borrow_read(s.low.id(), 0, 0, &mut to), gone, "a borrow of its next instance")?;
    equal(ipc::borrow_info(received.sender, 0), Err(KernelError::BadLease), "info about it")
}

/// Nobody is harmed by a borrow that he does not expect, whatever he is doing.
fn nothing_lent(s: &mut Suite) -> Outcome {
    s.low.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into()])])?;
    s.reaches(s.low.index, TaskState::Sending(s.own), "a task that sends")?;
    let before = core::array::from_fn::<_, MAX_TASKS, _>(|task| kernel::task_status(task as u8).ok());
    let bad = Err(KernelError::BadLease);
    let mut byte = [0];
    for task in 0..=255 {
        let current = if usize::from(task) < MAX_TASKS && before[usize::from(task)].is_some() {
            ipc::current_id(task)
        } else {
            TaskId::new(task.into(), 0)
        };
        for id in [current, TaskId::new(task.into(), current.generation() + 1)] {
            for index in [0, 255, 0xffff_ffff] {
                equal(ipc::borrow_read(id, index, 0, &mut byte), bad, "a read")?;
                equal(ipc::borrow_write(id, index, 0, &byte), bad, "a write")?;
                equal(ipc::borrow_info(id, index).map(drop), bad, "info")?;
            }
        }
    }
    for (task, before) in before.iter().enumerate().filter(|(task, _)| *task != usize::from(s.own)) {
        let after = kernel::task_status(task as u8).ok();
        equal(
            after.map(|status| (status.generation, status.fault)),
            before.map(|status| (status.generation, status.fault)),
            "generation and last fault",
        )?;
    }
    let received = s.low.message(&mut [])?;
    ipc::reply(received.sender, 0, &[], None).expecting("a reply")?;
    s.low.finish()
}

fn lease_count(s: &mut Suite) -> Outcome {
    let bytes = buffer(3);
    let leases: [Lease; MAX_LEASES + 1] = core::array::from_fn(|index| ipc::lease_read(&bytes[index..index + 20]));
    let steps: [Step; MAX_LEASES] = core::array::from_fn(|index| {
        let at = s.high.memory.scratch(index * 32);
        Step::call(Call::BorrowRead as u64, &[s.id().0.into(), index as u64, 0, at, 20])
    });
    succeeded(s.high.call(&steps, &mut [], &leases[..MAX_LEASES], None).0, "a call with eight leases")?;
    for index in 0..MAX_LEASES {
        s.high.memory.succeeded(index, "one of eight leases")?;
        let mut copy = [0; 20];
        s.high.memory.window.get_bytes(victim::SCRATCH + index * 32, &mut copy);
        holds(copy == bytes[index..index + 20], "bytes of a lease", index)?;
    }
    let (code, _) = s.high.call(&[], &mut [], &leases, None);
    refused(code, KernelError::TooManyLeases, "a call with nine leases")?;
    // A count that would overflow the table's size.
    let at = s.low.memory.scratch(0) as usize;
    let counts = [9, 255, 1 << 60, usize::MAX / 24 + 2, usize::MAX];
    let mut steps = [Step::new(action::STAMP, &[]); 5];
    for (index, lease_count) in counts.into_iter().enumerate() {
        let extra =
            s.low.memory.extra(256 + 64 * index, &SendExtra { leases: at, lease_count, ..SendExtra::default() });
        steps[index] = Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra]);
    }
    s.low.run(&steps)?;
    (0..counts.len()).try_for_each(|step| s.low.memory.refused(step, KernelError::TooManyLeases, "a count of leases"))
}

/// The same bytes, lent to be read and to be written.
fn overlapping(s: &mut Suite) -> Outcome {
    let mut bytes = [0; 64];
    pattern(&mut bytes, 5);
    let whole = ipc::lease_both(&mut bytes);
    let leases = [
        Lease { rights: lease::READ, ..whole },
        Lease { rights: lease::WRITE, address: whole.address + 1, len: 32 },
        Lease { len: 0, ..whole },
        Lease { address: whole.address + 31, len: 33, rights: lease::READ },
    ];
    let steps = [
        borrow(s, Call::BorrowRead, 0, 0, 64),
        borrow(s, Call::BorrowWrite, 1, 0, 32),
        borrow(s, Call::BorrowWrite, 2, 0, 0),
        borrow(s, Call::BorrowRead, 3, 0, 33),
    ];
    succeeded(s.high.call(&steps, &mut [], &leases, None).0, "the call")?;
    (0..4).try_for_each(|step| s.high.memory.succeeded(step, "a borrow"))?;
    // 32 bytes moved up by one, through the victim's buffer; what the last lease then read begins with the last two of them.
    let mut expected = [0; 64];
    pattern(&mut expected, 5);
    expected.copy_within(0..32, 1);
    equal(bytes, expected, "bytes of the lender")?;
    let mut copy = [0; 33];
    s.high.memory.window.get_bytes(victim::SCRATCH, &mut copy);
    holds(copy == expected[31..], "bytes of the borrower", copy)
}

/// The last bytes of the window, and the first of what follows it.
fn crossing(s: &mut Suite) -> Outcome {
    let end = s.low.memory.window.address() as usize + WINDOW;
    for (address, len) in [(end - 16, 17), (end - 1, 2), (end - 16, 1 << 40), (end - 16, usize::MAX), (end, 1)] {
        let leases = s.low.memory.leases(0, &[Lease { address, len, rights: lease::READ | lease::WRITE }]) as usize;
        let extra = s.low.memory.extra(64, &SendExtra { leases, lease_count: 1, ..SendExtra::default() });
        let send = Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra]);
        let record = s.low.dies(&[send])?;
        let expected = FaultInfo::BadMemoryArgument { address: address as u64, len: len as u64 };
        equal(record.info, expected, "a lease over the end")?;
    }
    // Up to the end is fine, and an empty one behind it.
    let leases = [(end - 16, 16), (end, 0)].map(|(address, len)| Lease { address, len, rights: lease::READ });
    let leases = s.low.memory.leases(0, &leases) as usize;
    let extra = s.low.memory.extra(64, &SendExtra { leases, lease_count: 2, ..SendExtra::default() });
    s.low.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra])])?;
    let received = s.low.message(&mut [])?;
    let mut to = [0; 16];
    ipc::borrow_read(received.sender, 0, 0, &mut to).expecting("the last bytes")?;
    ipc::borrow_read(received.sender, 1, 0, &mut []).expecting("nothing behind them")?;
    equal(ipc::borrow_read(received.sender, 1, 0, &mut to[..1]), Err(KernelError::LeaseBounds), "a byte behind them")?;
    ipc::reply(received.sender, 0, &[], None).expecting("a reply")?;
    s.low.finish()
}

fn foreign_lease(s: &mut Suite) -> Outcome {
    s.low.run(&[Step::new(action::PLACES, &[])])?;
    let constant = s.low.memory.window.result(0, 1) as usize;
    let mine = [0x5a; 16];
    let foreign = mine.as_ptr() as usize;
    for (address, rights) in [
        (foreign, lease::READ),
        (foreign, lease::WRITE),
        (constant, lease::WRITE),
        (constant, lease::READ | lease::WRITE),
        (8, lease::READ),
    ] {
        let leases = s.low.memory.leases(0, &[Lease { address, len: 8, rights }]) as usize;
        let extra = s.low.memory.extra(64, &SendExtra { leases, lease_count: 1, ..SendExtra::default() });
        let send = Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra]);
        let record = s.low.dies(&[send])?;
        equal(
            record.info,
            FaultInfo::BadMemoryArgument { address: address as u64, len: 8 },
            "a lease of foreign memory",
        )?;
    }
    equal(mine, [0x5a; 16], "the foreign memory")
}

fn foreign_table(s: &mut Suite) -> Outcome {
    let table = [Lease::default(); 2];
    let leases = table.as_ptr() as usize;
    let extra = s.low.memory.extra(64, &SendExtra { leases, lease_count: 2, ..SendExtra::default() });
    let send = Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra]);
    let record = s.low.dies(&[send])?;
    equal(record.info, FaultInfo::BadMemoryArgument { address: leases as u64, len: 48 }, "a table in foreign memory")
}

/// The lender's table is in memory that another task can write: what counts is what it said at the call.
fn table_is_copied(s: &mut Suite) -> Outcome {
    let lent = Lease { address: s.low.memory.scratch(512) as usize, len: 8, rights: lease::READ };
    let leases = s.low.memory.leases(0, &[lent]) as usize;
    let extra = s.low.memory.extra(64, &SendExtra { leases, lease_count: 1, ..SendExtra::default() });
    s.low.memory.put(512, 0x0123_4567);
    s.low.start(&[Step::call(Call::Send as u64, &[s.id().0.into(), operation::TESTS.into(), 0, 0, 0, 0, extra])])?;
    let received = s.low.message(&mut [])?;
    s.low.memory.leases(0, &[Lease { address: 0, len: usize::MAX, rights: lease::READ | lease::WRITE }]);
    equal(ipc::borrow_info(received.sender, 0), Ok((lease::READ, 8)), "rights and length")?;
    let mut to = [0; 8];
    ipc::borrow_read(received.sender, 0, 0, &mut to).expecting("a borrow")?;
    equal(u64::from_le_bytes(to), 0x0123_4567, "the bytes")?;
    equal(ipc::borrow_write(received.sender, 0, 0, &to), Err(KernelError::LeaseDirection), "a write")?;
    ipc::reply(received.sender, 0, &[], None).expecting("a reply")?;
    s.low.finish()
}

fn foreign_buffer(s: &mut Suite) -> Outcome {
    let mut bytes = [0x42; 32];
    let own = s.id().0.into();
    s.high.run(&[Step::new(action::PLACES, &[])])?;
    let constant = s.high.memory.window.result(0, 1);
    let target = bytes.as_ptr() as u64;
    for (call, address) in [(Call::BorrowRead, target), (Call::BorrowRead, constant), (Call::BorrowWrite, target)] {
        let step = Step::call(call as u64, &[own, 0, 0, address, 8]);
        let lent = ipc::lease_both(&mut bytes);
        let (code, received) = s.high.call(&[step], &mut [], &[lent], None);
        refused(code, KernelError::Dead, "the call")?;
        equal(received, 1, "the dead instance had the message")?;
        let record = crate::victims::last_fault(s.high.index)?;
        equal(record.info, FaultInfo::BadMemoryArgument { address, len: 8 }, "a borrow into foreign memory")?;
        crate::victims::revive(s.high.index)?;
    }
    equal(bytes, [0x42; 32], "the lender's bytes")
}

fn unknown_rights(s: &mut Suite) -> Outcome {
    let bytes = [0; 8];
    for rights in [4, 7, 1 << 31, usize::MAX] {
        let lent = Lease { rights, ..ipc::lease_read(&bytes) };
        let (code, _) = s.high.call(&[], &mut [], &[lent], None);
        refused(code, KernelError::BadArgument, "rights that do not exist")?;
    }
    // A good receive afterwards: the victim waited all the time.
    s.high.run(&[])
}
