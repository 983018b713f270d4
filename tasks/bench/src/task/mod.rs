//! The task: sockets, jobs, and what wakes it.

mod jobs;
mod micro;
mod net;
mod server;
mod tcp;
mod udp;
mod usage;

use bench_api::BenchBuffers;

pub fn serve() -> ! {
    let mut server = server::Server::new();
    server.begin();
    bench_api::serve(&mut server, &mut BenchBuffers::new())
}
