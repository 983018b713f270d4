//! The books: in which place each frame is that this task holds.

use core::cell::Cell;

use abi::frame::FrameMeta;
use abi::{FrameDesc, FrameHandle, PAGE_SIZE};

use crate::memory::FrameMemory;
use crate::{RxFrame, TxFrame};

/// Where a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Not held by this task.
    Away,
    /// Received, not looked at.
    Received,
    /// In an [`RxFrame`] or [`TxFrame`].
    Open,
    /// Free, for sending.
    Stock,
    /// To be sent, or to be returned.
    Outgoing,
}

/// One frame. Queues are linked through the slots, so that a frame is in one queue at most.
#[derive(Clone, Copy, Debug)]
struct Slot {
    desc: FrameDesc,
    next: u16,
    place: Place,
}

const EMPTY_SLOT: Slot =
    Slot { desc: FrameDesc { handle: FrameHandle(0), len: 0, offset: 0, meta: 0 }, next: NONE, place: Place::Away };

/// Instead of a slot, at the end of a queue.
const NONE: u16 = u16::MAX;

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u16,
    tail: u16,
    len: u16,
}

const EMPTY_QUEUE: Queue = Queue { head: NONE, tail: NONE, len: 0 };

/// How many frames are where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Received, not looked at.
    pub received: usize,
    /// In values: [`RxFrame`], [`TxFrame`].
    pub open: usize,
    /// Free, for sending.
    pub stock: usize,
    /// To be sent or returned.
    pub outgoing: usize,
}

/// Books of the frames of one pool with up to `C` frames.
///
/// They take 12 bytes a frame. All methods take `&self`: frames that are out refer to the books, and enter
/// themselves again.
#[derive(Debug)]
pub struct Frames<const C: usize> {
    memory: FrameMemory,
    slots: [Cell<Slot>; C],
    received: Cell<Queue>,
    stock: Cell<Queue>,
    outgoing: Cell<Queue>,
    target: u16,
}

impl<const C: usize> Frames<C> {
    /// Books without a frame. While fewer than `target` frames are in stock, received frames that are
    /// done with go there instead of back.
    ///
    /// `None` if the pool has more than `C` frames.
    #[must_use]
    pub fn new(memory: FrameMemory, target: u16) -> Option<Self> {
        if usize::from(memory.count()) > C {
            return None;
        }
        Some(Self {
            memory,
            slots: [const { Cell::new(EMPTY_SLOT) }; C],
            received: Cell::new(EMPTY_QUEUE),
            stock: Cell::new(EMPTY_QUEUE),
            outgoing: Cell::new(EMPTY_QUEUE),
            target,
        })
    }

    /// Enters a frame that came with a message: a free one (`TX` in its meta) into stock, else one that was received.
    ///
    /// # Errors
    /// The entry, if it is of another pool, or if the books have that frame already. Then it was not from the
    /// kernel, or a list that went out with a call was not struck with [`sent`](Self::sent).
    #[inline]
    pub fn accept(&self, desc: FrameDesc) -> Result<(), FrameDesc> {
        let slot = desc.handle.index().wrapping_sub(self.memory.first().into());
        if slot >= usize::from(self.memory.count()) || self.slots[slot].get().place != Place::Away {
            return Err(desc);
        }
        self.slots[slot].set(Slot { desc, ..EMPTY_SLOT });
        if FrameMeta::from_bits_truncate(desc.meta).contains(FrameMeta::TX) {
            self.restock(slot as u16);
        } else {
            self.push(&self.received, Place::Received, slot as u16);
        }
        Ok(())
    }

    /// The next received frame.
    #[inline]
    pub fn receive(&self) -> Option<RxFrame<'_, C>> {
        let (slot, desc) = self.pop(&self.received, Place::Open)?;
        Some(RxFrame::new(self, slot, desc, self.memory.lease(slot.into())))
    }

    /// A free frame to build a packet in. Its bytes are those that it had when it was last used.
    #[inline]
    pub fn transmit(&self) -> Option<TxFrame<'_, C>> {
        let (slot, _) = self.pop(&self.stock, Place::Open)?;
        Some(TxFrame::new(self, slot, self.memory.lease(slot.into())))
    }

    /// Entries for the driver, oldest first: frames to send and frames to return. They stay in the books until
    /// [`sent`](Self::sent), so that a call that fails loses none.
    #[inline]
    pub fn outgoing(&self) -> impl Iterator<Item = FrameDesc> {
        let mut next = self.outgoing.get().head;
        core::iter::from_fn(move || {
            let slot = self.slots.get(usize::from(next))?.get();
            next = slot.next;
            Some(slot.desc)
        })
    }

    /// Strikes the first `count` entries of [`outgoing`](Self::outgoing): the driver has them. To be called before the
    /// frames of the driver's reply are accepted.
    #[inline]
    pub fn sent(&self, count: usize) {
        for _ in 0..count {
            if self.pop(&self.outgoing, Place::Away).is_none() {
                break;
            }
        }
    }

    /// Moves frames from stock to outgoing until `keep` are left.
    pub fn trim_stock(&self, keep: u16) {
        while self.stock.get().len > keep {
            let Some((slot, desc)) = self.pop(&self.stock, Place::Open) else {
                break;
            };
            // It may have been written, anywhere.
            self.put_out(slot, FrameDesc { meta: 0, len: PAGE_SIZE as u16, ..desc });
        }
    }

    /// Received frames that wait.
    #[must_use]
    pub fn received_len(&self) -> usize {
        self.received.get().len.into()
    }

    /// Free frames.
    #[must_use]
    pub fn stock_len(&self) -> usize {
        self.stock.get().len.into()
    }

    /// Frames to send and to return.
    #[must_use]
    pub fn outgoing_len(&self) -> usize {
        self.outgoing.get().len.into()
    }

    /// Free frames that are missing to the target: what to ask the driver for.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.target.saturating_sub(self.stock.get().len).into()
    }

    /// Counts all frames, slot by slot.
    #[must_use]
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        for slot in &self.slots {
            match slot.get().place {
                Place::Away => {}
                Place::Received => census.received += 1,
                Place::Open => census.open += 1,
                Place::Stock => census.stock += 1,
                Place::Outgoing => census.outgoing += 1,
            }
        }
        census
    }

    /// Takes back a received frame that is done with.
    #[inline]
    pub(crate) fn done(&self, slot: u16, desc: FrameDesc) {
        if self.stock.get().len < self.target {
            self.restock(slot);
        } else {
            // Length 0 says that it was only read: its cache lines need no maintenance.
            self.put_out(slot, FrameDesc { meta: 0, len: 0, ..desc });
        }
    }

    /// Puts a frame into stock.
    #[inline]
    pub(crate) fn restock(&self, slot: u16) {
        // To the front, since what was used last is in the cache. Nothing is ever appended: the tail does not matter.
        let mut ends = self.stock.get();
        let of_slot = &self.slots[usize::from(slot)];
        of_slot.set(Slot { place: Place::Stock, next: ends.head, ..of_slot.get() });
        ends.head = slot;
        ends.len += 1;
        self.stock.set(ends);
    }

    /// Takes back a frame that is to be sent.
    #[inline]
    pub(crate) fn put_out_tx(&self, slot: u16, len: u16, offset: u8) {
        let handle = self.slots[usize::from(slot)].get().desc.handle;
        self.put_out(slot, FrameDesc { handle, len, offset, meta: FrameMeta::TX.bits() });
    }

    #[inline]
    fn put_out(&self, slot: u16, desc: FrameDesc) {
        let of_slot = &self.slots[usize::from(slot)];
        of_slot.set(Slot { desc, ..of_slot.get() });
        self.push(&self.outgoing, Place::Outgoing, slot);
    }

    /// Appends a slot that is in no queue.
    #[inline]
    fn push(&self, queue: &Cell<Queue>, place: Place, slot: u16) {
        let of_slot = &self.slots[usize::from(slot)];
        of_slot.set(Slot { place, next: NONE, ..of_slot.get() });
        let mut ends = queue.get();
        if let Some(last) = self.slots.get(usize::from(ends.tail)) {
            last.set(Slot { next: slot, ..last.get() });
        } else {
            ends.head = slot;
        }
        ends.tail = slot;
        ends.len += 1;
        queue.set(ends);
    }

    /// Takes the first slot of a queue to `place`.
    #[inline]
    fn pop(&self, queue: &Cell<Queue>, place: Place) -> Option<(u16, FrameDesc)> {
        let mut ends = queue.get();
        let slot = ends.head;
        let of_slot = self.slots.get(usize::from(slot))?;
        let taken = of_slot.get();
        ends.head = taken.next;
        ends.len -= 1;
        if ends.head == NONE {
            ends.tail = NONE;
        }
        queue.set(ends);
        of_slot.set(Slot { place, next: NONE, ..taken });
        Some((slot, taken.desc))
    }
}

/// What a device does to frames that this task does not hold, for tests on the host.
#[cfg(not(target_os = "none"))]
impl<const C: usize> Frames<C> {
    fn away(&self, index: usize) -> crate::memory::Lease {
        let slot = index.wrapping_sub(self.memory.first().into());
        assert!(slot < usize::from(self.memory.count()), "frame {index} is not of this pool");
        assert_eq!(self.slots[slot].get().place, Place::Away, "frame {index} is held by the task");
        self.memory.lease(slot)
    }

    /// Writes into a frame as a device does.
    ///
    /// # Panics
    /// If the task holds the frame.
    pub fn device_write(&self, index: usize, offset: usize, bytes: &[u8]) {
        self.away(index).bytes_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    /// Reads the packet of an entry as a device does.
    ///
    /// # Panics
    /// If the task holds the frame.
    #[must_use]
    pub fn device_read(&self, desc: FrameDesc) -> Vec<u8> {
        self.away(desc.handle.index()).bytes()[desc.offset.into()..desc.len.into()].to_vec()
    }
}
