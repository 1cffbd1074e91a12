//! A playback stream between the server's grant and its first frame.

use std::sync::Arc;

use proto::stream::NewStream;
use rt::shm::RingShape;
use sys::memory::OwnRing;

use super::opening::{Grant, begin_playback};
use super::returning::close;
use super::server::StreamServer;
use super::{PlaybackStream, StreamControl, StreamWriter};
use crate::Error;

/// A playback stream that the server has granted, without memory yet. Nothing is heard of it; it
/// ends when it is dropped.
#[derive(Debug)]
pub struct GrantedPlayback {
    server: Arc<StreamServer>,
    new: NewStream,
    grant: Grant,
    /// The server has it as one that was granted.
    is_open: bool,
}

impl GrantedPlayback {
    pub(super) fn new(server: Arc<StreamServer>, new: NewStream, grant: Grant) -> Self {
        Self { server, new, grant, is_open: true }
    }

    /// Returns its number on the server.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.grant.stream
    }

    /// Returns the shape that its ring is to have, and so the largest depth.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.grant.shape
    }

    /// Makes its memory, and has the server take it: the stream holds at position 0. Its ring may
    /// be smaller than was granted, if memory has become short since.
    ///
    /// # Errors
    /// [`Error::Refused`] with the server's reason; [`Error::Memory`]; [`Error::Timeout`],
    /// [`Error::ServerGone`].
    pub fn begin(self) -> Result<PlaybackStream, Error> {
        self.begin_at(0)
    }

    /// The same of a stream whose first frame has this position.
    pub(super) fn begin_at(mut self, position: u64) -> Result<PlaybackStream, Error> {
        let make = |shape| {
            let ring = OwnRing::create(shape)?;
            ring.header().publish(position);
            Ok(ring)
        };
        let grant = self.grant.clone();
        let begun = begin_playback(&self.server.requests, grant, position, make);
        // A server that has not answered would not be quicker to close it.
        let is_silent = matches!(&begun, Err(Error::Timeout { .. } | Error::ServerGone));
        self.is_open = begun.is_err() && !is_silent;
        let (grant, ring, pages) = begun?;
        let writer = StreamWriter::new(ring, StreamControl::new(pages.wishes, pages.page));
        let writer = writer.beginning_at(position);
        Ok(PlaybackStream::new(Arc::clone(&self.server), &grant, self.new.clone(), writer))
    }
}

impl Drop for GrantedPlayback {
    fn drop(&mut self) {
        if self.is_open {
            close(&self.server.requests, self.grant.stream);
        }
    }
}
