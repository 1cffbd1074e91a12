//! What a null device plays, in a file: for tests.

use std::fmt;
use std::path::PathBuf;

use mix::Planes;
use soundfile::Writer;

use crate::file::{Output, ring_poll};
use crate::{Pacing, Playback, touched};

/// What is kept until it is played: more than is ever rendered ahead.
const SECONDS: usize = 4;
/// Frames that are passed on at once.
const BLOCK_FRAMES: u32 = 1024;
/// How long the end of the file is waited for.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Keeps what was written to a card until it is played, and then records it.
pub(super) struct Tap {
    rings: Vec<Vec<f32>>,
    /// Frames that have been recorded.
    recorded: u64,
    output: Output,
}

/// A part of the rings.
struct Kept<'a> {
    rings: &'a mut [Vec<f32>],
    first: u64,
}

impl Playback for Kept<'_> {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        let Some(ring) = self.rings.get_mut(channel as usize) else { return dsp::silence(samples) };
        for (frame, sample) in (self.first..).zip(samples) {
            let place = frame as usize % ring.len();
            // Where nothing more is written, silence is played.
            *sample = std::mem::take(&mut ring[place]);
        }
    }
}

impl Tap {
    /// Starts to record. Not for the driver thread.
    pub(super) fn start(
        path: PathBuf,
        channels: usize,
        sample_rate_hz: u32,
    ) -> Result<Self, String> {
        let many = u16::try_from(channels).unwrap_or(u16::MAX);
        let writer = Writer::create(&path, many, sample_rate_hz).map_err(|error| error.to_string());
        let frames = SECONDS * sample_rate_hz as usize;
        let room_hz = sample_rate_hz.saturating_mul(SECONDS as u32);
        let poll = ring_poll(Pacing::RealTime);
        let output = Output::start(path, writer?, channels, room_hz, poll)
            .map_err(|error| error.to_string())?;
        Ok(Self { rings: vec![touched(frames); channels], recorded: 0, output })
    }

    /// Keeps frames from device frame `first` on. Thread: cycle.
    pub(super) fn write(&mut self, first: u64, planes: &Planes) {
        for (channel, ring) in self.rings.iter_mut().enumerate() {
            for (frame, sample) in (first..).zip(planes.channel(channel)) {
                let place = frame as usize % ring.len();
                ring[place] = *sample;
            }
        }
    }

    /// Forgets frames that were written. Thread: cycle.
    pub(super) fn take_back(&mut self, first: u64, end: u64) {
        for ring in &mut self.rings {
            for frame in first..end {
                let place = frame as usize % ring.len();
                ring[place] = 0.0;
            }
        }
    }

    /// Records everything before device frame `played`. Thread: cycle.
    pub(super) fn play(&mut self, played: u64) {
        while self.recorded < played {
            let frames = (played - self.recorded).min(BLOCK_FRAMES.into()) as u32;
            let mut kept = Kept { rings: &mut self.rings, first: self.recorded };
            self.output.record(frames, frames, &mut kept);
            self.recorded += u64::from(frames);
        }
    }

    /// Ends the file.
    pub(super) fn end(&mut self) {
        self.output.abandon();
        self.output.join_until(sys::clock::now_ns().saturating_add(PATIENCE_NS));
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tap").field("recorded", &self.recorded).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use soundfile::Reader;

    use super::*;

    #[test]
    fn what_is_written_over_before_it_is_played_is_not_recorded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("played.wav");
        let mut tap = Tap::start(path.clone(), 1, 48_000).unwrap();
        let mut planes = Planes::new(1, 16);
        for (first, sample, played) in [(0, 0.25, 2), (4, 0.5, 4), (4, 0.75, 5)] {
            planes.silence(4);
            planes.channel_mut(0).fill(sample);
            tap.write(first, &planes);
            tap.play(played);
        }
        tap.take_back(7, 8);
        tap.play(9);
        tap.end();
        let mut read = [vec![-1.0; 32]];
        assert_eq!(Reader::open(&path).unwrap().read(&mut read).unwrap(), 9);
        assert_eq!(read[0][..9], [0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.0, 0.0]);
    }
}
