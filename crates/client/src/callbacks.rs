//! What a program is called for.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use proto::property::PropertyChange;
use proto::request::Interests;
use proto::session::SessionKind;

use crate::CycleScope;

/// A callback that is set, and stays so while it runs: whoever calls it has a share of it, and has it locked, so that it
/// runs on one thread at a time whatever is set meanwhile. See [`callback`].
pub type Callback<F> = Arc<Mutex<F>>;

/// A callback to be set.
pub fn callback<F>(function: F) -> Callback<F> {
    Arc::new(Mutex::new(function))
}

/// Answers 0 to go on; anything else ends the client's part in cycles.
pub type ProcessCallback = Callback<dyn FnMut(&CycleScope<'_>) -> i32 + Send>;
/// Runs the loop itself, with [`Session::cycle_wait`](crate::Session::cycle_wait) and
/// [`Session::cycle_signal`](crate::Session::cycle_signal).
pub type ThreadFunction = Callback<dyn FnMut() + Send>;
/// A callback that is told one thing.
pub type Told<T> = Callback<dyn FnMut(T) + Send>;

/// Why there is no server any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shutdown {
    /// The server said so before it stopped; otherwise the connection ended.
    pub orderly: bool,
    /// In words.
    pub reason: String,
}

/// What a session manager asks of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// What for.
    pub kind: SessionKind,
    /// An existing directory for the client's files, of its own.
    pub directory: PathBuf,
}

/// Takes a client's name, and whether it came or went.
pub type ToldOfClient = Callback<dyn FnMut(&str, bool) + Send>;
/// Takes a port's id, its full name before, and its full name now.
pub type ToldOfRename = Callback<dyn FnMut(u32, &str, &str) + Send>;
/// Takes the subject's uuid (0: everything), the key (empty: all of the subject's), and what happened.
pub type ToldOfProperty = Callback<dyn FnMut(u64, &str, PropertyChange) + Send>;
/// Takes why there is no server any more.
pub type ToldOfShutdown = Callback<dyn FnMut(&Shutdown) + Send>;

/// A program's callbacks, each optional. All but the first three are called on the client's notification thread,
/// one at a time, and only while the client is active (but `shutdown`: always). They may block and may call the
/// session.
#[derive(Default)]
pub struct Callbacks {
    /// Once in each cycle, on the process thread.
    pub process: Option<ProcessCallback>,
    /// In place of `process`: the program's own loop, on the process thread.
    pub process_thread: Option<ThreadFunction>,
    /// First of all on the process thread, and on the notification thread at activation.
    pub thread_init: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The quantum in frames: at activation (on the process thread), and before the first cycle of a new length.
    pub quantum: Option<Told<u32>>,
    /// Cycles are about to follow each other as fast as the graph can (true), or by the driver's clock again.
    pub freewheel: Option<Told<bool>>,
    /// Latencies are to be stated anew: from the capture side if true, otherwise to the playback side.
    pub latency: Option<Told<bool>>,
    /// Another client came (true) or went.
    pub client_registration: Option<ToldOfClient>,
    /// A port came (true) or went: its id.
    pub port_registration: Option<Told<(u32, bool)>>,
    /// A port has a new name: id, full name before, full name now.
    pub port_rename: Option<ToldOfRename>,
    /// A connection came (true) or went: ids of the output and of the input port.
    pub connection: Option<Told<(u32, u32, bool)>>,
    /// The order of the clients changed.
    pub graph_order: Option<Callback<dyn FnMut() + Send>>,
    /// A cycle was not finished in time: by how many µs.
    pub xrun: Option<Told<u32>>,
    /// A property was set or removed.
    pub property: Option<ToldOfProperty>,
    /// A session is saved; to be answered with [`Session::answer_session`](crate::Session::answer_session), here or
    /// later.
    pub session: Option<Told<SessionEvent>>,
    /// This many events were lost because the program did not take them.
    pub lost: Option<Told<u32>>,
    /// There is no server any more. Once.
    pub shutdown: Option<ToldOfShutdown>,
}

impl Callbacks {
    /// What the server is to tell.
    pub(crate) fn interests(&self) -> Interests {
        Interests {
            clients: self.client_registration.is_some(),
            ports: self.port_registration.is_some(),
            names: self.port_rename.is_some(),
            connections: self.connection.is_some(),
            order: self.graph_order.is_some(),
            xruns: self.xrun.is_some(),
            properties: self.property.is_some(),
        }
    }
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Callbacks")
            .field("process", &self.process.is_some())
            .field("process_thread", &self.process_thread.is_some())
            .finish_non_exhaustive()
    }
}
