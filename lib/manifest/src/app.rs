//! The application: `app.toml`, as it is written.

use std::sync::Arc;

use crate::diagnostic::{Origin, Problem, Source};
use crate::limits::{PAGE, check_name, check_pages, check_stack};
use crate::read::{Log, OneOrMore, Raw, Size, Table, parse};
use crate::suggest::suggest;
use crate::system::{At, ImageKind, Kernel};
use crate::value::show_size;

/// Largest stack of the kernel.
const MAX_KERNEL_STACK: u64 = 256 << 10;

/// Smallest stack of the kernel.
const MIN_KERNEL_STACK: u64 = 8 << 10;

/// An app.toml. What could not be read is left out, and in the log.
#[derive(Debug)]
pub struct App {
    /// The place that stands for the file as a whole.
    pub at: Origin,
    pub name: Option<String>,
    pub board: Option<At<String>>,
    pub kernel: Option<Kernel>,
    pub tasks: Vec<AppTask>,
    images: Vec<Difference>,
}

/// In what an image differs from what the tables of tasks say.
#[derive(Debug)]
struct Difference {
    image: ImageKind,
    add: Vec<At<String>>,
    remove: Vec<At<String>>,
}

/// A table of tasks.
#[derive(Debug)]
pub struct AppTask {
    pub name: At<String>,
    pub package: Option<At<String>>,
    pub role: Option<At<String>>,
    pub priority: Option<At<u8>>,
    pub stack: Option<At<u64>>,
    /// True if there is a stack that could not be read.
    pub bad_stack: bool,
    pub code_limit: Option<At<u64>>,
    pub data_limit: Option<At<u64>>,
    /// `None` if they could not be read.
    pub privileges: Option<Vec<At<String>>>,
    /// Slot, task.
    pub slots: Vec<(At<String>, At<String>)>,
    /// Name in task.toml, each `TASK.NOTIFICATION`.
    pub notifies: Vec<(At<String>, Vec<At<String>>)>,
    /// Task, bytes.
    pub windows: Vec<(At<String>, At<u64>)>,
    /// Name in task.toml, peripheral of the board.
    pub peripherals: Vec<(At<String>, At<String>)>,
    pub pool: Option<AppPool>,
    pub config: Vec<(At<String>, At<Raw>)>,
    images: Option<Vec<ImageKind>>,
}

/// A frame pool.
#[derive(Debug)]
pub struct AppPool {
    pub at: Origin,
    pub frames: Option<At<u16>>,
    /// Task, quota.
    pub holders: Vec<(At<String>, At<u16>)>,
}

/// Reads an app.toml.
pub fn read(source: &Arc<Source>, log: &Log) -> Option<App> {
    parse(source, log, |table| {
        let at = table.at.clone();
        let name = table.required::<String>("name", "name the application, like \"leasehold\"").map(|name| name.value);
        let board = table.optional("board");
        let kernel = table.required_table("kernel", "say how large the kernel's stack is: [kernel] stack = \"32 KiB\"");
        let kernel = kernel.and_then(|table| kernel_of(log, table));
        let tasks: Vec<AppTask> =
            table.tables("tasks").into_iter().map(|(name, table)| task(log, name, table)).collect();
        let mut images = Vec::new();
        for (name, table) in table.tables("images") {
            let names = |key| table.optional::<Vec<At<String>>>(key).map_or_else(Vec::new, |names| names.value);
            let (add, remove) = (names("add"), names("remove"));
            table.finish();
            for name in add.iter().chain(&remove) {
                check_task(log, name, &tasks);
            }
            images.extend(image(log, &name).map(|image| Difference { image, add, remove }));
        }
        table.finish();
        App { at, name, board, kernel, tasks, images }
    })
}

/// Checks that app.toml defines a task.
fn check_task(log: &Log, name: &At<String>, tasks: &[AppTask]) {
    if !tasks.iter().any(|task| task.name.value == name.value) {
        log.add(unknown_task(name, tasks));
    }
}

/// The problem that a name is not that of a task.
pub fn unknown_task(name: &At<String>, tasks: &[AppTask]) -> Problem {
    let known = tasks.iter().map(|task| task.name.value.as_str());
    let message = format!("unknown task `{}`", name.value);
    Problem::new(&name.at, message, "no task of this name").help(suggest(&name.value, known, "tasks"))
}

fn image(log: &Log, name: &At<String>) -> Option<ImageKind> {
    let found = ImageKind::ALL.into_iter().find(|image| image.name() == name.value);
    if found.is_none() {
        let known = ImageKind::ALL.map(ImageKind::name);
        let message = format!("unknown image `{}`", name.value);
        log.add(Problem::new(&name.at, message, "no such image").help(suggest(&name.value, known, "images")));
    }
    found
}

fn kernel_of(log: &Log, table: Table<'_>) -> Option<Kernel> {
    let stack = table.required::<Size>("stack", "as in \"32 KiB\"");
    let (code_limit, data_limit) = limits(log, &table);
    table.finish();
    let stack = stack?;
    let bytes = stack.value.0;
    if !(MIN_KERNEL_STACK..=MAX_KERNEL_STACK).contains(&bytes) || !bytes.is_multiple_of(PAGE) {
        let (least, most) = (show_size(MIN_KERNEL_STACK), show_size(MAX_KERNEL_STACK));
        let problem = Problem::new(&stack.at, "bad size of the kernel's stack", format!("{bytes} bytes"));
        log.add(problem.help(format!("whole pages of {} from {least} to {most}", show_size(PAGE))));
        return None;
    }
    Some(Kernel { stack: At { value: bytes, at: stack.at }, code_limit, data_limit })
}

fn limits(log: &Log, table: &Table<'_>) -> (Option<At<u64>>, Option<At<u64>>) {
    let Some(limits) = table.table("limits") else { return (None, None) };
    let read = |key| limits.optional::<Size>(key).and_then(|size| check_pages(log, size, "a limit"));
    let both = (read("code"), read("data"));
    limits.finish();
    both
}

fn task(log: &Log, name: At<String>, table: Table<'_>) -> AppTask {
    check_name(log, &name, "task");
    let pairs = |key: &'static str| -> Vec<(At<String>, At<String>)> {
        table.entries(key).into_iter().filter_map(|(name, cell)| cell.read().map(|value| (name, value))).collect()
    };
    let package = table.optional("crate");
    let role = table.optional::<String>("role");
    if let (Some(_), Some(role)) = (&package, &role) {
        let message = format!("`{}` has both a crate and a role", name.value);
        log.add(
            Problem::new(&role.at, message, "the board says which crate this is").help("leave out `crate` or `role`"),
        );
    }
    let priority = table.required("priority", "0 is the highest; a task may send only to tasks of higher priority");
    let stack = table.get("stack");
    let has_stack = stack.is_some();
    let stack = stack.and_then(|cell| check_stack(log, cell.read()?));
    let (code_limit, data_limit) = limits(log, &table);
    let privileges = table.get("privileges");
    let privileges = privileges.map_or(Some(Vec::new()), |cell| cell.read::<Vec<_>>().map(|names| names.value));
    let (slots, peripherals) = (pairs("task-slots"), pairs("peripherals"));
    let notifies = table.entries("notifies").into_iter();
    let notifies = notifies.filter_map(|(name, cell)| cell.read::<OneOrMore>().map(|targets| (name, targets.value.0)));
    let notifies = notifies.collect();
    let windows = table.entries("windows").into_iter();
    let windows =
        windows.filter_map(|(name, cell)| Some((name, check_pages(log, cell.read()?, "a window")?))).collect();
    let pool = table.table("pool").map(|table| pool(&name.value, table));
    let config = table.entries("config").into_iter();
    let config = config.filter_map(|(name, cell)| cell.read().map(|value| (name, value))).collect();
    let images = table.optional::<Vec<At<String>>>("images");
    let images = images.map(|names| names.value.iter().filter_map(|name| image(log, name)).collect());
    table.finish();
    AppTask {
        name,
        package,
        role,
        priority,
        bad_stack: has_stack && stack.is_none(),
        stack,
        code_limit,
        data_limit,
        privileges,
        slots,
        notifies,
        windows,
        peripherals,
        pool,
        config,
        images,
    }
}

fn pool(task: &str, table: Table<'_>) -> AppPool {
    let at = table.at.clone();
    let frames = table.required("frames", &format!("say how many frames `{task}` owns, like 512"));
    let holders = table.entries("holders").into_iter();
    let holders = holders.filter_map(|(name, cell)| cell.read().map(|quota| (name, quota))).collect();
    table.finish();
    AppPool { at, frames, holders }
}

impl App {
    /// Whether a task is part of an image.
    pub fn includes(&self, task: &AppTask, image: ImageKind) -> bool {
        let named = |names: &[At<String>]| names.iter().any(|name| name.value == task.name.value);
        let differences: Vec<&Difference> = self.images.iter().filter(|other| other.image == image).collect();
        let add = differences.iter().any(|difference| named(&difference.add));
        let remove = differences.iter().any(|difference| named(&difference.remove));
        !remove && (add || task.images.as_ref().is_none_or(|images| images.contains(&image)))
    }
}
