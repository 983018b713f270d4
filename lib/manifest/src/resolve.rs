//! Turns the files into a system: every name is looked up, every rule is checked.

mod bind;
mod devices;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

use abi::MAX_TASKS;
use abi::image::Privileges;

use crate::app::{App, AppTask, unknown_task};
use crate::board::BoardFile;
use crate::diagnostic::{Origin, Problem};
use crate::limits::limit;
use crate::read::Log;
use crate::suggest::{list, suggest};
use crate::system::{At, ImageKind, Overrides, System, Task};
use crate::task_manifest::{PRIVILEGES, TaskManifest, privilege};

/// Name of the supervisor's notification for faults.
const FAULT: &str = "fault";

/// Crate of the task that never blocks.
const IDLE: &str = "idle";

/// What was read.
pub struct Input<'a> {
    pub app: &'a App,
    pub board: BoardFile,
    pub image: ImageKind,
    /// Tasks of the image, and their crates.
    pub members: Vec<(&'a AppTask, Option<String>)>,
    /// Manifests by crate; `None` if it could not be read.
    pub manifests: &'a BTreeMap<String, Option<TaskManifest>>,
    pub overrides: &'a Overrides,
    pub files: Vec<PathBuf>,
}

/// A task of the image with what its author and the application say of it.
struct Member<'a> {
    app: &'a AppTask,
    package: &'a str,
    manifest: Option<&'a TaskManifest>,
}

struct Resolver<'a> {
    log: &'a Log,
    app: &'a App,
    board: &'a BoardFile,
    image: ImageKind,
    members: Vec<Member<'a>>,
    overrides: &'a Overrides,
}

/// What a name of a task stands for.
enum Target {
    /// A task of this image.
    Task(usize),
    /// A task that is only in other images.
    Absent,
    /// No task; it is in the log.
    Unknown,
}

/// False if board.toml names a wrong driver for the role of a task; nothing else about that task can be right then.
fn drives_role(task: &AppTask, manifest: &TaskManifest, file: &BoardFile) -> bool {
    let peripheral = task.role.as_ref().and_then(|role| file.board.roles.get(&role.value));
    let peripheral = peripheral.and_then(|name| file.board.peripherals.get(&name.value));
    peripheral.is_none_or(|peripheral| manifest.peripherals.iter().any(|decl| decl.kind.value == peripheral.kind))
}

/// The position of a supervisor's notification for faults; `None` if the task is none.
fn fault_bit(manifest: &TaskManifest) -> Option<usize> {
    manifest.privileges.iter().any(|name| name.value == "supervise").then_some(())?;
    manifest.notifications.iter().position(|name| name.value == FAULT)
}

/// Builds the system; what is wrong goes to the log.
pub fn resolve(input: Input<'_>, log: &Log) -> Option<System> {
    let members = input.members.iter().map(|(app, package)| Member {
        app,
        package: package.as_deref().unwrap_or_default(),
        manifest: package
            .as_ref()
            .and_then(|package| input.manifests.get(package)?.as_ref())
            .filter(|manifest| drives_role(app, manifest, &input.board)),
    });
    let resolver = Resolver {
        log,
        app: input.app,
        board: &input.board,
        image: input.image,
        members: members.collect(),
        overrides: input.overrides,
    };
    limit(log, input.members.iter().map(|(task, _)| &task.name), MAX_TASKS, "tasks in one image");
    let devices = resolver.devices(input.manifests);
    let windows = resolver.windows();
    let tasks: Vec<Option<Task>> =
        (0..resolver.members.len()).map(|index| resolver.task(index, &devices, &windows)).collect();
    resolver.check_overrides();
    let supervisor = resolver.supervisor();
    resolver.check_idle();
    Some(System {
        name: input.app.name.clone()?,
        image: input.image,
        kernel: input.app.kernel.clone()?,
        tasks: tasks.into_iter().collect::<Option<_>>()?,
        supervisor: supervisor?,
        interrupts: devices.interrupts,
        pools: devices.pools,
        windows,
        files: input.files,
        board: input.board.board,
    })
}

impl Resolver<'_> {
    /// Looks up a task.
    fn find(&self, name: &At<String>) -> Target {
        if let Some(index) = self.members.iter().position(|member| member.app.name.value == name.value) {
            return Target::Task(index);
        }
        if self.app.tasks.iter().any(|task| task.name.value == name.value) {
            return Target::Absent;
        }
        self.log.add(unknown_task(name, &self.app.tasks));
        Target::Unknown
    }

    fn task(&self, index: usize, devices: &devices::Devices, windows: &[crate::system::Window]) -> Option<Task> {
        let member = &self.members[index];
        let (app, manifest) = (member.app, member.manifest?);
        let slots = self.slots(index, manifest);
        let notifies = self.notifies(index, manifest);
        let privileges = self.privileges(app, manifest);
        let values = self.values(index, manifest, devices);
        let peripherals = devices.peripherals[index].clone();
        self.check_memory(index, manifest, peripherals.len(), windows);
        let stack = app.stack.clone().or_else(|| manifest.stack.clone());
        if stack.is_none() && !app.bad_stack {
            let help = format!("give it in tasks/{}/task.toml, or here: stack = \"4 KiB\"", member.package);
            let message = format!("the task `{}` has no stack", app.name.value);
            self.log.add(Problem::new(&app.name.at, message, "`stack` is missing").help(help));
        }
        Some(Task {
            name: app.name.clone(),
            package: member.package.to_owned(),
            description: manifest.description.clone(),
            priority: app.priority.as_ref()?.value,
            stack: stack?,
            floating_point: manifest.floating_point,
            code_limit: app.code_limit.clone(),
            data_limit: app.data_limit.clone(),
            privileges,
            notifications: manifest.notifications.iter().map(|name| name.value.clone()).collect(),
            slots,
            notifies,
            peripherals,
            memory: manifest
                .memory
                .iter()
                .map(|memory| crate::system::Memory {
                    name: memory.name.value.clone(),
                    size: memory.size.clone(),
                    access: memory.access,
                })
                .collect(),
            values,
        })
    }

    /// What the task may ask of the kernel: exactly what its author says it needs, granted by the application.
    fn privileges(&self, app: &AppTask, manifest: &TaskManifest) -> Privileges {
        let Some(names) = &app.privileges else { return Privileges::empty() };
        let granted: Vec<_> = names.iter().filter_map(|name| privilege(self.log, name)).collect();
        for name in granted.iter().filter(|name| !manifest.privileges.iter().any(|needed| needed.value == name.value)) {
            let message = format!("`{}` does not ask for the privilege `{}`", app.name.value, name.value);
            let needed: Vec<&str> = manifest.privileges.iter().map(|needed| needed.value).collect();
            let help = if needed.is_empty() {
                "its task.toml names none".to_owned()
            } else {
                format!("its task.toml names {}", list(&needed))
            };
            self.log.add(Problem::new(&name.at, message, "granted for nothing").help(help));
        }
        let refused: Vec<&str> = manifest
            .privileges
            .iter()
            .filter(|needed| !names.iter().any(|name| name.value == needed.value))
            .map(|needed| needed.value)
            .collect();
        // One that is unknown may be meant for one that is refused.
        if !refused.is_empty() && granted.len() == names.len() {
            let message = format!("the task `{}` needs {}", app.name.value, list(&refused));
            let all: Vec<String> = manifest.privileges.iter().map(|needed| format!("\"{}\"", needed.value)).collect();
            let help = format!("if it may have that, write: privileges = [{}]", all.join(", "));
            self.log.add(Problem::new(&app.name.at, message, "this privilege is not granted").help(help));
        }
        let bits = granted.iter().filter_map(|name| PRIVILEGES.iter().find(|(known, _)| *known == name.value));
        bits.fold(Privileges::empty(), |all, (_, bit)| all | *bit)
    }

    /// The task that the kernel tells of faults: the one with the privilege and a notification for it.
    fn supervisor(&self) -> Option<(usize, u32)> {
        let bits = self.members.iter().map(|member| member.manifest.and_then(fault_bit));
        let found: Vec<(usize, usize)> = bits.enumerate().filter_map(|(index, bit)| Some((index, bit?))).collect();
        let &[(index, bit)] = &found[..] else {
            // Without all manifests nobody can tell.
            if self.members.iter().all(|member| member.manifest.is_some()) {
                self.log.add(self.supervisors(&found));
            }
            return None;
        };
        let supervisor = self.members[index].app;
        if let Some(priority) = &supervisor.priority {
            let other = self.members.iter().find(|member| {
                member.app.name.value != supervisor.name.value
                    && member.app.priority.as_ref().is_some_and(|other| other.value <= priority.value)
            });
            if let Some(other) = other {
                let name = &other.app.name.value;
                let message = format!("the supervisor `{}` is not above `{name}`", supervisor.name.value);
                let problem = Problem::new(&priority.at, message, format!("`{name}` could keep it from running"));
                let problem =
                    other.app.priority.iter().fold(problem, |problem, at| problem.also(&at.at, "as high, or higher"));
                self.log.add(problem.help("only the supervisor has priority 0"));
            }
        }
        Some((index, 1 << bit))
    }

    fn supervisors(&self, found: &[(usize, usize)]) -> Problem {
        match found {
            [(first, _), (second, _), ..] => {
                let (first, second) = (&self.members[*first].app.name, &self.members[*second].app.name);
                let message = format!("two supervisors: `{}` and `{}`", first.value, second.value);
                Problem::new(&second.at, message, "another one").also(&first.at, "one").help("leave out one of them")
            }
            _ => {
                let message = format!("the image `{}` has no supervisor", self.image.name());
                let help = format!(
                    "add the task `supervisor`; a supervisor asks for the privilege `supervise` and declares the notification `{FAULT}`"
                );
                Problem::new(&self.app.at, message, "nobody would restart a task").help(help)
            }
        }
    }

    /// Checks that there is a task that never blocks, below all others.
    fn check_idle(&self) {
        let Some(idle) = self.members.iter().find(|member| member.package == IDLE) else {
            if self.members.iter().all(|member| !member.package.is_empty()) {
                let message = format!("the image `{}` has no idle task", self.image.name());
                let help = "add [tasks.idle] with the lowest priority: it runs when nobody else does";
                self.log.add(Problem::new(&self.app.at, message, "no task of the crate `idle`").help(help));
            }
            return;
        };
        let Some(priority) = &idle.app.priority else { return };
        let others = self.members.iter().filter(|member| member.app.name.value != idle.app.name.value);
        for other in others {
            if let Some(at) = other.app.priority.as_ref().filter(|at| at.value >= priority.value) {
                let name = &other.app.name.value;
                let message = format!("`{name}` would never run: it is not above the idle task");
                let problem = Problem::new(&at.at, message, format!("priority {}", at.value))
                    .also(&priority.at, "the idle task's");
                self.log.add(problem.help(format!("give the idle task a larger number than {}", at.value)));
            }
        }
    }

    /// Checks what takes a place in the lists of the kernel's table and the configuration page.
    fn check_memory(
        &self,
        index: usize,
        manifest: &TaskManifest,
        peripherals: usize,
        windows: &[crate::system::Window],
    ) {
        let task = &self.members[index].app.name;
        let windows: Vec<_> = windows.iter().filter(|window| window.owner == index || window.peer == index).collect();
        let named = manifest.memory.len() + windows.len();
        // Code, constants, configuration page, variables, stack.
        let regions = 5 + named + peripherals;
        if named > 12 || regions > abi::image::MAX_REGIONS {
            let label =
                format!("{} memories, {} windows, {peripherals} peripherals", manifest.memory.len(), windows.len());
            let help = format!(
                "at most 12 memories and windows, and with peripherals at most {}",
                abi::image::MAX_REGIONS - 5
            );
            self.log.add(
                Problem::new(&task.at, format!("the task `{}` has too many regions", task.value), label).help(help),
            );
        }
        for window in windows {
            let other = &self.members[if window.owner == index { window.peer } else { window.owner }].app.name.value;
            if let Some(memory) = manifest.memory.iter().find(|memory| memory.name.value == *other) {
                let message = format!("`{}` has two memories of the name `{other}`", task.value);
                let problem = Problem::new(&memory.name.at, message, format!("and a window with the task `{other}`"));
                self.log.add(problem.help("rename this one, or that task"));
            }
        }
    }

    /// Help for a name that the task's manifest does not know.
    fn unknown(&self, name: &At<String>, what: &str, known: Vec<&str>, package: &str) {
        let message = format!("unknown {what} `{}`", name.value);
        let label = format!("tasks/{package}/task.toml declares none of this name");
        let help =
            if known.is_empty() { format!("it declares no {what}") } else { suggest(&name.value, known, "declared") };
        self.log.add(Problem::new(&name.at, message, label).help(help));
    }

    /// The place of a task's name.
    fn place(&self, index: usize) -> &Origin {
        &self.members[index].app.name.at
    }
}
