//! MIDI buffers: timed events in the slot of a port.
//!
//! An output's buffer lies in its owner's slab, where every reader maps it. So it consists of
//! atomics only and is valid for any bytes. The words of a record are loaded once and checked in
//! [`MidiReader::record`], and an input never passes a peer's memory to its program: [`merge`]
//! copies the events.
//!
//! The words are the header (mark, frames, events, bytes of data, lost events, 0), then a record of
//! three words for each event: its time, its length in bytes, and either its bytes, if there are at
//! most four, or the index of their first word. Longer data fill the slot from its end. Records,
//! header and slot are as large as JACK2's, so that as many events fit. All orderings are
//! `Relaxed`: the mark of the slab says when a buffer is complete.

mod merge;
mod read;
#[cfg(all(test, not(loom)))]
mod tests;
mod write;

pub use merge::{Cursor, MidiSources, merge};
pub use read::{MidiEvent, MidiReader, Record};
pub use write::{MidiError, MidiWriter};

use crate::shm::SLOT_BYTES;
use crate::sync::AtomicU32;

/// Words of a MIDI buffer.
pub const MIDI_WORDS: usize = SLOT_BYTES / size_of::<u32>();

/// A MIDI buffer as memory: a port's slot, or an input's own.
pub type MidiWords = [AtomicU32; MIDI_WORDS];

const MARK: u32 = 0x4d49_4449; // "MIDI"

/// Where the header's words are.
mod word {
    pub(super) const MARK: usize = 0;
    pub(super) const FRAMES: usize = 1;
    pub(super) const EVENTS: usize = 2;
    pub(super) const DATA_BYTES: usize = 3;
    pub(super) const LOST: usize = 4;
}

const HEADER_WORDS: usize = 6;
const RECORD_WORDS: usize = 3;
const WORD_BYTES: usize = size_of::<u32>();

/// The longest data that lie in the record itself.
const INLINE_BYTES: usize = WORD_BYTES;

/// Events that fit if none needs more room than its record.
pub const MAX_EVENTS: usize = (MIDI_WORDS - HEADER_WORDS) / RECORD_WORDS;
