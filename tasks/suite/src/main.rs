//! Self-tests over real system calls: runs what the host asks for, one test at a time.

#![cfg_attr(target_os = "none", no_std, no_main)]
#![deny(unsafe_code)]
#![allow(clippy::result_large_err, reason = "a complaint carries its text, and only failing tests make one")]

#[cfg(target_os = "none")]
mod check;
#[cfg(target_os = "none")]
mod console;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod suite;
#[cfg(target_os = "none")]
mod tests;
#[cfg(target_os = "none")]
mod victims;

/// The host has no kernel to test.
#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
mod task {
    use ::suite::Command;
    use report::{Outcome as Result, Record};

    use crate::suite::Suite;
    use crate::tests;

    userlib::entry!(main);

    fn main() -> ! {
        let mut suite = Suite::new();
        // An earlier instance that died in a test says why, so that the host can put it into the result.
        suite.report_own_death();
        suite.console.send(&Record::Suite { tests: tests::all().count() as u16 });
        loop {
            let mut line = heapless::String::<120>::new();
            suite.read_line(&mut line);
            match Command::parse(&line) {
                Some(Command::List) => list(&mut suite),
                Some(Command::Run(name)) => run(&mut suite, name),
                Some(Command::Peer(address, port)) => suite.set_peer(address, port),
                None => suite.console.send(&Record::Log("not a command")),
            }
        }
    }

    fn list(suite: &mut Suite) {
        let mut skipped = 0;
        for test in tests::all() {
            suite.console.send(&Record::Outcome {
                name: test.name,
                outcome: Result::Skipped("only listed"),
                micros: 0,
            });
            skipped += 1;
        }
        suite.console.send(&Record::End { passed: 0, failed: 0, skipped });
    }

    fn run(suite: &mut Suite, name: &str) {
        let Some(test) = tests::all().find(|test| test.name == name) else {
            suite.console.send(&Record::Outcome { name, outcome: Result::Failed("no such test"), micros: 0 });
            return;
        };
        suite.console.send(&Record::Start { name });
        let start = userlib::time::micros();
        let outcome = suite.run(test);
        let micros = userlib::time::micros() - start;
        let result = match &outcome {
            Ok(()) => Result::Passed,
            Err(failure) => Result::Failed(failure.text()),
        };
        suite.console.send(&Record::Outcome { name, outcome: result, micros });
    }
}
