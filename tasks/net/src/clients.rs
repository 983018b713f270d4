//! Whose socket is what: clients, their windows, and the places that their socket ids name.
//!
//! A client is known by its task index, an instance of it by its generation. Everything that an older instance left is closed as
//! soon as that is noticed: at the next request of the new instance, or at the next tick.
//!
//! Waking up: [`Clients::offer`] is called for each change of a socket, but posts one notification only, and none again until the client
//! has looked (a step or `events`). The kernel keeps the bit until the client takes it, so looking and then waiting loses nothing.

use abi::TaskId;
use net_api::{NetError, PingReply, SocketId, Step, state};

use crate::window::Window;

/// Most clients with a window.
pub const CLIENTS: usize = 8;
/// Echo requests of one client on their way, or answered and not fetched.
pub const PINGS: usize = 16;

/// What a place is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Nothing.
    Free,
    /// A listener.
    Listener(Listener),
    /// A connection: index in [`crate::tcp::Tcp`].
    Tcp(usize),
    /// A UDP socket: index in [`crate::udp::Udp`].
    Udp(usize),
}

/// A port with connections to come. It has no buffers itself: they are taken when a connection is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listener {
    /// Port.
    pub port: u16,
    /// Most connections that wait.
    pub backlog: u32,
    /// Buffer of each connection.
    pub receive: usize,
    /// Buffer of each connection.
    pub send: usize,
    /// As in [`net_api::Options`].
    pub flags: u32,
}

/// One place.
#[derive(Clone, Copy, Debug)]
struct Place {
    kind: Kind,
    client: usize,
    usage: u32,
    /// What the client was told last.
    told: Step,
    /// Bytes that its send buffer takes at most.
    capacity: u32,
    /// True from when the client looked to when it is told of news.
    armed: bool,
    /// True from when it is told to when it looks.
    news: bool,
}

/// One echo request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ping {
    /// None.
    Free,
    /// Sent: to whom, sequence number, and when in microseconds.
    Sent([u8; 4], u16, i64),
    /// Answered.
    Answered(PingReply),
}

/// One client.
#[derive(Debug)]
pub struct Client<'f> {
    /// Index of its task.
    pub task: u8,
    /// The instance that we serve.
    pub id: TaskId,
    /// Its notification for sockets.
    pub mask: u32,
    /// What is left of its window.
    pub window: Window<'f>,
    /// Its echo requests.
    pub pings: Pings,
}

/// Echo requests of one client, each at the place that its sequence number gives it.
#[derive(Clone, Copy, Debug)]
pub struct Pings {
    entries: [Ping; PINGS],
    /// Answered ones, as bits.
    answered: u16,
    /// Where to look first, so that answers are taken in the order of their requests.
    first: u32,
}

impl Pings {
    const NONE: Self = Self { entries: [Ping::Free; PINGS], answered: 0, first: 0 };

    const fn place(sequence: u16) -> usize {
        sequence as usize % PINGS
    }

    /// Notes a request, sent at `micros`. One that was there before is forgotten.
    pub const fn sent(&mut self, to: [u8; 4], sequence: u16, micros: i64) {
        let place = Self::place(sequence);
        self.entries[place] = Ping::Sent(to, sequence, micros);
        self.answered &= !(1 << place);
    }

    /// When the request that this answers was sent; `None` if there is none.
    #[must_use]
    pub fn sent_at(&self, from: [u8; 4], sequence: u16) -> Option<i64> {
        match self.entries[Self::place(sequence)] {
            Ping::Sent(to, sent, at) if to == from && sent == sequence => Some(at),
            _ => None,
        }
    }

    /// Notes an answer.
    pub const fn answer(&mut self, reply: PingReply) {
        let place = Self::place(reply.sequence);
        self.entries[place] = Ping::Answered(reply);
        self.answered |= 1 << place;
    }

    /// Takes an answer.
    pub const fn take(&mut self) -> Option<PingReply> {
        if self.answered == 0 {
            return None;
        }
        let place = (self.first + self.answered.rotate_right(self.first).trailing_zeros()) as usize % PINGS;
        self.answered &= !(1 << place);
        self.first = (place as u32 + 1) % PINGS as u32;
        match core::mem::replace(&mut self.entries[place], Ping::Free) {
            Ping::Answered(reply) => Some(reply),
            _ => None,
        }
    }

    /// Forgets all.
    pub const fn clear(&mut self) {
        *self = Self::NONE;
    }
}

/// All clients and places.
#[derive(Debug)]
pub struct Clients<'f> {
    clients: [Option<Client<'f>>; CLIENTS],
    places: [Place; SocketId::PLACES],
    /// By task index: client number, or none.
    by_task: [u8; abi::MAX_TASKS],
    /// Clients that a notification is to be posted to, as bits.
    posts: u32,
}

const NO_CLIENT: u8 = u8::MAX;

impl Default for Clients<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'f> Clients<'f> {
    /// No clients.
    #[must_use]
    pub fn new() -> Self {
        Self {
            clients: core::array::from_fn(|_| None),
            places: [Place {
                kind: Kind::Free,
                client: 0,
                usage: 0,
                told: Step {
                    state: 0,
                    cause: 0,
                    readable_offset: 0,
                    readable_len: 0,
                    writable_offset: 0,
                    writable_len: 0,
                    readable_total: 0,
                    unsent: 0,
                },
                capacity: 0,
                armed: false,
                news: false,
            }; SocketId::PLACES],
            by_task: [NO_CLIENT; abi::MAX_TASKS],
            posts: 0,
        }
    }

    /// Adds a client. False if there are too many, or the task has a window already.
    pub fn add(&mut self, id: TaskId, mask: u32, memory: &'f mut [u8]) -> bool {
        let Some(number) = self.clients.iter().position(Option::is_none) else {
            return false;
        };
        let Some(entry) = self.by_task.get_mut(id.index()) else {
            return false;
        };
        if *entry != NO_CLIENT {
            return false;
        }
        *entry = number as u8;
        self.clients[number] =
            Some(Client { task: id.index() as u8, id, mask, window: Window::new(memory), pings: Pings::NONE });
        true
    }

    /// Number of the client that a task is.
    ///
    /// # Errors
    /// [`NetError::NoWindow`] if it is none.
    #[inline]
    pub fn number(&self, task: TaskId) -> Result<usize, NetError> {
        match self.by_task.get(task.index()) {
            Some(&number) if number != NO_CLIENT => Ok(usize::from(number)),
            _ => Err(NetError::NoWindow),
        }
    }

    /// A client by number.
    #[inline]
    pub fn get(&mut self, number: usize) -> Option<&mut Client<'f>> {
        self.clients.get_mut(number)?.as_mut()
    }

    /// All clients with their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Client<'f>)> {
        self.clients.iter_mut().enumerate().filter_map(|(number, client)| Some((number, client.as_mut()?)))
    }

    /// Takes a free place for a client.
    ///
    /// # Errors
    /// [`NetError::TooMany`].
    pub fn open(&mut self, client: usize, kind: Kind, capacity: usize) -> Result<SocketId, NetError> {
        let at = self.places.iter().position(|place| place.kind == Kind::Free).ok_or(NetError::TooMany)?;
        let place = &mut self.places[at];
        place.kind = kind;
        place.client = client;
        place.told = Step::default();
        place.capacity = capacity as u32;
        place.armed = true;
        place.news = false;
        Ok(SocketId::new(at, place.usage))
    }

    /// True if a place is free.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.places.iter().any(|place| place.kind == Kind::Free)
    }

    /// What a socket id of this client names.
    ///
    /// # Errors
    /// [`NetError::BadSocket`] if it is not one, not any more, or another client's.
    #[inline]
    pub fn kind(&self, client: usize, socket: SocketId) -> Result<Kind, NetError> {
        match self.places.get(socket.place()) {
            Some(place)
                if place.client == client
                    && place.kind != Kind::Free
                    && SocketId::new(socket.place(), place.usage) == socket =>
            {
                Ok(place.kind)
            }
            _ => Err(NetError::BadSocket),
        }
    }

    /// Frees a place; ids of it are void from now on.
    pub fn close(&mut self, place: usize) {
        let place = &mut self.places[place];
        place.kind = Kind::Free;
        place.usage = place.usage.wrapping_add(1) & 0x00ff_ffff;
        place.news = false;
    }

    /// Places of a client: number and kind.
    pub fn places_of(&self, client: usize) -> impl Iterator<Item = (usize, Kind)> + '_ {
        self.places().filter(move |&(_, owner, _)| owner == client).map(|(at, _, kind)| (at, kind))
    }

    /// All places in use: number, client, kind.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize, Kind)> + '_ {
        self.places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.kind != Kind::Free)
            .map(|(at, place)| (at, place.client, place.kind))
    }

    /// The listener for a port: place, client, and what it wants.
    #[must_use]
    pub fn listener(&self, port: u16) -> Option<(usize, usize, Listener)> {
        self.places().find_map(|(at, client, kind)| match kind {
            Kind::Listener(listener) if listener.port == port => Some((at, client, listener)),
            _ => None,
        })
    }

    /// Notes what a client was told of a socket: it wants to hear of what comes after.
    #[inline]
    pub fn told(&mut self, place: usize, step: Step) {
        let place = &mut self.places[place];
        place.told = step;
        place.armed = true;
        place.news = false;
    }

    /// True if the client of a place wants to hear of news.
    #[inline]
    #[must_use]
    pub const fn is_armed(&self, at: usize) -> bool {
        self.places[at].armed
    }

    /// What the client was told last of a place.
    #[must_use]
    pub const fn told_last(&self, at: usize) -> &Step {
        &self.places[at].told
    }

    /// The client has looked at this place, and will again: it is not armed.
    pub const fn seen(&mut self, at: usize) {
        self.places[at].news = false;
    }

    /// No news of this place until [`Clients::told`]: its client is asking just now.
    pub const fn disarm(&mut self, at: usize) {
        self.places[at].armed = false;
    }

    /// Compares a socket with what its client was told, and plans a notification if that is worth one.
    #[inline]
    pub fn offer(&mut self, at: usize, now: &Step) {
        let place = &mut self.places[at];
        if !place.armed {
            return;
        }
        let told = &place.told;
        let room = |step: &Step| place.capacity.saturating_sub(step.unsent);
        // Room is news when it is half the buffer and was not, or when everything is gone: not each segment's worth.
        let half = place.capacity / 2;
        let more_room = now.state & state::MAY_SEND != 0
            && (room(now) >= half && room(told) < half || now.unsent == 0 && told.unsent != 0);
        if now.readable_total > told.readable_total || now.state != told.state || now.cause != told.cause || more_room {
            self.wake(at);
        }
    }

    /// Plans a notification for a place's client.
    pub fn wake(&mut self, at: usize) {
        let place = &mut self.places[at];
        place.armed = false;
        place.news = true;
        self.posts |= 1 << place.client;
    }

    /// Plans a notification for a client.
    pub const fn post_to(&mut self, client: usize) {
        self.posts |= 1 << client;
    }

    /// Takes the clients that a notification is planned for, as bits.
    #[inline]
    pub const fn take_posts(&mut self) -> u32 {
        core::mem::replace(&mut self.posts, 0)
    }

    /// Takes the places of a client that have news, as bits. They stay disarmed until looked at one by one.
    pub fn events(&mut self, client: usize) -> u32 {
        let mut events = 0;
        for (at, place) in self.places.iter_mut().enumerate() {
            if place.kind != Kind::Free && place.client == client && place.news {
                place.news = false;
                events |= 1 << at;
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TaskId = TaskId::new(3, 0);
    const TWO: TaskId = TaskId::new(4, 0);

    fn step(readable_total: u32, unsent: u32) -> Step {
        Step { readable_total, unsent, state: state::MAY_SEND, ..Step::default() }
    }

    fn posts(clients: &mut Clients<'_>) -> u32 {
        clients.take_posts().count_ones()
    }

    #[test]
    fn ids_are_of_one_client_and_one_use() {
        let (mut a, mut b) = ([0; 64], [0; 64]);
        let mut clients = Clients::new();
        assert!(clients.add(ONE, 1, &mut a));
        assert!(clients.add(TWO, 1, &mut b));
        let (one, two) = (clients.number(ONE).unwrap(), clients.number(TWO).unwrap());
        let socket = clients.open(one, Kind::Udp(0), 10).unwrap();
        assert_eq!(clients.kind(one, socket), Ok(Kind::Udp(0)));
        assert_eq!(clients.kind(two, socket), Err(NetError::BadSocket));
        for raw in [u32::MAX, 31, 32, 255, socket.0 + 0x100] {
            assert_eq!(clients.kind(one, SocketId(raw)), Err(NetError::BadSocket));
        }
        clients.close(socket.place());
        assert_eq!(clients.kind(one, socket), Err(NetError::BadSocket));
        assert_ne!(clients.open(one, Kind::Udp(0), 10), Ok(socket));
        assert_eq!(clients.number(TaskId::new(5, 0)), Err(NetError::NoWindow));
        assert_eq!(clients.number(TaskId(u32::MAX)), Err(NetError::NoWindow));
    }

    #[test]
    fn one_notification_until_the_client_looks() {
        let mut memory = [0; 64];
        let mut clients = Clients::new();
        clients.add(ONE, 1, &mut memory);
        let at = clients.open(0, Kind::Tcp(0), 1000).unwrap().place();
        clients.told(at, step(0, 0));
        clients.offer(at, &step(0, 0));
        assert_eq!(posts(&mut clients), 0);
        clients.offer(at, &step(100, 0));
        assert_eq!(posts(&mut clients), 1);
        clients.offer(at, &step(200, 0));
        assert_eq!(posts(&mut clients), 0);
        assert_eq!(clients.events(0), 1 << at);
        assert_eq!(clients.events(0), 0);
        // Looked and left it there: only more is news.
        clients.told(at, step(200, 0));
        clients.offer(at, &step(200, 0));
        assert_eq!(posts(&mut clients), 0);
        clients.offer(at, &step(201, 0));
        assert_eq!(posts(&mut clients), 1);
    }

    #[test]
    fn room_is_news_at_half_the_buffer() {
        let mut memory = [0; 64];
        let mut clients = Clients::new();
        clients.add(ONE, 1, &mut memory);
        let at = clients.open(0, Kind::Tcp(0), 1000).unwrap().place();
        clients.told(at, step(0, 1000));
        for unsent in (501..1000).rev() {
            clients.offer(at, &step(0, unsent));
        }
        assert_eq!(posts(&mut clients), 0);
        clients.offer(at, &step(0, 500));
        assert_eq!(posts(&mut clients), 1);
        clients.told(at, step(0, 300));
        clients.offer(at, &step(0, 100));
        assert_eq!(posts(&mut clients), 0);
        clients.offer(at, &step(0, 0));
        assert_eq!(posts(&mut clients), 1);
    }

    #[test]
    fn places_run_out() {
        let mut memory = [0; 64];
        let mut clients = Clients::new();
        clients.add(ONE, 1, &mut memory);
        for _ in 0..SocketId::PLACES {
            assert!(clients.open(0, Kind::Udp(0), 1).is_ok());
        }
        assert_eq!(clients.open(0, Kind::Udp(0), 1), Err(NetError::TooMany));
    }
}
