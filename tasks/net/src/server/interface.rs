//! The interface `Net`, as its generated dispatch calls it.

use idol_runtime::{Kernel, Leased, Read, Request, RequestError, Write};
use net_api::{
    Accepted, Address, Bound, Datagram, Endpoint, InterfaceInfo, NetError, NetServer, Options, PingReply, SocketId,
    SocketInfo, Statistics, Step, datagram_space, state,
};
use smoltcp::wire::Ipv4Address;
use zerocopy::IntoBytes;

use super::{Host, NEVER, Server};
use crate::clients::Kind;
use crate::link::Mac;
use crate::packet::MTU;

type Answer<T> = Result<T, RequestError<NetError>>;

impl<M: Mac, H: Host, K: Kernel> NetServer<K> for Server<'_, M, H> {
    fn notification_mask(&self) -> u32 {
        // During a pause frames wait at the driver, however many there are.
        if self.paused { self.notifications.timer } else { self.notifications.timer | self.notifications.frames }
    }

    fn handle_notification(&mut self, _kernel: &K, bits: u32) {
        let timer = bits & self.notifications.timer != 0;
        if timer {
            self.armed = NEVER;
        }
        let ask = bits & self.notifications.frames != 0 || bits == 0 || self.paused;
        self.work(ask);
    }

    fn interface(&mut self, _request: &Request<K>) -> Result<InterfaceInfo, RequestError<core::convert::Infallible>> {
        let by_dhcp = self.stack.by_dhcp();
        let link = &self.stack.core.link;
        let octets = |address: Option<Ipv4Address>| Address(address.map_or([0; 4], |address| address.octets()));
        Ok(InterfaceInfo {
            address: octets(link.address.map(|own| own.address())),
            gateway: octets(link.gateway),
            prefix: link.address.map_or(0, |own| own.prefix_len()),
            dhcp: by_dhcp.into(),
            link: link.link_up.into(),
            driver: link.driver_alive.into(),
            mac: link.hardware.0,
            mtu: MTU as u16,
        })
    }

    fn statistics(&mut self, _request: &Request<K>) -> Result<Statistics, RequestError<core::convert::Infallible>> {
        let mut statistics = self.stack.core.link.statistics;
        statistics.drop_fragment += self.stack.given_up();
        Ok(statistics)
    }

    fn sockets(
        &mut self,
        _request: &Request<K>,
        first: u32,
        rows: Leased<Write, [SocketInfo], K>,
    ) -> Result<u32, RequestError<core::convert::Infallible>> {
        let mut at = 0;
        let mut written = 0;
        let mut result = Ok(());
        self.rows(|row| {
            if at >= first && written < rows.len() && result.is_ok() {
                result = rows.write_at(written, &[row]);
                written += 1;
            }
            at += 1;
        });
        result.map_err(RequestError::lost)?;
        Ok(written as u32)
    }

    fn connect(&mut self, request: &Request<K>, options: Options, remote: Endpoint) -> Answer<SocketId> {
        Ok(self.connect_for(request.caller, &options, remote)?)
    }

    fn listen(&mut self, request: &Request<K>, options: Options, port: u32) -> Answer<SocketId> {
        Ok(self.listen_for(request.caller, &options, port)?)
    }

    fn accept(&mut self, request: &Request<K>, listener: SocketId) -> Answer<Accepted> {
        Ok(self.accept_for(request.caller, listener)?)
    }

    fn bind(&mut self, request: &Request<K>, options: Options, port: u32) -> Answer<Bound> {
        Ok(self.bind_for(request.caller, &options, port)?)
    }

    fn step(&mut self, request: &Request<K>, socket: SocketId, consume: u32, commit: u32) -> Answer<Step> {
        Ok(self.step_for(request.caller, socket, consume, commit)?)
    }

    fn events(&mut self, request: &Request<K>) -> Result<u32, RequestError<core::convert::Infallible>> {
        Ok(self.events_for(request.caller))
    }

    fn read(&mut self, request: &Request<K>, socket: SocketId, buffer: Leased<Write, [u8], K>) -> Answer<u32> {
        let (client, at) = self.tcp_socket(request.caller, socket)?;
        let place = socket.place();
        self.stack.core.clients.disarm(place);
        let data = self.stack.core.tcp.peek(at);
        let len = data.len().min(buffer.len());
        let copied = buffer.write_at(0, &data[..len]);
        if copied.is_ok() {
            self.transfer(client, place, Kind::Tcp(at), len, 0)?;
        }
        let step = self.look(client, place, Kind::Tcp(at));
        copied.map_err(RequestError::lost)?;
        if len > 0 {
            return Ok(len as u32);
        }
        Err(match step.state {
            now if now & (state::MAY_RECEIVE | state::CONNECTING) != 0 => NetError::WouldBlock,
            _ if step.cause == net_api::cause::NONE => return Ok(0),
            _ => NetError::Closed,
        }
        .into())
    }

    fn write(&mut self, request: &Request<K>, socket: SocketId, data: Leased<Read, [u8], K>) -> Answer<u32> {
        let (client, at) = self.tcp_socket(request.caller, socket)?;
        let place = socket.place();
        self.stack.core.clients.disarm(place);
        let mut lost = Ok(());
        let result = self.stack.core.tcp.fill(at, |room| {
            let len = room.len().min(data.len());
            lost = data.read_at(0, &mut room[..len]);
            Ok(if lost.is_ok() { len } else { 0 })
        });
        let step = self.look(client, place, Kind::Tcp(at));
        lost.map_err(RequestError::lost)?;
        match result {
            Ok(0) => Err(NetError::WouldBlock.into()),
            Ok(len) => Ok(len as u32),
            Err(NetError::Closed) if step.state & state::CONNECTING != 0 => Err(NetError::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    }

    fn receive_from(
        &mut self,
        request: &Request<K>,
        socket: SocketId,
        buffer: Leased<Write, [u8], K>,
    ) -> Answer<Datagram> {
        let (client, at) = self.udp_socket(request.caller, socket)?;
        let place = socket.place();
        self.stack.core.clients.disarm(place);
        let mut answer = Err(NetError::WouldBlock);
        if let Some(udp) = self.stack.core.udp.get(at)
            && let Some((header, payload)) = udp.peek()
        {
            let len = payload.len().min(buffer.len());
            buffer.write_at(0, &payload[..len]).map_err(RequestError::lost)?;
            answer = Ok(Datagram { peer: Endpoint::new(header.address, header.port), len: header.len.into() });
            if !udp.consume(datagram_space(header.len.into())) {
                // The client wrote over the header in its window; what lies behind cannot be found any more.
                let all = udp.step().readable_len as usize;
                udp.consume(all);
            }
        }
        self.look(client, place, Kind::Udp(at));
        Ok(answer?)
    }

    fn send_to(
        &mut self,
        request: &Request<K>,
        socket: SocketId,
        remote: Endpoint,
        data: Leased<Read, [u8], K>,
    ) -> Answer<()> {
        let (client, at) = self.udp_socket(request.caller, socket)?;
        let place = socket.place();
        let space = datagram_space(data.len());
        let core = &mut self.stack.core;
        let target = Ipv4Address::from(remote.address.0);
        if remote.port == 0 {
            return Err(NetError::BadArgument.into());
        }
        core.link.source_for(target).ok_or(NetError::Unreachable)?;
        if space > core.udp.capacity(at) {
            return Err(NetError::TooLong.into());
        }
        core.clients.disarm(place);
        let mut result = Err(NetError::WouldBlock);
        let mut lost = Ok(());
        if let Some(udp) = core.udp.get(at)
            && let Some(record) = udp.room().get_mut(..space)
        {
            let header = net_api::DatagramHeader { address: remote.address, port: remote.port, len: data.len() as u16 };
            let (head, body) = record.split_at_mut(net_api::DATAGRAM_HEADER);
            head.copy_from_slice(header.as_bytes());
            lost = data.read_at(0, &mut body[..data.len()]);
            if lost.is_ok() && udp.commit(space) && core.send_udp(at) {
                result = Ok(());
            }
        }
        self.look(client, place, Kind::Udp(at));
        lost.map_err(RequestError::lost)?;
        Ok(result?)
    }

    fn shutdown(&mut self, request: &Request<K>, socket: SocketId) -> Answer<()> {
        Ok(self.shutdown_for(request.caller, socket)?)
    }

    fn close(&mut self, request: &Request<K>, socket: SocketId, cut: u32) -> Answer<()> {
        Ok(self.close_for(request.caller, socket, cut != 0)?)
    }

    fn ping(&mut self, request: &Request<K>, host: Address, len: u16, sequence: u16) -> Answer<()> {
        Ok(self.ping_for(request.caller, host, len, sequence)?)
    }

    fn ping_reply(&mut self, request: &Request<K>) -> Answer<PingReply> {
        Ok(self.ping_reply_for(request.caller)?)
    }
}
