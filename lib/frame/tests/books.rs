//! Every frame is in exactly one place, with its bytes.

use std::collections::VecDeque;

use abi::frame::FrameMeta;
use abi::{FrameDesc, FrameHandle};
use frame::{Census, FrameMemory, Frames, RxFrame, TX_OFFSET, TxFrame};
use proptest::prelude::*;

const FIRST: u16 = 5;
const COUNT: u16 = 24;
type Books = Frames<32>;

fn books(target: u16) -> Books {
    Frames::new(FrameMemory::fake(FIRST, COUNT), target).expect("fits")
}

fn received(index: usize, len: u16) -> FrameDesc {
    let meta = FrameMeta::IP_VERIFIED.bits();
    FrameDesc { handle: FrameHandle::new(index, 7), len, offset: 2, meta }
}

fn free(index: usize) -> FrameDesc {
    FrameDesc { handle: FrameHandle::new(index, 9), len: 0, offset: 0, meta: FrameMeta::TX.bits() }
}

#[test]
fn a_received_frame_is_read_in_place_and_goes_back() {
    let frames = books(0);
    frames.device_write(6, 2, b"packet");
    assert_eq!(frames.accept(received(6, 8)), Ok(()));
    assert_eq!(frames.received_len(), 1);
    let frame = frames.receive().expect("one waits");
    assert_eq!(&*frame, b"packet");
    assert_eq!(frame.as_ptr() as usize % 4096, 2);
    assert_eq!(frame.meta(), FrameMeta::IP_VERIFIED);
    assert!(frames.receive().is_none());
    assert_eq!(frames.outgoing().count(), 0);
    drop(frame);
    let back = FrameDesc { len: 0, meta: 0, ..received(6, 8) };
    assert_eq!(frames.outgoing().collect::<Vec<_>>(), [back]);
    frames.sent(1);
    assert_eq!(frames.census(), Census::default());
}

#[test]
fn a_packet_is_built_in_place_with_its_ip_header_aligned() {
    let frames = books(4);
    assert_eq!(frames.wanted(), 4);
    assert_eq!(frames.accept(free(8)), Ok(()));
    assert_eq!((frames.wanted(), frames.stock_len()), (3, 1));
    let mut frame = frames.transmit().expect("one is free");
    assert_eq!((frame.as_ptr() as usize + 14) % 4, 0);
    assert_eq!(frame.len(), 4094);
    frame[..5].copy_from_slice(b"hello");
    assert!(frame.send(5).is_ok());
    let out: Vec<_> = frames.outgoing().collect();
    assert_eq!(out, [FrameDesc { len: 7, offset: TX_OFFSET, ..free(8) }]);
    frames.sent(1);
    assert_eq!(frames.device_read(out[0]), b"hello");
}

#[test]
fn a_frame_is_sent_up_to_its_room() {
    let frames = books(1);
    frames.accept(free(8)).expect("ours");
    let frame = frames.transmit().expect("one is free");
    let frame = frame.send(4095).expect_err("too long");
    assert!(frame.send(4094).is_ok());
    assert_eq!(frames.outgoing().next().map(|desc| desc.len), Some(4096));
}

#[test]
fn a_frame_that_was_not_sent_is_free_again_and_not_cleared() {
    let frames = books(1);
    frames.accept(free(8)).expect("ours");
    frames.transmit().expect("one is free")[0] = 0xa5;
    assert_eq!(frames.outgoing_len(), 0);
    assert_eq!(frames.transmit().expect("it came back")[0], 0xa5);
}

#[test]
fn received_frames_refill_a_low_stock() {
    let frames = books(1);
    frames.accept(received(6, 8)).expect("ours");
    frames.accept(received(7, 8)).expect("ours");
    drop(frames.receive());
    drop(frames.receive());
    assert_eq!((frames.stock_len(), frames.outgoing_len()), (1, 1));
    assert!(frames.transmit().expect("refilled").send(60).is_ok());
    let sent = frames.outgoing().nth(1).expect("second");
    let wanted = FrameDesc { len: 62, offset: 2, meta: FrameMeta::TX.bits(), ..received(6, 8) };
    assert_eq!(sent, wanted);
}

#[test]
fn a_call_that_failed_has_sent_nothing() {
    let frames = books(0);
    frames.accept(received(6, 8)).expect("ours");
    drop(frames.receive());
    let first: Vec<_> = frames.outgoing().collect();
    assert_eq!(frames.outgoing().collect::<Vec<_>>(), first);
    // The reply names the frame again: only after it was struck.
    assert_eq!(frames.accept(received(6, 9)), Err(received(6, 9)));
    frames.sent(5);
    assert_eq!(frames.accept(received(6, 9)), Ok(()));
}

#[test]
fn a_foreign_frame_is_refused() {
    let frames = books(0);
    for index in [0, 4, 29, 4095] {
        assert_eq!(frames.accept(received(index, 8)), Err(received(index, 8)));
    }
    assert_eq!(frames.census(), Census::default());
    assert!(Frames::<23>::new(FrameMemory::fake(FIRST, COUNT), 0).is_none());
}

#[test]
fn entries_that_make_no_sense_are_empty_packets() {
    let frames = books(0);
    for (index, len, offset) in [(6, 1, 2), (7, 0, 255), (8, u16::MAX, 0)] {
        let desc = FrameDesc { len, offset, meta: 0xf8, ..received(index, 0) };
        frames.accept(desc).expect("ours");
    }
    assert_eq!(frames.receive().map(|frame| frame.len()), Some(0));
    assert_eq!(frames.receive().map(|frame| frame.len()), Some(0));
    let last = frames.receive().expect("three came");
    assert_eq!((last.len(), last.meta()), (4096, FrameMeta::empty()));
}

#[derive(Clone, Debug)]
enum Step {
    Deliver { index: usize, tx: bool, len: u16 },
    Receive,
    DropReceived(usize),
    Transmit,
    Send(usize, usize),
    DropUnsent(usize),
    Call { entries: usize, fails: bool },
    Trim(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let index = 0..40usize;
    let step = prop_oneof![
        4 => (index, any::<bool>(), 2..200u16).prop_map(|(index, tx, len)| Step::Deliver { index, tx, len }),
        2 => Just(Step::Receive),
        2 => any::<usize>().prop_map(Step::DropReceived),
        2 => Just(Step::Transmit),
        2 => (any::<usize>(), 0..5000usize).prop_map(|(at, len)| Step::Send(at, len)),
        1 => any::<usize>().prop_map(Step::DropUnsent),
        1 => (0..33usize, any::<bool>()).prop_map(|(entries, fails)| Step::Call { entries, fails }),
        1 => (0..8u16).prop_map(Step::Trim),
    ];
    prop::collection::vec(step, 1..300)
}

/// Where each frame should be, by index.
#[derive(Default)]
struct Model {
    received: VecDeque<(usize, u16)>,
    stock: VecDeque<usize>,
    outgoing: VecDeque<(usize, u16, bool)>,
    generation: u32,
}

impl Model {
    fn holds(&self, index: usize) -> bool {
        self.received.iter().any(|entry| entry.0 == index)
            || self.stock.contains(&index)
            || self.outgoing.iter().any(|entry| entry.0 == index)
    }
}

/// Bytes that tell in which frame they are, and since when.
fn pattern(index: usize, generation: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + index * 31 + generation as usize) as u8).collect()
}

proptest! {
    #[test]
    fn every_frame_is_in_one_place(target in 0..8u16, steps in steps()) {
        let frames = books(target);
        let mut model = Model::default();
        let mut reading: Vec<(usize, Vec<u8>, RxFrame<'_, 32>)> = Vec::new();
        let mut writing: Vec<(usize, Vec<u8>, TxFrame<'_, 32>)> = Vec::new();
        let mut written: Vec<(usize, Vec<u8>)> = Vec::new();
        for step in steps {
            match step {
                Step::Deliver { index, tx, len } => {
                    model.generation += 1;
                    let handle = FrameHandle::new(index, model.generation);
                    let meta = if tx { FrameMeta::TX.bits() } else { 0 };
                    let desc = FrameDesc { handle, len, offset: 2, meta };
                    let ours = (5..29).contains(&index);
                    let here = model.holds(index)
                        || reading.iter().any(|open| open.0 == index)
                        || writing.iter().any(|open| open.0 == index);
                    if ours && !here {
                        frames.device_write(index, 2, &pattern(index, 0, len as usize - 2));
                        prop_assert_eq!(frames.accept(desc), Ok(()));
                        if tx { model.stock.push_front(index) } else { model.received.push_back((index, len)) }
                    } else {
                        prop_assert_eq!(frames.accept(desc), Err(desc));
                    }
                }
                Step::Receive => match (frames.receive(), model.received.pop_front()) {
                    (None, None) => {}
                    (Some(frame), Some((index, len))) => {
                        reading.push((index, pattern(index, 0, len as usize - 2), frame));
                    }
                    (got, wanted) => prop_assert!(false, "{got:?} instead of {wanted:?}"),
                },
                Step::DropReceived(at) if !reading.is_empty() => {
                    let (index, _, frame) = reading.swap_remove(at % reading.len());
                    drop(frame);
                    if model.stock.len() < target.into() {
                        model.stock.push_front(index);
                    } else {
                        model.outgoing.push_back((index, 0, false));
                    }
                }
                Step::Transmit => match (frames.transmit(), model.stock.pop_front()) {
                    (None, None) => {}
                    (Some(mut frame), Some(index)) => {
                        model.generation += 1;
                        let bytes = pattern(index, model.generation, 4094);
                        frame.copy_from_slice(&bytes);
                        writing.push((index, bytes, frame));
                    }
                    (got, wanted) => prop_assert!(false, "{got:?} instead of {wanted:?}"),
                },
                Step::Send(at, len) if !writing.is_empty() => {
                    let (index, bytes, frame) = writing.swap_remove(at % writing.len());
                    let sent = frame.send(len).is_ok();
                    prop_assert_eq!(sent, len <= 4094);
                    if sent {
                        model.outgoing.push_back((index, len as u16 + 2, true));
                        written.retain(|entry| entry.0 != index);
                        written.push((index, bytes[..len].to_vec()));
                    } else {
                        model.stock.push_front(index);
                    }
                }
                Step::DropUnsent(at) if !writing.is_empty() => {
                    model.stock.push_front(writing.swap_remove(at % writing.len()).0);
                }
                Step::Call { entries, fails } => {
                    let list: Vec<_> = frames.outgoing().take(entries).collect();
                    if !fails {
                        frames.sent(list.len());
                        for desc in &list {
                            let index = desc.handle.index();
                            model.outgoing.pop_front();
                            if let Some((_, bytes)) = written.iter().find(|entry| entry.0 == index)
                                && desc.meta != 0
                            {
                                prop_assert_eq!(&frames.device_read(*desc), bytes);
                            }
                        }
                    }
                }
                Step::Trim(keep) => {
                    frames.trim_stock(keep);
                    while model.stock.len() > keep.into() {
                        model.outgoing.extend(model.stock.pop_front().map(|index| (index, 4096, false)));
                    }
                }
                Step::DropReceived(_) | Step::Send(..) | Step::DropUnsent(_) => {}
            }
            let out = frames.outgoing().map(|desc| (desc.handle.index(), desc.len, desc.meta != 0));
            prop_assert_eq!(out.collect::<VecDeque<_>>(), model.outgoing.clone());
            prop_assert_eq!(frames.census(), Census {
                received: model.received.len(),
                open: reading.len() + writing.len(),
                stock: model.stock.len(),
                outgoing: model.outgoing.len(),
            });
            let lens = (frames.received_len(), frames.stock_len(), frames.outgoing_len());
            prop_assert_eq!(lens, (model.received.len(), model.stock.len(), model.outgoing.len()));
            for (_, bytes, frame) in &reading {
                prop_assert_eq!(&frame[..], &bytes[..]);
            }
            for (_, bytes, frame) in &writing {
                prop_assert_eq!(&frame[..], &bytes[..]);
            }
        }
    }
}
