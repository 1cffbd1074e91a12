//! Handles of ports: the server's number in this process, and the port's id on that server. Never
//! dereferenced as addresses.
//!
//! Many calls have a port and no client. For those, each server's ports are listed with the client
//! of this process that registered them; for other ports, any client of this process on the same
//! server is used.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use client::{ChunkedList, Session};

use crate::clients::{self, ClientHandle, OpenClient, Pinned};

/// A `jack_port_t *`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct PortHandle(usize);

const ID_BITS: u32 = 24;

/// One run of a server that this process has been a client of. Never freed: a few hundred bytes,
/// and eight for each port id that was seen.
#[derive(Debug)]
struct Server {
    identity: OnceLock<Identity>,
    /// The client on this server that was found last.
    any: AtomicU64,
    /// The handle of the client that registered each port, by port id. May be outdated.
    owners: ChunkedList<AtomicU64>,
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Identity {
    name: String,
    process: u32,
}

static SERVERS: ChunkedList<Server, 1> = ChunkedList::new([Server::new()]);
static CHANGES: Mutex<()> = Mutex::new(());

/// Returns the number of the session's server in this process.
pub fn server_number(session: &Session) -> Option<u32> {
    let process = session.engine().map_or(0, |engine| engine.server_process());
    // A server that replaced another keeps the number that its clients already have.
    if let Some(number) = clients::server_like(session) {
        return Some(number);
    }
    let identity = Identity { name: session.server_name().to_owned(), process };
    let _changing = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = SERVERS.iter().take_while(|server| server.identity.get().is_some());
    let mut last = 0;
    for (number, server) in known.enumerate() {
        if server.identity.get() == Some(&identity) {
            return u32::try_from(number).ok();
        }
        last = number + 1;
    }
    SERVERS.make(last)?.identity.set(identity).ok()?;
    u32::try_from(last).ok()
}

/// A port, and a client through which it can be queried.
#[derive(Debug)]
pub struct PinnedPort {
    /// The client.
    pub client: Pinned,
    /// The port's id on the client's server.
    pub id: u32,
}

impl PortHandle {
    /// Null.
    pub const NONE: Self = Self(0);

    /// Returns the handle of port `id` on the client's server.
    pub fn new(client: &OpenClient, id: u32) -> Self {
        if id == 0 || id >> ID_BITS != 0 {
            Self::NONE
        } else {
            Self((client.server as usize) << ID_BITS | id as usize)
        }
    }

    #[inline]
    fn split(self) -> Option<(u32, u32)> {
        let id = (self.0 & ((1 << ID_BITS) - 1)) as u32;
        let server = u32::try_from(self.0 >> ID_BITS).ok()?;
        (id != 0).then_some((server, id))
    }

    /// Returns the port's id if it is on the client's server. Thread: any.
    pub fn id_for(self, client: &OpenClient) -> Option<u32> {
        self.split().filter(|(server, _)| *server == client.server).map(|(_, id)| id)
    }

    /// Returns whether this can be the handle of a present or past port. Thread: any.
    pub fn is_known(self) -> bool {
        let server = self.split().and_then(|(server, _)| SERVERS.get(server as usize));
        server.is_some_and(|server| server.identity.get().is_some())
    }

    /// Returns the port with its own client if that is in this process, or else with any client on
    /// its server. Thread: any.
    pub fn pin(self) -> Option<PinnedPort> {
        let any = || {
            let (number, id) = self.split()?;
            let server = SERVERS.get(number as usize)?;
            server.identity.get()?;
            Some(PinnedPort { client: server.any(number)?, id })
        };
        self.pin_own().or_else(any)
    }

    /// Returns the port with its own client if that is in this process. Thread: any.
    #[inline(always)]
    pub fn pin_own(self) -> Option<PinnedPort> {
        let (number, id) = self.split()?;
        Some(PinnedPort { client: SERVERS.get(number as usize)?.owner(id)?, id })
    }
}

/// Records that `owner` has registered port `id`.
pub fn note_owner(client: &OpenClient, owner: ClientHandle, id: u32) {
    if let Some(place) =
        SERVERS.get(client.server as usize).and_then(|server| server.owners.make(id as usize))
    {
        // Release: pairs with `Server::owner`, which then finds the client open.
        place.store(owner.number(), Ordering::Release);
    }
}

impl Server {
    const fn new() -> Self {
        let owners = ChunkedList::new([const { AtomicU64::new(0) }; _]);
        Self { identity: OnceLock::new(), any: AtomicU64::new(0), owners }
    }

    #[inline]
    fn owner(&self, id: u32) -> Option<Pinned> {
        // Acquire: pairs with `note_owner`.
        ClientHandle::from_number(self.owners.get(id as usize)?.load(Ordering::Acquire)).pin()
    }

    fn any(&self, number: u32) -> Option<Pinned> {
        // Relaxed, here and below: a handle that cannot be pinned is searched for again.
        let last = ClientHandle::from_number(self.any.load(Ordering::Relaxed));
        if let Some(pinned) = last.pin() {
            return Some(pinned);
        }
        let (handle, pinned) = clients::any_on(number)?;
        self.any.store(handle.number(), Ordering::Relaxed);
        Some(pinned)
    }
}
