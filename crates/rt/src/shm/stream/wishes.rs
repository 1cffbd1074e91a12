//! What a program wants of its stream: numbered, each read once and in order, and acknowledged.

use super::super::header::{Layout, SegmentHeader};
use super::numbered::{NumberedCursor, NumberedRing};

/// Wishes that can wait to be acknowledged. The server reads no more than these in one wake-up.
pub const WISHES: usize = if cfg!(loom) { 2 } else { 24 };

/// Words of a wish.
pub const WISH_WORDS: usize = if cfg!(loom) { 2 } else { crate::stream::WISH_WORDS };

/// The wishes of a stream. Its program writes; the server reads each once, copies it, and decides
/// by the copy.
#[repr(C)]
#[cfg_attr(not(loom), repr(align(4096)))]
#[derive(Debug, Default)]
pub struct WishPage {
    header: SegmentHeader,
    wishes: NumberedRing<WISHES, WISH_WORDS>,
}

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
    /// Publishes wish `number`; the first is 1. There must be
    /// [room](super::StreamPage::has_room_for) for it, else it replaces one that may not have been
    /// read. One thread of the program.
    pub fn publish(&self, number: u64, words: &[u64; WISH_WORDS]) {
        self.wishes.write(number, words);
    }
}

/// The server's place in the wishes of a stream. Device thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WishReader {
    cursor: NumberedCursor,
}

impl WishReader {
    /// Returns the next wish and its number; `None` if there is none yet. Thread: cycle.
    pub fn next(&mut self, page: &WishPage) -> Option<(u64, [u64; WISH_WORDS])> {
        self.cursor.next(&page.wishes)
    }

    /// Returns how many wishes the program has overwritten before they were read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.cursor.lost()
    }
}
