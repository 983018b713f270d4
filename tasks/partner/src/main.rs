//! A task to measure and test with.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]

use heapless::Vec;
use idol_runtime::{
    Both, Deferred, FrameDesc, FrameList, Kernel, KernelError, Leased, Read, Request, RequestError, System, TaskId,
    Write,
};
use partner_api::{PartnerBuffers, PartnerError, PartnerInterface, PartnerServer};
use userlib::{config, frames};

#[cfg(target_os = "none")]
userlib::entry!(main);

/// The host has no tasks to be a partner of.
#[cfg(not(target_os = "none"))]
fn main() {
    let _: fn() -> ! = serve;
}

#[cfg(target_os = "none")]
fn main() -> ! {
    serve()
}

fn serve() -> ! {
    let mut partner = Partner {
        frames_back: config::notification("frames-back"),
        stock: Vec::new(),
        kept: Vec::new(),
        waiting: Vec::new(),
        calls: 0,
    };
    partner.look_for_frames();
    partner_api::serve(&mut partner, &mut PartnerBuffers::new())
}

/// Most frames in the pool.
const FRAMES: usize = 256;

/// Bytes read from or written to a lease at a time.
const PIECE: usize = 512;

struct Partner {
    frames_back: u32,
    stock: Vec<FrameDesc, FRAMES>,
    kept: Vec<u16, FRAMES>,
    waiting: Vec<TaskId, 8>,
    calls: u32,
}

impl Partner {
    /// Lists the frames that are here: at the start, and when frames have come back from a dead task.
    fn look_for_frames(&mut self) {
        self.stock.clear();
        let mut next = Some(0);
        while let Some(from) = next {
            let mut list = [FrameDesc::default(); 32];
            // An image without a pool for this task has no frames to list.
            let Ok((count, more)) = frames::list(0, &mut list, from) else { return };
            for frame in &list[..count] {
                if !self.kept.contains(&(frame.handle.index() as u16)) {
                    let _ = self.stock.push(FrameDesc { handle: frame.handle, ..FrameDesc::default() });
                }
            }
            next = more;
        }
    }
}

type Answer<T, E = core::convert::Infallible> = Result<T, RequestError<E>>;

impl<K: Kernel> PartnerServer<K> for Partner {
    fn null(&mut self, _: &Request<K>) -> Answer<()> {
        Ok(())
    }

    fn calls(&mut self, _: &Request<K>) -> Answer<u32> {
        self.calls += 1;
        Ok(self.calls)
    }

    fn echo(&mut self, _: &Request<K>, bytes: &[u8]) -> Answer<Vec<u8, 960>> {
        // Dispatch has checked the length.
        Ok(Vec::from_slice(bytes).unwrap_or_default())
    }

    fn sum(&mut self, _: &Request<K>, bytes: Leased<Read, [u8], K>) -> Answer<u32> {
        let (mut sum, mut at, mut piece) = (0u32, 0, [0; PIECE]);
        while at < bytes.len() {
            let piece = &mut piece[..(bytes.len() - at).min(PIECE)];
            bytes.read_at(at, piece).map_err(RequestError::lost)?;
            sum = piece.iter().fold(sum, |sum, &byte| sum.wrapping_add(byte.into()));
            at += piece.len();
        }
        Ok(sum)
    }

    fn fill(&mut self, _: &Request<K>, value: u8, bytes: Leased<Write, [u8], K>) -> Answer<()> {
        let (mut at, piece) = (0, [value; PIECE]);
        while at < bytes.len() {
            let piece = &piece[..(bytes.len() - at).min(PIECE)];
            bytes.write_at(at, piece).map_err(RequestError::lost)?;
            at += piece.len();
        }
        Ok(())
    }

    fn increment(&mut self, _: &Request<K>, bytes: Leased<Both, [u8], K>) -> Answer<()> {
        let (mut at, mut piece) = (0, [0; PIECE]);
        while at < bytes.len() {
            let piece = &mut piece[..(bytes.len() - at).min(PIECE)];
            bytes.read_at(at, piece).map_err(RequestError::lost)?;
            piece.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            bytes.write_at(at, piece).map_err(RequestError::lost)?;
            at += piece.len();
        }
        Ok(())
    }

    fn borrow_frames(&mut self, _: &Request<K>, count: u32, frames: &mut FrameList) -> Answer<(), PartnerError> {
        let count = count as usize;
        if count > self.stock.len() || count > userlib::abi::MAX_FRAME_LIST {
            return Err(PartnerError::NotEnough.into());
        }
        for _ in 0..count {
            let Some(frame) = self.stock.pop() else { break };
            let _ = frames.push(frame);
        }
        Ok(())
    }

    fn return_frames(&mut self, _: &Request<K>, frames: &mut FrameList) -> Answer<()> {
        while let Some(frame) = frames.pop() {
            let _ = self.stock.push(FrameDesc { handle: frame.handle, ..FrameDesc::default() });
        }
        Ok(())
    }

    fn bounce_frames(&mut self, _: &Request<K>, _: &mut FrameList) -> Answer<()> {
        Ok(())
    }

    fn keep_frames(&mut self, _: &Request<K>, frames: &mut FrameList) -> Answer<u32> {
        while let Some(frame) = frames.pop() {
            let _ = self.kept.push(frame.handle.index() as u16);
        }
        Ok(self.kept.len() as u32)
    }

    fn hold(&mut self, request: &Request<K>) -> Result<(), RequestError<core::convert::Infallible, Deferred>> {
        // One too many goes on at once.
        self.waiting.push(request.caller).map_or(Ok(()), |()| Err(RequestError::Deferred(Deferred)))
    }

    fn release(&mut self, request: &Request<K>) -> Answer<u32> {
        let count = self.waiting.len();
        while let Some(caller) = self.waiting.pop() {
            // One that has died needs no answer.
            let _ = PartnerInterface::reply_hold(&request.kernel, caller, Ok(()));
        }
        Ok(count as u32)
    }

    fn crash(&mut self, _: &Request<K>) -> Answer<()> {
        panic!("as requested")
    }

    fn notification_mask(&self) -> u32 {
        self.frames_back
    }

    fn handle_notification(&mut self, _: &K, _: u32) {
        self.look_for_frames();
    }

    fn reply_refused(&mut self, _: TaskId, _: KernelError, _: &mut FrameList) {
        self.look_for_frames();
    }
}

// The real system is what `serve` runs on.
const _: fn(&Partner) -> u32 = |partner| <Partner as PartnerServer<System>>::notification_mask(partner);
