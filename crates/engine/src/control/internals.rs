//! Internal clients: each plug-in is an ordinary client, in a process of its own that the server starts and ends.
//!
//! Nothing here waits: a host's process is started, spoken to and buried as the event loop comes by. Whoever asked is
//! answered when the process runs its plug-in, or has ended and its client with it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use proto::internal::{HostOrder, HostReport, InternalFailure, InternalRequest};
use proto::limits::{INTERNAL_CLIENTS, INTERNAL_OBJECT_BYTES, INTERNAL_PARAMETER_BYTES};
use proto::request::{Reply, RequestError};
use proto::{decode, encode};
use sys::clock::now_ns;
use sys::poll::Interest;
use sys::socket::{Connection, SocketError};

use super::Control;

/// Tokens from here on are hosts': this and the handle.
pub(super) const HOSTS: u64 = 1 << 63;

/// A plug-in that has not started by then will not.
const STARTING_NS: u64 = 10_000_000_000;
/// A plug-in that has not finished by then is ended.
const FINISHING_NS: u64 = 5_000_000_000;
/// The socket of a process that has ended ends with it; if another has a copy, it is not waited for longer.
const LEAVING_NS: u64 = 2_000_000_000;
/// Between two looks at a process that was killed, when the server stops.
const LOOK: std::time::Duration = std::time::Duration::from_millis(2);

/// A report of a host: its client's name, or a reason.
const REPORT_BYTES: usize = 4096;

/// Who is answered later.
#[derive(Debug, Clone, Copy)]
struct Asker {
    connection: u64,
    number: u32,
}

#[derive(Debug)]
enum Stage {
    /// The plug-in has not started yet.
    Starting { asker: Asker, deadline_ns: u64 },
    /// It is a client.
    Running,
    /// It was told to finish.
    Finishing { asker: Asker, deadline_ns: u64 },
    /// Its process ends, or was ended. Who asked is answered when it is gone; `None`: its own crash.
    Leaving { end: Option<(Asker, Result<Reply, RequestError>)>, deadline_ns: u64 },
}

/// The process of one plug-in.
#[derive(Debug)]
struct Host {
    /// Its client's: as it was asked for, then as it was given.
    name: String,
    child: Child,
    socket: Connection,
    stage: Stage,
}

/// All internal clients, by handle.
#[derive(Debug, Default)]
pub(super) struct Internals {
    hosts: BTreeMap<u64, Host>,
    /// The newest handle: none is given twice.
    last: u64,
}

/// What is to be loaded.
pub(super) struct PlugIn {
    name: String,
    exact: bool,
    object: String,
    parameters: String,
}

/// How a request about internal clients is answered.
pub(super) enum InternalOutcome {
    Now(Reply),
    /// When a process has been started and its plug-in runs.
    Load(PlugIn),
    /// When the process has ended.
    Unload(u64),
}

fn refused(failure: InternalFailure, reason: impl Into<String>) -> RequestError {
    RequestError::Internal { failure, reason: reason.into() }
}

impl Internals {
    fn running(&self, wanted: impl Fn(u64, &Host) -> bool) -> Option<(u64, &Host)> {
        let mut running = self.hosts.iter().filter(|(_, host)| matches!(host.stage, Stage::Running));
        running.find(|(handle, host)| wanted(**handle, host)).map(|(handle, host)| (*handle, host))
    }

    /// Whether `process` is that of an internal client.
    pub(super) fn has(&self, process: Option<u32>) -> bool {
        process.is_some_and(|process| self.hosts.values().any(|host| host.child.id() == process))
    }
}

impl Control {
    pub(super) fn answer_internal(&self, request: InternalRequest) -> Result<InternalOutcome, RequestError> {
        let found = |found: Option<(u64, &Host)>, what: &dyn fmt::Display| {
            let unknown = || {
                let reason = format!("there is no internal client {what}");
                refused(InternalFailure::Unknown, reason)
            };
            found.map(|(handle, host)| (handle, host.name.clone())).ok_or_else(unknown)
        };
        let (handle, name) = match request {
            InternalRequest::Load { name, exact, object, parameters } => {
                let plug_in = PlugIn { name, exact, object, parameters };
                self.check_load(&plug_in)?;
                return Ok(InternalOutcome::Load(plug_in));
            }
            InternalRequest::Unload { handle } => {
                found(self.internals.running(|known, _| known == handle), &handle)?;
                return Ok(InternalOutcome::Unload(handle));
            }
            InternalRequest::Find { name } => {
                found(self.internals.running(|_, host| host.name == name), &format_args!("'{name}'"))?
            }
            InternalRequest::Describe { handle } => {
                found(self.internals.running(|known, _| known == handle), &handle)?
            }
        };
        Ok(InternalOutcome::Now(Reply::Internal { handle, name }))
    }

    fn check_load(&self, plug_in: &PlugIn) -> Result<(), RequestError> {
        let PlugIn { name, exact, object, parameters } = plug_in;
        proto::names::check_client(name)?;
        if *exact && self.parts.model.clients().any(|client| client.name == *name) {
            let reason = RequestError::NameTaken(name.clone()).to_string();
            return Err(refused(InternalFailure::NameTaken, reason));
        }
        let is_name = |character: char| character != '/' && !character.is_control();
        if object.is_empty()
            || object.len() > INTERNAL_OBJECT_BYTES
            || object.starts_with(['.', '-'])
            || !object.chars().all(is_name)
        {
            let reason =
                "a plug-in is named by its file's name alone, without a directory and without its end";
            return Err(refused(InternalFailure::Load, reason));
        }
        if parameters.len() > INTERNAL_PARAMETER_BYTES || parameters.contains('\0') {
            let reason = format!("parameters of more than {INTERNAL_PARAMETER_BYTES} bytes");
            return Err(refused(InternalFailure::Load, reason));
        }
        if self.internals.hosts.len() >= INTERNAL_CLIENTS {
            let limit = u32::try_from(INTERNAL_CLIENTS).unwrap_or(u32::MAX);
            let advice = "unload one".into();
            return Err(RequestError::Full { what: "internal client".into(), limit, advice });
        }
        Ok(())
    }

    /// Starts a process for a plug-in, or has one finish.
    pub(super) fn do_internal(&mut self, connection: u64, number: u32, outcome: InternalOutcome) {
        let asker = Asker { connection, number };
        match outcome {
            InternalOutcome::Now(reply) => self.reply(connection, number, reply),
            InternalOutcome::Unload(handle) => self.finish_host(asker, handle),
            InternalOutcome::Load(plug_in) => match self.start_host(&plug_in) {
                Ok((child, socket)) => {
                    let stage = Stage::Starting { asker, deadline_ns: now_ns() + STARTING_NS };
                    let host = Host { name: plug_in.name, child, socket, stage };
                    self.internals.hosts.insert(self.internals.last, host);
                }
                Err(error) => {
                    let reason = format!("no process for the plug-in '{}': {error}", plug_in.object);
                    self.refuse(connection, number, refused(InternalFailure::Load, reason));
                }
            },
        }
    }

    fn start_host(&mut self, plug_in: &PlugIn) -> io::Result<(Child, Connection)> {
        let PlugIn { name, exact, object, parameters } = plug_in;
        let (ours, theirs) = Connection::pair()?;
        self.internals.last += 1;
        self.poller.add(&ours, HOSTS | self.internals.last, Interest::Readable)?;
        let mut command = Command::new(&self.parts.hosting.program);
        command.arg0("consort").arg("host");
        command.arg(format!("--name={name}")).arg(format!("--object={object}"));
        command.arg(format!("--parameters={parameters}"));
        if *exact {
            command.arg("--exact");
        }
        command
            .env("JACK_DEFAULT_SERVER", &self.parts.config.name)
            .env("JACK_NO_START_SERVER", "1")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // What is typed for the server is not meant for it.
            .process_group(0);
        let child = command.spawn()?;
        Ok((child, ours))
    }

    fn finish_host(&mut self, asker: Asker, handle: u64) {
        let Some(host) = self.internals.hosts.get_mut(&handle) else { return };
        host.stage = Stage::Finishing { asker, deadline_ns: now_ns() + FINISHING_NS };
        // If it cannot be told, its socket has ended, and that is heard of.
        let _ = host.socket.try_send(&encode(&HostOrder::Finish), &[]);
    }

    /// Hears what a host says.
    pub(super) fn handle_host(&mut self, token: u64) {
        let handle = token & !HOSTS;
        let mut buffer = [0; REPORT_BYTES];
        let Some(host) = self.internals.hosts.get_mut(&handle) else { return };
        let report = match host.socket.try_receive(&mut buffer) {
            Ok(received) => decode::<HostReport>(&buffer[..received.bytes]).ok(),
            Err(SocketError::NotReady) => return,
            Err(_) => None,
        };
        let stage = std::mem::replace(&mut host.stage, Stage::Running);
        match (stage, report) {
            (Stage::Starting { asker, .. }, Some(HostReport::Running { name })) => {
                host.name.clone_from(&name);
                let Asker { connection, number } = asker;
                self.reply(connection, number, Reply::Internal { handle, name });
            }
            (Stage::Starting { asker, .. }, Some(HostReport::Failed { failure, reason })) => {
                self.end_host(handle, Some((asker, Err(refused(failure, reason)))));
            }
            (Stage::Starting { asker, .. }, None) => {
                let reason = format!("'{}' crashed before jack_initialize came to its end", host.name);
                self.end_host(handle, Some((asker, Err(refused(InternalFailure::Start, reason)))));
            }
            (Stage::Finishing { asker, .. }, _) => self.end_host(handle, Some((asker, Ok(Reply::Done)))),
            (Stage::Running, _) => self.end_host(handle, None),
            (leaving @ Stage::Leaving { .. }, _) => host.stage = leaving,
        }
    }

    /// Sees to it that a host's process ends, and answers `end` then.
    fn end_host(&mut self, handle: u64, end: Option<(Asker, Result<Reply, RequestError>)>) {
        let Some(host) = self.internals.hosts.get_mut(&handle) else { return };
        let _ = self.poller.remove(&host.socket);
        // It has ended, has nothing to do any more, or hangs.
        let _ = host.child.kill();
        host.stage = Stage::Leaving { end, deadline_ns: now_ns() + LEAVING_NS };
    }

    /// Ends hosts whose time is over, and buries those that have ended.
    pub(super) fn look_at_hosts(&mut self) {
        let now_ns = now_ns();
        for handle in self.internals.hosts.keys().copied().collect::<Vec<_>>() {
            let Some(host) = self.internals.hosts.get(&handle) else { continue };
            match host.stage {
                Stage::Starting { asker, deadline_ns } if deadline_ns <= now_ns => {
                    let seconds = STARTING_NS / 1_000_000_000;
                    let reason =
                        format!("'{}' did not come to the end of jack_initialize in {seconds} s", host.name);
                    self.end_host(handle, Some((asker, Err(refused(InternalFailure::Start, reason)))));
                }
                Stage::Finishing { asker, deadline_ns } if deadline_ns <= now_ns => {
                    eprintln!("consort: internal client '{}' hung in jack_finish and was ended", host.name);
                    self.end_host(handle, Some((asker, Ok(Reply::Done))));
                }
                Stage::Leaving { deadline_ns, .. } => self.bury_host(handle, deadline_ns <= now_ns),
                _ => {}
            }
        }
    }

    /// Answers who waits for a host's end, once its process has ended and its client is gone.
    fn bury_host(&mut self, handle: u64, is_late: bool) {
        let Some(host) = self.internals.hosts.get_mut(&handle) else { return };
        let process = host.child.id();
        // An error would mean that somebody else has buried it.
        let status = match host.child.try_wait() {
            Ok(None) => return,
            Ok(status) => status,
            Err(_) => None,
        };
        let has_client = self.clients.values().any(|slot| slot.process == Some(process));
        if has_client && !is_late {
            return;
        }
        let Some(host) = self.internals.hosts.remove(&handle) else { return };
        match host.stage {
            Stage::Leaving { end: Some((asker, answer)), .. } => {
                let reply = answer.unwrap_or_else(Reply::Error);
                self.reply(asker.connection, asker.number, reply);
            }
            _ => eprintln!(
                "consort: internal client '{}' {}; the server and all others go on",
                host.name,
                how_it_ended(status)
            ),
        }
    }

    /// Whether there is no client but internal ones.
    pub(super) fn is_deserted(&self) -> bool {
        self.clients.values().all(|slot| self.internals.has(slot.process))
    }

    /// Has all plug-ins finish, and ends those that do not. Waits for them, in bounded time: the server stops.
    pub(super) fn finish_hosts(&mut self) {
        for host in self.internals.hosts.values_mut() {
            let _ = host.socket.try_send(&encode(&HostOrder::Finish), &[]);
        }
        let deadline_ns = now_ns() + LEAVING_NS;
        let is_running = |host: &mut Host| matches!(host.child.try_wait(), Ok(None));
        loop {
            self.internals.hosts.retain(|_, host| is_running(host));
            if self.internals.hosts.is_empty() || now_ns() >= deadline_ns {
                break;
            }
            std::thread::sleep(LOOK);
        }
        for host in self.internals.hosts.values_mut() {
            let _ = host.child.kill();
        }
    }
}

fn how_it_ended(status: Option<ExitStatus>) -> String {
    match status.and_then(|status| status.signal()) {
        Some(signal) => format!("was ended by signal {signal}"),
        None => "has ended by itself".into(),
    }
}
