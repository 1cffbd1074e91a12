//! A server as programs with streams know it: its socket, and memory of its that outlives it.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proto::hello::{Role, Welcome};
use rt::shm::{EngineSegment, RingShape};
use sys::memory::{Access, Shared, SharedRegistry};
use sys::runtime_directory::ControlSockets;

use crate::Error;
use crate::registry_view::RegistryView;
use crate::requests::{Requests, introduce, introduce_at};
use crate::session::{own_grace, receive};

/// Where servers of one name listen, one after the other.
#[derive(Debug)]
pub(super) struct ServerAddress {
    pub(super) name: String,
    pub(super) socket: ServerSocket,
}

#[derive(Debug)]
pub(super) enum ServerSocket {
    /// As the environment said when the program connected first.
    Environment(Box<ControlSockets>),
    Path(PathBuf),
}

/// A server that a program with streams has connected to.
#[derive(Debug)]
pub(super) struct StreamServer {
    address: Arc<ServerAddress>,
    pub(super) requests: Requests,
    engine: Shared<EngineSegment>,
    registry: SharedRegistry,
    /// The program's own grace.
    own_grace: Option<Duration>,
    /// Size of the ring of the last playback stream, bytes; 0: it got less than it asked for.
    granted_bytes: AtomicUsize,
}

impl StreamServer {
    pub(super) fn connect(address: Arc<ServerAddress>) -> Result<Self, Error> {
        let introduction = match &address.socket {
            ServerSocket::Environment(sockets) => {
                introduce(sockets, &address.name, Role::Observer)?
            }
            ServerSocket::Path(path) => introduce_at(path, &address.name, Role::Observer)?,
        };
        if introduction.welcome != Welcome::Observer {
            return Err(Error::Protocol("it did not welcome a program with streams"));
        }
        let [engine, registry, _recording] = <[OwnedFd; 3]>::try_from(introduction.descriptors)
            .map_err(|_| Error::Protocol("it did not send its memory"))?;
        Ok(Self {
            address,
            requests: introduction.requests,
            engine: receive(engine, Access::ReadOnly)?,
            registry: SharedRegistry::receive(registry)?,
            own_grace: own_grace(),
            granted_bytes: AtomicUsize::new(0),
        })
    }

    pub(super) fn address(&self) -> &Arc<ServerAddress> {
        &self.address
    }

    pub(super) fn registry(&self) -> RegistryView<'_> {
        RegistryView::new(&self.registry)
    }

    /// Returns whether the last playback stream got the ring that it asked for, which was no
    /// smaller than this one.
    pub(super) fn has_granted(&self, shape: RingShape) -> bool {
        // Relaxed: it is a guess about the next stream, and nothing is read because of it.
        shape.bytes() <= self.granted_bytes.load(Ordering::Relaxed)
    }

    /// A playback stream got the ring that it asked for, or did not.
    pub(super) fn note_grant(&self, in_full: Option<RingShape>) {
        // Relaxed: see `has_granted`.
        self.granted_bytes.store(in_full.map_or(0, RingShape::bytes), Ordering::Relaxed);
    }

    /// Returns whether it has stopped in order.
    pub(super) fn has_stopped(&self) -> bool {
        self.engine.has_stopped()
    }

    /// Returns its number among all servers.
    pub(super) fn instance(&self) -> u64 {
        self.engine.instance()
    }

    /// Returns how long to wait for another one once it is gone.
    pub(super) fn grace(&self) -> Duration {
        self.own_grace.unwrap_or_else(|| Duration::from_millis(self.engine.grace_ms().into()))
    }
}
