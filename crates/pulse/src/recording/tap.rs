//! What one stream plays, for one that records nothing else: the frames of its ring, once they were
//! heard, and silence where there were none. They are in this process already, so no device and no
//! thread of the server has a part in it.

use std::collections::VecDeque;

use client::stream::{Gains, Timing, Volume};

use super::gain::RampedGains;
use super::stream::{RAMP_MS, SLEEPING_NS};
use crate::input::Input;
use crate::output::Output;
use crate::playback::Playback;

/// Within this time a device does what a stream wishes, ms: by so much what was heard may be
/// uncertain.
const OBEYED_MS: u64 = 10;
/// Frames that are missing for less than this are late; after that, there was silence.
const SILENT_AFTER_NS: i64 = 20_000_000;
/// The part of a time that has passed by which the clocks of a device and of the system differ at
/// most: five times what two crystals do.
const CLOCK_PART: i64 = 1000;
/// Frames that are not read are kept for this long besides the interval at which they should be,
/// ms. Then the oldest are lost.
const KEPT_MS: u64 = 1000;

/// The end of a record stream that has what one other stream plays.
#[derive(Debug)]
pub(crate) struct Tap {
    rate_hz: u32,
    /// What was heard and is not read yet, for each channel.
    planes: Vec<VecDeque<f32>>,
    /// What is scaled on its way there.
    pieces: Vec<Vec<f32>>,
    /// What the stream is heard with.
    gains: RampedGains,
    /// The position of the frame that is read next.
    position: u64,
    /// Since when that frame waits, if it does, ns.
    waits_since_ns: u64,
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
    /// Which of the stream's rings it was.
    ring: u32,
    /// The position in it that follows. What is heard never goes back.
    next: u64,
    /// The time for which there are neither frames nor silence yet, ns; below 0 if frames were
    /// early.
    missing_ns: i64,
}

impl Tap {
    /// Prepares one of a stream with this many channels, which holds.
    pub fn new(rate_hz: u32, channels: usize) -> Self {
        Self {
            rate_hz,
            planes: vec![VecDeque::new(); channels],
            pieces: vec![Vec::new(); channels],
            gains: RampedGains::new(rate_hz * RAMP_MS / 1000),
            position: 0,
            waits_since_ns: 0,
            runs: false,
            sleeps: false,
            interval_ns: 0,
            looked: None,
        }
    }

    /// Takes what was heard since the last look, with these gains. To be called before anything is
    /// done to the stream: its volume changes, it goes on elsewhere, or what its program sends is
    /// written where heard frames are. While the device `sleeps`, nothing comes; while the stream
    /// holds on a device that plays, silence.
    pub fn follow<O: Output>(
        &mut self,
        playback: &mut Playback<O>,
        gains: Gains,
        sleeps: bool,
        now_ns: u64,
    ) {
        self.sleeps = sleeps;
        if !self.runs {
            return;
        }
        self.gains.set(gains);
        let heard = playback.heard_position(now_ns).min(playback.output().written());
        let ring = playback.former_rings();
        let Some(last) = self.looked else {
            self.looked = Some(Looked { at_ns: now_ns, ring, next: heard, missing_ns: 0 });
            return;
        };
        if self.waiting() == 0 {
            self.waits_since_ns = last.at_ns;
        }
        let passed_ns = now_ns.saturating_sub(last.at_ns);
        let next = if last.ring == ring { last.next } else { 0 };
        let since_ns = passed_ns + last.missing_ns.max(0).unsigned_abs();
        let (taken, next) = self.take_heard(playback, next, heard, since_ns);
        let missing_ns = last.missing_with(passed_ns, self.ns(taken));
        let is_silent = missing_ns >= SILENT_AFTER_NS;
        if is_silent && !sleeps {
            let silence = self.frames(missing_ns.unsigned_abs()).min(self.most_frames());
            let silence = usize::try_from(silence).unwrap_or(0);
            self.planes.iter_mut().for_each(|plane| plane.resize(plane.len() + silence, 0.0));
        }
        let missing_ns = if is_silent || sleeps { 0 } else { missing_ns };
        self.looked = Some(Looked { at_ns: now_ns, ring, next, missing_ns });
        self.drop_oldest();
    }

    /// Takes the frames from `next` up to `heard` that can have been heard in this time. Returns
    /// how many there were, and the position that follows.
    fn take_heard<O: Output>(
        &mut self,
        playback: &Playback<O>,
        next: u64,
        heard: u64,
        since_ns: u64,
    ) -> (u64, u64) {
        let output = playback.output();
        let (mut next, mut taken) = (next, 0);
        let (went_on_at, played) = playback.went_on();
        if next < went_on_at && went_on_at <= heard {
            // What lies between was not heard, but for the moment until the device obeyed.
            let moment = if played { self.frames(OBEYED_MS * 1_000_000) } else { 0 };
            let before = self.frames(since_ns).saturating_sub(heard - went_on_at);
            let before = before.min(moment).min(went_on_at - next);
            taken += self.take(output, next, next + before);
            next = went_on_at;
        }
        let most = self.frames(since_ns + OBEYED_MS * 1_000_000);
        let from = next.max(heard.saturating_sub(most)).min(heard);
        taken += self.take(output, from, heard);
        (taken, heard.max(next))
    }

    /// Takes frames that are still in the ring; returns how many.
    fn take(&mut self, output: &impl Output, from: u64, to: u64) -> u64 {
        let oldest = output.written().saturating_sub(output.capacity_frames());
        let from = from.max(oldest).min(to);
        let frames = usize::try_from(to - from).unwrap_or(0);
        for (channel, piece) in (0..).zip(&mut self.pieces) {
            piece.clear();
            piece.resize(frames, 0.0);
            output.read(channel, from, piece);
        }
        let frames = self.pieces.first().map_or(0, Vec::len);
        self.gains.scale(&mut self.pieces, frames);
        for (plane, piece) in self.planes.iter_mut().zip(&self.pieces) {
            plane.extend(piece);
        }
        frames as u64
    }

    fn drop_oldest(&mut self) {
        let most = usize::try_from(self.most_frames()).unwrap_or(usize::MAX);
        let beyond = self.waiting().saturating_sub(most);
        // MUTATION: drop_oldest.keep_all
        self.planes.iter_mut().for_each(|plane| drop(plane.drain(..beyond)));
        self.position += beyond as u64;
    }

    fn most_frames(&self) -> u64 {
        self.frames(self.interval_ns + KEPT_MS * 1_000_000)
    }

    fn frames(&self, ns: u64) -> u64 {
        let frames = u128::from(ns) * u128::from(self.rate_hz) / 1_000_000_000;
        u64::try_from(frames).unwrap_or(u64::MAX)
    }

    fn ns(&self, frames: u64) -> u64 {
        frames * 1_000_000_000 / u64::from(self.rate_hz.max(1))
    }

    fn waiting(&self) -> usize {
        self.planes.first().map_or(0, VecDeque::len)
    }
}

impl Looked {
    /// Returns what is missing after another look, before which this time has passed, and frames
    /// were heard for that one.
    fn missing_with(&self, passed_ns: u64, heard_ns: u64) -> i64 {
        let (passed_ns, heard_ns) = (passed_ns.cast_signed(), heard_ns.cast_signed());
        // What the device's clock differs is not silence.
        let drift_ns = passed_ns / CLOCK_PART;
        let missing_ns = self.missing_ns - self.missing_ns.clamp(-drift_ns, drift_ns);
        (missing_ns + passed_ns - heard_ns).max(-SILENT_AFTER_NS)
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

    fn kept_bytes(&self) -> usize {
        self.waiting() * self.planes.len() * size_of::<f32>()
    }

    fn run(&mut self, runs: bool) -> bool {
        (self.runs, self.looked) = (runs, None);
        true
    }

    fn set_interval(&mut self, frames: u32) -> bool {
        self.interval_ns = self.ns(frames.into());
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
        let Some(looked) = self.looked else { return Some(0) };
        Some(match (self.waiting(), self.sleeps) {
            (0, false) => looked.at_ns + self.interval_ns,
            (0, true) => looked.at_ns + self.interval_ns.max(SLEEPING_NS),
            _ => self.waits_since_ns + self.interval_ns,
        })
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn leave(&mut self, _now_ns: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks for a time at a stream of which this part is heard; returns the longest time that was
    /// missing.
    fn longest_missing(looks: u64, passed_ns: u64, heard_ns: impl Fn(u64) -> u64) -> i64 {
        let mut looked = Looked { at_ns: 0, ring: 0, next: 0, missing_ns: 0 };
        let missing = (0..looks).map(|look| {
            looked.missing_ns = looked.missing_with(passed_ns, heard_ns(look));
            looked.missing_ns
        });
        missing.max().unwrap_or(0)
    }

    #[test]
    fn a_slow_clock_is_no_silence() {
        let missing_ns = longest_missing(100_000, 40_000_000, |_| 40_000_000 - 40_000 / 5);
        assert!(missing_ns < SILENT_AFTER_NS / 1000, "{missing_ns}");
        // Positions move in steps of 10 ms.
        let step = |look| if look % 10 == 9 { 10_000_000 } else { 0 };
        let missing_ns = longest_missing(100_000, 1_000_000, step);
        assert!(missing_ns < SILENT_AFTER_NS, "{missing_ns}");
    }

    #[test]
    fn silence_is_seen_however_often_it_is_looked_for() {
        let missing_ns = longest_missing(50_000, 20_000, |_| 0);
        assert!((990_000_000..=1_000_000_000).contains(&missing_ns), "of a second: {missing_ns}");
    }
}
