//! A record stream of the server as the front end's input.

use client::stream::{RecordStream, SamplesMut, StreamConnection, Timing, Volume, WishError};

use crate::input::Input;

/// A record stream.
#[derive(Debug)]
pub(crate) struct ServerInput {
    stream: RecordStream,
}

impl ServerInput {
    /// Takes a stream that has just been opened.
    pub fn new(stream: RecordStream) -> Self {
        Self { stream }
    }

    /// Goes on at another server.
    ///
    /// # Errors
    /// Those of [`RecordStream::return_to`].
    pub fn return_to(&mut self, server: &StreamConnection) -> Result<(), client::Error> {
        self.stream.return_to(server)
    }
}

/// Returns whether a wish was made. A server that has gone is noticed by its connection, a stream
/// that has ended by its page.
fn is_made(wish: &Result<u64, WishError>) -> bool {
    !matches!(wish, Err(WishError::NoRoom(_)))
}

impl Input for ServerInput {
    fn number(&self) -> Option<u32> {
        Some(self.stream.number())
    }

    fn volume(&self) -> Volume {
        self.stream.volume()
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> usize {
        self.stream.reader_mut().read(SamplesMut::Planar(planes))
    }

    fn position(&self) -> u64 {
        self.stream.reader().position()
    }

    fn run(&mut self, runs: bool) -> bool {
        is_made(&if runs { self.stream.run() } else { self.stream.hold() })
    }

    fn set_interval(&mut self, frames: u32) -> bool {
        is_made(&self.stream.set_interval(frames))
    }

    fn timing(&mut self) -> Timing {
        self.stream.reader_mut().control_mut().timing()
    }

    fn due_ns(&self) -> Option<u64> {
        let reader = self.stream.reader();
        let schedule = reader.control().page().schedule()?;
        schedule.due(reader.position()).map(|due| due.at_ns)
    }

    fn has_ended(&self) -> bool {
        self.stream.reader().control().page().has_ended()
    }

    fn leave(&mut self, now_ns: u64) {
        self.stream.leave(now_ns);
    }
}
