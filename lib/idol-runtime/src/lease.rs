//! Memory of a caller, as the server sees it.

use core::fmt;
use core::marker::PhantomData;

use abi::call::lease;
use abi::{KernelError, TaskId};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{Kernel, Refusal, System};

/// Rights of a lease, as a type.
pub trait Rights {
    /// Bits of [`abi::call::lease`] that the lease must have.
    const NEEDED: usize;
}
/// Rights that include reading.
pub trait Readable: Rights {}
/// Rights that include writing.
pub trait Writable: Rights {}

/// The server may read.
#[derive(Clone, Copy, Debug)]
pub enum Read {}
/// The server may write.
#[derive(Clone, Copy, Debug)]
pub enum Write {}
/// The server may do both.
#[derive(Clone, Copy, Debug)]
pub enum Both {}

impl Rights for Read {
    const NEEDED: usize = lease::READ;
}
impl Rights for Write {
    const NEEDED: usize = lease::WRITE;
}
impl Rights for Both {
    const NEEDED: usize = lease::READ | lease::WRITE;
}
impl Readable for Read {}
impl Readable for Both {}
impl Writable for Write {}
impl Writable for Both {}

/// A lease of a caller whose direction and length have been checked.
///
/// It stays good until the caller is answered or dies, so it may be kept with a deferred request;
/// after that each use returns [`KernelError::BadLease`].
pub struct Leased<R, T: ?Sized, K = System> {
    kernel: K,
    lender: TaskId,
    index: usize,
    /// In elements.
    len: usize,
    rights: PhantomData<R>,
    content: PhantomData<fn(&T)>,
}

impl<R, T: ?Sized, K> fmt::Debug for Leased<R, T, K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Leased")
            .field("lender", &self.lender)
            .field("index", &self.index)
            .field("len", &self.len)
            .finish()
    }
}

impl<R: Rights, T: ?Sized, K: Kernel> Leased<R, T, K> {
    /// Checks direction and length; `size` is that of an element, `min` and `max` count elements.
    #[inline]
    fn check(kernel: &K, lender: TaskId, index: usize, size: usize, min: usize, max: usize) -> Result<Self, Refusal> {
        let (rights, bytes) = kernel.borrow_info(lender, index).map_err(|_| Refusal::LeaseLost)?;
        if rights & R::NEEDED != R::NEEDED {
            return Err(Refusal::LeaseDirection);
        }
        let len = bytes / size;
        if len < min || len * size != bytes {
            return Err(Refusal::LeaseTooShort);
        }
        if len > max {
            return Err(Refusal::LeaseTooLong);
        }
        Ok(Self { kernel: kernel.clone(), lender, index, len, rights: PhantomData, content: PhantomData })
    }
}

impl<R, T: ?Sized, K> Leased<R, T, K> {
    /// Whose memory it is.
    #[must_use]
    pub const fn lender(&self) -> TaskId {
        self.lender
    }
}

impl<R: Rights, T: IntoBytes + Immutable, K: Kernel> Leased<R, [T], K> {
    /// For generated code: checks lease `index` of a caller.
    ///
    /// # Errors
    /// The refusal that the caller gets.
    #[inline]
    pub fn slice(kernel: &K, lender: TaskId, index: usize, min: usize, max: usize) -> Result<Self, Refusal> {
        const { assert!(size_of::<T>() > 0, "elements of a lease have a size") };
        Self::check(kernel, lender, index, size_of::<T>(), min, max)
    }

    /// Elements in the lease.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads elements from `start` on.
    ///
    /// # Errors
    /// [`KernelError::LeaseBounds`] if they are not all in the lease, [`KernelError::BadLease`] if it is over.
    #[inline]
    pub fn read_at(&self, start: usize, to: &mut [T]) -> Result<(), KernelError>
    where
        R: Readable,
        T: FromBytes,
    {
        let offset = start.checked_mul(size_of::<T>()).ok_or(KernelError::LeaseBounds)?;
        self.kernel.borrow_read(self.lender, self.index, offset, to.as_mut_bytes())
    }

    /// Writes elements from `start` on.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    #[inline]
    pub fn write_at(&self, start: usize, from: &[T]) -> Result<(), KernelError>
    where
        R: Writable,
    {
        let offset = start.checked_mul(size_of::<T>()).ok_or(KernelError::LeaseBounds)?;
        self.kernel.borrow_write(self.lender, self.index, offset, from.as_bytes())
    }
}

impl<R: Rights, T: IntoBytes + Immutable, K: Kernel> Leased<R, T, K> {
    /// For generated code: checks lease `index` of a caller.
    ///
    /// # Errors
    /// The refusal that the caller gets.
    #[inline]
    pub fn value(kernel: &K, lender: TaskId, index: usize) -> Result<Self, Refusal> {
        const { assert!(size_of::<T>() > 0, "the content of a lease has a size") };
        Self::check(kernel, lender, index, size_of::<T>(), 1, 1)
    }

    /// Reads the value.
    ///
    /// # Errors
    /// [`KernelError::BadLease`] if the lease is over.
    #[inline]
    pub fn read(&self) -> Result<T, KernelError>
    where
        R: Readable,
        T: FromBytes,
    {
        let mut value = T::new_zeroed();
        self.kernel.borrow_read(self.lender, self.index, 0, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Writes the value.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    #[inline]
    pub fn write(&self, value: &T) -> Result<(), KernelError>
    where
        R: Writable,
    {
        self.kernel.borrow_write(self.lender, self.index, 0, value.as_bytes())
    }
}
