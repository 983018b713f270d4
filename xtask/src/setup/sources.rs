//! A package source list of our own: the machine's Debian sources, with backports added.
//!
//! Where packages come from is for the machine to say: mirror and keys are taken from its own lists, and only the name
//! of the suite is ours.

use std::fs;
use std::path::{Path, PathBuf};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

/// A written source list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceList {
    /// Its folder: `sources/` with the list, `lists/` for what apt keeps.
    pub folder: PathBuf,
    /// The suite that was added.
    pub suite: String,
}

/// One source of the machine: where, which suites and components, further fields.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    uris: String,
    suites: Vec<String>,
    components: String,
    // Such as `Signed-By`, in the form of the newer format.
    further: Vec<(String, String)>,
}

/// Writes a list with the machine's Debian sources and its backports to `folder`.
///
/// # Errors
/// If this is not Debian, no source of its release is known, or the folder cannot be written.
pub fn backports(folder: &Path) -> Result<SourceList> {
    let release =
        fs::read_to_string("/etc/os-release").into_diagnostic().wrap_err("this system does not say what it is")?;
    let codename = field(&release, "VERSION_CODENAME");
    let (Some("debian"), Some(codename)) = (field(&release, "ID"), codename) else {
        return Err(miette!(
            "this is no Debian release with backports; install QEMU 8 or later with the system's package manager"
        ));
    };
    let own = machine_sources()?;
    let (suite, text) = with_backports(&own, codename)?;
    let sources = folder.join("sources");
    for needed in [&sources, &folder.join("lists/partial")] {
        fs::create_dir_all(needed).into_diagnostic().wrap_err_with(|| format!("cannot make {}", needed.display()))?;
    }
    fs::write(sources.join("leasehold.sources"), text).into_diagnostic().wrap_err("cannot write the source list")?;
    Ok(SourceList { folder: folder.to_owned(), suite })
}

fn field<'a>(release: &'a str, name: &str) -> Option<&'a str> {
    release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(|value| value.trim_matches('"'))
}

fn machine_sources() -> Result<Vec<Source>> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(parts) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(parts.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        // One that is not there or not readable adds nothing.
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("sources") => sources.extend(stanzas(&text)),
            Some("list") => sources.extend(text.lines().filter_map(one_line)),
            _ => {}
        }
    }
    Ok(sources)
}

/// `deb [signed-by=…] URI SUITE COMPONENT…`
fn one_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let mut rest = line.strip_prefix("deb ")?.trim_start();
    let mut further = Vec::new();
    if let Some(options) = rest.strip_prefix('[') {
        let (options, after) = options.split_once(']')?;
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=')?;
            // The other format has other names for a few options; these are the ones that decide about trust.
            let name = match name {
                "signed-by" => "Signed-By",
                "trusted" => "Trusted",
                _ => continue,
            };
            further.push((name.to_owned(), value.to_owned()));
        }
        rest = after;
    }
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    Some(Source {
        uris: uri.to_owned(),
        suites: vec![suite.to_owned()],
        components: words.collect::<Vec<_>>().join(" "),
        further,
    })
}

/// Stanzas of `Field: value` lines with a blank line between; lines that start with a space continue a value.
fn stanzas(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            sources.extend(source(std::mem::take(&mut fields)));
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(line);
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    sources
}

fn source(fields: Vec<(String, String)>) -> Option<Source> {
    let get =
        |name: &str| fields.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone());
    let binary = get("Types")?.split_whitespace().any(|kind| kind == "deb");
    let enabled = get("Enabled").is_none_or(|value| value != "no");
    if !binary || !enabled {
        return None;
    }
    Some(Source {
        uris: get("URIs")?,
        suites: get("Suites")?.split_whitespace().map(str::to_owned).collect(),
        components: get("Components").unwrap_or_default(),
        further: fields
            .into_iter()
            .filter(|(name, _)| ["Signed-By", "Trusted"].iter().any(|keep| name.eq_ignore_ascii_case(keep)))
            .collect(),
    })
}

/// All sources of the release `codename`, and its backports from where the release itself comes from.
fn with_backports(sources: &[Source], codename: &str) -> Result<(String, String)> {
    let suite = format!("{codename}-backports");
    let debian: Vec<&Source> =
        sources.iter().filter(|source| source.suites.iter().any(|suite| suite.starts_with(codename))).collect();
    let main = debian.iter().find(|source| source.suites.iter().any(|suite| suite == codename)).ok_or_else(|| {
        miette!("no source of Debian's release `{codename}` in /etc/apt; add one, or install QEMU 8 or later yourself")
    })?;
    let added = Source { suites: vec![suite.clone()], components: "main".to_owned(), ..(*main).clone() };
    let mut text = String::from("# Written by `cargo xtask setup` from the machine's own sources.\n");
    for source in debian.into_iter().chain([&added]) {
        text += &format!(
            "\nTypes: deb\nURIs: {}\nSuites: {}\nComponents: {}\n",
            source.uris,
            source.suites.join(" "),
            source.components
        );
        for (name, value) in &source.further {
            text += &format!("{name}: {value}\n");
        }
    }
    Ok((suite, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backports_come_from_the_same_mirror_with_the_same_keys() {
        let text = "# comment\nTypes: deb deb-src\nURIs: mirror://own/debian\nSuites: bookworm bookworm-updates\nComponents: main contrib\n\
                    Signed-By:\n -----BEGIN\n .\n key\n\nTypes: deb\nURIs: mirror://other\nSuites: nodistro\nComponents: main\n";
        let (suite, list) = with_backports(&stanzas(text), "bookworm").expect("has the release");
        assert_eq!(suite, "bookworm-backports");
        assert_eq!(
            list,
            "# Written by `cargo xtask setup` from the machine's own sources.\n\n\
             Types: deb\nURIs: mirror://own/debian\nSuites: bookworm bookworm-updates\nComponents: main contrib\nSigned-By: \n -----BEGIN\n .\n key\n\n\
             Types: deb\nURIs: mirror://own/debian\nSuites: bookworm-backports\nComponents: main\nSigned-By: \n -----BEGIN\n .\n key\n"
        );
    }

    #[test]
    fn lists_of_the_older_format_do_as_well() {
        let line =
            "deb [arch=amd64 signed-by=/keys/debian.gpg] mirror://own/debian bookworm main contrib # the release";
        let source = one_line(line).expect("a source");
        assert_eq!(source.further, [("Signed-By".to_owned(), "/keys/debian.gpg".to_owned())]);
        let (_, list) = with_backports(&[source], "bookworm").expect("has the release");
        assert!(list.contains("Suites: bookworm-backports\nComponents: main\nSigned-By: /keys/debian.gpg\n"), "{list}");
        assert_eq!(one_line("deb-src mirror://own bookworm main"), None);
        assert_eq!(one_line("# deb mirror://own bookworm main"), None);
    }

    #[test]
    fn a_machine_without_the_release_is_told() {
        let disabled = "Types: deb\nURIs: mirror://own\nSuites: bookworm\nEnabled: no\n";
        assert!(stanzas(disabled).is_empty());
        let error = with_backports(&[], "bookworm").expect_err("no source").to_string();
        assert!(error.contains("bookworm"), "{error}");
    }
}
