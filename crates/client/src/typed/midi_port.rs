//! The MIDI buffers of the typed client in a cycle.

use rt::midi::{MidiError, MidiEvent, MidiReader, MidiWriter};
use sys::buffers::BorrowedMidi;

use super::port::{Input, Midi, Output, Port};
use crate::CycleScope;

/// The events of a MIDI input in one cycle, from all connected ports, sorted by time.
#[derive(Debug)]
pub struct MidiInputBuffer<'a>(Option<MidiReader<'a>>);

/// The events of a MIDI output in one cycle.
#[derive(Debug)]
pub struct MidiOutputBuffer<'a>(Option<BorrowedMidi<'a>>);

impl Port<Midi, Input> {
    /// Returns the port's events in this cycle. Empty where nothing is connected, and in another
    /// client's cycle. Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> MidiInputBuffer<'a> {
        let reader = self.cell(cycle).and_then(|(_, cell)| {
            let events = cell.events()?;
            if cell.source().is_null() {
                events.writer(cycle.frames());
            }
            events.reader()
        });
        MidiInputBuffer(reader)
    }
}

impl Port<Midi, Output> {
    /// Empties the port's buffer and returns it. Call it in each cycle, since the events of the
    /// previous cycle are otherwise sent again. In another client's cycle it accepts no events.
    /// Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> MidiOutputBuffer<'a> {
        let events =
            self.cell(cycle).and_then(|(core, cell)| cell.borrow_output_events(&core.own_slabs));
        if let Some(events) = &events {
            MidiWriter::begin(events, cycle.frames());
        }
        MidiOutputBuffer(events)
    }
}

impl<'a> MidiInputBuffer<'a> {
    /// Returns the events, sorted by time. Thread: cycle.
    pub fn events(&self) -> impl Iterator<Item = MidiEvent<'a>> + use<'a> {
        self.0.into_iter().flat_map(MidiReader::events)
    }

    /// Returns the number of events that were dropped: too many, or malformed. Thread: cycle.
    pub fn lost(&self) -> u32 {
        self.0.map_or(0, MidiReader::lost)
    }
}

impl MidiOutputBuffer<'_> {
    fn writer(&self) -> Option<MidiWriter<'_>> {
        self.0.as_ref().and_then(|events| MidiWriter::of(events))
    }

    /// Adds an event at `time`, in frames from the cycle's start, not before the previous event's.
    /// Thread: cycle.
    ///
    /// # Errors
    /// [`MidiError`]; nothing is added.
    pub fn write(&mut self, time: u32, message: &[u8]) -> Result<(), MidiError> {
        self.writer().ok_or(MidiError::Full)?.write(time, message)
    }

    /// Returns the length of the longest message that fits, in bytes; 0 if none does. Thread:
    /// cycle.
    pub fn max_event_bytes(&self) -> usize {
        self.writer().map_or(0, MidiWriter::max_event_bytes)
    }
}
