//! A playback stream before its first frame, without memory yet.

use std::sync::Arc;

use proto::stream::NewStream;
use rt::shm::RingShape;
use sys::memory::OwnRing;

use super::PlaybackStream;
use super::opening::{AskedPlayback, Grant, begin_playback, start_playback};
use super::returning::{close, close_after};
use super::server::StreamServer;
use crate::Error;

/// For how many samples a new ring has memory, bytes: a third of a second of stereo of 16 bits at
/// 48 kHz. They are to be heard at once.
const FIRST_BYTES: usize = 64 << 10;

/// A playback stream that has no memory yet: the server has granted it, or is expected to once it
/// is asked. Nothing is heard of it; it ends when it is dropped.
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
    /// Nothing: it is asked for it when it begins.
    Expected,
    Granted(Grant),
    /// It has begun, or there is none.
    Over,
}

impl PlannedPlayback {
    pub(super) fn granted(server: Arc<StreamServer>, new: NewStream, grant: Grant) -> Self {
        Self { server, new, shape: grant.shape, stage: Stage::Granted(grant) }
    }

    /// Plans a stream that is expected to be granted with a ring of this shape.
    pub(super) fn expected(server: Arc<StreamServer>, new: NewStream, shape: RingShape) -> Self {
        Self { server, new, shape, stage: Stage::Expected }
    }

    /// Returns its number on the server, if the server has said that it is granted.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match &self.stage {
            Stage::Granted(grant) => Some(grant.stream),
            Stage::Expected | Stage::Over => None,
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

    /// Makes its memory, and sends it to the server without waiting for the answer: what is written
    /// and wished meanwhile counts from its beginning on, if the server takes it. That is known
    /// [later](PlaybackStream::beginning).
    ///
    /// # Errors
    /// Those of [`begin`](Self::begin) that are about the grant, or the memory.
    pub fn start(mut self) -> Result<PlaybackStream, Error> {
        let (mut made, grant) = self.memory_and_grant(0)?;
        let requests = &self.server.requests;
        let started = fitting(&mut made, grant.shape, 0).and_then(|ring| {
            let request = start_playback(requests, &grant, &ring, 0)?;
            Ok((ring, request))
        });
        if let Err(error) = &started {
            close_after(requests, grant.stream, error);
        }
        let (ring, request) = started?;
        Ok(self.with(grant, ring, 0).awaiting(request))
    }

    /// The same as [`begin`](Self::begin), of a stream whose first frame has this position.
    pub(super) fn begin_at(mut self, position: u64) -> Result<PlaybackStream, Error> {
        let (mut made, grant) = self.memory_and_grant(position)?;
        let make = |shape| fitting(&mut made, shape, position);
        let (stream, requests) = (grant.stream, &self.server.requests);
        let begun = begin_playback(requests, grant, position, make);
        if let Err(error) = &begun {
            close_after(requests, stream, error);
        }
        let (grant, ring) = begun?;
        Ok(self.with(grant, ring, position))
    }

    fn with(&self, grant: Grant, ring: OwnRing, position: u64) -> PlaybackStream {
        PlaybackStream::new(Arc::clone(&self.server), grant, self.new.clone(), ring, position)
    }

    /// Makes its memory while the server answers; returns that, if there was any, and the grant.
    fn memory_and_grant(&mut self, position: u64) -> Result<(Option<OwnRing>, Grant), Error> {
        // If there is no memory for it, there may be for what is granted.
        let make = || ring(self.shape, position).ok();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Expected => {
                let requests = &self.server.requests;
                let asked = AskedPlayback::ask(requests, self.new.clone(), self.shape)?;
                let made = make();
                let grant = asked.answer(requests);
                let granted = grant.as_ref().ok().map(|grant| grant.shape);
                self.server.note_grant(granted.filter(|granted| *granted == self.shape));
                Ok((made, grant?))
            }
            Stage::Granted(grant) => Ok((make(), grant)),
            Stage::Over => Err(Error::OTHER_REPLY),
        }
    }
}

/// Takes the ring that was made if it has this shape, or makes another one.
fn fitting(made: &mut Option<OwnRing>, shape: RingShape, position: u64) -> Result<OwnRing, Error> {
    match made.take().filter(|ring| ring.shape() == shape) {
        Some(ring) => Ok(ring),
        None => ring(shape, position),
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
        if let Stage::Granted(grant) = &self.stage {
            close(&self.server.requests, grant.stream);
        }
    }
}
