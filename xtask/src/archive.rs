//! The archive of an image: everything in one file, the same bytes for the same content.

use std::io::{Cursor, Write};

use miette::{IntoDiagnostic, Result, WrapErr};
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// A file of the archive: its name there, its bytes.
pub type Entry = (String, Vec<u8>);

/// Packs files in the order of their names, with a fixed time and fixed rights.
///
/// # Errors
/// If two have the same name.
pub fn pack(mut entries: Vec<Entry>) -> Result<Vec<u8>> {
    entries.sort();
    // Times and rights of the machine that built it are nobody's business, and would change the bytes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(6))
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(&name, options).into_diagnostic().wrap_err_with(|| format!("cannot add {name}"))?;
        writer.write_all(&bytes).into_diagnostic()?;
    }
    Ok(writer.finish().into_diagnostic()?.into_inner())
}

/// SHA-256 in hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn entries() -> Vec<Entry> {
        vec![("tasks/net".to_owned(), vec![7; 10_000]), ("map.txt".to_owned(), b"map".to_vec())]
    }

    #[test]
    fn content_comes_back() {
        let packed = pack(entries()).expect("packs");
        let mut archive = zip::ZipArchive::new(Cursor::new(&packed)).expect("an archive");
        let names: Vec<String> = archive.file_names().map(|name| name.expect("UTF-8").into_owned()).collect();
        assert_eq!(names, ["map.txt", "tasks/net"]);
        let mut bytes = Vec::new();
        archive.by_name("tasks/net").expect("there").read_to_end(&mut bytes).expect("whole");
        assert_eq!(bytes, vec![7; 10_000]);
        assert!(packed.len() < 5_000, "not compressed: {}", packed.len());
    }

    #[test]
    fn order_and_time_do_not_matter() {
        let first = pack(entries()).expect("packs");
        // Times in an archive have a resolution of two seconds.
        std::thread::sleep(std::time::Duration::from_millis(2100));
        let second = pack(entries().into_iter().rev().collect()).expect("packs");
        assert_eq!(first, second);
        assert!(pack(vec![("a".to_owned(), vec![]), ("a".to_owned(), vec![])]).is_err());
    }

    #[test]
    fn checksums_are_those_of_other_tools() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
