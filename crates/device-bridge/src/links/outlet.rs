//! Where the frames of a link between devices go: into the stream of the sink, past what removes an
//! echo if something does.

use client::stream::{PlaybackStream, Timing};

use super::circles::DRIVER;
use super::echo::Echo;
use super::ends::{Sink, write_silence};
use super::link::End;

/// The end of a link at which frames are played.
pub(super) struct Outlet {
    pub(super) sink: PlaybackStream,
    pub(super) echo: Option<Echo>,
}

impl Outlet {
    /// Returns the name of the device that plays; `None`: that is not known now.
    pub(super) fn device(&self) -> Option<String> {
        let state = self.sink.writer().control().page().state()?;
        Some(state.device.further().unwrap_or(DRIVER).into())
    }

    /// Frames that wait until there are enough of them.
    fn waiting(&self) -> usize {
        self.echo.as_ref().map_or(0, |echo| echo.blocks.waiting())
    }
}

impl Sink for Outlet {
    fn has_ended(&mut self) -> anyhow::Result<Option<End>> {
        let echo = self.echo.as_ref();
        let of_echo = || echo.is_some_and(Echo::has_ended).then_some(End::Echo);
        Ok(self.sink.has_ended()?.or_else(of_echo))
    }

    fn look_ns(&self) -> Option<u64> {
        self.sink.look_ns()
    }

    fn timing(&mut self) -> Timing {
        let (next, timing) = (self.position(), self.sink.timing());
        let runs = timing.frame_ps != 0 && timing.until > timing.position;
        if let Some(echo) = self.echo.as_mut().filter(|_| runs) {
            echo.listen(next, timing);
        }
        timing
    }

    fn misses(&mut self) -> u64 {
        self.sink.misses()
    }

    fn has_run_dry(&mut self) -> bool {
        self.sink.has_run_dry()
    }

    fn position(&self) -> u64 {
        self.sink.position() + self.waiting() as u64
    }

    fn room(&self) -> usize {
        self.sink.room().saturating_sub(self.waiting())
    }

    fn write(&mut self, planes: &[&[f32]]) -> usize {
        let room = self.room();
        let Some(echo) = &mut self.echo else { return self.sink.write(planes) };
        let frames = planes.first().map_or(0, |plane| plane.len().min(room));
        let planes: Vec<&[f32]> = planes.iter().map(|plane| &plane[..frames]).collect();
        echo.write(&planes, self.sink.writer_mut());
        frames
    }

    /// What waits is left out.
    fn preroll(&mut self, frames: u64, channels: usize) -> u64 {
        // Nothing is played or captured in it that belongs together.
        let position = self.sink.preroll(frames, channels);
        if let Some(echo) = &mut self.echo {
            echo.blocks.restart();
        }
        position
    }

    fn begin(&mut self, position: u64) -> anyhow::Result<()> {
        self.sink.begin(position)
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        self.sink.commit()
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        // What waits is heard, too.
        if let Some(echo) = &self.echo {
            let (missing, channels) = (echo.blocks.missing(), echo.blocks.channels());
            write_silence(self, missing as u64, channels);
        }
        Sink::drain(&mut self.sink)
    }
}
