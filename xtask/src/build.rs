//! Builds an image: from app.toml and board.toml to `target/dist/BOARD/`.
//!
//! ```no_run
//! let workspace = Workspace::find()?;
//! let tools = setup::ensure(&workspace, Need::Run)?;
//! let artifacts = build::dist(&workspace, &tools.toolchain, &Options { image: ImageKind::Test, ..Options::default() })?;
//! let machine = Machine::start(&artifacts.system.board.run, &artifacts.image(), &emulator::Options::new(&args, &artifacts.system))?;
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{ImageKind, Overrides, Plan, Sizes, System, encode_config, encode_image};
use miette::{IntoDiagnostic, Result, WrapErr, bail};

use crate::archive::{self, Entry};
use crate::cli::{AddressArgs, DistArgs};
use crate::compile::{self, Unit};
use crate::link::{Link, Program, Segment};
use crate::toolchain::Toolchain;
use crate::ui::{Activity, say};
use crate::workspace::Workspace;
use crate::{assemble, map, record};

/// What to build.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Folder under boards/; the default is the one that app.toml names.
    pub board: Option<String>,
    /// Which image of app.toml.
    pub image: ImageKind,
    /// Values that replace those of app.toml.
    pub overrides: Overrides,
}

impl Options {
    /// What the command line says.
    #[must_use]
    pub fn new(args: &DistArgs, image: ImageKind) -> Self {
        let AddressArgs { ip, gateway, mac } = &args.address;
        let overrides =
            Overrides { address: ip.map(|ip| ip.to_string()), gateway: *gateway, mac: mac.map(|mac| mac.0) };
        Self { board: args.board.clone(), image, overrides }
    }
}

/// A built image.
#[derive(Debug, Clone)]
pub struct Artifacts {
    /// The folder of all that was written.
    pub folder: PathBuf,
    /// What it consists of.
    pub system: System,
    /// Where everything is.
    pub plan: Plan,
    /// The linked kernel.
    pub kernel: Program,
    /// The linked tasks, in the order of the system's.
    pub tasks: Vec<Program>,
}

impl Artifacts {
    /// The file that the emulator boots.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.folder.join("image.elf")
    }

    /// Kernel and tasks with their names.
    pub fn programs(&self) -> impl Iterator<Item = (&str, &Program)> {
        let tasks = self.system.tasks.iter().map(|task| task.name.value.as_str()).zip(&self.tasks);
        std::iter::once(("kernel", &self.kernel)).chain(tasks)
    }
}

/// Checks all interface files, so that an error in one is not told by a build script, with a backtrace.
fn check_interfaces(root: &Path) -> Result<()> {
    let Err(reports) = idol::check_all(&root.join("lib")) else { return Ok(()) };
    let count = reports.len();
    for report in reports {
        eprintln!("{:?}", miette::Report::new(report));
    }
    bail!("{count} interface file(s) are wrong: see above")
}

/// Builds an image and writes `target/dist/BOARD/` (`BOARD-test` for the test image).
///
/// # Errors
/// What is wrong in app.toml, board.toml, a task.toml or an interface file, before anything is compiled; what does not compile, fit or link.
pub fn dist(workspace: &Workspace, toolchain: &Toolchain, options: &Options) -> Result<Artifacts> {
    let system = manifest::load(&workspace.root, options.board.as_deref(), options.image, &options.overrides)?;
    check_interfaces(&workspace.root)?;
    let (board, image) = (system.board.name.clone(), options.image.name());
    say(format!("Building the {image} image of {} for {board}", system.name));
    let objects = Objects::compile(workspace, toolchain, &system)?;
    let activity = Activity::start("Linking");
    let scratch = workspace.target.join("images").join("link").join(format!("{board}-{image}"));
    let link = Link { linker: &toolchain.linker, folder: &scratch };
    let (kernel_sizes, task_sizes) = objects.measure(&link, &system)?;
    let plan = manifest::plan(&system, kernel_sizes, &task_sizes)?;
    let (kernel, tasks) = objects.link(&link, &system, &plan)?;
    for (program, expected) in std::iter::once((&kernel, &kernel_sizes)).chain(tasks.iter().zip(&task_sizes)) {
        if program.sizes != *expected {
            bail!(
                "{} changed its size when it was moved; this is an error in the linker script",
                program.elf.display()
            );
        }
    }
    activity.update("Writing the image");
    let mut artifacts = Artifacts { folder: workspace.dist(&board, image), system, plan, kernel, tasks };
    write(workspace, toolchain, &mut artifacts)?;
    drop(activity);
    warn_of_stacks(&artifacts);
    Ok(artifacts)
}

/// Says which stacks are smaller than the code that was found to need them.
fn warn_of_stacks(artifacts: &Artifacts) {
    let system = &artifacts.system;
    let stacks = std::iter::once(system.kernel.stack.value).chain(system.tasks.iter().map(|task| task.stack.value));
    for ((name, program), stack) in artifacts.programs().zip(stacks) {
        if program.stack.bytes > stack {
            say(format!(
                "warning: {name} has {stack} bytes of stack, and a path of calls that takes {}; `cargo xtask map` shows it",
                program.stack.bytes
            ));
        }
    }
}

/// The relocatable objects.
struct Objects {
    kernel: PathBuf,
    tasks: Vec<PathBuf>,
}

impl Objects {
    fn compile(workspace: &Workspace, toolchain: &Toolchain, system: &System) -> Result<Self> {
        let kernel = Unit { package: "kernel".to_owned(), floating_point: false };
        let unit = |task: &manifest::Task| Unit { package: task.package.clone(), floating_point: task.floating_point };
        let tasks: Vec<Unit> = system.tasks.iter().map(unit).collect();
        let mut units = tasks.clone();
        units.push(kernel.clone());
        let objects = compile::compile(workspace, toolchain, &system.board.cpu, &units)?;
        Ok(Self { kernel: objects[&kernel].clone(), tasks: tasks.iter().map(|unit| objects[unit].clone()).collect() })
    }

    fn measure(&self, link: &Link<'_>, system: &System) -> Result<(Sizes, Vec<Sizes>)> {
        let tasks = system.tasks.iter().zip(&self.tasks);
        let tasks = tasks.map(|(task, object)| link.measure_task(&task.name.value, object)).collect::<Result<_>>()?;
        Ok((link.measure_kernel(&self.kernel)?, tasks))
    }

    fn link(&self, link: &Link<'_>, system: &System, plan: &Plan) -> Result<(Program, Vec<Program>)> {
        let tasks = system.tasks.iter().zip(&self.tasks).zip(&plan.tasks);
        let tasks =
            tasks.map(|((task, object), place)| link.task(&task.name.value, object, place)).collect::<Result<_>>()?;
        Ok((link.kernel(&self.kernel, &plan.kernel)?, tasks))
    }
}

/// Everything that a loader puts into memory.
fn segments(artifacts: &Artifacts) -> Result<Vec<Segment>> {
    let Artifacts { system, plan, kernel, tasks, .. } = artifacts;
    let mut segments: Vec<Segment> =
        std::iter::once(kernel).chain(tasks).flat_map(|program| program.segments.clone()).collect();
    let mut add = |name: &str, span: manifest::Span, data: Vec<u8>| {
        let memory = data.len() as u64;
        if memory > span.size {
            bail!("{name} needs {memory} bytes, and {} are planned", span.size);
        }
        segments.push(Segment { address: span.base, data, memory, flags: 4 });
        Ok(())
    };
    let entries: Vec<u64> = tasks.iter().map(|task| task.entry).collect();
    add("the kernel's table", plan.kernel.table, encode_image(&plan.image(system, &entries)))?;
    for (index, place) in plan.tasks.iter().enumerate() {
        let name = format!("the configuration page of {}", system.tasks[index].name.value);
        add(&name, place.config, encode_config(&plan.task_config(system, index)))?;
    }
    assemble::sorted(segments)
}

fn write(workspace: &Workspace, toolchain: &Toolchain, artifacts: &mut Artifacts) -> Result<()> {
    let segments = segments(artifacts)?;
    // What is left of an earlier build would look like part of this one.
    match fs::remove_dir_all(&artifacts.folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error)
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot empty {}", artifacts.folder.display()));
        }
        _ => {}
    }
    let mut files: Vec<Entry> = vec![
        ("image.elf".to_owned(), assemble::elf(&segments, artifacts.kernel.entry)?),
        ("image.bin".to_owned(), assemble::binary(&segments)?),
        ("map.txt".to_owned(), map::text(artifacts).into_bytes()),
        ("app.toml".to_owned(), read(&workspace.root.join("app.toml"))?),
        (
            "board.toml".to_owned(),
            read(&workspace.root.join("boards").join(&artifacts.system.board.name).join("board.toml"))?,
        ),
    ];
    for (name, program) in artifacts.programs() {
        files.push((format!("elf/{name}"), read(&program.elf)?));
    }
    let record = record::text(artifacts, toolchain, &files)?;
    files.push(("manifest.json".to_owned(), record.into_bytes()));
    let packed = archive::pack(files.clone())?;
    files.push((format!("{}.zip", artifacts.system.board.name), packed));
    for (name, bytes) in &files {
        let path = artifacts.folder.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .into_diagnostic()
                .wrap_err_with(|| format!("cannot make {}", folder.display()))?;
        }
        fs::write(&path, bytes).into_diagnostic().wrap_err_with(|| format!("cannot write {}", path.display()))?;
    }
    // The linker's own folder is used again by the next build.
    artifacts.kernel.elf = artifacts.folder.join("elf/kernel");
    for (task, program) in artifacts.system.tasks.iter().zip(&mut artifacts.tasks) {
        program.elf = artifacts.folder.join("elf").join(&task.name.value);
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).into_diagnostic().wrap_err_with(|| format!("cannot read {}", path.display()))
}

/// Builds the image again from a copy of the sources in another folder, and compares the bytes of image and archive.
///
/// # Errors
/// If they differ, or if one of the builds fails.
pub fn check_reproducible(workspace: &Workspace, toolchain: &Toolchain, options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("leasehold-copy-").tempdir().into_diagnostic()?;
    let root = folder.path().join("sources");
    copy(&workspace.root, &root)?;
    let root = root.canonicalize().into_diagnostic()?;
    let other = Workspace { target: root.join("target"), root };
    let here = dist(workspace, toolchain, options)?;
    let there = dist(&other, toolchain, options)?;
    for name in ["image.elf".to_owned(), "image.bin".to_owned(), format!("{}.zip", here.system.board.name)] {
        if read(&here.folder.join(&name))? != read(&there.folder.join(&name))? {
            bail!("{name} has other bytes when it is built in another folder");
        }
    }
    Ok(())
}

/// Copies the sources: everything but what is built and what version control keeps.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).into_diagnostic()?;
    for entry in fs::read_dir(from).into_diagnostic()? {
        let entry = entry.into_diagnostic()?;
        let (name, kind) = (entry.file_name(), entry.file_type().into_diagnostic()?);
        if kind.is_dir() && name != "target" && name != ".git" {
            copy(&entry.path(), &to.join(name))?;
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(name)).into_diagnostic()?;
        }
    }
    Ok(())
}
