//! How a granted stream begins: its memory is mapped or made, kept in memory, and passed to the
//! thread of its device.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use mix::{Recorder, Source, Stream};
use proto::limits::DEVICE_NAME_BYTES;
use proto::request::RequestError;
use proto::stream::{Direction, StreamReply};
use rt::shm::{
    MAX_STREAM_CHANNELS, RingShape, STREAM_DEVICE_NAME_BYTES, StreamDeviceName, StreamState,
};
use sys::clock::now_ns;
use sys::memory::{PeerStream, RecordStream, RingNotLocked, SegmentError};

use super::device_end::{DeviceEnd, DeviceFacts};
use super::moving::Arrival;
use super::{DRIVER, OpenStream, State, Streams, refused, unknown};
use crate::device_stream::{DeviceRecorder, DeviceStream};
use crate::opening::DriverFacts;
use crate::realtime_limits::Locking;
use crate::stream_part::fade_frames;

/// What is kept of what leaves a device, seconds: its depth, and what a stream that records may
/// leave there.
const KEPT_SECONDS: usize = 4;
const MOST_KEPT_BYTES: usize = 64 << 20;
/// The same of all devices; not of loops that have ended, until they are back.
const MOST_KEPT_BYTES_OF_ALL: usize = 512 << 20;

// Every name of a device can be published.
const _: () = assert!(DEVICE_NAME_BYTES <= STREAM_DEVICE_NAME_BYTES);

/// What a program gets for the memory that it has sent.
#[derive(Debug)]
pub(in crate::control) enum Beginning {
    /// The stream has begun.
    Begun {
        /// For the program: the ring, if that is the server's.
        ring: Option<OwnedFd>,
        /// To be [started](Streams::start) once the program is answered.
        stream: Arrival,
    },
    /// This server could not lock it: a smaller ring is to be sent.
    TooLarge(RingShape),
}

impl Streams {
    /// Maps the ring of a granted stream, and populates the beginning of it. If memory is
    /// to be locked, the whole ring is counted as locked.
    pub(super) fn begin(
        &mut self,
        peer: u64,
        (number, position): (u32, u64),
        ring: OwnedFd,
        driver: &DriverFacts,
        locking: Locking,
    ) -> Result<Beginning, RequestError> {
        let (shape, page) = self.awaited(peer, number)?;
        let facts = self.facts_of(number, driver)?;
        let stream = PeerStream::receive(shape, ring, page).map_err(unusable)?;
        let stream = stream.beginning_at(position);
        if locking != Locking::Nothing
            && let Some(smaller) = lockable_instead(stream.reserve())?
        {
            return Ok(self.shrink(number, smaller));
        }
        let population = stream.population(facts.sample_rate_hz);
        let begun = self.populating.begin((number, facts.sample_rate_hz), population, now_ns());
        begun.map_err(|error| refused(not_populated(&error)))?;
        let Some(open) = self.streams.get_mut(&number) else { return Err(unknown(number)) };
        open.begin();
        open.ordered = open.routes;
        let memory = DeviceStream {
            stream: number,
            memory: stream,
            volume: Arc::clone(&open.gain),
            feed: open.feed.begin(),
        };
        let fade_frames = fade_frames(facts.sample_rate_hz);
        let stream = Stream::new(memory, open.routes, open.depth_frames, fade_frames)
            .beginning_at(position, fade_frames);
        self.show_state(number);
        Ok(Beginning::Begun { ring: None, stream: Arrival::Plays(Box::new(stream)) })
    }

    /// Passes a stream that has begun to its device's thread. Returns whether the driver thread has
    /// to take a plan to learn of it.
    pub(super) fn start(&mut self, stream: Arrival, driver: &DriverFacts) -> bool {
        let number = stream.number();
        let Some(open) = self.streams.get(&number) else { return false };
        let facts = self.devices.facts(open.device, driver);
        let Some(device) = self.devices.get_mut(open.device) else { return false };
        let plays = matches!(stream, Arrival::Plays(_));
        let begins = device.take_in(stream, open.direction, facts);
        if plays {
            // It holds until its program wishes otherwise.
            device.calls.need_later(now_ns());
        } else {
            device.shared.call();
        }
        begins && open.device == DRIVER
    }

    /// Makes the ring of a granted stream that records, and keeps it in memory.
    pub(super) fn begin_recording(
        &mut self,
        peer: u64,
        (number, position): (u32, u64),
        wishes: OwnedFd,
        driver: &DriverFacts,
        locking: Locking,
    ) -> Result<Beginning, RequestError> {
        let (shape, page) = self.awaited(peer, number)?;
        let facts = self.facts_of(number, driver)?;
        let open = self.of_peer(peer, number)?;
        self.check_kept(open.direction, open.device, facts)?;
        let (stream, ring) = RecordStream::create(shape, wishes, page).map_err(unusable)?;
        let stream = stream.beginning_at(position);
        if let Some(smaller) = kept_in_memory(locking, &stream)? {
            return Ok(self.shrink(number, smaller));
        }
        let Some(open) = self.streams.get_mut(&number) else { return Err(unknown(number)) };
        open.begin();
        let source = match open.direction {
            Direction::Monitor => Source::Monitor,
            Direction::Record | Direction::Playback => Source::Graph,
        };
        let routes = open.channels.iter().map(|channel| *channel as usize).collect();
        let (depth_frames, lets_sleep) = (open.depth_frames, open.lets_sleep);
        let memory_of = DeviceRecorder {
            stream: number,
            memory: stream,
            volume: Arc::clone(&open.gain),
            captured: open.channels.clone(),
        };
        let fade_frames = fade_frames(facts.sample_rate_hz);
        let recorder = Recorder::new(memory_of, source, routes, depth_frames, fade_frames)
            .beginning_at(position);
        let recorder = if lets_sleep { recorder.letting_sleep() } else { recorder };
        self.show_state(number);
        Ok(Beginning::Begun { ring: Some(ring), stream: Arrival::Records(Box::new(recorder)) })
    }

    /// Something about a stream has changed: its program and those that watch streams are to know.
    pub(super) fn show_state(&mut self, number: u32) {
        self.watches.note_stream_change();
        self.publish_state(number);
    }

    /// Publishes what other programs can change about a stream, for its program to know if this
    /// server dies.
    pub(super) fn publish_state(&self, number: u32) {
        let Some(open) = self.streams.get(&number) else { return };
        let name = self.devices.name(open.home()).and_then(StreamDeviceName::new);
        let mut ports = [0; MAX_STREAM_CHANNELS as usize];
        ports.iter_mut().zip(open.ports()).for_each(|(into, port)| *into = *port);
        open.page().set_state(&StreamState {
            sample_rate_hz: open.sample_rate_hz,
            gain: open.volume.gain.factor(),
            muted: open.volume.muted,
            device: name.unwrap_or_default(),
            ports,
        });
    }

    /// Returns the answer to a program about a stream that it may have.
    pub(super) fn granted(&self, stream: u32, shape: RingShape) -> StreamReply {
        let ports = self.streams.get(&stream).map_or(&[][..], OpenStream::ports).to_vec();
        StreamReply::Granted { stream, capacity_frames: shape.capacity_frames(), ports }
    }

    /// Returns what the device of a stream plays, if that can take another one.
    fn facts_of(&self, number: u32, driver: &DriverFacts) -> Result<DeviceFacts, RequestError> {
        let open = self.streams.get(&number).ok_or_else(|| unknown(number))?;
        self.devices.get(open.device).ok_or_else(|| unknown(number))?.check_loop()?;
        Ok(self.devices.facts(open.device, driver))
    }

    /// Checks whether there is room to keep what leaves a device for a stream of this direction.
    pub(super) fn check_kept(
        &self,
        direction: Direction,
        number: u32,
        device: DeviceFacts,
    ) -> Result<(), RequestError> {
        if direction != Direction::Monitor {
            return Ok(());
        }
        let own = self.devices.get(number).map_or(0, DeviceEnd::kept_bytes);
        let all: usize = self.devices.all().map(DeviceEnd::kept_bytes).sum();
        check_room(device, all - own)
    }

    fn shrink(&mut self, number: u32, lockable: RingShape) -> Beginning {
        if let Some(open) = self.streams.get_mut(&number) {
            self.budget.shrink(&mut open.grant, lockable);
            open.depth_frames = open.depth_frames.min(open.grant.shape().depth_frames());
        }
        Beginning::TooLarge(lockable)
    }
}

/// How much of what leaves a device is kept for streams that record that: as much as is rendered
/// ahead, and as they leave there.
pub(super) fn kept_frames(device: DeviceFacts) -> usize {
    KEPT_SECONDS * device.sample_rate_hz as usize
}

/// Returns how much that is, bytes.
pub(super) fn kept_bytes(device: DeviceFacts) -> usize {
    kept_frames(device) * size_of::<f32>() * device.playback as usize
}

/// Checks whether there is room to keep what leaves a device, beside what others keep, bytes.
pub(super) fn check_room(device: DeviceFacts, others: usize) -> Result<(), RequestError> {
    let bytes = kept_bytes(device);
    if bytes > MOST_KEPT_BYTES {
        return Err(refused(format!(
            "the device plays {} channels, which need too much memory to be kept",
            device.playback
        )));
    }
    if others + bytes > MOST_KEPT_BYTES_OF_ALL {
        return Err(refused("too much is kept of what leaves other devices: record fewer"));
    }
    Ok(())
}

impl OpenStream {
    /// Its memory is there.
    fn begin(&mut self) {
        if let State::Granted(page) = &self.state {
            self.state = State::Begun(Arc::clone(page));
        }
    }
}

fn unusable(error: SegmentError) -> RequestError {
    RequestError::Memory(error.to_string())
}

/// Why a stream's memory was not populated.
fn not_populated(error: &std::io::Error) -> String {
    // The advice that populates memory is unknown to an older kernel.
    let hint = match error.kind() {
        std::io::ErrorKind::InvalidInput => "; streams need Linux 5.14 or later",
        _ => "",
    };
    format!("no memory for a stream: {error}{hint}")
}

/// Keeps what a stream records in memory for the driver thread; returns a smaller ring if this one
/// is too large.
fn kept_in_memory(
    locking: Locking,
    stream: &RecordStream,
) -> Result<Option<RingShape>, RequestError> {
    if locking == Locking::Nothing {
        let populated = stream.populate();
        return populated.map(|()| None).map_err(|error| refused(not_populated(&error)));
    }
    lockable_instead(stream.lock())
}

/// Returns the smaller ring that could be locked, of one that could not.
fn lockable_instead(locked: Result<(), RingNotLocked>) -> Result<Option<RingShape>, RequestError> {
    match locked {
        Ok(()) => Ok(None),
        Err(RingNotLocked { lockable: Some(smaller), .. }) => Ok(Some(smaller)),
        Err(error) => Err(refused(error.to_string())),
    }
}
