//! Links a relocatable object at its place, and reads what came out.

use std::fs;
use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, elf};

use crate::process;
use crate::script::{self, KERNEL_OFFSET, KernelPlace, TaskPlace};
use crate::toolchain::Linker;

/// Bytes of the parts of a linked program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Code.
    pub text: u64,
    /// Constants.
    pub rodata: u64,
    /// Variables with a start value.
    pub data: u64,
    /// Variables that start as zero. The kernel's include its stack.
    pub bss: u64,
}

/// Bytes that a loader puts into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Physical address.
    pub address: u64,
    /// The bytes.
    pub data: Vec<u8>,
    /// Bytes in memory: what is more than `data` starts as zero.
    pub memory: u64,
    /// ELF flags: read 4, write 2, execute 1.
    pub flags: u32,
}

/// A linked program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The ELF file with symbols.
    pub elf: PathBuf,
    /// First instruction, physical.
    pub entry: u64,
    /// Bytes of its parts.
    pub sizes: Sizes,
    /// What to load.
    pub segments: Vec<Segment>,
    /// Physical address of the first byte behind it.
    pub end: u64,
}

/// Links programs.
#[derive(Debug, Clone)]
pub struct Link<'a> {
    /// The linker.
    pub linker: &'a Linker,
    /// Where scripts and linked files go.
    pub folder: &'a Path,
}

impl Link<'_> {
    /// Links a task.
    ///
    /// # Errors
    /// If the linker fails: a missing symbol, a part that does not fit.
    pub fn task(&self, name: &str, object: &Path, place: &TaskPlace) -> Result<Program> {
        self.link(name, object, &script::task(place), 0)
    }

    /// Links the kernel.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    pub fn kernel(&self, object: &Path, place: &KernelPlace) -> Result<Program> {
        self.link("kernel", object, &script::kernel(place), KERNEL_OFFSET)
    }

    /// Links a task far away from everything, to learn its sizes.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    pub fn measure_task(&self, name: &str, object: &Path) -> Result<Sizes> {
        const FAR: u64 = 0x1000_0000;
        let place = TaskPlace { text: FAR, rodata: 2 * FAR, data: 3 * FAR, config: 4 * FAR };
        Ok(self.task(name, object, &place)?.sizes)
    }

    fn link(&self, name: &str, object: &Path, script: &str, offset: u64) -> Result<Program> {
        fs::create_dir_all(self.folder).into_diagnostic().wrap_err_with(|| format!("cannot make {}", self.folder.display()))?;
        let script_file = self.folder.join(format!("{name}.ld"));
        let output = self.folder.join(name);
        fs::write(&script_file, script).into_diagnostic().wrap_err_with(|| format!("cannot write {}", script_file.display()))?;
        let mut command = self.linker.command();
        command.args(["--gc-sections", "-nostdlib", "--build-id=none", "--no-dynamic-linker", "-z", "norelro", "-z", "noexecstack"]);
        command.args(["-z", "max-page-size=4096", "-O2", "--fatal-warnings"]);
        command.arg("-T").arg(&script_file).arg(object).arg("-o").arg(&output);
        process::output(&mut command).wrap_err_with(|| format!("cannot link {name}"))?;
        let bytes = fs::read(&output).into_diagnostic().wrap_err_with(|| format!("cannot read {}", output.display()))?;
        read(output, &bytes, offset).wrap_err_with(|| format!("the linked {name} is not as planned"))
    }
}

/// Reads a linked program whose virtual addresses are `offset` above the physical.
fn read(elf: PathBuf, bytes: &[u8], offset: u64) -> Result<Program> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).into_diagnostic()?;
    let sizes = sizes(&file)?;
    let mut segments = Vec::new();
    for header in file.elf_program_headers().iter().filter(|header| header.p_type(Endianness::Little) == elf::PT_LOAD) {
        let data = header.data(Endianness::Little, bytes).map_err(|()| miette!("a segment lies outside the file"))?;
        let memory = header.p_memsz(Endianness::Little);
        // A task's start-up code clears its own `.bss`; only the kernel's is left to the loader.
        let memory = if offset == 0 { data.len() as u64 } else { memory };
        if memory > 0 {
            let (address, flags) = (header.p_paddr(Endianness::Little), header.p_flags(Endianness::Little));
            segments.push(Segment { address, data: data.to_vec(), memory, flags: flags.0 });
        }
    }
    let end = segments.iter().map(|segment| segment.address + segment.memory).max();
    let end = end.ok_or_else(|| miette!("there is no code; `_start` is missing"))?;
    let entry = file.entry().wrapping_sub(offset);
    if !segments.iter().any(|segment| segment.flags & elf::PF_X.0 != 0 && (segment.address..segment.address + segment.memory).contains(&entry)) {
        bail!("the entry {entry:#x} lies outside the code");
    }
    Ok(Program { elf, entry, sizes, segments, end })
}

/// The parts' sizes; every section that is loaded must be one that the script placed.
fn sizes(file: &ElfFile64<'_>) -> Result<Sizes> {
    let mut sizes = Sizes::default();
    for section in file.sections() {
        let size = section.size();
        match section.name().into_diagnostic()? {
            ".text" => sizes.text = size,
            ".rodata" => sizes.rodata = size,
            ".data" => sizes.data = size,
            ".bss" | ".stack" => sizes.bss += size,
            name => {
                let loaded = matches!(section.kind(), SectionKind::Text | SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::UninitializedData);
                if loaded && size > 0 {
                    let first = file.symbols().find(|symbol| symbol.section_index() == Some(section.index()));
                    let what = first.and_then(|symbol| symbol.name().ok().map(str::to_owned)).unwrap_or_default();
                    bail!("section {name} has no place in memory (it holds {what}); put the symbol into .text, .rodata, .data or .bss");
                }
            }
        }
    }
    Ok(sizes)
}
