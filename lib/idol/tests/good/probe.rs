// Generated from an interface definition; edit that instead.
/// A colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[derive(::idol_runtime::zerocopy::TryFromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[derive(::idol_runtime::serde::Serialize, ::idol_runtime::serde::Deserialize)]
#[serde(crate = "::idol_runtime::serde")]
#[repr(u8)]
pub enum Colour {
    /// `Red`.
    Red = 1,
    /// `Green`.
    Green = 2,
    /// Not 3.
    Blue = 7,
}
/// `Wide` of the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[derive(::idol_runtime::zerocopy::TryFromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(u16)]
pub enum Wide {
    /// `Low`.
    Low = 0,
    /// `High`.
    High = 4660,
}
/// Why the probe refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[derive(::idol_runtime::zerocopy::TryFromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(u32)]
pub enum ProbeError {
    /// `Busy`.
    Busy = 1,
    /// Wait.
    TooHot = 65536,
}
impl ::idol_runtime::ErrorCode for ProbeError {
    #[inline]
    fn code(self) -> ::idol_runtime::Code {
        self as ::idol_runtime::Code
    }

    #[inline]
    fn from_code(code: ::idol_runtime::Code) -> ::core::option::Option<Self> {
        ::core::option::Option::Some(match code {
            1 => Self::Busy,
            65536 => Self::TooHot,
            _ => return ::core::option::Option::None,
        })
    }
}
/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[derive(::idol_runtime::zerocopy::TryFromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
pub struct Sample {
    /// Microseconds.
    pub time: u64,
    /// `values`.
    pub values: [i16; 3],
    /// `colour`.
    pub colour: Colour,
    /// True if it counts.
    pub valid: bool,
}
/// `Point` of the interface.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[derive(::idol_runtime::zerocopy::FromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
pub struct Point {
    /// `x`.
    pub x: f32,
    /// `y`.
    pub y: f32,
}
/// A name with a colour.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[derive(::idol_runtime::serde::Serialize, ::idol_runtime::serde::Deserialize)]
#[serde(crate = "::idol_runtime::serde")]
pub struct Label {
    /// `name`.
    pub name: ::idol_runtime::heapless::String<16>,
    /// `colour`.
    pub colour: ::core::option::Option<Colour>,
}
const _: () = assert!(::core::mem::size_of::<idol_runtime::FrameDesc>() == 8 && ::core::mem::align_of::<idol_runtime::FrameDesc>() <= 8, "`Handle` has another size or alignment than its interface says");
/// `Told` of the interface.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[derive(::idol_runtime::zerocopy::FromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
pub struct Told {
    /// `detail`.
    pub detail: u32,
    /// `point`.
    pub point: Point,
    /// `flag`.
    pub flag: u8,
    /// `reserved`.
    pub reserved: [u8; 3],
}
#[derive(::idol_runtime::zerocopy::TryFromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
struct ProbeMixArgs {
    small: u8,
    __padding1: [u8; 1],
    wide: Wide,
    __padding2: [u8; 4],
    large: u64,
    flag: bool,
    __padding4: [u8; 7],
    handle: idol_runtime::FrameDesc,
    colours: [Colour; 2],
    __padding6: [u8; 6],
}
#[derive(::idol_runtime::zerocopy::FromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
struct ProbeFallibleArgs {
    which: u32,
}
#[derive(::idol_runtime::zerocopy::TryFromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
struct ProbeDetailedArgs {
    fail: bool,
}
#[derive(::idol_runtime::zerocopy::FromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
struct ProbeTurnArgs {
    by: u8,
}
#[derive(::idol_runtime::zerocopy::FromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
struct ProbeSwapArgs {
    keep: u8,
}
#[derive(::idol_runtime::zerocopy::FromBytes, ::idol_runtime::zerocopy::IntoBytes, ::idol_runtime::zerocopy::Immutable, ::idol_runtime::zerocopy::KnownLayout)]
#[zerocopy(crate = "::idol_runtime::zerocopy")]
#[repr(C)]
struct ProbeRetryArgs {
    value: u32,
}
/// An interface that has it all.
#[derive(Debug)]
pub struct Probe<K: ::idol_runtime::Kernel = ::idol_runtime::System> {
    peer: ::idol_runtime::Peer<K>,
}
impl ::core::convert::From<::idol_runtime::TaskSlot> for Probe {
    fn from(slot: ::idol_runtime::TaskSlot) -> Self {
        Self::with_kernel(slot, ::idol_runtime::System)
    }
}
impl<K: ::idol_runtime::Kernel> Probe<K> {
    /// A client of the server behind a slot, over the given system.
    pub fn with_kernel(slot: ::idol_runtime::TaskSlot, kernel: K) -> Self {
        Self { peer: ::idol_runtime::Peer::new(kernel, slot) }
    }

    /// The instance of the server that the next call goes to.
    pub fn id(&self) -> ::idol_runtime::TaskId {
        self.peer.id()
    }

    /// Does nothing.
    ///
    /// If the server dies, the call is repeated.
    ///
    /// # Errors
    /// See [`::idol_runtime::Error`].
    #[inline]
    pub fn nothing(&self) -> ::core::result::Result<(), ::idol_runtime::Error<::core::convert::Infallible>> {
        let mut __reply = ::idol_runtime::Aligned::<0>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Idempotent,
            1,
            &[],
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <::core::convert::Infallible as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<()>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Fixed-size arguments of all kinds, with padding between them.
    ///
    /// `wide`: with a gap before it
    ///
    /// If the server dies, the call is repeated.
    ///
    /// # Errors
    /// See [`::idol_runtime::Error`].
    #[inline]
    pub fn mix(&self, small: u8, wide: Wide, large: u64, flag: bool, handle: idol_runtime::FrameDesc, colours: [Colour; 2]) -> ::core::result::Result<Sample, ::idol_runtime::Error<::core::convert::Infallible>> {
        let __message = ProbeMixArgs { small, __padding1: [0; 1], wide, __padding2: [0; 4], large, flag, __padding4: [0; 7], handle, colours, __padding6: [0; 6] };
        let mut __reply = ::idol_runtime::Aligned::<16>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Idempotent,
            2,
            ::idol_runtime::zerocopy::IntoBytes::as_bytes(&__message),
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <::core::convert::Infallible as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<Sample>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `fallible`.
    ///
    /// If the server dies, the call fails.
    ///
    /// # Errors
    /// [`::idol_runtime::Error::Server`] with the interface's reason; else see [`::idol_runtime::Error`].
    #[inline]
    pub fn fallible(&self, which: u32) -> ::core::result::Result<u16, ::idol_runtime::Error<ProbeError>> {
        let __message = ProbeFallibleArgs { which };
        let mut __reply = ::idol_runtime::Aligned::<2>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Fail,
            3,
            ::idol_runtime::zerocopy::IntoBytes::as_bytes(&__message),
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <ProbeError as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<u16>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `detailed`.
    ///
    /// If the server dies, the call fails.
    ///
    /// # Errors
    /// [`::idol_runtime::Error::Server`] with the interface's reason; else see [`::idol_runtime::Error`].
    #[inline]
    pub fn detailed(&self, fail: bool) -> ::core::result::Result<u8, ::idol_runtime::Error<Told>> {
        let __message = ProbeDetailedArgs { fail };
        let mut __reply = ::idol_runtime::Aligned::<16>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Fail,
            4,
            ::idol_runtime::zerocopy::IntoBytes::as_bytes(&__message),
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, |__code| if __code == 1 { ::idol_runtime::decode_fixed::<Told>(__bytes).copied() } else { ::core::option::Option::None }));
        }
        ::idol_runtime::decode_fixed::<u8>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `name`.
    ///
    /// If the server dies, the call is repeated.
    ///
    /// # Errors
    /// See [`::idol_runtime::Error`].
    #[inline]
    pub fn name(&self, text: &str, bytes: &[u8], shared: super::Shared) -> ::core::result::Result<Label, ::idol_runtime::Error<::core::convert::Infallible>> {
        let mut __message = ::idol_runtime::Aligned::<32>::new();
        let __used = ::idol_runtime::encode_compact(&(text, bytes, shared, ), &mut __message.0)
            .map_err(|_| ::idol_runtime::Error::Refused(::idol_runtime::Refusal::BadMessage))?;
        let mut __reply = ::idol_runtime::Aligned::<19>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Idempotent,
            5,
            __message.0.get(..__used).unwrap_or(&[]),
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <::core::convert::Infallible as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_compact::<Label>(__bytes).ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `labelled`.
    ///
    /// If the server dies, the call fails.
    ///
    /// # Errors
    /// [`::idol_runtime::Error::Server`] with the interface's reason; else see [`::idol_runtime::Error`].
    #[inline]
    pub fn labelled(&self, fail: ::core::option::Option<u16>) -> ::core::result::Result<::idol_runtime::heapless::Vec<u8, 8>, ::idol_runtime::Error<::idol_runtime::heapless::String<20>>> {
        let mut __message = ::idol_runtime::Aligned::<4>::new();
        let __used = ::idol_runtime::encode_compact(&(fail, ), &mut __message.0)
            .map_err(|_| ::idol_runtime::Error::Refused(::idol_runtime::Refusal::BadMessage))?;
        let mut __reply = ::idol_runtime::Aligned::<21>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Fail,
            6,
            __message.0.get(..__used).unwrap_or(&[]),
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, |__code| if __code == 1 { ::idol_runtime::decode_compact::<::idol_runtime::heapless::String<20>>(__bytes) } else { ::core::option::Option::None }));
        }
        ::idol_runtime::decode_compact::<::idol_runtime::heapless::Vec<u8, 8>>(__bytes).ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `sum`.
    ///
    /// The server reads `words` (2 to 8 elements)
    ///
    /// If the server dies, the call is repeated.
    ///
    /// # Errors
    /// See [`::idol_runtime::Error`].
    #[inline]
    pub fn sum(&self, words: &[u32]) -> ::core::result::Result<u32, ::idol_runtime::Error<::core::convert::Infallible>> {
        let mut __reply = ::idol_runtime::Aligned::<4>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Idempotent,
            7,
            &[],
            &mut __reply.0,
            [::idol_runtime::Lent::Read(::idol_runtime::zerocopy::IntoBytes::as_bytes(words))],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <::core::convert::Infallible as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<u32>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Turns bytes round, and says how they were.
    ///
    /// The server reads and writes `data` (at most 16 elements): what is turned
    ///
    /// The server writes `before` (at most 16 elements)
    ///
    /// The server writes `point`
    ///
    /// The server reads `seed`
    ///
    /// If the server dies, the call is repeated unless the dead instance had received it.
    ///
    /// # Errors
    /// See [`::idol_runtime::Error`].
    #[inline]
    pub fn turn(&self, by: u8, data: &mut [u8], before: &mut [u8], point: &mut Point, seed: &u32) -> ::core::result::Result<(), ::idol_runtime::Error<::core::convert::Infallible>> {
        let __message = ProbeTurnArgs { by };
        let mut __reply = ::idol_runtime::Aligned::<0>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Retry,
            8,
            ::idol_runtime::zerocopy::IntoBytes::as_bytes(&__message),
            &mut __reply.0,
            [::idol_runtime::Lent::Both(::idol_runtime::zerocopy::IntoBytes::as_mut_bytes(data)), ::idol_runtime::Lent::Write(::idol_runtime::zerocopy::IntoBytes::as_mut_bytes(before)), ::idol_runtime::Lent::Write(::idol_runtime::zerocopy::IntoBytes::as_mut_bytes(point)), ::idol_runtime::Lent::Read(::idol_runtime::zerocopy::IntoBytes::as_bytes(seed))],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <::core::convert::Infallible as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<()>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Frames both ways.
    ///
    /// `frames`: at most 4 to send; holds those of the reply afterwards, at most 8. After an error it holds what is still ours.
    ///
    /// If the server dies, the call is repeated unless the dead instance had received it.
    ///
    /// # Errors
    /// [`::idol_runtime::Error::Server`] with the interface's reason; else see [`::idol_runtime::Error`].
    #[inline]
    pub fn swap(&self, keep: u8, frames: &mut ::idol_runtime::FrameList) -> ::core::result::Result<u8, ::idol_runtime::Error<ProbeError>> {
        let __message = ProbeSwapArgs { keep };
        let mut __reply = ::idol_runtime::Aligned::<1>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Retry,
            9,
            ::idol_runtime::zerocopy::IntoBytes::as_bytes(&__message),
            &mut __reply.0,
            [],
            ::core::option::Option::Some(frames),
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <ProbeError as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<u8>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Answered when the server feels like it.
    ///
    /// The server writes `to` (at most 8 elements)
    ///
    /// If the server dies, the call is repeated.
    ///
    /// # Errors
    /// [`::idol_runtime::Error::Server`] with the interface's reason; else see [`::idol_runtime::Error`].
    #[inline]
    pub fn later(&self, to: &mut [u8]) -> ::core::result::Result<u32, ::idol_runtime::Error<ProbeError>> {
        let mut __reply = ::idol_runtime::Aligned::<4>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Idempotent,
            10,
            &[],
            &mut __reply.0,
            [::idol_runtime::Lent::Write(::idol_runtime::zerocopy::IntoBytes::as_mut_bytes(to))],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <ProbeError as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<u32>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `later_frames`.
    ///
    /// `frames`: at most 2 to send; holds those of the reply afterwards, at most 2. After an error it holds what is still ours.
    ///
    /// If the server dies, the call fails.
    ///
    /// # Errors
    /// [`::idol_runtime::Error::Server`] with the interface's reason; else see [`::idol_runtime::Error`].
    #[inline]
    pub fn later_frames(&self, text: &str, frames: &mut ::idol_runtime::FrameList) -> ::core::result::Result<u8, ::idol_runtime::Error<u32>> {
        let mut __message = ::idol_runtime::Aligned::<9>::new();
        let __used = ::idol_runtime::encode_compact(&(text, ), &mut __message.0)
            .map_err(|_| ::idol_runtime::Error::Refused(::idol_runtime::Refusal::BadMessage))?;
        let mut __reply = ::idol_runtime::Aligned::<5>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Fail,
            11,
            __message.0.get(..__used).unwrap_or(&[]),
            &mut __reply.0,
            [],
            ::core::option::Option::Some(frames),
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, |__code| if __code == 1 { ::idol_runtime::decode_compact::<u32>(__bytes) } else { ::core::option::Option::None }));
        }
        ::idol_runtime::decode_compact::<u8>(__bytes).ok_or(::idol_runtime::Error::BadReply)
    }

    /// Operation `retry`.
    ///
    /// If the server dies, the call is repeated unless the dead instance had received it.
    ///
    /// # Errors
    /// See [`::idol_runtime::Error`].
    #[inline]
    pub fn retry(&self, value: u32) -> ::core::result::Result<u32, ::idol_runtime::Error<::core::convert::Infallible>> {
        let __message = ProbeRetryArgs { value };
        let mut __reply = ::idol_runtime::Aligned::<4>::new();
        let (__code, __len) = self.peer.call(
            ::idol_runtime::Restart::Retry,
            12,
            ::idol_runtime::zerocopy::IntoBytes::as_bytes(&__message),
            &mut __reply.0,
            [],
            ::core::option::Option::None,
        );
        let __bytes = __reply.0.get(..__len).unwrap_or(&[]);
        if __code != 0 {
            return ::core::result::Result::Err(::idol_runtime::Error::from_code(__code, __len, <::core::convert::Infallible as ::idol_runtime::ErrorCode>::from_code));
        }
        ::idol_runtime::decode_fixed::<u32>(__bytes).copied().ok_or(::idol_runtime::Error::BadReply)
    }
}
/// Server of the interface `Probe`.
pub trait ProbeServer<K: ::idol_runtime::Kernel = ::idol_runtime::System> {
    /// Does nothing.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn nothing(&mut self, request: &::idol_runtime::Request<K>) -> ::core::result::Result<(), ::idol_runtime::RequestError<::core::convert::Infallible>>;
    /// Fixed-size arguments of all kinds, with padding between them.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    #[allow(clippy::too_many_arguments, reason = "the interface has so many")]
    fn mix(&mut self, request: &::idol_runtime::Request<K>, small: u8, wide: Wide, large: u64, flag: bool, handle: idol_runtime::FrameDesc, colours: [Colour; 2]) -> ::core::result::Result<Sample, ::idol_runtime::RequestError<::core::convert::Infallible>>;
    /// Handler of `fallible`.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn fallible(&mut self, request: &::idol_runtime::Request<K>, which: u32) -> ::core::result::Result<u16, ::idol_runtime::RequestError<ProbeError>>;
    /// Handler of `detailed`.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn detailed(&mut self, request: &::idol_runtime::Request<K>, fail: bool) -> ::core::result::Result<u8, ::idol_runtime::RequestError<Told>>;
    /// Handler of `name`.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn name(&mut self, request: &::idol_runtime::Request<K>, text: &str, bytes: &[u8], shared: super::Shared) -> ::core::result::Result<Label, ::idol_runtime::RequestError<::core::convert::Infallible>>;
    /// Handler of `labelled`.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn labelled(&mut self, request: &::idol_runtime::Request<K>, fail: ::core::option::Option<u16>) -> ::core::result::Result<::idol_runtime::heapless::Vec<u8, 8>, ::idol_runtime::RequestError<::idol_runtime::heapless::String<20>>>;
    /// Handler of `sum`.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn sum(&mut self, request: &::idol_runtime::Request<K>, words: ::idol_runtime::Leased<::idol_runtime::Read, [u32], K>) -> ::core::result::Result<u32, ::idol_runtime::RequestError<::core::convert::Infallible>>;
    /// Turns bytes round, and says how they were.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn turn(&mut self, request: &::idol_runtime::Request<K>, by: u8, data: ::idol_runtime::Leased<::idol_runtime::Both, [u8], K>, before: ::idol_runtime::Leased<::idol_runtime::Write, [u8], K>, point: ::idol_runtime::Leased<::idol_runtime::Write, Point, K>, seed: ::idol_runtime::Leased<::idol_runtime::Read, u32, K>) -> ::core::result::Result<(), ::idol_runtime::RequestError<::core::convert::Infallible>>;
    /// Frames both ways.
    ///
    /// `frames` holds what the caller sent. What it holds afterwards goes back with the reply or the error.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn swap(&mut self, request: &::idol_runtime::Request<K>, keep: u8, frames: &mut ::idol_runtime::FrameList) -> ::core::result::Result<u8, ::idol_runtime::RequestError<ProbeError>>;
    /// Answered when the server feels like it.
    ///
    /// May return [`::idol_runtime::RequestError::Deferred`] and answer later with [`ProbeInterface::reply_later`]; frames have to be taken out of the list before.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn later(&mut self, request: &::idol_runtime::Request<K>, to: ::idol_runtime::Leased<::idol_runtime::Write, [u8], K>) -> ::core::result::Result<u32, ::idol_runtime::RequestError<ProbeError, ::idol_runtime::Deferred>>;
    /// Handler of `later_frames`.
    ///
    /// `frames` holds what the caller sent. What it holds afterwards goes back with the reply or the error.
    ///
    /// May return [`::idol_runtime::RequestError::Deferred`] and answer later with [`ProbeInterface::reply_later_frames`]; frames have to be taken out of the list before.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn later_frames(&mut self, request: &::idol_runtime::Request<K>, text: &str, frames: &mut ::idol_runtime::FrameList) -> ::core::result::Result<u8, ::idol_runtime::RequestError<u32, ::idol_runtime::Deferred>>;
    /// Handler of `retry`.
    ///
    /// # Errors
    /// What the caller gets instead of a result.
    fn retry(&mut self, request: &::idol_runtime::Request<K>, value: u32) -> ::core::result::Result<u32, ::idol_runtime::RequestError<::core::convert::Infallible>>;
    /// Notification bits that [`::idol_runtime::serve`] waits for beside messages.
    fn notification_mask(&self) -> u32 {
        0
    }
    /// Notifications have come. `bits` may be 0: then posts were made that a handler may have taken elsewhere, so look at every queue.
    fn handle_notification(&mut self, kernel: &K, bits: u32) {
        let _ = (kernel, bits);
    }
    /// The kernel refused a reply: a mistake of this server, such as a frame that it does not hold. `frames` is what the reply held;
    /// the caller gets [`::idol_runtime::Refusal::ReplyRefused`] and no frames.
    fn reply_refused(&mut self, caller: ::idol_runtime::TaskId, error: ::idol_runtime::KernelError, frames: &mut ::idol_runtime::FrameList) {
        let _ = (caller, error, frames);
    }
}
/// The interface `Probe` for [`::idol_runtime::serve`].
#[derive(Clone, Copy, Debug)]
pub enum ProbeInterface {}
impl<S: ProbeServer<K>, K: ::idol_runtime::Kernel> ::idol_runtime::Interface<S, K> for ProbeInterface {
    const FRAMES: bool = true;

    #[inline]
    fn dispatch(
        server: &mut S,
        operation: u32,
        request: &::idol_runtime::Request<K>,
        message: &[u8],
        frames: &mut ::idol_runtime::FrameList,
        reply: &mut [u8],
    ) -> ::core::result::Result<::idol_runtime::Outcome, ::idol_runtime::Refusal> {
        match operation {
            // nothing
            1 => {
                request.expect(0, 0)?;
                request.expect_frames(frames.len(), 0, 0)?;
                if !message.is_empty() {
                    return ::core::result::Result::Err(::idol_runtime::Refusal::BadMessage);
                }
                match server.nothing(request) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // mix
            2 => {
                request.expect(0, 16)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let __args = ::idol_runtime::decode_fixed::<ProbeMixArgs>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                match server.mix(request, __args.small, __args.wide, __args.large, __args.flag, __args.handle, __args.colours) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // fallible
            3 => {
                request.expect(0, 2)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let __args = ::idol_runtime::decode_fixed::<ProbeFallibleArgs>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                match server.fallible(request, __args.which) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // detailed
            4 => {
                request.expect(0, 16)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let __args = ::idol_runtime::decode_fixed::<ProbeDetailedArgs>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                match server.detailed(request, __args.fail) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => __error.complex(|__error| ::idol_runtime::encode_fixed(__error, reply)),
                }
            }
            // name
            5 => {
                request.expect(0, 19)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let (__arg0, __arg1, __arg2,) = ::idol_runtime::decode_compact::<(&str, &[u8], super::Shared, )>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                if __arg0.len() > 16 {
                    return ::core::result::Result::Err(::idol_runtime::Refusal::BadMessage);
                }
                if __arg1.len() > 4 {
                    return ::core::result::Result::Err(::idol_runtime::Refusal::BadMessage);
                }
                match server.name(request, __arg0, __arg1, __arg2) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_compact(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // labelled
            6 => {
                request.expect(0, 21)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let (__arg0,) = ::idol_runtime::decode_compact::<(::core::option::Option<u16>, )>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                match server.labelled(request, __arg0) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_compact(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => __error.complex(|__error| ::idol_runtime::encode_compact(__error, reply)),
                }
            }
            // sum
            7 => {
                request.expect(1, 4)?;
                request.expect_frames(frames.len(), 0, 0)?;
                if !message.is_empty() {
                    return ::core::result::Result::Err(::idol_runtime::Refusal::BadMessage);
                }
                let __lease0 = ::idol_runtime::Leased::<::idol_runtime::Read, [u32], K>::slice(&request.kernel, request.caller, 0, 2, 8)?;
                match server.sum(request, __lease0) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // turn
            8 => {
                request.expect(4, 0)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let __args = ::idol_runtime::decode_fixed::<ProbeTurnArgs>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                let __lease0 = ::idol_runtime::Leased::<::idol_runtime::Both, [u8], K>::slice(&request.kernel, request.caller, 0, 0, 16)?;
                let __lease1 = ::idol_runtime::Leased::<::idol_runtime::Write, [u8], K>::slice(&request.kernel, request.caller, 1, 0, 16)?;
                let __lease2 = ::idol_runtime::Leased::<::idol_runtime::Write, Point, K>::value(&request.kernel, request.caller, 2)?;
                let __lease3 = ::idol_runtime::Leased::<::idol_runtime::Read, u32, K>::value(&request.kernel, request.caller, 3)?;
                match server.turn(request, __args.by, __lease0, __lease1, __lease2, __lease3) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // swap
            9 => {
                request.expect(0, 1)?;
                request.expect_frames(frames.len(), 4, 8)?;
                let __args = ::idol_runtime::decode_fixed::<ProbeSwapArgs>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                match server.swap(request, __args.keep, frames) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // later
            10 => {
                request.expect(1, 4)?;
                request.expect_frames(frames.len(), 0, 0)?;
                if !message.is_empty() {
                    return ::core::result::Result::Err(::idol_runtime::Refusal::BadMessage);
                }
                let __lease0 = ::idol_runtime::Leased::<::idol_runtime::Write, [u8], K>::slice(&request.kernel, request.caller, 0, 0, 8)?;
                match server.later(request, __lease0) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            // later_frames
            11 => {
                request.expect(0, 5)?;
                request.expect_frames(frames.len(), 2, 2)?;
                let (__arg0,) = ::idol_runtime::decode_compact::<(&str, )>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                if __arg0.len() > 8 {
                    return ::core::result::Result::Err(::idol_runtime::Refusal::BadMessage);
                }
                match server.later_frames(request, __arg0, frames) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_compact(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => __error.complex(|__error| ::idol_runtime::encode_compact(__error, reply)),
                }
            }
            // retry
            12 => {
                request.expect(0, 4)?;
                request.expect_frames(frames.len(), 0, 0)?;
                let __args = ::idol_runtime::decode_fixed::<ProbeRetryArgs>(message).ok_or(::idol_runtime::Refusal::BadMessage)?;
                match server.retry(request, __args.value) {
                    ::core::result::Result::Ok(__value) => {
                        let len = ::idol_runtime::encode_fixed(&__value, reply)?;
                        ::core::result::Result::Ok(::idol_runtime::Outcome::Reply { code: 0, len })
                    }
                    ::core::result::Result::Err(__error) => ::core::result::Result::Ok(__error.into()),
                }
            }
            _ => ::core::result::Result::Err(::idol_runtime::Refusal::UnknownOperation),
        }
    }

    #[inline]
    fn notification_mask(server: &S) -> u32 {
        server.notification_mask()
    }

    #[inline]
    fn handle_notification(server: &mut S, kernel: &K, bits: u32) {
        server.handle_notification(kernel, bits);
    }

    fn reply_refused(server: &mut S, caller: ::idol_runtime::TaskId, error: ::idol_runtime::KernelError, frames: &mut ::idol_runtime::FrameList) {
        server.reply_refused(caller, error, frames);
    }
}
impl ProbeInterface {
    /// Answers a caller of `later` whose request was deferred.
    ///
    /// # Errors
    /// The kernel's reason if the reply was refused; the caller still waits. That it died is no error.
    #[inline]
    pub fn reply_later<K: ::idol_runtime::Kernel>(
        kernel: &K,
        caller: ::idol_runtime::TaskId,
        result: ::core::result::Result<u32, ProbeError>,
    ) -> ::core::result::Result<(), ::idol_runtime::KernelError> {
        let mut __reply = ::idol_runtime::Aligned::<4>::new();
        let (__code, __len) = match result {
            ::core::result::Result::Ok(__value) => (0, ::idol_runtime::encode_fixed(&__value, &mut __reply.0)),
            ::core::result::Result::Err(__error) => (::idol_runtime::ErrorCode::code(__error), ::core::result::Result::Ok(0)),
        };
        let __len = __len.map_err(|_| ::idol_runtime::KernelError::ReplyTooLong)?;
        kernel.reply(caller, __code, __reply.0.get(..__len).unwrap_or(&[]), ::core::option::Option::None)
    }
    /// Answers a caller of `later_frames` whose request was deferred.
    ///
    /// # Errors
    /// The kernel's reason if the reply was refused; the caller still waits. That it died is no error.
    #[inline]
    pub fn reply_later_frames<K: ::idol_runtime::Kernel>(
        kernel: &K,
        caller: ::idol_runtime::TaskId,
        result: ::core::result::Result<u8, u32>, frames: &mut ::idol_runtime::FrameList,
    ) -> ::core::result::Result<(), ::idol_runtime::KernelError> {
        let mut __reply = ::idol_runtime::Aligned::<5>::new();
        let (__code, __len) = match result {
            ::core::result::Result::Ok(__value) => (0, ::idol_runtime::encode_compact(&__value, &mut __reply.0)),
            ::core::result::Result::Err(__error) => (1, ::idol_runtime::encode_compact(&__error, &mut __reply.0)),
        };
        let __len = __len.map_err(|_| ::idol_runtime::KernelError::ReplyTooLong)?;
        kernel.reply(caller, __code, __reply.0.get(..__len).unwrap_or(&[]), ::core::option::Option::Some(frames))
    }
}
/// Memory of the loop of a server of `Probe`, sized for its largest message and reply.
pub type ProbeBuffers = ::idol_runtime::Buffers<40, 21>;
/// Serves `Probe` for ever; see [`::idol_runtime::serve`].
pub fn serve<S: ProbeServer>(server: &mut S, buffers: &mut ProbeBuffers) -> ! {
    ::idol_runtime::serve::<ProbeInterface, _, _, _, _>(&::idol_runtime::System, server, buffers)
}
