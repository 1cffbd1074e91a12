//! The first packet of a peer: what it wants to be, and what it receives.

use std::sync::Arc;

use proto::hello::{Hello, OTHER_RELEASE, Role, Welcome, decode_first};
use proto::request::RequestError;
use rt::shm::LAYOUT_VERSION;
use sys::socket::Connection;

use super::Control;
use super::peers::{NewClient, PeerState, Peers, SharedMemory};
use crate::client_slot::{ClientMemory, ClientSlot, Origin};
use crate::supervision::ClientSupervision;

impl Control {
    pub(super) fn greet(&mut self, peer: u64, packet: &[u8]) {
        let hello = match decode_first::<Hello>(packet) {
            Ok(hello) => hello,
            Err(error) => return self.send_away(peer, RequestError::Version(error.to_string())),
        };
        if hello.layout != LAYOUT_VERSION {
            let reason = format!(
                "the program uses memory layout {}, this server {LAYOUT_VERSION}: {OTHER_RELEASE}",
                hello.layout
            );
            return self.send_away(peer, RequestError::Version(reason));
        }
        if let Err(error) = self.check_peer(peer) {
            return self.send_away(peer, error);
        }
        let welcomed = match hello.role {
            Role::Observer => self.welcome_observer(peer),
            Role::Client { name, exact, session } => {
                let new = NewClient { peer, name, exact, session };
                if self.expects_returning_clients() {
                    self.peers.set_state(peer, PeerState::Waiting);
                    self.peers.waiting.push(new);
                    Ok(())
                } else {
                    self.admit_new_client(&new)
                }
            }
            Role::Returning(returning) => self.welcome_back(peer, &returning),
        };
        if let Err(error) = welcomed {
            self.send_away(peer, error);
        }
    }

    pub(super) fn send_away(&mut self, peer: u64, error: RequestError) {
        self.peers.refuse_welcome(peer, error);
        self.close_peer(peer);
    }

    fn welcome_observer(&mut self, peer: u64) -> Result<(), RequestError> {
        self.peers.set_state(peer, PeerState::Observer);
        let SharedMemory { engine, registry, recording } = &self.peers.memory;
        let memory = [engine, registry, recording].map(Arc::clone);
        if self.peers.welcome(peer, &Welcome::Observer, memory.into()) {
            return Ok(());
        }
        Err(RequestError::Failed("the program does not read its socket".into()))
    }

    /// Admits new clients that had to wait for those that return, once these have had their time.
    pub(super) fn admit_waiting_clients(&mut self) {
        if self.expects_returning_clients() {
            return;
        }
        for new in std::mem::take(&mut self.peers.waiting) {
            if self.peers.state(new.peer).is_some()
                && let Err(error) = self.admit_new_client(&new)
            {
                self.send_away(new.peer, error);
            }
        }
    }

    fn admit_new_client(&mut self, new: &NewClient) -> Result<(), RequestError> {
        let NewClient { peer, name, exact, session } = new;
        let quantum = self.settings.quantum;
        self.welcome_client(*peer, Origin::New, quantum, |control| match session {
            Some(uuid) => control.model.open_session_client(name, *exact, *uuid),
            None => control.model.open_client(name, *exact),
        })
    }

    /// Makes a client of a connection; `open` adds it to the model. `quantum` is the one that its
    /// program knows.
    pub(super) fn welcome_client(
        &mut self,
        peer: u64,
        origin: Origin,
        quantum: u32,
        open: impl FnOnce(&mut Self) -> Result<u32, RequestError>,
    ) -> Result<(), RequestError> {
        self.check_new_client(peer)?;
        let failed = |error: &dyn std::fmt::Display| {
            RequestError::Failed(format!("no memory for another client: {error}"))
        };
        let (memory, [assignments, own]) =
            ClientMemory::create().map_err(|error| failed(&error))?;
        let signals = memory.signals.current().memory().cloned();
        let signals = signals.ok_or_else(|| failed(&"its signal page is in use"))?;
        let (ours, theirs) = Connection::pair().map_err(|error| failed(&error))?;
        Peers::poll_events(peer, &ours, &self.poller).map_err(|error| failed(&error))?;
        let client = open(self)?;
        self.peers.make_client(peer, client, ours, &self.poller);
        let permissions = self.peers.permissions(peer);
        let process = self.peers.process(peer);
        let name = self.model.client(client).map(|client| client.name.clone()).unwrap_or_default();
        let welcome = Welcome::Client { client, name, server_name: self.config.name.clone() };
        let supervision = ClientSupervision::new(self.config.cpus.is_some());
        let program = (peer, process, permissions);
        let slot = ClientSlot::new(program, memory, (origin, quantum), supervision);
        self.clients.slots.insert(client, slot);
        self.clients.had_clients = true;
        self.carry_changes();
        self.registry.note_process(client, process.unwrap_or(0));
        // Sent last: by then the registry holds everything that the packet names.
        let SharedMemory { engine, registry, .. } = &self.peers.memory;
        let [engine, registry] = [engine, registry].map(Arc::clone);
        let memory = vec![engine, registry, assignments, own, signals, Arc::new(theirs.into())];
        if !self.peers.welcome(peer, &welcome, memory) {
            self.close_peer(peer);
        }
        Ok(())
    }
}
