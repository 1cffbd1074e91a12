//! Coming back: a server that died is replaced by another, and the client is there what it was with the first.
//!
//! What the client was is its own knowledge: its ports and their numbers, and its connections as the registry of the
//! first server shows them, which stays mapped. Service thread; no code of the program is run.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proto::hello::{Returning, Role, Seen};
use proto::limits::RETURNED_AT_ONCE;
use proto::request::{NewPort, Request, RequestError, ReturningConnection, ReturningPort};

use rt::transport::{Position, Transport, TransportState};

use super::attachment::Sockets;
use super::core::Core;
use super::open::{Welcomed, receive_welcome};
use super::ports::send_slab;
use crate::Error;
use crate::callbacks::Shutdown;
use crate::locked::locked;
use crate::registry_view::RegistryView;
use crate::requests::{Requests, introduce};

/// How often the program may change its mind while the server is told.
const TRIES: u32 = 16;

/// Where the cycle after the one of `transport` would have begun. Bar and beat are not known there, if it rolls.
fn see(transport: &Transport, quantum: u32) -> Seen {
    let rolls = transport.state != TransportState::Stopped;
    let frame = transport.next_frame(quantum);
    let same = frame == transport.position.frame;
    let position = if same { transport.position } else { Position::at(frame) };
    Seen { rolls, position: position.to_words() }
}

/// What came of an attempt to return.
pub(crate) enum Attempt {
    /// The client has a server again.
    Returned(Sockets),
    /// No server is there yet.
    NotYet,
    /// A server was there, and has died, too: from then on another is waited for.
    Lost,
    /// The client was closed meanwhile.
    Closed,
    /// The server that is there does not take the client back.
    Never(Shutdown),
}

/// What a client was when its server died.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    ports: Vec<ReturningPort>,
    connections: Vec<ReturningConnection>,
    uuid: u64,
    last_client: u32,
    last_port: u32,
    transport: Option<Seen>,
    /// It was the one that completes the transport's positions.
    is_master: bool,
    /// When the server that took that one's place had been told.
    told: Option<Instant>,
}

impl Core {
    /// The server is gone without a word: gives the sockets that it left. The process thread waits for the next one.
    pub(crate) fn cut_off(&self) -> Option<Sockets> {
        let left = self.attachment.detach();
        self.cut();
        left
    }

    /// How long another server is waited for.
    pub(crate) fn grace(&self) -> Duration {
        let of_server = || Duration::from_millis(self.link().engine.grace_ms().into());
        self.own_grace.unwrap_or_else(of_server)
    }

    /// Looks whether there is a server again, and becomes its client. In bounded time.
    pub(crate) fn try_to_return(&self) -> Attempt {
        let before = self.links.newest();
        let attempt = self.find_server();
        let met = self.links.newest() != before;
        if met && !matches!(attempt, Ok(Attempt::Returned(_))) {
            self.cut();
        }
        match attempt {
            Ok(attempt) => attempt,
            Err(Error::ServerGone) if met => Attempt::Lost,
            Err(
                Error::NoServer { .. }
                | Error::ServerGone
                | Error::Timeout { .. }
                | Error::Socket(_)
                | Error::System(_)
                | Error::Memory(_)
                | Error::Refused(RequestError::Failed(_)),
            ) => Attempt::NotYet,
            Err(error) => {
                let reason = format!("the server that is there now does not take the client back: {error}");
                Attempt::Never(Shutdown { orderly: false, reason })
            }
        }
    }

    fn find_server(&self) -> Result<Attempt, Error> {
        let role = Role::Returning(self.introduction());
        self.return_to(receive_welcome(introduce(&self.server_name, role)?)?)
    }

    fn introduction(&self) -> Returning {
        // Once for all attempts: what the next server shows is not yet what was.
        let mut remembered = locked(&self.remembered);
        let known = match &mut *remembered {
            Some(known) if known.told.is_none() => known,
            earlier => {
                let known = self.remember(earlier.take());
                earlier.insert(known)
            }
        };
        let info = self.newest_cycle().unwrap_or_default();
        Returning {
            client: self.id,
            uuid: known.uuid,
            name: self.name.clone(),
            instance: self.link().engine.instance(),
            frames: info.frames,
            at_ns: info.wakeup_ns,
            quantum: info.quantum,
            sample_rate_hz: info.sample_rate_hz,
            last_client: known.last_client,
            last_port: known.last_port,
            transport: known.transport,
        }
    }

    /// Reads what was from the registry that the dead server has left. `earlier`: from the last time.
    fn remember(&self, earlier: Option<Remembered>) -> Remembered {
        // A port that is being registered is there, or is not, before this goes on.
        let _book = locked(&self.book);
        let view = RegistryView::new(&self.link().registry);
        let ports =
            self.ports.named().filter_map(|(id, number)| self.remember_port(view, id, number)).collect();
        let mut connections: Vec<_> =
            self.ports.named().flat_map(|(id, _)| self.remember_connections(view, id)).collect();
        // Another server that died before all had returned does not know what they were.
        let recent = |earlier: &Remembered| earlier.told.is_some_and(|told| told.elapsed() < self.grace());
        let earlier = earlier.filter(recent);
        let unmoved = earlier.as_ref().and_then(|earlier| earlier.transport);
        for connection in earlier.into_iter().flat_map(|earlier| earlier.connections) {
            let is_known = |name: &str| view.port_by_name(name).is_some();
            if is_known(&connection.source) != is_known(&connection.destination) {
                connections.push(connection);
            }
        }
        connections.sort_by_key(|connection| connection.age);
        let last_client = view.clients().last().map_or(0, |client| client.id);
        let last_port = view.ports().last().map_or(0, |port| port.id);
        let transport = crate::transport::newest(&self.link().engine);
        let is_master = transport.is_some_and(|transport| transport.master == self.id);
        let quantum = self.newest_cycle().map_or(0, |info| info.quantum);
        // Round 0: nobody has moved it.
        let transport = transport.filter(|seen| seen.round > 0).map(|seen| see(&seen, quantum)).or(unmoved);
        let uuid = view.client(self.id).map_or(0, |client| client.uuid);
        Remembered { ports, connections, uuid, last_client, last_port, transport, is_master, told: None }
    }

    fn remember_port(&self, view: RegistryView<'_>, id: u32, number: u32) -> Option<ReturningPort> {
        let (port, cell) = (view.port_that_was(id)?, self.ports.cell(number)?);
        let own = port.name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix(':'));
        let name = own.unwrap_or_else(|| proto::names::short(&port.name)).to_owned();
        let latency = |capture| view.port_latency(id, capture).map_or((0, 0), |range| (range.min, range.max));
        let (port_type, flags, slot) = (port.port_type, port.flags, cell.slab_slot());
        Some(ReturningPort {
            id,
            port: NewPort { name, port_type, flags, number, slot },
            aliases: port.aliases,
            capture_latency: latency(true),
            playback_latency: latency(false),
        })
    }

    /// The connections of an output, and those of an input with other clients' outputs.
    fn remember_connections(&self, view: RegistryView<'_>, id: u32) -> Vec<ReturningConnection> {
        let Some(port) = view.port_that_was(id) else { return Vec::new() };
        let connections = view.connections_that_were(id).into_iter();
        connections
            .filter_map(|(other, age)| {
                let other = view.port_that_was(other)?;
                if port.is_output() {
                    Some(ReturningConnection { source: port.name.clone(), destination: other.name, age })
                } else if other.owner == self.id {
                    None
                } else {
                    Some(ReturningConnection { source: other.name, destination: port.name.clone(), age })
                }
            })
            .collect()
    }

    fn return_to(&self, welcomed: Welcomed) -> Result<Attempt, Error> {
        let Welcomed { client, name, link, sockets, .. } = welcomed;
        if (client, &name) != (self.id, &self.name) {
            return Err(Error::Protocol("it took the client back as another one"));
        }
        let requests = &sockets.requests;
        self.return_ports(requests)?;
        requests.order(Request::ReturnClock)?;
        {
            let mut tables = locked(&self.tables);
            tables.forget_waiting();
            tables.change(None, crate::process::Tables::clear);
            tables.settle();
        }
        if !self.links.add(link) {
            return Err(Error::Protocol("it is one of too many"));
        }
        if self.closed.load(Ordering::Acquire) {
            return Ok(Attempt::Closed);
        }
        self.return_activity(&sockets)
    }

    fn return_ports(&self, requests: &Requests) -> Result<(), Error> {
        let book = locked(&self.book);
        for slab in (0..book.slabs).map_while(|slab| self.own_slabs.get(slab)) {
            send_slab(requests, slab.slab().segment().fd())?;
        }
        drop(book);
        let remembered = locked(&self.remembered);
        for port in remembered.iter().flat_map(|remembered| &remembered.ports) {
            requests.order(Request::ReturnPort(port.clone()))?;
        }
        Ok(())
    }

    /// Has the server take the client for active, with its connections, if it is; until nobody has changed that
    /// meanwhile.
    fn return_activity(&self, sockets: &Sockets) -> Result<Attempt, Error> {
        let requests = &sockets.requests;
        let mut told = *locked(&self.stated);
        if let Some(activation) = told {
            requests.order(Request::Activate(activation))?;
            self.return_connections(requests)?;
        }
        requests.order(Request::Returned)?;
        for _ in 0..TRIES {
            let stated = *locked(&self.stated);
            match stated {
                Some(activation) if stated != told => requests.order(Request::Activate(activation))?,
                None if told.is_some() => requests.order(Request::Deactivate)?,
                _ => {}
            }
            told = stated;
            let is_still = || *locked(&self.stated) == told && !self.closed.load(Ordering::Acquire);
            if self.attachment.attach(sockets, is_still) {
                if let Some(known) = locked(&self.remembered).as_mut() {
                    known.told = Some(Instant::now());
                }
                return Ok(Attempt::Returned(sockets.clone()));
            }
            if self.closed.load(Ordering::Acquire) {
                return Ok(Attempt::Closed);
            }
        }
        Err(Error::ServerGone)
    }

    fn return_connections(&self, requests: &Requests) -> Result<(), Error> {
        let remembered = locked(&self.remembered);
        let Some(known) = remembered.as_ref() else { return Ok(()) };
        for connections in known.connections.chunks(RETURNED_AT_ONCE) {
            requests.order(Request::ReturnConnections(connections.to_vec()))?;
        }
        if known.is_master {
            // Unless a newcomer was quicker.
            match requests.order(Request::TakeTimebase { conditional: true }) {
                Ok(()) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
