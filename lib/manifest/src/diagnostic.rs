//! Errors that show the place in the file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// A file that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Path relative to the root of the checkout.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub source: Arc<Source>,
    /// Bytes in it.
    pub span: Range<usize>,
}

/// One thing that is wrong, and what would be right.
#[derive(Debug, Clone)]
pub struct Problem {
    message: String,
    source: Option<NamedSource<String>>,
    labels: Vec<LabeledSpan>,
    help: Option<String>,
    /// Places too far away to be shown in the same snippet.
    notes: Vec<String>,
    text: String,
}

/// Lines between two places up to which one snippet shows both.
const NEAR: usize = 6;

impl Problem {
    /// A problem at a place: the message says what is wrong, the label what stands there.
    #[must_use]
    pub fn new(at: &Origin, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            source: Some(NamedSource::new(&at.source.path, at.source.text.clone())),
            labels: vec![LabeledSpan::new_primary_with_span(Some(label.into()), at.span.clone())],
            ..Self::without_place(message)
        }
    }

    /// A problem that no file shows.
    #[must_use]
    pub fn without_place(message: impl Into<String>) -> Self {
        let (labels, notes) = (Vec::new(), Vec::new());
        Self { message: message.into(), source: None, labels, help: None, notes, text: String::new() }
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self.say()
    }

    /// Shows another place: in the snippet if it is near, else by file and line.
    #[must_use]
    pub fn also(mut self, at: &Origin, label: impl Into<String>) -> Self {
        let same = self.source.as_ref().is_some_and(|source| source.name() == at.source.path);
        let first = self.labels.first().map_or(0, |label| line(&at.source.text, label.offset()));
        let other = line(&at.source.text, at.span.start);
        if same && first.abs_diff(other) <= NEAR {
            self.labels.push(LabeledSpan::new_with_span(Some(label.into()), at.span.clone()));
        } else {
            self.notes.push(format!("{}: {}:{other}", label.into(), at.source.path));
        }
        self.say()
    }

    /// Puts help and notes together.
    fn say(mut self) -> Self {
        let lines: Vec<&str> = self.help.iter().chain(&self.notes).map(String::as_str).collect();
        self.text = lines.join("\n");
        self
    }
}

/// Number of the line that holds a byte; the first is 1.
fn line(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.text.is_empty()).then(|| Box::new(&self.text) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty()).then(|| Box::new(self.labels.iter().cloned()) as Box<_>)
    }
}

/// All problems of a run; never empty.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    /// The problems, in the order in which they were found.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.problems[..] {
            [one] => one.fmt(f),
            problems => write!(f, "the configuration has {} errors", problems.len()),
        }
    }
}

impl std::error::Error for Diagnostics {}

impl Diagnostic for Diagnostics {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.single().and_then(Diagnostic::help)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single().and_then(Diagnostic::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        (self.problems.len() > 1)
            .then(|| Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)) as Box<_>)
    }
}

impl Diagnostics {
    fn single(&self) -> Option<&Problem> {
        match &self.problems[..] {
            [one] => Some(one),
            _ => None,
        }
    }
}
