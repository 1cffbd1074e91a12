//! Internal clients: each plug-in is an ordinary client, in a process of its own that the server
//! starts and ends.
//!
//! Nothing here waits: a host's process is started, sent commands and reaped in steps of the event
//! loop. The request to load is answered when the process runs its plug-in, the request to unload
//! when the process has ended and its client with it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use proto::internal::{HostReport, HostRequest, InternalFailure, InternalRequest, PlugIn};
use proto::limits::{INTERNAL_CLIENTS, INTERNAL_OBJECT_BYTES, INTERNAL_PARAMETER_BYTES};
use proto::request::{Reply, RequestError};
use proto::{decode, encode};
use sys::clock::now_ns;
use sys::helper::Helper;
use sys::poll::{Interest, Poller};
use sys::socket::{Connection, SocketError};

use super::super::ticket::Ticket;
use crate::model::Model;
use crate::platform::{PluginLaunch, PluginLauncher};

/// Tokens from here on belong to hosts: the sum of this and the handle.
pub(in super::super) const HOSTS: u64 = 1 << 63;

/// A plug-in that has not started within this time is ended.
const STARTING_NS: u64 = 10_000_000_000;
/// A plug-in that has not finished within this time is ended.
const FINISHING_NS: u64 = 5_000_000_000;
/// The socket of a process closes when the process ends. If another process holds a copy, it is
/// waited for at most this long.
const LEAVING_NS: u64 = 2_000_000_000;
/// Interval between polls of a killed process when the server stops.
const POLL: std::time::Duration = std::time::Duration::from_millis(2);

/// The longest report of a host: its client's name, or a reason.
const REPORT_BYTES: usize = 4096;

#[derive(Debug)]
enum Stage {
    /// The plug-in has not started yet.
    Starting { ticket: Ticket, deadline_ns: u64 },
    /// It is a client.
    Running,
    /// It was asked to finish.
    Finishing { ticket: Ticket, deadline_ns: u64 },
    /// Its process is ending. The reply is sent when it is gone; `None`: a crash.
    Leaving { end: Option<HostReply>, deadline_ns: u64 },
}

/// The process of one plug-in.
#[derive(Debug)]
struct Host {
    /// Its client's name: the requested one, then the one that it received.
    name: String,
    process: Helper,
    socket: Connection,
    stage: Stage,
}

/// The processes of all plug-ins, by handle.
#[derive(Debug, Default)]
pub(in super::super) struct PlugInHosts {
    hosts: BTreeMap<u64, Host>,
    /// The newest handle; no handle is used twice.
    last: u64,
}

/// How plug-ins' processes are started.
#[derive(Clone, Copy)]
pub(in super::super) struct HostCommand<'a> {
    pub(in super::super) launcher: &'a dyn PluginLauncher,
    pub(in super::super) server_name: &'a str,
}

/// An answer to a request that has waited for a process.
pub(in super::super) type HostReply = (Ticket, Reply);

/// How a request about internal clients is answered.
pub(in super::super) enum InternalOutcome {
    Now(Reply),
    /// When a process has been started and its plug-in runs.
    Load(PlugIn),
    /// When the process has ended.
    Unload(u64),
}

fn refused(failure: InternalFailure, reason: impl Into<String>) -> RequestError {
    RequestError::Internal { failure, reason: reason.into() }
}

impl PlugInHosts {
    fn running(&self, wanted: impl Fn(u64, &Host) -> bool) -> Option<(u64, &Host)> {
        let mut running =
            self.hosts.iter().filter(|(_, host)| matches!(host.stage, Stage::Running));
        running.find(|(handle, host)| wanted(**handle, host)).map(|(handle, host)| (*handle, host))
    }

    /// Returns whether `process` runs a plug-in.
    pub(in super::super) fn has(&self, process: Option<u32>) -> bool {
        process.is_some_and(|process| self.hosts.values().any(|host| host.process.id() == process))
    }

    /// Checks a request about plug-ins, and returns how it is answered.
    ///
    /// # Errors
    /// [`RequestError`]: why it is refused.
    pub(in super::super) fn check(
        &self,
        request: InternalRequest,
        model: &Model,
    ) -> Result<InternalOutcome, RequestError> {
        let found = |found: Option<(u64, &Host)>, what: &dyn fmt::Display| {
            let unknown = || {
                let reason = format!("there is no internal client {what}");
                refused(InternalFailure::Unknown, reason)
            };
            found.map(|(handle, host)| (handle, host.name.clone())).ok_or_else(unknown)
        };
        let (handle, name) = match request {
            InternalRequest::Load(plug_in) => {
                self.check_load(&plug_in, model)?;
                return Ok(InternalOutcome::Load(plug_in));
            }
            InternalRequest::Unload { handle } => {
                found(self.running(|known, _| known == handle), &handle)?;
                return Ok(InternalOutcome::Unload(handle));
            }
            InternalRequest::Find { name } => {
                found(self.running(|_, host| host.name == name), &format_args!("'{name}'"))?
            }
            InternalRequest::Describe { handle } => {
                found(self.running(|known, _| known == handle), &handle)?
            }
        };
        Ok(InternalOutcome::Now(Reply::Internal { handle, name }))
    }

    fn check_load(&self, plug_in: &PlugIn, model: &Model) -> Result<(), RequestError> {
        let PlugIn { name, exact, object, parameters } = plug_in;
        proto::names::check_client(name)?;
        if *exact && model.clients().any(|client| client.name == *name) {
            let reason = RequestError::NameTaken(name.clone()).to_string();
            return Err(refused(InternalFailure::NameTaken, reason));
        }
        let is_name = |character: char| character != '/' && !character.is_control();
        if object.is_empty()
            || object.len() > INTERNAL_OBJECT_BYTES
            || object.starts_with(['.', '-'])
            // MUTATION: check_load.any_path
            || !object.chars().all(is_name)
        {
            let reason = "a plug-in is named by its file's name alone, without a directory and without its end";
            return Err(refused(InternalFailure::Load, reason));
        }
        if parameters.len() > INTERNAL_PARAMETER_BYTES || parameters.contains('\0') {
            let reason = format!("parameters of more than {INTERNAL_PARAMETER_BYTES} bytes");
            return Err(refused(InternalFailure::Load, reason));
        }
        if self.hosts.len() >= INTERNAL_CLIENTS {
            let limit = u32::try_from(INTERNAL_CLIENTS).unwrap_or(u32::MAX);
            let advice = "unload one".into();
            return Err(RequestError::Full { what: "internal client".into(), limit, advice });
        }
        Ok(())
    }

    /// Starts a process for a plug-in; it is answered when the plug-in runs. Returns an answer if
    /// there is no process.
    pub(in super::super) fn load(
        &mut self,
        ticket: Ticket,
        plug_in: PlugIn,
        command: HostCommand<'_>,
        poller: &Poller,
        now_ns: u64,
    ) -> Option<HostReply> {
        match self.start(&plug_in, command, poller) {
            Ok((process, socket)) => {
                let stage = Stage::Starting { ticket, deadline_ns: now_ns + STARTING_NS };
                let host = Host { name: plug_in.name, process, socket, stage };
                self.hosts.insert(self.last, host);
                None
            }
            Err(error) => {
                let reason = format!("no process for the plug-in '{}': {error}", plug_in.object);
                Some((ticket, Reply::Error(refused(InternalFailure::Load, reason))))
            }
        }
    }

    fn start(
        &mut self,
        plug_in: &PlugIn,
        command: HostCommand<'_>,
        poller: &Poller,
    ) -> io::Result<(Helper, Connection)> {
        let HostCommand { launcher, server_name } = command;
        let PlugIn { name, exact, object, parameters } = plug_in;
        let (ours, theirs) = Connection::pair()?;
        self.last += 1;
        poller.add(&ours, HOSTS | self.last, Interest::Readable)?;
        let launch =
            PluginLaunch { server: server_name, client: name, exact: *exact, object, parameters };
        let process = launcher.launch(&launch, OwnedFd::from(theirs))?;
        Ok((process, ours))
    }

    /// Asks a plug-in to finish; the request is answered when its process has ended.
    pub(in super::super) fn unload(&mut self, ticket: Ticket, handle: u64, now_ns: u64) {
        let Some(host) = self.hosts.get_mut(&handle) else { return };
        host.stage = Stage::Finishing { ticket, deadline_ns: now_ns + FINISHING_NS };
        // Fails only if its socket has closed, which the poller reports.
        let _ = host.socket.try_send(&encode(&HostRequest::Finish), &[]);
    }

    /// Receives a report of the host with this token of the poller.
    pub(in super::super) fn handle(
        &mut self,
        token: u64,
        poller: &Poller,
        now_ns: u64,
    ) -> Option<HostReply> {
        let handle = token & !HOSTS;
        let mut buffer = [0; REPORT_BYTES];
        let host = self.hosts.get_mut(&handle)?;
        let report = match host.socket.try_receive(&mut buffer) {
            Ok(received) => decode::<HostReport>(&buffer[..received.bytes]).ok(),
            Err(SocketError::NotReady) => return None,
            Err(_) => None,
        };
        let end = match (std::mem::replace(&mut host.stage, Stage::Running), report) {
            (Stage::Starting { ticket, .. }, Some(HostReport::Running { name })) => {
                host.name.clone_from(&name);
                return Some((ticket, Reply::Internal { handle, name }));
            }
            (Stage::Starting { ticket, .. }, Some(HostReport::Failed { failure, reason })) => {
                Some((ticket, Reply::Error(refused(failure, reason))))
            }
            (Stage::Starting { ticket, .. }, None) => {
                let reason =
                    format!("'{}' crashed before jack_initialize came to its end", host.name);
                Some((ticket, Reply::Error(refused(InternalFailure::Start, reason))))
            }
            (Stage::Finishing { ticket, .. }, _) => Some((ticket, Reply::Done)),
            (Stage::Running, _) => None,
            (leaving @ Stage::Leaving { .. }, _) => {
                host.stage = leaving;
                return None;
            }
        };
        host.end(end, poller, now_ns);
        None
    }

    /// Ends hosts whose time is over, and removes those that have ended. `has_client` returns
    /// whether a process still has a client. Returns the answers that are due.
    pub(in super::super) fn poll(
        &mut self,
        has_client: impl Fn(u32) -> bool,
        poller: &Poller,
        now_ns: u64,
    ) -> Vec<HostReply> {
        for host in self.hosts.values_mut() {
            host.end_if_late(poller, now_ns);
        }
        let handles: Vec<u64> = self.hosts.keys().copied().collect();
        let removed = handles
            .into_iter()
            .filter_map(|handle| self.remove_if_ended(handle, &has_client, now_ns));
        removed.collect()
    }

    /// Removes a host whose process has ended and whose client has gone.
    fn remove_if_ended(
        &mut self,
        handle: u64,
        has_client: impl Fn(u32) -> bool,
        now_ns: u64,
    ) -> Option<HostReply> {
        let host = self.hosts.get_mut(&handle)?;
        let Stage::Leaving { deadline_ns, .. } = host.stage else { return None };
        // An error would mean that another waiter has taken its status.
        let status = match host.process.status() {
            Ok(None) => return None,
            Ok(status) => status,
            Err(_) => None,
        };
        if has_client(host.process.id()) && deadline_ns > now_ns {
            return None;
        }
        let host = self.hosts.remove(&handle)?;
        if let Stage::Leaving { end: Some(reply), .. } = host.stage {
            return Some(reply);
        }
        let how = how_it_ended(status);
        sys::report!(
            "consort: internal client '{}' {how}; the server and all others go on",
            host.name
        );
        None
    }

    /// Asks all plug-ins to finish, and ends those that do not. Waits for them for a bounded time,
    /// when the server stops.
    pub(in super::super) fn finish(&mut self) {
        for host in self.hosts.values_mut() {
            let _ = host.socket.try_send(&encode(&HostRequest::Finish), &[]);
        }
        let deadline_ns = now_ns() + LEAVING_NS;
        let is_running = |host: &mut Host| matches!(host.process.status(), Ok(None));
        loop {
            self.hosts.retain(|_, host| is_running(host));
            if self.hosts.is_empty() || now_ns() >= deadline_ns {
                break;
            }
            std::thread::sleep(POLL);
        }
        for host in self.hosts.values_mut() {
            host.process.kill();
        }
    }
}

impl Host {
    /// Ends the process; `reply` is given when it is gone.
    fn end(&mut self, reply: Option<HostReply>, poller: &Poller, now_ns: u64) {
        let _ = poller.remove(&self.socket);
        // It has ended, has nothing left to do, or hangs.
        self.process.kill();
        self.stage = Stage::Leaving { end: reply, deadline_ns: now_ns + LEAVING_NS };
    }

    /// Ends a process that has not started or finished its plug-in in time.
    fn end_if_late(&mut self, poller: &Poller, now_ns: u64) {
        let (Stage::Starting { deadline_ns, .. } | Stage::Finishing { deadline_ns, .. }) =
            self.stage
        else {
            return;
        };
        // MUTATION: end_if_late.never
        if deadline_ns > now_ns {
            return;
        }
        let reply = match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Starting { ticket, .. } => {
                let seconds = STARTING_NS / 1_000_000_000;
                let reason = format!(
                    "'{}' did not come to the end of jack_initialize in {seconds} s",
                    self.name
                );
                Some((ticket, Reply::Error(refused(InternalFailure::Start, reason))))
            }
            Stage::Finishing { ticket, .. } => {
                let name = &self.name;
                sys::report!("consort: internal client '{name}' hung in jack_finish and was ended");
                Some((ticket, Reply::Done))
            }
            Stage::Running | Stage::Leaving { .. } => None,
        };
        self.end(reply, poller, now_ns);
    }
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    match status.and_then(|status| status.signal()) {
        Some(signal) => format!("was ended by signal {signal}"),
        None => "has ended by itself".into(),
    }
}
