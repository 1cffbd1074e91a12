//! A playback stream with its connection: what a player does with it.

use std::sync::Arc;

use proto::stream::{Gain, NewStream, StreamStatus, Volume};
use rt::shm::RingShape;
use rt::stream::{Gains, Wish};
use sys::memory::OwnRing;

use super::connection::{published_volume, set_volume, status};
use super::opening::{Beginning, Grant, begin_playback, beginning};
use super::returning::{call, close, close_after, open_again};
use super::server::StreamServer;
use super::{NoRoomForWish, Samples, StreamConnection, StreamWriter};
use crate::Error;

/// A playback stream. It holds at position 0 until the program wishes otherwise, and fades out when
/// it is dropped.
///
/// Wishes are heard within milliseconds, whatever is queued, and without a step. Each returns its
/// number: [`StreamControl::acknowledgement`](super::StreamControl::acknowledgement) has the device
/// frame at which it takes effect. Times are `CLOCK_MONOTONIC`, ns.
///
/// It outlives its server: once that has gone, the stream [leaves](Self::leave) it, and
/// [goes on](Self::return_to) at the next one. Positions go on as well, and the program may write
/// and wish meanwhile.
#[derive(Debug)]
pub struct PlaybackStream {
    server: Arc<StreamServer>,
    number: u32,
    /// As it was opened first.
    opened: NewStream,
    writer: StreamWriter,
    shape: RingShape,
    stage: Stage,
}

/// What the server has said of a stream's memory.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// It is not known to have answered this request.
    Awaited(u32),
    Begun,
    /// It does not begin.
    Over(Beginning),
}

/// Why a wish was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WishError {
    /// Too many wishes wait for the device. Wait for one of them, or make this one later.
    #[error(transparent)]
    NoRoom(#[from] NoRoomForWish),
    /// [`Error::Refused`]: the server has ended the stream, because its device has gone;
    /// [`Error::Timeout`]; [`Error::ServerGone`]: the next server gets the wish, if the stream
    /// returns to one.
    #[error(transparent)]
    Server(#[from] Error),
}

impl PlaybackStream {
    pub(super) fn new(
        server: Arc<StreamServer>,
        grant: Grant,
        opened: NewStream,
        ring: OwnRing,
        position: u64,
    ) -> Self {
        let (number, shape) = (grant.stream, grant.shape);
        let writer = StreamWriter::new(ring, grant.page).beginning_at(position);
        Self { server, number, opened, writer, shape, stage: Stage::Begun }
    }

    /// Returns it as one whose memory was sent by this request, which is not answered.
    pub(super) fn awaiting(mut self, request: u32) -> Self {
        self.stage = Stage::Awaited(request);
        self
    }

    /// Returns what the server has said of a stream that was
    /// [started](super::PlannedPlayback::start), as far as that was
    /// [read](StreamConnection::take_answers). One that does not begin has ended.
    ///
    /// # Errors
    /// [`Error::Refused`], once; [`Error::Timeout`]: it has not answered in time.
    pub fn beginning(&mut self) -> Result<Beginning, Error> {
        let request = match self.stage {
            Stage::Awaited(request) => request,
            Stage::Begun => return Ok(Beginning::Begun),
            Stage::Over(beginning) => return Ok(beginning),
        };
        let beginning = beginning(&self.server.requests, request);
        self.stage = match &beginning {
            Ok(Beginning::Unanswered) => self.stage,
            Ok(Beginning::Begun) => Stage::Begun,
            Ok(over) => Stage::Over(*over),
            // The server may take it later.
            Err(Error::Timeout { .. }) => Stage::Over(Beginning::Unanswered),
            Err(_) => Stage::Over(Beginning::Refused),
        };
        match &beginning {
            Ok(Beginning::Unanswered | Beginning::Begun) => {}
            // What it would have taken is free for another one.
            Ok(_) => close(&self.server.requests, self.number),
            Err(error) => close_after(&self.server.requests, self.number, error),
        }
        beginning
    }

    /// Leaves a server that has gone, which the program has noticed at `at_ns`: the stream holds
    /// at the frame that was heard then. Until it [returns](Self::return_to), the program may write
    /// and wish.
    pub fn leave(&mut self, at_ns: u64) {
        let end = self.writer.position();
        self.writer.control_mut().leave(at_ns, end);
    }

    /// Goes on at another server of the same name, at the frame that was heard last: with
    /// everything that was written, with its volume and its device, and connected as it was, as
    /// far as the program may do that. It fades in. After an error, it can be tried again.
    ///
    /// # Errors
    /// [`Error::OtherServer`] if the device has another rate, too few channels, or a ring that is
    /// too small for what is queued; [`Error::Refused`], [`Error::Memory`], [`Error::Timeout`],
    /// [`Error::ServerGone`]. [`AwaitedServer::attempt`](super::AwaitedServer::attempt) knows
    /// which of them pass.
    pub fn return_to(&mut self, connection: &StreamConnection) -> Result<(), Error> {
        self.leave(sys::clock::now_ns());
        let server = connection.server();
        let state = self.writer.control().page().state();
        let grant = open_again(server, &self.server, &self.opened, state.as_ref())?;
        let stream = grant.stream;
        let begun = self.begin_again(server, grant);
        if begun.is_err() {
            close(&server.requests, stream);
        }
        begun
    }

    fn begin_again(&mut self, server: &Arc<StreamServer>, grant: Grant) -> Result<(), Error> {
        let written = self.writer.position();
        let lowest = self.writer.control().page().lowest().min(written);
        let from = self.writer.control_mut().timing().position.clamp(lowest, written);
        let make = |shape: RingShape| {
            let (queued, most) = (written - from, shape.capacity_frames());
            if queued > most.into() {
                let reason = format!("it has room for {most} frames, and {queued} are queued");
                return Err(Error::OtherServer(reason));
            }
            self.writer.copy_ring(from, shape)
        };
        let (grant, ring) = begin_playback(&server.requests, grant, from, make)?;
        let (stream, shape) = (grant.stream, grant.shape);
        let writer = self.writer.following(ring, grant.page);
        call(&server.requests, stream)?;
        (self.writer, self.stage) = (writer, Stage::Begun);
        (self.server, self.number, self.shape) = (Arc::clone(server), stream, shape);
        Ok(())
    }

    /// Returns its number on the server, which is another one on the next server.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the shape of its ring, and so the largest depth.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.shape
    }

    /// Returns the end at which frames are written and wishes published.
    #[must_use]
    pub fn writer(&self) -> &StreamWriter {
        &self.writer
    }

    /// Returns the same, to write and to wish.
    pub fn writer_mut(&mut self) -> &mut StreamWriter {
        &mut self.writer
    }

    /// Makes the device obey the wishes so far at once, instead of when it wakes next.
    ///
    /// # Errors
    /// [`Error::Refused`] if the server has ended the stream, because its device has gone;
    /// [`Error::Timeout`], [`Error::ServerGone`].
    pub fn call(&self) -> Result<(), Error> {
        call(&self.server.requests, self.number)
    }

    /// Wishes, and has the device obey at once.
    fn wish(&mut self, wish: Wish) -> Result<u64, WishError> {
        let number = self.writer.control_mut().wish(wish)?;
        self.call()?;
        Ok(number)
    }

    /// Plays, from where it holds: with a fade, unless nothing there was played before.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn run(&mut self) -> Result<u64, WishError> {
        self.wish(Wish::Run)
    }

    /// Pauses: it fades out, and holds where the fade began.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn hold(&mut self) -> Result<u64, WishError> {
        self.wish(Wish::Hold)
    }

    /// Ends exactly after everything that has been written, without a fade, and holds there.
    /// [`heard`](Self::heard) reaches [`StreamWriter::position`] then.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn drain(&mut self) -> Result<u64, WishError> {
        let end = self.writer.position();
        self.wish(Wish::Drain { end })
    }

    /// Drops everything that has been written and is not heard yet, which fades out. What is
    /// written next is heard next.
    ///
    /// A stream that runs waits for these frames, and misses the time until they are there: hold
    /// it before, or [replace](Self::replace) what is queued.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn flush(&mut self) -> Result<u64, WishError> {
        let position = self.writer.position();
        self.wish(Wish::Splice { position })
    }

    /// Seeks: drops everything that has been written and is not heard yet, and goes on with these
    /// frames, which fade in over the old ones. Returns the wish, and how many frames had room;
    /// what follows is written as usual.
    ///
    /// A program that seeks leaves room for this in the ring: 50 ms are enough.
    ///
    /// # Errors
    /// [`WishError`]; the frames are written all the same.
    pub fn replace(&mut self, samples: Samples<'_>) -> Result<(u64, usize), WishError> {
        let position = self.writer.position();
        let written = self.writer.write(samples);
        Ok((self.wish(Wish::Splice { position })?, written))
    }

    /// Goes on at a position of the ring: one that may still be played, at or after the
    /// [lowest](rt::shm::StreamPage::lowest), or the end of what is written.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn splice(&mut self, position: u64) -> Result<u64, WishError> {
        self.wish(Wish::Splice { position })
    }

    /// Sets the program's own gains, one for each channel, which are reached in a straight line of
    /// `ramp_frames` frames.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn set_gains(&mut self, gains: Gains, ramp_frames: u32) -> Result<u64, WishError> {
        self.wish(Wish::Gain { gains, ramp_frames })
    }

    /// Sets how far ahead of the hardware it may be rendered, frames, up to what was granted.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn set_depth(&mut self, frames: u32) -> Result<u64, WishError> {
        self.wish(Wish::Depth { frames })
    }

    /// Changes the server's volume of it, which users see, besides the program's own gains; what is
    /// `None` stays as it is. Returns the volume from now on.
    ///
    /// # Errors
    /// [`Error::Refused`] if the stream has ended; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn set_volume(&self, gain: Option<Gain>, muted: Option<bool>) -> Result<Volume, Error> {
        set_volume(&self.server.requests, self.number, gain, muted)
    }

    /// Returns the server's volume of it, also of one that has ended, or whose server has gone.
    #[must_use]
    pub fn volume(&self) -> Volume {
        published_volume(self.writer.control().page())
    }

    /// Returns what the server says of it: the device that it is on and where it is
    /// [wanted](StreamStatus::wanted), and its volume.
    ///
    /// # Errors
    /// [`Error::Refused`] if the stream has ended; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn status(&self) -> Result<StreamStatus, Error> {
        status(&self.server.requests, self.number)
    }

    /// Returns the position that is heard at `at_ns`.
    pub fn heard(&mut self, at_ns: u64) -> u64 {
        self.writer.control_mut().timing().position_at(at_ns)
    }

    /// Returns when a position is heard, if it is rendered: a later one may be heard at any time.
    pub fn heard_ns(&mut self, position: u64) -> Option<u64> {
        self.writer.control_mut().timing().time_of(position)
    }

    /// Returns how many frames have been written and are not heard at `at_ns`: with the device's
    /// rate, how long a frame that is written then takes to be heard, with everything in it. While
    /// the stream holds, as if it ran on.
    pub fn queued_frames(&mut self, at_ns: u64) -> u64 {
        self.writer.position().saturating_sub(self.heard(at_ns))
    }

    /// Returns whether everything that was written has been heard at `at_ns`: it has drained, or
    /// misses frames. A stream whose frames did not come in time fades out, and goes on after the
    /// last one that was there.
    pub fn has_drained(&mut self, at_ns: u64) -> bool {
        self.heard(at_ns) >= self.writer.position()
    }

    /// Returns how often frames were not there when they had to be heard. Each time counts once it
    /// is over: until then, [`has_drained`](Self::has_drained).
    pub fn underruns(&mut self) -> u64 {
        self.writer.control_mut().misses()
    }
}

impl Drop for PlaybackStream {
    fn drop(&mut self) {
        match self.stage {
            Stage::Awaited(request) => self.server.requests.abandon(request),
            Stage::Begun | Stage::Over(Beginning::Unanswered) => {}
            Stage::Over(_) => return,
        }
        close(&self.server.requests, self.number);
    }
}
