//! Opening a client.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proto::hello::{Role, Welcome};
use rt::shm::Layout;
use sys::memory::{Access, Seals, Segment, Shared, Wanted};
use sys::socket::Connection;

use super::activation::Activations;
use super::attachment::{Attachment, Sockets};
use super::core::Core;
use super::ports::PortAllocator;
use super::server_memory::{ServerMemories, ServerMemory};
use crate::notice_queue::notice_queue;
use crate::process::{OwnSlabs, PortTable, TablesSender};
use crate::requests::{Introduction, introduce, server_name};
use crate::time::LastCycle;
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
    let attempt = || {
        let role = Role::Client {
            name: name.to_owned(),
            exact: options.exact_name,
            session: options.session,
        };
        introduce(&server, role)
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
    begin(introduction, started_server)
}

/// What a server sends to a client that it admits.
pub(super) struct Admission {
    pub(super) client: u32,
    pub(super) name: String,
    pub(super) server_name: String,
    pub(super) memory: ServerMemory,
    pub(super) sockets: Sockets,
}

/// Maps the memory that the server sent.
pub(super) fn receive_welcome(introduction: Introduction) -> Result<Admission, Error> {
    let Introduction { requests, welcome, descriptors } = introduction;
    let Welcome::Client { client, name, server_name } = welcome else {
        return Err(Error::Protocol("it did not welcome a client"));
    };
    let descriptors: [OwnedFd; 6] = descriptors
        .try_into()
        .map_err(|_| Error::Protocol("it did not send the client's memory"))?;
    let [engine, registry, assignments, own, signals, events] = descriptors;
    let memory = ServerMemory::map(&server_name, [engine, registry, assignments, own, signals])?;
    let sockets =
        Sockets { requests: Arc::new(requests), events: Arc::new(Connection::from(events)) };
    Ok(Admission { client, name, server_name, memory, sockets })
}

/// Creates the client and starts the threads that listen to the server.
fn begin(introduction: Introduction, started_server: bool) -> Result<Arc<Core>, Error> {
    let Admission { client, name, server_name, memory, sockets } = receive_welcome(introduction)?;
    let (notices, received) = notice_queue();
    let core = Arc::new(Core {
        id: client,
        name,
        server_name,
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
fn own_grace() -> Option<Duration> {
    let value = std::env::var("CONSORT_GRACE_MS").ok()?;
    value.parse().ok().map(Duration::from_millis)
}

/// Maps a page from the server. It must have exactly this size, and a page that this process only
/// reads must not be writable by any other receiver.
pub(crate) fn receive<T: Layout>(memfd: OwnedFd, access: Access) -> Result<Shared<T>, Error> {
    let exact = Wanted::exactly(size_of::<T>() as u64);
    let wanted = match access {
        Access::ReadOnly => Wanted { seals: Seals::SIZE | Seals::FUTURE_WRITE, ..exact },
        Access::Writable => exact,
    };
    let segment = Segment::receive(memfd, &wanted)?;
    Ok(Shared::open(&segment, access)?)
}
