//! Clients that return: the previous server has crashed, and they state what they were there. Their
//! statements are checked like everything that comes from a client.

use proto::hello::{Returning, TransportSnapshot};
use proto::limits::RETURNED_AT_ONCE;
use proto::request::{RequestError, ReturningConnection, ReturningPort};
use rt::shm::TransportRequest;
use rt::transport::Position;
use sys::clock::now_ns;

use super::Control;
use super::requests::Outcome;
use crate::client_slot::Origin;
use crate::resume::{frame_after, is_plausible};

/// How long new clients wait for those that return, so that they do not take their names or ids. A
/// returning client tries to connect about twenty times a second.
const FIRST_NS: u64 = 500_000_000;

/// How long after its start a server lets returning clients set its frame clock forward while other
/// clients run.
const CLOCK_NS: u64 = 10_000_000_000;

/// What the server expects of clients that return.
#[derive(Debug, Default)]
pub(super) struct Returns {
    /// Until when new clients wait.
    first_until_ns: u64,
    /// Until when the frame clock may be set while other clients run.
    clock_until_ns: u64,
    /// Clients that have left a frame for the clock.
    clocks: u32,
    /// One of them has restored the transport.
    has_transport: bool,
    /// A request of a returning client is being answered.
    pub(super) quiet: bool,
}

impl Returns {
    /// Expectations of a server that starts now.
    pub(super) fn expected(after_crash: bool) -> Self {
        if !after_crash {
            return Self::default();
        }
        let now_ns = now_ns();
        Self {
            first_until_ns: now_ns + FIRST_NS,
            clock_until_ns: now_ns + CLOCK_NS,
            ..Self::default()
        }
    }
}

impl Control {
    /// Returns whether new clients have to wait.
    pub(super) fn expects_returning_clients(&self) -> bool {
        now_ns() < self.persistence.returns.first_until_ns
    }

    pub(super) fn is_returning(&self, client: u32) -> bool {
        self.clients.slots.get(&client).is_some_and(|slot| slot.origin == Origin::Returning)
    }

    fn check_returning(&self, client: u32) -> Result<(), RequestError> {
        if self.is_returning(client) {
            return Ok(());
        }
        Err(RequestError::NotAllowed("only a client that returns to a server can ask this".into()))
    }

    pub(super) fn welcome_back(
        &mut self,
        serial: u64,
        returning: &Returning,
    ) -> Result<(), RequestError> {
        self.check_return(returning)?;
        self.persistence.returns.quiet = true;
        let welcomed =
            self.welcome_client(serial, Origin::Returning, returning.quantum, |control| {
                let model = &mut control.model;
                model.return_client(returning.client, returning.uuid, &returning.name)?;
                model.expect_ids(returning.last_client, returning.last_port);
                Ok(returning.client)
            });
        self.persistence.returns.quiet = false;
        welcomed?;
        if let Some(seen) = &returning.transport {
            self.return_transport(seen);
        }
        self.persistence.returns.clocks = self.persistence.returns.clocks.wrapping_add(1);
        self.shared.resume.leave(
            returning.frames,
            returning.at_ns,
            self.persistence.returns.clocks,
        );
        self.shared.call_for_cycle();
        Ok(())
    }

    fn check_return(&self, returning: &Returning) -> Result<(), RequestError> {
        let name = &returning.name;
        if returning.instance == self.engine().instance() {
            let reason = format!("this server has closed client '{name}': open it again");
            return Err(RequestError::NotAllowed(reason));
        }
        let rate_hz = self.settings.driver.sample_rate_hz;
        if returning.sample_rate_hz != rate_hz {
            let known_hz = returning.sample_rate_hz;
            return Err(RequestError::NotAllowed(format!(
                "client '{name}' knows a sample rate of {known_hz} Hz, and this server runs at {rate_hz} Hz: open it again"
            )));
        }
        let now_ns = now_ns();
        // MUTATION: check_return.any_frame
        if !is_plausible(returning.frames, returning.at_ns, now_ns) {
            let frames = returning.frames;
            return Err(RequestError::NotAllowed(format!(
                "client '{name}' cannot have come to frame {frames}"
            )));
        }
        let has_others = self.clients.slots.values().any(|slot| slot.activation.is_some());
        let its_clock = frame_after(returning.frames, returning.at_ns, now_ns, rate_hz);
        let may_be_set = now_ns <= self.persistence.returns.clock_until_ns || !has_others;
        if !may_be_set && self.engine().info().is_none_or(|info| info.frame_at(now_ns) < its_clock)
        {
            return Err(RequestError::NotAllowed(format!(
                "client '{name}' comes too late: its frame clock is ahead of that of the clients that are here"
            )));
        }
        Ok(())
    }

    pub(super) fn return_port(
        &mut self,
        client: u32,
        port: &ReturningPort,
    ) -> Result<(), RequestError> {
        self.check_returning(client)?;
        self.check_ports(client)?;
        self.check_slot(client, &port.port)?;
        self.model.return_port(client, port)
    }

    /// Sets the frame clock; answered with the next plan, whose cycles are counted from there.
    pub(super) fn return_clock(&mut self, client: u32) -> Result<Outcome, RequestError> {
        self.check_returning(client)?;
        self.publisher.need(now_ns());
        Ok(Outcome::Adopted { closes: false })
    }

    /// Makes the connections whose other end is there; the others are made when the client of that
    /// end returns.
    pub(super) fn return_connections(
        &mut self,
        client: u32,
        connections: Vec<ReturningConnection>,
    ) -> Result<(), RequestError> {
        self.check_returning(client)?;
        if connections.len() > RETURNED_AT_ONCE {
            let reason =
                format!("connections of a client that returns come {RETURNED_AT_ONCE} at a time");
            return Err(RequestError::NotAllowed(reason));
        }
        for connection in connections {
            let (source, destination) = (&connection.source, &connection.destination);
            let owner = |name: &str| self.model.port_named(name).map(|port| port.owner);
            let (Some(writer), Some(reader)) = (owner(source), owner(destination)) else {
                continue;
            };
            // A connection that this client may not make is restored by the client at the other
            // end.
            let may = self.clients.slots.get(&client).is_some_and(|slot| slot.permissions.connect);
            let is_own = may && (writer == client || reader == client);
            // It existed before: the rules for new connections (`--self-connect`) do not apply.
            let made = is_own && self.connect(None, source, destination).is_ok();
            if made || (is_own && self.model.are_connected_by_name(source, destination)) {
                // A refused age leaves the connection as young as a new one.
                let _ = self.model.return_age(&connection);
            }
        }
        Ok(())
    }

    pub(super) fn returned(&mut self, client: u32) -> Result<(), RequestError> {
        self.check_returning(client)?;
        if let Some(slot) = self.clients.slots.get_mut(&client) {
            slot.origin = Origin::Returned;
        }
        self.model.trust_connections_of(client);
        Ok(())
    }

    /// Restores the transport as the returning client saw it last, unless it has been moved here
    /// already.
    fn return_transport(&mut self, seen: &TransportSnapshot) {
        let now = self.engine().transport_in(self.engine().cycle()).unwrap_or_default();
        // A restored state accounts for one round.
        let is_untouched = !now.state.passes() && now.round <= 1;
        if !is_untouched
            || self.persistence.returns.has_transport
            || now_ns() > self.persistence.returns.clock_until_ns
        {
            return;
        }
        self.persistence.returns.has_transport = true;
        let position = Some(Position::from_words(&seen.position));
        let request = TransportRequest { roll: Some(seen.rolls), position, sync_timeout_us: None };
        // Refused only while another request moves it.
        let _ = self.ask_transport(request);
    }

    /// Restores the connections between clients that have come back and those that are here.
    pub(super) fn reconnect(&mut self) {
        for connection in self.model.take_due() {
            // A refused connection stays remembered: the limit may be a larger one next time.
            let _ = self.connect(None, &connection.source, &connection.destination);
        }
        self.carry_changes();
    }
}
