//! Where a frame and a descriptor meet: the only code that puts frames into a ring.
//!
//! Today the kernel takes the frame away from the task (`FrameArm`), and the driver then writes the address into the descriptor
//! itself. A DMA guard, with a ring that only the kernel writes, changes this module and the `give` of the rings; callers
//! keep handing over a list.

use abi::FrameDesc;
use abi::frame::Direction;
use userlib::FrameList;

use crate::driver::Kernel;
use crate::ring::{Pool, RxRing, TxRing, Words};

/// Arms a list for reception and puts it into the ring, which has room for it. Returns how many entries the kernel refused; those are gone
/// from the list.
#[inline]
pub fn receive<W: Words>(kernel: &mut impl Kernel, ring: &mut RxRing<W>, pool: &Pool, list: &mut FrameList) -> usize {
    let refused = arm(kernel, list, Direction::Receive);
    ring.fill(list.as_slice(), pool);
    refused
}

/// Arms a list for transmission and queues it in the ring, which has room for it. Returns as [`receive`].
#[inline]
pub fn transmit<W: Words>(kernel: &mut impl Kernel, ring: &mut TxRing<W>, pool: &Pool, list: &mut FrameList) -> usize {
    let refused = arm(kernel, list, Direction::Transmit);
    ring.queue(list.as_slice(), pool);
    refused
}

#[inline]
fn arm(kernel: &mut impl Kernel, list: &mut FrameList, direction: Direction) -> usize {
    match kernel.arm(list.as_slice(), direction) {
        Ok(()) => 0,
        Err(_) => arm_each(kernel, list, direction),
    }
}

/// One bad entry refuses a whole list: arms each by itself and keeps the good ones.
#[cold]
fn arm_each(kernel: &mut impl Kernel, list: &mut FrameList, direction: Direction) -> usize {
    let all = core::mem::take(list);
    let good = |frame: &&FrameDesc| kernel.arm(core::slice::from_ref(*frame), direction).is_ok();
    for frame in all.as_slice().iter().filter(good) {
        // Not longer than the list it comes from.
        let _ = list.push(*frame);
    }
    all.len() - list.len()
}
