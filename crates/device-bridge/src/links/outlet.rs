//! Where the frames of a link go: into the stream of the sink, past what removes an echo if
//! something does.

use client::stream::{PlaybackStream, Samples};

use super::alignment::CHUNK;
use super::echo::Echo;

const SILENCE: [f32; CHUNK] = [0.0; CHUNK];

/// The end of a link at which frames are played.
pub(super) struct Outlet {
    pub(super) sink: PlaybackStream,
    /// Channels of the sink that play.
    channels: usize,
    pub(super) echo: Option<Echo>,
}

impl Outlet {
    pub(super) fn new(sink: PlaybackStream, channels: usize, echo: Option<Echo>) -> Self {
        Self { sink, channels, echo }
    }

    /// Returns the position of the sink's stream at which the next frame is heard.
    pub(super) fn position(&self) -> u64 {
        self.sink.writer().position() + self.waiting() as u64
    }

    /// Returns how many frames there is room for.
    pub(super) fn room(&self) -> usize {
        self.sink.writer().available().saturating_sub(self.waiting())
    }

    /// Frames that wait until there are enough of them.
    fn waiting(&self) -> usize {
        self.echo.as_ref().map_or(0, |echo| echo.blocks.waiting())
    }

    /// Writes frames, for which there is room.
    pub(super) fn write(&mut self, planes: &[&[f32]]) {
        match &mut self.echo {
            Some(echo) => echo.write(planes, self.sink.writer_mut()),
            None => {
                self.sink.writer_mut().write(Samples::Planar(planes));
            }
        }
    }

    /// Writes silence, and returns how many frames had room.
    pub(super) fn write_silence(&mut self, frames: u64) -> u64 {
        let room = self.room().min(usize::try_from(frames).unwrap_or(usize::MAX));
        let mut left = room;
        while left > 0 {
            let piece = &SILENCE[..left.min(CHUNK)];
            let planes = vec![piece; self.channels];
            self.write(&planes);
            left -= piece.len();
        }
        room as u64
    }

    /// Begins again with `frames` of silence, as far as they have room. What waits is left out.
    pub(super) fn begin(&mut self, frames: u64) {
        // Nothing is played or captured in them that belongs together.
        let echo = self.echo.take();
        self.write_silence(frames);
        self.echo = echo;
        if let Some(echo) = &mut self.echo {
            echo.blocks.restart();
        }
    }

    /// Writes what waits, so that all is heard.
    pub(super) fn flush(&mut self) {
        let missing = self.echo.as_ref().map_or(0, |echo| echo.blocks.missing());
        self.write_silence(missing as u64);
    }
}
