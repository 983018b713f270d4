//! Fills the kernel's table and the configuration pages from system and plan.

use abi::config::{self, Name, PoolInfo, TaskConfig};
use abi::image::{self, Access, Image, Platform, Privileges, Region};

use crate::plan::{Plan, Span};
use crate::system::{Console, MemoryAccess, System, Task};

/// Collects into a list of bounded length. Loading checked every length against these bounds.
fn bounded<T, const N: usize>(items: impl IntoIterator<Item = T>) -> heapless::Vec<T, N> {
    let mut list = heapless::Vec::new();
    for item in items {
        assert!(list.push(item).is_ok(), "more than {N} entries: loading should have refused them");
    }
    list
}

/// A name; loading checked its length.
fn name(text: &str) -> Name {
    Name::try_from(text).expect("loading refuses longer names")
}

/// An index of a task; there are at most [`abi::MAX_TASKS`].
fn index(task: usize) -> u8 {
    u8::try_from(task).expect("loading refuses more tasks")
}

impl Plan {
    /// The kernel's table; `entries` are the tasks' first instructions.
    ///
    /// # Panics
    /// If there are not as many entries as tasks, or the plan is for another system.
    #[must_use]
    pub fn image(&self, system: &System, entries: &[u64]) -> Image {
        assert_eq!(entries.len(), system.tasks.len(), "an entry for each task");
        let tasks = system.tasks.iter().enumerate();
        Image {
            platform: self.platform(system),
            tasks: bounded(tasks.map(|(task, decl)| self.task(system, task, decl, entries[task]))),
            interrupts: bounded(system.interrupts.iter().map(|interrupt| image::Interrupt {
                number: interrupt.number,
                task: index(interrupt.task),
                mask: interrupt.mask,
            })),
            pools: bounded(system.pools.iter().zip(&self.pools).map(|(pool, span)| image::Pool {
                owner: index(pool.owner),
                returned: pool.returned,
                base: span.base,
                count: pool.frames.value,
                holders: bounded(pool.holders.iter().map(|&(task, quota)| (index(task), quota))),
                quiesce: bounded(pool.quiesce.iter().cloned()),
            })),
            supervisor: (index(system.supervisor.0), system.supervisor.1),
        }
    }

    fn platform(&self, system: &System) -> Platform {
        let board = &system.board;
        let Console { data, status, full, init } = &board.console;
        Platform {
            ram: (board.ram.base, board.ram.size.value),
            tables: (self.page_tables.base, self.page_tables.size),
            interrupt_controller: bounded(board.interrupt_controller.iter().copied()),
            timer_interrupt: board.timer_interrupt.value,
            console: image::Console { data: *data, status: *status, full: *full, init: bounded(init.iter().copied()) },
        }
    }

    fn task(&self, system: &System, task: usize, decl: &Task, entry: u64) -> image::Task {
        let place = &self.tasks[task];
        image::Task {
            name: name(&decl.name.value),
            entry,
            stack_top: place.stack.end(),
            guard: place.guard,
            priority: decl.priority,
            floating_point: decl.floating_point,
            slots: decl.slots.iter().fold(0, |bits, (_, target)| bits | 1 << target),
            notifies: bounded(masks(decl)),
            privileges: decl.privileges,
            regions: self.regions(system, task, decl),
        }
    }

    /// Memory of a task, most used first.
    fn regions(&self, system: &System, task: usize, decl: &Task) -> heapless::Vec<Region, { image::MAX_REGIONS }> {
        let place = &self.tasks[task];
        let data = Access::READ | Access::WRITE;
        let own = [
            (place.stack, data),
            (place.data, data),
            (place.rodata, Access::READ),
            (place.text, Access::READ | Access::EXECUTE),
            (place.config, Access::READ),
        ];
        let windows = self.windows_of(system, task).map(|(_, span)| (span, data));
        let memory = decl.memory.iter().zip(&place.memory).map(|(memory, span)| match memory.access {
            MemoryAccess::Cached => (*span, data),
            MemoryAccess::Uncached => (*span, data | Access::UNCACHED),
        });
        let registers =
            decl.peripherals.iter().map(|own| (Span { base: own.base, size: own.size }, data | Access::DEVICE));
        let regions = own.into_iter().chain(windows).chain(memory).chain(registers);
        let regions = regions.filter(|(span, _)| span.size > 0);
        bounded(regions.map(|(span, access)| Region { base: span.base, size: span.size, access }))
    }

    /// The other task and the place of each window of a task.
    fn windows_of<'a>(&'a self, system: &'a System, task: usize) -> impl Iterator<Item = (usize, Span)> + 'a {
        system.windows.iter().zip(&self.windows).filter_map(move |(window, span)| {
            let other = if window.owner == task { window.peer } else { window.owner };
            (window.owner == task || window.peer == task).then_some((other, *span))
        })
    }

    /// What goes into the configuration page of a task.
    ///
    /// # Panics
    /// If the plan is for another system.
    #[must_use]
    pub fn task_config(&self, system: &System, task: usize) -> TaskConfig {
        let decl = &system.tasks[task];
        let registers = decl.peripherals.iter();
        let memory =
            decl.memory.iter().zip(&self.tasks[task].memory).map(|(memory, span)| (memory.name.as_str(), *span));
        let windows =
            self.windows_of(system, task).map(|(other, span)| (system.tasks[other].name.value.as_str(), span));
        let all = if decl.privileges.contains(Privileges::STATS) { &system.tasks[..] } else { &[] };
        TaskConfig {
            name: name(&decl.name.value),
            slots: bounded(decl.slots.iter().map(|(slot, target)| (name(slot), index(*target)))),
            notifies: bounded(decl.notifies.iter().map(|(own, target, mask)| (name(own), index(*target), *mask))),
            notifications: bounded(decl.notifications.iter().enumerate().map(|(bit, own)| (name(own), 1 << bit))),
            peripherals: bounded(registers.map(|own| config::Peripheral {
                name: name(&own.name),
                base: own.base,
                size: own.size,
            })),
            memory: bounded(memory.chain(windows).map(|(own, span)| config::Memory {
                name: name(own),
                base: span.base,
                size: span.size,
            })),
            pools: self.pools_of(system, task),
            values: bounded(decl.values.iter().map(|(key, value)| (name(key), value.clone()))),
            tasks: bounded(all.iter().map(|other| name(&other.name.value))),
        }
    }

    /// Pools that a task owns or may hold frames of, in the order of the kernel's table.
    fn pools_of(&self, system: &System, task: usize) -> heapless::Vec<PoolInfo, 4> {
        let mut first = 0;
        let mut pools = heapless::Vec::new();
        for (pool, span) in system.pools.iter().zip(&self.pools) {
            if pool.owner == task || pool.holders.iter().any(|&(holder, _)| holder == task) {
                let name = name(&system.tasks[pool.owner].name.value);
                let info = PoolInfo { name, base: span.base, first, count: pool.frames.value };
                assert!(pools.push(info).is_ok(), "loading should have refused so many pools");
            }
            first += pool.frames.value;
        }
        pools
    }
}

/// What a task may post, one mask per target.
fn masks(decl: &Task) -> Vec<(u8, u32)> {
    let mut masks: Vec<(u8, u32)> = Vec::new();
    for &(_, target, mask) in &decl.notifies {
        let target = index(target);
        match masks.iter_mut().find(|(known, _)| *known == target) {
            Some((_, bits)) => *bits |= mask,
            None => masks.push((target, mask)),
        }
    }
    masks
}
