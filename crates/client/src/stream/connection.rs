//! Streams of a program that is no client: opened over a socket, used on mapped memory.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use proto::hello::{Role, Welcome};
use proto::limits::STREAMS_AT_ONCE;
use proto::request::{Reply, Request};
use proto::stream::{
    Direction, Gain, NewStream, StreamReply, StreamRequest, StreamStatus, Volume, VolumeOf,
};
use rt::shm::{RingShape, WishPage};
use sys::memory::{OwnRing, PeerRing, Shared};
use sys::runtime_directory::ControlSockets;

use super::{PlaybackStream, RecordStream, StreamControl, StreamReader, StreamWriter};
use crate::Error;
use crate::requests::{Introduction, Requests, introduce, introduce_at, server_name};

/// A connection for streams. It takes no part in cycles, starts no threads, and needs no real-time
/// rights. When it ends, its streams fade out.
#[derive(Debug)]
pub struct StreamConnection {
    requests: Arc<Requests>,
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

/// The answer does not belong to the request.
const OTHER_REPLY: Error = Error::OTHER_REPLY;

impl StreamConnection {
    /// Connects to a server. `None` selects `JACK_DEFAULT_SERVER`, or else `default`.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open(server: Option<&str>) -> Result<Self, Error> {
        let (sockets, server) = (ControlSockets::of_environment()?, server_name(server)?);
        Self::introduced(introduce(&sockets, &server, Role::Observer)?)
    }

    /// Connects to the control socket at this path, of a server named `server`.
    ///
    /// # Errors
    /// [`Error::NoServer`] and the other errors of connecting.
    pub fn open_at(socket: &Path, server: &str) -> Result<Self, Error> {
        Self::introduced(introduce_at(socket, server, Role::Observer)?)
    }

    fn introduced(introduction: Introduction) -> Result<Self, Error> {
        if introduction.welcome != Welcome::Observer {
            return Err(Error::Protocol("it did not welcome a program with streams"));
        }
        Ok(Self { requests: Arc::new(introduction.requests) })
    }

    pub(super) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Returns the streams of all programs, by number.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn streams(&self) -> Result<Vec<StreamStatus>, Error> {
        streams(&self.requests)
    }

    /// Changes the server's volume of a stream or of a device; what is `None` stays as it is.
    /// Returns the volume from now on. It is heard within milliseconds, in a ramp.
    ///
    /// A program may change the volume of its own streams; that of others, and of devices, if
    /// the server's policy lets it.
    ///
    /// # Errors
    /// [`Error::Refused`] if there is no such stream or device, or the program may not change it;
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn set_volume(
        &self,
        of: VolumeOf,
        gain: Option<Gain>,
        muted: Option<bool>,
    ) -> Result<Volume, Error> {
        set_volume(&self.requests, of, gain, muted)
    }

    /// Opens a playback stream. The server may grant less depth than is asked for.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason; [`Error::Memory`] if there is no memory for the
    /// ring; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn play(&self, options: PlaybackOptions) -> Result<PlaybackStream, Error> {
        self.play_for(0, options)
    }

    /// Opens a playback stream for another program, one of those that this process plays for: the
    /// streams of an account count together, not with those of this process.
    ///
    /// # Errors
    /// Those of [`play`](Self::play).
    pub fn play_for(
        &self,
        account: u32,
        options: PlaybackOptions,
    ) -> Result<PlaybackStream, Error> {
        let PlaybackOptions { program, name, device, channels, depth_frames } = options;
        let count = u32::try_from(channels.len()).unwrap_or(u32::MAX);
        let new = NewStream {
            program,
            name,
            device,
            direction: Direction::Playback,
            channels,
            depth_frames,
            account,
            lets_sleep: false,
        };
        let mut reply = ask(&self.requests, StreamRequest::Open(new))?;
        loop {
            let (stream, shape) = granted(&reply, count)?;
            let ring = OwnRing::create(shape)?;
            let (wishes, memfd) = Shared::<WishPage>::for_readers("consort-wishes")?;
            let segment = ring.segment().fd();
            let memory = [segment.as_fd(), memfd.as_fd()];
            let begin = Request::Stream(StreamRequest::Begin { stream });
            let (answer, mut descriptors) = self.requests.ask_for_memory(begin, &memory)?;
            let Reply::Stream(answer) = answer else { return Err(OTHER_REPLY) };
            if answer != StreamReply::Begun {
                reply = answer;
                continue;
            }
            let page = descriptors.pop().ok_or(Error::Protocol("it did not send its page"))?;
            let control = StreamControl::new(wishes, Shared::receive(page)?);
            let writer = StreamWriter::new(ring, control);
            return Ok(PlaybackStream::new(Arc::clone(&self.requests), stream, shape, writer));
        }
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

    /// Opens a record stream for another program, as [`play_for`](Self::play_for) does.
    ///
    /// # Errors
    /// Those of [`record`](Self::record).
    pub fn record_for(&self, account: u32, options: RecordOptions) -> Result<RecordStream, Error> {
        let RecordOptions { program, name, device, monitor, channels, .. } = options;
        let count = u32::try_from(channels.len()).unwrap_or(u32::MAX);
        let new = NewStream {
            program,
            name,
            device,
            direction: if monitor { Direction::Monitor } else { Direction::Record },
            channels,
            depth_frames: options.interval_frames,
            account,
            lets_sleep: options.lets_sleep,
        };
        let mut reply = ask(&self.requests, StreamRequest::Open(new))?;
        loop {
            let (stream, shape) = granted(&reply, count)?;
            let (wishes, memfd) = Shared::<WishPage>::for_readers("consort-wishes")?;
            let begin = Request::Stream(StreamRequest::Begin { stream });
            let (answer, descriptors) = self.requests.ask_for_memory(begin, &[memfd.as_fd()])?;
            let Reply::Stream(answer) = answer else { return Err(OTHER_REPLY) };
            if answer != StreamReply::Begun {
                reply = answer;
                continue;
            }
            let [page, ring] = <[OwnedFd; 2]>::try_from(descriptors)
                .map_err(|_| Error::Protocol("it did not send its page and its ring"))?;
            let control = StreamControl::new(wishes, Shared::receive(page)?);
            let reader = StreamReader::new(PeerRing::receive(ring, shape)?, control);
            return Ok(RecordStream::new(Arc::clone(&self.requests), stream, reader));
        }
    }
}

/// The stream and the ring that the server has granted.
fn granted(reply: &StreamReply, channels: u32) -> Result<(u32, RingShape), Error> {
    let StreamReply::Granted { stream, capacity_frames } = reply else { return Err(OTHER_REPLY) };
    let shape = RingShape::new(channels, *capacity_frames);
    Ok((*stream, shape.ok_or(Error::Protocol("it granted a ring that cannot be"))?))
}

/// Readable once the server has gone.
impl AsFd for StreamConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.socket().as_fd()
    }
}

pub(super) fn ask(requests: &Requests, request: StreamRequest) -> Result<StreamReply, Error> {
    match requests.ask(Request::Stream(request), &[])? {
        Reply::Stream(reply) => Ok(reply),
        _ => Err(OTHER_REPLY),
    }
}

/// Changes the server's volume of a stream or of a device.
pub(crate) fn set_volume(
    requests: &Requests,
    of: VolumeOf,
    gain: Option<Gain>,
    muted: Option<bool>,
) -> Result<Volume, Error> {
    match ask(requests, StreamRequest::SetVolume { of, gain, muted })? {
        StreamReply::Volume(volume) => Ok(volume),
        _ => Err(OTHER_REPLY),
    }
}

/// Returns the streams of all programs.
pub(crate) fn streams(requests: &Requests) -> Result<Vec<StreamStatus>, Error> {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let StreamReply::Streams(some) = ask(requests, StreamRequest::List { after })? else {
            return Err(OTHER_REPLY);
        };
        let are_more = some.len() == STREAMS_AT_ONCE;
        after = some.last().map_or(after, |last| last.stream);
        all.extend(some);
        if !are_more {
            return Ok(all);
        }
    }
}
