//! Becoming a client.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use proto::hello::{Role, Welcome};
use rt::shm::Layout;
use sys::memory::{Access, Seals, Segment, Shared, Wanted};
use sys::socket::Connection;

use super::activation::Activations;
use super::attachment::{Attachment, Sockets};
use super::core::Core;
use super::link::{Link, Links};
use super::ports::PortBook;
use crate::process::{OwnSlabs, PortTable, TablesSender};
use crate::requests::{Introduction, introduce, server_name};
use crate::time::LastCycle;
use crate::{Callbacks, Error, autostart, notification, service};

/// How to become a client.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The server's name; `None`: that of `JACK_DEFAULT_SERVER`, or `default`.
    pub server: Option<String>,
    /// Rather fail than get another name than the one asked for.
    pub exact_name: bool,
    /// The uuid for which a session manager may have reserved a name.
    pub session: Option<u64>,
    /// Start a server if there is none (and `JACK_NO_START_SERVER` is not set).
    pub start_server: bool,
}

pub(super) fn open(name: &str, options: &OpenOptions) -> Result<Arc<Core>, Error> {
    proto::names::check_client(name)?;
    let server = server_name(options.server.as_deref())?;
    let attempt = || {
        let role =
            Role::Client { name: name.to_owned(), exact: options.exact_name, session: options.session };
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

/// What a server sends to a client that it welcomes.
pub(super) struct Welcomed {
    pub(super) client: u32,
    pub(super) name: String,
    pub(super) server_name: String,
    pub(super) link: Link,
    pub(super) sockets: Sockets,
}

/// Maps what the server sent.
pub(super) fn receive_welcome(introduction: Introduction) -> Result<Welcomed, Error> {
    let Introduction { requests, welcome, descriptors } = introduction;
    let Welcome::Client { client, name, server_name } = welcome else {
        return Err(Error::Protocol("it did not welcome a client"));
    };
    let descriptors: [OwnedFd; 6] =
        descriptors.try_into().map_err(|_| Error::Protocol("it did not send the client's memory"))?;
    let [engine, registry, orders, own, signals, events] = descriptors;
    let link = Link::map(&server_name, [engine, registry, orders, own, signals])?;
    let sockets = Sockets { requests: Arc::new(requests), events: Arc::new(Connection::from(events)) };
    Ok(Welcomed { client, name, server_name, link, sockets })
}

/// Starts the threads that listen to the server.
fn begin(introduction: Introduction, started_server: bool) -> Result<Arc<Core>, Error> {
    let Welcomed { client, name, server_name, link, sockets } = receive_welcome(introduction)?;
    let (notices, received) = channel();
    let core = Arc::new(Core {
        id: client,
        name,
        server_name,
        started_server,
        generation: sys::fork::generation(),
        attachment: Attachment::new(sockets),
        ports: PortTable::new(link.registry.shape().ports),
        links: Links::new(link),
        own_slabs: OwnSlabs::new(),
        book: Mutex::new(PortBook::default()),
        tables: Mutex::new(TablesSender::default()),
        callbacks: Mutex::new(Callbacks::default()),
        activations: Mutex::new(Activations::default()),
        own_grace: own_grace(),
        remembered: Mutex::new(None),
        stated: Mutex::new(None),
        active: AtomicBool::new(false),
        process_thread: AtomicU32::new(0),
        notices,
        notification_thread: Mutex::new(None),
        last_cycle: LastCycle::default(),
        copies_inputs: AtomicBool::new(false),
        inputs_written: AtomicBool::new(false),
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

/// How long the environment says that a server is to be waited for that may take the place of one that died.
fn own_grace() -> Option<Duration> {
    let value = std::env::var("CONSORT_GRACE_MS").ok()?;
    value.parse().ok().map(Duration::from_millis)
}

/// Maps a page that the server sent, which has this very size and can be written by nobody else if we only read it.
pub(crate) fn receive<T: Layout>(memfd: OwnedFd, access: Access) -> Result<Shared<T>, Error> {
    let exact = Wanted::exactly(size_of::<T>() as u64);
    let wanted = match access {
        Access::ReadOnly => Wanted { seals: Seals::SIZE | Seals::FUTURE_WRITE, ..exact },
        Access::Writable => exact,
    };
    let segment = Segment::receive(memfd, &wanted)?;
    Ok(Shared::open(&segment, access)?)
}
