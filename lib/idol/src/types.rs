//! Types: how they are written, how large they are.

use crate::model::{Body, Interface, Layout, TypeDef};

/// A type as an interface file can name it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ty {
    /// `()`
    Unit,
    /// `u8`, `bool`, `f32` ..
    Primitive(&'static str),
    /// `[T; N]`
    Array(Box<Ty>, usize),
    /// `Option<T>`
    Option(Box<Ty>),
    /// A type of this file.
    Named(String),
    /// `str` of at most so many bytes.
    Text(usize),
    /// `[u8]` of at most so many bytes.
    Bytes(usize),
}

/// What a type string says before limits are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Written {
    Sized(Ty),
    Text,
    Slice(Ty),
}

const PRIMITIVES: [(&str, usize); 11] = [
    ("u8", 1),
    ("u16", 2),
    ("u32", 4),
    ("u64", 8),
    ("i8", 1),
    ("i16", 2),
    ("i32", 4),
    ("i64", 8),
    ("bool", 1),
    ("f32", 4),
    ("f64", 8),
];

/// Names of the types that need no declaration.
pub fn primitive_names() -> impl Iterator<Item = &'static str> {
    PRIMITIVES.iter().map(|(name, _)| *name)
}

/// Reads a type string. The error says what is wrong with it.
pub fn parse(text: &str) -> Result<Written, String> {
    let text = text.trim();
    if text == "str" {
        return Ok(Written::Text);
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'))
        && top_level(inner, ';').is_none()
    {
        return sized(inner).map(Written::Slice);
    }
    sized(text).map(Written::Sized)
}

fn sized(text: &str) -> Result<Ty, String> {
    let text = text.trim();
    if text == "()" {
        return Ok(Ty::Unit);
    }
    if let Some((name, _)) = PRIMITIVES.iter().find(|(name, _)| *name == text) {
        return Ok(Ty::Primitive(name));
    }
    if let Some(inner) = text.strip_prefix("Option<").and_then(|text| text.strip_suffix('>')) {
        return Ok(Ty::Option(Box::new(sized(inner)?)));
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let Some(at) = top_level(inner, ';') else {
            return Err("a slice inside another type".to_owned());
        };
        let count = inner[at + 1..].trim().replace('_', "");
        let count = count.parse().map_err(|_| format!("`{count}` is not a number of elements"))?;
        return Ok(Ty::Array(Box::new(sized(&inner[..at])?), count));
    }
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if is_name { Ok(Ty::Named(text.to_owned())) } else { Err(format!("`{text}` is not a type that interfaces know")) }
}

/// Position of a character outside of all brackets.
fn top_level(text: &str, wanted: char) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(at, character)| {
        match character {
            '[' | '<' | '(' => depth += 1,
            ']' | '>' | ')' => depth -= 1,
            _ => {}
        }
        (depth == 0 && character == wanted).then_some(at)
    })
}

/// Why a type cannot travel in an encoding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Misfit {
    /// Its size is not fixed; the text says what about it.
    Variable(String),
    /// So many bytes of padding before this field of this struct (or at the end).
    Padding { type_name: String, field: Option<String>, bytes: usize },
    /// An extern type without `size` and `align`.
    NoLayout(String),
    /// An extern type without `max_size`.
    NoMaxSize(String),
    /// Too large to count.
    Huge,
}

impl Interface {
    /// The declaration of a name.
    pub fn find(&self, name: &str) -> Option<&TypeDef> {
        self.types.iter().find(|def| def.name.text == name)
    }

    /// Size and alignment of a type that travels as it lies in memory.
    pub fn layout(&self, ty: &Ty) -> Result<Layout, Misfit> {
        match ty {
            Ty::Unit => Ok(Layout { size: 0, align: 1 }),
            Ty::Primitive(name) => {
                let size = PRIMITIVES.iter().find(|(known, _)| known == name).map_or(1, |(_, size)| *size);
                Ok(Layout { size, align: size })
            }
            Ty::Array(element, count) => {
                let element = self.layout(element)?;
                let size = element.size.checked_mul(*count).ok_or(Misfit::Huge)?;
                Ok(Layout { size, align: element.align })
            }
            Ty::Option(_) => Err(Misfit::Variable("`Option` has no fixed form in memory".to_owned())),
            Ty::Text(_) => Err(Misfit::Variable("`str` has no fixed size".to_owned())),
            Ty::Bytes(_) => Err(Misfit::Variable("`[u8]` has no fixed size".to_owned())),
            Ty::Named(name) => self.named_layout(name),
        }
    }

    fn named_layout(&self, name: &str) -> Result<Layout, Misfit> {
        // Unknown names are reported where they stand.
        let Some(def) = self.find(name) else { return Ok(Layout { size: 0, align: 1 }) };
        match &def.body {
            Body::Enum { width, .. } => Ok(Layout { size: width.bytes(), align: width.bytes() }),
            Body::Extern { layout, .. } => layout.ok_or_else(|| Misfit::NoLayout(name.to_owned())),
            Body::Struct(members) => {
                let mut whole = Layout { size: 0, align: 1 };
                let padding = |field: Option<&str>, bytes| Misfit::Padding {
                    type_name: name.to_owned(),
                    field: field.map(str::to_owned),
                    bytes,
                };
                for member in members {
                    let part = self.layout(&member.ty.ty)?;
                    let gap = whole.size.next_multiple_of(part.align) - whole.size;
                    if gap > 0 {
                        return Err(padding(Some(&member.name.text), gap));
                    }
                    whole.size = whole.size.checked_add(part.size).ok_or(Misfit::Huge)?;
                    whole.align = whole.align.max(part.align);
                }
                match whole.size.next_multiple_of(whole.align) - whole.size {
                    0 => Ok(whole),
                    gap => Err(padding(None, gap)),
                }
            }
        }
    }

    /// Most bytes of a type in postcard's form.
    pub fn compact_size(&self, ty: &Ty) -> Result<usize, Misfit> {
        match ty {
            Ty::Unit => Ok(0),
            Ty::Primitive(name) => Ok(match *name {
                "u16" | "i16" => 3,
                "u32" | "i32" => 5,
                "u64" | "i64" => 10,
                "f32" => 4,
                "f64" => 8,
                _ => 1,
            }),
            Ty::Array(element, count) => self.compact_size(element)?.checked_mul(*count).ok_or(Misfit::Huge),
            Ty::Option(inner) => Ok(self.compact_size(inner)? + 1),
            Ty::Text(max) | Ty::Bytes(max) => Ok(counted(*max)),
            Ty::Named(name) => {
                let Some(def) = self.find(name) else { return Ok(0) };
                match &def.body {
                    Body::Enum { variants, .. } => Ok(varint(variants.len())),
                    Body::Extern { max_size, .. } => max_size.ok_or_else(|| Misfit::NoMaxSize(name.clone())),
                    Body::Struct(members) => members.iter().try_fold(0usize, |sum, member| {
                        sum.checked_add(self.compact_size(&member.ty.ty)?).ok_or(Misfit::Huge)
                    }),
                }
            }
        }
    }

    /// True if any bits are a value of the type, so that a server may write it into a client's memory.
    pub fn takes_any_bits(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Unit => true,
            Ty::Primitive(name) => *name != "bool",
            Ty::Array(element, _) => self.takes_any_bits(element),
            Ty::Option(_) | Ty::Text(_) | Ty::Bytes(_) => false,
            Ty::Named(name) => match self.find(name).map(|def| &def.body) {
                Some(Body::Struct(members)) => members.iter().all(|member| self.takes_any_bits(&member.ty.ty)),
                Some(Body::Enum { .. }) => false,
                // The compiler checks these.
                Some(Body::Extern { .. }) | None => true,
            },
        }
    }

    /// True if the generated type can be copied bit by bit.
    pub fn is_copy(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Unit | Ty::Primitive(_) => true,
            Ty::Array(inner, _) | Ty::Option(inner) => self.is_copy(inner),
            Ty::Text(_) | Ty::Bytes(_) => false,
            Ty::Named(name) => match self.find(name).map(|def| &def.body) {
                Some(Body::Struct(members)) => members.iter().all(|member| self.is_copy(&member.ty.ty)),
                Some(Body::Extern { layout, .. }) => layout.is_some(),
                Some(Body::Enum { .. }) | None => true,
            },
        }
    }

    /// True if a type holds a floating-point number, which has no full equality.
    pub fn has_float(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Primitive(name) => name.starts_with('f'),
            Ty::Array(inner, _) | Ty::Option(inner) => self.has_float(inner),
            Ty::Named(name) => match self.find(name).map(|def| &def.body) {
                Some(Body::Struct(members)) => members.iter().any(|member| self.has_float(&member.ty.ty)),
                _ => false,
            },
            Ty::Unit | Ty::Text(_) | Ty::Bytes(_) => false,
        }
    }

    /// True if a generated type can have a default value: zeros and empty ones.
    pub fn has_default(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Unit | Ty::Primitive(_) | Ty::Option(_) | Ty::Text(_) | Ty::Bytes(_) => true,
            // The standard library stops at 32.
            Ty::Array(inner, count) => *count <= 32 && self.has_default(inner),
            Ty::Named(name) => match self.find(name).map(|def| &def.body) {
                Some(Body::Struct(members)) => members.iter().all(|member| self.has_default(&member.ty.ty)),
                _ => false,
            },
        }
    }
}

/// Bytes of a length of up to `max`, and what it counts.
fn counted(max: usize) -> usize {
    varint(max).saturating_add(max)
}

fn varint(max: usize) -> usize {
    (usize::BITS - max.leading_zeros()).div_ceil(7).max(1) as usize
}
