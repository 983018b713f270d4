//! Who calls whom, who notifies whom, who shares memory with whom.

use super::{Resolver, Target};
use crate::diagnostic::Problem;
use crate::suggest::{list, suggest};
use crate::system::{At, Window};
use crate::task_manifest::{SlotDecl, TaskManifest};

/// Most slots, and most notifications posted, of one task: lists in [`abi::config::TaskConfig`].
const MOST: usize = 16;

impl Resolver<'_> {
    /// The bound slots of a task.
    pub(super) fn slots(&self, index: usize, manifest: &TaskManifest) -> Vec<(String, usize)> {
        let member = &self.members[index];
        for (name, _) in &member.app.slots {
            if !manifest.slots.iter().any(|decl| decl.name.value == name.value) {
                let known = manifest.slots.iter().map(|decl| decl.name.value.as_str()).collect();
                self.unknown(name, "slot", known, member.package);
            }
        }
        let slots: Vec<_> = manifest.slots.iter().filter_map(|decl| self.slot(index, decl)).collect();
        crate::limits::limit(self.log, manifest.slots.iter().map(|decl| &decl.name), MOST, "slots of one task");
        slots
    }

    fn slot(&self, index: usize, decl: &SlotDecl) -> Option<(String, usize)> {
        let task = self.members[index].app;
        let bound = task.slots.iter().find(|(name, _)| name.value == decl.name.value);
        let Some((_, target)) = bound else {
            if !decl.optional {
                let interface =
                    decl.interface.as_ref().map_or(String::new(), |name| format!(" that serves `{}`", name.value));
                let help = format!("name a task{interface}: task-slots = {{ {} = \"...\" }}", decl.name.value);
                let message = format!("the slot `{}` of `{}` is unbound", decl.name.value, task.name.value);
                self.log.add(Problem::new(&task.name.at, message, "this task calls somebody").help(help));
            }
            return None;
        };
        match self.find(target) {
            Target::Unknown => None,
            Target::Absent if decl.optional => None,
            Target::Absent => {
                let image = self.image.name();
                let message =
                    format!("`{}` is not in the image `{image}`, but `{}` calls it", target.value, task.name.value);
                let help = format!("add it: [images.{image}] add = [\"{}\"]; or leave out both", target.value);
                self.log.add(Problem::new(&target.at, message, "missing in this image").help(help));
                None
            }
            Target::Task(to) => {
                self.check_call(index, to, decl, target);
                Some((decl.name.value.clone(), to))
            }
        }
    }

    /// Checks that a task may call another.
    fn check_call(&self, from: usize, to: usize, decl: &SlotDecl, target: &At<String>) {
        let (caller, server) = (self.members[from].app, self.members[to].app);
        if from == to {
            let message = format!("the slot `{}` of `{}` leads to itself", decl.name.value, caller.name.value);
            self.log.add(
                Problem::new(&target.at, message, "a task that calls itself waits for ever").help("name another task"),
            );
            return;
        }
        if self.members[from].manifest.and_then(super::fault_bit).is_some() {
            let message = format!("the supervisor `{}` calls `{}`", caller.name.value, server.name.value);
            let help = "a supervisor that waits for a task cannot restart it: post a notification instead";
            self.log.add(Problem::new(&target.at, message, "a supervisor calls nobody").help(help));
            return;
        }
        if let (Some(own), Some(other)) = (&caller.priority, &server.priority)
            && other.value >= own.value
        {
            let message = format!(
                "`{}` (priority {}) may not send to `{}` (priority {})",
                caller.name.value, own.value, server.name.value, other.value
            );
            let help = format!(
                "a task sends only to tasks of higher priority, with a smaller number: give `{}` a number below {}, or `{}` one above {}",
                server.name.value, own.value, caller.name.value, other.value
            );
            let problem = Problem::new(&target.at, message, "a send against the order of priorities");
            self.log.add(problem.also(&own.at, "the caller's").also(&other.at, "the server's").help(help));
        }
        let serves = self.members[to].manifest.and_then(|manifest| manifest.serves.as_ref());
        if let (Some(interface), Some(serves)) = (&decl.interface, serves)
            && !serves.contains(&interface.value)
        {
            let serves: Vec<&str> = serves.iter().map(String::as_str).collect();
            let message = format!("`{}` does not serve `{}`", server.name.value, interface.value);
            let help =
                if serves.is_empty() { "it serves nothing".to_owned() } else { format!("it serves {}", list(&serves)) };
            self.log.add(
                Problem::new(
                    &target.at,
                    message,
                    format!("the slot `{}` expects `{}`", decl.name.value, interface.value),
                )
                .help(help),
            );
        }
    }

    /// The notifications that a task posts.
    pub(super) fn notifies(&self, index: usize, manifest: &TaskManifest) -> Vec<(String, usize, u32)> {
        let member = &self.members[index];
        let mut notifies = Vec::new();
        for (name, _) in &member.app.notifies {
            if !manifest.notifies.iter().any(|decl| decl.value == name.value) {
                let known = manifest.notifies.iter().map(|decl| decl.value.as_str()).collect();
                self.unknown(name, "notify", known, member.package);
            }
        }
        for decl in &manifest.notifies {
            let Some((_, targets)) = member.app.notifies.iter().find(|(name, _)| name.value == decl.value) else {
                let message = format!("the notify `{}` of `{}` is unbound", decl.value, member.app.name.value);
                let help = format!(
                    "name who is told: notifies = {{ {} = \"TASK.NOTIFICATION\" }}, or [] for nobody",
                    decl.value
                );
                self.log.add(Problem::new(&member.app.name.at, message, "this task posts a notification").help(help));
                continue;
            };
            for target in targets {
                let Some((to, mask)) = self.notification(index, target) else { continue };
                if notifies.iter().any(|(name, other, bit)| *name == decl.value && *other == to && *bit == mask) {
                    let message = format!("`{}` is named twice", target.value);
                    self.log.add(Problem::new(&target.at, message, "again").help("once is enough"));
                }
                notifies.push((decl.value.clone(), to, mask));
            }
        }
        if notifies.len() > MOST {
            let message = format!("the task `{}` posts {} notifications", member.app.name.value, notifies.len());
            self.log.add(
                Problem::new(&member.app.name.at, message, "too many").help(format!("at most {MOST} are possible")),
            );
        }
        notifies
    }

    /// Looks up `TASK.NOTIFICATION`; `None` if it is not in this image, or wrong.
    fn notification(&self, from: usize, target: &At<String>) -> Option<(usize, u32)> {
        let Some((task, bit)) = target.value.split_once('.') else {
            let message = format!("`{}` names no notification", target.value);
            self.log.add(
                Problem::new(&target.at, message, "a dot is missing")
                    .help("write TASK.NOTIFICATION, like \"net.frames\""),
            );
            return None;
        };
        let task = At { value: task.to_owned(), at: target.at.clone() };
        let Target::Task(to) = self.find(&task) else { return None };
        if to == from {
            let message = format!("`{}` notifies itself", task.value);
            self.log.add(
                Problem::new(&target.at, message, "not another task")
                    .help("a task may always post to itself, without an entry here"),
            );
            return None;
        }
        let notifications = &self.members[to].manifest?.notifications;
        let position = notifications.iter().position(|name| name.value == bit);
        if position.is_none() {
            let message = format!("the task `{}` has no notification `{bit}`", task.value);
            let known = notifications.iter().map(|name| name.value.as_str());
            let help = suggest(bit, known, &format!("notifications of `{}`", task.value));
            self.log.add(Problem::new(&target.at, message, "unknown notification").help(help));
        }
        position.map(|bit| (to, 1 << bit))
    }

    /// Memory that two tasks share.
    pub(super) fn windows(&self) -> Vec<Window> {
        let mut windows: Vec<Window> = Vec::new();
        for (owner, member) in self.members.iter().enumerate() {
            for (name, size) in &member.app.windows {
                let Target::Task(peer) = self.find(name) else { continue };
                if peer == owner {
                    let message = format!("`{}` has a window to itself", name.value);
                    self.log.add(
                        Problem::new(&name.at, message, "not another task")
                            .help("memory of its own is declared under [memory] in task.toml"),
                    );
                    continue;
                }
                if windows.iter().any(|other| other.owner == peer && other.peer == owner) {
                    let (one, other) = (&member.app.name.value, &name.value);
                    let message = format!("`{one}` and `{other}` share two windows");
                    let problem = Problem::new(&name.at, message, "the second one")
                        .also(self.place(peer), "the first one is here");
                    self.log.add(
                        problem.help(
                            "tasks find a window by the other's name: declare one of them, large enough for both",
                        ),
                    );
                    continue;
                }
                windows.push(Window { owner, peer, size: size.clone() });
            }
        }
        windows
    }
}
