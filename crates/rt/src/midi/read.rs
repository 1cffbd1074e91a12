//! Reading a buffer that any process may have written.

use super::{
    HEADER_WORDS, INLINE_BYTES, MARK, MAX_EVENTS, MIDI_WORDS, MidiWords, RECORD_WORDS, WORD_BYTES,
    word,
};
use crate::sync::{AtomicU32, Ordering::Relaxed};

/// The events of a buffer. Thread: cycle.
#[derive(Debug, Clone, Copy)]
pub struct MidiReader<'a> {
    words: &'a MidiWords,
    events: u32,
}

/// Location of an event, loaded once and checked to be within the buffer. Its bytes may still
/// change, its location cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// Frames from the cycle's start.
    pub time: u32,
    /// Length of the message.
    pub bytes: u32,
    /// Index of its first word.
    start: u32,
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub struct MidiEvent<'a> {
    time: u32,
    bytes: usize,
    data: &'a [AtomicU32],
}

impl<'a> MidiReader<'a> {
    /// Returns a reader; `None` if the words are no MIDI buffer, or claim more events than fit.
    pub fn of(words: &'a MidiWords) -> Option<Self> {
        let events = words[word::EVENTS].load(Relaxed);
        let is_buffer = words[word::MARK].load(Relaxed) == MARK && events as usize <= MAX_EVENTS;
        is_buffer.then_some(Self { words, events })
    }

    /// Returns the number of events.
    pub const fn len(self) -> u32 {
        self.events
    }

    /// Returns whether there are no events.
    pub const fn is_empty(self) -> bool {
        self.events == 0
    }

    /// Returns the number of lost events, which did not fit or were malformed.
    pub fn lost(self) -> u32 {
        self.words[word::LOST].load(Relaxed)
    }

    /// Returns the location of event `index`; `None` if there is none, or if it is not within the
    /// buffer.
    pub fn record(self, index: u32) -> Option<Record> {
        if index >= self.events {
            return None;
        }
        let at = HEADER_WORDS + index as usize * RECORD_WORDS;
        let [time, bytes, last] = self.words.get(at..at + RECORD_WORDS)? else { return None };
        let (time, bytes) = (time.load(Relaxed), bytes.load(Relaxed));
        let start = if bytes as usize <= INLINE_BYTES {
            at + RECORD_WORDS - 1
        } else {
            let offset = last.load(Relaxed) as usize;
            let start = offset / WORD_BYTES;
            let is_data = offset.is_multiple_of(WORD_BYTES) && start >= HEADER_WORDS;
            let fits = bytes as usize <= MIDI_WORDS.saturating_sub(start) * WORD_BYTES;
            (is_data && fits).then_some(start)?
        };
        Some(Record { time, bytes, start: u32::try_from(start).ok()? })
    }

    /// Returns the event at a location in this buffer.
    pub fn at(self, record: Record) -> MidiEvent<'a> {
        let (start, bytes) = (record.start as usize, record.bytes as usize);
        let data = self.words.get(start..start + bytes.div_ceil(WORD_BYTES)).unwrap_or_default();
        MidiEvent { time: record.time, bytes: bytes.min(data.len() * WORD_BYTES), data }
    }

    /// Returns event `index`; `None` if there is none, or if it is not within the buffer.
    pub fn event(self, index: u32) -> Option<MidiEvent<'a>> {
        self.record(index).map(|record| self.at(record))
    }

    /// Returns all events within the buffer, in their order.
    pub fn events(self) -> impl Iterator<Item = MidiEvent<'a>> {
        (0..self.events).filter_map(move |index| self.event(index))
    }
}

impl<'a> MidiEvent<'a> {
    /// Returns the time in frames from the cycle's start.
    pub const fn time(&self) -> u32 {
        self.time
    }

    /// Returns the length of the message in bytes.
    pub const fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the message is empty, which JACK allows.
    pub const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies the message to the start of `room` and returns it; `None` if it does not fit.
    pub fn copy_to<'b>(&self, room: &'b mut [u8]) -> Option<&'b [u8]> {
        let message = room.get_mut(..self.bytes)?;
        for (bytes, data) in message.chunks_mut(WORD_BYTES).zip(self.data) {
            bytes.copy_from_slice(&data.load(Relaxed).to_ne_bytes()[..bytes.len()]);
        }
        Some(message)
    }

    /// Returns the words that contain the message, in memory order.
    pub const fn data(&self) -> &'a [AtomicU32] {
        self.data
    }
}
