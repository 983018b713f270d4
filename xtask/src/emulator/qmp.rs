//! The emulator's machine-readable monitor (QMP): one JSON value per line.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, WrapErr, bail, miette};
use serde_json::{Value, json};

/// A connection to the monitor.
#[derive(Debug)]
pub struct Monitor {
    reader: BufReader<UnixStream>,
}

impl Monitor {
    /// Connects once the emulator listens, and reads its greeting.
    ///
    /// # Errors
    /// If that takes longer than `timeout`, or `ended` says that the emulator is gone.
    pub fn connect(socket: &Path, timeout: Duration, mut ended: impl FnMut() -> bool) -> Result<Self> {
        let deadline = Instant::now() + timeout;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(_) if ended() => bail!("the emulator ended at once"),
                Err(error) if Instant::now() >= deadline => {
                    return Err(error).into_diagnostic().wrap_err("no answer from the emulator's monitor");
                }
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        stream.set_read_timeout(Some(timeout)).into_diagnostic()?;
        let mut monitor = Self { reader: BufReader::new(stream) };
        let greeting = monitor.line()?;
        if greeting.get("QMP").is_none() {
            bail!("the emulator's monitor greeted with {greeting}");
        }
        Ok(monitor)
    }

    /// Executes a command and returns its result; events in between are dropped.
    ///
    /// # Errors
    /// If the emulator refuses it, ended or does not answer.
    pub fn execute(&mut self, command: &str, arguments: Option<Value>) -> Result<Value> {
        let mut request = json!({ "execute": command });
        if let Some(arguments) = arguments {
            request["arguments"] = arguments;
        }
        let mut stream = self.reader.get_ref();
        writeln!(stream, "{request}").into_diagnostic().wrap_err("the emulator ended")?;
        loop {
            let mut answer = self.line()?;
            if let Some(error) = answer.get("error") {
                bail!("the emulator refused `{command}`: {}", error["desc"].as_str().unwrap_or("no reason given"));
            }
            if answer.get("return").is_some() {
                return Ok(answer["return"].take());
            }
        }
    }

    /// Executes a command of the monitor for people, and returns what it printed.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn human(&mut self, command: &str) -> Result<String> {
        let answer = self.execute("human-monitor-command", Some(json!({ "command-line": command })))?;
        answer.as_str().map(str::to_owned).ok_or_else(|| miette!("the emulator answered `{command}` with {answer}"))
    }

    fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        let count =
            self.reader.read_line(&mut line).into_diagnostic().wrap_err("no answer from the emulator's monitor")?;
        if count == 0 {
            bail!("the emulator ended");
        }
        serde_json::from_str(&line).into_diagnostic().wrap_err("the emulator's monitor sent something else than JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A monitor that says `lines`, whatever it is asked.
    fn serve(lines: &'static [&'static str]) -> (tempfile::TempDir, Monitor) {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("socket");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("client");
            for line in lines {
                writeln!(stream, "{line}").expect("client reads");
            }
            // Stay until the client has gone, so that it can write.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let monitor = Monitor::connect(&path, Duration::from_secs(5), || false).expect("greeting");
        (folder, monitor)
    }

    #[test]
    fn events_are_skipped_and_errors_passed_on() {
        let (_folder, mut monitor) = serve(&[
            r#"{"QMP": {"version": {}}}"#,
            r#"{"event": "RESUME"}"#,
            r#"{"return": "all well\r\n"}"#,
            r#"{"error": {"class": "GenericError", "desc": "no such link"}}"#,
        ]);
        assert_eq!(monitor.human("info status").expect("answer"), "all well\r\n");
        let error = monitor.execute("set_link", None).expect_err("refused").to_string();
        assert!(error.contains("no such link"), "{error}");
    }

    #[test]
    fn an_emulator_that_ended_is_noticed() {
        let folder = tempfile::tempdir().expect("folder");
        let error =
            Monitor::connect(&folder.path().join("none"), Duration::from_secs(5), || true).expect_err("nobody there");
        assert!(error.to_string().contains("ended at once"));
    }
}
