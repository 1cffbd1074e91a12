//! A playback stream, as its program sees it.

use rt::shm::{Due, MAX_STREAM_CHANNELS, RingShape, StreamPage};
use sys::memory::{OwnRing, Shared};

use super::control::OwnWishes;
use super::{Samples, StreamControl};
use crate::Error;

/// Frames that are encoded at once.
const BLOCK_FRAMES: usize = 256;

/// Fills the ring of a playback stream.
#[derive(Debug)]
pub struct StreamWriter {
    ring: OwnRing,
    control: StreamControl,
    position: u64,
}

impl StreamWriter {
    /// Takes a new ring, of which the server has agreed to the shape, and the server's page.
    pub(super) fn new(ring: OwnRing, page: Shared<StreamPage>) -> Self {
        let control = StreamControl::new(OwnWishes::InRing(ring.wishes()), page);
        Self { ring, control, position: 0 }
    }

    /// Returns this stream on another server, with a ring into which the frames were
    /// [copied](Self::copy_ring), and into which its wishes so far are written.
    pub(super) fn following(&self, ring: OwnRing, page: Shared<StreamPage>) -> Self {
        let control = self.control.following(OwnWishes::InRing(ring.wishes()), page);
        Self { ring, control, position: self.position }
    }

    /// Returns a ring of another shape with the frames from `from` on, as far as they have room:
    /// published as far as they are, since the next server plays at once, and the others behind
    /// them.
    pub(super) fn copy_ring(&self, from: u64, shape: RingShape) -> Result<OwnRing, Error> {
        let mut copy = OwnRing::create(shape)?;
        let capacity = shape.capacity_frames().min(self.ring.shape().capacity_frames());
        let mut samples = vec![0.0; capacity as usize];
        for channel in 0..shape.channels() {
            self.ring.copy(channel, from, &mut samples);
            copy.write(channel, from, &samples);
        }
        copy.header().publish(self.position);
        Ok(copy)
    }

    /// Returns a new stream as one whose first frame has this position, up to which its ring is
    /// published.
    pub(super) fn beginning_at(self, position: u64) -> Self {
        Self { position, ..self }
    }

    /// Returns its wishes and times.
    #[must_use]
    pub fn control(&self) -> &StreamControl {
        &self.control
    }

    /// Returns its wishes and times, for a wish.
    pub fn control_mut(&mut self) -> &mut StreamControl {
        &mut self.control
    }

    /// Returns the position up to which frames are published, and where the next ones go.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Returns how many frames can be written from [`position`](Self::position) on. What the device
    /// may have to render again is in the way until it is heard.
    ///
    /// A program that means to seek without a delay leaves room for the first frames after the
    /// seek: 50 ms are enough.
    #[must_use]
    pub fn available(&self) -> usize {
        usize::try_from(self.end().saturating_sub(self.position)).unwrap_or(0)
    }

    /// Returns the position from which on nothing can be written yet.
    fn end(&self) -> u64 {
        let lowest = self.control.page().lowest();
        lowest.saturating_add(self.ring.shape().capacity_frames().into())
    }

    /// Copies what was written to a channel from `position` on. The last frames are there, as many
    /// as the ring [holds](RingShape::capacity_frames): older ones are written over.
    pub fn read(&self, channel: u32, position: u64, into: &mut [f32]) {
        self.ring.copy(channel, position, into);
    }

    /// Writes frames at the end and publishes them; returns how many had room.
    pub fn write(&mut self, samples: Samples<'_>) -> usize {
        let written = self.write_at(self.position, samples);
        self.publish(self.position + written as u64);
        written
    }

    /// Has `write` put frames where they are to be, at the end, and publishes as many as it
    /// returns. It gets the room up to where that goes round the ring, a slice for each plane, all
    /// of the same length; empty ones if there is none, and no slices where the ring has no planes.
    pub fn write_in_place(&mut self, write: impl FnOnce(&mut [&mut [f32]]) -> usize) {
        let room = self.available();
        let mut planes: [&mut [f32]; MAX_STREAM_CHANNELS as usize] = Default::default();
        let mut channels = 0;
        let rooms = self.ring.all_samples_mut(self.position, room);
        for (plane, [first, _]) in planes.iter_mut().zip(rooms) {
            *plane = first;
            channels += 1;
        }
        let most = planes[0].len();
        let frames = write(&mut planes[..channels]).min(most);
        self.publish(self.position + frames as u64);
    }

    /// The same where [frames](RingShape::frames_offset) lie as they are in the ring, and not in
    /// planes: `write` gets the bytes of the room, and returns how many it has written, whole
    /// frames. Elsewhere there is no room.
    pub fn write_frames_in_place(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        let (room, frame_bytes) = (self.available(), self.ring.shape().frame_bytes());
        let [first, _] = self.ring.frames_mut(self.position, room).unwrap_or_default();
        let most = first.len();
        let written = write(first).min(most) / frame_bytes;
        self.publish(self.position + written as u64);
    }

    /// Writes frames from `position` on, which is not published yet; returns how many had room, 0
    /// before the end.
    pub fn write_at(&mut self, position: u64, samples: Samples<'_>) -> usize {
        if position < self.position {
            return 0;
        }
        let channels = self.ring.shape().channels();
        let room = usize::try_from(self.end().saturating_sub(position)).unwrap_or(0);
        let frames = samples.frames(channels).min(room);
        for (channel, pieces) in (0..).zip(self.ring.all_samples_mut(position, frames)) {
            let mut first = 0;
            for piece in pieces {
                samples.copy(channel, channels, first, piece);
                first += piece.len();
            }
        }
        if self.ring.shape().frames_offset().is_some() {
            self.encode(position, samples, frames);
        }
        frames
    }

    /// Writes frames from `position` on, where they do not lie in planes.
    fn encode(&mut self, position: u64, samples: Samples<'_>, frames: usize) {
        let channels = self.ring.shape().channels();
        let mut block = [0.0; BLOCK_FRAMES];
        for channel in 0..channels {
            for first in (0..frames).step_by(BLOCK_FRAMES) {
                let block = &mut block[..BLOCK_FRAMES.min(frames - first)];
                samples.copy(channel, channels, first, block);
                self.ring.write(channel, position + first as u64, block);
            }
        }
    }

    /// Publishes what was written up to `position`. A position before the end, or beyond what has
    /// room, publishes nothing and returns false.
    pub fn publish(&mut self, position: u64) -> bool {
        let possible = (self.position..=self.end()).contains(&position);
        if possible {
            self.ring.header().publish(position);
            self.position = position;
        }
        possible
    }

    /// Waits until `lead_ns` before the device renders frames that are not published yet, and the
    /// ring has room; returns that wake-up: frames up to its position are needed then. `None` once
    /// `deadline_ns` (`CLOCK_MONOTONIC`) has passed; also if the device needs nothing until further
    /// notice.
    #[must_use]
    pub fn await_demand(&self, lead_ns: u64, deadline_ns: u64) -> Option<Due> {
        let lead_ns = i64::try_from(lead_ns).unwrap_or(i64::MAX);
        self.control.await_device(self.position, -lead_ns, deadline_ns, || self.available())
    }
}
