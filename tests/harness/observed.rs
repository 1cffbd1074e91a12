//! What a test sees of its server, without starting a program.

use std::path::PathBuf;

use client::Observer;
use client::stream::StreamConnection;
use observe::Graph;
use proto::status::{ClientStatus, Status};

use crate::server::NAME;
use crate::{Server, eventually};

impl Server {
    /// Connects to the server as `consort status` does.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn observer(&self) -> Observer {
        let opened = Observer::open_at(&self.socket(), NAME);
        opened.unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    /// Connects to the server as a program with streams.
    ///
    /// # Panics
    /// If it does not answer.
    pub fn stream_connection(&self) -> StreamConnection {
        let opened = StreamConnection::open_at(&self.socket(), NAME);
        opened.unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    fn socket(&self) -> PathBuf {
        self.directory().join("consort").join(NAME).join("control")
    }

    /// The server and its clients.
    pub fn status(&self) -> Status {
        status(&self.observer())
    }

    /// The same of a server that something slows down.
    ///
    /// # Errors
    /// It has not answered in time.
    pub fn status_in_time(&self) -> Result<Status, client::Error> {
        Observer::open_at(&self.socket(), NAME)?.status()
    }

    /// The client of this name, as the status has it.
    pub fn client(&self, name: &str) -> Option<ClientStatus> {
        client(&self.observer(), name)
    }

    /// Clients, ports and connections.
    pub fn graph(&self) -> Graph {
        graph(&self.observer())
    }

    /// Cycles so far.
    pub fn cycles(&self) -> u64 {
        self.status().cycles
    }

    /// Waits for this many cycles more.
    pub fn await_cycles(&self, cycles: u64) {
        let observer = self.observer();
        let before = status(&observer).cycles;
        let has_run = || status(&observer).cycles >= before + cycles;
        eventually("cycles continue", || has_run().then_some(()));
    }

    /// Waits until a client is active.
    pub fn await_active(&self, name: &str) {
        let observer = self.observer();
        let is_active = || client(&observer, name).is_some_and(|client| client.active);
        eventually(&format!("'{name}' is active"), || is_active().then_some(()));
    }

    /// Whether a client has ports.
    pub fn has_ports(&self, client: &str) -> bool {
        let prefix = format!("{client}:");
        self.graph().ports().any(|port| port.info.name.starts_with(&prefix))
    }

    /// Waits until a port exists.
    pub fn await_port(&self, name: &str) {
        let observer = self.observer();
        let exists = || graph(&observer).port_named(name).is_some();
        eventually(&format!("port {name}"), || exists().then_some(()));
    }

    /// Waits until a port is connected with another.
    pub fn await_connection(&self, port: &str, peer: &str) {
        let observer = self.observer();
        let is_connected = || {
            let graph = graph(&observer);
            let found = graph.port_named(port);
            found.is_some_and(|port| graph.peers(port).any(|found| found.info.name == peer))
        };
        eventually(&format!("{port} is connected with {peer}"), || is_connected().then_some(()));
    }
}

fn status(observer: &Observer) -> Status {
    observer.status().unwrap_or_else(|error| panic!("no status: {error}"))
}

fn client(observer: &Observer, name: &str) -> Option<ClientStatus> {
    status(observer).clients.into_iter().find(|client| client.name == name)
}

fn graph(observer: &Observer) -> Graph {
    Graph::read(observer.registry())
}
