//! Connections: who may connect, the first packet, and the end.

use std::collections::HashMap;
use std::os::fd::OwnedFd;

use proto::event::{ANSWER_BYTES, Answer, Event};
use proto::hello::{Welcome, encode_first};
use proto::request::{Numbered, Reply, Request, RequestError};
use proto::{MAX_PACKET_BYTES, decode, encode};
use rt::sync::Ordering;
use sys::clock::now_ns;
use sys::poll::{Event as Ready, Interest};
use sys::socket::{Connection, SocketError};

use super::permissions::rights_of;
use super::{Asked, Control, FIRST_CONNECTION};
use crate::outbox::Flushed;
use crate::policy::Rights;

/// What a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// It has not said anything; it is closed at this date.
    Silent { deadline_ns: u64 },
    /// It looks and asks.
    Observer,
    /// It wants to be a client, and those that had another server before come first.
    Newcomer,
    /// It has ports.
    Client(u32),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) socket: Connection,
    pub(super) peer: Peer,
    pub(super) rights: Rights,
}

/// A program that wants to be a new client.
#[derive(Debug)]
pub(super) struct Newcomer {
    pub(super) serial: u64,
    pub(super) name: String,
    pub(super) exact: bool,
    /// The uuid that its session gave it.
    pub(super) session: Option<u64>,
}

/// All connections, by serial number.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) entries: HashMap<u64, Entry>,
    next: u64,
    /// The listener is not looked at before.
    paused_until_ns: Option<u64>,
    /// Who waits for a name or an id, in the order of arrival.
    pub(super) newcomers: Vec<Newcomer>,
}

/// A program that connects and says nothing is sent away after this.
const GREETING_NS: u64 = 2_000_000_000;
/// How long nobody is accepted when there was no descriptor for it.
const PAUSE_NS: u64 = 50_000_000;
/// Programs that may have connected and said nothing, at once.
const SILENT_AT_ONCE: usize = 64;
/// Connections taken from a door, and packets from a socket, before the others have their turn.
const TURNS_IN_A_ROW: usize = 16;

fn request_token(serial: u64) -> u64 {
    FIRST_CONNECTION + serial * 2
}

pub(super) fn event_token(serial: u64) -> u64 {
    request_token(serial) + 1
}

impl Control {
    /// What the program of a connection may do.
    pub(super) fn rights(&self, serial: u64) -> Rights {
        self.connections.entries.get(&serial).map_or(Rights::NONE, |entry| entry.rights)
    }

    pub(super) fn accept_all(&mut self, door: u64) {
        for _ in 0..TURNS_IN_A_ROW {
            let mut doors = self.parts.doors.listeners();
            let Some((_, listener)) = doors.find(|(token, _)| *token == door) else { return };
            let accepted = listener.try_accept();
            drop(doors);
            match accepted {
                Ok(socket) => self.accept(socket),
                Err(SocketError::NotReady) => return,
                // No descriptor is left: who waits is served when one is.
                Err(_) => return self.pause_listening(),
            }
        }
    }

    /// Does not look at who wants to connect until the next tick, instead of failing again and again.
    fn pause_listening(&mut self) {
        for (_, listener) in self.parts.doors.listeners() {
            if self.poller.remove(listener).is_ok() {
                self.connections.paused_until_ns = Some(now_ns() + PAUSE_NS);
            }
        }
    }

    pub(super) fn resume_listening(&mut self) {
        let due = self.connections.paused_until_ns.is_some_and(|until_ns| until_ns <= now_ns());
        if !due {
            return;
        }
        // One that is listened to already is left as it is.
        let listens = |error: std::io::Error| error.kind() == std::io::ErrorKind::AlreadyExists;
        let add = |(token, listener)| self.poller.add(listener, token, Interest::Readable);
        if self.parts.doors.listeners().map(add).all(|added| added.is_ok() || added.is_err_and(listens)) {
            self.connections.paused_until_ns = None;
        }
    }

    fn accept(&mut self, socket: Connection) {
        let ours = self.parts.doors.admit(&socket);
        let silent = self
            .connections
            .entries
            .values()
            .filter(|entry| matches!(entry.peer, Peer::Silent { .. }))
            .count();
        if !ours {
            let reason = "this server serves another user".into();
            let refused = Welcome::Refused(RequestError::NotAllowed(reason));
            let _ = socket.try_send(&encode_first(&refused), &[]);
            return;
        }
        if silent >= SILENT_AT_ONCE {
            self.close_oldest_silent();
        }
        let serial = self.connections.next;
        self.connections.next += 1;
        if self.poller.add(&socket, request_token(serial), Interest::Readable).is_ok() {
            let peer = Peer::Silent { deadline_ns: now_ns() + GREETING_NS };
            let rights = rights_of(&socket, &self.parts.config.policy);
            self.connections.entries.insert(serial, Entry { socket, peer, rights });
        }
    }

    fn close_oldest_silent(&mut self) {
        let silent = |entry: &Entry| matches!(entry.peer, Peer::Silent { .. });
        let oldest = self
            .connections
            .entries
            .iter()
            .filter(|(_, entry)| silent(entry))
            .map(|(serial, _)| *serial)
            .min();
        if let Some(serial) = oldest {
            self.close_connection(serial);
        }
    }

    pub(super) fn close_silent_connections(&mut self) {
        let now_ns = now_ns();
        let late = |entry: &Entry| matches!(entry.peer, Peer::Silent { deadline_ns } if deadline_ns < now_ns);
        let serials: Vec<u64> = self
            .connections
            .entries
            .iter()
            .filter(|(_, entry)| late(entry))
            .map(|(serial, _)| *serial)
            .collect();
        for serial in serials {
            // What it has said may wait here, because the server was late itself.
            self.receive_packets(serial);
            if self.connections.entries.get(&serial).is_some_and(late) {
                self.close_connection(serial);
            }
        }
    }

    pub(super) fn handle_connection(&mut self, event: &Ready) {
        let serial = (event.token - FIRST_CONNECTION) / 2;
        if event.token == event_token(serial) {
            self.handle_event_socket(serial, event);
        } else {
            self.receive_packets(serial);
        }
    }

    fn receive_packets(&mut self, serial: u64) {
        let mut buffer = std::mem::take(&mut self.packet);
        buffer.resize(MAX_PACKET_BYTES, 0);
        self.receive_into(&mut buffer, serial);
        self.packet = buffer;
    }

    fn receive_into(&mut self, buffer: &mut [u8], serial: u64) {
        for _ in 0..TURNS_IN_A_ROW {
            let Some(entry) = self.connections.entries.get(&serial) else { return };
            match entry.socket.try_receive(buffer) {
                Ok(received) => self.handle_packet(serial, &buffer[..received.bytes], received.descriptors),
                Err(SocketError::NotReady) => return,
                Err(error @ (SocketError::TooLong | SocketError::TooManyDescriptors)) => {
                    let malformed = RequestError::Malformed(error.to_string());
                    if matches!(entry.peer, Peer::Silent { .. }) {
                        return self.send_away(serial, malformed);
                    }
                    self.refuse(serial, 0, malformed);
                }
                Err(_) => return self.close_connection(serial),
            }
        }
    }

    fn handle_packet(&mut self, serial: u64, packet: &[u8], descriptors: Vec<OwnedFd>) {
        let Some(entry) = self.connections.entries.get(&serial) else { return };
        match entry.peer {
            Peer::Silent { .. } => self.greet(serial, packet),
            Peer::Newcomer => {
                self.send_away(serial, RequestError::Malformed("a request before the welcome".into()));
            }
            Peer::Observer => self.handle_numbered(serial, None, packet, descriptors),
            Peer::Client(client) => self.handle_numbered(serial, Some(client), packet, descriptors),
        }
    }

    fn handle_numbered(
        &mut self,
        serial: u64,
        client: Option<u32>,
        packet: &[u8],
        descriptors: Vec<OwnedFd>,
    ) {
        match decode::<Numbered<Request>>(packet) {
            Ok(Numbered { number, message }) => self.request(serial, client, number, message, descriptors),
            Err(error) => self.refuse(serial, 0, RequestError::Malformed(error.to_string())),
        }
    }

    pub(super) fn refuse(&mut self, serial: u64, number: u32, error: RequestError) {
        self.reply(serial, number, Reply::Error(error));
    }

    /// Answers a request. A client that does not take its answers is closed: it waits for each of them.
    pub(super) fn reply(&mut self, serial: u64, number: u32, reply: Reply) {
        let Some(entry) = self.connections.entries.get(&serial) else { return };
        if entry.socket.try_send(&encode(&Numbered { number, message: reply }), &[]).is_err() {
            self.close_connection(serial);
        }
    }

    fn handle_event_socket(&mut self, serial: u64, event: &Ready) {
        let Some(Entry { peer: Peer::Client(client), .. }) = self.connections.entries.get(&serial) else {
            return;
        };
        let client = *client;
        if event.writable {
            self.flush(client, true);
        }
        let mut buffer = [0; ANSWER_BYTES];
        for _ in 0..TURNS_IN_A_ROW * 4 {
            let Some(slot) = self.clients.get(&client) else { return };
            match slot.outbox.socket().try_receive(&mut buffer) {
                Ok(received) => {
                    if let Ok(answer) = decode::<Answer>(&buffer[..received.bytes]) {
                        self.answered(client, answer);
                    }
                }
                Err(SocketError::NotReady) => return,
                Err(SocketError::TooLong | SocketError::TooManyDescriptors) => {}
                Err(_) => return self.close_connection(serial),
            }
        }
    }

    fn answered(&mut self, from: u32, answer: Answer) {
        let (token, done) = match answer {
            Answer::Mapped { token } | Answer::Called { token } => (token, true),
            Answer::NotMapped { token } => (token, false),
            Answer::Session { token, answer } => return self.session_answered(from, token, answer),
        };
        let client = match self.asked.get(&token) {
            Some(Asked::Page { client, .. } | Asked::OwnPage { client } | Asked::Slab { client, .. }) => {
                *client
            }
            Some(
                Asked::Latency { client, .. } | Asked::Quantum { client, .. } | Asked::Freewheel { client },
            ) => *client,
            None => return,
        };
        if client != from {
            return; // A token of somebody else's.
        }
        let Some(asked) = self.asked.remove(&token) else { return };
        let Some(slot) = self.clients.get_mut(&client) else { return };
        let usable = match asked {
            Asked::Page { of, .. } => slot.pages.answer(of, done),
            Asked::OwnPage { .. } => {
                slot.memory.signals.answered(done);
                done
            }
            Asked::Slab { of, .. } => slot.slabs.answer(of, done),
            Asked::Latency { .. } => false,
            Asked::Quantum { frames, .. } => {
                self.quantum_called(token, client, frames);
                true
            }
            Asked::Freewheel { .. } => {
                self.waits_no_more(token);
                false
            }
        };
        if usable {
            self.plans.need_soon(now_ns());
        }
    }

    pub(super) fn flush_outboxes(&mut self) {
        let clients: Vec<u32> = self
            .clients
            .iter()
            .filter(|(_, slot)| slot.outbox.can_flush())
            .map(|(client, _)| *client)
            .collect();
        clients.into_iter().for_each(|client| self.flush(client, false));
    }

    /// Sends one client what waits for it, as far as its socket takes it.
    pub(super) fn flush_outbox(&mut self, client: u32) {
        if self.clients.get(&client).is_some_and(|slot| slot.outbox.can_flush()) {
            self.flush(client, false);
        }
    }

    /// Sends a client what its socket takes; `was_full`: the poller has been asked to tell when it is not.
    fn flush(&mut self, client: u32, was_full: bool) {
        let Some(slot) = self.clients.get_mut(&client) else { return };
        let serial = slot.connection;
        let interest = match slot.outbox.flush() {
            Flushed::All | Flushed::Later if was_full => Interest::Readable,
            Flushed::Waiting if !was_full => Interest::ReadableOrWritable,
            Flushed::All | Flushed::Later | Flushed::Waiting => return,
            Flushed::Closed => return self.close_connection(serial),
        };
        // Fails only if the kernel has no memory: the events wait for the next ones then.
        let _ = self.poller.modify(slot.outbox.socket(), event_token(serial), interest);
    }

    /// Ends a connection, and the client that it was.
    pub(super) fn close_connection(&mut self, serial: u64) {
        let Some(entry) = self.connections.entries.remove(&serial) else { return };
        let _ = self.poller.remove(&entry.socket);
        self.pending.retain(|pending| pending.connection != serial);
        if let Peer::Client(client) = entry.peer {
            self.remove_client(client);
        }
    }

    fn remove_client(&mut self, client: u32) {
        self.take_over_transport_requests(client);
        // Fails if it is not the master.
        let _ = self.release_timebase(client);
        let Some(slot) = self.clients.remove(&client) else { return };
        slot.pulse.departed.store(1, Ordering::Relaxed);
        // Its process may live on, and have them mapped.
        self.spoil_pages(&slot.pages.keys(|_| true));
        let _ = self.poller.remove(slot.outbox.socket());
        self.parts.model.close_client(client);
        self.forget_in_session(client);
        self.forget_mappings_of(client);
        self.carry_changes();
    }

    /// Tells all clients that the server stops.
    pub(super) fn say_goodbye(&mut self, reason: &str) {
        // Also for those whose sockets take no more.
        self.engine().note_stopped();
        for slot in self.clients.values_mut() {
            slot.outbox.push(&Event::Shutdown { reason: reason.into() });
            slot.outbox.flush();
        }
    }
}
