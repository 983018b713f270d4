//! Reads the files of one image.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::app::{self, App, AppTask};
use crate::board::{self, BoardFile};
use crate::diagnostic::{Diagnostics, Origin, Problem, Source};
use crate::read::Log;
use crate::resolve::{Input, resolve};
use crate::suggest::suggest;
use crate::system::{At, ImageKind, Overrides, System};
use crate::task_manifest::{self, TaskManifest};

/// Reads and checks everything that the image `image` for `board` (default: the one that app.toml names) is made of.
///
/// # Errors
/// Everything that is wrong in any of the files.
pub fn load(root: &Path, board: Option<&str>, image: ImageKind, overrides: &Overrides) -> Result<System, Diagnostics> {
    let files = Files { root, log: Log::default() };
    let system = files.load(board, image, overrides);
    let problems = files.log.into_problems();
    match system {
        Some(system) if problems.is_empty() => Ok(system),
        _ => Err(Diagnostics { problems }),
    }
}

/// Names and descriptions of all boards, sorted.
///
/// # Errors
/// Everything that is wrong in any board.toml.
pub fn boards(root: &Path) -> Result<Vec<(String, String)>, Diagnostics> {
    let files = Files { root, log: Log::default() };
    let mut boards = Vec::new();
    for name in files.folders("boards", "board.toml") {
        let board = files
            .read(&format!("boards/{name}/board.toml"), "")
            .and_then(|source| board::read(&name, &source, &files.log));
        boards.extend(board.map(|file| (file.board.name, file.board.description)));
    }
    let problems = files.log.into_problems();
    if problems.is_empty() { Ok(boards) } else { Err(Diagnostics { problems }) }
}

struct Files<'a> {
    root: &'a Path,
    log: Log,
}

impl Files<'_> {
    fn load(&self, board: Option<&str>, image: ImageKind, overrides: &Overrides) -> Option<System> {
        let source = self.read("app.toml", "it says which tasks there are; see docs/architecture.md")?;
        let app = app::read(&source, &self.log);
        let board = match (board, &app) {
            (Some(name), _) => self.board(&At { value: name.to_owned(), at: word("command line", name) }),
            (None, Some(app)) => self.default_board(app),
            (None, None) => None,
        };
        let app = app?;
        let members: Vec<(&AppTask, Option<String>)> = app
            .tasks
            .iter()
            .filter(|task| app.includes(task, image))
            .map(|task| (task, self.package(task, board.as_ref())))
            .collect();
        let mut manifests = BTreeMap::new();
        let drivers = board
            .iter()
            .flat_map(|file| file.board.peripherals.values())
            .filter_map(|peripheral| peripheral.driver.as_ref());
        for package in members.iter().filter_map(|(_, package)| package.as_ref()).chain(drivers) {
            if !manifests.contains_key(package) {
                manifests.insert(package.clone(), self.manifest(package));
            }
        }
        let mut files = vec![PathBuf::from("app.toml")];
        files.extend(board.iter().map(|file| format!("boards/{}/board.toml", file.board.name).into()));
        let used = |package: &&String| members.iter().any(|(_, member)| member.as_ref() == Some(*package));
        files.extend(manifests.keys().filter(used).map(|package| format!("tasks/{package}/task.toml").into()));
        resolve(Input { app: &app, board: board?, image, members, manifests: &manifests, overrides, files }, &self.log)
    }

    /// Reads a file; `purpose` helps whoever misses it.
    fn read(&self, path: &str, purpose: &str) -> Option<Arc<Source>> {
        match fs::read_to_string(self.root.join(path)) {
            Ok(text) => Some(Arc::new(Source { path: path.to_owned(), text })),
            Err(error) => {
                let reason = match error.kind() {
                    std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                    std::io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
                    kind => kind.to_string(),
                };
                let problem = Problem::without_place(format!("cannot read {path}: {reason}"));
                self.log.add(if purpose.is_empty() { problem } else { problem.help(purpose) });
                None
            }
        }
    }

    /// Folders in `parent` that hold a file `file`, sorted.
    fn folders(&self, parent: &str, file: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(parent)).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.path().join(file).is_file());
        let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn default_board(&self, app: &App) -> Option<BoardFile> {
        match &app.board {
            Some(name) => self.board(name),
            None => {
                let help = format!(
                    "add `board = \"...\"`, or name one on the command line: {}",
                    self.folders("boards", "board.toml").join(", ")
                );
                self.log.add(Problem::new(&app.at, "no board is named", "`board` belongs here").help(help));
                None
            }
        }
    }

    fn board(&self, name: &At<String>) -> Option<BoardFile> {
        let known = self.folders("boards", "board.toml");
        if !known.contains(&name.value) {
            let help = suggest(&name.value, known.iter().map(String::as_str), "boards");
            let label = format!("there is no boards/{}/board.toml", name.value);
            self.log.add(Problem::new(&name.at, format!("unknown board `{}`", name.value), label).help(help));
            return None;
        }
        let source = self.read(&format!("boards/{}/board.toml", name.value), "")?;
        let board = board::read(&name.value, &source, &self.log)?;
        for (name, peripheral) in &board.board.peripherals {
            if let Some(driver) = &peripheral.driver {
                let place = At { value: driver.clone(), at: peripheral.at.clone() };
                self.check_package(&place, &format!("the driver of `{name}`"));
            }
        }
        Some(board)
    }

    /// The crate of a task: named, that of its role, or that of the same name.
    fn package(&self, task: &AppTask, board: Option<&BoardFile>) -> Option<String> {
        let Some(role) = &task.role else {
            let name = task.package.as_ref().unwrap_or(&task.name);
            return self.check_package(name, &format!("task `{}`", task.name.value));
        };
        let board = &board?.board;
        let Some(peripheral) = board.roles.get(&role.value) else {
            let help = suggest(&role.value, board.roles.keys().map(String::as_str), "roles of this board");
            let message = format!("the board `{}` has nothing in the role `{}`", board.name, role.value);
            self.log.add(Problem::new(&role.at, message, "unknown role").help(help));
            return None;
        };
        // Reading the board checked that there are driver and crate.
        let driver = board.peripherals.get(&peripheral.value)?.driver.clone()?;
        self.has_package(&driver).then_some(driver)
    }

    fn has_package(&self, name: &str) -> bool {
        self.root.join("tasks").join(name).join("task.toml").is_file()
    }

    fn check_package(&self, name: &At<String>, what: &str) -> Option<String> {
        if self.has_package(&name.value) {
            return Some(name.value.clone());
        }
        let known = self.folders("tasks", "task.toml");
        let message = format!("unknown crate `{}` for {what}", name.value);
        let label = format!("there is no tasks/{}/task.toml", name.value);
        let help = suggest(&name.value, known.iter().map(String::as_str), "task crates");
        self.log.add(Problem::new(&name.at, message, label).help(help));
        None
    }

    fn manifest(&self, package: &str) -> Option<TaskManifest> {
        // Packages were checked to exist, drivers perhaps not; those are in the log already.
        let source = self.has_package(package).then(|| self.read(&format!("tasks/{package}/task.toml"), ""))??;
        task_manifest::read(&source, &self.log)
    }
}

/// A place outside any file: text that is shown as if it were one.
pub fn word(name: &str, text: &str) -> Origin {
    Origin { source: Arc::new(Source { path: name.to_owned(), text: text.to_owned() }), span: 0..text.len() }
}
