//! The first packet: who wants to be what, and what a client is given.

use std::os::fd::AsFd;
use std::sync::Arc;

use proto::hello::{Hello, Role, Welcome, decode_first, encode_first};
use proto::request::RequestError;
use rt::shm::LAYOUT_VERSION;
use sys::poll::Interest;
use sys::socket::Connection;

use super::Control;
use super::connections::{Newcomer, Peer, event_token};
use crate::client_slot::{ClientMemory, ClientSlot, Measured, Past};
use crate::lateness::Lateness;
use crate::mapped::MappedTable;
use crate::outbox::Outbox;
use crate::plan::{Pulse, Sleep};
use crate::release::{Astray, Release};

impl Control {
    pub(super) fn greet(&mut self, serial: u64, packet: &[u8]) {
        let hello = match decode_first::<Hello>(packet) {
            Ok(hello) => hello,
            Err(error) => return self.send_away(serial, RequestError::Version(error.to_string())),
        };
        if hello.layout != LAYOUT_VERSION {
            let reason = format!(
                "the program's libjack.so.0 uses memory layout {}, this server {LAYOUT_VERSION}: install both from one release",
                hello.layout
            );
            return self.send_away(serial, RequestError::Version(reason));
        }
        let welcomed = match hello.role {
            Role::Observer => self.welcome_observer(serial),
            Role::Client { name, exact, session } => {
                let newcomer = Newcomer { serial, name, exact, session };
                if self.expects_returning_clients() {
                    self.let_wait(newcomer);
                    Ok(())
                } else {
                    self.welcome_newcomer(&newcomer)
                }
            }
            Role::Returning(returning) => self.welcome_back(serial, &returning),
        };
        if let Err(error) = welcomed {
            self.send_away(serial, error);
        }
    }

    pub(super) fn send_away(&mut self, serial: u64, error: RequestError) {
        if let Some(entry) = self.connections.entries.get(&serial) {
            let _ = entry.socket.try_send(&encode_first(&Welcome::Refused(error)), &[]);
        }
        self.close_connection(serial);
    }

    fn welcome_observer(&mut self, serial: u64) -> Result<(), RequestError> {
        let memory = &self.parts.memory;
        let descriptors = [memory.engine.as_fd(), memory.registry.as_fd(), memory.recording.as_fd()];
        let Some(entry) = self.connections.entries.get_mut(&serial) else { return Ok(()) };
        entry.peer = Peer::Observer;
        let sent = entry.socket.try_send(&encode_first(&Welcome::Observer), &descriptors);
        sent.map_err(|error| RequestError::Failed(error.to_string()))
    }

    fn let_wait(&mut self, newcomer: Newcomer) {
        if let Some(entry) = self.connections.entries.get_mut(&newcomer.serial) {
            entry.peer = Peer::Newcomer;
            self.connections.newcomers.push(newcomer);
        }
    }

    /// Lets in who had to wait for clients that return, once these have had their time.
    pub(super) fn welcome_newcomers(&mut self) {
        if self.expects_returning_clients() {
            return;
        }
        for newcomer in std::mem::take(&mut self.connections.newcomers) {
            if !self.connections.entries.contains_key(&newcomer.serial) {
                continue;
            }
            if let Err(error) = self.welcome_newcomer(&newcomer) {
                self.send_away(newcomer.serial, error);
            }
        }
    }

    fn welcome_newcomer(&mut self, newcomer: &Newcomer) -> Result<(), RequestError> {
        let Newcomer { serial, name, exact, session } = newcomer;
        let quantum = self.quantum;
        self.welcome_client(*serial, Past::New, quantum, |control| match session {
            Some(uuid) => control.parts.model.open_session_client(name, *exact, *uuid),
            None => control.parts.model.open_client(name, *exact),
        })
    }

    /// Makes a client of a connection; `open` enters it into the model. `quantum` is what its program knows of.
    pub(super) fn welcome_client(
        &mut self,
        serial: u64,
        past: Past,
        quantum: u32,
        open: impl FnOnce(&mut Self) -> Result<u32, RequestError>,
    ) -> Result<(), RequestError> {
        let failed = |error: &dyn std::fmt::Display| {
            RequestError::Failed(format!("no memory for another client: {error}"))
        };
        let (memory, [orders, own]) = ClientMemory::create().map_err(|error| failed(&error))?;
        let signals = Arc::clone(&memory.signals.current().memory);
        let (ours, theirs) = Connection::pair().map_err(|error| failed(&error))?;
        self.poller.add(&ours, event_token(serial), Interest::Readable).map_err(|error| failed(&error))?;
        let client = open(self)?;
        let Some(entry) = self.connections.entries.get_mut(&serial) else { return Ok(()) };
        entry.peer = Peer::Client(client);
        let rights = entry.rights;
        let process = entry.socket.peer().ok().and_then(|peer| peer.process_id);
        let name = self.parts.model.client(client).map(|client| client.name.clone()).unwrap_or_default();
        let welcome = Welcome::Client { client, name, server_name: self.parts.config.name.clone() };
        let slot = ClientSlot {
            connection: serial,
            process,
            rights,
            outbox: Outbox::new(ours),
            memory,
            activation: None,
            past,
            told_quantum: quantum,
            pulse: Arc::new(Pulse::default()),
            sleep: Sleep::Absent,
            pages: MappedTable::default(),
            slabs: MappedTable::default(),
            bypass: None,
            bypasses: 0,
            all_bypasses: 0,
            bypassed_ns: 0,
            late_cycles: 0,
            lateness: Lateness::default(),
            watch: None,
            measured: Measured::default(),
            release: Release::default(),
            astray: Astray::default(),
            said_astray: false,
        };
        self.clients.insert(client, slot);
        self.had_clients = true;
        self.carry_changes();
        self.parts.mirror.note_process(client, process.unwrap_or(0));
        // Last: what the client is told of, it finds in the registry.
        let descriptors = [
            self.parts.memory.engine.as_fd(),
            self.parts.memory.registry.as_fd(),
            orders.as_fd(),
            own.as_fd(),
            signals.as_fd(),
            theirs.as_fd(),
        ];
        let sent = self
            .connections
            .entries
            .get(&serial)
            .is_none_or(|entry| entry.socket.try_send(&encode_first(&welcome), &descriptors).is_ok());
        if !sent {
            self.close_connection(serial);
        }
        Ok(())
    }
}
