//! Names of running tasks.

/// A task instance: table index in bits 0..8, generation in bits 8..32.
///
/// The generation counts restarts, so a `TaskId` kept across a restart of its
/// task is recognised as dead instead of reaching the new instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(transparent)]
pub struct TaskId(pub u32);

impl TaskId {
    /// The sender that `recv` reports for notifications. Never a task.
    pub const KERNEL: Self = Self(u32::MAX);

    /// What `reply_recv` reports instead of a sender when the reply was
    /// refused; the operation then holds the [`KernelError`](crate::KernelError) code.
    pub const REPLY_REFUSED: Self = Self(u32::MAX - 1);

    /// Generations wrap after this many restarts.
    pub const GENERATION_MASK: u32 = 0x00ff_ffff;

    /// Builds an id from a table index below 256 and a generation, of which
    /// the low 24 bits are kept.
    #[must_use]
    pub const fn new(index: usize, generation: u32) -> Self {
        Self((index as u32 & 0xff) | (generation & Self::GENERATION_MASK) << 8)
    }

    /// Index in the task table of the image.
    #[must_use]
    pub const fn index(self) -> usize {
        (self.0 & 0xff) as usize
    }

    /// How often the task had been restarted when this id was made.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.0 >> 8
    }
}
