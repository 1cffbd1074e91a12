//! Returning to a server that replaces a dead one, with the same ports and connections.
//!
//! The client itself knows what it was: its ports and their numbers, and its connections as shown
//! by the registry of the dead server, which stays mapped. Runs on the service thread, without code
//! of the program.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proto::hello::{Returning, Role, TransportSnapshot};
use proto::limits::RETURNED_AT_ONCE;
use proto::request::{NewPort, Request, ReturningConnection, ReturningPort};

use rt::transport::{Position, Transport, TransportState};

use super::admission::{Admission, receive_welcome};
use super::attachment::Sockets;
use super::core::{Core, ReturnState};
use super::port_allocator::send_slab;
use crate::Error;
use crate::callbacks::Shutdown;
use crate::locked::locked;
use crate::registry_view::RegistryView;
use crate::requests::{Requests, introduce};

/// How often the program may change its activation while the server is being informed.
const TRIES: u32 = 16;

/// Returns the position of the cycle after `transport`'s. While the transport rolls, bar and beat
/// of that position are unknown.
fn transport_after(transport: &Transport, quantum: u32) -> TransportSnapshot {
    let rolls = transport.state != TransportState::Stopped;
    let frame = transport.next_frame(quantum);
    let same = frame == transport.position.frame;
    let position = if same { transport.position } else { Position::at(frame) };
    TransportSnapshot { rolls, position: position.to_words() }
}

/// The result of an attempt to return.
pub(crate) enum ReturnAttempt {
    /// The client has a server again.
    Returned(Sockets),
    /// There is no server yet.
    NotYet,
    /// There was a server, and it died too. The time limit starts over.
    Lost,
    /// The client was closed meanwhile.
    Closed,
    /// The new server does not accept the client.
    Never(Shutdown),
}

impl Core {
    /// Detaches from a server that died, and returns its sockets. The process thread sleeps until
    /// there is another server.
    pub(crate) fn detach(&self) -> Option<Sockets> {
        let left = self.attachment.detach();
        self.detach_memory();
        left
    }

    /// Returns how long to wait for another server.
    pub(crate) fn grace(&self) -> Duration {
        let of_server = || Duration::from_millis(self.memory().engine.grace_ms().into());
        self.own_grace.unwrap_or_else(of_server)
    }

    /// Checks once for a server and returns to it, in bounded time.
    pub(crate) fn attempt_return(&self) -> ReturnAttempt {
        let before = self.memories.newest();
        let attempt = self.find_server();
        let connected = self.memories.newest() != before;
        if connected && !matches!(attempt, Ok(ReturnAttempt::Returned(_))) {
            self.detach_memory();
        }
        match attempt {
            Ok(attempt) => attempt,
            Err(Error::ServerGone) if connected => ReturnAttempt::Lost,
            Err(error) if error.may_pass() => ReturnAttempt::NotYet,
            Err(error) => {
                let reason = format!("the new server does not take the client back: {error}");
                ReturnAttempt::Never(Shutdown { orderly: false, reason })
            }
        }
    }

    fn find_server(&self) -> Result<ReturnAttempt, Error> {
        let role = Role::Returning(self.introduction());
        self.return_to(receive_welcome(introduce(&self.control_sockets, &self.server_name, role)?)?)
    }

    fn introduction(&self) -> Returning {
        // Taken once for all attempts: the registry of the next server is incomplete at first.
        let mut return_state = locked(&self.return_state);
        let known = match &mut *return_state {
            Some(known) if known.announced_at.is_none() => known,
            earlier => {
                let known = self.snapshot(earlier.take());
                earlier.insert(known)
            }
        };
        let info = self.newest_cycle().unwrap_or_default();
        Returning {
            client: self.id,
            uuid: known.uuid,
            name: self.name.clone(),
            instance: self.memory().engine.instance(),
            frames: info.frames,
            at_ns: info.wakeup_ns,
            quantum: info.quantum,
            sample_rate_hz: info.sample_rate_hz,
            last_client: known.last_client,
            last_port: known.last_port,
            transport: known.transport,
        }
    }

    /// Reads the client's state from the registry of the dead server. `earlier`: the state of the
    /// previous return.
    fn snapshot(&self, earlier: Option<ReturnState>) -> ReturnState {
        // Excludes a registration in progress: each port is either registered or not.
        let _allocator = locked(&self.allocator);
        let view = RegistryView::new(&self.memory().registry);
        let ports = self
            .ports
            .ids()
            .filter_map(|(id, number)| self.snapshot_port(view, id, number))
            .collect();
        let mut connections: Vec<_> =
            self.ports.ids().flat_map(|(id, _)| self.snapshot_connections(view, id)).collect();
        // A server that died before all clients had returned does not know their connections.
        let recent = |earlier: &ReturnState| {
            earlier.announced_at.is_some_and(|at| at.elapsed() < self.grace())
        };
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
        let engine = &self.memory().engine;
        let transport = engine.transport_in(engine.cycle());
        let is_master = transport.is_some_and(|transport| transport.master == self.id);
        let quantum = self.newest_cycle().map_or(0, |info| info.quantum);
        // Round 0: the transport was never used.
        let transport = transport
            .filter(|seen| seen.round > 0)
            .map(|seen| transport_after(&seen, quantum))
            .or(unmoved);
        let uuid = view.client(self.id).map_or(0, |client| client.uuid);
        ReturnState {
            ports,
            connections,
            uuid,
            last_client,
            last_port,
            transport,
            is_master,
            announced_at: None,
        }
    }

    fn snapshot_port(&self, view: RegistryView<'_>, id: u32, number: u32) -> Option<ReturningPort> {
        let (port, cell) = (view.port_of_dead_server(id)?, self.ports.cell(number)?);
        let own = port.name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix(':'));
        let name = own.unwrap_or_else(|| proto::names::short(&port.name)).to_owned();
        let latency =
            |capture| view.port_latency(id, capture).map_or((0, 0), |range| (range.min, range.max));
        let (port_type, flags, slot) = (port.port_type, port.flags, cell.slab_slot());
        Some(ReturningPort {
            id,
            port: NewPort { name, port_type, flags, number, slot },
            aliases: port.aliases,
            capture_latency: latency(true),
            playback_latency: latency(false),
        })
    }

    /// Returns the connections of an output, or an input's connections to other clients' outputs.
    fn snapshot_connections(&self, view: RegistryView<'_>, id: u32) -> Vec<ReturningConnection> {
        let Some(port) = view.port_of_dead_server(id) else { return Vec::new() };
        let connections = view.connections_of_dead_server(id).into_iter();
        connections
            .filter_map(|(other, age)| {
                let other = view.port_of_dead_server(other)?;
                if port.is_output() {
                    Some(ReturningConnection {
                        source: port.name.clone(),
                        destination: other.name,
                        age,
                    })
                } else if other.owner == self.id {
                    None
                } else {
                    Some(ReturningConnection {
                        source: other.name,
                        destination: port.name.clone(),
                        age,
                    })
                }
            })
            .collect()
    }

    fn return_to(&self, welcomed: Admission) -> Result<ReturnAttempt, Error> {
        let Admission { client, name, memory, sockets, .. } = welcomed;
        if (client, &name) != (self.id, &self.name) {
            return Err(Error::Protocol("it took the client back as another one"));
        }
        let requests = &sockets.requests;
        self.return_ports(requests)?;
        requests.request(Request::ReturnClock)?;
        {
            let mut tables = locked(&self.tables);
            tables.forget_waiting();
            tables.change(None, crate::process::Tables::clear);
            tables.settle();
        }
        if !self.memories.add(memory) {
            return Err(Error::Protocol("it is one of too many"));
        }
        if self.closed.load(Ordering::Acquire) {
            return Ok(ReturnAttempt::Closed);
        }
        self.return_activity(&sockets)
    }

    fn return_ports(&self, requests: &Requests) -> Result<(), Error> {
        let allocator = locked(&self.allocator);
        for slab in (0..allocator.slabs).map_while(|slab| self.own_slabs.get(slab)) {
            send_slab(requests, slab.slab().segment().fd())?;
        }
        drop(allocator);
        let return_state = locked(&self.return_state);
        for port in return_state.iter().flat_map(|return_state| &return_state.ports) {
            requests.request(Request::ReturnPort(port.clone()))?;
        }
        Ok(())
    }

    /// Activates the client on the server, with its connections, if it was active. Repeats if the
    /// program has changed the activation meanwhile.
    fn return_activity(&self, sockets: &Sockets) -> Result<ReturnAttempt, Error> {
        let requests = &sockets.requests;
        let mut announced = *locked(&self.announced_activation);
        if let Some(activation) = announced {
            requests.request(Request::Activate(activation))?;
            self.return_connections(requests)?;
        }
        requests.request(Request::Returned)?;
        for _ in 0..TRIES {
            let activation = *locked(&self.announced_activation);
            match activation {
                Some(new) if activation != announced => requests.request(Request::Activate(new))?,
                None if announced.is_some() => requests.request(Request::Deactivate)?,
                _ => {}
            }
            announced = activation;
            let is_unchanged = || {
                *locked(&self.announced_activation) == announced
                    && !self.closed.load(Ordering::Acquire)
            };
            if self.attachment.attach(sockets, is_unchanged) {
                if let Some(known) = locked(&self.return_state).as_mut() {
                    known.announced_at = Some(Instant::now());
                }
                return Ok(ReturnAttempt::Returned(sockets.clone()));
            }
            if self.closed.load(Ordering::Acquire) {
                return Ok(ReturnAttempt::Closed);
            }
        }
        Err(Error::ServerGone)
    }

    fn return_connections(&self, requests: &Requests) -> Result<(), Error> {
        let return_state = locked(&self.return_state);
        let Some(known) = return_state.as_ref() else { return Ok(()) };
        for connections in known.connections.chunks(RETURNED_AT_ONCE) {
            requests.request(Request::ReturnConnections(connections.to_vec()))?;
        }
        if known.is_master {
            // Refused if another client has become the master first.
            match requests.request(Request::TakeTimebase { conditional: true }) {
                Ok(()) | Err(Error::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
