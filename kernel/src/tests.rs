//! The kernel on a machine made of vectors.

extern crate std;

mod calls;
mod random;

use std::collections::BTreeSet;
use std::vec::Vec;

use abi::call::Call;
use abi::frame::Direction;
use abi::image::{self, Access, Pool, Privileges, Region};
use abi::{PAGE_SIZE, TaskId};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Context, Kernel, Machine, Sample};

/// Each task owns this much memory, one after the other from address 0.
const TASK_MEMORY: usize = 0x1000;
/// Frames start here.
const POOL: usize = 0x10_0000;
const FRAMES: u16 = 8;

#[derive(Clone, Default)]
struct Registers {
    number: usize,
    values: [usize; 8],
    vectors: u32,
}

impl Context for Registers {
    const CLEAR: Self = Self { number: 0, values: [0; 8], vectors: 0 };

    fn reset(&mut self, _: usize, _: usize) {
        *self = Self::CLEAR;
    }
    fn call_number(&self) -> usize {
        self.number
    }
    fn argument(&self, index: usize) -> usize {
        self.values[index]
    }
    fn set_result(&mut self, index: usize, value: usize) {
        self.values[index] = value;
    }
    fn program_counter(&self) -> usize {
        0
    }
    fn stack_pointer(&self) -> usize {
        0
    }
}

#[derive(Default)]
struct Mock {
    ram: Vec<u8>,
    mapped: BTreeSet<(usize, usize)>,
    ticks: u64,
    alarm: Option<u64>,
    enabled: BTreeSet<u32>,
    quiesced: usize,
    vectors: u32,
    vectors_enabled: bool,
}

impl Machine for Mock {
    type Context = Registers;

    fn load<T: FromBytes>(&self, address: usize) -> T {
        T::read_from_bytes(&self.ram[address..address + size_of::<T>()]).expect("right size")
    }
    fn store<T: IntoBytes + Immutable>(&mut self, address: usize, value: &T) {
        self.write_bytes(address, value.as_bytes());
    }
    fn copy(&mut self, from: usize, to: usize, len: usize) {
        if len > 0 {
            self.ram.copy_within(from..from + len, to);
        }
    }
    fn read_bytes(&self, address: usize, to: &mut [u8]) {
        to.copy_from_slice(&self.ram[address..address + to.len()]);
    }
    fn write_bytes(&mut self, address: usize, from: &[u8]) {
        self.ram[address..address + from.len()].copy_from_slice(from);
    }
    fn remap(&mut self, from: Option<usize>, to: Option<usize>, pages: impl Iterator<Item = usize> + Clone) {
        for address in pages.map(|page| page * PAGE_SIZE) {
            if let Some(from) = from {
                assert!(self.mapped.remove(&(from, address)), "was not mapped");
            }
            if let Some(to) = to {
                assert!(self.mapped.insert((to, address)), "mapped twice");
            }
        }
    }
    fn unmap_all(&mut self, task: usize) {
        self.mapped.retain(|&(holder, _)| holder != task);
    }
    fn release_to_device(&mut self, _: usize, len: usize, _: Direction) -> usize {
        len.div_ceil(64)
    }
    fn acquire_from_device(&mut self, _: usize, len: usize) -> usize {
        len.div_ceil(64)
    }
    fn finish_maintenance(&mut self) {}
    fn quiesce(&mut self, _: &Pool) -> bool {
        self.quiesced += 1;
        true
    }
    fn sample(&self) -> Sample {
        Sample { ticks: self.ticks, instructions: self.ticks as u32 }
    }
    fn ticks(&self) -> u64 {
        self.ticks
    }
    fn tick_rate(&self) -> u64 {
        1000
    }
    fn set_alarm(&mut self, deadline: Option<u64>) {
        self.alarm = deadline;
    }
    fn prepare_interrupt(&mut self, _: u32) {}
    fn enable_interrupt(&mut self, number: u32, enable: bool) {
        if enable {
            self.enabled.insert(number);
        } else {
            self.enabled.remove(&number);
        }
    }
    fn switch(&mut self, _: usize, vectors: bool) {
        self.ticks += 1;
        self.vectors_enabled = vectors;
    }
    fn move_vectors(&mut self, save: Option<&mut Registers>, load: &Registers) {
        if let Some(save) = save {
            save.vectors = self.vectors;
        }
        self.vectors = load.vectors;
    }
    fn log(&mut self, _: &[u8]) {}
    fn power(&mut self, _: bool) -> ! {
        panic!("power")
    }
}

/// Tasks of the test system, by index.
const SUPERVISOR: usize = 0;
const DRIVER: usize = 1;
const SERVER: usize = 2;
const CLIENT: usize = 3;
const OTHER: usize = 4;
const IDLE: usize = 5;
const TASKS: usize = 6;

const FAULT_BIT: u32 = 1;
const RETURNED_BIT: u32 = 1 << 4;
const IRQ: u32 = 40;

fn task(index: usize, priority: u8, slots: u32) -> image::Task {
    let base = (index * TASK_MEMORY) as u64;
    image::Task {
        name: heapless::String::new(),
        entry: 0,
        stack_top: 0,
        guard: 0xdead_0000,
        priority,
        floating_point: index != DRIVER,
        slots,
        notifies: heapless::Vec::new(),
        privileges: Privileges::all(),
        regions: [Region { base, size: TASK_MEMORY as u64, access: Access::READ | Access::WRITE }]
            .into_iter()
            .collect(),
    }
}

/// A supervisor, a driver with a pool that server and client may hold, a server, two clients of equal
/// priority, and an idle task. All but the idle task start by waiting for nothing.
fn system() -> Kernel<Mock> {
    let mut kernel = Kernel::new(Mock { ram: std::vec![0; TASKS * TASK_MEMORY], ..Mock::default() });
    let slots = |targets: &[usize]| targets.iter().fold(0, |mask, target| mask | 1 << target);
    let mut server = task(SERVER, 2, slots(&[DRIVER]));
    server.notifies.push((CLIENT as u8, 0xf)).expect("room");
    let tasks = [
        task(SUPERVISOR, 0, 0),
        task(DRIVER, 1, 0),
        server,
        task(CLIENT, 3, slots(&[SERVER, DRIVER])),
        task(OTHER, 3, slots(&[SERVER])),
        task(IDLE, 9, 0),
    ];
    for task in tasks {
        kernel.add_task(task).expect("room");
    }
    kernel.add_interrupt(image::Interrupt { number: IRQ, task: DRIVER as u8, mask: 2 }).expect("room");
    let pool = Pool {
        owner: DRIVER as u8,
        returned: RETURNED_BIT,
        base: POOL as u64,
        count: FRAMES,
        holders: [(SERVER as u8, FRAMES), (CLIENT as u8, 2)].into_iter().collect(),
        quiesce: heapless::Vec::new(),
    };
    kernel.add_pool(&pool).expect("valid pool");
    kernel.start_all((SUPERVISOR as u8, FAULT_BIT)).expect("valid image");
    for _ in 0..TASKS - 1 {
        // The highest ready task waits: in this order, each in turn.
        let me = kernel.current();
        recv(&mut kernel, me, 0xff, 0);
    }
    assert_eq!(kernel.current(), IDLE);
    kernel
}

/// Makes a task ready and current, as if an event had woken it alone.
fn run(kernel: &mut Kernel<Mock>, index: usize) {
    kernel.post(index, 0x80);
    kernel.reschedule();
    assert_eq!(kernel.current(), index, "woken task runs");
}

fn call(kernel: &mut Kernel<Mock>, me: usize, call: Call, values: [usize; 8]) {
    assert_eq!(kernel.current(), me, "only the current task makes calls");
    let context = kernel.context_mut();
    (context.number, context.values) = (call as usize, values);
    kernel.system_call();
}

fn results(kernel: &Kernel<Mock>, index: usize) -> [usize; 8] {
    kernel.tasks[index].context.values
}

/// Address of a task's memory.
const fn memory(index: usize) -> usize {
    index * TASK_MEMORY
}

// Layout of a task's memory in these tests.
const BUFFER: usize = 0x100;
const REPLY: usize = 0x300;
const ARGS: usize = 0x500;
const EXTRA: usize = 0x600;
const LEASES: usize = 0x700;
const LIST: usize = 0x800;
const LIST_IN: usize = 0xa00;

fn put_words(kernel: &mut Kernel<Mock>, address: usize, words: &[usize]) {
    kernel.machine.write_bytes(address, words.as_bytes());
}

fn recv(kernel: &mut Kernel<Mock>, me: usize, mask: usize, from: usize) {
    let seen = kernel.tasks[me].notifications.sequence() as usize;
    put_words(kernel, memory(me) + ARGS, &[memory(me) + BUFFER, 0x100, mask, seen, from, memory(me) + LIST_IN, 8]);
    call(kernel, me, Call::Recv, [memory(me) + ARGS, 0, 0, 0, 0, 0, 0, 0]);
}

fn send(kernel: &mut Kernel<Mock>, me: usize, target: TaskId, operation: usize, len: usize, extra: bool) {
    let extra = if extra { memory(me) + EXTRA } else { 0 };
    let values = [target.0 as usize, operation, memory(me) + BUFFER, len, memory(me) + REPLY, 0x100, extra, 0];
    call(kernel, me, Call::Send, values);
}

fn id(kernel: &Kernel<Mock>, index: usize) -> TaskId {
    kernel.tasks[index].id(index)
}

/// What must hold between any two kernel entries.
fn check_invariants(kernel: &Kernel<Mock>) {
    use crate::State;
    for (index, task) in kernel.tasks.iter().enumerate() {
        let ready = kernel.ready & (1 << task.rank) != 0;
        assert_eq!(ready, task.state == State::Runnable, "task {index} is {:?}", task.state);
        for (other, sender) in kernel.tasks.iter().enumerate() {
            let listed = task.senders & (1 << sender.rank) != 0;
            assert_eq!(listed, sender.state == State::Sending(index as u8), "sender {other} of {index}");
        }
        if task.state == State::Receiving {
            let wanted = task.notifications.pending() & task.receive.mask;
            assert_eq!(wanted, 0, "task {index} sleeps on a notification that it waits for");
        }
    }
    let best = kernel.tasks.iter().filter(|task| task.state == State::Runnable).map(|task| task.priority).min();
    assert_eq!(Some(kernel.tasks[kernel.current].priority), best, "the highest ready priority runs");
    let census = kernel.ledger.census(0).expect("the pool");
    assert_eq!(census.owner + census.lent + census.device + census.quarantined, FRAMES);
    let held: BTreeSet<(usize, usize)> = (0..usize::from(FRAMES))
        .filter_map(|frame| match kernel.ledger.holder(frame) {
            Some(ledger::Holder::Task(task)) if usize::from(task) != DRIVER => {
                Some((task.into(), POOL + frame * PAGE_SIZE))
            }
            _ => None,
        })
        .collect();
    assert_eq!(kernel.machine.mapped, held, "mapped exactly for the holder");
}
