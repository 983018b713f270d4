//! Links a relocatable object at its place, and reads what came out.

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{KernelPlacement, Sizes, Span, TaskPlacement};
use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionKind, elf};

use crate::process;
use crate::script::{self, KERNEL_OFFSET};
use crate::stack::{self, Bound, Start};
use crate::toolchain::Linker;

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
    /// How much stack it takes.
    pub stack: Bound,
}

/// Links programs.
#[derive(Debug, Clone)]
pub struct Link<'a> {
    /// The linker.
    pub linker: &'a Linker,
    /// Where scripts and linked files go.
    pub folder: &'a Path,
}

/// Between the parts of a program that is linked only to learn its sizes.
const FAR: u64 = 0x1000_0000;

impl Link<'_> {
    /// Links a task.
    ///
    /// # Errors
    /// If the linker fails: a missing symbol, a part that does not fit.
    pub fn task(&self, name: &str, object: &Path, place: &TaskPlacement) -> Result<Program> {
        self.link(name, object, &script::task(place), 0)
    }

    /// Links the kernel.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    pub fn kernel(&self, object: &Path, place: &KernelPlacement) -> Result<Program> {
        self.link("kernel", object, &script::kernel(place), KERNEL_OFFSET)
    }

    /// Links a task far away from everything, to learn its sizes.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    pub fn measure_task(&self, name: &str, object: &Path) -> Result<Sizes> {
        let [text, rodata, data, config] = far();
        Ok(self.task(name, object, &TaskPlacement { text, rodata, data, config, ..Default::default() })?.sizes)
    }

    /// Links the kernel far away from everything, to learn its sizes.
    ///
    /// # Errors
    /// As [`task`](Self::task).
    pub fn measure_kernel(&self, object: &Path) -> Result<Sizes> {
        let [text, rodata, data, table] = far();
        Ok(self.kernel(object, &KernelPlacement { text, rodata, data, table, ..Default::default() })?.sizes)
    }

    fn link(&self, name: &str, object: &Path, script: &str, offset: u64) -> Result<Program> {
        fs::create_dir_all(self.folder)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot make {}", self.folder.display()))?;
        let script_file = self.folder.join(format!("{name}.ld"));
        let output = self.folder.join(name);
        fs::write(&script_file, script)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write {}", script_file.display()))?;
        let mut command = self.linker.command();
        command.args([
            "--gc-sections",
            "-nostdlib",
            "--build-id=none",
            "--no-dynamic-linker",
            "-z",
            "norelro",
            "-z",
            "noexecstack",
        ]);
        command.args(["-z", "max-page-size=4096", "-O2", "--fatal-warnings"]);
        command.arg("-T").arg(&script_file).arg(object).arg("-o").arg(&output);
        process::output(&mut command).wrap_err_with(|| format!("cannot link {name}"))?;
        let bytes =
            fs::read(&output).into_diagnostic().wrap_err_with(|| format!("cannot read {}", output.display()))?;
        read(output, &bytes, offset).wrap_err_with(|| format!("the linked {name} is not as planned"))
    }
}

fn far() -> [Span; 4] {
    [1, 2, 3, 4].map(|index| Span { base: index * FAR, size: FAR })
}

/// Reads a linked program whose virtual addresses are `offset` above the physical.
fn read(elf: PathBuf, bytes: &[u8], offset: u64) -> Result<Program> {
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).into_diagnostic()?;
    check_sections(&file)?;
    let sizes = sizes(&file)?;
    let mut segments = Vec::new();
    for header in file.elf_program_headers().iter().filter(|header| header.p_type(Endianness::Little) == elf::PT_LOAD) {
        let data = header.data(Endianness::Little, bytes).map_err(|()| miette!("a segment lies outside the file"))?;
        // Start-up code clears `.bss`, so a loader only has to know what the file holds.
        let memory = data.len() as u64;
        if memory > 0 {
            let (address, flags) = (header.p_paddr(Endianness::Little), header.p_flags(Endianness::Little));
            segments.push(Segment { address, data: data.to_vec(), memory, flags: flags.0 });
        }
    }
    let entry = file.entry().wrapping_sub(offset);
    let code = |segment: &&Segment| {
        segment.flags & elf::PF_X.0 != 0 && (segment.address..segment.address + segment.memory).contains(&entry)
    };
    if !segments.iter().any(|segment| code(&segment)) {
        bail!("the entry {entry:#x} lies outside the code; `_start` is missing");
    }
    let stack = stack::bound(&file, if offset == 0 { Start::Entry } else { Start::Anywhere })?;
    Ok(Program { elf, entry, sizes, segments, stack })
}

/// The parts' sizes. Gaps between variables count as variables that start as zero.
fn sizes(file: &ElfFile64<'_>) -> Result<Sizes> {
    let section = |name| file.section_by_name(name).map_or(0, |section| section.size());
    let symbol = |name: &str| {
        let symbol = file.symbol_by_name(name).ok_or_else(|| miette!("the linker did not define {name}"))?;
        Ok::<u64, miette::Report>(symbol.address())
    };
    let (start, end, zeroed) = (symbol("__data_start")?, symbol("__data_end")?, symbol("__bss_end")?);
    let has_bss = section(".bss") > 0;
    Ok(Sizes {
        text: section(".text"),
        rodata: section(".rodata"),
        data: end - start,
        bss: if has_bss { zeroed - end } else { 0 },
    })
}

/// Every section that is loaded must be one that the script placed.
fn check_sections(file: &ElfFile64<'_>) -> Result<()> {
    for section in file.sections() {
        let kind = section.kind();
        let loaded = matches!(
            kind,
            SectionKind::Text | SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::UninitializedData
        );
        let name = section.name().into_diagnostic()?;
        if loaded && section.size() > 0 && ![".text", ".rodata", ".data", ".bss"].contains(&name) {
            let first = file.symbols().find(|symbol| {
                symbol.section_index() == Some(section.index()) && symbol.name().is_ok_and(|name| !name.is_empty())
            });
            let what = first.and_then(|symbol| symbol.name().ok().map(str::to_owned)).unwrap_or_default();
            bail!(
                "section {name} has no place in memory (it holds {what}); put the symbol into .text, .rodata, .data or .bss"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::Compiler;
    use object::write::{Object as Writer, Relocation, Symbol, SymbolSection};
    use object::{Architecture, BinaryFormat, RelocationFlags, SymbolFlags, SymbolKind, SymbolScope};

    /// An object such as the compiler makes: code that calls a function and refers to a variable, and code nobody calls.
    fn object(extra: &[(&str, SectionKind)]) -> Vec<u8> {
        let mut object = Writer::new(BinaryFormat::Elf, Architecture::Aarch64, object::Endianness::Little);
        let mut add = |section: &str, kind, symbol: &str, data: &[u8], bss: u64| {
            let id = object.add_section(Vec::new(), section.into(), kind);
            if bss > 0 {
                object.append_section_bss(id, bss, 8)
            } else {
                object.append_section_data(id, data, 8)
            };
            let symbol = object.add_symbol(Symbol {
                name: symbol.into(),
                value: 0,
                size: data.len() as u64 + bss,
                kind: if kind == SectionKind::Text { SymbolKind::Text } else { SymbolKind::Data },
                scope: SymbolScope::Linkage,
                weak: false,
                section: SymbolSection::Section(id),
                flags: SymbolFlags::None,
            });
            (id, symbol)
        };
        let (start, _) = add(".text.start", SectionKind::Text, "_start", &[0; 24], 0);
        let (_, called) = add(".text.called", SectionKind::Text, "called", &[1; 8], 0);
        add(".text.unused", SectionKind::Text, "unused", &[2; 400], 0);
        let (_, constant) = add(".rodata.constant", SectionKind::ReadOnlyData, "constant", &[3; 12], 0);
        let (_, variable) = add(".data.variable", SectionKind::Data, "variable", &[4; 8], 0);
        let (_, zeroed) = add(".bss.zeroed", SectionKind::UninitializedData, "zeroed", &[], 40);
        let mut referred = vec![(0, called), (8, constant), (12, variable), (16, zeroed)];
        for (name, kind) in extra {
            referred.push((20, add(name, *kind, "extra", &[5; 8], 0).1));
        }
        for (offset, symbol) in referred {
            let r_type = if offset == 0 { elf::R_AARCH64_CALL26 } else { elf::R_AARCH64_PREL32 };
            object
                .add_relocation(start, Relocation { offset, symbol, addend: 0, flags: RelocationFlags::Elf { r_type } })
                .expect("a relocation");
        }
        object.write().expect("an object")
    }

    fn link(folder: &Path, bytes: &[u8], place: &TaskPlacement) -> Result<Program> {
        let compiler = Compiler::current().expect("a compiler");
        let linker = Linker::find(&compiler).expect("a linker");
        let file = folder.join("object");
        fs::write(&file, bytes).expect("writable");
        Link { linker: &linker, folder }.task("task", &file, place)
    }

    fn place() -> TaskPlacement {
        let [text, rodata, data, config] =
            [0x20_0000, 0x20_1000, 0x30_0000, 0x20_2000].map(|base| Span { base, size: 0x1000 });
        TaskPlacement { text, rodata, data, config, ..Default::default() }
    }

    #[test]
    fn parts_go_where_the_plan_says_and_unused_code_goes_nowhere() {
        let folder = tempfile::tempdir().expect("folder");
        let program = link(folder.path(), &object(&[]), &place()).expect("links");
        assert_eq!(program.entry, 0x20_0000);
        assert_eq!(program.sizes, Sizes { text: 32, rodata: 16, data: 8, bss: 40 });
        let places: Vec<_> = program
            .segments
            .iter()
            .map(|segment| (segment.address, segment.data.len(), segment.memory, segment.flags))
            .collect();
        // `.data` is loaded behind the constants, and `.bss` not at all.
        assert_eq!(places, [(0x20_0000, 32, 32, 5), (0x20_1000, 16, 16, 4), (0x20_1010, 8, 8, 6)]);
        assert_eq!(program.segments[2].data, [4; 8]);
    }

    #[test]
    fn the_same_object_gives_the_same_bytes() {
        let (one, other) = (tempfile::tempdir().expect("folder"), tempfile::tempdir().expect("folder"));
        let elf = |folder: &Path| fs::read(link(folder, &object(&[]), &place()).expect("links").elf).expect("readable");
        assert_eq!(elf(one.path()), elf(other.path()));
    }

    #[test]
    fn a_section_without_a_place_is_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        let error = link(folder.path(), &object(&[(".fast", SectionKind::Data)]), &place()).expect_err("no place");
        assert!(format!("{error:?}").contains(".fast"), "{error:?}");
    }

    #[test]
    fn the_kernel_is_entered_at_its_physical_address() {
        let folder = tempfile::tempdir().expect("folder");
        let compiler = Compiler::current().expect("a compiler");
        let linker = Linker::find(&compiler).expect("a linker");
        let file = folder.path().join("object");
        fs::write(&file, object(&[])).expect("writable");
        let [text, rodata, data, table] =
            [0x20_0000, 0x20_1000, 0x20_2000, 0x20_4000].map(|base| Span { base, size: 0x1000 });
        let place = KernelPlacement { text, rodata, data, table, ..Default::default() };
        let program = Link { linker: &linker, folder: folder.path() }.kernel(&file, &place).expect("links");
        assert_eq!(program.entry, 0x20_0000);
        assert_eq!(
            program.segments.iter().map(|segment| segment.address).collect::<Vec<_>>(),
            [0x20_0000, 0x20_1000, 0x20_2000]
        );
        assert_eq!(program.sizes, Sizes { text: 32, rodata: 12, data: 16, bss: 48 });
    }
}
