//! The server's state over its end: written down as it changes, and given to those that come back.
//!
//! With `--state` it is the whole state, in the file that was named. Without, only what nobody but the server knows and
//! clients do not carry over its death (decision 15): properties, in the runtime directory, as long as it runs.

use state::{Place, State};
use sys::clock::now_ns;

use super::Control;
use crate::keeper::Keeper;
use crate::model::Change;

/// A state that changes all the time is written no more often.
const PAUSE_NS: u64 = 300_000_000;

/// Who writes what.
#[derive(Debug)]
pub struct Keeping {
    /// `None` after the end.
    keeper: Option<Keeper>,
    scope: Scope,
    /// The model is not as it was when it was written last.
    changed: bool,
    /// Where the transport was seen last.
    place: Place,
    /// The rest, when it was written last.
    written: Option<(u32, Place)>,
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

impl Keeping {
    /// Keeps all, beginning where the transport is asked to go.
    pub fn all(keeper: Keeper, place: Option<Place>) -> Self {
        Self::new(keeper, Scope::All, place.unwrap_or(STANDING), None)
    }

    /// Keeps what clients do not carry. What was told to the model before is forgotten after `until_ns`.
    pub fn uncarried(keeper: Keeper, until_ns: u64) -> Self {
        Self::new(keeper, Scope::Uncarried, STANDING, Some(until_ns))
    }

    fn new(keeper: Keeper, scope: Scope, place: Place, until_ns: Option<u64>) -> Self {
        Self { keeper: Some(keeper), scope, changed: false, place, written: None, next_ns: 0, until_ns }
    }

    pub(super) fn note(&mut self, change: &Change) {
        self.changed |= self.scope == Scope::All || matches!(change, Change::Property { .. });
    }
}

/// At the start of the piece.
const STANDING: Place = Place { rolling: false, frame: 0, bar_beat_tick: None };

/// For a file that is not to change with every cycle: where it rolls at the moment is not said.
fn settled(place: Place) -> Place {
    if place.rolling { Place { rolling: true, ..STANDING } } else { place }
}

impl Control {
    /// Where the transport stands in the newest cycle. Before the first, what it was asked for is not decided.
    fn transport_place(&mut self) -> Place {
        let engine = self.engine();
        let cycle = engine.cycle();
        if let Some(transport) = engine.transport_in(cycle).filter(|_| cycle != 0) {
            self.parts.keeping.place = Place::of(transport.state.passes(), &transport.position);
        }
        self.parts.keeping.place
    }

    /// Has the state written, if it is another one than before.
    pub(super) fn keep_state(&mut self) {
        let now_ns = now_ns();
        if self.parts.keeping.until_ns.is_some_and(|until_ns| until_ns < now_ns) {
            self.parts.keeping.until_ns = None;
            self.parts.model.expect_nobody();
        }
        if self.parts.keeping.scope == Scope::All {
            let rest = Some((self.quantum, settled(self.transport_place())));
            self.parts.keeping.changed |= self.parts.keeping.written != rest;
        }
        if self.parts.keeping.changed && self.parts.keeping.next_ns <= now_ns {
            self.write_state();
            self.parts.keeping.next_ns = now_ns + PAUSE_NS;
        }
    }

    fn write_state(&mut self) {
        let place = self.transport_place();
        let state = self.parts.model.state(Some(self.quantum), Some(place));
        let keeping = &mut self.parts.keeping;
        keeping.changed = false;
        keeping.written = Some((self.quantum, settled(place)));
        let state = match keeping.scope {
            Scope::All => state,
            Scope::Uncarried => State { properties: state.properties, ..State::default() },
        };
        if let Some(keeper) = &keeping.keeper {
            keeper.give(state);
        }
    }

    /// The server ends in order.
    pub(super) fn keep_last_state(&mut self) {
        if self.parts.keeping.scope == Scope::All {
            self.write_state();
        }
        let Some(keeper) = self.parts.keeping.keeper.take() else { return };
        let path = keeper.finish();
        if self.parts.keeping.scope == Scope::Uncarried {
            // Nobody is to have it: what belonged to clients went with them. It is not there if there were no properties.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Connects those that have come back with those that are here, as they were.
    pub(super) fn reconnect(&mut self) {
        for connection in self.parts.model.take_due() {
            // What is refused now is kept on: a limit may be another one next time.
            let _ = self.connect(None, &connection.source, &connection.destination);
        }
        self.carry_changes();
    }
}
