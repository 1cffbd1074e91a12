//! The two ends of a link: where its frames come from, and where they are played. What happens at
//! either is known by its times.

use client::stream::{PlaybackStream, RecordStream, Samples, SamplesMut, Timing, Wish};
use sys::clock::now_ns;

use super::alignment::CHUNK;
use super::link::End;

/// How long after a device's wake-up its frames are there, ns.
const AFTER_WAKE_NS: u64 = 1_000_000;
/// How long a device may take to obey, ns.
const OBEYS_WITHIN_NS: u64 = 20_000_000;

/// Where frames come from. Positions count them.
pub(crate) trait Source {
    /// Waits until there are frames; returns how many there are at `deadline_ns`.
    fn await_frames(&mut self, deadline_ns: u64) -> usize;

    /// Returns whether its device has ended it.
    ///
    /// # Errors
    /// Why it has ended otherwise.
    fn has_ended(&mut self) -> anyhow::Result<bool>;

    /// Returns when its frames are heard. At most `position` while none come: `until`.
    fn timing(&mut self) -> Timing;

    /// Returns how many frames can be read now.
    fn available(&self) -> usize;

    /// Reads at most as many frames as fit; returns the position of the first, and how many.
    fn read(&mut self, planes: &mut [&mut [f32]]) -> (u64, usize);

    /// Returns how often frames were lost there.
    fn misses(&mut self) -> u64;
}

/// Where frames are played. Positions count them.
pub(crate) trait Sink {
    /// Returns the device that has ended it; `None`: none has.
    ///
    /// # Errors
    /// Why it has ended otherwise.
    fn has_ended(&mut self) -> anyhow::Result<Option<End>>;

    /// Returns when to look at it again although nothing is to be played, ns; `None`: it needs no
    /// look.
    fn look_ns(&self) -> Option<u64>;

    /// Returns when its frames are heard.
    fn timing(&mut self) -> Timing;

    /// Returns how often frames were not there when they had to be heard.
    fn misses(&mut self) -> u64;

    /// Returns whether it runs, and has nothing left to be heard.
    fn has_run_dry(&mut self) -> bool;

    /// Returns the position of the frame that is written next.
    fn position(&self) -> u64;

    /// Returns how many frames can be written now.
    fn room(&self) -> usize;

    /// Writes frames, a slice for each channel, as far as they have room; returns how many had.
    fn write(&mut self, planes: &[&[f32]]) -> usize;

    /// Begins again with silence on all `channels`, as far as `frames` have room; returns the
    /// position of the first.
    fn preroll(&mut self, frames: u64, channels: usize) -> u64 {
        let position = self.position();
        write_silence(self, frames, channels);
        position
    }

    /// Plays what has been written from `position` on.
    ///
    /// # Errors
    /// It has gone.
    fn begin(&mut self, position: u64) -> anyhow::Result<()>;

    /// Passes on what was written.
    ///
    /// # Errors
    /// It has gone.
    fn commit(&mut self) -> anyhow::Result<()>;

    /// Nothing follows for now: what was written is heard to its end.
    ///
    /// # Errors
    /// It has gone.
    fn drain(&mut self) -> anyhow::Result<()>;
}

/// Writes silence, and returns how many frames had room.
pub(super) fn write_silence(sink: &mut (impl Sink + ?Sized), frames: u64, channels: usize) -> u64 {
    const SILENCE: [f32; CHUNK] = [0.0; CHUNK];
    let mut left = usize::try_from(frames).unwrap_or(usize::MAX);
    while left > 0 {
        let piece = &SILENCE[..left.min(CHUNK)];
        let written = sink.write(&vec![piece; channels]);
        if written == 0 {
            break;
        }
        left -= written;
    }
    frames - left as u64
}

impl Source for RecordStream {
    fn await_frames(&mut self, deadline_ns: u64) -> usize {
        self.reader().await_frames(AFTER_WAKE_NS, deadline_ns)
    }

    fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.reader().control().page().has_ended())
    }

    fn timing(&mut self) -> Timing {
        self.reader_mut().control_mut().timing()
    }

    fn available(&self) -> usize {
        self.reader().available()
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> (u64, usize) {
        let reader = self.reader_mut();
        let frames = reader.read(SamplesMut::Planar(planes));
        (reader.position() - frames as u64, frames)
    }

    fn misses(&mut self) -> u64 {
        self.reader_mut().control_mut().misses()
    }
}

impl Sink for PlaybackStream {
    fn has_ended(&mut self) -> anyhow::Result<Option<End>> {
        Ok(self.writer().control().page().has_ended().then_some(End::Sink))
    }

    fn look_ns(&self) -> Option<u64> {
        None
    }

    fn timing(&mut self) -> Timing {
        self.writer_mut().control_mut().timing()
    }

    fn misses(&mut self) -> u64 {
        self.underruns()
    }

    fn has_run_dry(&mut self) -> bool {
        self.has_drained(now_ns())
    }

    fn position(&self) -> u64 {
        self.writer().position()
    }

    fn room(&self) -> usize {
        self.writer().available()
    }

    fn write(&mut self, planes: &[&[f32]]) -> usize {
        self.writer_mut().write(Samples::Planar(planes))
    }

    fn begin(&mut self, position: u64) -> anyhow::Result<()> {
        // A stream that has drained ends there until a splice says where to go on.
        self.writer_mut().control_mut().wish(Wish::Splice { position })?;
        let wish = self.run()?;
        let control = self.writer().control();
        let _ = control.await_acknowledgement(wish, now_ns() + OBEYS_WITHIN_NS);
        Ok(())
    }

    fn commit(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn drain(&mut self) -> anyhow::Result<()> {
        PlaybackStream::drain(self)?;
        Ok(())
    }
}
