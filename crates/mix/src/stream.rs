//! A stream on a device: its memory, and what it does at each frame.

use rt::shm::{Miss, Schedule, Timing};
use rt::stream::Wish;

use crate::memory::{NumberedWish, StreamMemory};
use crate::planes::Planes;
use crate::{GainLine, MAX_LEVEL, PIECE_FRAMES, Timeline};

/// Wishes of a stream that are read in one wake-up.
const WISHES_AT_ONCE: usize = 16;

/// A stream that a device plays.
#[derive(Debug)]
pub struct Stream<M> {
    memory: M,
    timeline: Timeline,
    gains: GainLine,
    /// The device's channel for each of the stream's.
    routes: Vec<usize>,
    /// The greatest depth that the stream's ring allows, frames.
    granted_frames: u32,
    /// The greatest depth that its program wants, frames.
    wanted_frames: u32,
    /// A wish that was read, and for which there is no room yet.
    waiting: Option<NumberedWish>,
    written: u64,
    /// Positions below this one may be overwritten by now.
    lowest: u64,
}

impl<M: StreamMemory> Stream<M> {
    /// Returns a stream that holds at position 0, and whose ring allows a depth of
    /// `granted_frames`. Channels beyond `routes` are not heard. Not for a device's thread.
    #[must_use]
    pub fn new(memory: M, routes: Vec<usize>, granted_frames: u32, fade_frames: u32) -> Self {
        Self {
            memory,
            timeline: Timeline::new(fade_frames),
            gains: GainLine::new(),
            routes,
            granted_frames,
            wanted_frames: granted_frames,
            waiting: None,
            written: 0,
            lowest: 0,
        }
    }

    /// Returns its memory.
    #[must_use]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns how far ahead it may be rendered, frames. Thread: cycle.
    #[must_use]
    pub fn depth_frames(&self) -> u32 {
        self.granted_frames.min(self.wanted_frames)
    }

    /// Returns whether it plays at or after a device frame. Thread: cycle.
    #[must_use]
    pub fn plays_at(&self, frame: u64) -> bool {
        self.timeline.plays_at(frame)
    }

    /// Reads what the program has written; returns whether it wants a change of what is rendered.
    /// Thread: cycle.
    pub(crate) fn look(&mut self) -> bool {
        self.written = self.memory.written();
        if self.waiting.is_none() {
            self.waiting = self.memory.next_wish();
        }
        self.waiting.is_some() || self.timeline.can_be_fed(self.written)
    }

    /// Lets its wishes take effect from device frame `at` on, the first that is not rendered.
    /// Thread: cycle.
    pub(crate) fn change(&mut self, at: u64) {
        let missed = self.timeline.feed(at, self.written);
        if missed > 0 {
            let (position, device_frame) = (self.timeline.position(at), at - missed);
            self.memory.note_miss(Miss { position, device_frame, frames: missed });
        }
        for _ in 0..WISHES_AT_ONCE {
            let Some(next) = self.waiting.take().or_else(|| self.memory.next_wish()) else {
                return;
            };
            let Some(wish) = next.wish.filter(|wish| self.is_possible(*wish)) else {
                self.memory.acknowledge(next.number, None);
                continue;
            };
            if !(self.timeline.has_room() && self.gains.has_room()) {
                self.waiting = Some(next);
                return;
            }
            let at = at.max(self.timeline.first_changeable()).max(self.gains.first_changeable());
            self.apply(wish, at);
            self.memory.acknowledge(next.number, Some(at));
        }
    }

    /// A ring holds no frames below the lowest position: what a program seeks to, it writes anew at
    /// a later one.
    fn is_possible(&self, wish: Wish) -> bool {
        !matches!(wish, Wish::Splice { position } if position < self.lowest)
    }

    fn apply(&mut self, wish: Wish, at: u64) {
        match wish {
            Wish::Gain { gains, ramp_frames } => self.gains.apply(gains, ramp_frames, at),
            Wish::Depth { frames } => self.wanted_frames = frames,
            _ => self.timeline.apply(wish, at, self.written),
        }
    }

    /// The device played nothing from `from` to before `to`. Thread: cycle.
    pub(crate) fn skip(&mut self, from: u64, to: u64) {
        self.timeline.skip(from, to, self.written);
    }

    /// Adds what it plays from device frame `first` on to `planes`. `scratch` is for one channel.
    /// Thread: cycle.
    pub(crate) fn render(&mut self, first: u64, planes: &mut Planes, scratch: &mut [f32]) {
        let frames = planes.frames().min(scratch.len()).min(PIECE_FRAMES);
        self.timeline.starve(first, first + frames as u64, self.written);
        for part in self.timeline.parts(first, frames) {
            let offset = usize::try_from(part.first - first).unwrap_or(frames);
            for (channel, route) in self.routes.iter().enumerate().take(self.memory.channels()) {
                let samples = &mut scratch[..part.frames];
                self.memory.read(channel, part.position, samples);
                dsp::scrub(samples);
                match self.gains.constant(channel, part.first, part.frames) {
                    Some(gain) if part.is_flat() => {
                        samples.iter_mut().for_each(|sample| *sample = limited(*sample) * gain);
                    }
                    _ => {
                        for (index, sample) in samples.iter_mut().enumerate() {
                            let gain = self.gains.at(channel, part.first + index as u64);
                            *sample = limited(*sample) * (part.level(index) * gain);
                        }
                    }
                }
                let sum = planes.channel_mut(*route);
                sum.iter_mut().skip(offset).zip(samples).for_each(|(sum, sample)| *sum += *sample);
            }
        }
    }

    /// Publishes what is heard when: device frame `heard` at `at_ns`. Nothing before it will be
    /// rendered again. Thread: cycle.
    pub(crate) fn publish(&mut self, heard: Heard) {
        let Heard { frame, at_ns, frame_ps, rendered, next_rendered, wake_ns } = heard;
        self.timeline.prune(frame);
        self.gains.prune(frame);
        self.lowest = self.lowest.max(self.timeline.lowest(frame));
        self.memory.set_lowest(self.lowest);
        let position = self.timeline.position(frame);
        let until = self.timeline.position(rendered);
        let latency_ns = (rendered.saturating_sub(frame)).saturating_mul(frame_ps) / 1000;
        let timing = Timing { at_ns, device_frame: frame, position, until, frame_ps, latency_ns };
        let runs = self.plays_at(rendered);
        let schedule = match wake_ns.filter(|_| runs) {
            Some(wake_ns) => Schedule {
                wake_ns,
                until: self.timeline.position(next_rendered),
                interval_ns: 0,
                interval_frames: 0,
            },
            None => Schedule { until: 0, ..Schedule::default() },
        };
        self.memory.publish(timing, schedule);
    }
}

/// What a device has played, and will.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    /// The frame that is heard at `at_ns`.
    pub(crate) frame: u64,
    pub(crate) at_ns: u64,
    pub(crate) frame_ps: u64,
    /// Frames up to here are rendered.
    pub(crate) rendered: u64,
    /// Frames up to here will be, at the next wake-up.
    pub(crate) next_rendered: u64,
    pub(crate) wake_ns: Option<u64>,
}

/// Limits a sample, so that the sum of many stays finite.
fn limited(sample: f32) -> f32 {
    sample.clamp(-MAX_LEVEL, MAX_LEVEL)
}
