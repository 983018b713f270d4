//! What can be asked of the benchmark task, and what it answers.

use serde::{Deserialize, Serialize};

/// Address and port of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Peer {
    /// IPv4 address as on the wire.
    pub address: [u8; 4],
    /// Port.
    pub port: u16,
}

impl core::fmt::Display for Peer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let [a, b, c, d] = self.address;
        write!(f, "{a}.{b}.{c}.{d}:{}", self.port)
    }
}

/// How much to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Limit {
    /// So many buffers.
    Buffers(u64),
    /// So many bytes.
    Bytes(u64),
    /// As many as fit into so many milliseconds.
    Millis(u32),
}

/// What marks start and end of a stream of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Marks {
    /// Datagrams of four bytes, as ttcp does.
    Ttcp,
    /// Numbers, of which the last is negative, as iperf 2 does.
    Iperf,
}

/// What to do. One job runs at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Job {
    /// Sends a TCP stream.
    SendTcp {
        /// Where to.
        peer: Peer,
        /// Bytes of a buffer, 1 to 65536.
        length: u32,
        /// How much.
        limit: Limit,
    },
    /// Sends datagrams.
    SendUdp {
        /// Where to.
        peer: Peer,
        /// Bytes of a datagram, 1 to 65507; with [`Marks::Iperf`] at least 40.
        length: u32,
        /// How much.
        limit: Limit,
        /// Start and end.
        marks: Marks,
        /// Bits per second; 0 for as many as go out.
        rate: u64,
    },
    /// Waits until the next stream or series of datagrams to port 5001 has ended.
    Receive {
        /// Datagrams instead of a stream.
        udp: bool,
    },
    /// Sends echo requests.
    Ping {
        /// Where to.
        address: [u8; 4],
        /// Bytes of data, at most 65507.
        size: u16,
        /// How many; 0 until stopped.
        count: u32,
        /// Microseconds from one to the next.
        interval: u32,
        /// No [`Event::Reply`] for each.
        quiet: bool,
    },
    /// Measures calls to another task.
    Micro {
        /// What.
        what: Micro,
        /// How often.
        rounds: u32,
    },
}

/// Calls that can be measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Micro {
    /// An empty call and its reply.
    Call,
    /// Frames handed over and back, in lists of so many (1 to 32).
    Frames(u8),
}

/// How a transfer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Ending {
    /// By what marks its end.
    Mark,
    /// Nothing more came for long.
    Silence,
    /// The connection was reset.
    Reset,
    /// On request.
    Stopped,
}

/// What a transfer was like.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// The other side.
    pub peer: Peer,
    /// How it ended.
    pub ending: Ending,
    /// Bytes of data.
    pub bytes: u64,
    /// Microseconds from the first to the last.
    pub micros: u64,
    /// Times that data were given to the stack or taken from it; for datagrams, how many there were.
    pub calls: u64,
    /// Datagrams that did not come.
    pub lost: u64,
    /// Datagrams that came behind a later one.
    pub out_of_order: u64,
    /// Mean deviation of their time on the way, in microseconds.
    pub jitter: u64,
    /// What it took of the machine.
    pub usage: Usage,
}

/// What a peer sent to port 5001.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Session {
    /// Datagrams instead of a stream.
    pub udp: bool,
    /// Datagrams were numbered as iperf's.
    pub numbered: bool,
    /// What it was like.
    pub transfer: Transfer,
}

/// What was used of the machine in some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Microseconds on the CPU of the benchmark task itself.
    pub own: u64,
    /// Of all other tasks but idle.
    pub system: u64,
    /// Switches to the benchmark task.
    pub switches: u64,
    /// Switches to all other tasks.
    pub other_switches: u64,
}

/// Times of replies, in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PingSummary {
    /// Requests.
    pub sent: u32,
    /// Replies, each request's first.
    pub received: u32,
    /// Replies to requests that had been answered.
    pub duplicates: u32,
    /// Replies whose data were not those of the request.
    pub damaged: u32,
    /// Shortest.
    pub min: u64,
    /// Mean.
    pub mean: u64,
    /// Longest.
    pub max: u64,
    /// Standard deviation.
    pub deviation: u64,
}

/// Why a job did not work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Failure {
    /// No address, or no way there.
    Unreachable,
    /// The peer refused the connection.
    Refused,
    /// The peer does not answer.
    TimedOut,
    /// The peer broke the connection off.
    Reset,
    /// An argument outside its range.
    BadArgument,
    /// The stack has no room for one more socket.
    NoSocket,
    /// The stack was restarted.
    StackRestarted,
    /// The benchmark task itself was restarted.
    BenchRestarted,
    /// This image has no task to measure with.
    NoPartner,
    /// The task to measure with did not answer as it should.
    Partner,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "Network is unreachable (see ifconfig)",
            Self::Refused => "Connection refused",
            Self::TimedOut => "Operation timed out",
            Self::Reset => "Connection reset by peer",
            Self::BadArgument => "Invalid argument",
            Self::NoSocket => "No buffer space available (see netstat)",
            Self::StackRestarted => "Network stack was restarted",
            Self::BenchRestarted => "Task `bench` was restarted",
            Self::NoPartner => "No task `partner` in this image (see app.toml)",
            Self::Partner => "Task `partner` did not answer as it should",
        })
    }
}

/// What came of a job so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The connection stands.
    Connected {
        /// Own address and port.
        local: Peer,
        /// The peer's.
        remote: Peer,
    },
    /// A peer has begun to send.
    Accepted {
        /// Own address and port.
        local: Peer,
        /// The peer's.
        remote: Peer,
    },
    /// An echo reply.
    Reply {
        /// Number of the request, from 0 on.
        sequence: u32,
        /// Bytes of data.
        len: u16,
        /// Time to live that was left.
        time_to_live: u8,
        /// Round trip in microseconds.
        micros: u32,
        /// A second one to the same request.
        duplicate: bool,
    },
    /// A transfer has ended. With it the job.
    Transfer(Transfer),
    /// What the server said that it received of our datagrams; `None` if it did not answer. Comes before [`Event::Transfer`].
    ServerReport(Option<Transfer>),
    /// The pings have ended. With them the job.
    Pings(PingSummary),
    /// A measurement has ended. With it the job.
    Figure {
        /// What was measured.
        what: Micro,
        /// How often.
        rounds: u32,
        /// Instructions that all rounds took, in all tasks and the kernel.
        instructions: u64,
        /// Microseconds that they took.
        micros: u64,
    },
    /// The job failed. With that it ended.
    Failed(Failure),
}

impl Event {
    /// True if the job has ended with it.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        matches!(self, Self::Transfer(_) | Self::Pings(_) | Self::Figure { .. } | Self::Failed(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits in `bench.idol`, checked with values that take the most bytes.
    #[test]
    fn the_longest_values_fit_their_limits() {
        let peer = Peer { address: [255; 4], port: u16::MAX };
        let usage = Usage { own: u64::MAX, system: u64::MAX, switches: u64::MAX, other_switches: u64::MAX };
        let transfer = Transfer {
            peer,
            ending: Ending::Stopped,
            bytes: u64::MAX,
            micros: u64::MAX,
            calls: u64::MAX,
            lost: u64::MAX,
            out_of_order: u64::MAX,
            jitter: u64::MAX,
            usage,
        };
        let mut buffer = [0; 256];
        let job = Job::SendUdp {
            peer,
            length: u32::MAX,
            limit: Limit::Buffers(u64::MAX),
            marks: Marks::Iperf,
            rate: u64::MAX,
        };
        assert!(postcard::to_slice(&job, &mut buffer).is_ok_and(|bytes| bytes.len() <= 96));
        let session = Session { udp: true, numbered: true, transfer };
        assert!(postcard::to_slice(&session, &mut buffer).is_ok_and(|bytes| bytes.len() <= 224));
        for event in [
            Event::ServerReport(Some(transfer)),
            Event::Pings(PingSummary {
                sent: u32::MAX,
                received: u32::MAX,
                duplicates: u32::MAX,
                damaged: u32::MAX,
                min: u64::MAX,
                mean: u64::MAX,
                max: u64::MAX,
                deviation: u64::MAX,
            }),
        ] {
            assert!(postcard::to_slice(&event, &mut buffer).is_ok_and(|bytes| bytes.len() <= 224));
        }
    }
}
