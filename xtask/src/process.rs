//! Running other programs, with errors that show what they said.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use miette::{IntoDiagnostic, Result, WrapErr, miette};

/// The command as one can type it.
#[must_use]
pub fn shown(command: &Command) -> String {
    std::iter::once(command.get_program()).chain(command.get_args()).map(quote).collect::<Vec<_>>().join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs to the end and returns what was printed.
///
/// # Errors
/// If it cannot start or fails; with all that it said.
pub fn output(command: &mut Command) -> Result<String> {
    let done = command
        .stdin(Stdio::null())
        .output()
        .into_diagnostic()
        .wrap_err_with(|| format!("cannot start `{}`", shown(command)))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if done.status.success() {
        return Ok(text(&done.stdout));
    }
    Err(miette!("{}\n{}", text(&done.stdout), text(&done.stderr)).wrap_err(format!(
        "`{}` failed ({})",
        shown(command),
        done.status
    )))
}

/// Runs to the end with the terminal; for programs that show their own progress or ask.
///
/// # Errors
/// If it cannot start or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().into_diagnostic().wrap_err_with(|| format!("cannot start `{}`", shown(command)))?;
    if status.success() { Ok(()) } else { Err(miette!("`{}` failed ({status})", shown(command))) }
}

/// Finds a program in the search path.
#[must_use]
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian keeps some programs where the path of an ordinary user does not lead.
    let extra = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(extra).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("apt-get");
        command.args(["-o", "Dir::Etc::sourcelist=/dev/null", "install", "it's", ""]);
        assert_eq!(shown(&command), r"apt-get -o Dir::Etc::sourcelist=/dev/null install 'it'\''s' ''");
    }

    #[test]
    fn failures_carry_what_was_said() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = format!("{:?}", output(&mut command).expect_err("exit 3"));
        assert!(error.contains("out") && error.contains("err") && error.contains("exit status: 3"), "{error}");
        assert!(output(&mut Command::new("no-such-program")).is_err());
        assert!(find("sh").is_some() && find("no-such-program").is_none());
    }
}
