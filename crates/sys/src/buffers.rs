//! Buffers of a client's ports: memory whose address foreign code may hold, and from which safe
//! code borrows.
//!
//! The address is for C programs, whose contract with `jack_port_get_buffer` limits its use to the
//! cycle. Safe code never uses it: it [borrows](PrivateBuffer::borrow) the samples, and at most one
//! borrow exists at a time.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use rt::midi::MidiWords;
use rt::shm::{SLOT_BYTES, SLOTS_PER_SLAB};

use crate::memory::OwnSlab;

/// Samples in one buffer.
pub const BUFFER_FRAMES: usize = SLOT_BYTES / size_of::<f32>();

const FRAMES_PER_LINE: usize = 16;

/// A cache line, which is also the alignment that SIMD code prefers.
#[repr(C, align(64))]
struct Line(UnsafeCell<[f32; FRAMES_PER_LINE]>);

/// A buffer of [`BUFFER_FRAMES`] samples in this process's own memory, with all pages present.
pub struct PrivateBuffer {
    lines: Box<[Line]>,
    borrowed: AtomicBool,
}

/// The buffers of one of this process's slabs.
#[derive(Debug)]
pub struct OwnBuffers {
    slab: OwnSlab,
    borrowed: [AtomicBool; SLOTS_PER_SLAB as usize],
}

/// Exclusive access to a buffer, released on drop.
#[derive(Debug)]
pub struct BorrowedSamples<'a> {
    samples: &'a mut [f32],
    #[expect(dead_code, reason = "gives the buffer back when it is dropped")]
    borrowed: Borrowed<'a>,
}

/// Exclusive access to a slot as a MIDI buffer, released on drop.
#[derive(Debug)]
pub struct BorrowedMidi<'a> {
    words: &'a MidiWords,
    #[expect(dead_code, reason = "gives the buffer back when it is dropped")]
    borrowed: Borrowed<'a>,
}

/// Marks a buffer as borrowed while it lives.
#[derive(Debug)]
struct Borrowed<'a>(&'a AtomicBool);

// SAFETY: the lines are reached only through `borrow`, which admits one thread at a time, or
// through the address in foreign code, which is responsible for its accesses.
unsafe impl Sync for PrivateBuffer {}

impl PrivateBuffer {
    /// Returns a silent buffer. Not for a cycle: it allocates.
    #[must_use]
    pub fn new() -> Self {
        let silent_line = || Line(UnsafeCell::new(std::hint::black_box([0.0; FRAMES_PER_LINE])));
        // Written line by line from a value that the compiler does not know, so that every page is
        // touched now.
        let lines =
            std::iter::repeat_with(silent_line).take(BUFFER_FRAMES / FRAMES_PER_LINE).collect();
        Self { lines, borrowed: AtomicBool::new(false) }
    }

    /// Returns the first sample's address, for foreign code; valid as long as the buffer lives.
    #[must_use]
    pub fn base(&self) -> NonNull<f32> {
        NonNull::from(&*self.lines).cast()
    }

    /// Borrows the first `frames` samples; `None` while they are borrowed. Thread: cycle.
    #[must_use]
    #[inline]
    pub fn borrow(&self, frames: usize) -> Option<BorrowedSamples<'_>> {
        // SAFETY: `lines` is one allocation of BUFFER_FRAMES samples, writable through its cells,
        // and lives as long as `self`.
        unsafe { borrow(&self.borrowed, self.base(), frames) }
    }
}

impl Default for PrivateBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for PrivateBuffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PrivateBuffer").field("base", &self.base()).finish_non_exhaustive()
    }
}

impl OwnBuffers {
    /// Takes ownership of the slab, so that its samples are borrowed from here only.
    #[must_use]
    pub fn new(slab: OwnSlab) -> Self {
        Self { slab, borrowed: std::array::from_fn(|_| AtomicBool::new(false)) }
    }

    /// Returns the slab: its segment, its header, and the addresses of its slots.
    #[must_use]
    pub fn slab(&self) -> &OwnSlab {
        &self.slab
    }

    /// Borrows the first `frames` samples of slot `slot`; `None` while they are borrowed, or if
    /// there is no such slot. Thread: cycle.
    #[must_use]
    pub fn borrow(&self, slot: u32, frames: usize) -> Option<BorrowedSamples<'_>> {
        let (base, borrowed) = (self.slab.slot(slot)?, self.borrowed.get(slot as usize)?);
        // SAFETY: a slot is BUFFER_FRAMES samples of the slab's mapping, which only this process
        // can write and which lives as long as `self`. The slab belongs to `self` alone, so no
        // borrow uses another flag.
        unsafe { borrow(borrowed, base, frames) }
    }

    /// Borrows slot `slot` as a MIDI buffer, under the same rule as [`borrow`](Self::borrow).
    /// Thread: cycle.
    #[must_use]
    pub fn borrow_midi(&self, slot: u32) -> Option<BorrowedMidi<'_>> {
        let (base, borrowed) = (self.slab.slot(slot)?, self.borrowed.get(slot as usize)?);
        let borrowed = Borrowed::take(borrowed)?;
        // SAFETY: a slot is aligned, as large as a MIDI buffer, and lives as long as `self`; the
        // flag was clear, so its samples are not borrowed.
        Some(BorrowedMidi { words: unsafe { base.cast::<MidiWords>().as_ref() }, borrowed })
    }
}

impl<'a> Borrowed<'a> {
    #[inline]
    fn take(flag: &'a AtomicBool) -> Option<Self> {
        // Acquire: pairs with the end of the previous borrow.
        // Lazily: a value that is created and dropped would release another borrow.
        (!flag.swap(true, Ordering::Acquire)).then(|| Self(flag))
    }
}

impl Drop for Borrowed<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: the next borrower sees what was written.
        self.0.store(false, Ordering::Release);
    }
}

/// From `base` on there are [`BUFFER_FRAMES`] samples, writable by this process only, that live as
/// long as `borrowed`, and safe code reaches them only through `borrowed`.
#[inline]
unsafe fn borrow(
    borrowed: &AtomicBool,
    base: NonNull<f32>,
    frames: usize,
) -> Option<BorrowedSamples<'_>> {
    let borrowed = Borrowed::take(borrowed)?;
    let frames = frames.min(BUFFER_FRAMES);
    // SAFETY: within the memory that the caller promises; the flag was clear, so no other reference
    // exists.
    let samples = unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), frames) };
    Some(BorrowedSamples { samples, borrowed })
}

impl Deref for BorrowedSamples<'_> {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.samples
    }
}

impl DerefMut for BorrowedSamples<'_> {
    fn deref_mut(&mut self) -> &mut [f32] {
        self.samples
    }
}

impl Deref for BorrowedMidi<'_> {
    type Target = MidiWords;

    fn deref(&self) -> &MidiWords {
        self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_borrowed_buffer_is_refused_until_it_is_given_back() {
        let private = PrivateBuffer::new();
        let mut borrowed = private.borrow(64).unwrap();
        borrowed.fill(0.5);
        assert!(private.borrow(64).is_none());
        drop(borrowed);
        let whole = private.borrow(BUFFER_FRAMES + 1).unwrap();
        assert!(
            whole
                .iter()
                .enumerate()
                .all(|(frame, sample)| *sample == if frame < 64 { 0.5 } else { 0.0 })
        );
        assert_eq!(whole.len(), BUFFER_FRAMES);
    }

    #[test]
    fn private_buffers_begin_at_a_cache_line() {
        assert!(PrivateBuffer::new().base().as_ptr().addr().is_multiple_of(64));
    }

    #[test]
    fn slots_of_a_slab_are_borrowed_one_by_one() {
        let buffers = OwnBuffers::new(OwnSlab::create().unwrap());
        let first = buffers.borrow(0, 8).unwrap();
        let mut last = buffers.borrow(SLOTS_PER_SLAB - 1, 8).unwrap();
        last.fill(1.0);
        assert!(buffers.borrow(0, 8).is_none());
        assert!(buffers.borrow(SLOTS_PER_SLAB, 8).is_none());
        assert_eq!((first[7], last[7]), (0.0, 1.0));
        assert!(buffers.borrow_midi(0).is_none(), "neither as events");
        drop(first);
        let events = buffers.borrow_midi(0).unwrap();
        assert!(buffers.borrow(0, 8).is_none() && buffers.borrow_midi(0).is_none());
        drop(events);
        assert!(buffers.borrow(0, 8).is_some());
    }
}
