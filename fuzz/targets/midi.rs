//! Any words in the place of a peer's MIDI buffer: the events that are read are in order, within
//! the cycle and within the buffer, and all others are counted.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use rt::midi::{Cursor, MIDI_WORDS, MidiReader, MidiSources, MidiWords, MidiWriter, merge};
use rt::sync::{AtomicU32, Ordering::Relaxed};

#[derive(Debug, Arbitrary)]
struct Input {
    frames: u16,
    /// Events written as they should be: advance of time, length.
    written: Vec<(u8, u16)>,
    /// Words that overwrite them before the merge, the first near the start.
    scribbled: Vec<(u16, u32)>,
    /// Words that overwrite them during the merge, one at each access.
    later: Vec<(u16, u32)>,
}

/// A source whose owner goes on writing.
struct Scribbler<'a> {
    words: &'a MidiWords,
    later: RefCell<std::vec::IntoIter<(u16, u32)>>,
}

impl MidiSources for Scribbler<'_> {
    fn count(&self) -> usize {
        2
    }

    fn with<R>(&self, _index: usize, read: impl FnOnce(MidiReader<'_>) -> R) -> Option<R> {
        if let Some((at, value)) = self.later.borrow_mut().next() {
            self.words[usize::from(at) % MIDI_WORDS].store(value, Relaxed);
        }
        MidiReader::of(self.words).map(read)
    }
}

fn words() -> Box<MidiWords> {
    let words: Box<[AtomicU32]> = (0..MIDI_WORDS).map(|_| AtomicU32::new(0)).collect();
    words.try_into().expect("as many as asked for")
}

libfuzzer_sys::fuzz_target!(|input: Input| {
    let (source, into) = (words(), words());
    let frames = u32::from(input.frames);
    let writer = MidiWriter::begin(&source, frames);
    let mut time = 0;
    for (advance, length) in input.written {
        time += u32::from(advance);
        let most = writer.max_event_bytes();
        let message = vec![0x55; usize::from(length)];
        let fits = most > 0 && message.len() <= most;
        assert_eq!(writer.write(time, &message).is_ok(), fits && time < frames);
    }
    for (at, value) in input.scribbled {
        source[usize::from(at) % MIDI_WORDS].store(value, Relaxed);
    }
    let scribbler = Scribbler { words: &source, later: RefCell::new(input.later.into_iter()) };
    merge(&scribbler, &mut [Cursor::default(); 2], MidiWriter::begin(&into, 0), frames);
    let heard = MidiReader::of(&into).expect("a buffer");
    assert_eq!(heard.events().count(), heard.len() as usize, "all of them are within the buffer");
    let mut last = 0;
    for event in heard.events() {
        assert!((last..frames).contains(&event.time()));
        last = event.time();
        let mut room = vec![0; event.len()];
        assert!(event.copy_to(&mut room).is_some());
    }
});
