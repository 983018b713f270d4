//! Every interleaving of three tasks that pass four frames around, wait, and may crash at each step.
//!
//! Breadth-first over clones of the shipping [`Ledger`] and [`Notifications`], one kernel entry to a step. The
//! device finishes frames and interrupts the driver; driver, net and client hand frames to each other, and post to
//! the receiver in a step of its own. In between, anything else may happen. A task that finds no work waits.
//!
//! What must hold in every state: a blocked task has no bit pending that it waits for, and no work,
//! unless somebody still owes it a post.
//!
//! Two states are one if they differ only in the names of frames or in absolute counts.

use std::collections::{HashSet, VecDeque};

use abi::FrameDesc;
use ledger::wait::Notifications;
use ledger::{Event, Holder, Ledger};

const DRIVER: usize = 0;
const NET: usize = 1;
const CLIENT: usize = 2;
const FRAMES: usize = 4;
const BIT: u32 = 1;

/// What a task does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Next {
    /// Looks for work and does one piece of it.
    Look,
    /// Posts to the tasks in the set.
    Post(u8),
    /// Receives something else first, and may take the bit there without looking for work.
    Nested,
    /// Waits, with the count that it had before it looked.
    Wait,
    /// Waits until woken.
    Blocked,
    /// Dead. It owed these posts, and its next instance makes up for them.
    Dead(u8),
}

#[derive(Clone, Debug)]
struct Task {
    next: Next,
    seen: u32,
    notifications: Notifications,
}

/// How tasks wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// With the count from before they looked.
    Careful,
    /// With the newest count, which throws away what the count is for.
    Careless,
}

#[derive(Clone)]
struct World {
    ledger: Ledger<4>,
    /// The driver's ring: what it armed, by frame.
    ring: [FrameDesc; FRAMES],
    /// Frames that the device has finished.
    finished: [bool; FRAMES],
    tasks: [Task; 3],
}

/// A state without names of frames and absolute counts.
type Key = ([(u8, bool); FRAMES], [(Next, bool, u32); 3]);

impl World {
    fn new() -> Self {
        let mut ledger = Ledger::new();
        ledger.add_pool(DRIVER as u8, FRAMES as u16, &[(NET as u8, 4), (CLIENT as u8, 4)]).expect("a good image");
        let task = Task { next: Next::Look, seen: 0, notifications: Notifications::new() };
        Self { ledger, ring: Default::default(), finished: [false; FRAMES], tasks: [task.clone(), task.clone(), task] }
    }

    fn key(&self) -> Key {
        let mut frames = std::array::from_fn(|index| {
            let holder = match self.ledger.holder(index).expect("in the pool") {
                Holder::Task(task) => task,
                Holder::Device => 10,
                Holder::Quarantine => 11,
            };
            (holder, self.finished[index])
        });
        frames.sort_unstable();
        let tasks = self.tasks.each_ref().map(|task| {
            // A count matters only to those who will compare it.
            let moved = task.next != Next::Blocked && task.seen != task.notifications.sequence();
            (task.next, moved, task.notifications.pending())
        });
        (frames, tasks)
    }

    fn held(&self, task: usize) -> Vec<FrameDesc> {
        let desc = |handle| FrameDesc { handle, ..FrameDesc::default() };
        self.ledger.held_by(task as u8, 0, 0).map(desc).collect()
    }

    fn has_work(&self, task: usize) -> bool {
        self.ledger.held(task as u8) > 0 || task == DRIVER && self.finished.contains(&true)
    }

    /// The kernel's post.
    fn post(&mut self, to: usize) {
        let task = &mut self.tasks[to];
        task.notifications.post(BIT);
        if task.next == Next::Blocked
            && let Some(woken) = task.notifications.take(BIT)
        {
            task.seen = woken.sequence;
            task.next = Next::Look;
        }
    }

    /// Hands frames over, after which a post is due.
    fn give(&self, from: usize, to: usize, list: &[FrameDesc]) -> Self {
        let mut world = self.clone();
        let mut list = list.to_vec();
        world.ledger.transfer_in_place(from as u8, to as u8, &mut list, 32).expect("held");
        world.tasks[from].next = Next::Post(1 << to);
        world
    }

    /// What a task can do when it looks for work.
    fn look(&self, task: usize) -> Vec<Self> {
        let held = self.held(task);
        if held.is_empty() && !(task == DRIVER && self.finished.contains(&true)) {
            let mut nested = self.clone();
            nested.tasks[task].next = Next::Nested;
            let mut wait = self.clone();
            wait.tasks[task].next = Next::Wait;
            return vec![nested, wait];
        }
        let mut worlds = Vec::new();
        if task == DRIVER {
            worlds.extend(self.drive(&held));
        }
        if !held.is_empty() {
            for to in (0..3).filter(|&to| to != task) {
                worlds.push(self.give(task, to, &held[..1]));
                worlds.push(self.give(task, to, &held));
            }
        }
        worlds
    }

    /// What the driver can do with its device.
    fn drive(&self, held: &[FrameDesc]) -> Vec<Self> {
        let mut worlds = Vec::new();
        if let Some(index) = self.finished.iter().position(|&finished| finished) {
            let mut world = self.clone();
            world.ledger.complete(DRIVER as u8, &[self.ring[index]], |_| {}).expect("the device holds it");
            world.finished[index] = false;
            worlds.push(world);
        }
        if !held.is_empty() {
            let mut world = self.clone();
            let ring = &mut world.ring;
            world.ledger.arm(DRIVER as u8, held, |moved| ring[moved.index] = *moved.desc).expect("held");
            worlds.push(world);
        }
        worlds
    }

    /// All that a task can do next, crashes aside.
    fn run(&self, task: usize, protocol: Protocol) -> Vec<Self> {
        let mut world = self.clone();
        let this = &mut world.tasks[task];
        match this.next {
            Next::Look => return self.look(task),
            Next::Post(0) => this.next = Next::Look,
            Next::Post(to) => {
                this.next = Next::Post(to & (to - 1));
                world.post(to.trailing_zeros() as usize);
            }
            Next::Nested => {
                let _forgotten = this.notifications.poll(BIT, this.notifications.sequence());
                this.next = Next::Wait;
            }
            Next::Wait => {
                let seen = match protocol {
                    Protocol::Careful => this.seen,
                    Protocol::Careless => this.notifications.sequence(),
                };
                match this.notifications.poll(BIT, seen) {
                    None => this.next = Next::Blocked,
                    Some(woken) => {
                        this.seen = woken.sequence;
                        this.next = Next::Look;
                    }
                }
            }
            Next::Blocked => return Vec::new(),
            Next::Dead(owed) => {
                // The kernel quiesces before it restarts.
                world.ledger.quiesced(0);
                let this = &mut world.tasks[task];
                *this = Task { next: Next::Post(owed), seen: 0, notifications: Notifications::new() };
            }
        }
        vec![world]
    }

    fn crash(&self, task: usize) -> Option<Self> {
        let owed = match self.tasks[task].next {
            Next::Dead(_) => return None,
            Next::Post(owed) => owed,
            _ => 0,
        };
        let mut world = self.clone();
        world.tasks[task].next = Next::Dead(owed);
        let mut notices = Vec::new();
        world.ledger.task_died(task as u8, |event| {
            if let Event::Notice { owner, .. } = event {
                notices.push(usize::from(owner));
            }
        });
        if task == DRIVER {
            world.finished = [false; FRAMES];
        }
        for owner in notices {
            world.post(owner);
        }
        Some(world)
    }

    /// The device finishes a frame and interrupts.
    fn finish(&self, index: usize) -> Option<Self> {
        if self.ledger.holder(index) != Some(Holder::Device) || self.finished[index] {
            return None;
        }
        let mut world = self.clone();
        world.finished[index] = true;
        world.post(DRIVER);
        Some(world)
    }

    fn successors(&self, protocol: Protocol) -> Vec<Self> {
        let mut worlds: Vec<_> = (0..3).flat_map(|task| self.run(task, protocol)).collect();
        worlds.extend((0..3).filter_map(|task| self.crash(task)));
        worlds.extend((0..FRAMES).filter_map(|index| self.finish(index)));
        worlds
    }

    /// A task that waits for what has happened already.
    fn lost_wake_up(&self) -> Option<usize> {
        let owed = self.tasks.iter().fold(0, |owed, task| match task.next {
            Next::Post(to) | Next::Dead(to) => owed | to,
            _ => owed,
        });
        (0..3).find(|&index| {
            let task = &self.tasks[index];
            let pending = task.notifications.pending() & BIT != 0;
            let work = self.has_work(index) && owed & 1 << index == 0;
            task.next == Next::Blocked && (pending || work)
        })
    }

    fn check_frames(&self) {
        let census = self.ledger.census(0).expect("pool 0");
        let sum = census.owner + census.lent + census.device + census.quarantined;
        assert_eq!(usize::from(sum), FRAMES);
        assert_eq!(census.owner, self.ledger.held(DRIVER as u8));
        assert_eq!(census.lent, self.ledger.held(NET as u8) + self.ledger.held(CLIENT as u8));
    }
}

/// Visits all states; returns how many, or the first in which a task sleeps through.
fn explore(protocol: Protocol) -> Result<usize, Key> {
    let start = World::new();
    let mut known = HashSet::from([start.key()]);
    let mut queue = VecDeque::from([start]);
    while let Some(world) = queue.pop_front() {
        world.check_frames();
        if world.lost_wake_up().is_some() {
            return Err(world.key());
        }
        for next in world.successors(protocol) {
            if known.insert(next.key()) {
                queue.push_back(next);
            }
        }
    }
    Ok(known.len())
}

#[test]
fn no_wake_up_is_lost() {
    let states = explore(Protocol::Careful).expect("nobody sleeps through");
    println!("{states} states");
    assert!(states > 10_000, "only {states} states: the model is stuck");
}

#[test]
fn without_the_count_one_is_lost() {
    let (_, tasks) = explore(Protocol::Careless).expect_err("the exploration would not notice");
    assert!(tasks.iter().any(|task| task.0 == Next::Blocked));
}
