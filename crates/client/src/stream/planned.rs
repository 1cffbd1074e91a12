//! A playback stream before its first frame, without memory yet.

use std::sync::Arc;

use proto::stream::NewStream;
use rt::shm::RingShape;
use sys::memory::OwnRing;

use super::opening::{AskedPlayback, Grant, begin_playback};
use super::returning::close;
use super::server::StreamServer;
use super::{PlaybackStream, StreamWriter};
use crate::Error;

/// For how many samples a new ring has memory, bytes: two thirds of a second of stereo of 16 bits
/// at 48 kHz. They are to be heard at once.
const FIRST_BYTES: usize = 128 << 10;

/// A playback stream that has no memory yet: the server has granted it, or is expected to. Nothing
/// is heard of it; it ends when it is dropped.
#[derive(Debug)]
pub struct PlannedPlayback {
    server: Arc<StreamServer>,
    new: NewStream,
    shape: RingShape,
    stage: Stage,
}

/// What the server knows of a stream that is planned.
#[derive(Debug)]
enum Stage {
    /// It was asked for it, and the answer is not read yet.
    Asked(AskedPlayback),
    Granted(Grant),
    /// It has begun, or there is none.
    Over,
}

impl PlannedPlayback {
    pub(super) fn granted(server: Arc<StreamServer>, new: NewStream, grant: Grant) -> Self {
        Self { server, new, shape: grant.shape, stage: Stage::Granted(grant) }
    }

    /// Asks for a stream that is expected to be granted with a ring of this shape.
    pub(super) fn ask(
        server: Arc<StreamServer>,
        new: NewStream,
        shape: RingShape,
    ) -> Result<Self, Error> {
        let asked = AskedPlayback::ask(&server.requests, new.clone(), shape)?;
        Ok(Self { server, new, shape, stage: Stage::Asked(asked) })
    }

    /// Returns its number on the server, if the server has said that it is granted.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match &self.stage {
            Stage::Granted(grant) => Some(grant.stream),
            Stage::Asked(_) | Stage::Over => None,
        }
    }

    /// Returns the shape that its ring is to have, and so the largest depth.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.shape
    }

    /// Makes its memory, and has the server take it: the stream holds at position 0. Its ring may
    /// be smaller than was granted, if memory has become short since, or than was expected.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason; [`Error::Memory`]; [`Error::Timeout`],
    /// [`Error::ServerGone`].
    pub fn begin(self) -> Result<PlaybackStream, Error> {
        self.begin_at(0)
    }

    /// The same of a stream whose first frame has this position.
    pub(super) fn begin_at(mut self, position: u64) -> Result<PlaybackStream, Error> {
        // Made while the server answers. If there is no memory for it, there may be for what is
        // granted.
        let mut ring = ring(self.shape, position).ok();
        let grant = self.grant()?;
        let make = |shape| match ring.take().filter(|ring| ring.shape() == shape) {
            Some(ring) => Ok(ring),
            None => self::ring(shape, position),
        };
        let begun = begin_playback(&self.server.requests, grant, position, make);
        // A server that has not answered would not be quicker to close it.
        if begun.is_ok() || matches!(&begun, Err(Error::Timeout { .. } | Error::ServerGone)) {
            self.stage = Stage::Over;
        }
        let (grant, ring, page) = begun?;
        let writer = StreamWriter::new(ring, page).beginning_at(position);
        Ok(PlaybackStream::new(Arc::clone(&self.server), &grant, self.new.clone(), writer))
    }

    /// Returns what the server has granted, once it has answered.
    fn grant(&mut self) -> Result<Grant, Error> {
        let grant = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Asked(asked) => {
                let grant = asked.answer(&self.server.requests);
                let granted = grant.as_ref().ok().map(|grant| grant.shape);
                self.server.note_grant(granted.filter(|granted| *granted == self.shape));
                grant?
            }
            Stage::Granted(grant) => grant,
            Stage::Over => return Err(Error::OTHER_REPLY),
        };
        self.stage = Stage::Granted(grant.clone());
        Ok(grant)
    }
}

fn ring(shape: RingShape, position: u64) -> Result<OwnRing, Error> {
    let first = FIRST_BYTES / shape.frame_bytes();
    let ring = OwnRing::create_with(shape, position, first)?;
    ring.header().publish(position);
    Ok(ring)
}

impl Drop for PlannedPlayback {
    fn drop(&mut self) {
        if let Ok(grant) = self.grant() {
            close(&self.server.requests, grant.stream);
        }
    }
}
