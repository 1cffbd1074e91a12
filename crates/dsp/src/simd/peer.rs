//! Samples in memory that another process may write at any time.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

/// Samples that are copied at a time: a cache line.
const BLOCK_FRAMES: usize = 16;

/// `len()` samples that another process may be writing. They can only be copied out.
///
/// There is no access as `&[f32]`, because the compiler may assume that what a reference points to
/// does not change. A copy taken while the other process writes mixes old and new samples: wrong to
/// the ear, but harmless to memory, since no sample decides what is accessed.
///
/// `'a` is how long the memory stays readable.
#[derive(Clone, Copy, Debug)]
pub struct PeerSamples<'a> {
    base: NonNull<f32>,
    frames: usize,
    memory: PhantomData<&'a [f32]>,
}

// SAFETY: the type only reads, and the caller of `new` guarantees that every thread of the process
// can read the memory for `'a`.
unsafe impl Send for PeerSamples<'_> {}
// SAFETY: as above; there is no interior mutability.
unsafe impl Sync for PeerSamples<'_> {}

impl<'a> PeerSamples<'a> {
    /// Wraps `frames` samples from `base` on.
    ///
    /// # Safety
    /// For `'a` and on every thread, the `frames * 4` bytes from `base` (aligned for `f32`) must
    /// stay mapped and readable, lie in one mapping (and so not exceed `isize::MAX`), and must not
    /// be cut off by truncation of a file (for a memfd: `F_SEAL_SHRINK`). This process must neither
    /// hold a `&mut` to them nor write them through this mapping while they are being read. Other
    /// processes may write them at any time.
    pub const unsafe fn new(base: NonNull<f32>, frames: usize) -> Self {
        Self { base, frames, memory: PhantomData }
    }

    /// Wraps the samples of a slice. The borrow keeps it unchanged.
    pub const fn from_slice(samples: &'a [f32]) -> Self {
        // SAFETY: the borrow keeps the memory readable and unwritten for `'a`.
        unsafe { Self::new(NonNull::from_ref(samples).cast(), samples.len()) }
    }

    /// Returns the number of readable samples, in frames.
    pub const fn len(self) -> usize {
        self.frames
    }

    /// Returns whether there is nothing to read.
    pub const fn is_empty(self) -> bool {
        self.frames == 0
    }

    /// Returns the first `frames` samples, or all if there are fewer.
    #[must_use]
    #[inline]
    pub fn truncated(self, frames: usize) -> Self {
        Self { frames: self.frames.min(frames), ..self }
    }

    /// Returns the samples after the first `frames`; none if there are no more than these.
    #[must_use]
    pub fn skipped(self, frames: usize) -> Self {
        let skipped = self.frames.min(frames);
        // SAFETY: `skipped <= self.frames`, so the result is within the memory that `new` was
        // promised, or one past its end.
        let base = unsafe { self.base.add(skipped) };
        Self { base, frames: self.frames - skipped, ..self }
    }

    /// Returns the address of the samples, for foreign code. That code reads at its own risk while
    /// a peer writes.
    pub const fn as_ptr(self) -> *const f32 {
        self.base.as_ptr()
    }

    /// Copies `into.len()` samples, or all if there are fewer, in blocks that the compiler moves
    /// with a few instructions. It calls no function of the C library: that one's pages are touched
    /// by nothing else in a cycle.
    #[inline(always)]
    pub(crate) fn copy_inline(self, into: &mut [f32]) {
        let frames = self.frames.min(into.len());
        let (blocks, rest) = into[..frames].as_chunks_mut::<BLOCK_FRAMES>();
        for (index, block) in blocks.iter_mut().enumerate() {
            // SAFETY: `(index + 1) * BLOCK_FRAMES <= frames <= self.frames`, which the caller of
            // `new` promised to be readable and aligned.
            *block = unsafe { self.base.as_ptr().cast::<[f32; BLOCK_FRAMES]>().add(index).read() };
            // Keeps the compiler from making one call of the blocks.
            compiler_fence(Ordering::SeqCst);
        }
        let copied = frames - rest.len();
        self.skipped(copied).zip_into(rest, |_, sample| sample);
    }

    /// Replaces each sample of `into` that has a counterpart here by `combine(sample,
    /// counterpart)`.
    #[inline(always)]
    pub(crate) fn zip_into(self, into: &mut [f32], combine: impl Fn(f32, f32) -> f32) {
        let frames = self.frames.min(into.len());
        let source = self.base.as_ptr().cast_const();
        for (index, sample) in into[..frames].iter_mut().enumerate() {
            // SAFETY: `index < frames <= self.frames`, which the caller of `new` promised to be
            // readable and aligned.
            let from_peer = unsafe { source.add(index).read() };
            *sample = combine(*sample, from_peer);
        }
        // The loads are plain so that they vectorise. The fence keeps the compiler from loading
        // again what it has already passed on: after it, the peer's memory counts as changed.
        compiler_fence(Ordering::SeqCst);
    }
}
