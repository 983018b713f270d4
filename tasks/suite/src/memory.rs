//! The suite's own memory in tests: patterns, and frames that it holds.

use abi::frame::FrameMeta;
use abi::{FrameDesc, FrameHandle, PAGE_SIZE};
use frame::{FrameMemory, Frames};
use userlib::FrameList;

use crate::check::{Expect, Outcome, equal};

/// Bytes that differ from their neighbours and from those of another seed.
pub fn pattern(bytes: &mut [u8], seed: u8) {
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (index as u8).wrapping_mul(31).wrapping_add((index >> 8) as u8) ^ seed;
    }
}

/// True if bytes hold the pattern of a seed.
pub fn is_pattern(bytes: &[u8], seed: u8) -> bool {
    bytes
        .iter()
        .enumerate()
        .all(|(index, &byte)| byte == (index as u8).wrapping_mul(31).wrapping_add((index >> 8) as u8) ^ seed)
}

/// Most frames in the partner's pool.
pub const POOL: usize = 256;

/// Frames of the partner's pool.
pub struct Pool {
    books: Frames<POOL>,
    base: u64,
    first: u16,
    /// Frames in the pool.
    pub count: u16,
    /// Number of the pool in the image.
    pub number: usize,
}

impl Pool {
    /// The pool that the suite may hold frames of.
    ///
    /// # Panics
    /// If there is none, or one that is too large.
    pub fn take() -> Self {
        let memory = FrameMemory::take(0).expect("a pool: name the suite under `holders` of the partner");
        let (base, first, count) = userlib::config::pool(0).expect("the pool exists");
        let books = Frames::new(memory, 0).expect("a pool of at most 256 frames");
        // The MAC's pool comes first where there is one.
        Self { books, base, first, count, number: usize::from(first > 0) }
    }

    /// Address of a frame.
    pub fn address(&self, handle: FrameHandle) -> u64 {
        self.base + (handle.index() as u64 - u64::from(self.first)) * PAGE_SIZE as u64
    }

    /// Address of a frame of the pool by its place.
    pub fn address_of_place(&self, place: u64) -> u64 {
        self.base + place * PAGE_SIZE as u64
    }

    /// Index in the image of the pool's first frame.
    pub fn first(&self) -> usize {
        self.first.into()
    }

    /// Lets `work` read and write the bytes of a frame that the suite holds, from offset 2 on.
    pub fn with_bytes<T>(&self, frame: FrameDesc, work: impl FnOnce(&mut [u8]) -> T) -> Outcome<T> {
        let entry = FrameDesc { meta: FrameMeta::TX.bits(), ..frame };
        self.books.accept(entry).expecting("a frame that the books do not know")?;
        let mut open = self.books.transmit().ok_or(()).expecting("the frame is in stock")?;
        let result = work(&mut open);
        drop(open);
        self.books.trim_stock(0);
        self.books.sent(1);
        Ok(result)
    }

    /// Lists the frames that the suite holds.
    pub fn held(&self) -> Outcome<FrameList> {
        let mut all = FrameList::new();
        let mut from = Some(0);
        while let Some(at) = from {
            let mut part = [FrameDesc::default(); 8];
            let (count, next) = userlib::frames::list(0, &mut part, at).expecting("list of held frames")?;
            for frame in &part[..count] {
                if all.push(*frame).is_err() {
                    return Ok(all);
                }
            }
            from = next;
        }
        Ok(all)
    }

    /// Checks that all frames are with the owner.
    pub fn all_home(&self) -> Outcome {
        let census = userlib::kernel::frame_census(self.number).expecting("census")?;
        equal((census.owner, census.lent, census.device, census.quarantined), (self.count, 0, 0, 0), "frames by holder")
    }

    /// Checks that every frame of every pool is somewhere; returns how many there are of each.
    pub fn totals() -> [u32; abi::image::MAX_POOLS] {
        core::array::from_fn(|pool| {
            userlib::kernel::frame_census(pool).map_or(0, |census| {
                [census.owner, census.lent, census.device, census.quarantined].map(u32::from).iter().sum()
            })
        })
    }
}
