//! RON as a tree that remembers where each value stands.
//!
//! The `ron` crate deserializes into types and stops at the first error; interface files deserve all errors at
//! once, each at its place. So this reads the part of RON that they use: structs with or without a name, maps, lists,
//! strings (raw ones too), numbers, names, and both kinds of comments. The tests hold it against the `ron` crate.

use std::ops::Range;

use crate::report::Problem;

/// Bytes of the file that something stands in.
pub type Span = Range<usize>;

/// A value and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

/// What can stand in a file.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `"text"`
    Text(String),
    /// A number without a fraction.
    Integer(i128),
    /// `Name`, `true`, `false`
    Name(String),
    /// `Name(key: value, ..)` or `(key: value, ..)`
    Struct(Option<String>, Vec<Field>),
    /// `Name(value, ..)` or `(value, ..)`
    Tuple(Option<String>, Vec<Node>),
    /// `{ key: value, .. }`; keys are texts or names.
    Map(Vec<Field>),
    /// `[value, ..]`
    List(Vec<Node>),
}

/// A key with its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    pub key: String,
    pub key_span: Span,
    pub value: Node,
}

impl Value {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a number",
            Self::Name(name) if name == "true" || name == "false" => "a truth value",
            Self::Name(_) => "a name",
            Self::Struct(..) => "`(key: value, ..)`",
            Self::Tuple(..) => "a value in parentheses",
            Self::Map(_) => "a map",
            Self::List(_) => "a list",
        }
    }
}

/// Deepest nesting that is read. An interface needs six levels.
const MAX_DEPTH: usize = 32;

/// Reads a whole file.
///
/// # Errors
/// The first thing that is not RON.
pub fn parse(text: &str) -> Result<Node, Problem> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.skip_space()?;
    if parser.at == text.len() {
        return Err(parser.unexpected("an interface", "write `Interface(name: \"..\", ops: { .. })`"));
    }
    let node = parser.value()?;
    parser.skip_space()?;
    if parser.at < text.len() {
        return Err(parser.unexpected("the end of the file", "one file holds one `Interface(..)`"));
    }
    Ok(node)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

fn starts_name(character: char) -> bool {
    character == '_' || character.is_ascii_alphabetic()
}

fn continues_name(character: char) -> bool {
    character == '_' || character.is_ascii_alphanumeric()
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn unexpected(&self, expected: &str, help: &str) -> Problem {
        let len = self.peek().map_or(0, char::len_utf8);
        let found = self.peek().map_or_else(|| "the end of the file".to_owned(), |found| format!("`{found}`"));
        Problem::new(self.at..self.at + len, format!("expected {expected}, found {found}")).label("here").help(help)
    }

    fn skip_space(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start().len();
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.block_comment()?;
            } else {
                return Ok(());
            }
        }
    }

    fn block_comment(&mut self) -> Result<(), Problem> {
        let start = self.at;
        let mut depth = 0;
        loop {
            if self.take("/*") {
                depth += 1;
            } else if self.take("*/") {
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            } else if let Some(character) = self.peek() {
                self.at += character.len_utf8();
            } else {
                return Err(Problem::new(start..start + 2, "this comment has no end")
                    .label("starts here")
                    .help("close it with `*/`"));
            }
        }
    }

    fn value(&mut self) -> Result<Node, Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.unexpected("fewer levels", "an interface needs six levels of brackets"));
        }
        let start = self.at;
        let value = match self.peek() {
            Some('"') => Value::Text(self.text()?),
            Some('(') => self.parentheses(None)?,
            Some('{') => {
                self.at += 1;
                Value::Map(self.fields('}')?)
            }
            Some('[') => {
                self.at += 1;
                Value::List(self.values(']')?)
            }
            Some('r') if self.rest().starts_with("r\"") || self.rest().starts_with("r#") => {
                Value::Text(self.raw_text()?)
            }
            Some(digit) if digit.is_ascii_digit() || digit == '-' || digit == '+' => Value::Integer(self.integer()?),
            Some(first) if starts_name(first) => {
                let name = self.name();
                self.skip_space()?;
                if self.peek() == Some('(') {
                    self.parentheses(Some(name))?
                } else {
                    // The value ends with the name, not with the space after it.
                    self.depth -= 1;
                    return Ok(Node { span: start..start + name.len(), value: Value::Name(name) });
                }
            }
            _ => return Err(self.unexpected("a value", "a text, a number, a name, or one of `(`, `{`, `[`")),
        };
        self.depth -= 1;
        Ok(Node { span: start..self.at, value })
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let len = rest.find(|character| !continues_name(character)).unwrap_or(rest.len());
        self.at += len;
        rest[..len].to_owned()
    }

    /// What stands in parentheses: a struct if it begins with `key:`, else a tuple.
    fn parentheses(&mut self, name: Option<String>) -> Result<Value, Problem> {
        let open = self.at;
        self.at += 1;
        self.skip_space()?;
        let rest = self.rest();
        let key_len = rest.find(|character| !continues_name(character)).unwrap_or(0);
        if key_len > 0 && rest.starts_with(starts_name) {
            let first = self.at;
            self.at += key_len;
            self.skip_space()?;
            // Also one that lacks its colon, to say so.
            let is_struct = matches!(self.peek(), Some(':' | '{' | '[' | '"'));
            self.at = first;
            if is_struct {
                return Ok(Value::Struct(name, self.fields(')')?));
            }
        } else if self.peek() == Some(')') {
            self.at += 1;
            return Ok(Value::Struct(name, Vec::new()));
        } else if self.peek().is_none() {
            return Err(Problem::new(open..open + 1, "this parenthesis is never closed")
                .label("opened here")
                .help("add the matching `)`"));
        }
        Ok(Value::Tuple(name, self.values(')')?))
    }

    /// `key: value, ..` up to and with `end`; the bracket before it has just been read.
    fn fields(&mut self, end: char) -> Result<Vec<Field>, Problem> {
        let open = self.at.saturating_sub(1);
        let mut fields = Vec::new();
        loop {
            self.skip_space()?;
            if self.peek() == Some(end) {
                self.at += 1;
                return Ok(fields);
            }
            let start = self.at;
            let key = match self.peek() {
                Some('"') if end == '}' => self.text()?,
                Some(first) if starts_name(first) => self.name(),
                None => return Err(unclosed(open, end)),
                _ => {
                    return Err(self.unexpected(
                        &format!("a key or `{end}`"),
                        "entries look like `key: value`, with commas between them",
                    ));
                }
            };
            let key_span = start..self.at;
            self.skip_space()?;
            if !self.take(":") {
                return Err(self.unexpected("`:`", &format!("write `{key}: value`")));
            }
            self.skip_space()?;
            let value = self.value()?;
            fields.push(Field { key, key_span, value });
            self.separator(open, end)?;
        }
    }

    fn values(&mut self, end: char) -> Result<Vec<Node>, Problem> {
        let open = self.at.saturating_sub(1);
        let mut values = Vec::new();
        loop {
            self.skip_space()?;
            if self.peek() == Some(end) {
                self.at += 1;
                return Ok(values);
            }
            values.push(self.value()?);
            self.separator(open, end)?;
        }
    }

    /// A comma, or nothing before the end.
    fn separator(&mut self, open: usize, end: char) -> Result<(), Problem> {
        let before = self.at;
        self.skip_space()?;
        if self.take(",") || self.peek() == Some(end) {
            return Ok(());
        }
        if self.peek().is_none() {
            return Err(unclosed(open, end));
        }
        Err(Problem::new(before..before, format!("expected `,` or `{end}`"))
            .label("missing here")
            .help("put a comma between two entries"))
    }

    fn integer(&mut self) -> Result<i128, Problem> {
        let rest = self.rest();
        let len = rest[1..]
            .find(|character: char| !(continues_name(character) || character == '.'))
            .map_or(rest.len(), |len| len + 1);
        let written = &rest[..len];
        let digits = written.replace('_', "");
        let (negative, digits) = match digits.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
        };
        let parsed = match digits.get(..2) {
            Some("0x") => i128::from_str_radix(&digits[2..], 16),
            Some("0o") => i128::from_str_radix(&digits[2..], 8),
            Some("0b") => i128::from_str_radix(&digits[2..], 2),
            _ => digits.parse(),
        };
        let span = self.at..self.at + len;
        self.at += len;
        match parsed {
            Ok(value) if digits.starts_with(|first: char| first.is_ascii_digit()) => {
                Ok(if negative { -value } else { value })
            }
            _ => Err(Problem::new(span, format!("`{written}` is not a whole number"))
                .label("here")
                .help("numbers look like `32`, `0x20` or `1_000`")),
        }
    }

    fn text(&mut self) -> Result<String, Problem> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(character) = self.peek() {
            self.at += character.len_utf8();
            match character {
                '"' => return Ok(text),
                '\\' => text.extend(self.escape()?),
                other => text.push(other),
            }
        }
        Err(Problem::new(start..start + 1, "this text has no end").label("starts here").help("close it with `\"`"))
    }

    /// What follows a backslash; a line break and the space after it stand for nothing.
    fn escape(&mut self) -> Result<Option<char>, Problem> {
        let start = self.at - 1;
        let escape = self.peek();
        self.at += escape.map_or(0, char::len_utf8);
        let found = match escape {
            Some('n') => Some('\n'),
            Some('t') => Some('\t'),
            Some('r') => Some('\r'),
            Some('0') => Some('\0'),
            Some(same @ ('"' | '\\' | '\'')) => Some(same),
            Some('x') => {
                let digits = self.rest().get(..2).unwrap_or_default();
                self.at += digits.len();
                hexadecimal(digits)
            }
            Some('u') if self.take("{") => {
                let len = self.rest().find('}').unwrap_or(0);
                let digits = &self.rest()[..len];
                self.at += len;
                if self.take("}") { hexadecimal(digits) } else { None }
            }
            _ => None,
        };
        match found {
            Some(character) => Ok(Some(character)),
            None => Err(Problem::new(start..self.at, "unknown escape in a text")
                .label("here")
                .help("known are \\n \\t \\r \\0 \\\" \\\\ \\' \\x41 and \\u{e9}")),
        }
    }

    fn raw_text(&mut self) -> Result<String, Problem> {
        let start = self.at;
        self.at += 1;
        let hashes = self.rest().len() - self.rest().trim_start_matches('#').len();
        self.at += hashes;
        if !self.take("\"") {
            return Err(self.unexpected("`\"`", "raw texts look like r\"..\" or r#\"..\"#"));
        }
        let end = format!("\"{}", "#".repeat(hashes));
        let Some(len) = self.rest().find(&end) else {
            return Err(Problem::new(start..self.at, "this text has no end")
                .label("starts here")
                .help(format!("close it with `{end}`")));
        };
        let text = self.rest()[..len].to_owned();
        self.at += len + end.len();
        Ok(text)
    }
}

fn hexadecimal(digits: &str) -> Option<char> {
    let known = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    known.then(|| u32::from_str_radix(digits, 16).ok())?.and_then(char::from_u32)
}

fn unclosed(open: usize, end: char) -> Problem {
    Problem::new(open..open + 1, format!("this bracket is never closed by `{end}`"))
        .label("opened here")
        .help(format!("add the matching `{end}`"))
}

#[cfg(test)]
mod tests;
