//! Opening a client.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proto::hello::Role;
use sys::runtime_directory::ControlSockets;

use super::admission::{Admission, receive_welcome};
use super::attachment::Attachment;
use super::core::{Activations, Core};
use super::port_allocator::PortAllocator;
use super::server_memory::{LastCycle, ServerMemories};
use crate::notice_queue::notice_queue;
use crate::process::{OwnSlabs, PortTable, TablesSender};
use crate::requests::{Introduction, introduce, server_name};
use crate::{Callbacks, Error, autostart, notification, service};

/// How to open a client.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The server's name. `None` selects `JACK_DEFAULT_SERVER`, or else `default`.
    pub server: Option<String>,
    /// Fail rather than open under another name than the requested one.
    pub exact_name: bool,
    /// The uuid for which a session manager may have reserved a name.
    pub session: Option<u64>,
    /// Start a server if there is none and `JACK_NO_START_SERVER` is not set.
    pub start_server: bool,
}

pub(super) fn open(name: &str, options: &OpenOptions) -> Result<Arc<Core>, Error> {
    proto::names::check_client(name)?;
    let server = server_name(options.server.as_deref())?;
    let control_sockets = Box::new(ControlSockets::of_environment()?);
    let attempt = || {
        let role = Role::Client {
            name: name.to_owned(),
            exact: options.exact_name,
            session: options.session,
        };
        introduce(&control_sockets, &server, role)
    };
    let (introduction, started_server) = match attempt() {
        Err(error @ Error::NoServer { .. }) => {
            if !(options.start_server && autostart::is_allowed()) {
                return Err(error);
            }
            (autostart::start(&server, attempt)?, true)
        }
        decided => (decided?, false),
    };
    begin(introduction, control_sockets, started_server)
}

/// Creates the client and starts the threads that listen to the server.
fn begin(
    introduction: Introduction,
    control_sockets: Box<ControlSockets>,
    started_server: bool,
) -> Result<Arc<Core>, Error> {
    let Admission { client, name, server_name, memory, sockets } = receive_welcome(introduction)?;
    let (notices, received) = notice_queue();
    let core = Arc::new(Core {
        id: client,
        name,
        server_name,
        control_sockets,
        started_server,
        generation: sys::fork::generation(),
        attachment: Attachment::new(sockets),
        ports: PortTable::new(memory.registry.shape().ports),
        memories: ServerMemories::new(memory),
        own_slabs: OwnSlabs::new(),
        allocator: Mutex::new(PortAllocator::default()),
        tables: Mutex::new(TablesSender::default()),
        callbacks: Mutex::new(Callbacks::default()),
        activations: Mutex::new(Activations::default()),
        own_grace: own_grace(),
        return_state: Mutex::new(None),
        announced_activation: Mutex::new(None),
        active: AtomicBool::new(false),
        process_thread: AtomicU32::new(0),
        notices,
        notification_thread: Mutex::new(None),
        last_cycle: LastCycle::default(),
        service: OnceLock::new(),
        session_question: AtomicU64::new(0),
        shutdown_told: AtomicBool::new(false),
        muted: AtomicBool::new(false),
        closing: AtomicBool::new(false),
        closed: AtomicBool::new(false),
    });
    notification::start(&core, received)?;
    if let Err(error) = service::add(&core) {
        core.close();
        return Err(error);
    }
    Ok(core)
}

/// Returns the user's grace (`CONSORT_GRACE_MS`): how long to wait for a replacement of a server
/// that died.
pub(crate) fn own_grace() -> Option<Duration> {
    let value = std::env::var("CONSORT_GRACE_MS").ok()?;
    value.parse().ok().map(Duration::from_millis)
}
