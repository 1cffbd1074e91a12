//! Following linear time code.

use super::decoder::{LtcDecoder, LtcFrame};
use super::frame::{Direction, FrameBits};
use crate::Wish;
use crate::chase::{Chase, Heard};
use crate::time_code::VideoRate;

/// Consecutive frames after which the time code is believed: long enough to distinguish 29.97 from
/// 30 frames per second by their length.
const FRAMES_TO_TRUST: u32 = 8;
/// Relative difference from a rate's length of a frame from which the code does not run at that
/// rate.
const MOST_OFF_SPEED: f64 = 0.01;

/// Frames of which each has the number after the one before.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// Frame times at which the first and the newest one ended.
    first: u32,
    newest: u32,
    /// How many.
    frames: u32,
    /// The newest number at each rate of [`VideoRate::ALL`] that all of them agree with.
    indexes: [Option<u32>; VideoRate::ALL.len()],
}

impl Run {
    /// Begins with a frame.
    fn begin(bits: FrameBits, at: u32, only: Option<VideoRate>) -> Self {
        let index = |rate: VideoRate| {
            let code = bits.time_code(rate).filter(|_| only.is_none_or(|only| only == rate))?;
            Some(code.index())
        };
        Self { first: at, newest: at, frames: 1, indexes: VideoRate::ALL.map(index) }
    }

    /// Takes the next frame, which has begun another run by itself; returns whether it continues
    /// this one.
    fn take(&mut self, next: &Self) -> bool {
        let mut agree = next.indexes;
        for (index, before) in agree.iter_mut().zip(self.indexes) {
            let follows = index.zip(before).is_some_and(|(index, before)| index == before + 1);
            *index = index.filter(|_| follows);
        }
        if agree.iter().all(Option::is_none) {
            return false;
        }
        (self.newest, self.indexes) = (next.newest, agree);
        self.frames = self.frames.saturating_add(1);
        true
    }

    /// Returns the rate that the frames' length is nearest to, and the newest frame's number.
    fn rate(&self, sample_rate_hz: f64) -> Option<(VideoRate, u32)> {
        let length = f64::from(self.newest.wrapping_sub(self.first)) / f64::from(self.frames - 1);
        let off = |rate: VideoRate| (length * rate.frames_hz() / sample_rate_hz - 1.0).abs();
        let possible = VideoRate::ALL.into_iter().zip(self.indexes);
        let possible = possible.filter_map(|(rate, index)| Some((rate, index?)));
        let nearest = possible.min_by(|(one, _), (other, _)| off(*one).total_cmp(&off(*other)));
        nearest.filter(|(rate, _)| off(*rate) <= MOST_OFF_SPEED)
    }
}

/// State of the linear time code that is followed. Thread: cycle.
#[derive(Debug, Clone)]
pub(crate) struct LtcFollower {
    sample_rate_hz: f64,
    /// The only rate to follow.
    only: Option<VideoRate>,
    decoder: LtcDecoder,
    run: Option<Run>,
    /// The rate of the code that is believed.
    rate: Option<VideoRate>,
    chase: Chase,
}

impl LtcFollower {
    /// Follows time code of this rate; `None`: of the rate that its frames have.
    pub(crate) fn new(sample_rate_hz: u32, only: Option<VideoRate>) -> Self {
        Self {
            sample_rate_hz: f64::from(sample_rate_hz),
            only,
            decoder: LtcDecoder::new(sample_rate_hz),
            run: None,
            rate: None,
            chase: Chase::new(sample_rate_hz),
        }
    }

    /// Reads a cycle's samples, which began at the frame time `begin`, and asks for changes at its
    /// end. `rolling` is the transport's frame, if it rolls.
    pub(crate) fn cycle(
        &mut self,
        begin: u32,
        samples: &[f32],
        rolling: Option<u32>,
        wish: impl FnMut(Wish),
    ) {
        let Self { decoder, run, rate, chase, only, sample_rate_hz } = self;
        decoder.read(samples, |LtcFrame { bits, direction, end }| {
            if direction == Direction::Backward {
                // Not followed: the transport only runs forward.
                *run = None;
                return;
            }
            // Frames are samples of this server.
            let at = begin.wrapping_add(u32::try_from(end).unwrap_or(0));
            let next = Run::begin(bits, at, *only);
            let continues = run.as_mut().is_some_and(|run| run.take(&next));
            if !continues {
                *run = Some(next);
            }
            let trusted = run.as_ref().filter(|run| run.frames >= FRAMES_TO_TRUST);
            let found = trusted.and_then(|run| run.rate(*sample_rate_hz));
            let heard = |(rate, index): (VideoRate, u32)| {
                // The code is that of the frame that has ended.
                let tolerance = *sample_rate_hz / rate.frames_hz();
                Heard { at, frame: (f64::from(index) + 1.0) * tolerance, tolerance }
            };
            // One lost frame among good ones changes nothing.
            let expected = || {
                let (rate, before) = (*rate).zip(chase.heard())?;
                let heard = heard((rate, bits.time_code(rate)?.index()));
                let is_near = (heard.frame - before.place_at(at)).abs() < heard.tolerance / 2.0;
                is_near.then_some((rate, heard))
            };
            if let Some((found, heard)) =
                found.map(|found| (found.0, heard(found))).or_else(expected)
            {
                *rate = Some(found);
                chase.hear(heard);
            }
        });
        let frames = u32::try_from(samples.len()).unwrap_or(u32::MAX).max(1);
        chase.end_cycle(begin, frames, rolling, wish);
    }
}
