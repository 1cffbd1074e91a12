//! Clients of a server that is gone, which this one has taken the place of: they say what they were there, and are
//! it again. What they say is checked as everything that comes from a client.

use proto::hello::{Returning, Seen};
use proto::limits::RETURNED_AT_ONCE;
use proto::request::{RequestError, ReturningConnection, ReturningPort};
use rt::shm::TransportRequest;
use rt::transport::Position;
use sys::clock::now_ns;

use super::Control;
use super::requests::Outcome;
use crate::client_slot::Past;
use crate::resume::{frame_after, is_plausible};

/// How long newcomers wait for clients that return, so that no name and no number is taken that one of these has. They
/// look for a server some twenty times a second.
const FIRST_NS: u64 = 500_000_000;

/// How long after its start a server that takes another's place lets clients set its frame clock forward under others.
const CLOCK_NS: u64 = 10_000_000_000;

/// What the server knows of clients that return.
#[derive(Debug, Default)]
pub(super) struct Returns {
    /// Until when newcomers wait.
    first_until_ns: u64,
    /// Until when the frame clock may be set under others.
    clock_until_ns: u64,
    /// Clients that have left a frame for the clock.
    clocks: u32,
    /// The transport goes on from where one of them saw it.
    has_transport: bool,
    /// A request of a returning client is being answered.
    pub(super) quiet: bool,
}

impl Returns {
    /// For a server that starts now.
    pub(super) fn expected(after_crash: bool) -> Self {
        if !after_crash {
            return Self::default();
        }
        let now_ns = now_ns();
        Self { first_until_ns: now_ns + FIRST_NS, clock_until_ns: now_ns + CLOCK_NS, ..Self::default() }
    }
}

impl Control {
    /// Whether newcomers have to wait.
    pub(super) fn expects_returning_clients(&self) -> bool {
        now_ns() < self.returns.first_until_ns
    }

    pub(super) fn is_returning(&self, client: u32) -> bool {
        self.clients.get(&client).is_some_and(|slot| slot.past == Past::Returning)
    }

    fn check_returning(&self, client: u32) -> Result<(), RequestError> {
        if self.is_returning(client) {
            return Ok(());
        }
        Err(RequestError::NotAllowed("only a client that returns to a server can ask this".into()))
    }

    pub(super) fn welcome_back(&mut self, serial: u64, returning: &Returning) -> Result<(), RequestError> {
        self.check_return(returning)?;
        self.returns.quiet = true;
        let welcomed = self.welcome_client(serial, Past::Returning, returning.quantum, |control| {
            let model = &mut control.parts.model;
            model.return_client(returning.client, returning.uuid, &returning.name)?;
            model.expect_ids(returning.last_client, returning.last_port);
            Ok(returning.client)
        });
        self.returns.quiet = false;
        welcomed?;
        if let Some(seen) = &returning.transport {
            self.return_transport(seen);
        }
        self.returns.clocks = self.returns.clocks.wrapping_add(1);
        self.parts.shared.resume.leave(returning.frames, returning.at_ns, self.returns.clocks);
        Ok(())
    }

    fn check_return(&self, returning: &Returning) -> Result<(), RequestError> {
        let name = &returning.name;
        if returning.instance == self.engine().instance() {
            let reason = format!("this server has closed client '{name}': open it anew");
            return Err(RequestError::NotAllowed(reason));
        }
        let rate_hz = self.parts.driver.sample_rate_hz;
        if returning.sample_rate_hz != rate_hz {
            let known_hz = returning.sample_rate_hz;
            return Err(RequestError::NotAllowed(format!(
                "client '{name}' knows a sample rate of {known_hz} Hz, and this server runs at {rate_hz} Hz: open it anew"
            )));
        }
        let now_ns = now_ns();
        if !is_plausible(returning.frames, returning.at_ns, now_ns) {
            let frames = returning.frames;
            return Err(RequestError::NotAllowed(format!(
                "client '{name}' cannot have come to frame {frames}"
            )));
        }
        let has_others = self.clients.values().any(|slot| slot.activation.is_some());
        let its_clock = frame_after(returning.frames, returning.at_ns, now_ns, rate_hz);
        let may_be_set = now_ns <= self.returns.clock_until_ns || !has_others;
        if !may_be_set && self.engine().info().is_none_or(|info| info.frame_at(now_ns) < its_clock) {
            return Err(RequestError::NotAllowed(format!(
                "client '{name}' comes too late: its frame clock is ahead of that of the clients that are here"
            )));
        }
        Ok(())
    }

    pub(super) fn return_port(&mut self, client: u32, port: &ReturningPort) -> Result<(), RequestError> {
        self.check_returning(client)?;
        self.check_ports(client)?;
        self.check_slot(client, &port.port)?;
        self.parts.model.return_port(client, port)
    }

    /// Answered with the plan after this, whose cycles are counted from where the client stands.
    pub(super) fn return_clock(&mut self, client: u32) -> Result<Outcome, RequestError> {
        self.check_returning(client)?;
        self.plans.need(now_ns());
        Ok(Outcome::Adopted { closes: false })
    }

    /// Makes those connections whose other end is there: the others are made when that end's client says the same.
    pub(super) fn return_connections(
        &mut self,
        client: u32,
        connections: Vec<ReturningConnection>,
    ) -> Result<(), RequestError> {
        self.check_returning(client)?;
        if connections.len() > RETURNED_AT_ONCE {
            let reason = format!("connections of a client that returns come {RETURNED_AT_ONCE} at a time");
            return Err(RequestError::NotAllowed(reason));
        }
        for connection in connections {
            let (source, destination) = (&connection.source, &connection.destination);
            let owner = |name: &str| self.parts.model.port_named(name).map(|port| port.owner);
            let (Some(writer), Some(reader)) = (owner(source), owner(destination)) else { continue };
            // One that may not connect anything is connected again when the other end's client says so.
            let may = self.clients.get(&client).is_some_and(|slot| slot.rights.connect);
            let is_own = may && (writer == client || reader == client);
            // It was made before: no rule about who connects whose ports (`--self-connect`) is for this.
            let made = is_own && self.connect(None, source, destination).is_ok();
            if made || (is_own && self.parts.model.are_connected_by_name(source, destination)) {
                // It says how old the connection is, or that it is like any new one.
                let _ = self.parts.model.return_age(&connection);
            }
        }
        Ok(())
    }

    pub(super) fn returned(&mut self, client: u32) -> Result<(), RequestError> {
        self.check_returning(client)?;
        if let Some(slot) = self.clients.get_mut(&client) {
            slot.past = Past::Returned;
        }
        self.parts.model.trust_connections_of(client);
        Ok(())
    }

    /// The transport goes on where the returning client saw it last, unless it was moved here already.
    fn return_transport(&mut self, seen: &Seen) {
        let now = self.engine().transport_in(self.engine().cycle()).unwrap_or_default();
        // One round is that of a state that was kept.
        let is_untouched = !now.state.passes() && now.round <= 1;
        if !is_untouched || self.returns.has_transport || now_ns() > self.returns.clock_until_ns {
            return;
        }
        self.returns.has_transport = true;
        let position = Some(Position::from_words(&seen.position));
        let request = TransportRequest { roll: Some(seen.rolls), position, sync_timeout_us: None };
        // Refused only while somebody else moves it.
        let _ = self.ask_transport(request);
    }
}
