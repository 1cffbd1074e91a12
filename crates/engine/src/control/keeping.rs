//! The server's state over its end: written down as it changes, and given to those that come back.
//!
//! With `--state` it is the whole state, in the file that was named. Without, only what nobody but the server knows and
//! clients do not carry over its death (decision 15): properties, in the runtime directory, as long as it runs.

use rt::park::Park;
use rt::transport::Transport;
use state::{Place, State};
use sys::futex::Futex;

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
    /// The rest, when it was written last.
    written: Option<(u32, Place)>,
    /// Not before this.
    next_ns: u64,
    /// What a server before left is given to those that come until then; `None`: for ever.
    until_ns: Option<u64>,
}

/// What is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it, also of those that are gone.
    All,
    /// What clients do not carry over a server's death.
    Uncarried,
}

impl Keeping {
    /// `until_ns`: see [`Model::expect`](crate::model::Model::expect).
    pub fn new(keeper: Keeper, scope: Scope, until_ns: Option<u64>) -> Self {
        Self { keeper: Some(keeper), scope, changed: false, written: None, next_ns: 0, until_ns }
    }

    pub(super) fn note(&mut self, change: &Change) {
        self.changed |= self.scope == Scope::All || matches!(change, Change::Property { .. });
    }
}

/// Where the transport stands, for a file that is not to change with every cycle: where it rolls from is not said.
fn settled(transport: &Transport) -> Place {
    let rolling = transport.state.passes();
    Place { rolling, frame: if rolling { 0 } else { transport.position.frame } }
}

impl Control {
    fn transport_now(&self) -> Transport {
        self.engine().transport_in(self.engine().cycle()).unwrap_or_default()
    }

    /// Has the state written, if it is another one than before.
    pub(super) fn keep_state(&mut self) {
        let now_ns = Futex.now_ns();
        if self.parts.keeping.until_ns.is_some_and(|until_ns| until_ns < now_ns) {
            self.parts.keeping.until_ns = None;
            self.parts.model.expect_nobody();
        }
        if self.parts.keeping.scope == Scope::All {
            let rest = Some((self.quantum, settled(&self.transport_now())));
            self.parts.keeping.changed |= self.parts.keeping.written != rest;
        }
        if self.parts.keeping.changed && self.parts.keeping.next_ns <= now_ns {
            self.write_state();
            self.parts.keeping.next_ns = now_ns + PAUSE_NS;
        }
    }

    fn write_state(&mut self) {
        let transport = self.transport_now();
        let state = self.whole_state(&transport);
        let keeping = &mut self.parts.keeping;
        keeping.changed = false;
        keeping.written = Some((self.quantum, settled(&transport)));
        let state = match keeping.scope {
            Scope::All => state,
            Scope::Uncarried => State { properties: state.properties, ..State::default() },
        };
        if let Some(keeper) = &keeping.keeper {
            keeper.give(state);
        }
    }

    fn whole_state(&self, transport: &Transport) -> State {
        let place = Place { rolling: transport.state.passes(), frame: transport.position.frame };
        self.parts.model.state(Some(self.quantum), Some(place))
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
