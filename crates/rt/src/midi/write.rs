//! Writing a buffer that belongs to this process.

use super::{
    HEADER_WORDS, INLINE_BYTES, MARK, MAX_EVENTS, MIDI_WORDS, MidiEvent, MidiWords, RECORD_WORDS,
    WORD_BYTES, word,
};
use crate::shm::SLOT_BYTES;
use crate::sync::{AtomicU32, Ordering::Relaxed};

/// A buffer to which events are added in the order of their times. Thread: cycle.
#[derive(Debug, Clone, Copy)]
pub struct MidiWriter<'a> {
    words: &'a MidiWords,
}

/// Why an event was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MidiError {
    /// The time is before that of the last event, or not within the cycle.
    Time,
    /// The buffer has no room for the event, and counts it as lost.
    Full,
}

impl core::fmt::Display for MidiError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str(match self {
            Self::Time => {
                "an event's time must be within the cycle and not before the last event's"
            }
            Self::Full => {
                "there is no room for the event in the port's MIDI buffer, which counts it as lost"
            }
        })
    }
}

impl core::error::Error for MidiError {}

impl<'a> MidiWriter<'a> {
    /// Starts an empty MIDI buffer for cycles of `frames` frames, whatever the words contain.
    pub fn begin(words: &'a MidiWords, frames: u32) -> Self {
        let writer = Self { words };
        writer.clear();
        writer.set_frames(frames);
        words[word::MARK].store(MARK, Relaxed);
        writer
    }

    /// Returns a writer; `None` if the words are no MIDI buffer, or contradict each other.
    pub fn of(words: &'a MidiWords) -> Option<Self> {
        let (events, data) =
            (words[word::EVENTS].load(Relaxed), words[word::DATA_BYTES].load(Relaxed));
        let room = SLOT_BYTES - HEADER_WORDS * WORD_BYTES;
        let is_sound = words[word::MARK].load(Relaxed) == MARK
            && events as usize <= MAX_EVENTS
            && (data as usize).is_multiple_of(WORD_BYTES)
            && data as usize <= room - events as usize * RECORD_WORDS * WORD_BYTES;
        is_sound.then_some(Self { words })
    }

    /// Removes all events and resets the count of lost ones.
    pub fn clear(self) {
        for at in [word::EVENTS, word::DATA_BYTES, word::LOST] {
            self.words[at].store(0, Relaxed);
        }
    }

    /// Sets the length of a cycle in frames. Later times are refused.
    pub fn set_frames(self, frames: u32) {
        self.words[word::FRAMES].store(frames, Relaxed);
    }

    fn events(self) -> usize {
        self.words[word::EVENTS].load(Relaxed) as usize
    }

    fn data_bytes(self) -> usize {
        self.words[word::DATA_BYTES].load(Relaxed) as usize
    }

    /// Counts lost events.
    pub fn note_lost(self, events: u32) {
        let lost = &self.words[word::LOST];
        lost.store(lost.load(Relaxed).saturating_add(events), Relaxed);
    }

    /// Returns the length of the largest message that fits; 0 if none does, not even an empty one.
    pub fn max_event_bytes(self) -> usize {
        let taken =
            (HEADER_WORDS + RECORD_WORDS * (self.events() + 1)) * WORD_BYTES + self.data_bytes();
        // A message that fits into the record needs no further room.
        SLOT_BYTES.checked_sub(taken).map_or(0, |left| left.max(INLINE_BYTES))
    }

    fn last_time(self) -> Option<u32> {
        let at = HEADER_WORDS + self.events().checked_sub(1)? * RECORD_WORDS;
        self.words.get(at).map(|time| time.load(Relaxed))
    }

    /// Adds an event of `bytes` bytes and returns the words to which the caller writes its message.
    ///
    /// # Errors
    /// [`MidiError`], in which case nothing is added.
    pub fn reserve(self, time: u32, bytes: usize) -> Result<&'a [AtomicU32], MidiError> {
        if time >= self.words[word::FRAMES].load(Relaxed)
            || self.last_time().is_some_and(|last| time < last)
        {
            return Err(MidiError::Time);
        }
        self.add(time, bytes).ok_or_else(|| {
            self.note_lost(1);
            MidiError::Full
        })
    }

    fn add(self, time: u32, bytes: usize) -> Option<&'a [AtomicU32]> {
        let most = self.max_event_bytes();
        if most == 0 || bytes > most {
            return None;
        }
        let events = self.events();
        let at = HEADER_WORDS + events * RECORD_WORDS;
        let record = self.words.get(at..at + RECORD_WORDS)?;
        let length = bytes.div_ceil(WORD_BYTES);
        let data = if bytes <= INLINE_BYTES {
            record.get(RECORD_WORDS - 1..)?
        } else {
            let data_bytes = self.data_bytes() + length * WORD_BYTES;
            let offset = SLOT_BYTES.checked_sub(data_bytes)?;
            let data = self.words.get(offset / WORD_BYTES..offset / WORD_BYTES + length)?;
            record.last()?.store(u32::try_from(offset).ok()?, Relaxed);
            self.words[word::DATA_BYTES].store(u32::try_from(data_bytes).ok()?, Relaxed);
            data
        };
        record.first()?.store(time, Relaxed);
        record.get(1)?.store(u32::try_from(bytes).ok()?, Relaxed);
        self.words[word::EVENTS].store(u32::try_from(events + 1).ok()?, Relaxed);
        Some(data)
    }

    /// Adds an event with this message.
    ///
    /// # Errors
    /// [`MidiError`], in which case nothing is added.
    pub fn write(self, time: u32, message: &[u8]) -> Result<(), MidiError> {
        let words = self.reserve(time, message.len())?;
        for (word, bytes) in words.iter().zip(message.chunks(WORD_BYTES)) {
            let mut whole = [0; WORD_BYTES];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u32::from_ne_bytes(whole), Relaxed);
        }
        Ok(())
    }

    /// Adds a copy of another buffer's event.
    ///
    /// # Errors
    /// [`MidiError`], in which case nothing is added.
    pub fn copy(self, event: MidiEvent<'_>) -> Result<(), MidiError> {
        let words = self.reserve(event.time(), event.len())?;
        for (word, data) in words.iter().zip(event.data()) {
            word.store(data.load(Relaxed), Relaxed);
        }
        Ok(())
    }
}

const _: () = assert!(HEADER_WORDS + MAX_EVENTS * RECORD_WORDS <= MIDI_WORDS);
