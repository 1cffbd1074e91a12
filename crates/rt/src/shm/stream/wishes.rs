//! What a program wants of its stream: numbered, each read once and in order, and acknowledged.

use super::super::header::{Layout, SegmentHeader};
use super::numbered::{NumberedCursor, NumberedRing};
use crate::stream::{WISH_WORDS, Wish};

/// Wishes that can wait to be acknowledged. The server reads no more than these in one wake-up.
pub const WISHES: usize = if cfg!(loom) { 2 } else { 24 };

/// Number of a wish's shared words. Models share only those that they check.
const SHARED_WORDS: usize = if cfg!(loom) { 2 } else { WISH_WORDS };

/// The wishes of a stream. Its program writes; the server reads each once, copies it, and decides
/// by the copy. They lie in the program's own segment: with its ring, if it plays
/// ([`RingHeader::wishes`](super::RingHeader::wishes)), or on a [page](WishPage) of their own.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Wishes {
    all: NumberedRing<WISHES, SHARED_WORDS>,
}

/// The wishes of a stream that records, whose ring is the server's.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct WishPage {
    header: SegmentHeader,
    wishes: Wishes,
}

same_for_all_widths!(WishPage: 4096 bytes; wishes at 16);

// SAFETY: repr(C), the header first, atomics only.
unsafe impl Layout for WishPage {
    const KIND: u32 = 9;

    fn header(&self) -> &SegmentHeader {
        &self.header
    }
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<WishPage>() == 4096);

/// What became of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgement {
    /// It takes effect at this frame of the device.
    At(u64),
    /// The server could not read it, or it was impossible.
    Refused,
    /// It was acknowledged so long ago that its place has been used again.
    Forgotten,
}

impl WishPage {
    /// Returns the wishes.
    #[must_use]
    pub fn wishes(&self) -> &Wishes {
        &self.wishes
    }
}

impl Wishes {
    /// Publishes wish `number`; the first is 1. There must be
    /// [room](super::StreamPage::has_room_for) for it, else it replaces one that may not have been
    /// read. One thread of the program.
    pub fn publish(&self, number: u64, wish: Wish) {
        let words = wish.to_words();
        self.all.write(number, &core::array::from_fn(|word| words[word]));
    }
}

/// The server's place in the wishes of a stream. Device thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WishReader {
    cursor: NumberedCursor,
}

impl WishReader {
    /// Returns the number of the next wish, and the wish unless its words make no sense; `None` if
    /// there is none yet. Thread: cycle.
    pub fn next(&mut self, wishes: &Wishes) -> Option<(u64, Option<Wish>)> {
        let (number, shared) = self.cursor.next(&wishes.all)?;
        let mut words = [0; WISH_WORDS];
        words.iter_mut().zip(shared).for_each(|(word, shared)| *word = shared);
        Some((number, Wish::from_words(&words)))
    }

    /// Returns how many wishes the program has overwritten before they were read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.cursor.lost()
    }
}
