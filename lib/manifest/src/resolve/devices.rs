//! Peripherals, their interrupts, and the frame pools of those that use DMA.

use std::collections::BTreeMap;

use abi::image::{MAX_FRAMES, MAX_IRQS, MAX_POOLS, MAX_QUIESCE, Quiesce};

use super::{Resolver, Target};
use crate::app::{AppPool, AppTask};
use crate::diagnostic::Problem;
use crate::suggest::{list, suggest};
use crate::system::{At, BoardPeripheral, Interrupt, Peripheral, Pool, QuiesceStep};
use crate::task_manifest::{PeripheralDecl, PoolDecl, TaskManifest};

/// Most holders of a pool beside its owner.
const MAX_HOLDERS: usize = 8;

/// Most pools that one task may hold frames of.
const MAX_POOLS_PER_TASK: usize = 4;

/// What the tasks have of the board.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// By task.
    pub peripherals: Vec<Vec<Peripheral>>,
    pub interrupts: Vec<Interrupt>,
    pub pools: Vec<Pool>,
}

impl Resolver<'_> {
    /// Binds peripherals, and what hangs on them.
    pub(super) fn devices(&self, manifests: &BTreeMap<String, Option<TaskManifest>>) -> Devices {
        self.check_drivers(manifests);
        let mut devices = Devices::default();
        // Peripheral of the board, and the task that has it.
        let mut owners: Vec<(String, usize)> = Vec::new();
        for index in 0..self.members.len() {
            let mut own = Vec::new();
            for (decl, name) in self.bindings(index) {
                let Some(peripheral) = self.board.board.peripherals.get(&name.value) else { continue };
                if let Some((_, other)) = owners.iter().find(|(owned, _)| *owned == name.value) {
                    self.log.add(self.taken_twice(&name, peripheral, *other, index));
                    continue;
                }
                owners.push((name.value.clone(), index));
                devices.interrupts.extend(self.interrupt(index, decl, peripheral, &name));
                own.push(Peripheral {
                    name: decl.name.value.clone(),
                    board_name: name.value,
                    base: peripheral.base,
                    size: peripheral.size,
                });
            }
            devices.peripherals.push(own);
        }
        if devices.interrupts.len() > MAX_IRQS {
            let label = format!("{} interrupts", devices.interrupts.len());
            self.log.add(
                Problem::new(&self.app.at, "too many interrupts", label)
                    .help(format!("at most {MAX_IRQS} are possible")),
            );
        }
        devices.pools = self.pools(&devices.peripherals);
        devices
    }

    /// Checks that each driver that board.toml names drives that kind of peripheral.
    fn check_drivers(&self, manifests: &BTreeMap<String, Option<TaskManifest>>) {
        for (name, peripheral) in &self.board.board.peripherals {
            let Some(driver) = &peripheral.driver else { continue };
            let Some(Some(manifest)) = manifests.get(driver) else { continue };
            let kinds: Vec<&str> = manifest.peripherals.iter().map(|decl| decl.kind.value.as_str()).collect();
            if !kinds.contains(&peripheral.kind.as_str()) {
                let message = format!("`{driver}` does not drive a `{}`", peripheral.kind);
                let label = format!("`{name}` is of the kind `{}`", peripheral.kind);
                let help = if kinds.is_empty() {
                    format!("`{driver}` drives nothing; name another driver")
                } else {
                    format!("`{driver}` drives {}; name another driver, or correct `kind`", list(&kinds))
                };
                self.log.add(Problem::new(&peripheral.at, message, label).help(help));
            }
        }
    }

    /// Peripheral of the board for each that the task declares.
    fn bindings(&self, index: usize) -> Vec<(&PeripheralDecl, At<String>)> {
        let member = &self.members[index];
        let Some(manifest) = member.manifest else { return Vec::new() };
        for (name, _) in &member.app.peripherals {
            if !manifest.peripherals.iter().any(|decl| decl.name.value == name.value) {
                let known = manifest.peripherals.iter().map(|decl| decl.name.value.as_str()).collect();
                self.unknown(name, "peripheral", known, member.package);
            }
        }
        // The role's peripheral goes to the first of its kind that app.toml does not bind itself.
        let role = member.app.role.as_ref().and_then(|role| {
            let name = self.board.board.roles.get(&role.value)?;
            Some(At { value: name.value.clone(), at: role.at.clone() })
        });
        let mut role = role.and_then(|name| Some((self.board.board.peripherals.get(&name.value)?.kind.clone(), name)));
        let mut bindings = Vec::new();
        for decl in &manifest.peripherals {
            let explicit = member.app.peripherals.iter().find(|(name, _)| name.value == decl.name.value);
            if let Some((_, target)) = explicit {
                if self.check_kind(decl, target) {
                    bindings.push((decl, target.clone()));
                }
            } else if let Some((_, name)) = role.take_if(|(kind, _)| *kind == decl.kind.value) {
                bindings.push((decl, name));
            } else if member.app.role.is_none() || !member.app.peripherals.is_empty() {
                self.log.add(self.unbound(member.app, decl));
            }
        }
        bindings
    }

    fn unbound(&self, task: &AppTask, decl: &PeripheralDecl) -> Problem {
        let fitting = self.board.board.peripherals.iter().filter(|(_, peripheral)| peripheral.kind == decl.kind.value);
        let fitting: Vec<&str> = fitting.map(|(name, _)| name.as_str()).collect();
        let message = format!("the task `{}` drives a `{}`, but has none", task.name.value, decl.kind.value);
        let help = if fitting.is_empty() {
            format!("the board `{}` has no such peripheral", self.board.board.name)
        } else {
            format!(
                "name its `role`, or bind it: peripherals = {{ {} = \"...\" }}; fitting: {}",
                decl.name.value,
                list(&fitting)
            )
        };
        Problem::new(&task.name.at, message, format!("`{}` is unbound", decl.name.value)).help(help)
    }

    fn check_kind(&self, decl: &PeripheralDecl, target: &At<String>) -> bool {
        let peripherals = &self.board.board.peripherals;
        let Some(peripheral) = peripherals.get(&target.value) else {
            let message = format!("the board `{}` has no peripheral `{}`", self.board.board.name, target.value);
            let help = suggest(&target.value, peripherals.keys().map(String::as_str), "peripherals");
            self.log.add(Problem::new(&target.at, message, "unknown peripheral").help(help));
            return false;
        };
        if peripheral.kind != decl.kind.value {
            let fitting = peripherals.iter().filter(|(_, other)| other.kind == decl.kind.value);
            let fitting: Vec<&str> = fitting.map(|(name, _)| name.as_str()).collect();
            let message =
                format!("`{}` is a `{}`, and the driver is for a `{}`", target.value, peripheral.kind, decl.kind.value);
            let help = if fitting.is_empty() {
                "the board has none of that kind".to_owned()
            } else {
                format!("of that kind: {}", list(&fitting))
            };
            self.log.add(Problem::new(&target.at, message, "the kinds do not match").help(help));
            return false;
        }
        true
    }

    fn taken_twice(&self, name: &At<String>, peripheral: &BoardPeripheral, first: usize, second: usize) -> Problem {
        let (one, other) = (&self.members[first].app.name.value, &self.members[second].app.name.value);
        let what = match &peripheral.interrupt {
            Some(number) => format!("`{}` and its interrupt {} are", name.value, number.value),
            None => format!("`{}` is", name.value),
        };
        let who = if first == second { format!("twice by `{one}`") } else { format!("by `{one}` and by `{other}`") };
        let message = format!("{what} taken {who}");
        Problem::new(&name.at, message, "taken again here")
            .also(self.place(first), "taken by this task")
            .help("a peripheral has one driver")
    }

    fn interrupt(
        &self,
        task: usize,
        decl: &PeripheralDecl,
        peripheral: &BoardPeripheral,
        name: &At<String>,
    ) -> Option<Interrupt> {
        let notification = decl.interrupt.as_ref()?;
        let Some(number) = &peripheral.interrupt else {
            let member = &self.members[task];
            let message =
                format!("`{}` waits for the interrupt of `{}`, which has none", member.app.name.value, name.value);
            let help = format!(
                "[peripherals.{}] interrupt = NUMBER in boards/{}/board.toml",
                name.value, self.board.board.name
            );
            self.log.add(Problem::new(&peripheral.at, message, "`interrupt` is missing").help(help));
            return None;
        };
        // A notification that the manifest does not declare is in the log already.
        let bit = self.members[task].manifest?.notifications.iter().position(|own| own.value == notification.value)?;
        Some(Interrupt { number: number.value, task, mask: 1 << bit })
    }

    fn pools(&self, peripherals: &[Vec<Peripheral>]) -> Vec<Pool> {
        let mut pools: Vec<Pool> = Vec::new();
        let mut total = 0;
        for (index, member) in self.members.iter().enumerate() {
            let Some(manifest) = member.manifest else { continue };
            match (&member.app.pool, &manifest.pool) {
                (None, None) => {}
                (Some(pool), None) => {
                    let message = format!("`{}` cannot own a frame pool", member.app.name.value);
                    let label = format!("tasks/{}/task.toml has no [pool]", member.package);
                    self.log.add(
                        Problem::new(&pool.at, message, label)
                            .help("give the pool to the driver of a MAC; others are named in its `holders`"),
                    );
                }
                (None, Some(_)) => {
                    let message = format!("the driver `{}` has no frame pool", member.app.name.value);
                    let help = "as in pool = { frames = 512, holders = { net = 512 } }";
                    self.log.add(Problem::new(&member.app.name.at, message, "`pool` is missing").help(help));
                }
                (Some(app), Some(decl)) => {
                    if let Some(pool) = self.pool(index, app, decl, manifest, &peripherals[index]) {
                        total += usize::from(pool.frames.value);
                        if total > MAX_FRAMES {
                            let label = format!("with these there are {total}");
                            self.log.add(
                                Problem::new(&pool.frames.at, "too many frames", label)
                                    .help(format!("at most {MAX_FRAMES} are possible in all pools together")),
                            );
                        }
                        pools.push(pool);
                    }
                }
            }
        }
        self.check_counts(&pools);
        pools
    }

    fn check_counts(&self, pools: &[Pool]) {
        if let Some(pool) = pools.get(MAX_POOLS) {
            let label = format!("{} pools", pools.len());
            self.log.add(
                Problem::new(self.place(pool.owner), "too many frame pools", label)
                    .help(format!("at most {MAX_POOLS} are possible")),
            );
        }
        for index in 0..self.members.len() {
            let uses = |pool: &&Pool| pool.owner == index || pool.holders.iter().any(|(holder, _)| *holder == index);
            let count = pools.iter().filter(uses).count();
            if count > MAX_POOLS_PER_TASK {
                let message = format!("`{}` may hold frames of too many pools", self.members[index].app.name.value);
                self.log.add(
                    Problem::new(self.place(index), message, format!("{count} pools"))
                        .help(format!("at most {MAX_POOLS_PER_TASK} are possible")),
                );
            }
        }
    }

    fn pool(
        &self,
        owner: usize,
        app: &AppPool,
        decl: &PoolDecl,
        manifest: &TaskManifest,
        peripherals: &[Peripheral],
    ) -> Option<Pool> {
        let task = &self.members[owner].app.name;
        let frames = app.frames.clone()?;
        if frames.value == 0 {
            let message = format!("the frame pool of `{}` is empty", task.value);
            self.log.add(
                Problem::new(&frames.at, message, "no frame")
                    .help("a driver needs frames for its ring, and its clients some too: start with 512"),
            );
        }
        let holders = self.holders(owner, app, frames.value);
        let quiesce = self.quiesce(peripherals);
        if quiesce.is_empty() && !peripherals.is_empty() {
            let message = format!("nobody could stop the DMA of `{}`", task.value);
            let help = format!(
                "[peripherals.{}] in board.toml needs `quiesce`: the writes that make it stop using memory",
                peripherals[0].board_name
            );
            self.log
                .add(Problem::new(&app.at, message, "frames of a dead driver would stay with the device").help(help));
        }
        if quiesce.len() > MAX_QUIESCE {
            let message = format!("the quiesce sequences of `{}` are too long together", task.value);
            self.log.add(
                Problem::new(&app.at, message, format!("{} steps", quiesce.len()))
                    .help(format!("at most {MAX_QUIESCE} are possible")),
            );
        }
        let bit = manifest.notifications.iter().position(|name| name.value == decl.returned.value)?;
        Some(Pool { owner, returned: 1 << bit, frames, holders, quiesce })
    }

    fn holders(&self, owner: usize, app: &AppPool, frames: u16) -> Vec<(usize, u16)> {
        let mut holders = Vec::new();
        for (name, quota) in &app.holders {
            let Target::Task(holder) = self.find(name) else { continue };
            if holder == owner {
                let message = format!("`{}` owns the pool, and needs no quota", name.value);
                self.log.add(Problem::new(&name.at, message, "the owner").help("holders are other tasks"));
            } else if quota.value > frames {
                let message = format!("`{}` may hold more frames than there are", name.value);
                let problem = Problem::new(&quota.at, message, format!("{} of {frames}", quota.value));
                self.log.add(problem.help(format!("give a quota of at most {frames}, or make the pool larger")));
            } else if quota.value == 0 {
                let message = format!("`{}` may hold no frame", name.value);
                self.log.add(Problem::new(&quota.at, message, "a quota of 0").help("give it some, or leave it out"));
            } else {
                holders.push((holder, quota.value));
            }
        }
        if holders.len() > MAX_HOLDERS {
            let label = format!("{} holders", holders.len());
            self.log.add(
                Problem::new(&app.at, "too many tasks may hold frames of this pool", label)
                    .help(format!("at most {MAX_HOLDERS} are possible")),
            );
        }
        holders
    }

    /// The quiesce sequences of peripherals, with addresses.
    fn quiesce(&self, peripherals: &[Peripheral]) -> Vec<Quiesce> {
        let steps = peripherals.iter().flat_map(|own| {
            let steps =
                self.board.board.peripherals.get(&own.board_name).map_or(&[][..], |peripheral| &peripheral.quiesce);
            steps.iter().map(|step| match *step {
                QuiesceStep::Write { offset, value } => Quiesce::Write { address: own.base + offset, value },
                QuiesceStep::Poll { offset, mask, expected, tries } => {
                    Quiesce::Poll { address: own.base + offset, mask, expected, tries }
                }
            })
        });
        steps.collect()
    }
}
