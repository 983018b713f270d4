//! The MAC driver behind its slot.

use abi::MAX_FRAME_LIST;
use abi::frame::FrameMeta;
use idol_runtime::{Error, FrameList, Kernel};

use crate::link::{Books, Exchanged, Mac};

/// Most free frames that one exchange asks for.
const MOST_WANTED: usize = MAX_FRAME_LIST / 2;

/// The driver.
#[derive(Debug)]
pub struct Driver<K: Kernel> {
    mac: mac_api::Mac<K>,
    list: FrameList,
}

impl<K: Kernel> Driver<K> {
    /// The driver that this client calls.
    #[must_use]
    pub const fn new(mac: mac_api::Mac<K>) -> Self {
        Self { mac, list: FrameList::new() }
    }
}

impl<K: Kernel> Mac for Driver<K> {
    fn exchange(&mut self, books: &Books, room: usize) -> Exchanged {
        let list = &mut self.list;
        list.clear();
        let mut sent = 0;
        for desc in books.outgoing() {
            let to_send = FrameMeta::from_bits_truncate(desc.meta).contains(FrameMeta::TX);
            if to_send && sent == room || list.push(desc).is_err() {
                break;
            }
            sent += usize::from(to_send);
        }
        let count = list.len();
        let want = books.wanted().min(MOST_WANTED);
        let take = MAX_FRAME_LIST - want;
        match self.mac.exchange(take as u16, want as u16, list) {
            Ok(answer) => {
                books.sent(count);
                let mut received = 0;
                for &desc in list.as_slice() {
                    // An entry that the books refuse is not ours: the kernel moved none such.
                    received += usize::from(books.accept(desc).is_ok());
                }
                Exchanged {
                    alive: true,
                    received,
                    more: answer.more_waiting,
                    sent,
                    room: answer.tx_room.into(),
                    link_up: answer.link_up,
                }
            }
            Err(error) => {
                // If it died with the list in its hands, the frames went with it. Otherwise they are still ours, and wait.
                let gone = error == Error::Died { received: true };
                if gone {
                    books.sent(count);
                }
                Exchanged { room: MAX_FRAME_LIST, sent: if gone { sent } else { 0 }, ..Exchanged::default() }
            }
        }
    }
}
