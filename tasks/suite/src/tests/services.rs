//! Servers against clients that do not keep to the interface: refused, and the server does not notice.

use abi::KernelError;
use abi::call::Lease;
use idol_runtime::{Error, Refusal};
use userlib::{ipc, kernel};

use super::Test;
use crate::check::{Expect, Outcome, equal, holds};
use crate::suite::Suite;
use crate::victims::{refused, task};

/// The tests.
pub const TESTS: &[Test] = &[
    Test::new("services.lease_counts", lease_counts),
    Test::new("services.lease_directions_and_lengths", lease_kinds),
    Test::new("services.message_lengths", message_lengths),
    Test::new("services.reply_room", reply_room),
    Test::new("services.unknown_operations", unknown_operations),
    Test::new("services.frames_where_none_belong", frames),
    Test::new("services.frames_for_one_who_may_hold_none", frames_for_a_stranger),
    Test::new("services.every_operation_of_every_server", every_operation),
    Test::new("services.random_messages", random_messages),
];

const PARTNER_SUM: u16 = 4;
const PARTNER_FILL: u16 = 5;
const PARTNER_INCREMENT: u16 = 6;
const PARTNER_BORROW: u16 = 7;
/// Answers late, or never.
const PARTNER_HOLD: u16 = 11;
const PARTNER_CRASH: u16 = 13;

/// Calls the partner in the raw.
fn call(s: &Suite, operation: u16, message: &[u8], reply: &mut [u8], leases: &[Lease]) -> u32 {
    ipc::send(s.partner.id(), operation, message, reply, leases, None).0
}

fn lease_counts(s: &mut Suite) -> Outcome {
    let bytes = [1; 16];
    let leases = [ipc::lease_read(&bytes); 9];
    for count in [0, 2, 3, 8] {
        let code = call(s, PARTNER_SUM, &[], &mut [0; 4], &leases[..count]);
        equal(code, Refusal::LeaseCount.code(), "code for a wrong number of leases")?;
    }
    refused(call(s, PARTNER_SUM, &[], &mut [0; 4], &leases), KernelError::TooManyLeases, "nine leases")?;
    equal(call(s, 1, &[], &mut [], &leases[..1]), Refusal::LeaseCount.code(), "a lease for an operation without")?;
    equal(s.partner.sum(&bytes), Ok(16), "a good call")
}

fn lease_kinds(s: &mut Suite) -> Outcome {
    let mut bytes = [1; 16];
    let (read, write) = (ipc::lease_read(&bytes), ipc::lease_write(&mut bytes));
    let direction = Refusal::LeaseDirection.code();
    equal(call(s, PARTNER_SUM, &[], &mut [0; 4], &[write]), direction, "what should be read may be written")?;
    equal(call(s, PARTNER_FILL, &[9], &mut [], &[read]), direction, "what should be written may be read")?;
    for lease in [read, write, Lease { rights: 0, ..read }] {
        equal(call(s, PARTNER_INCREMENT, &[], &mut [], &[lease]), direction, "what should be both is one")?;
    }
    equal(bytes, [1; 16], "the bytes")?;
    // An operation that wants a byte at least, and one with whole records.
    let uart = ipc::current_id(task("uart"));
    let empty = ipc::lease_write(&mut bytes[..0]);
    let (code, _) = ipc::send(uart, 2, &[], &mut [0; 4], &[empty], None);
    equal(code, Refusal::LeaseTooShort.code(), "an empty buffer for `read`")?;
    let mut rows = [0u8; 28];
    for (len, expected) in [(0, Refusal::LeaseTooShort), (27, Refusal::LeaseTooShort)] {
        let lease = ipc::lease_write(&mut rows[..len]);
        let (code, _) = ipc::send(s.net.id(), 3, &[0; 4], &mut [0; 4], &[lease], None);
        equal(code, expected.code(), "a part of a record for `sockets`")?;
    }
    Ok(())
}

fn message_lengths(s: &mut Suite) -> Outcome {
    let mut bytes = [1; 16];
    let lease = ipc::lease_write(&mut bytes);
    for len in [0, 2, 3, 256] {
        let code = call(s, PARTNER_FILL, &[9; 256][..len], &mut [], &[lease]);
        // The server's buffer is not longer than its longest message.
        holds(
            code == Refusal::BadMessage.code() || code == KernelError::MessageTooLong.code(),
            "length of a wrong message, and its code",
            (len, code),
        )?;
    }
    // Variable lengths: one that says more than is there.
    for message in [&[200, 1, 1][..], &[0xff; 10], &[1], &[2, 1, 1, 1], &[]] {
        let code = call(s, 3, message, &mut [0; 1024], &[]);
        equal(code, Refusal::BadMessage.code(), "code for an impossible message")?;
    }
    equal(bytes, [1; 16], "the bytes")?;
    s.partner.null().expecting("a good call")
}

fn reply_room(s: &mut Suite) -> Outcome {
    let bytes = [1; 16];
    for room in 0..4 {
        let code = call(s, PARTNER_SUM, &[], &mut [0; 4][..room], &[ipc::lease_read(&bytes)]);
        equal(code, Refusal::ReplyRoom.code(), "code for a reply buffer that is too short")?;
    }
    let code = call(s, PARTNER_BORROW, &1u32.to_le_bytes(), &mut [], &[]);
    equal(code, Refusal::ReplyFrameRoom.code(), "code for no room for frames")?;
    s.pool.all_home()?;
    let code = ipc::send(ipc::current_id(task("supervisor")), 1, &[0; 4], &mut [0; 8], &[], None).0;
    holds(code != 0 && code != KernelError::Dead.code(), "code of a record without room", code)
}

fn unknown_operations(_: &mut Suite) -> Outcome {
    for name in ["partner", "uart", "mac", "net", "supervisor"] {
        for operation in [0, 18, 200, 0x7fff, u16::MAX] {
            let code = ipc::send(ipc::current_id(task(name)), operation, &[], &mut [0; 64], &[], None).0;
            equal(code, Refusal::UnknownOperation.code(), name)?;
        }
    }
    Ok(())
}

fn frames(s: &mut Suite) -> Outcome {
    let mut frames = s.borrow_frames(3)?;
    let (code, _) = ipc::send(s.partner.id(), 1, &[], &mut [], &[], Some(&mut frames));
    equal(code, Refusal::FrameCount.code(), "code for frames with an operation without")?;
    equal(frames.len(), 3, "frames that came back with the refusal")?;
    s.return_frames(&mut frames)
}

/// The MAC driver does as it is asked, the kernel refuses the reply, and the driver takes its frames back.
fn frames_for_a_stranger(s: &mut Suite) -> Outcome {
    let host = super::network::up(s)?.gateway;
    let before = kernel::frame_census(0).expecting("census")?;
    // Often enough to use up the pool, if the driver lost those that came back.
    for round in 0..100 {
        let mut frames = userlib::FrameList::new();
        let answer = s.mac.exchange(8, 8, &mut frames);
        equal(answer.err(), Some(Error::Refused(Refusal::ReplyRefused)), "the answer to a stranger")?;
        equal(
            (frames.len(), kernel::task_status(s.own).expecting("status")?.frames_held),
            (0, 0),
            "frames of the stranger",
        )?;
        super::network::ping_once(s, host, 56, 30_000 + round)?;
    }
    let after = kernel::frame_census(0).expecting("census")?;
    holds(after.device.abs_diff(before.device) < 32, "frames with the device", (before.device, after.device))
}

/// Every operation with messages and leases of every shape. Whatever the answer, nobody dies (the harness looks), nobody
/// hangs, and good calls work afterwards.
fn every_operation(s: &mut Suite) -> Outcome {
    let mut bytes = [0; 96];
    let empty = [0; 0];
    let shapes: [&[Lease]; 8] = [
        &[],
        &[ipc::lease_read(&empty)],
        &[ipc::lease_write(&mut bytes[..1])],
        &[ipc::lease_both(&mut bytes[..64])],
        &[Lease { rights: 0, ..ipc::lease_read(&bytes) }],
        &[ipc::lease_both(&mut bytes[..32]); 2],
        &[ipc::lease_read(&empty); 3],
        &[ipc::lease_write(&mut bytes[..28]); 8],
    ];
    for name in ["partner", "uart", "mac", "net", "supervisor"] {
        let id = ipc::current_id(task(name));
        for operation in 0..20 {
            // These do as they are told.
            if name == "partner" && [PARTNER_HOLD, PARTNER_CRASH].contains(&operation) {
                continue;
            }
            // Nor is there need for noise on the line to the host.
            let noise = name == "uart" && operation == 1;
            for len in [0, 1, 2, 3, 4, 8, 12, 16, 24, 63] {
                for leases in shapes.into_iter().filter(|leases| !noise || leases.len() != 1) {
                    let (code, _) = ipc::send(id, operation, &[0; 64][..len], &mut [0; 512], leases, None);
                    holds(
                        code != KernelError::Dead.code(),
                        "operation, length, leases",
                        (name, operation, len, leases.len()),
                    )?;
                }
            }
        }
    }
    s.partner.null().expecting("a call of the partner")?;
    s.console.serial().status().expecting("a call of the serial port")?;
    s.mac.info().expecting("a call of the driver")?;
    s.net.interface().expecting("a call of the stack")?;
    s.supervisor.restarts(0).expecting("a call of the supervisor")?;
    tidy_sockets(s);
    equal(kernel::next_faulted(0), Ok(None), "a faulted task")
}

/// Messages of random content, length and leases.
fn random_messages(s: &mut Suite) -> Outcome {
    // Xorshift, Marsaglia 2003.
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut bytes = [0; 2048];
    for round in 0..4000 {
        let name = ["partner", "uart", "mac", "net", "supervisor"][next(5) as usize];
        let operation = next(20) as u16;
        // What waits for ever, crashes, writes to the host's line, or restarts tasks on purpose.
        if matches!((name, operation), ("partner", PARTNER_HOLD | PARTNER_CRASH) | ("uart", 1) | ("supervisor", 3)) {
            continue;
        }
        let mut message = [0; 64];
        let small = next(2) == 0;
        message.fill_with(|| if small { next(4) as u8 } else { next(256) as u8 });
        let len = next(65) as usize;
        let leases: [Lease; 3] = core::array::from_fn(|_| {
            let (from, len, rights) = (next(1024) as usize, next(1024) as usize, next(4) as usize);
            Lease { rights, ..ipc::lease_both(&mut bytes[from..from + len]) }
        });
        let leases = &leases[..next(4) as usize];
        let (code, _) = ipc::send(ipc::current_id(task(name)), operation, &message[..len], &mut [0; 512], leases, None);
        holds(code != KernelError::Dead.code(), "round, server and operation", (round, name, operation))?;
    }
    tidy_sockets(s);
    s.partner.null().expecting("a call of the partner")?;
    s.mac.info().expecting("a call of the driver")?;
    s.net.interface().expecting("a call of the stack").map(drop)
}

/// Closes whatever sockets may be open.
fn tidy_sockets(s: &mut Suite) {
    for place in 0..32 {
        for usage in 0..256 {
            let _ = s.net.close(net_api::SocketId::new(place, usage), 1);
        }
    }
}
