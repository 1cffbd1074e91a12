//! A record stream with its connection: what a recorder does with it.

use std::sync::Arc;

use proto::stream::{NewStream, StreamStatus, Volume};
use rt::stream::Wish;

use super::connection::{published_volume, status};
use super::control::OwnWishes;
use super::opening::begin_recording;
use super::returning::{call, close, open_again};
use super::server::StreamServer;
use super::{StreamConnection, StreamReader, WishError};
use crate::Error;

/// A record stream. It holds at position 0 until it is [run](Self::run), and ends when it is
/// dropped. A device that nothing else plays on runs for it.
///
/// It outlives its server, as a [`PlaybackStream`](super::PlaybackStream) does. What was heard
/// while there was no server is not recorded, but [counted](StreamReader::unrecorded_frames).
#[derive(Debug)]
pub struct RecordStream {
    server: Arc<StreamServer>,
    number: u32,
    /// As it was opened first.
    opened: NewStream,
    reader: StreamReader,
}

impl RecordStream {
    pub(super) fn new(
        server: Arc<StreamServer>,
        number: u32,
        opened: NewStream,
        reader: StreamReader,
    ) -> Self {
        Self { server, number, opened, reader }
    }

    /// Leaves a server that has gone, which the program has noticed at `at_ns`. What was recorded
    /// by then can still be read. Until the stream [returns](Self::return_to), the program may
    /// wish.
    pub fn leave(&mut self, at_ns: u64) {
        self.reader.leave(at_ns);
    }

    /// Goes on at another server of the same name: with its volume, on the same device. After an
    /// error, it can be tried again.
    ///
    /// # Errors
    /// [`Error::OtherServer`] if the device has another rate or too few channels;
    /// [`Error::Refused`], [`Error::Memory`], [`Error::Timeout`], [`Error::ServerGone`].
    /// [`AwaitedServer::attempt`](super::AwaitedServer::attempt) knows which of them pass.
    pub fn return_to(&mut self, connection: &StreamConnection) -> Result<(), Error> {
        self.leave(sys::clock::now_ns());
        let server = connection.server();
        let state = self.reader.control().page().state();
        let grant = open_again(server, &self.server, &self.opened, state.as_ref())?;
        let stream = grant.stream;
        let begun = begin_recording(&server.requests, grant, self.reader.end()).and_then(
            |(grant, ring, wishes)| {
                let wishes = OwnWishes::OnPage(wishes);
                let control = self.reader.control().following(wishes, grant.page);
                call(&server.requests, stream)?;
                self.reader.follow(ring, control);
                (self.server, self.number) = (Arc::clone(server), stream);
                Ok(())
            },
        );
        if begun.is_err() {
            close(&server.requests, stream);
        }
        begun
    }

    /// Returns its number on the server, which is another one on the next server.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the server's volume of it, also of one that has ended, or whose server has gone.
    #[must_use]
    pub fn volume(&self) -> Volume {
        published_volume(self.reader.control().page())
    }

    /// Returns what the server says of it: the device that it is on and where it is
    /// [wanted](StreamStatus::wanted), and its volume.
    ///
    /// # Errors
    /// [`Error::Refused`] if the stream has ended; [`Error::Timeout`], [`Error::ServerGone`].
    pub fn status(&self) -> Result<StreamStatus, Error> {
        status(&self.server.requests, self.number)
    }

    /// Returns the end at which frames are read.
    #[must_use]
    pub fn reader(&self) -> &StreamReader {
        &self.reader
    }

    /// Returns the same, to read.
    pub fn reader_mut(&mut self) -> &mut StreamReader {
        &mut self.reader
    }

    /// Records from the next frame on that is heard, or leaves the device. Returns the wish, whose
    /// [acknowledgement](super::StreamControl::acknowledgement) has that frame.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn run(&mut self) -> Result<u64, WishError> {
        self.wish(Wish::Run)
    }

    /// Records no further. What was heard before can still be read.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn hold(&mut self) -> Result<u64, WishError> {
        self.wish(Wish::Hold)
    }

    /// Sets how long the device may keep frames, up to what it was opened with.
    ///
    /// # Errors
    /// [`WishError`].
    pub fn set_interval(&mut self, frames: u32) -> Result<u64, WishError> {
        self.wish(Wish::Depth { frames })
    }

    fn wish(&mut self, wish: Wish) -> Result<u64, WishError> {
        let number = self.reader.control_mut().wish(wish)?;
        call(&self.server.requests, self.number)?;
        Ok(number)
    }
}

impl Drop for RecordStream {
    fn drop(&mut self) {
        close(&self.server.requests, self.number);
    }
}
