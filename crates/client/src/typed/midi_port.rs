//! MIDI ports of the typed client, and their events in a cycle.

use rt::midi::{MidiError, MidiEvent, MidiReader, MidiWriter};
use sys::buffers::BorrowedMidi;

use super::port::Port;
use crate::{CycleScope, Error};

/// A MIDI input of this client. Dropping it leaves the port registered: it ends with the client, or by
/// [`unregister`](Self::unregister).
#[derive(Debug)]
pub struct MidiInputPort(pub(super) Port);

/// A MIDI output of this client. Dropping it leaves the port registered: it ends with the client, or by
/// [`unregister`](Self::unregister).
#[derive(Debug)]
pub struct MidiOutputPort(pub(super) Port);

/// What a MIDI input hears in a cycle: the events of all that is connected, by time.
#[derive(Debug)]
pub struct MidiInputBuffer<'a>(Option<MidiReader<'a>>);

/// What a MIDI output says in a cycle.
#[derive(Debug)]
pub struct MidiOutputBuffer<'a>(Option<BorrowedMidi<'a>>);

impl MidiInputPort {
    /// The port's events in this cycle: none where nothing is connected, nor in another client's cycle. Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> MidiInputBuffer<'a> {
        let reader = self.0.cell(cycle).and_then(|(_, cell)| {
            let events = cell.events()?;
            if cell.source().is_null() {
                events.writer(cycle.frames());
            }
            events.reader()
        });
        MidiInputBuffer(reader)
    }

    /// Id in the registry.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its name when it was registered, `client:port`.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What follows the client's name.
    pub fn short_name(&self) -> &str {
        self.0.short_name()
    }

    /// Removes the port from the graph.
    ///
    /// # Errors
    /// Those of [`Session::unregister_port`](crate::Session::unregister_port).
    pub fn unregister(self) -> Result<(), Error> {
        self.0.unregister()
    }
}

impl MidiOutputPort {
    /// The port's buffer in this cycle, without the events of the one before. To be called in each cycle: otherwise
    /// they are said again. Takes no events in another client's cycle. Thread: cycle.
    pub fn buffer<'a>(&'a mut self, cycle: &'a CycleScope<'_>) -> MidiOutputBuffer<'a> {
        let events = self.0.cell(cycle).and_then(|(core, cell)| cell.borrow_output_events(&core.own_slabs));
        if let Some(events) = &events {
            MidiWriter::begin(events, cycle.frames());
        }
        MidiOutputBuffer(events)
    }

    /// Id in the registry.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its name when it was registered, `client:port`.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// What follows the client's name.
    pub fn short_name(&self) -> &str {
        self.0.short_name()
    }

    /// Removes the port from the graph.
    ///
    /// # Errors
    /// Those of [`Session::unregister_port`](crate::Session::unregister_port).
    pub fn unregister(self) -> Result<(), Error> {
        self.0.unregister()
    }
}

impl<'a> MidiInputBuffer<'a> {
    /// The events, by time. Thread: cycle.
    pub fn events(&self) -> impl Iterator<Item = MidiEvent<'a>> + use<'a> {
        self.0.into_iter().flat_map(MidiReader::events)
    }

    /// Events that did not get here: there was no room, or they made no sense. Thread: cycle.
    pub fn lost(&self) -> u32 {
        self.0.map_or(0, MidiReader::lost)
    }
}

impl MidiOutputBuffer<'_> {
    fn writer(&self) -> Option<MidiWriter<'_>> {
        self.0.as_ref().and_then(|events| MidiWriter::of(events))
    }

    /// Adds an event at `time`, in frames from the cycle's start and not before the last event's. Thread: cycle.
    ///
    /// # Errors
    /// [`MidiError`]; nothing is added then.
    pub fn write(&mut self, time: u32, message: &[u8]) -> Result<(), MidiError> {
        self.writer().ok_or(MidiError::Full)?.write(time, message)
    }

    /// The longest message that fits; 0 if none does. Thread: cycle.
    pub fn max_event_bytes(&self) -> usize {
        self.writer().map_or(0, MidiWriter::max_event_bytes)
    }
}
