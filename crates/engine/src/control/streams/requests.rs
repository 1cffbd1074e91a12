//! The packets about streams, and what follows from them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use proto::limits::MAX_STREAM_POSITION;
use proto::request::{Reply, RequestError};
use proto::stream::{Direction, NewStream, StreamReply, StreamRequest};
use rt::shm::{RingShape, WishPage};
use sys::clock::now_ns;
use sys::memory::{PeerRing, SegmentError, Shared};

use super::admission::{Granted, check_request};
use super::beginning::Beginning;
use super::refused;
use super::roles::roles;
use crate::control::Control;
use crate::control::ticket::Ticket;
use crate::policy::refusal;
use crate::stream_budget::Account;
use sys::disposal::Foreign;

impl Control {
    /// Answers a request about streams, with the descriptors that came with it.
    ///
    /// Any peer may play: that is what a program in a sandbox is for.
    pub(in crate::control) fn answer_stream(
        &mut self,
        ticket: Ticket,
        request: StreamRequest,
        descriptors: Vec<Foreign<OwnedFd>>,
    ) {
        let peer = ticket.peer;
        if let StreamRequest::Begin { stream, position } = request {
            return self.begin_stream(ticket, (stream, position), descriptors);
        }
        if !descriptors.is_empty() {
            let reason = "this packet must not carry a descriptor".into();
            self.refuse(ticket, RequestError::Malformed(reason));
            return self.close_peer(peer);
        }
        let answer = match request {
            StreamRequest::Device { device } => self.stream_device(device.as_deref()),
            StreamRequest::Devices => Ok(StreamReply::Devices(self.streams.devices.statuses())),
            StreamRequest::AwaitChange { seen, of } => {
                if let Err(ticket) = self.streams.watches.wait(ticket, seen, of) {
                    let reason = "this connection waits for a change already";
                    self.refuse(ticket, RequestError::Failed(reason.into()));
                }
                return;
            }
            StreamRequest::Add(new) => return self.add_device(ticket, new),
            StreamRequest::Remove { device } => self.remove_device(peer, &device),
            StreamRequest::Roles => Ok(StreamReply::Roles(roles(&self.model))),
            StreamRequest::List { after } => {
                Ok(StreamReply::Streams(self.streams.statuses_after(after, now_ns())))
            }
            StreamRequest::Open(new) if self.expects_returning_clients() => {
                return self.let_wait(ticket, new);
            }
            StreamRequest::Open(new) => return self.answer_open(ticket, new),
            StreamRequest::Call { stream } => self.call_for(peer, stream),
            StreamRequest::SetVolume { stream, gain, muted } => {
                self.set_volume(peer, stream, (gain, muted)).map(StreamReply::Volume)
            }
            StreamRequest::SetDeviceVolume { device, gains, muted } => {
                let volume = self.set_device_volume(peer, device.as_deref(), (gains, muted));
                volume.map(StreamReply::DeviceVolume)
            }
            StreamRequest::Move { stream, device } => {
                self.move_stream(peer, stream, device.as_deref())
            }
            StreamRequest::Close { stream } => self.close_stream(peer, stream),
            StreamRequest::Begin { .. } => return,
        };
        match answer {
            Ok(reply) => self.reply(ticket, Reply::Stream(reply)),
            Err(error) => self.refuse(ticket, error),
        }
    }

    fn answer_open(&mut self, ticket: Ticket, new: NewStream) {
        let peer = ticket.peer;
        match self.open_stream(peer, new) {
            Ok(Granted { stream, shape, page }) => {
                let reply = Reply::Stream(self.streams.granted(stream, shape));
                if !self.peers.reply_with(ticket, reply, vec![Arc::new(page)]) {
                    self.close_peer(peer);
                }
            }
            Err(error) => self.refuse(ticket, error),
        }
    }

    fn open_stream(&mut self, peer: u64, new: NewStream) -> Result<Granted, RequestError> {
        let direction = new.direction;
        self.check_direction(peer, direction)?;
        let process = self.peers.watch(peer, &self.poller).unwrap_or(0);
        let granted = self.streams.open(peer, process, new, &self.settings.driver)?;
        // What a monitor hears is no port.
        if direction != Direction::Monitor && self.streams.drives(granted.stream) {
            self.plug_in(granted.stream)?;
        }
        Ok(granted)
    }

    /// Keeps a request for a stream until clients that return from another server have had their
    /// time: its client must not take their names or numbers.
    fn let_wait(&mut self, ticket: Ticket, new: NewStream) {
        // What is kept is small, and what is wrong needs no patience.
        if let Err(error) = check_request(&new) {
            return self.refuse(ticket, error);
        }
        let process = self.peers.watch(ticket.peer, &self.poller).unwrap_or(0);
        let account = Account::of(process, new.account);
        if let Err(ticket) = self.streams.waiting.add(ticket, account, new) {
            let reason = "the server has just started: ask again in a second";
            self.refuse(ticket, RequestError::Failed(reason.into()));
        }
    }

    /// Opens the streams that have waited for clients which return from another server.
    fn open_waiting_streams(&mut self) {
        if self.expects_returning_clients() {
            return;
        }
        for (ticket, new) in self.streams.waiting.take() {
            if self.peers.state(ticket.peer).is_none() {
                continue;
            }
            self.answer_open(ticket, new);
        }
    }

    fn call_for(&mut self, peer: u64, stream: u32) -> Result<StreamReply, RequestError> {
        let device = self.streams.of_peer(peer, stream)?.home();
        if let Some(device) = self.streams.devices.get_mut(device) {
            device.calls.add(stream, now_ns());
        }
        self.call_if_due();
        Ok(StreamReply::Called)
    }

    fn close_stream(&mut self, peer: u64, stream: u32) -> Result<StreamReply, RequestError> {
        self.streams.close(peer, stream)?;
        self.unplug_ended();
        Ok(StreamReply::Closed)
    }

    fn begin_stream(
        &mut self,
        ticket: Ticket,
        (stream, position): (u32, u64),
        descriptors: Vec<Foreign<OwnedFd>>,
    ) {
        let peer = ticket.peer;
        let memory = match self.received_memory(peer, (stream, position), descriptors) {
            Ok(memory) => memory,
            Err(error) => {
                self.refuse(ticket, error);
                // Each descriptor may keep a thread for as long as its sender likes, so a
                // connection has one try.
                // MUTATION: begin_stream.descriptors_without_end
                return self.close_peer(peer);
            }
        };
        match self.begun(peer, (stream, position), memory) {
            Ok(Beginning::Begun { ring, stream }) => {
                let reply = Reply::Stream(StreamReply::Begun);
                let memory = ring.into_iter().map(Arc::new).collect();
                let is_there = self.peers.reply_with(ticket, reply, memory);
                if self.streams.start(stream, &self.settings.driver) {
                    self.publisher.need(now_ns());
                }
                // After the start: its device's thread gives a stream back that ends.
                if !is_there {
                    self.close_peer(peer);
                }
            }
            Ok(Beginning::TooLarge(shape)) => {
                let granted = self.streams.granted(stream, shape);
                self.reply(ticket, Reply::Stream(granted));
            }
            // The other streams of the connection play on.
            Err(error) => self.refuse(ticket, error),
        }
    }

    /// Returns the memory of a stream, if that is what came, and it can begin at this position.
    fn received_memory(
        &self,
        peer: u64,
        (stream, position): (u32, u64),
        descriptors: Vec<Foreign<OwnedFd>>,
    ) -> Result<Memory, RequestError> {
        let shape = self.streams.awaited_shape(peer, stream)?;
        // MUTATION: begun.at_any_position
        if position > MAX_STREAM_POSITION {
            return Err(refused(format!("no stream can have come to position {position}")));
        }
        match self.streams.of_peer(peer, stream)?.direction {
            Direction::Playback => checked_ring(shape, descriptors),
            Direction::Record | Direction::Monitor => checked_wishes(descriptors),
        }
    }

    fn begun(
        &mut self,
        peer: u64,
        (stream, position): (u32, u64),
        memory: Memory,
    ) -> Result<Beginning, RequestError> {
        let (place, device) = ((stream, position), &self.settings.driver);
        let locking = self.clients.locking;
        match memory {
            Memory::Ring(ring) => self.streams.begin(peer, place, ring, device, locking),
            Memory::Wishes(wishes) => {
                self.streams.begin_recording(peer, place, wishes, device, locking)
            }
        }
    }

    /// A program may play under any policy, which harms no other; to hear others or what is
    /// captured, it needs the permission that a client's ports need.
    fn check_direction(&self, peer: u64, direction: Direction) -> Result<(), RequestError> {
        let permissions = self.peers.permissions(peer);
        let (allowed, what) = match direction {
            Direction::Playback => (true, ""),
            Direction::Record => (permissions.capture, "record what the device captures"),
            // MUTATION: check_direction.monitored_by_anyone
            Direction::Monitor => (permissions.record, "record what other programs play"),
        };
        if allowed { Ok(()) } else { Err(refusal(what)) }
    }

    /// Carries out what the devices' threads have returned, and calls them for programs.
    pub(in crate::control) fn step_streams(&mut self) {
        if self.driver_called {
            self.streams.devices_called();
        }
        self.streams.take_returns();
        self.begin_opened_devices();
        self.begin_arrivals();
        self.unplug_ended();
        self.open_waiting_streams();
        self.call_if_due();
    }

    /// Answers the programs that wait for a change, if there was one.
    pub(in crate::control) fn answer_watches(&mut self) {
        for (ticket, number) in self.streams.watches.take_due(self.registry.changes()) {
            self.reply(ticket, Reply::Stream(StreamReply::Changed { number }));
        }
    }

    pub(super) fn call_if_due(&mut self) {
        self.streams.call_if_due(now_ns());
    }

    /// Ends the streams of a peer that has gone.
    pub(in crate::control) fn end_streams_of(&mut self, peer: u64) {
        self.streams.peer_gone(peer);
        self.unplug_ended();
    }

    /// The device that drives is opened for other samples.
    pub(in crate::control) fn stream_driver_changed(&mut self) {
        self.streams.watches.note_change();
    }

    /// Populates some of what is left of rings; returns when more is to be populated, if there is
    /// any.
    pub(in crate::control) fn populate_rings(&mut self) -> Option<u64> {
        self.streams.populate(now_ns)
    }

    /// When a step is due that no event brings.
    pub(in crate::control) fn next_call_ns(&self) -> Option<u64> {
        self.streams.devices.all().filter_map(|device| device.calls.due_ns()).min()
    }
}

/// The memory that a program sends for a stream.
#[derive(Debug)]
enum Memory {
    /// Of one that plays: its ring, in which its wishes lie.
    Ring(OwnedFd),
    /// Of one that records: its wish page.
    Wishes(OwnedFd),
}

/// The ring of a stream that plays. Until it is known to be that, its close may last.
fn checked_ring(
    shape: RingShape,
    descriptors: Vec<Foreign<OwnedFd>>,
) -> Result<Memory, RequestError> {
    checked(descriptors, |ring| PeerRing::examine(ring, shape)).map(Memory::Ring)
}

/// The wish page of a stream that records.
fn checked_wishes(descriptors: Vec<Foreign<OwnedFd>>) -> Result<Memory, RequestError> {
    checked(descriptors, |page| Shared::<WishPage>::examine(page)).map(Memory::Wishes)
}

fn checked(
    descriptors: Vec<Foreign<OwnedFd>>,
    examine: impl FnOnce(BorrowedFd<'_>) -> Result<(), SegmentError>,
) -> Result<OwnedFd, RequestError> {
    let [memory] = <[Foreign<OwnedFd>; 1]>::try_from(descriptors).map_err(|all| {
        RequestError::Memory(format!("one descriptor is expected, {} came", all.len()))
    })?;
    let wrong = |error: SegmentError| RequestError::Memory(error.to_string());
    memory.get().map_or(Ok(()), |memory| examine(memory.as_fd())).map_err(wrong)?;
    memory.into_inner().ok_or_else(|| RequestError::Memory("a descriptor is missing".into()))
}
