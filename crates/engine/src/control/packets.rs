//! Packets from peers and to them, and how peers are closed.

use std::os::fd::OwnedFd;

use proto::event::{ANSWER_BYTES, Answer, Event};
use proto::request::{Numbered, Reply, Request, RequestError};
use proto::{MAX_PACKET_BYTES, decode};
use round_robin::TimeSlice;
use sys::clock::now_ns;
use sys::disposal::Foreign;
use sys::memory::PeerSlab;
use sys::poll::Event as Ready;
use sys::socket::SocketError;

use super::Control;
use super::batch::Batch;
use super::pace::TICK_NS;
use super::peers::{IN_A_ROW, PeerSocket, PeerState, ReceivedPacket};
use super::ticket::Ticket;

impl Control {
    pub(super) fn handle_peer(&mut self, event: &Ready) {
        match PeerSocket::of_token(event.token) {
            PeerSocket::Requests(peer) => {
                self.in_slice(peer, |control, slice| {
                    control.receive_batch(peer, Batch::new(slice, IN_A_ROW));
                });
            }
            PeerSocket::Events(peer) => self.handle_event_socket(peer, event.writable),
            PeerSocket::Process(peer) => {
                // What it sent before its end still counts.
                self.receive_batch(peer, Batch::new(TimeSlice::due(now_ns()), IN_A_ROW));
                self.close_peer(peer);
            }
        }
    }

    /// Tries again to send memory that the kernel has refused to carry.
    pub(super) fn retry_unsent(&mut self) {
        for peer in self.peers.retry_unsent() {
            self.close_peer(peer);
        }
    }

    /// When memory and events that the kernel has refused to carry are tried again.
    pub(super) fn unsent_due_ns(&self) -> Option<u64> {
        let holds_events = self.clients.slots.values().any(|slot| slot.outbox.can_flush());
        let events_ns = holds_events.then(|| now_ns() + TICK_NS);
        [self.peers.unsent_due_ns(), events_ns].into_iter().flatten().min()
    }

    /// Closes peers that have said nothing for too long.
    pub(super) fn close_silent_peers(&mut self) {
        for peer in self.peers.overdue(now_ns()) {
            // Its first packet may wait here, because the server was late itself.
            self.receive_batch(peer, Batch::new(TimeSlice::due(now_ns()), 1));
            if matches!(self.peers.state(peer), Some(PeerState::Silent { .. })) {
                self.close_peer(peer);
            }
        }
    }

    /// Handles packets of a peer in its program's part of this round. The poller reports again
    /// what is left.
    fn in_slice(&mut self, peer: u64, handle: impl FnOnce(&mut Self, TimeSlice)) {
        let Some(program) = self.peers.program(peer) else { return };
        let Some(slice) = self.round_robin.begin(program, now_ns()) else { return };
        handle(self, slice);
        self.round_robin.end(program, slice, now_ns());
    }

    fn receive_batch(&mut self, peer: u64, batch: Batch) {
        let mut buffer = std::mem::take(&mut self.packet);
        buffer.resize(MAX_PACKET_BYTES, 0);
        self.receive_into(&mut buffer, peer, batch);
        self.packet = buffer;
    }

    fn receive_into(&mut self, buffer: &mut [u8], peer: u64, mut batch: Batch) {
        while batch.takes_packet(now_ns()) {
            let received = self.peers.receive(PeerSocket::Requests(peer), buffer);
            let Some(ReceivedPacket { length, descriptors }) = received else { return };
            match length {
                Ok(bytes) => self.handle_packet(peer, &buffer[..bytes], descriptors),
                Err(SocketError::NotReady) => return,
                Err(
                    error @ (SocketError::TooLong
                    | SocketError::TooManyDescriptors
                    | SocketError::NoDescriptor { .. }),
                ) => {
                    let malformed = RequestError::Malformed(error.to_string());
                    if matches!(self.peers.state(peer), Some(PeerState::Silent { .. })) {
                        return self.send_away(peer, malformed);
                    }
                    self.refuse(Ticket { peer, number: 0 }, malformed);
                    if !descriptors.is_empty() {
                        return self.close_peer(peer);
                    }
                }
                Err(_) => return self.close_peer(peer),
            }
        }
    }

    fn handle_packet(&mut self, peer: u64, packet: &[u8], descriptors: Vec<Foreign<OwnedFd>>) {
        match self.peers.state(peer) {
            None => {}
            Some(PeerState::Silent { .. }) if !descriptors.is_empty() => {
                self.send_away(peer, unexpected_descriptors());
            }
            Some(PeerState::Silent { .. }) => self.greet(peer, packet),
            Some(PeerState::Waiting) => {
                let reason = "a request before the welcome".into();
                self.send_away(peer, RequestError::Malformed(reason));
            }
            Some(PeerState::Observer) => self.handle_numbered(peer, None, packet, descriptors),
            Some(PeerState::Client(client)) => {
                self.handle_numbered(peer, Some(client), packet, descriptors)
            }
        }
    }

    fn handle_numbered(
        &mut self,
        peer: u64,
        client: Option<u32>,
        packet: &[u8],
        descriptors: Vec<Foreign<OwnedFd>>,
    ) {
        let had_descriptors = !descriptors.is_empty();
        let (ticket, refused) = match decode::<Numbered<Request>>(packet) {
            Ok(Numbered { number, message }) => {
                let ticket = Ticket { peer, number };
                if let Request::Stream(request) = message {
                    return self.answer_stream(ticket, request, descriptors);
                }
                let is_slab = client.is_some() && message == Request::AddSlab;
                match checked_slab(is_slab, descriptors) {
                    Ok(slab) => return self.request(ticket, client, message, slab),
                    Err(error) => (ticket, error),
                }
            }
            Err(error) => (Ticket { peer, number: 0 }, RequestError::Malformed(error.to_string())),
        };
        self.refuse(ticket, refused);
        // Each descriptor may keep a thread for as long as its sender likes, so a connection has
        // one try.
        // MUTATION: handle_numbered.descriptors_without_end
        if had_descriptors {
            self.close_peer(peer);
        }
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, error: RequestError) {
        self.reply(ticket, Reply::Error(error));
    }

    /// Answers a request. A peer that does not take its answers is closed: it waits for each of
    /// them.
    pub(super) fn reply(&mut self, ticket: Ticket, reply: Reply) {
        let peer = ticket.peer;
        // MUTATION: reply.deaf_peer_stays
        if !self.peers.reply(ticket, reply) {
            self.close_peer(peer);
        }
    }

    fn handle_event_socket(&mut self, peer: u64, is_writable: bool) {
        let Some(PeerState::Client(client)) = self.peers.state(peer) else { return };
        if is_writable {
            self.flush(client, true);
        }
        self.in_slice(peer, |control, slice| {
            control.receive_answers(peer, client, Batch::new(slice, 4 * IN_A_ROW));
        });
    }

    fn receive_answers(&mut self, peer: u64, client: u32, mut batch: Batch) {
        let mut buffer = [0; ANSWER_BYTES];
        while batch.takes_packet(now_ns()) {
            let received = self.peers.receive(PeerSocket::Events(peer), &mut buffer);
            let Some(ReceivedPacket { length, descriptors }) = received else { return };
            if !descriptors.is_empty() {
                return self.close_peer(peer);
            }
            match length {
                Ok(bytes) => {
                    if let Ok(answer) = decode::<Answer>(&buffer[..bytes]) {
                        self.answered(client, answer);
                    }
                }
                Err(SocketError::NotReady) => return,
                Err(
                    SocketError::TooLong
                    | SocketError::TooManyDescriptors
                    | SocketError::NoDescriptor { .. },
                ) => {}
                Err(_) => return self.close_peer(peer),
            }
        }
    }

    fn answered(&mut self, client: u32, answer: Answer) {
        let (token, done) = match answer {
            Answer::Mapped { token } | Answer::Called { token } => (token, true),
            Answer::NotMapped { token } => (token, false),
            Answer::Session { token, answer } => {
                return self.services.sessions.answered(client, token, answer, &self.model);
            }
        };
        // A token belongs to one of them; the others do not know it.
        if self.clients.mapping_answered(client, token, done) {
            self.publisher.need_soon(now_ns());
        }
        self.latencies.callbacks.answered(client, token);
        self.callback_returned(client, token);
    }

    /// Sends all clients their events.
    pub(super) fn flush_outboxes(&mut self) {
        let can_flush = self.clients.slots.iter().filter(|(_, slot)| slot.outbox.can_flush());
        let clients: Vec<u32> = can_flush.map(|(client, _)| *client).collect();
        clients.into_iter().for_each(|client| self.flush(client, false));
    }

    /// Sends one client its events.
    pub(super) fn flush_outbox(&mut self, client: u32) {
        if self.clients.slots.get(&client).is_some_and(|slot| slot.outbox.can_flush()) {
            self.flush(client, false);
        }
    }

    fn flush(&mut self, client: u32, was_full: bool) {
        let Some(slot) = self.clients.slots.get_mut(&client) else { return };
        let peer = slot.peer;
        if !self.peers.send_events(peer, &mut slot.outbox, was_full, &self.poller) {
            self.close_peer(peer);
        }
    }

    /// Closes a peer, and the client that it is.
    pub(super) fn close_peer(&mut self, peer: u64) {
        // MUTATION: close_peer.streams_play_on
        self.end_streams_of(peer);
        if let Some(PeerState::Client(client)) = self.peers.remove(peer, &self.poller) {
            self.remove_client(client);
        }
    }

    /// Removes a client from every owner's state.
    fn remove_client(&mut self, client: u32) {
        self.take_over_transport_requests(client);
        // Fails if it is not the master.
        let _ = self.release_timebase(client);
        let Some(slot) = self.clients.slots.remove(&client) else { return };
        slot.health.note_departed();
        // Its process may live on with these pages mapped.
        // MUTATION: remove_client.pages_not_revoked
        self.clients.revoke_pages(&slot.pages.keys(|_| true));
        self.model.close_client(client);
        self.services.sessions.forget(client);
        self.clients.forget_mappings_of(client, self.publisher.next_generation());
        self.notifications.forget(client);
        self.latencies.callbacks.forget(client);
        self.forget_callbacks_of(client);
        self.publisher.need(now_ns());
        self.carry_changes();
    }

    /// Tells all clients that the server stops.
    pub(super) fn announce_end(&mut self, reason: &str) {
        // Also reaches clients whose sockets are full.
        self.engine().note_stopped();
        for slot in self.clients.slots.values_mut() {
            slot.outbox.push(&Event::Shutdown { reason: reason.into() });
            self.peers.send_events(slot.peer, &mut slot.outbox, false, &self.poller);
        }
    }
}

fn unexpected_descriptors() -> RequestError {
    RequestError::Malformed("this packet must not carry a descriptor".into())
}

/// The one descriptor of a packet that brings a slab, and of no other packet. Until it is known to
/// be a slab, its close may last.
fn checked_slab(
    is_slab: bool,
    descriptors: Vec<Foreign<OwnedFd>>,
) -> Result<Option<OwnedFd>, RequestError> {
    if !is_slab {
        return if descriptors.is_empty() { Ok(None) } else { Err(unexpected_descriptors()) };
    }
    let [slab] = <[Foreign<OwnedFd>; 1]>::try_from(descriptors).map_err(|all| {
        RequestError::Memory(format!("one descriptor is expected, {} came", all.len()))
    })?;
    let examined = slab.get().map_or(Ok(()), PeerSlab::examine);
    examined.map_err(|error| RequestError::Memory(error.to_string()))?;
    Ok(slab.into_inner())
}
