//! What a peer may ask, according to the policy.

use confinement::confinement_of;
use proto::driver::DriverChoice;
use proto::internal::InternalRequest;
use proto::property::PropertyRequest;
use proto::request::{Request, RequestError};
use proto::session::SessionRequest;
use sys::socket::Connection;

use super::Control;
use super::peer_facts::facts_of;
use crate::model::Model;
use crate::policy::{Permissions, Policy, refusal};

/// What a program that has connected may do. Without a policy, a confined program has everything
/// but what would end its confinement.
pub(super) fn permissions_of(socket: &Connection, policy: &Policy) -> Permissions {
    let Some(facts) = facts_of(socket, policy.looks_at_process()) else { return Permissions::NONE };
    let permissions = match policy.decide(&facts) {
        Some(permissions) => permissions,
        None => Permissions::by_default(confinement_of(socket)),
    };
    let may_act_as_us = [sys::process::real_user_id(), ROOT].contains(&facts.user_id);
    // MUTATION: permissions_of.others_load_plug_ins
    Permissions { load: permissions.load && may_act_as_us, ..permissions }
}

/// The user that may do everything.
pub(super) const ROOT: u32 = 0;

/// Checks whether a program with `permissions` may send this request. `client` is its id, if it is
/// a client.
pub(super) fn check(
    model: &Model,
    permissions: Permissions,
    client: Option<u32>,
    request: &Request,
) -> Result<(), RequestError> {
    let is_own = |owner: u32| Some(owner) == client;
    let names_own = |name: &str| model.look_up(name).is_some_and(|port| is_own(port.owner));
    let has = |port: u32| model.port(port).is_some_and(|port| is_own(port.owner));
    let (allowed, what) = match request {
        Request::Connect { source, destination } | Request::Disconnect { source, destination } => {
            let own = || names_own(source) || names_own(destination);
            // MUTATION: check.connects_for_others
            (permissions.patch || (permissions.connect && own()), "change these connections")
        }
        Request::DisconnectPort { port } => {
            (permissions.patch || (permissions.connect && has(*port)), "change these connections")
        }
        Request::RenamePort { port, .. }
        | Request::SetAlias { port, .. }
        | Request::UnsetAlias { port, .. }
        | Request::Monitor { port, .. } => {
            (permissions.patch || has(*port), "change another client's port")
        }
        Request::Property(
            PropertyRequest::Set(proto::property::Property { subject, .. })
            | PropertyRequest::Remove { subject, .. }
            | PropertyRequest::RemoveAllOf { subject },
        ) => (
            permissions.patch || is_own(model.property_owner(*subject)),
            "change what is another client's",
        ),
        Request::Property(PropertyRequest::RemoveAll) => {
            (permissions.patch, "change what is another client's")
        }
        // Other programs write there, which see all of the user's files.
        Request::Session(SessionRequest::Notify { .. })
            if permissions.control && permissions.confinement.is_some() =>
        {
            return permissions.check_load("name a directory for other programs to save in");
        }
        Request::SetQuantum { .. }
        | Request::SetFreewheel { .. }
        | Request::Transport { .. }
        | Request::TakeTimebase { .. }
        | Request::Session(_)
        | Request::ResetMaxDelay
        // MUTATION: check.anyone_controls
        | Request::Stop => (permissions.control, "control the server"),
        // Files and devices are opened as the server's user, and ALSA's names can say what is to be
        // run.
        Request::SwitchDriver(switch) => {
            let is_clock = matches!(switch.driver, DriverChoice::Timer { .. });
            let what = "switch to this driver";
            // MUTATION: check.opens_any_driver
            if permissions.control && !is_clock {
                return permissions.check_load(what);
            }
            (permissions.control, what)
        }
        Request::Internal(InternalRequest::Load(_) | InternalRequest::Unload { .. }) => {
            return permissions.check_load("have the server run plug-ins");
        }
        Request::RecomputeLatencies => {
            (permissions.patch || client.is_some(), "have latencies recomputed")
        }
        Request::Activate(_)
        | Request::Deactivate
        | Request::RegisterPort(_)
        | Request::UnregisterPort { .. }
        | Request::AddSlab
        | Request::SetLatency { .. }
        | Request::ReleaseTimebase
        | Request::Property(PropertyRequest::Get { .. } | PropertyRequest::List(_))
        | Request::Internal(_)
        | Request::Status
        | Request::Clients { .. }
        | Request::Timing { .. }
        | Request::Xruns { .. }
        | Request::Stream(_)
        | Request::Close
        | Request::ReturnPort(_)
        | Request::ReturnClock
        | Request::ReturnConnections(_)
        | Request::Returned => (true, ""),
    };
    if allowed { Ok(()) } else { Err(refusal(what)) }
}

impl Control {
    /// Checks whether the client of `destination` may hear `source`, whichever program connects
    /// them: with the connection it can read all that lies in the same memory.
    pub(super) fn check_hearing(
        &self,
        source: &str,
        destination: &str,
    ) -> Result<(), RequestError> {
        let (source, reader) = (self.model.find(source)?, self.model.find(destination)?.owner);
        let writer = source.owner;
        let permissions = match self.clients.slots.get(&reader) {
            Some(slot) => slot.permissions,
            None => match self.streams.peer_of_client(reader) {
                // MUTATION: check_hearing.streams_record_all
                Some(peer) => self.peers.permissions(peer),
                None => return Ok(()),
            },
        };
        let is_captured = self.model.is_device(writer) && !self.model.is_monitor(source);
        if is_captured && !permissions.capture {
            return Err(not_heard(destination, "what the driver captures"));
        }
        // A monitor, or a driver that loops, sends what clients play.
        // MUTATION: check_hearing.loop_is_no_recording
        let is_of_clients = !is_captured || self.settings.driver.loops;
        // MUTATION: check_hearing.others_heard
        if writer != reader && is_of_clients && !permissions.record {
            return Err(not_heard(destination, "other clients"));
        }
        Ok(())
    }

    /// Checks whether the client of `source` may feed that of `destination`, whichever program
    /// connects them: the other one waits for it then, and gives it its signal page.
    pub(super) fn check_feeding(
        &self,
        source: &str,
        destination: &str,
    ) -> Result<(), RequestError> {
        let (writer, reader) =
            (self.model.find(source)?.owner, self.model.find(destination)?.owner);
        let may = match self.clients.slots.get(&writer) {
            Some(slot) => slot.permissions.play,
            None => {
                let peer = self.streams.peer_of_client(writer);
                // MUTATION: check_feeding.streams_feed_all
                peer.is_none_or(|peer| self.peers.permissions(peer).play)
            }
        };
        let is_client =
            self.clients.slots.contains_key(&reader) || self.model.is_stream_client(reader);
        if may || writer == reader || !is_client {
            return Ok(());
        }
        Err(RequestError::NotAllowed(format!(
            "the server's policy does not allow the program of '{source}' to play to other clients"
        )))
    }
}

fn not_heard(destination: &str, what: &str) -> RequestError {
    RequestError::NotAllowed(format!(
        "the server's policy does not allow the program of '{destination}' to hear {what}"
    ))
}
