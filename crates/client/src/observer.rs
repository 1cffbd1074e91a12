//! Connections without ports, for programs that inspect and control a server.

use std::os::fd::OwnedFd;
use std::path::Path;

use proto::driver::DriverSwitch;
use proto::hello::{Role, Welcome};
use proto::limits::CLIENTS_AT_ONCE;
use proto::request::{Reply, Request};
use proto::status::Status;
use proto::timing::ClientTiming;
use proto::xrun::Xrun;
use rt::shm::{EngineSegment, Recording};
use rt::transport::{Position, Transport};
use sys::lock::is_served;
use sys::memory::{Access, Shared, SharedRegistry};
use sys::runtime_directory::{ControlSockets, lock_path, server_directory};

use crate::registry_view::RegistryView;
use crate::requests::{Introduction, Requests, introduce, introduce_at, server_name};
use crate::session::receive;
use crate::stream::{Gain, StreamDevice, StreamStatus, Volume};
use crate::transport::newest;
use crate::{Error, Requester};

/// A connection that inspects and controls a server. It takes no part in cycles and starts no
/// threads.
#[derive(Debug)]
pub struct Observer {
    server: String,
    pub(crate) requests: Requests,
    engine: Shared<EngineSegment>,
    registry: SharedRegistry,
    recording: OwnedFd,
}

impl Observer {
    /// Connects to a server. `None` selects `JACK_DEFAULT_SERVER`, or else `default`.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open(server: Option<&str>) -> Result<Self, Error> {
        let server = server_name(server)?;
        let introduction = introduce(&ControlSockets::of_environment()?, &server, Role::Observer)?;
        Self::new(server, introduction)
    }

    /// Connects like [`open`](Self::open), but only to a server that runs: what a service manager
    /// would start on a connection stays as it is. A server for a group runs by hand.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_running(server: Option<&str>) -> Result<Self, Error> {
        let server = server_name(server)?;
        let sockets = ControlSockets::of_environment()?;
        let path = sockets.of(&server)?;
        if !sockets.are_of_group() && !is_served(&lock_path(&server_directory(&server)?)) {
            return Err(Error::NoServer { server, path });
        }
        Self::open_at(&path, &server)
    }

    /// Connects to the server `server` through its control socket, wherever that is.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_at(socket: &Path, server: &str) -> Result<Self, Error> {
        let introduction = introduce_at(socket, server, Role::Observer)?;
        Self::new(server.to_owned(), introduction)
    }

    fn new(server: String, introduction: Introduction) -> Result<Self, Error> {
        let Introduction { requests, welcome, descriptors } = introduction;
        if welcome != Welcome::Observer {
            return Err(Error::Protocol("it did not welcome an observer"));
        }
        let descriptors: [OwnedFd; 3] =
            descriptors.try_into().map_err(|_| Error::Protocol("it did not send its memory"))?;
        let [engine, registry, recording] = descriptors;
        let engine = receive(engine, Access::ReadOnly)?;
        Ok(Self {
            server,
            requests,
            engine,
            registry: SharedRegistry::receive(registry)?,
            recording,
        })
    }

    /// Returns the server's name.
    pub fn server_name(&self) -> &str {
        &self.server
    }

    /// Returns the current clients, ports, connections and latencies.
    pub fn registry(&self) -> RegistryView<'_> {
        RegistryView::new(&self.registry)
    }

    /// Returns the server's segment: current cycle, flags and counters.
    pub fn engine(&self) -> &EngineSegment {
        &self.engine
    }

    /// Returns the transport in the newest cycle.
    pub fn transport(&self) -> Transport {
        newest(&self.engine).unwrap_or_default()
    }

    /// Maps the recording of every cycle, read-only. Reading costs the server nothing.
    ///
    /// # Errors
    /// If the memory does not have the expected form or cannot be mapped.
    pub fn recording(&self) -> Result<Shared<Recording>, Error> {
        let memfd = self.recording.try_clone();
        receive(memfd.map_err(|error| Error::Socket(error.into()))?, Access::ReadOnly)
    }

    /// Returns the oldest remembered xruns that are newer than `after`, with their diagnoses. An
    /// empty list means that there are no more.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn xruns(&self, after: u64) -> Result<Vec<Xrun>, Error> {
        match self.ask(Request::Xruns { after })? {
            Reply::Xruns(xruns) => Ok(xruns),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Returns statistics of a client's processing times.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn timing(&self, client: u32) -> Result<ClientTiming, Error> {
        match self.ask(Request::Timing { client })? {
            Reply::Timing(timing) => Ok(*timing),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Starts or stops the transport.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn roll_transport(&self, roll: bool) -> Result<(), Error> {
        self.request(Request::Transport { roll: Some(roll), position: None, sync_timeout_us: None })
    }

    /// Moves the transport to `position`.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn locate_transport(&self, position: &Position) -> Result<(), Error> {
        let position = Some(position.to_words());
        self.request(Request::Transport { roll: None, position, sync_timeout_us: None })
    }

    /// Returns the state of the server and of all its clients.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn status(&self) -> Result<Status, Error> {
        let Reply::Status(mut status) = self.ask(Request::Status)? else {
            return Err(Error::OTHER_REPLY);
        };
        let mut are_more = status.clients.len() == CLIENTS_AT_ONCE;
        while let Some(last) = status.clients.last().filter(|_| are_more) {
            let Reply::Clients(clients) = self.ask(Request::Clients { after: last.id })? else {
                return Err(Error::OTHER_REPLY);
            };
            are_more = clients.len() == CLIENTS_AT_ONCE;
            status.clients.extend(clients);
        }
        Ok(*status)
    }

    /// Returns what the device that drives does with streams.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn stream_device(&self) -> Result<StreamDevice, Error> {
        crate::stream::device(&self.requests, None)
    }

    /// Returns the streams of all programs, by number.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn streams(&self) -> Result<Vec<StreamStatus>, Error> {
        crate::stream::streams(&self.requests)
    }

    /// Changes the server's volume of a stream; what is `None` stays as it is. Returns the volume
    /// from now on.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn set_volume(
        &self,
        stream: u32,
        gain: Option<Gain>,
        muted: Option<bool>,
    ) -> Result<Volume, Error> {
        crate::stream::set_volume(&self.requests, stream, gain, muted)
    }

    /// Changes the quantum, in frames. Returns once the driver runs with it.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn set_quantum(&self, frames: u32) -> Result<(), Error> {
        self.request(Request::SetQuantum { frames })
    }

    /// Switches to another driver and returns once it starts the cycles. Clients and connections
    /// stay.
    ///
    /// # Errors
    /// See [`Requester`]. [`Error::Refused`] if the driver cannot be opened or needs another sample
    /// rate; the previous driver then continues.
    pub fn switch_driver(&self, switch: DriverSwitch) -> Result<(), Error> {
        self.request(Request::SwitchDriver(Box::new(switch)))
    }

    /// Stops the server.
    ///
    /// # Errors
    /// See [`Requester`].
    pub fn stop(&self) -> Result<(), Error> {
        self.request(Request::Stop)
    }
}

impl Requester for Observer {
    fn ask(&self, request: Request) -> Result<Reply, Error> {
        self.requests.ask(request, &[])
    }
}
