//! Puts all segments into one ELF file that a loader takes, and into a raw binary.

use miette::{IntoDiagnostic, Result, bail};
use object::write::elf::{FileHeader, ProgramHeader, Writer};
use object::{Endianness, elf};

use crate::link::Segment;

/// Boards have memory for images up to this size; more is a mistake in the plan.
const LARGEST: u64 = 1 << 30;

/// Sorts segments by address and drops empty ones.
///
/// # Errors
/// If two overlap.
pub fn sorted(mut segments: Vec<Segment>) -> Result<Vec<Segment>> {
    segments.retain(|segment| segment.memory > 0);
    segments.sort_by_key(|segment| segment.address);
    for pair in segments.windows(2) {
        let end = pair[0].address + pair[0].memory;
        if end > pair[1].address {
            bail!(
                "two parts of the image overlap: {:#x} to {end:#x}, and from {:#x}",
                pair[0].address,
                pair[1].address
            );
        }
    }
    Ok(segments)
}

/// The ELF file: program headers only, all addresses physical.
///
/// # Errors
/// If the parts are too many for the format.
pub fn elf(segments: &[Segment], entry: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    writer.reserve_file_header();
    writer.reserve_program_headers(segments.len() as u32);
    // Page-aligned in the file as in memory, so that a loader may map it.
    let offsets: Vec<u64> = segments.iter().map(|segment| writer.reserve(segment.data.len() as u64, 4096)).collect();
    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_EXEC,
        e_machine: elf::EM_AARCH64,
        e_entry: entry,
        e_flags: elf::FileFlags(0),
    };
    writer.write_file_header(&header).into_diagnostic()?;
    writer.write_align_program_headers();
    for (segment, &p_offset) in segments.iter().zip(&offsets) {
        writer.write_program_header(&ProgramHeader {
            p_type: elf::PT_LOAD,
            p_flags: elf::ProgramFlags(segment.flags),
            p_offset,
            p_vaddr: segment.address,
            p_paddr: segment.address,
            p_filesz: segment.data.len() as u64,
            p_memsz: segment.memory,
            p_align: 4096,
        });
    }
    for segment in segments {
        writer.write_align(4096);
        writer.write(&segment.data);
    }
    Ok(bytes)
}

/// The bytes from the first address on, gaps filled with zeroes. What only starts as zero at the end is left out.
///
/// # Errors
/// If the parts lie too far apart.
pub fn binary(segments: &[Segment]) -> Result<Vec<u8>> {
    let Some(base) = segments.first().map(|segment| segment.address) else {
        return Ok(Vec::new());
    };
    let end = segments
        .iter()
        .filter(|segment| !segment.data.is_empty())
        .map(|segment| segment.address + segment.data.len() as u64)
        .max();
    let len = end.unwrap_or(base) - base;
    if len > LARGEST {
        bail!("the image spans {len:#x} bytes, more than {LARGEST:#x}");
    }
    let mut bytes = vec![0; len as usize];
    for segment in segments.iter().filter(|segment| !segment.data.is_empty()) {
        let from = (segment.address - base) as usize;
        bytes[from..from + segment.data.len()].copy_from_slice(&segment.data);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::Object;
    use object::read::elf::{ElfFile64, ProgramHeader as _};

    fn segment(address: u64, data: &[u8], memory: u64, flags: u32) -> Segment {
        Segment { address, data: data.to_vec(), memory, flags }
    }

    #[test]
    fn the_file_reads_back_as_written() {
        let segments = sorted(vec![
            segment(0x3000, b"later", 0x2000, 6),
            segment(0x1000, b"code", 4, 5),
            segment(0x2000, b"", 0, 4),
        ])
        .expect("disjoint");
        let bytes = elf(&segments, 0x1004).expect("writable");
        let file: ElfFile64<'_> = ElfFile64::parse(&bytes[..]).expect("an ELF file");
        assert_eq!(file.entry(), 0x1004);
        let read: Vec<Segment> = file
            .elf_program_headers()
            .iter()
            .map(|header| {
                assert_eq!(header.p_offset(Endianness::Little) % 4096, header.p_vaddr(Endianness::Little) % 4096);
                let data = header.data(Endianness::Little, &bytes[..]).expect("in the file");
                segment(
                    header.p_paddr(Endianness::Little),
                    data,
                    header.p_memsz(Endianness::Little),
                    header.p_flags(Endianness::Little).0,
                )
            })
            .collect();
        assert_eq!(read, segments);
    }

    #[test]
    fn the_binary_has_gaps_filled_and_no_tail() {
        let segments = [segment(0x1000, b"ab", 2, 5), segment(0x1004, b"c", 1, 4), segment(0x2000, b"", 0x1000, 6)];
        assert_eq!(binary(&segments).expect("small"), b"ab\0\0c");
        assert_eq!(binary(&[]).expect("empty"), b"");
        assert!(binary(&[segment(0, b"a", 1, 4), segment(1 << 31, b"b", 1, 4)]).is_err());
    }

    #[test]
    fn overlap_is_refused() {
        let error = sorted(vec![segment(0x1000, b"a", 0x1001, 6), segment(0x2000, b"b", 1, 4)]).expect_err("overlap");
        assert!(error.to_string().contains("0x1000 to 0x2001"), "{error}");
    }
}
