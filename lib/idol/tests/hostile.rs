//! A server behind generated dispatch, and clients that keep to nothing.

#[allow(dead_code, reason = "each test uses a part")]
mod probe;

use idol_runtime::{FrameList, Kernel, Lent, Refusal};
use proptest::prelude::*;

use probe::{CLIENT, SERVER, frame, start};

/// A lease of any kind: rights by number, so many bytes.
type Lease = (u8, usize);

fn lend<'a>((rights, len): Lease, data: &'a mut [u8]) -> Lent<'a> {
    let data = &mut data[..len];
    match rights {
        0 => Lent::Read(data),
        1 => Lent::Write(data),
        _ => Lent::Both(data),
    }
}

#[derive(Clone, Debug)]
struct Message {
    operation: u16,
    bytes: Vec<u8>,
    reply: usize,
    leases: [Lease; 4],
    lease_count: usize,
    frames: Option<usize>,
}

fn message() -> impl Strategy<Value = Message> {
    // Mostly operations that exist, and lengths near those that fit.
    let operation = prop_oneof![9 => 0u16..14, 1 => any::<u16>()];
    let byte = prop_oneof![3 => 0u8..9, 1 => any::<u8>()];
    let len = prop_oneof![2 => Just(0usize), 2 => Just(1), 2 => Just(4), 1 => Just(40), 2 => 0..60usize];
    let bytes = len.prop_flat_map(move |len| prop::collection::vec(byte.clone(), len));
    let reply = prop_oneof![3 => Just(64usize), 1 => 0..64usize];
    let lease = || (0u8..3, prop_oneof![Just(4usize), Just(8), 0..40usize]);
    let frames = prop::option::weighted(0.3, 0..8usize);
    (operation, bytes, reply, [lease(), lease(), lease(), lease()], 0..5usize, frames).prop_map(
        |(operation, bytes, reply, leases, lease_count, frames)| Message {
            operation,
            bytes,
            reply,
            leases,
            lease_count,
            frames,
        },
    )
}

/// Sends it; returns code, reply length, and frames that came back.
fn send(world: &idol_runtime::fake::World, message: &Message) -> (u32, usize, Option<usize>) {
    let task = world.task(CLIENT);
    let server = world.task(SERVER).id();
    let mut list = message.frames.map(|count| {
        let mut list = FrameList::new();
        for index in 0..count {
            world.give(CLIENT, frame(index).handle);
            list.push(frame(index)).expect("room");
        }
        list
    });
    let mut reply = vec![0; message.reply];
    let mut memory = [[0u8; 40]; 4];
    let [one, two, three, four] = memory.each_mut();
    let [lease1, lease2, lease3, lease4] = message.leases;
    let (op, bytes, frames) = (message.operation, &message.bytes, list.as_mut());
    let (code, len) = match message.lease_count {
        0 => task.send(server, op, bytes, &mut reply, &mut [], frames),
        1 => task.send(server, op, bytes, &mut reply, &mut [lend(lease1, one)], frames),
        2 => task.send(server, op, bytes, &mut reply, &mut [lend(lease1, one), lend(lease2, two)], frames),
        3 => {
            let mut leases = [lend(lease1, one), lend(lease2, two), lend(lease3, three)];
            task.send(server, op, bytes, &mut reply, &mut leases, frames)
        }
        _ => {
            let mut leases = [lend(lease1, one), lend(lease2, two), lend(lease3, three), lend(lease4, four)];
            task.send(server, op, bytes, &mut reply, &mut leases, frames)
        }
    };
    (code, len, list.map(|list| list.len()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_message_is_answered_and_nothing_is_lost(messages in prop::collection::vec(message(), 1..40)) {
        let (world, server) = start();
        for message in &messages {
            // Those two wait for an answer that nobody gives here, if all is right with the message.
            if matches!(message.operation, 10 | 11) {
                continue;
            }
            let before = server.handled();
            let (code, len, returned) = send(&world, message);
            prop_assert!(len <= message.reply);
            if let Some(refusal) = Refusal::from_code(code) {
                prop_assert_eq!(len, 0, "{:?}", refusal);
                if server.handled() == before && refusal != Refusal::LeaseLost {
                    prop_assert_eq!(returned, message.frames, "{:?}: frames come back", refusal);
                }
            } else if code >= abi::code::FIRST_KERNEL_CODE {
                prop_assert_eq!(returned, message.frames);
            }
            prop_assert_ne!(code, idol_runtime::KernelError::Dead.code());
        }
        server.stop();
    }
}
