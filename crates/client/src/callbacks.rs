//! The program's callbacks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use proto::property::PropertyChange;
use proto::request::Interests;
use proto::session::SessionKind;

use crate::CycleScope;

/// A shared callback. The calling thread holds a reference and the lock, so that a callback stays
/// alive while it runs, even if it is replaced meanwhile, and runs on one thread at a time. Created
/// by [`callback`].
pub type Callback<F> = Arc<Mutex<F>>;

/// Wraps a function as a [`Callback`].
pub fn callback<F>(function: F) -> Callback<F> {
    Arc::new(Mutex::new(function))
}

/// Processes one cycle. Returns 0 to continue; any other value makes the client leave the cycles.
pub type ProcessCallback = Callback<dyn FnMut(&CycleScope<'_>) -> i32 + Send>;
/// Runs the program's own loop with [`Session::cycle_wait`](crate::Session::cycle_wait) and
/// [`Session::cycle_signal`](crate::Session::cycle_signal).
pub type ThreadFunction = Callback<dyn FnMut() + Send>;
/// A callback of the notification thread with one argument.
pub type NotificationCallback<T> = Callback<dyn FnMut(T) + Send>;

/// Why the server is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shutdown {
    /// True if the server announced its end, false if the connection broke.
    pub orderly: bool,
    /// The reason, for users.
    pub reason: String,
}

/// A session manager's request to save.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEvent {
    /// What the client should do.
    pub kind: SessionKind,
    /// An existing directory reserved for this client's files.
    pub directory: PathBuf,
}

/// Arguments: the client's name, and whether it was registered (true) or removed.
pub type ClientRegistrationCallback = Callback<dyn FnMut(&str, bool) + Send>;
/// Arguments: the port's id, the previous full name, the new full name.
pub type PortRenameCallback = Callback<dyn FnMut(u32, &str, &str) + Send>;
/// Arguments: the subject's uuid (0: every subject), the key (empty: all keys of the subject), and
/// the kind of change.
pub type PropertyCallback = Callback<dyn FnMut(u64, &str, PropertyChange) + Send>;
/// Argument: why the server is gone.
pub type ShutdownCallback = Callback<dyn FnMut(&Shutdown) + Send>;

/// The program's callbacks, each optional. The first two run on the process thread, `thread_init`
/// on both threads; the others run on the client's notification thread, one at a time and only
/// while the client is active, except `shutdown`, which is always called. Callbacks of the
/// notification thread may block and may call the session.
#[derive(Default)]
pub struct Callbacks {
    /// Called in each cycle, on the process thread.
    pub process: Option<ProcessCallback>,
    /// The program's own loop on the process thread, instead of `process`.
    pub process_thread: Option<ThreadFunction>,
    /// Called before anything else on the process thread, and on the notification thread at
    /// activation.
    pub thread_init: Option<Arc<dyn Fn() + Send + Sync>>,
    /// The quantum, in frames. Called at activation (on the process thread) and before the first
    /// cycle of a new length.
    pub quantum: Option<NotificationCallback<u32>>,
    /// Freewheeling is about to begin (true) or to end.
    pub freewheel: Option<NotificationCallback<bool>>,
    /// The client should set its ports' latency ranges: the capture ranges if true, else the
    /// playback ranges.
    pub latency: Option<NotificationCallback<bool>>,
    /// Another client was registered (true) or removed.
    pub client_registration: Option<ClientRegistrationCallback>,
    /// A port was registered (true) or removed; with its id.
    pub port_registration: Option<NotificationCallback<(u32, bool)>>,
    /// A port was renamed.
    pub port_rename: Option<PortRenameCallback>,
    /// A connection was made (true) or removed; with the ids of the output and the input port.
    pub connection: Option<NotificationCallback<(u32, u32, bool)>>,
    /// The topological order of the clients changed.
    pub graph_order: Option<Callback<dyn FnMut() + Send>>,
    /// A cycle was not finished in time; with the delay in µs.
    pub xrun: Option<NotificationCallback<u32>>,
    /// A property was set or removed.
    pub property: Option<PropertyCallback>,
    /// A session is being saved. The program answers with
    /// [`Session::answer_session`](crate::Session::answer_session), in the callback or later.
    pub session: Option<NotificationCallback<SessionEvent>>,
    /// This many events were lost because the program did not process them in time.
    pub lost: Option<NotificationCallback<u32>>,
    /// The server is gone and will not be replaced. Called once.
    pub shutdown: Option<ShutdownCallback>,
}

impl Callbacks {
    /// Returns the kinds of event that the server should send.
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
