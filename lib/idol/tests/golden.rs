//! Broken files and what is said of them; good files and what becomes of them.
//!
//! With `UPDATE_GOLDEN=1` in the environment the expected texts are written anew; read the difference before committing it.

use std::fs;
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "idol"))
        .collect();
    files.sort();
    files
}

/// Compares with the file beside the case. Returns what differs.
fn compare(case: &Path, extension: &str, actual: &str) -> Option<String> {
    let golden = case.with_extension(extension);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, actual).expect("writable");
        return None;
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    (expected != actual).then(|| format!("{}\n--- expected\n{expected}\n--- actual\n{actual}", case.display()))
}

#[test]
fn broken_files() {
    let cases = files("broken");
    assert!(cases.len() >= 70, "cases are missing: {}", cases.len());
    let mut failures = Vec::new();
    for case in cases {
        let text = fs::read_to_string(&case).expect("readable");
        let name = PathBuf::from(case.file_name().expect("a name"));
        match idol::compile(&name, &text) {
            Ok(_) => failures.push(format!("{}: nothing is wrong", case.display())),
            Err(report) => failures.extend(compare(&case, "expected", &report.render())),
        }
        let checked = idol::check(&case).expect_err("as compile");
        assert!(checked.problems().count() > 0);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn every_problem_has_its_place_and_a_remedy() {
    for case in files("broken") {
        let text = fs::read_to_string(&case).expect("readable");
        let report = idol::compile(&case, &text).expect_err("broken");
        for problem in report.problems() {
            assert!(problem.span.start <= problem.span.end && problem.span.end <= text.len(), "{problem:?}");
            assert!(text.is_char_boundary(problem.span.start) && text.is_char_boundary(problem.span.end));
            assert!(!problem.message.is_empty() && !problem.help.is_empty(), "{}: {problem:?}", case.display());
        }
    }
}

#[test]
fn good_files() {
    for case in files("good") {
        let text = fs::read_to_string(&case).expect("readable");
        let name = PathBuf::from(case.file_name().expect("a name"));
        let code = idol::compile(&name, &text).unwrap_or_else(|report| panic!("{}", report.render()));
        if let Some(difference) = compare(&case, "rs", &code) {
            panic!("{difference}");
        }
    }
}

#[test]
fn a_missing_file_is_reported() {
    let report = idol::check(Path::new("no-such.idol")).expect_err("no file");
    assert!(report.render().contains("cannot read the file"), "{}", report.render());
}

#[test]
fn whole_folders_are_checked() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let interfaces = idol::check_all(here.parent().expect("the folder of libraries")).expect("ours are right");
    assert!(interfaces.iter().any(|file| file.ends_with("mac-api/mac.idol")), "{interfaces:?}");
    let reports = idol::check_all(&here.join("tests")).expect_err("the broken ones");
    assert_eq!(reports.len(), files("broken").len());
    assert!(reports.is_sorted_by_key(|report| report.path().to_owned()));
}
