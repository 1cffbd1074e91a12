//! The requests of programs, with one function for each that is more than a call of the model.

use std::os::fd::OwnedFd;

use proto::port_flags;
use proto::property::PropertyRequest;
use proto::request::{Activation, NewPort, Reply, Request, RequestError};
use rt::shm::{ASSIGNMENT_WORDS, LatencyRange, SLOTS_PER_SLAB, TransportRequest};
use rt::transport::Position;
use sys::clock::now_ns;
use sys::memory::PeerSlab;

use super::services::{InternalOutcome, SaveRequest};
use super::ticket::{PENDING_PER_PEER, Ticket};
use super::transition::Change;
use super::{Control, permissions};
use crate::client_slot::{ClientSlot, Origin};
use crate::config::SelfConnect;
use crate::model::Model;
use crate::order::would_close_loop;
use crate::plan::has_room;
use crate::slab::Slab;
use crate::supervision;
use crate::supervision::xrun_diagnosis::ThreadProbe;

/// How a request is answered.
pub(super) enum Outcome {
    Now(Reply),
    /// When the plan that is needed now is in force. The connection may close after the answer.
    Adopted {
        closes: bool,
    },
    /// When cycles run with this change.
    Change(Change),
    /// When the clients of a session have answered.
    Session(SaveRequest),
    /// When an internal client runs, or has ended.
    Internal(InternalOutcome),
    /// At once, and then the connection closes.
    Closes,
}

impl Control {
    pub(super) fn request(
        &mut self,
        ticket: Ticket,
        client: Option<u32>,
        request: Request,
        slab: Option<OwnedFd>,
    ) {
        self.persistence.returns.quiet = client.is_some_and(|client| self.is_returning(client));
        let permitted =
            permissions::check(&self.model, self.peers.permissions(ticket.peer), client, &request);
        let outcome = permitted.and_then(|()| self.answer(client, request, slab));
        self.carry_changes();
        if !self.persistence.returns.quiet {
            self.reconnect();
        }
        self.persistence.returns.quiet = false;
        // Notifications that the request causes are sent before its answer.
        client.into_iter().for_each(|client| self.flush_outbox(client));
        match outcome {
            Ok(Outcome::Now(reply)) => self.reply(ticket, reply),
            Ok(Outcome::Adopted { closes }) => self.answer_when_adopted(ticket, closes),
            Ok(Outcome::Change(change)) => self.begin_change(change, ticket),
            Ok(Outcome::Session(request)) => self.ask_session(ticket, request),
            Ok(Outcome::Internal(outcome)) => self.do_internal(ticket, outcome),
            Ok(Outcome::Closes) => {
                let peer = ticket.peer;
                self.reply(ticket, Reply::Done);
                self.close_peer(peer);
            }
            // A program knows the names that it uses; a person may have mistyped one.
            // MUTATION: request.suggests_to_clients
            Err(error) if client.is_none() => {
                let error = self.model.suggest(error);
                self.refuse(ticket, error);
            }
            Err(error) => self.refuse(ticket, error),
        }
    }

    /// Answers the requests that only clients can send; all others go to
    /// [`answer_any_peer`](Self::answer_any_peer).
    fn answer(
        &mut self,
        client: Option<u32>,
        request: Request,
        slab: Option<OwnedFd>,
    ) -> Result<Outcome, RequestError> {
        let Some(client) = client else { return self.answer_any_peer(None, request) };
        let done = Ok(Outcome::Now(Reply::Done));
        match request {
            Request::Activate(activation) => self.activate(client, activation),
            Request::Deactivate => {
                self.deactivate(client);
                Ok(Outcome::Adopted { closes: false })
            }
            Request::RegisterPort(new) => self.register_port(client, &new),
            Request::UnregisterPort { port } => self.model.unregister_port(client, port).and(done),
            Request::AddSlab => self.add_slab(client, slab).and(done),
            Request::TakeTimebase { conditional } => {
                self.take_timebase(client, conditional).and(done)
            }
            Request::ReleaseTimebase => self.release_timebase(client).and(done),
            Request::ReturnPort(port) => self.return_port(client, &port).and(done),
            Request::ReturnClock => self.return_clock(client),
            Request::ReturnConnections(connections) => {
                self.return_connections(client, connections).and(done)
            }
            Request::Returned => self.returned(client).and(done),
            request => self.answer_any_peer(Some(client), request),
        }
    }

    /// Answers the requests that any peer can send. Matches every request, so that none is
    /// forgotten.
    fn answer_any_peer(
        &mut self,
        client: Option<u32>,
        request: Request,
    ) -> Result<Outcome, RequestError> {
        let done = Ok(Outcome::Now(Reply::Done));
        let model = &mut self.model;
        match request {
            Request::Connect { source, destination } => self.connect(client, &source, &destination),
            Request::Disconnect { source, destination } => {
                model.disconnect(&source, &destination).and(done)
            }
            Request::DisconnectPort { port } => model.disconnect_all(port).and(done),
            Request::RenamePort { port, name } => model.rename_port(port, &name).and(done),
            Request::SetAlias { port, alias } => model.set_alias(port, &alias).and(done),
            Request::UnsetAlias { port, alias } => model.unset_alias(port, &alias).and(done),
            Request::Monitor { port, on, ensure } => {
                model.request_monitor(port, on, ensure).and(done)
            }
            Request::Property(request) => {
                answer_property(model, client.is_some(), request).map(Outcome::Now)
            }
            Request::SetLatency { port, capture, min, max } => {
                self.set_latency(client, port, capture, LatencyRange { min, max }).and(done)
            }
            Request::RecomputeLatencies => {
                self.recompute_latencies(false);
                done
            }
            Request::SetQuantum { frames } => {
                let change = self.settings.check_quantum(frames)?;
                self.check_shorter_cycles(frames)?;
                Ok(change.map_or(Outcome::Now(Reply::Done), Outcome::Change))
            }
            Request::SetFreewheel { on } => self.settings.check_freewheel(on).map(Outcome::Change),
            Request::SwitchDriver(switch) => {
                let quantum = switch.quantum;
                self.check_card_is_free(&switch.driver).map_err(RequestError::Driver)?;
                let change = self.settings.check_driver(*switch, &self.config)?;
                quantum.map_or(Ok(()), |frames| self.check_shorter_cycles(frames))?;
                Ok(Outcome::Change(change))
            }
            Request::Transport { roll, position, sync_timeout_us } => {
                let position = position.as_ref().map(Position::from_words);
                self.ask_transport(TransportRequest { roll, position, sync_timeout_us }).and(done)
            }
            Request::Session(request) => self.answer_session(request),
            Request::Internal(request) => {
                self.services.plug_ins.check(request, &self.model).map(Outcome::Internal)
            }
            Request::ResetMaxDelay => {
                self.engine().reset_max_delay();
                done
            }
            Request::Status => Ok(Outcome::Now(Reply::Status(Box::new(self.status())))),
            Request::Clients { after } => {
                Ok(Outcome::Now(Reply::Clients(self.clients_after(after))))
            }
            Request::Timing { client } => {
                Ok(Outcome::Now(Reply::Timing(Box::new(self.timing(client)?))))
            }
            Request::Xruns { after } => {
                Ok(Outcome::Now(Reply::Xruns(self.supervisor.xruns.after(after))))
            }
            Request::Stop => {
                self.stopping = Some("a program asked for it".into());
                done
            }
            Request::Close => Ok(self.close(client)),
            // Answered in `streams/requests.rs`, with its descriptors.
            Request::Stream(_) => Err(RequestError::Malformed("a request about a stream".into())),
            Request::Activate(_)
            | Request::Deactivate
            | Request::RegisterPort(_)
            | Request::UnregisterPort { .. }
            | Request::AddSlab
            | Request::TakeTimebase { .. }
            | Request::ReleaseTimebase
            | Request::ReturnPort(_)
            | Request::ReturnClock
            | Request::ReturnConnections(_)
            | Request::Returned => Err(only_clients()),
        }
    }

    pub(super) fn connect(
        &mut self,
        client: Option<u32>,
        source: &str,
        destination: &str,
    ) -> Result<Outcome, RequestError> {
        let done = Ok(Outcome::Now(Reply::Done));
        if let Some(client) = client {
            let owns =
                |name: &str| self.model.look_up(name).is_some_and(|port| port.owner == client);
            let owned = usize::from(owns(source)) + usize::from(owns(destination));
            let refused = || {
                RequestError::NotAllowed(
                    "the server was started so that clients cannot connect their own ports (-a)"
                        .into(),
                )
            };
            match self.config.self_connect {
                SelfConnect::FailExternal if owned == 1 => return Err(refused()),
                SelfConnect::FailAll if owned > 0 => return Err(refused()),
                SelfConnect::IgnoreExternal if owned == 1 => return done,
                SelfConnect::IgnoreAll if owned > 0 => return done,
                _ => {}
            }
        }
        if !self.config.feedback {
            self.refuse_loop(source, destination)?;
        }
        self.check_hearing(source, destination)?;
        // MUTATION: connect.feeds_others
        self.check_feeding(source, destination)?;
        self.check_stream_connection(source, destination)?;
        // MUTATION: connect.without_limit
        self.check_room(source, destination)?;
        // MUTATION: connect.one_program_gets_all
        self.check_program_connections(source, destination)?;
        // MUTATION: connect.memory_not_populated
        self.check_memory(source, destination)?;
        self.let_hear(source, destination)?;
        self.model.connect(source, destination)?;
        done
    }

    /// Checks whether a client's assignments have room for one more connection.
    fn check_room(&self, source: &str, destination: &str) -> Result<(), RequestError> {
        for port in [self.model.find(source)?, self.model.find(destination)?] {
            if !has_room(&self.model, port.owner) {
                let client = self.model.client(port.owner).map_or("", |client| &client.name);
                let advice = format!("disconnect some ports of '{client}'");
                let limit = u32::try_from(ASSIGNMENT_WORDS).unwrap_or(u32::MAX);
                return Err(RequestError::Full {
                    what: "connection of one client".into(),
                    limit,
                    advice,
                });
            }
        }
        Ok(())
    }

    /// Checks whether there is memory for what the driver will read of a connection.
    pub(super) fn check_memory(
        &mut self,
        source: &str,
        destination: &str,
    ) -> Result<(), RequestError> {
        let (source, destination) = (self.model.find(source)?, self.model.find(destination)?);
        if !self.model.is_server_read(destination.owner) {
            return Ok(());
        }
        let present = self.clients.make_present(source, self.settings.quantum);
        present.map_err(|error| {
            RequestError::Failed(format!(
                "'{}' cannot be heard: {error}; end programs that use much memory",
                source.name
            ))
        })
    }

    fn refuse_loop(&self, source: &str, destination: &str) -> Result<(), RequestError> {
        let model = &self.model;
        let (writer, reader) = (model.find(source)?.owner, model.find(destination)?.owner);
        if would_close_loop(model, writer, reader) {
            let reason =
                "the connection would close a loop, and the server was started with --no-feedback";
            return Err(RequestError::NotAllowed(reason.into()));
        }
        Ok(())
    }

    fn activate(&mut self, client: u32, activation: Activation) -> Result<Outcome, RequestError> {
        let locking = self.clients.locking;
        let runs = self.clients.slots.get(&client).is_some_and(ClientSlot::is_active);
        // MUTATION: activate.any_number
        if !runs && activation.process_thread.is_some() {
            self.check_seat(client)?;
        }
        let Some(slot) = self.clients.slots.get_mut(&client) else {
            return Err(RequestError::NotAllowed("the client has been closed".into()));
        };
        // MUTATION: activate.own_page_not_closed
        let closed = slot.memory.close_to_writers(locking);
        closed.map_err(|error| RequestError::Memory(error.to_string()))?;
        let peer = slot.peer;
        slot.threads.activate(activation.process_thread, || self.peers.threads(peer));
        let thread = slot.threads.process_thread().map(|thread| thread.id());
        slot.probe =
            slot.process.zip(thread).and_then(|(process, thread)| ThreadProbe::of(process, thread));
        slot.health.forget_late_cycles();
        slot.activation = Some(activation);
        if slot.origin != Origin::Returning {
            slot.known_quantum = self.settings.quantum;
        }
        // Another plan is needed in any case.
        slot.supervision.on(supervision::Event::Activated, now_ns());
        self.registry.note_late(client, slot.supervision.late_cycles(), false);
        self.model.set_active(client, true);
        // A client that returns may know another quantum.
        self.notify_quantum(self.settings.quantum);
        self.publisher.need(now_ns());
        Ok(Outcome::Adopted { closes: false })
    }

    fn deactivate(&mut self, client: u32) {
        self.model.set_active(client, false);
        // It is still active, so that it is notified of the end of its own ports first.
        self.carry_changes();
        self.take_over_transport_requests(client);
        if let Some(slot) = self.clients.slots.get_mut(&client) {
            slot.activation = None;
        }
        self.publisher.need(now_ns());
    }

    /// No cycle waits for a client that was not active.
    fn close(&mut self, client: Option<u32>) -> Outcome {
        let active = client.filter(|id| self.model.client(*id).is_some_and(|client| client.active));
        let Some(client) = active else { return Outcome::Closes };
        self.deactivate(client);
        Outcome::Adopted { closes: true }
    }

    fn register_port(&mut self, client: u32, new: &NewPort) -> Result<Outcome, RequestError> {
        self.check_ports(client)?;
        self.check_slot(client, new)?;
        let port = self.model.register_port(client, new)?;
        Ok(Outcome::Now(Reply::Port(port)))
    }

    /// Checks whether a client may have another port.
    pub(super) fn check_ports(&self, client: u32) -> Result<(), RequestError> {
        let ports = self.model.client(client).map_or(0, |client| client.ports.len());
        let limit = self.config.ports_of_client();
        // MUTATION: check_ports.without_limit
        if ports < limit as usize {
            return self.check_program_ports(client);
        }
        let advice = "start the server with a larger --client-ports or --port-max".into();
        Err(RequestError::Full { what: "port of one client".into(), limit, advice })
    }

    /// Checks that an output port has a slot for its samples, and an input port has none.
    pub(super) fn check_slot(&self, client: u32, new: &NewPort) -> Result<(), RequestError> {
        let output = new.flags & port_flags::OUTPUT != 0;
        let slabs = self.clients.slots.get(&client).map_or(0, |slot| slot.memory.slabs.len());
        let slot_exists =
            new.slot.is_some_and(|slot| (slot.slab as usize) < slabs && slot.slot < SLOTS_PER_SLAB);
        if output && !slot_exists {
            return Err(RequestError::Memory(
                "an output port needs a slot in a slab that was added before".into(),
            ));
        }
        if !output && new.slot.is_some() {
            return Err(RequestError::Memory("an input port has no slot".into()));
        }
        Ok(())
    }

    /// Adds a slab, whose seals and size were checked when it came.
    fn add_slab(&mut self, client: u32, slab: Option<OwnedFd>) -> Result<(), RequestError> {
        self.check_program_slabs(client)?;
        let (Some(slot), Some(descriptor)) = (self.clients.slots.get_mut(&client), slab) else {
            return Ok(());
        };
        let limit = self.config.slabs_of_client();
        // MUTATION: add_slab.without_limit
        if slot.memory.slabs.len() >= limit as usize {
            let advice = "start the server with a larger --client-ports or --port-max".into();
            return Err(RequestError::Full {
                what: "slab of one client's output ports".into(),
                limit,
                advice,
            });
        }
        let memory = |error: &dyn std::fmt::Display| RequestError::Memory(error.to_string());
        let copy = descriptor.try_clone().map_err(|error| memory(&error))?;
        let peer = PeerSlab::receive(copy).map_err(|error| memory(&error))?;
        slot.memory.slabs.push(Slab::new(descriptor, peer));
        Ok(())
    }

    fn set_latency(
        &mut self,
        client: Option<u32>,
        port: u32,
        capture: bool,
        range: LatencyRange,
    ) -> Result<(), RequestError> {
        let owned = self.model.port_by_id(port)?;
        // MUTATION: set_latency.of_any_port
        if client != Some(owned.owner) {
            return Err(RequestError::NotYours(owned.name.clone()));
        }
        if self.model.set_latency(port, capture, range) {
            self.registry.note_latency(&self.model, port);
        }
        Ok(())
    }

    fn answer_when_adopted(&mut self, ticket: Ticket, closes: bool) {
        let generation = self.publisher.coming_generation();
        let added = self.peers.pending.add(ticket, generation, closes, now_ns());
        if let Err(ticket) = added {
            let what = "request of one program that waits".into();
            let (limit, advice) = (PENDING_PER_PEER as u32, "wait for its answers".into());
            self.refuse(ticket, RequestError::Full { what, limit, advice });
        }
    }

    pub(super) fn answer_pending(&mut self) {
        for due in self.peers.pending.take_due(self.publisher.running(), now_ns()) {
            let peer = due.ticket.peer;
            self.reply(due.ticket, Reply::Done);
            if due.closes {
                self.close_peer(peer);
            }
        }
    }
}

fn only_clients() -> RequestError {
    RequestError::NotAllowed("only a client can ask this".into())
}

fn answer_property(
    model: &mut Model,
    is_client: bool,
    request: PropertyRequest,
) -> Result<Reply, RequestError> {
    let done = Ok(Reply::Done);
    match request {
        PropertyRequest::Get { subject, key } => model.property(subject, &key).map(Reply::Property),
        PropertyRequest::List(page) => {
            let (properties, more) = model.properties(&page);
            Ok(Reply::Properties { properties, more })
        }
        PropertyRequest::Set(property) => model.set_property(property).and(done),
        _ if !is_client => Err(only_clients()),
        PropertyRequest::Remove { subject, key } => model.remove_property(subject, &key).and(done),
        PropertyRequest::RemoveAllOf { subject } => {
            Ok(Reply::Count(model.remove_properties(subject)))
        }
        PropertyRequest::RemoveAll => {
            model.remove_all_properties();
            done
        }
    }
}
