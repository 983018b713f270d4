//! An interface as a file describes it.

use crate::tree::Span;
use crate::types::Ty;

/// A name and where it stands.
#[derive(Clone, Debug)]
pub struct Named {
    pub text: String,
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct Interface {
    pub name: Named,
    pub doc: String,
    pub types: Vec<TypeDef>,
    pub ops: Vec<Op>,
}

/// An entry of `types`.
#[derive(Clone, Debug)]
pub struct TypeDef {
    pub name: Named,
    pub doc: String,
    pub body: Body,
}

/// What a type is.
#[derive(Clone, Debug)]
pub enum Body {
    Struct(Vec<Member>),
    Enum { width: Width, variants: Vec<Variant> },
    Extern { path: String, layout: Option<Layout>, max_size: Option<usize> },
}

/// How an enum is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    U8,
    U16,
    U32,
}

impl Width {
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
        }
    }

    pub const fn max(self) -> i128 {
        (1 << (8 * self.bytes())) - 1
    }

    pub const fn rust(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
        }
    }
}

/// Size and alignment in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    pub size: usize,
    pub align: usize,
}

/// A variant of an enum.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: Named,
    pub value: i128,
    pub value_span: Span,
    pub doc: String,
}

/// A field of a struct, or an argument.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: Named,
    pub ty: TyRef,
    pub doc: String,
}

/// A type where it is used.
#[derive(Clone, Debug)]
pub struct TyRef {
    pub ty: Ty,
    pub span: Span,
}

/// An entry of `ops`.
#[derive(Clone, Debug)]
pub struct Op {
    pub name: Named,
    pub doc: String,
    pub args: Vec<Member>,
    pub leases: Vec<Lease>,
    pub frames: Option<Frames>,
    pub reply: TyRef,
    pub error: OpError,
    pub restart: Restart,
    pub restart_span: Span,
    pub encoding: Encoding,
    pub defer: bool,
}

/// An entry of `leases`.
#[derive(Clone, Debug)]
pub struct Lease {
    pub name: Named,
    /// A slice of it if `limits` are given, else one value.
    pub element: TyRef,
    pub limits: Option<(usize, usize)>,
    pub read: bool,
    pub write: bool,
    pub doc: String,
}

/// `frames: (send: .., reply: ..)`
#[derive(Clone, Debug)]
pub struct Frames {
    pub send: usize,
    pub reply: usize,
}

/// How an operation can fail by itself.
#[derive(Clone, Debug)]
pub enum OpError {
    None,
    CLike(Named),
    Complex(TyRef),
}

/// What a dead server means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restart {
    Idempotent,
    Retry,
    Fail,
}

/// How arguments and results travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Zerocopy,
    Postcard,
}
