//! What `netstat` shows.

use net_api::{Address, Endpoint, SocketId, SocketInfo, Step, TcpState};
use smoltcp::socket::tcp::State;

use super::{Host, Server, endpoint};
use crate::clients::Kind;
use crate::link::Mac;
use crate::tcp::SLOTS;

impl<M: Mac, H: Host> Server<'_, M, H> {
    /// Rows of `netstat`: connections and their listeners, then UDP.
    pub(super) fn rows(&mut self, mut visit: impl FnMut(SocketInfo)) {
        let core = &mut self.stack.core;
        let own = core.link.address.map_or(Address::default(), |own| Address(own.address().octets()));
        for at in 0..SLOTS {
            if let Some((state, local, remote)) = core.tcp.describe(at) {
                let client = core.tcp.slot(at).client;
                let step = match core.clients.get(client) {
                    Some(client) => core.tcp.step(at, &client.window),
                    None => Step::default(),
                };
                visit(SocketInfo {
                    local: local.map(endpoint).unwrap_or_default(),
                    remote: remote.map(endpoint).unwrap_or_default(),
                    received: step.readable_total,
                    unsent: step.unsent,
                    protocol: crate::packet::TCP,
                    state: state_number(state),
                    owner: core.clients.get(client).map_or(0, |client| client.task),
                    reserved: 0,
                });
            }
        }
        for place in 0..SocketId::PLACES {
            let Some((_, client, kind)) = core.clients.places().find(|&(at, ..)| at == place) else {
                continue;
            };
            let owner = core.clients.get(client).map_or(0, |client| client.task);
            let row = |protocol, state, port| SocketInfo {
                local: Endpoint::new(own, port),
                protocol,
                state,
                owner,
                ..SocketInfo::default()
            };
            match kind {
                Kind::Listener(listener) => {
                    let local = Endpoint::new(Address::default(), listener.port);
                    let state = TcpState::Listen as u8;
                    visit(SocketInfo { local, ..row(crate::packet::TCP, state, listener.port) });
                }
                Kind::Udp(at) => {
                    if let Some(socket) = core.udp.get(at) {
                        let step = socket.step();
                        visit(SocketInfo {
                            received: step.readable_total,
                            unsent: step.unsent,
                            ..row(crate::packet::UDP, 0, socket.port())
                        });
                    }
                }
                _ => {}
            }
        }
    }
}

const fn state_number(state: State) -> u8 {
    (match state {
        State::Closed => TcpState::Closed,
        State::Listen => TcpState::Listen,
        State::SynSent => TcpState::SynSent,
        State::SynReceived => TcpState::SynReceived,
        State::Established => TcpState::Established,
        State::FinWait1 => TcpState::FinWait1,
        State::FinWait2 => TcpState::FinWait2,
        State::CloseWait => TcpState::CloseWait,
        State::Closing => TcpState::Closing,
        State::LastAck => TcpState::LastAck,
        State::TimeWait => TcpState::TimeWait,
    }) as u8
}
