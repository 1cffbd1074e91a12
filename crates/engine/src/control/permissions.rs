//! What a peer may ask, according to the policy.

use std::fs;

use proto::driver::DriverChoice;
use proto::internal::InternalRequest;
use proto::property::PropertyRequest;
use proto::request::{Request, RequestError};
use sys::socket::Connection;

use super::Control;
use crate::model::Model;
use crate::policy::{Facts, Permissions, Policy, refusal};

/// What a program that has connected may do.
pub(super) fn permissions_of(socket: &Connection, policy: &Policy) -> Permissions {
    let Some(facts) = facts_of(socket, policy.looks_at_process()) else { return Permissions::NONE };
    let permissions = policy.decide(&facts);
    let may_act_as_us = [sys::process::real_user_id(), ROOT].contains(&facts.user_id);
    Permissions { load: permissions.load && may_act_as_us, ..permissions }
}

const ROOT: u32 = 0;

fn facts_of(socket: &Connection, looks_at_process: bool) -> Option<Facts> {
    let peer = socket.peer().ok()?;
    let mut group_ids = socket.peer_groups().ok()?;
    group_ids.push(peer.group_id);
    let mut facts = Facts { user_id: peer.user_id, group_ids, ..Facts::default() };
    let Some(process) = peer.process_id.filter(|_| looks_at_process) else { return Some(facts) };
    // Held while its files are read: another process that gets its id meanwhile is not taken for
    // it.
    let pidfd = socket.peer_pidfd();
    let executable = fs::read_link(format!("/proc/{process}/exe")).ok();
    let cgroup = fs::read_to_string(format!("/proc/{process}/cgroup")).ok();
    if pidfd.is_ok_and(|pidfd| pidfd.has_ended().is_ok_and(|ended| !ended)) {
        facts.executable = executable.and_then(|path| path.into_os_string().into_string().ok());
        // The single hierarchy of cgroup version 2.
        facts.cgroup = cgroup.and_then(|text| {
            Some(text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned())
        });
    }
    Some(facts)
}

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
        Request::SetQuantum { .. }
        | Request::SetFreewheel { .. }
        | Request::Transport { .. }
        | Request::TakeTimebase { .. }
        | Request::Session(_)
        | Request::ResetMaxDelay
        | Request::Stop => (permissions.control, "control the server"),
        // Files and devices are opened as the server's user, and ALSA's names can say what is to be
        // run.
        Request::SwitchDriver(switch) => {
            let is_clock = matches!(switch.driver, DriverChoice::Timer { .. });
            (permissions.control && (permissions.load || is_clock), "switch to this driver")
        }
        Request::Internal(InternalRequest::Load(_) | InternalRequest::Unload { .. }) => {
            (permissions.load, "have the server run plug-ins")
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
        let Some(permissions) = self.clients.slots.get(&reader).map(|slot| slot.permissions) else {
            return Ok(());
        };
        let is_captured = self.model.is_device(writer) && !self.model.is_monitor(source);
        if is_captured && !permissions.capture {
            return Err(not_heard(destination, "what the driver captures"));
        }
        // A monitor, or a driver that loops, sends what clients play.
        let is_of_clients = !is_captured || self.settings.driver.loops;
        if writer != reader && is_of_clients && !permissions.record {
            return Err(not_heard(destination, "other clients"));
        }
        Ok(())
    }
}

fn not_heard(destination: &str, what: &str) -> RequestError {
    RequestError::NotAllowed(format!(
        "the server's policy does not allow the program of '{destination}' to hear {what}"
    ))
}
