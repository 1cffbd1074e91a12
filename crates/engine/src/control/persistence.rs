//! The server's state across restarts: written to a file as it changes, and restored to clients
//! that come back.
//!
//! With `--state` it is the whole state, in the named file. Without, it is only what clients do not
//! restore by themselves after a crash (decision 15): the properties, in the runtime directory,
//! while the server runs.

use rt::shm::EngineSegment;
use state::{State, TransportPosition};

use super::returning::Returns;
use super::streams::KeptVolumes;
use crate::model::{Change, Model};
use crate::state_writer::StateWriter;

/// Time between two writes of a state that changes all the time.
const PAUSE_NS: u64 = 300_000_000;

/// The server's state across restarts.
#[derive(Debug)]
pub(super) struct Persistence {
    pub(super) state: StatePersistence,
    pub(super) returns: Returns,
}

/// Writes the state to a file as it changes.
#[derive(Debug)]
pub struct StatePersistence {
    /// `None` after the end.
    writer: Option<StateWriter>,
    scope: Scope,
    /// The model has changed since it was last written.
    changed: bool,
    /// The transport's last known position.
    place: TransportPosition,
    /// Quantum and transport as last written.
    written: Option<(u32, TransportPosition)>,
    /// Not written again before this time.
    next_ns: u64,
    /// Until when clients receive what an earlier server left for them; `None`: forever.
    until_ns: Option<u64>,
}

/// What is known of the graph, and of the volumes of streams and devices.
type Known<'a> = (&'a Model, &'a KeptVolumes);

/// What is written to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Everything, also of clients that have gone.
    All,
    /// What clients do not restore by themselves after a crash.
    Uncarried,
}

impl StatePersistence {
    /// Writes the whole state; `place` is the transport position that was restored.
    pub fn all(writer: StateWriter, place: Option<TransportPosition>) -> Self {
        Self::new(writer, Scope::All, place.unwrap_or(STANDING), None)
    }

    /// Writes what clients do not restore by themselves. What an earlier server left is forgotten
    /// after `until_ns`.
    pub fn uncarried(writer: StateWriter, until_ns: u64) -> Self {
        Self::new(writer, Scope::Uncarried, STANDING, Some(until_ns))
    }

    fn new(
        writer: StateWriter,
        scope: Scope,
        place: TransportPosition,
        until_ns: Option<u64>,
    ) -> Self {
        Self {
            writer: Some(writer),
            scope,
            changed: false,
            place,
            written: None,
            next_ns: 0,
            until_ns,
        }
    }

    /// Notes a change of the model.
    pub(super) fn note(&mut self, change: &Change) {
        self.changed |= self.scope == Scope::All || matches!(change, Change::Property { .. });
    }

    /// Writes the state if it has changed, and not too often.
    pub(super) fn step(
        &mut self,
        (model, volumes): (&mut Model, &mut KeptVolumes),
        quantum: u32,
        engine: &EngineSegment,
        now_ns: u64,
    ) {
        if self.until_ns.is_some_and(|until_ns| until_ns < now_ns) {
            self.until_ns = None;
            model.stop_expecting();
        }
        if self.scope == Scope::All {
            let rest = Some((quantum, settled(self.transport_place(engine))));
            self.changed |= self.written != rest;
            self.changed |= volumes.take_changed();
        }
        if self.changed && self.next_ns <= now_ns {
            self.write((model, volumes), quantum, engine);
            self.next_ns = now_ns + PAUSE_NS;
        }
    }

    /// Writes the last state, and waits for it for a bounded time, when the server stops cleanly.
    pub(super) fn finish(&mut self, known: Known<'_>, quantum: u32, engine: &EngineSegment) {
        if self.scope == Scope::All {
            self.write(known, quantum, engine);
        }
        let Some(writer) = self.writer.take() else { return };
        let path = writer.finish();
        if self.scope == Scope::Uncarried {
            // No client returns to a server that stopped cleanly. Fails if there is no file,
            // because there were no properties.
            let _ = std::fs::remove_file(path);
        }
    }

    fn write(&mut self, (model, volumes): Known<'_>, quantum: u32, engine: &EngineSegment) {
        let place = self.transport_place(engine);
        let mut state = model.state(Some(quantum), Some(place));
        volumes.add_to(&mut state);
        self.changed = false;
        self.written = Some((quantum, settled(place)));
        let state = match self.scope {
            Scope::All => state,
            Scope::Uncarried => State { properties: state.properties, ..State::default() },
        };
        if let Some(writer) = &self.writer {
            writer.give(state);
        }
    }

    /// The transport's position in the newest cycle. Before the first cycle, a requested position
    /// has not been decided yet.
    fn transport_place(&mut self, engine: &EngineSegment) -> TransportPosition {
        let cycle = engine.cycle();
        if let Some(transport) = engine.transport_in(cycle).filter(|_| cycle != 0) {
            self.place = TransportPosition::of(transport.state.passes(), &transport.position);
        }
        self.place
    }
}

/// At the start of the piece.
const STANDING: TransportPosition =
    TransportPosition { rolling: false, frame: 0, bar_beat_tick: None };

/// The position to write: a rolling transport has none, so that the file does not change with every
/// cycle.
fn settled(place: TransportPosition) -> TransportPosition {
    if place.rolling { TransportPosition { rolling: true, ..STANDING } } else { place }
}
