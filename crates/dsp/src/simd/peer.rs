//! Samples in memory that another process may write at any moment.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

/// `len()` samples that another process may be writing: readable only by copying them out.
///
/// There is no way to a `&[f32]`, because the compiler may assume that what a reference points to does not
/// change. What is copied out while the other process writes is a mixture of old and new samples: wrong to the
/// ear, harmless to memory, since a sample never decides what is accessed.
///
/// `'a` is how long the memory stays readable.
#[derive(Clone, Copy, Debug)]
pub struct PeerSamples<'a> {
    base: NonNull<f32>,
    frames: usize,
    memory: PhantomData<&'a [f32]>,
}

// SAFETY: it only reads, and `new` has the memory readable from every thread of the process for `'a`.
unsafe impl Send for PeerSamples<'_> {}
// SAFETY: as above; there is no interior mutability.
unsafe impl Sync for PeerSamples<'_> {}

impl<'a> PeerSamples<'a> {
    /// `frames` samples from `base` on.
    ///
    /// # Safety
    /// For `'a`, on whichever thread: the `frames * 4` bytes from `base` (aligned for `f32`) stay mapped and
    /// readable, lie in one mapping (and so do not exceed `isize::MAX`), and cannot be cut off by the end of a
    /// file (for a memfd: `F_SEAL_SHRINK`). This process neither holds a `&mut` to them nor writes them through
    /// this mapping while they are being read. Other processes may write as they like.
    pub const unsafe fn new(base: NonNull<f32>, frames: usize) -> Self {
        Self { base, frames, memory: PhantomData }
    }

    /// The samples of a slice, which nobody writes while it is borrowed.
    pub const fn from_slice(samples: &'a [f32]) -> Self {
        // SAFETY: for `'a`, the borrow keeps the memory readable and unwritten.
        unsafe { Self::new(NonNull::from_ref(samples).cast(), samples.len()) }
    }

    /// Samples that can be read, in frames.
    pub const fn len(self) -> usize {
        self.frames
    }

    /// Whether there is nothing to read.
    pub const fn is_empty(self) -> bool {
        self.frames == 0
    }

    /// The first `frames` samples, or all where there are fewer.
    #[must_use]
    #[inline]
    pub fn truncated(self, frames: usize) -> Self {
        Self { frames: self.frames.min(frames), ..self }
    }

    /// The samples after the first `frames`; none where there are no more.
    #[must_use]
    pub fn skipped(self, frames: usize) -> Self {
        let skipped = self.frames.min(frames);
        // SAFETY: `skipped <= self.frames`, so the result is within the memory that `new` was promised, or one
        // past its end.
        let base = unsafe { self.base.add(skipped) };
        Self { base, frames: self.frames - skipped, ..self }
    }

    /// Where the samples are, to hand to foreign code. It is that code's risk to read while a peer writes.
    pub const fn as_ptr(self) -> *const f32 {
        self.base.as_ptr()
    }

    /// Replaces each sample of `into` that has a counterpart here by `combine(sample of into, counterpart)`.
    #[inline(always)]
    pub(crate) fn zip_into(self, into: &mut [f32], combine: impl Fn(f32, f32) -> f32) {
        let frames = self.frames.min(into.len());
        let source = self.base.as_ptr().cast_const();
        for (index, sample) in into[..frames].iter_mut().enumerate() {
            // SAFETY: `index < frames <= self.frames`, which `new` was promised to be readable and aligned.
            let from_peer = unsafe { source.add(index).read() };
            *sample = combine(*sample, from_peer);
        }
        // The loads are plain ones, so that they vectorise. The fence keeps the compiler from loading a second
        // time what it has already handed on: past this point the peer's memory counts as changed.
        compiler_fence(Ordering::SeqCst);
    }
}
