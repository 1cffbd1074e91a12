//! What one stream plays, for one that records nothing else: the frames of its ring, once they were
//! heard. They are in this process already, so nothing of it is asked of the server.

use std::collections::VecDeque;

use client::stream::{Timing, Volume};

use crate::input::Input;
use crate::output::Output;
use crate::playback::Playback;

/// A stream that was heard for this much longer than the time since the last look has gone on
/// elsewhere in its ring; what lies between was not heard.
const LATE_MS: u64 = 10;
/// A stream that plays nothing is silent from this time on, ms: the device may say later than that
/// how far it was heard.
const SILENT_AFTER_MS: u64 = 20;
/// The most silence at once, ms, after which this process has slept.
const MOST_SILENCE_MS: u64 = 1000;

/// The end of a record stream that has what one other stream plays.
#[derive(Debug)]
pub(crate) struct Tap {
    rate_hz: u32,
    /// What was heard and is not read yet, for each channel.
    planes: Vec<VecDeque<f32>>,
    /// The position of the frame that is read next.
    position: u64,
    runs: bool,
    /// The device sleeps: no frames come.
    sleeps: bool,
    interval_ns: u64,
    /// The last look; `None`: none since it was held.
    looked: Option<Looked>,
}

/// How far a stream was heard at a look.
#[derive(Debug, Clone, Copy)]
struct Looked {
    /// When it was.
    at_ns: u64,
    /// The position in the ring that follows.
    next: u64,
    /// The time up to which there are frames, ns.
    has_until_ns: u64,
}

impl Tap {
    /// Prepares one of a stream with this many channels, which holds.
    pub fn new(rate_hz: u32, channels: usize) -> Self {
        Self {
            rate_hz,
            planes: vec![VecDeque::new(); channels],
            position: 0,
            runs: false,
            sleeps: false,
            interval_ns: 0,
            looked: None,
        }
    }

    /// Takes what was heard since the last look. To be called before what a program sends goes into
    /// the ring, too: a full ring has no room for it but where heard frames are. While the device
    /// `sleeps`, nothing comes; while the stream holds on a device that plays, silence.
    pub fn follow<O: Output>(&mut self, playback: &mut Playback<O>, sleeps: bool, now_ns: u64) {
        self.sleeps = sleeps;
        if !self.runs {
            return;
        }
        let written = playback.output().written();
        let heard = playback.heard_position(now_ns).min(written);
        let Some(last) = self.looked else {
            self.looked = Some(Looked { at_ns: now_ns, next: heard, has_until_ns: now_ns });
            return;
        };
        let most = self.frames(now_ns.saturating_sub(last.at_ns) + LATE_MS * 1_000_000);
        let oldest = written.saturating_sub(playback.output().capacity_frames());
        let from = last.next.max(heard.saturating_sub(most)).max(oldest).min(heard);
        let mut has_until_ns = if heard > from { now_ns } else { last.has_until_ns };
        self.take(playback.output(), from, heard);
        let missing_ns = now_ns.saturating_sub(has_until_ns);
        if sleeps {
            has_until_ns = now_ns;
        } else if missing_ns >= SILENT_AFTER_MS * 1_000_000 {
            let silence = self.frames(missing_ns.min(MOST_SILENCE_MS * 1_000_000));
            let silence = usize::try_from(silence).unwrap_or(0);
            self.planes.iter_mut().for_each(|plane| plane.resize(plane.len() + silence, 0.0));
            has_until_ns = now_ns;
        }
        self.looked = Some(Looked { at_ns: now_ns, next: heard, has_until_ns });
    }

    fn take(&mut self, output: &impl Output, from: u64, to: u64) {
        let frames = usize::try_from(to - from).unwrap_or(0);
        for (channel, plane) in (0..).zip(&mut self.planes) {
            let pieces = output.samples(channel, from, frames);
            pieces.into_iter().for_each(|piece| plane.extend(piece));
        }
    }

    fn frames(&self, ns: u64) -> u64 {
        ns * u64::from(self.rate_hz) / 1_000_000_000
    }

    fn waiting(&self) -> usize {
        self.planes.first().map_or(0, VecDeque::len)
    }
}

impl Input for Tap {
    fn number(&self) -> Option<u32> {
        None
    }

    fn volume(&self) -> Volume {
        Volume::default()
    }

    fn read(&mut self, planes: &mut [&mut [f32]]) -> usize {
        let room = planes.iter().map(|plane| plane.len()).min().unwrap_or(0);
        let frames = self.waiting().min(room);
        for (plane, from) in planes.iter_mut().zip(&mut self.planes) {
            for (sample, heard) in plane.iter_mut().zip(from.drain(..frames)) {
                *sample = heard;
            }
        }
        self.position += frames as u64;
        frames
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn run(&mut self, runs: bool) -> bool {
        (self.runs, self.looked) = (runs, None);
        true
    }

    fn set_interval(&mut self, frames: u32) -> bool {
        self.interval_ns = u64::from(frames) * 1_000_000_000 / u64::from(self.rate_hz.max(1));
        true
    }

    fn timing(&mut self) -> Timing {
        let position = self.position + self.waiting() as u64;
        let looked = self.looked.filter(|_| !self.sleeps);
        Timing {
            at_ns: looked.map_or(0, |looked| looked.at_ns),
            position,
            until: if looked.is_some() { u64::MAX } else { position },
            frame_ps: 1_000_000_000_000 / u64::from(self.rate_hz.max(1)),
            ..Timing::default()
        }
    }

    fn due_ns(&self) -> Option<u64> {
        // The first look is due at once.
        let next_ns = self.looked.map_or(0, |looked| looked.at_ns + self.interval_ns);
        (!self.sleeps).then_some(next_ns)
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn leave(&mut self, _now_ns: u64) {}
}
