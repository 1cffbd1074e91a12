//! A record stream with its connection: what a recorder does with it.

use std::sync::Arc;

use proto::stream::{StreamReply, StreamRequest};
use rt::stream::Wish;

use super::connection::ask;
use super::{StreamReader, WishError};
use crate::Error;
use crate::requests::Requests;

/// A record stream. It holds at position 0 until it is [run](Self::run), and ends when it is
/// dropped. A device that nothing else plays on runs for it.
#[derive(Debug)]
pub struct RecordStream {
    requests: Arc<Requests>,
    number: u32,
    reader: StreamReader,
}

impl RecordStream {
    pub(super) fn new(requests: Arc<Requests>, number: u32, reader: StreamReader) -> Self {
        Self { requests, number, reader }
    }

    /// Returns its number on the server.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
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
        match ask(&self.requests, StreamRequest::Call { stream: self.number })? {
            StreamReply::Called => Ok(number),
            _ => Err(Error::OTHER_REPLY.into()),
        }
    }
}

impl Drop for RecordStream {
    fn drop(&mut self) {
        // Fails if the stream or the server is gone, and then nothing is left to be closed.
        let _ = ask(&self.requests, StreamRequest::Close { stream: self.number });
    }
}
