//! A program that looks and asks, without ports: the command line.

use std::os::fd::OwnedFd;

use proto::driver::DriverSwitch;
use proto::hello::{Role, Welcome};
use proto::limits::CLIENTS_AT_ONCE;
use proto::request::{Reply, Request};
use proto::status::Status;
use proto::timing::ClientTiming;
use proto::xrun::Xrun;
use rt::shm::{EngineSegment, Recording};
use rt::transport::{Position, Transport};
use sys::memory::{Access, Shared, SharedRegistry};

use crate::Error;
use crate::registry_view::RegistryView;
use crate::requests::{Introduction, Requests, introduce, server_name};
use crate::session::receive;
use crate::transport::newest;

/// An observer of a server. It takes no part in cycles and has no threads.
#[derive(Debug)]
pub struct Observer {
    server: String,
    requests: Requests,
    engine: Shared<EngineSegment>,
    registry: SharedRegistry,
    recording: OwnedFd,
}

impl Observer {
    /// Connects to a server: `None` is that of `JACK_DEFAULT_SERVER`, or `default`.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the others of connecting.
    pub fn open(server: Option<&str>) -> Result<Self, Error> {
        let server = server_name(server)?;
        let Introduction { requests, welcome, descriptors } = introduce(&server, Role::Observer)?;
        if welcome != Welcome::Observer {
            return Err(Error::Protocol("it did not welcome an observer"));
        }
        let descriptors: [OwnedFd; 3] =
            descriptors.try_into().map_err(|_| Error::Protocol("it did not send its memory"))?;
        let [engine, registry, recording] = descriptors;
        let engine = receive(engine, Access::ReadOnly)?;
        Ok(Self { server, requests, engine, registry: SharedRegistry::receive(registry)?, recording })
    }

    /// The server's name.
    pub fn server_name(&self) -> &str {
        &self.server
    }

    /// Clients, ports, connections and latencies, as they are now.
    pub fn registry(&self) -> RegistryView<'_> {
        RegistryView::new(&self.registry)
    }

    /// The cycle, the flags and the counters, as they are now.
    pub fn engine(&self) -> &EngineSegment {
        &self.engine
    }

    /// The transport in the newest cycle.
    pub fn transport(&self) -> Transport {
        newest(&self.engine).unwrap_or_default()
    }

    /// What was recorded of every cycle, mapped read-only: the server does not notice who reads it.
    ///
    /// # Errors
    /// If the memory is not what it must be, or cannot be mapped.
    pub fn recording(&self) -> Result<Shared<Recording>, Error> {
        let memfd = self.recording.try_clone();
        receive(memfd.map_err(|error| Error::Socket(error.into()))?, Access::ReadOnly)
    }

    /// The oldest xruns that are remembered and newer than `after`, with their verdicts; empty: there are no more.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn xruns(&self, after: u64) -> Result<Vec<Xrun>, Error> {
        match self.requests.ask(Request::Xruns { after }, &[])? {
            Reply::Xruns(xruns) => Ok(xruns),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// How long a client takes.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn timing(&self, client: u32) -> Result<ClientTiming, Error> {
        match self.requests.ask(Request::Timing { client }, &[])? {
            Reply::Timing(timing) => Ok(*timing),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Sends a request that is answered by `Done`.
    ///
    /// # Errors
    /// [`Error::Refused`], [`Error::Timeout`], [`Error::ServerGone`].
    pub fn order(&self, request: Request) -> Result<(), Error> {
        self.requests.order(request)
    }

    pub(crate) fn exchange(&self, request: Request) -> Result<Reply, Error> {
        self.requests.ask(request, &[])
    }

    /// Connects an output port to an input port, by names or aliases.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn connect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.order(Request::Connect { source: source.to_owned(), destination: destination.to_owned() })
    }

    /// Removes a connection.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn disconnect(&self, source: &str, destination: &str) -> Result<(), Error> {
        self.order(Request::Disconnect { source: source.to_owned(), destination: destination.to_owned() })
    }

    /// Has the transport roll, or stand still.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn roll_transport(&self, roll: bool) -> Result<(), Error> {
        self.order(Request::Transport { roll: Some(roll), position: None, sync_timeout_us: None })
    }

    /// Moves the transport.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn locate_transport(&self, position: &Position) -> Result<(), Error> {
        let position = Some(position.to_words());
        self.order(Request::Transport { roll: None, position, sync_timeout_us: None })
    }

    /// How the server is.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn status(&self) -> Result<Status, Error> {
        let Reply::Status(mut status) = self.requests.ask(Request::Status, &[])? else {
            return Err(Error::OTHER_REPLY);
        };
        let mut are_more = status.clients.len() == CLIENTS_AT_ONCE;
        while let Some(last) = status.clients.last().filter(|_| are_more) {
            let Reply::Clients(clients) = self.requests.ask(Request::Clients { after: last.id }, &[])? else {
                return Err(Error::OTHER_REPLY);
            };
            are_more = clients.len() == CLIENTS_AT_ONCE;
            status.clients.extend(clients);
        }
        Ok(*status)
    }

    /// Changes the quantum, in frames; returns when the driver runs it.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn set_quantum(&self, frames: u32) -> Result<(), Error> {
        self.order(Request::SetQuantum { frames })
    }

    /// Has another driver start the cycles; returns when it does. Clients stay, and so do their connections.
    ///
    /// # Errors
    /// Those of [`order`](Self::order): [`Error::Refused`] if it cannot be opened, or needs another sample rate; then the
    /// driver before goes on.
    pub fn switch_driver(&self, switch: DriverSwitch) -> Result<(), Error> {
        self.order(Request::SwitchDriver(Box::new(switch)))
    }

    /// Stops the server.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn stop(&self) -> Result<(), Error> {
        self.order(Request::Stop)
    }
}
