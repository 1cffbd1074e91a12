//! The server's state over its end: written down as it changes, and given to those that come back.
//!
//! With `--state` it is the whole state, in the file that was named. Without, only what nobody but
//! the server knows and clients do not carry over its death (decision 15): properties, in the
//! runtime directory, as long as it runs.

use rt::shm::EngineSegment;
use state::{State, TransportPosition};

use super::returning::Returns;
use crate::model::{Change, Model};
use crate::state_writer::StateWriter;

/// Time between two writes of a state that changes all the time.
const PAUSE_NS: u64 = 300_000_000;

/// The server's state over its end.
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
    /// The model is not as it was when it was written last.
    changed: bool,
    /// Where the transport was seen last.
    place: TransportPosition,
    /// The rest, when it was written last.
    written: Option<(u32, TransportPosition)>,
    /// Not before this.
    next_ns: u64,
    /// What a server before left is given to those that come until then; `None`: for ever.
    until_ns: Option<u64>,
}

/// What is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// All of it, also of those that are gone.
    All,
    /// What clients do not carry over a server's death.
    Uncarried,
}

impl StatePersistence {
    /// Writes the whole state, beginning where the transport is asked to go.
    pub fn all(writer: StateWriter, place: Option<TransportPosition>) -> Self {
        Self::new(writer, Scope::All, place.unwrap_or(STANDING), None)
    }

    /// Writes what clients do not carry. What the model was told before is forgotten after
    /// `until_ns`.
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
        model: &mut Model,
        quantum: u32,
        engine: &EngineSegment,
        now_ns: u64,
    ) {
        if self.until_ns.is_some_and(|until_ns| until_ns < now_ns) {
            self.until_ns = None;
            model.expect_nobody();
        }
        if self.scope == Scope::All {
            let rest = Some((quantum, settled(self.transport_place(engine))));
            self.changed |= self.written != rest;
        }
        if self.changed && self.next_ns <= now_ns {
            self.write(model, quantum, engine);
            self.next_ns = now_ns + PAUSE_NS;
        }
    }

    /// Writes the last state, and waits for it in bounded time: the server stops in order.
    pub(super) fn finish(&mut self, model: &Model, quantum: u32, engine: &EngineSegment) {
        if self.scope == Scope::All {
            self.write(model, quantum, engine);
        }
        let Some(writer) = self.writer.take() else { return };
        let path = writer.finish();
        if self.scope == Scope::Uncarried {
            // No client returns to a server that stopped in order. The file is not there if there
            // were no properties.
            let _ = std::fs::remove_file(path);
        }
    }

    fn write(&mut self, model: &Model, quantum: u32, engine: &EngineSegment) {
        let place = self.transport_place(engine);
        let state = model.state(Some(quantum), Some(place));
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

    /// Where the transport stands in the newest cycle. Before the first cycle, what was asked of it
    /// is not decided.
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

/// For a file that is not to change with every cycle: where it rolls at the moment is not said.
fn settled(place: TransportPosition) -> TransportPosition {
    if place.rolling { TransportPosition { rolling: true, ..STANDING } } else { place }
}
