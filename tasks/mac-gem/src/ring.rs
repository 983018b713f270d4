//! Receive and transmit ring: which descriptor holds which frame, and whose it is.
//!
//! Rules of the hardware that this module keeps (UG1085, "Gigabit Ethernet Controller"):
//!
//! * The MAC works through a ring in order and stops at a descriptor with `USED` set.
//! * It sets `USED` in the first descriptor of a frame when it is done. Each frame here has one descriptor.
//! * After the last queued transmit descriptor there is always one with `USED` set, or the MAC would run on. So a transmit
//!   ring holds one frame less than it has descriptors.
//! * The word that gives a descriptor to the MAC is written last.
//!
//! The code is safe, does no system call, and runs over any [`Words`]: uncached memory on the target, a vector on the host.

use abi::frame::FrameMeta;
use abi::{FrameDesc, FrameHandle, PAGE_SIZE};
use userlib::FrameList;

use crate::desc::{rx_address, rx_status, tx_control, verified};

/// Bytes that the MAC leaves free in front of a received frame, so that the IP header is aligned to 4 bytes.
pub const RX_OFFSET: u8 = 2;

/// Bytes of a receive buffer that the MAC may use; more than any frame it accepts, so that none needs two descriptors.
pub const RX_BUFFER: usize = 2048;

/// Longest frame that is received or sent, without FCS: 1500 bytes, Ethernet header, and one VLAN tag.
pub const MAX_FRAME: usize = 1518;

/// Shortest frame that is sent, without FCS. Who builds a frame pads it, with zeros.
pub const MIN_TX_FRAME: usize = 60;

/// An Ethernet header; nothing shorter is taken for a frame.
const HEADER: usize = 14;

/// Memory shared with the MAC, as 32-bit words.
pub trait Words {
    /// Words there are.
    fn count(&self) -> usize;
    /// Address of word 0 as the MAC sees it.
    fn device_address(&self) -> u32;
    /// Reads a word below [`count`](Self::count).
    fn get(&self, index: usize) -> u32;
    /// Writes a word below [`count`](Self::count).
    fn set(&mut self, index: usize, value: u32);
    /// The MAC sees all writes before this before any after it.
    fn release(&mut self);
    /// Reads after this see what the MAC wrote before it wrote what was read before this.
    fn acquire(&self);
}

/// Where the frames of the pool are.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Address of the first frame.
    pub base: u32,
    /// Its index in the image.
    pub first: u16,
    /// Frames in the pool.
    pub count: u16,
}

impl Pool {
    /// Address of a frame of this pool. The kernel has checked the handle: it refuses to arm any other.
    #[inline]
    #[must_use]
    pub const fn address(&self, handle: FrameHandle) -> u32 {
        let index = (handle.index() as u32).wrapping_sub(self.first as u32);
        self.base.wrapping_add(index.wrapping_mul(PAGE_SIZE as u32))
    }
}

/// True if a finished descriptor holds one whole frame.
#[inline]
const fn is_frame(status: u32, len: usize) -> bool {
    let ends = rx_status::START | rx_status::END;
    status & ends == ends && len.wrapping_sub(HEADER) <= MAX_FRAME - HEADER
}

/// What [`RxRing::collect`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collected {
    /// Frames taken out.
    pub frames: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Descriptors without a whole frame. Their buffers went back to the end of the ring.
    pub broken: usize,
}

/// Memory for handles, one for each descriptor.
pub type Handles = &'static mut [FrameHandle];

/// Places of a ring: descriptors `head`, `head + 1`, ... are in use, `used` of them.
#[derive(Debug)]
struct Places {
    handles: Handles,
    len: usize,
    head: usize,
    used: usize,
}

impl Places {
    fn new(handles: Handles) -> Self {
        assert!(handles.len() >= 2, "a ring has at least 2 descriptors");
        Self { len: handles.len(), handles, head: 0, used: 0 }
    }

    const fn wrap(&self, index: usize) -> usize {
        if index >= self.len { index - self.len } else { index }
    }

    const fn is_last(&self, index: usize) -> bool {
        index + 1 == self.len
    }

    const fn tail(&self) -> usize {
        self.wrap(self.head + self.used)
    }

    /// Handle at a place. Places are below `len`; `get` says so without a panic.
    #[inline]
    fn handle(&self, index: usize) -> FrameHandle {
        self.handles.get(index).copied().unwrap_or_default()
    }

    #[inline]
    fn set(&mut self, index: usize, handle: FrameHandle) {
        if let Some(place) = self.handles.get_mut(index) {
            *place = handle;
        }
    }

    #[inline]
    fn take(&mut self) -> FrameHandle {
        let handle = self.handle(self.head);
        self.head = self.wrap(self.head + 1);
        self.used -= 1;
        handle
    }

    /// Turns the ring so that the oldest place in use is descriptor 0.
    fn rewind(&mut self) {
        let head = self.head;
        // Turning by `head` is to turn round both parts, and then the whole.
        turn_round(&mut self.handles[..head]);
        turn_round(&mut self.handles[head..]);
        turn_round(self.handles);
        self.head = 0;
    }
}

/// `reverse`, small rather than fast.
#[inline(never)]
fn turn_round(handles: &mut [FrameHandle]) {
    for index in 0..handles.len() / 2 {
        handles.swap(index, handles.len() - 1 - index);
    }
}

/// The receive ring.
#[derive(Debug)]
pub struct RxRing<W> {
    words: W,
    stride: usize,
    places: Places,
}

impl<W: Words> RxRing<W> {
    /// A ring of descriptors of `stride` words, as many as there are `handles`, without buffers.
    ///
    /// # Panics
    /// If that is below 2, or `words` is too short: the build's configuration is wrong.
    #[must_use]
    pub fn new(words: W, stride: usize, handles: Handles) -> Self {
        assert!(words.count() >= handles.len() * stride, "receive ring: too few words");
        let mut ring = Self { words, stride, places: Places::new(handles) };
        ring.rewind(&Pool { base: 0, first: 0, count: 0 });
        ring
    }

    /// Address for the MAC's register.
    #[must_use]
    pub fn address(&self) -> u32 {
        self.words.device_address()
    }

    /// Descriptors without a buffer.
    #[inline]
    #[must_use]
    pub const fn room(&self) -> usize {
        self.places.len - self.places.used
    }

    /// Descriptors in the ring.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.places.len
    }

    /// True if no descriptor has a buffer.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.used == 0
    }

    /// True if fewer than a quarter of the descriptors have a buffer.
    #[inline]
    #[must_use]
    pub const fn is_low(&self) -> bool {
        self.places.used < self.places.len.div_ceil(4)
    }

    fn address_word(&self, place: usize) -> usize {
        place * self.stride
    }

    fn is_finished(&self, place: usize) -> bool {
        self.words.get(self.address_word(place)) & rx_address::USED != 0
    }

    /// True if at least one descriptor waits to be collected.
    #[inline]
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.places.used > 0 && self.is_finished(self.places.head)
    }

    /// True if the MAC has a buffer to write to.
    #[must_use]
    pub fn has_free_buffer(&self) -> bool {
        let Some(last) = self.places.used.checked_sub(1) else {
            return false;
        };
        !self.is_finished(self.places.wrap(self.places.head + last))
    }

    /// Takes finished frames out into `list`, from at most `max` descriptors: length and offset set, checksum results in `meta`.
    ///
    /// A descriptor that does not hold one whole frame is stepped over: its buffer, which the MAC still holds, goes back to
    /// the end of the ring.
    #[inline]
    pub fn collect(&mut self, max: usize, list: &mut FrameList) -> Collected {
        let mut done = Collected::default();
        let mut left = max.min(self.places.used);
        loop {
            let mut broken = false;
            let mut head = self.places.head;
            let mut taken = 0;
            let (words, places, stride) = (&self.words, &self.places, self.stride);
            list.extend(core::iter::from_fn(|| {
                if taken == left || words.get(head * stride) & rx_address::USED == 0 {
                    return None;
                }
                words.acquire();
                let status = words.get(head * stride + 1);
                let len = (status & rx_status::LENGTH) as usize;
                if !is_frame(status, len) {
                    broken = true;
                    return None;
                }
                let handle = places.handle(head);
                head = places.wrap(head + 1);
                taken += 1;
                done.bytes += len as u64;
                let len = len as u16 + u16::from(RX_OFFSET);
                Some(FrameDesc { handle, len, offset: RX_OFFSET, meta: verified(status) })
            }));
            self.places.head = head;
            self.places.used -= taken;
            done.frames += taken;
            left -= taken;
            if !broken {
                return done;
            }
            done.broken += 1;
            left -= 1;
            self.recycle();
        }
    }

    /// Puts the buffer of the oldest descriptor, which the MAC still holds, to the end.
    #[cold]
    fn recycle(&mut self) {
        let address = self.words.get(self.address_word(self.places.head));
        let handle = self.places.take();
        self.give(handle, address);
    }

    /// Gives armed frames to the MAC, as many as there is [`room`](Self::room) for; returns how many.
    #[inline]
    pub fn fill(&mut self, frames: &[FrameDesc], pool: &Pool) -> usize {
        let count = frames.len().min(self.room());
        let mut place = self.places.tail();
        for frame in &frames[..count] {
            self.write(place, pool.address(frame.handle));
            self.places.set(place, frame.handle);
            place = self.places.wrap(place + 1);
        }
        self.places.used += count;
        count
    }

    /// One more descriptor to the MAC. There is room.
    fn give(&mut self, handle: FrameHandle, address: u32) {
        let place = self.places.tail();
        self.write(place, address);
        self.places.set(place, handle);
        self.places.used += 1;
    }

    /// Hands a descriptor over.
    #[inline]
    fn write(&mut self, place: usize, address: u32) {
        let word = place * self.stride;
        let wrap = if self.places.is_last(place) { rx_address::WRAP } else { 0 };
        // A status that the MAC never wrote must not look like a frame.
        self.words.set(word + 1, 0);
        self.words.set(word, address & rx_address::ADDRESS | wrap);
    }

    /// Arranges the ring anew from descriptor 0, for a receiver that starts over. The receiver must be off.
    ///
    /// Returns how many frames that waited to be collected are lost by this.
    #[inline(never)]
    pub fn rewind(&mut self, pool: &Pool) -> usize {
        let mut lost = 0;
        let mut place = self.places.head;
        for _ in 0..self.places.used {
            lost += usize::from(self.is_finished(place));
            place = self.places.wrap(place + 1);
        }
        self.places.rewind();
        let used = self.places.used;
        self.places.used = 0;
        for place in 0..self.places.len {
            if place < used {
                let handle = self.places.handle(place);
                self.give(handle, pool.address(handle));
            } else {
                let wrap = if self.places.is_last(place) { rx_address::WRAP } else { 0 };
                self.words.set(self.address_word(place), rx_address::USED | wrap);
            }
        }
        self.words.release();
        lost
    }

    /// Makes what was given to the MAC visible to it.
    #[inline]
    pub fn release(&mut self) {
        self.words.release();
    }
}

/// What [`TxRing::reclaim`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reclaimed {
    /// Frames taken out.
    pub frames: usize,
    /// Of these, frames that the MAC could not send.
    pub errors: usize,
}

/// The transmit ring.
#[derive(Debug)]
pub struct TxRing<W> {
    words: W,
    stride: usize,
    places: Places,
}

impl<W: Words> TxRing<W> {
    /// An empty ring of descriptors of `stride` words, as many as there are `handles`. It holds one frame less.
    ///
    /// # Panics
    /// As [`RxRing::new`].
    #[must_use]
    pub fn new(words: W, stride: usize, handles: Handles) -> Self {
        assert!(words.count() >= handles.len() * stride, "transmit ring: too few words");
        let mut ring = Self { words, stride, places: Places::new(handles) };
        ring.abort(|_| ());
        ring
    }

    /// Address for the MAC's register.
    #[must_use]
    pub fn address(&self) -> u32 {
        self.words.device_address()
    }

    /// Descriptors in the ring.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.places.len
    }

    /// True if no frame is in the ring, sent or not.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.places.used == 0
    }

    /// Frames that can be queued.
    #[inline]
    #[must_use]
    pub const fn room(&self) -> usize {
        self.places.len - 1 - self.places.used
    }

    fn control_word(&self, place: usize) -> usize {
        place * self.stride + 1
    }

    /// True if the oldest frame has been sent.
    #[inline]
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.places.used > 0 && self.words.get(self.control_word(self.places.head)) & tx_control::USED != 0
    }

    /// True if a frame is queued that has not been sent.
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let Some(last) = self.places.used.checked_sub(1) else {
            return false;
        };
        let newest = self.places.wrap(self.places.head + last);
        self.words.get(self.control_word(newest)) & tx_control::USED == 0
    }

    /// Queues armed frames, as many as there is [`room`](Self::room) for; returns how many.
    ///
    /// `len` is the end of the packet in the frame, `offset` its start; the caller has checked both.
    #[inline]
    pub fn queue(&mut self, frames: &[FrameDesc], pool: &Pool) -> usize {
        let count = frames.len().min(self.room());
        let mut place = self.places.tail();
        for frame in &frames[..count] {
            let address = pool.address(frame.handle) + u32::from(frame.offset);
            self.words.set(place * self.stride, address);
            place = self.places.wrap(place + 1);
        }
        // The MAC may be on its way through the ring: addresses first, then the words that hand over.
        self.words.release();
        let mut place = self.places.tail();
        for frame in &frames[..count] {
            let wrap = if self.places.is_last(place) { tx_control::WRAP } else { 0 };
            let len = u32::from(frame.len).wrapping_sub(u32::from(frame.offset)) & tx_control::LENGTH;
            self.words.set(place * self.stride + 1, len | tx_control::LAST | wrap);
            self.places.set(place, frame.handle);
            place = self.places.wrap(place + 1);
        }
        self.places.used += count;
        count
    }

    /// Takes sent frames out into `list`, as free frames and as many as it has room for.
    #[inline]
    pub fn reclaim(&mut self, list: &mut FrameList) -> Reclaimed {
        let mut done = Reclaimed::default();
        let mut head = self.places.head;
        let (words, places, stride) = (&self.words, &self.places, self.stride);
        list.extend(core::iter::from_fn(|| {
            if done.frames == places.used {
                return None;
            }
            let control = words.get(head * stride + 1);
            if control & tx_control::USED == 0 {
                return None;
            }
            done.frames += 1;
            done.errors += usize::from(control & tx_control::ERRORS != 0);
            let handle = places.handle(head);
            head = places.wrap(head + 1);
            Some(free_frame(handle))
        }));
        self.places.head = head;
        self.places.used -= done.frames;
        done
    }

    /// Takes all frames out, sent or not, and starts over at descriptor 0. The transmitter must be off.
    ///
    /// Returns how many had not been sent.
    #[inline(never)]
    pub fn abort(&mut self, mut sink: impl FnMut(FrameHandle)) -> usize {
        let mut unsent = 0;
        while self.places.used > 0 {
            unsent += usize::from(!self.has_finished());
            sink(self.places.take());
        }
        self.places.head = 0;
        for place in 0..self.places.len {
            let wrap = if self.places.is_last(place) { tx_control::WRAP } else { 0 };
            self.words.set(self.control_word(place), tx_control::USED | wrap);
        }
        self.words.release();
        unsent
    }

    /// Makes what was queued visible to the MAC.
    #[inline]
    pub fn release(&mut self) {
        self.words.release();
    }
}

/// Marks frames for transmission in lists.
pub(crate) const TX: u8 = FrameMeta::TX.bits();

/// A list entry for a frame without content, for whoever wants to send.
#[inline]
pub(crate) const fn free_frame(handle: FrameHandle) -> FrameDesc {
    FrameDesc { handle, len: 0, offset: 0, meta: TX }
}

/// Words that [`park`] needs.
pub const PARK_WORDS: usize = 8;

/// Prepares a transmit and a receive descriptor for queues that are not used: both are software's, so the MAC stops there at once.
///
/// Returns their addresses.
///
/// # Panics
/// If there are fewer than [`PARK_WORDS`] words.
pub fn park(words: &mut impl Words) -> (u32, u32) {
    let half = PARK_WORDS / 2;
    for index in 0..PARK_WORDS {
        words.set(index, 0);
    }
    words.set(1, tx_control::USED | tx_control::WRAP);
    words.set(half, rx_address::USED | rx_address::WRAP);
    words.release();
    let base = words.device_address();
    (base, base + half as u32 * 4)
}
