//! Frames of 16-bit samples in memory that another process may write at any time.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, compiler_fence};

/// Full scale is 1. A power of two: no bit is rounded.
const SCALE: f32 = 1.0 / 32_768.0;

/// `frames` frames of little-endian 16-bit integers, of one or two channels, that another process
/// may be writing. They can only be copied out, as [`PeerSamples`](super::PeerSamples) can.
///
/// `'a` is how long the memory stays readable.
#[derive(Clone, Copy, Debug)]
pub struct PeerFrames16<'a> {
    base: NonNull<i16>,
    frames: usize,
    is_stereo: bool,
    memory: PhantomData<&'a [i16]>,
}

// SAFETY: the type only reads, and the caller of `new` guarantees that every thread of the process
// can read the memory for `'a`.
unsafe impl Send for PeerFrames16<'_> {}
// SAFETY: as above; there is no interior mutability.
unsafe impl Sync for PeerFrames16<'_> {}

impl<'a> PeerFrames16<'a> {
    /// Wraps `frames` frames from `base` on, of two channels or of one.
    ///
    /// # Safety
    /// For `'a` and on every thread, the bytes of these frames (two for each channel) must stay
    /// mapped and readable, lie in one mapping (and so not exceed `isize::MAX`), and must not be
    /// cut off by truncation of a file (for a memfd: `F_SEAL_SHRINK`). This process must neither
    /// hold a `&mut` to them nor write them through this mapping while they are being read. Other
    /// processes may write them at any time.
    pub const unsafe fn new(base: NonNull<i16>, frames: usize, is_stereo: bool) -> Self {
        Self { base, frames, is_stereo, memory: PhantomData }
    }

    /// Wraps the whole frames of a slice, of two channels or of one. The borrow keeps it unchanged.
    #[must_use]
    pub const fn from_slice(samples: &'a [i16], is_stereo: bool) -> Self {
        let frames = if is_stereo { samples.len() / 2 } else { samples.len() };
        // SAFETY: the borrow keeps the memory readable and unwritten for `'a`.
        unsafe { Self::new(NonNull::from_ref(samples).cast(), frames, is_stereo) }
    }

    /// Returns the number of readable frames.
    #[must_use]
    pub const fn len(self) -> usize {
        self.frames
    }

    /// Returns whether there is nothing to read.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.frames == 0
    }
}

/// The kernel of [`decode_frames`](super::decode_frames).
#[inline(always)]
pub(super) fn decode_frames(source: PeerFrames16<'_>, into: &mut [f32], channel: usize) {
    let frames = source.frames.min(into.len());
    let (decoded, rest) = into.split_at_mut(frames);
    match (source.is_stereo, channel) {
        (false, 0) => {
            for (index, sample) in decoded.iter_mut().enumerate() {
                // SAFETY: `index < source.frames`, which the caller of `new` promised to be
                // readable.
                let value = unsafe { source.base.as_ptr().add(index).read_unaligned() };
                *sample = f32::from(i16::from_le(value)) * SCALE;
            }
        }
        (true, 0 | 1) => {
            // Both samples are taken from one word, which vectorises.
            let up = if channel == 0 { 16 } else { 0 };
            for (index, sample) in decoded.iter_mut().enumerate() {
                // SAFETY: as above, in frames of four bytes.
                let frame = unsafe { source.base.as_ptr().add(2 * index) };
                // SAFETY: as above.
                let both = unsafe { frame.cast::<i32>().read_unaligned() };
                *sample = ((i32::from_le(both) << up) >> 16) as f32 * SCALE;
            }
        }
        _ => decoded.fill(0.0),
    }
    // The loads are plain so that they vectorise. The fence keeps the compiler from loading again
    // what it has already passed on: after it, the peer's memory counts as changed.
    compiler_fence(Ordering::SeqCst);
    rest.fill(0.0);
}
