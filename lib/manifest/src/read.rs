//! Reads TOML tables, collects what is wrong with them, and goes on.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::diagnostic::{Origin, Problem, Source};
use crate::suggest::{nearest, suggest};
use crate::system::At;
use crate::value;

/// Collects problems.
#[derive(Debug, Default)]
pub struct Log(RefCell<Vec<Problem>>);

impl Log {
    /// Adds one.
    pub fn add(&self, problem: Problem) {
        self.0.borrow_mut().push(problem);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// All of them.
    pub fn into_problems(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}

/// Parses a file and hands its top table to `read`; syntax errors go to the log, and then nothing is read.
pub fn parse<T>(source: &Arc<Source>, log: &Log, read: impl FnOnce(Table<'_>) -> T) -> Option<T> {
    let (table, errors) = DeTable::parse_recoverable(&source.text);
    let start = Origin { source: Arc::clone(source), span: 0..0 };
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        log.add(Problem::new(&start.at(span), error.message(), "here").help("see https://toml.io for the syntax"));
    }
    errors.is_empty().then(|| {
        // Without a header of its own, what is missing in the top table is missing at its first line.
        let first = source.text.find('\n').unwrap_or(source.text.len());
        read(Table {
            at: start.at(0..first),
            log,
            name: String::new(),
            content: table.get_ref(),
            asked: RefCell::default(),
            missing: RefCell::default(),
        })
    })
}

/// A table that is being read. Keys nobody asked for are unknown.
pub struct Table<'a> {
    /// Its header, or the table itself if it stands on one line.
    pub at: Origin,
    log: &'a Log,
    name: String,
    content: &'a DeTable<'a>,
    asked: RefCell<Vec<&'static str>>,
    missing: RefCell<Vec<(&'static str, Problem)>>,
}

/// A value that is being read.
pub struct Cell<'a> {
    /// Where it stands.
    pub at: Origin,
    log: &'a Log,
    name: String,
    value: &'a DeValue<'a>,
}

impl<'a> Table<'a> {
    fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn cell(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Cell<'a> {
        Cell { at: self.at.at(value.span()), log: self.log, name: self.path(key), value: value.get_ref() }
    }

    /// A value of any form.
    pub fn get(&self, key: &'static str) -> Option<Cell<'a>> {
        self.asked.borrow_mut().push(key);
        self.content.get(key).map(|value| self.cell(key, value))
    }

    /// A value that need not be there.
    pub fn optional<T: Read>(&self, key: &'static str) -> Option<At<T>> {
        self.get(key).and_then(|cell| cell.read())
    }

    /// A value that must be there; `help` says what it could be.
    pub fn required<T: Read>(&self, key: &'static str, help: &str) -> Option<At<T>> {
        match self.get(key) {
            Some(cell) => cell.read(),
            None => {
                self.missing(key, help);
                None
            }
        }
    }

    /// Says that a key is missing, unless it turns out to be misspelt.
    fn missing(&self, key: &'static str, help: &str) {
        let message = format!("`{}` is missing", self.path(key));
        let problem = Problem::new(&self.at, message, format!("`{key}` belongs here")).help(help);
        self.missing.borrow_mut().push((key, problem));
    }

    /// A table that need not be there.
    pub fn table(&self, key: &'static str) -> Option<Table<'a>> {
        self.get(key).and_then(|cell| cell.table())
    }

    /// A table that must be there.
    pub fn required_table(&self, key: &'static str, help: &str) -> Option<Table<'a>> {
        match self.get(key) {
            Some(cell) => cell.table(),
            None => {
                self.missing(key, help);
                None
            }
        }
    }

    /// The entries of a table whose keys are names that the author chooses.
    pub fn entries(&self, key: &'static str) -> Vec<(At<String>, Cell<'a>)> {
        let Some(table) = self.table(key) else { return Vec::new() };
        let entries = table.content.iter().map(|(name, value)| {
            let at = self.at.at(name.span());
            (At { value: name.get_ref().to_string(), at }, table.cell(name.get_ref(), value))
        });
        entries.collect()
    }

    /// The tables in a table whose keys are names that the author chooses.
    pub fn tables(&self, key: &'static str) -> Vec<(At<String>, Table<'a>)> {
        self.entries(key).into_iter().filter_map(|(name, cell)| cell.table().map(|table| (name, table))).collect()
    }

    /// Reports the keys that nobody asked for, and those that are missing.
    pub fn finish(self) {
        let (asked, mut missing) = (self.asked.borrow(), self.missing.into_inner());
        for (key, _) in
            self.content.iter().filter(|(key, _)| !asked.iter().any(|asked| *asked == key.get_ref().as_ref()))
        {
            let (name, place) = (key.get_ref(), if self.name.is_empty() { "this file" } else { &self.name });
            let problem = Problem::new(
                &self.at.at(key.span()),
                format!("unknown key `{name}` in {place}"),
                "not a key of this table",
            );
            let absent = asked.iter().copied().filter(|asked| !self.content.contains_key(*asked));
            let meant = nearest(name, absent);
            missing.retain(|(key, _)| Some(*key) != meant);
            let all = || suggest(name, asked.iter().copied(), "keys of this table");
            self.log.add(problem.help(meant.map_or_else(all, |key| format!("did you mean `{key}`?"))));
        }
        missing.into_iter().for_each(|(_, problem)| self.log.add(problem));
    }
}

impl<'a> Cell<'a> {
    /// The value as a `T`.
    pub fn read<T: Read>(&self) -> Option<At<T>> {
        T::read(self).map(|value| At { value, at: self.at.clone() })
    }

    /// The value as a table.
    pub fn table(self) -> Option<Table<'a>> {
        match self.value {
            DeValue::Table(content) => Some(Table {
                at: self.at,
                log: self.log,
                name: self.name,
                content,
                asked: RefCell::default(),
                missing: RefCell::default(),
            }),
            _ => {
                self.wrong("a table");
                None
            }
        }
    }

    fn array(&self, what: &str) -> Option<&'a DeArray<'a>> {
        match self.value {
            DeValue::Array(array) => Some(array),
            _ => {
                self.wrong(what);
                None
            }
        }
    }

    /// The elements of a list; `what` describes it.
    pub fn elements(&self, what: &str) -> Vec<Cell<'a>> {
        let Some(array) = self.array(what) else { return Vec::new() };
        let cell = |value: &'a Spanned<DeValue<'a>>| Cell {
            at: self.at.at(value.span()),
            log: self.log,
            name: self.name.clone(),
            value: value.get_ref(),
        };
        array.iter().map(cell).collect()
    }

    /// Reports that the value should be `what`.
    fn wrong(&self, what: &str) {
        let found = match self.value {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let help = match what {
            "text" => "write it in quotes, like \"net\"",
            "a whole number" => "write it without quotes, like 3 or 0x10",
            "true or false" => "write true or false, without quotes",
            "a list" => "write it in brackets, like [\"stats\"]",
            "a table" => "write it with keys, like { size = \"4 KiB\" } or under a header of its own",
            "a size" => SIZE_HELP,
            _ => "see docs/architecture.md",
        };
        self.refuse(format!("`{}` must be {what}", self.name), format!("this is {found}"), help);
    }

    /// Reports a problem with the value.
    pub fn refuse(&self, message: impl Into<String>, label: impl Into<String>, help: impl Into<String>) {
        self.log.add(Problem::new(&self.at, message, label).help(help));
    }
}

/// Types that values can be read as.
pub trait Read: Sized {
    /// The value of `cell`; `None` if it is none, which is in the log then.
    fn read(cell: &Cell<'_>) -> Option<Self>;
}

impl Read for String {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        match cell.value {
            DeValue::String(text) => Some(text.to_string()),
            _ => {
                cell.wrong("text");
                None
            }
        }
    }
}

impl Read for bool {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        match cell.value {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                cell.wrong("true or false");
                None
            }
        }
    }
}

impl Read for i64 {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        let DeValue::Integer(integer) = cell.value else {
            cell.wrong("a whole number");
            return None;
        };
        let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok();
        if value.is_none() {
            cell.refuse(
                format!("`{}` is too large", cell.name),
                "this number has more than 63 bits",
                "a whole number below 0x8000_0000_0000_0000",
            );
        }
        value
    }
}

/// Reads a whole number from 0 to `max`.
fn unsigned(cell: &Cell<'_>, max: i64) -> Option<i64> {
    let value = i64::read(cell)?;
    if (0..=max).contains(&value) {
        return Some(value);
    }
    cell.refuse(
        format!("`{}` is out of range", cell.name),
        "no such number",
        format!("a whole number from 0 to {max}"),
    );
    None
}

impl Read for u8 {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        Self::try_from(unsigned(cell, Self::MAX.into())?).ok()
    }
}

impl Read for u16 {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        Self::try_from(unsigned(cell, Self::MAX.into())?).ok()
    }
}

impl Read for u32 {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        Self::try_from(unsigned(cell, Self::MAX.into())?).ok()
    }
}

impl Read for u64 {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        Self::try_from(unsigned(cell, i64::MAX)?).ok()
    }
}

impl<T: Read> Read for Vec<At<T>> {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        cell.array("a list")?;
        Some(cell.elements("a list").iter().filter_map(Cell::read).collect())
    }
}

/// One name or a list of names.
pub struct OneOrMore(pub Vec<At<String>>);

impl Read for OneOrMore {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        match cell.value {
            DeValue::String(_) => cell.read().map(|name| Self(vec![name])),
            DeValue::Array(_) => Vec::read(cell).map(Self),
            _ => {
                cell.wrong("a name, or a list of names");
                None
            }
        }
    }
}

const SIZE_HELP: &str = "write a size as \"16 KiB\", \"2 MiB\" or as a number of bytes";

/// Bytes, written as `"16 KiB"` or as a number.
pub struct Size(pub u64);

impl Read for Size {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        match cell.value {
            DeValue::Integer(_) => u64::read(cell).map(Self),
            DeValue::String(text) => {
                let size = value::size(text);
                if size.is_none() {
                    cell.refuse(
                        format!("`{}` is not a size", cell.name),
                        "a number and B, KiB, MiB or GiB belongs here",
                        SIZE_HELP,
                    );
                }
                size.map(Self)
            }
            _ => {
                cell.wrong("a size");
                None
            }
        }
    }
}

/// A value of a `config` table, whose type only the task's author knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raw {
    /// A whole number.
    Integer(i64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(String),
}

impl Raw {
    /// What it is, for messages.
    pub const fn what(&self) -> &'static str {
        match self {
            Self::Integer(_) => "a whole number",
            Self::Bool(_) => "true or false",
            Self::Text(_) => "text",
        }
    }
}

impl Read for Raw {
    fn read(cell: &Cell<'_>) -> Option<Self> {
        match cell.value {
            DeValue::Integer(_) => i64::read(cell).map(Self::Integer),
            DeValue::Boolean(value) => Some(Self::Bool(*value)),
            DeValue::String(text) => Some(Self::Text(text.to_string())),
            _ => {
                cell.wrong("text, a whole number, or true or false");
                None
            }
        }
    }
}

/// A text that must be one of a few.
pub fn one_of<'k>(log: &Log, text: &At<String>, what: &str, known: &[&'k str]) -> Option<&'k str> {
    let found = known.iter().copied().find(|name| *name == text.value);
    if found.is_none() {
        let problem = Problem::new(&text.at, format!("unknown {what} `{}`", text.value), format!("no such {what}"));
        log.add(problem.help(suggest(&text.value, known.iter().copied(), "known")));
    }
    found
}

impl Origin {
    /// Another place in the same file.
    pub fn at(&self, span: Range<usize>) -> Self {
        Self { source: Arc::clone(&self.source), span }
    }
}
