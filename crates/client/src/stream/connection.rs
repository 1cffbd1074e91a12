//! Streams of a program that is no client: opened over a socket, used on mapped memory.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use proto::limits::STREAMS_AT_ONCE;
use proto::request::{PortType, Reply, Request, RequestError};
use proto::stream::{
    Direction, Gain, NewStream, StreamReply, StreamRequest, StreamStatus, UNCONNECTED, Volume,
};
use rt::shm::{RingSamples, RingShape, StreamPage};
use sys::runtime_directory::ControlSockets;

use super::control::OwnWishes;
use super::opening::{begin_recording, open, wanted_shape};
use super::returning::close;
use super::server::{ServerAddress, ServerSocket, StreamServer};
use super::{PlannedPlayback, PlaybackStream, RecordStream, StreamControl, StreamReader};
use crate::Error;
use crate::registry_view::PortInfo;
use crate::requests::{Requests, server_name};

/// A connection for streams. It takes no part in cycles, starts no threads, and needs no real-time
/// rights. When it ends, its streams fade out.
///
/// Streams outlive their server, if their program looks for the next one
/// ([`await_next`](Self::await_next)) once the connection is readable, and has no
/// [answers](Self::take_answers).
#[derive(Debug)]
pub struct StreamConnection {
    server: Arc<StreamServer>,
}

/// A playback stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybackOptions {
    /// Name of the program, for users.
    pub program: String,
    /// Name of what is played, for users.
    pub name: String,
    /// Name of the device; `None`: the one that drives.
    pub device: Option<String>,
    /// The device's channel for each channel of the stream, 1 to 32 of them.
    pub channels: Vec<u32>,
    /// How far ahead of the hardware the device may render, frames: the longer, the longer
    /// everything sleeps. Wishes take effect at once all the same.
    pub depth_frames: u32,
    /// How its samples lie in the ring. The server computes with floats in any case; frames of 16
    /// bits, of two channels at most, take half of the memory.
    pub samples: RingSamples,
}

/// A record stream to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOptions {
    /// Name of the program, for users.
    pub program: String,
    /// Name of what it records for, for users.
    pub name: String,
    /// Name of the device; `None`: the one that drives.
    pub device: Option<String>,
    /// Whether to record what leaves the device, instead of what it captures.
    pub monitor: bool,
    /// The device's channel for each channel of the stream, 1 to 32 of them.
    pub channels: Vec<u32>,
    /// How long the device may keep frames, which is how often it wakes for them, frames.
    pub interval_frames: u32,
    /// Whether the device may sleep while nothing else needs it: there are no frames then. Meters
    /// need no others.
    pub lets_sleep: bool,
}

impl StreamConnection {
    /// Connects to a server. `None` selects `JACK_DEFAULT_SERVER`, or else `default`.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open(server: Option<&str>) -> Result<Self, Error> {
        let socket = ServerSocket::Environment(Box::new(ControlSockets::of_environment()?));
        Self::connect(Arc::new(ServerAddress { name: server_name(server)?, socket }))
    }

    /// Connects to the control socket at this path, of a server named `server`.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open_at(socket: &Path, server: &str) -> Result<Self, Error> {
        let socket = ServerSocket::Path(socket.to_owned());
        Self::connect(Arc::new(ServerAddress { name: server.to_owned(), socket }))
    }

    pub(super) fn connect(address: Arc<ServerAddress>) -> Result<Self, Error> {
        Ok(Self { server: Arc::new(StreamServer::connect(address)?) })
    }

    pub(super) fn server(&self) -> &Arc<StreamServer> {
        &self.server
    }

    pub(super) fn requests(&self) -> &Requests {
        &self.server.requests
    }

    /// Returns the streams of all programs, by number.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn streams(&self) -> Result<Vec<StreamStatus>, Error> {
        streams(self.requests())
    }

    /// Changes the server's volume of a stream; what is `None` stays as it is. Returns the volume
    /// from now on. It is heard within milliseconds, in a ramp.
    ///
    /// A program may change the volume of its own streams; that of others if the server's policy
    /// lets it.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such stream, or the program may not change it;
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn set_volume(
        &self,
        stream: u32,
        gain: Option<Gain>,
        muted: Option<bool>,
    ) -> Result<Volume, Error> {
        set_volume(self.requests(), stream, gain, muted)
    }

    /// Opens a playback stream. The server may grant less depth than is asked for.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason; [`Error::Memory`] if there is no memory for the
    /// ring; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn play(&self, options: PlaybackOptions) -> Result<PlaybackStream, Error> {
        let new = new_playback(0, options);
        match wanted_shape(&new) {
            Some(shape) => self.expect(new, shape).begin(),
            // The server says what is wrong with it.
            None => self.grant(new)?.begin(),
        }
    }

    /// Asks for a playback stream for another program, one of those that this process plays for:
    /// the streams of an account count together, not with those of this process. What the server
    /// grants is known before the memory of the stream is made.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn grant_for(
        &self,
        account: u32,
        options: PlaybackOptions,
    ) -> Result<PlannedPlayback, Error> {
        self.grant(new_playback(account, options))
    }

    /// The same, but the server is asked when the stream [begins](PlannedPlayback::begin). `None`
    /// unless it has granted the last stream in full, with no smaller a ring.
    #[must_use]
    pub fn expect_for(&self, account: u32, options: &PlaybackOptions) -> Option<PlannedPlayback> {
        let new = new_playback(account, options.clone());
        let shape = wanted_shape(&new).filter(|shape| self.server.has_granted(*shape))?;
        Some(self.expect(new, shape))
    }

    fn expect(&self, new: NewStream, shape: RingShape) -> PlannedPlayback {
        PlannedPlayback::expected(Arc::clone(&self.server), new, shape)
    }

    /// Opens a playback stream whose first frame has this position, for a program that can convert
    /// what it plays for another device. Where the stream is moved to a device of another rate, or
    /// with fewer channels, it plays on, and its [status](PlaybackStream::status) names that device
    /// as wanted: the program is to hold the stream, open another one there from the same moment
    /// on, and drop this one. A [`ServerWatch`](super::ServerWatch) is readable then.
    ///
    /// # Errors
    /// Those of [`play`](Self::play).
    pub fn play_reopening(
        &self,
        options: PlaybackOptions,
        position: u64,
    ) -> Result<PlaybackStream, Error> {
        let new = NewStream { reopens: true, ..new_playback(0, options) };
        self.grant(new)?.begin_at(position)
    }

    /// Reads the answers that nobody waits for: to requests with the memory of streams that were
    /// [started](PlannedPlayback::start). For when the connection is readable.
    ///
    /// # Errors
    /// [`Error::ServerGone`].
    pub fn take_answers(&self) -> Result<(), Error> {
        self.requests().take_answers()
    }

    fn grant(&self, new: NewStream) -> Result<PlannedPlayback, Error> {
        let grant = open(self.requests(), new.clone());
        let granted = grant.as_ref().ok().map(|grant| grant.shape);
        self.server.note_grant(granted.filter(|granted| wanted_shape(&new) == Some(*granted)));
        Ok(PlannedPlayback::granted(Arc::clone(&self.server), new, grant?))
    }
}

fn new_playback(account: u32, options: PlaybackOptions) -> NewStream {
    let PlaybackOptions { program, name, device, channels, depth_frames, samples } = options;
    NewStream {
        program,
        name,
        device,
        direction: Direction::Playback,
        channels,
        depth_frames,
        samples: samples.code(),
        account,
        lets_sleep: false,
        reopens: false,
    }
}

impl StreamConnection {
    /// Opens a record stream. The server may wake for it more often than is asked for.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason: also if its policy does not let this program
    /// hear that; [`Error::Memory`]; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn record(&self, options: RecordOptions) -> Result<RecordStream, Error> {
        self.record_for(0, options)
    }

    /// Opens a record stream for a program that can convert what another device plays: where a
    /// stream that monitors is moved to a device of another rate, or with fewer channels, it
    /// records on, and its [status](RecordStream::status) names that device as wanted. The program
    /// is to hold the stream, read what is left of it, and open another one there.
    ///
    /// # Errors
    /// Those of [`record`](Self::record).
    pub fn record_reopening(&self, options: RecordOptions) -> Result<RecordStream, Error> {
        self.open_recording(NewStream { reopens: true, ..new_recording(0, options) }, &[])
    }

    /// Opens a record stream for another program, which counts as one of
    /// [`grant_for`](Self::grant_for).
    ///
    /// # Errors
    /// Those of [`record`](Self::record).
    pub fn record_for(&self, account: u32, options: RecordOptions) -> Result<RecordStream, Error> {
        self.open_recording(new_recording(account, options), &[])
    }

    /// Opens a record stream in the graph: each channel records the output port of that number in
    /// `sources`, by its full name, instead of a channel of a device. The stream's ports can be
    /// connected with others later.
    ///
    /// # Errors
    /// Those of [`record`](Self::record); [`Error::Refused`] if one of the ports is not there, or
    /// the policy does not let this program connect it.
    pub fn record_ports(
        &self,
        options: RecordOptions,
        sources: &[String],
    ) -> Result<RecordStream, Error> {
        let channels = vec![UNCONNECTED; sources.len()];
        let options = RecordOptions { device: None, monitor: false, channels, ..options };
        self.open_recording(new_recording(0, options), sources)
    }

    /// Returns the full names of a client's audio outputs, in their order; none if there is no such
    /// client.
    #[must_use]
    pub fn outputs_of(&self, client: &str) -> Vec<String> {
        let ports = self.server.registry().ports();
        let is_of_client =
            |name: &str| name.strip_prefix(client).is_some_and(|rest| rest.starts_with(':'));
        let is_output = |port: &PortInfo| port.is_output() && port.port_type == PortType::Audio;
        let outputs = ports.filter(|port| is_output(port) && is_of_client(&port.name));
        outputs.map(|port| port.name).collect()
    }

    fn open_recording(&self, new: NewStream, sources: &[String]) -> Result<RecordStream, Error> {
        let grant = open(self.requests(), new.clone())?;
        let connected = self.connect_inputs(&grant.ports, sources);
        if connected.is_err() {
            close(self.requests(), grant.stream);
        }
        connected?;
        let (grant, ring, wishes) = begin_recording(self.requests(), grant, 0)?;
        let control = StreamControl::new(OwnWishes::OnPage(wishes), grant.page);
        let reader = StreamReader::new(ring, control);
        Ok(RecordStream::new(Arc::clone(&self.server), grant.stream, new, reader))
    }

    /// Connects the ports of a stream that records with these outputs, and with no others that are
    /// remembered for them.
    fn connect_inputs(&self, ports: &[u32], sources: &[String]) -> Result<(), Error> {
        let registry = self.server.registry();
        for (port, wanted) in ports.iter().zip(sources) {
            let Some(port) = registry.port(*port) else { continue };
            let there = registry.connections(port.id).into_iter();
            let there: Vec<String> =
                there.filter_map(|other| Some(registry.port(other)?.name)).collect();
            for source in there.iter().filter(|source| *source != wanted) {
                let (source, destination) = (source.clone(), port.name.clone());
                self.requests().request(Request::Disconnect { source, destination })?;
            }
            if !there.contains(wanted) {
                let (source, destination) = (wanted.clone(), port.name);
                self.requests().request(Request::Connect { source, destination })?;
            }
        }
        Ok(())
    }
}

fn new_recording(account: u32, options: RecordOptions) -> NewStream {
    let RecordOptions { program, name, device, monitor, channels, .. } = options;
    NewStream {
        program,
        name,
        device,
        direction: if monitor { Direction::Monitor } else { Direction::Record },
        channels,
        depth_frames: options.interval_frames,
        samples: RingSamples::Planes.code(),
        account,
        lets_sleep: options.lets_sleep,
        reopens: false,
    }
}

/// Readable once the server has gone, and when it has [answers](StreamConnection::take_answers)
/// about streams that were started.
impl AsFd for StreamConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests().socket().as_fd()
    }
}

pub(super) fn ask(requests: &Requests, request: StreamRequest) -> Result<StreamReply, Error> {
    match requests.ask(Request::Stream(request), &[])? {
        Reply::Stream(reply) => Ok(reply),
        _ => Err(Error::OTHER_REPLY),
    }
}

/// Changes the server's volume of a stream.
pub(crate) fn set_volume(
    requests: &Requests,
    stream: u32,
    gain: Option<Gain>,
    muted: Option<bool>,
) -> Result<Volume, Error> {
    match ask(requests, StreamRequest::SetVolume { stream, gain, muted })? {
        StreamReply::Volume(volume) => Ok(volume),
        _ => Err(Error::OTHER_REPLY),
    }
}

/// Returns the server's volume of a stream, as its server has published it last.
pub(super) fn published_volume(page: &StreamPage) -> Volume {
    page.state().map_or_else(Volume::default, |state| Volume {
        gain: Gain::new(state.gain).unwrap_or_default(),
        muted: state.muted,
    })
}

/// Returns what the server says of a stream.
pub(super) fn status(requests: &Requests, stream: u32) -> Result<StreamStatus, Error> {
    let after = stream.saturating_sub(1);
    let StreamReply::Streams(some) = ask(requests, StreamRequest::List { after })? else {
        return Err(Error::OTHER_REPLY);
    };
    let ended = || Error::Refused(RequestError::Failed("the server has ended the stream".into()));
    some.into_iter().find(|status| status.stream == stream).ok_or_else(ended)
}

/// Returns the streams of all programs.
pub(crate) fn streams(requests: &Requests) -> Result<Vec<StreamStatus>, Error> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let StreamReply::Streams(some) = ask(requests, StreamRequest::List { after })? else {
            return Err(Error::OTHER_REPLY);
        };
        let are_more = some.len() == STREAMS_AT_ONCE;
        after = some.last().map_or(after, |last| last.stream);
        all.extend(some);
        if !are_more {
            return Ok(all);
        }
    }
}
