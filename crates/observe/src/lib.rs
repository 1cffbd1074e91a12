//! What a running server shows to a process outside of its cycles: its graph, its recording and its
//! state. The command line, the web page and the D-Bus service build on it.
//!
//! [`Graph`] is one snapshot of clients, ports and connections; [`GraphFollower`] takes a new one
//! when the registry has changed. [`RecordingFollower`] reads the recording of every cycle.
//! [`StreamsView`] is what devices and streams do at one moment; [`StreamsFollower`] reads it when
//! it has changed.
//! [`save`] and [`restore`] convert between a running server and a [`State`](::state::State).
//!
//! Everything goes through an [`Observer`](client::Observer), which is not a client: the server
//! needs no memory, thread or cycle time for it. Thread: any except those that run cycles.
#![forbid(unsafe_code)]

mod graph;
mod recording;
mod state;
mod streams;

pub use graph::{Graph, GraphFollower, Port};
pub use recording::{Recorded, RecordingFollower};
pub use state::{Unlisted, restore, save};
pub use streams::{StreamsFollower, StreamsView, awake_reason};
