//! Moves bytes between two stacks, for a profiler: `cargo run --release --example bulk -- MIB`.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{CLIENT, Pair, address};
use net_api::{Endpoint, Options};

fn main() {
    let mib: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(16);
    let total = mib << 20;
    let mut pair = Pair::new();
    let listener = pair.b.server.listen_for(CLIENT, &Options::BULK, 5001).expect("listens");
    let ours = pair.a.server.connect_for(CLIENT, &Options::BULK, Endpoint::new(address(2), 5001)).expect("asks");
    pair.settle();
    let theirs = pair.b.server.accept_for(CLIENT, listener).expect("a connection").socket;
    let (mut sent, mut received) = (0, 0);
    let mut steps = 0;
    while received < total {
        let step = pair.a.server.step_for(CLIENT, ours, 0, 0).expect("open");
        let len = (total - sent).min(step.writable_len as usize);
        if len > 0 {
            pair.a.server.step_for(CLIENT, ours, 0, len as u32).expect("open");
            sent += len;
        }
        pair.settle();
        let step = pair.b.server.step_for(CLIENT, theirs, 0, 0).expect("open");
        if step.readable_len > 0 {
            pair.b.server.step_for(CLIENT, theirs, step.readable_len, 0).expect("open");
            received += step.readable_len as usize;
        } else if len == 0 {
            pair.tick();
        }
        pair.settle();
        steps += 1;
    }
    let (a, b) = (pair.a.server.stack().core.link.statistics, pair.b.server.stack().core.link.statistics);
    println!("{received} bytes, {steps} steps");
    println!("sender: {} frames out, {} in, {} exchanges, {} posts", a.tx_frames, a.rx_frames, a.exchanges, a.posts);
    println!("receiver: {} frames out, {} in, {} exchanges, {} posts", b.tx_frames, b.rx_frames, b.exchanges, b.posts);
}
