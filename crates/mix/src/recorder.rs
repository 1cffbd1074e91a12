//! A stream that a device fills: with what the graph's cycles bring it, or with what leaves it.

use rt::shm::{Miss, Schedule, Timing};
use rt::stream::Wish;

use crate::FrameHistory;
use crate::memory::{NumberedWish, RecordMemory};
use crate::planes::Planes;
use crate::stream::Heard;
use crate::volume::VolumeLine;

/// Wishes of a stream that are read in one wake-up.
const WISHES_AT_ONCE: usize = 16;

/// Where the frames of a record stream come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// What the graph's cycles bring while they [feed](crate::Recorders::feed) the stream: what its
    /// ports are connected with. Silence otherwise.
    Graph,
    /// What leaves the device, once it is heard: until then it may be rendered again.
    Monitor,
}

/// A stream that a device fills.
#[derive(Debug)]
pub struct Recorder<R> {
    memory: R,
    source: Source,
    /// The device's channel for each of the stream's, if it monitors.
    routes: Vec<usize>,
    volume: VolumeLine,
    /// How long frames may wait in the device, now and at most.
    interval_frames: u64,
    most_interval_frames: u64,
    lets_sleep: bool,
    /// The graph's cycles bring its frames.
    is_fed: bool,
    runs: bool,
    /// A wish that was read and is not obeyed yet.
    waiting: Option<NumberedWish>,
    position: u64,
    /// The device frame that is recorded next, while it runs.
    next: u64,
    /// Nothing has been recorded since it began to run.
    begins: bool,
    /// It ran on another device when it was moved, and runs on here.
    goes_on: bool,
    end: End,
}

/// How far the end of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its program goes on.
    Open,
    /// It is to get what is heard by the next wake-up, and to end.
    Asked,
    /// It gets no more frames.
    Decided,
}

/// Where recorders put together what they record.
pub(crate) struct Workspace<'a> {
    /// Room for a piece of all channels.
    pub(crate) planes: &'a mut Planes,
    /// Room for a piece of one channel.
    pub(crate) scratch: &'a mut [f32],
}

impl<R: RecordMemory> Recorder<R> {
    /// Returns a stream that holds at position 0, and gets frames each `interval_frames` or more
    /// often. Not for a device's thread.
    #[must_use]
    pub fn new(
        memory: R,
        source: Source,
        routes: Vec<usize>,
        interval_frames: u32,
        fade_frames: u32,
    ) -> Self {
        Self {
            memory,
            source,
            routes,
            volume: VolumeLine::new(fade_frames),
            interval_frames: interval_frames.max(1).into(),
            most_interval_frames: interval_frames.max(1).into(),
            lets_sleep: false,
            is_fed: false,
            runs: false,
            waiting: None,
            position: 0,
            next: 0,
            begins: false,
            goes_on: false,
            end: End::Open,
        }
    }

    /// Returns this stream as one that has moved to another device of the same rate, where it goes
    /// on with the next frame that is heard if it ran. It was closed, and is over. Not for a
    /// device's thread.
    #[must_use]
    pub fn moved(self, fade_frames: u32) -> Self {
        let mut volume = VolumeLine::new(fade_frames);
        volume.start_at(self.memory.volume());
        let goes_on = self.runs || self.goes_on;
        Self { volume, goes_on, runs: false, is_fed: false, end: End::Open, ..self }
    }

    /// Returns a new stream as one that has recorded before, on a server that has gone: its next
    /// frame has this position. Not for a device's thread.
    #[must_use]
    pub fn beginning_at(self, position: u64) -> Self {
        let mut volume = self.volume;
        volume.start_at(self.memory.volume());
        Self { volume, position, ..self }
    }

    /// Returns this stream as one for which the device does not run: it gets no frames while
    /// nothing else needs the device. Not for a device's thread.
    #[must_use]
    pub fn letting_sleep(self) -> Self {
        Self { lets_sleep: true, ..self }
    }

    /// Returns its memory.
    #[must_use]
    pub fn memory(&self) -> &R {
        &self.memory
    }

    /// Returns how long frames may wait in the device, frames. Thread: cycle.
    #[must_use]
    pub fn interval_frames(&self) -> u64 {
        self.interval_frames
    }

    /// Returns whether it records. Thread: cycle.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.runs && self.end != End::Decided
    }

    /// Returns whether the device runs for it. Thread: cycle.
    pub(crate) fn keeps_awake(&self) -> bool {
        self.runs() && !self.lets_sleep
    }

    pub(crate) fn is_monitor(&self) -> bool {
        self.source == Source::Monitor
    }

    /// Has the graph's cycles bring its frames, or no longer. Thread: cycle.
    pub(crate) fn set_fed(&mut self, is_fed: bool) {
        self.is_fed = is_fed && !self.is_monitor();
    }

    /// Returns whether it gets what the graph's cycles bring, and nothing without them. Thread:
    /// cycle.
    pub(crate) fn is_fed(&self) -> bool {
        self.is_fed && self.runs()
    }

    /// Returns whether it needs what leaves the device. Thread: cycle.
    pub(crate) fn monitors(&self) -> bool {
        self.is_monitor() && self.runs()
    }

    /// Ends it at the next wake-up. Thread: cycle.
    pub(crate) fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Asked;
        }
    }

    /// Returns whether it has ended. Thread: cycle.
    pub(crate) fn is_over(&self) -> bool {
        self.end == End::Decided
    }

    /// Returns the device frame at which enough has been heard, if it runs. Thread: cycle.
    pub(crate) fn due(&self) -> Option<u64> {
        self.runs().then(|| self.next.saturating_add(self.interval_frames))
    }

    /// Reads the next wish; returns whether it is to begin to monitor. Thread: cycle.
    pub(crate) fn look(&mut self) -> bool {
        if self.end != End::Open {
            return false;
        }
        if self.waiting.is_none() {
            self.waiting = self.memory.next_wish();
        }
        let runs = self.waiting.is_some_and(|next| next.wish == Some(Wish::Run));
        self.is_monitor() && (runs || self.goes_on) && !self.runs
    }

    /// Obeys wishes: it begins to record at device frame `first`, or ends before `played`, the
    /// frame that is heard now. One that was closed is over. Thread: cycle.
    pub(crate) fn obey(&mut self, first: u64, played: u64) {
        if self.end != End::Open {
            self.end = End::Decided;
            return;
        }
        if std::mem::take(&mut self.goes_on) {
            (self.runs, self.begins, self.next) = (true, true, first);
        }
        for _ in 0..WISHES_AT_ONCE {
            let Some(next) = self.waiting.take().or_else(|| self.memory.next_wish()) else {
                return;
            };
            let at = match next.wish {
                Some(Wish::Run) => {
                    if !self.runs {
                        (self.runs, self.begins, self.next) = (true, true, first);
                    }
                    Some(self.next)
                }
                Some(Wish::Hold) => {
                    self.runs = false;
                    Some(played)
                }
                Some(Wish::Depth { frames }) => {
                    self.interval_frames = u64::from(frames).clamp(1, self.most_interval_frames);
                    Some(played)
                }
                // Nothing is queued that could end, be dropped or sound otherwise.
                Some(Wish::Drain { .. } | Wish::Splice { .. } | Wish::Gain { .. }) | None => None,
            };
            self.memory.acknowledge(next.number, at);
        }
    }

    /// Records everything before device frame `end` of what is kept, or silence, but no more than
    /// `most` frames: those before them are lost. Not for a stream that is fed. Thread: cycle.
    pub(crate) fn record(
        &mut self,
        end: u64,
        most: u64,
        kept: Option<&FrameHistory>,
        work: &mut Workspace<'_>,
    ) {
        if !self.runs() || end <= self.next {
            return;
        }
        self.begins = false;
        self.lose(end.saturating_sub(most));
        while self.next < end {
            let left = usize::try_from(end - self.next).unwrap_or(usize::MAX);
            work.planes.silence(left.min(work.scratch.len()));
            if let Some(kept) = kept {
                kept.render(self.next, work.planes);
            }
            self.write(work.planes, work.scratch);
        }
        self.memory.finish(self.position);
    }

    /// Records a cycle of the graph, of which the last frame was captured when device frame `end`
    /// was heard. Cycles that are no further apart than `slack` frames and two of them follow each
    /// other without a gap: the graph and the device have one clock. `bring` fills the samples of a
    /// channel. Thread: cycle.
    pub(crate) fn record_cycle(
        &mut self,
        end: u64,
        slack: u64,
        samples: &mut [f32],
        mut bring: impl FnMut(&R, usize, &mut [f32]),
    ) {
        let frames = samples.len() as u64;
        let first = end.saturating_sub(frames);
        let mut skipped = 0;
        if self.begins {
            // What was captured before the wish is none of it.
            skipped = self.next.saturating_sub(first).min(frames);
            self.next = self.next.max(first);
        } else if first > self.next.saturating_add(slack + 2 * frames) {
            self.lose(first);
        }
        if skipped == frames {
            return;
        }
        self.begins = false;
        self.follow_volume();
        let skipped = usize::try_from(skipped).unwrap_or(0);
        let written = frames - skipped as u64;
        self.memory.begin(self.position + written);
        let gain = self.volume.constant(self.next, samples.len() - skipped);
        for channel in 0..self.memory.channels() {
            bring(&self.memory, channel, samples);
            let samples = &mut samples[skipped..];
            if gain != Some(1.0) {
                for (frame, sample) in (self.next..).zip(&mut *samples) {
                    *sample *= self.volume.at(frame);
                }
            }
            self.memory.write(channel, self.position, samples);
        }
        (self.position, self.next) = (self.position + written, self.next + written);
        self.memory.finish(self.position);
    }

    fn follow_volume(&mut self) {
        self.volume.follow(self.memory.volume(), self.next);
        self.volume.prune(self.next);
    }

    /// Skips device frames before `first`, which are not there any more.
    fn lose(&mut self, first: u64) {
        if let Some(frames @ 1..) = first.checked_sub(self.next) {
            let miss = Miss { position: self.position, device_frame: self.next, frames };
            self.memory.note_miss(miss);
            self.next = first;
        }
    }

    fn write(&mut self, planes: &Planes, scratch: &mut [f32]) {
        let frames = planes.frames();
        self.follow_volume();
        let end = self.position + frames as u64;
        self.memory.begin(end);
        let gain = self.volume.constant(self.next, frames);
        for (channel, route) in self.routes.iter().enumerate().take(self.memory.channels()) {
            let samples = planes.channel(*route);
            if gain == Some(1.0) {
                self.memory.write(channel, self.position, samples);
                continue;
            }
            let scaled = &mut scratch[..samples.len()];
            for ((frame, into), sample) in (self.next..).zip(&mut *scaled).zip(samples) {
                *into = *sample * self.volume.at(frame);
            }
            self.memory.write(channel, self.position, scaled);
        }
        (self.position, self.next) = (end, self.next + frames as u64);
    }

    /// Publishes what was heard when, and when more is there. Thread: cycle.
    pub(crate) fn publish(&mut self, heard: Heard) {
        let Heard { frame, at_ns, frame_ps, wake_ns, .. } = heard;
        let lasts = |frames: u64| frames.saturating_mul(frame_ps) / 1000;
        let position = self.position;
        // What the graph brings comes a cycle after it was captured.
        let behind = if self.is_fed() { frame.saturating_sub(self.next) } else { 0 };
        let (frame, at_ns) = (frame - behind, at_ns.saturating_sub(lasts(behind)));
        // A device that sleeps passes nothing on.
        let until = if self.runs() && heard.is_started { u64::MAX } else { position };
        let latency_ns = lasts(self.interval_frames);
        let timing = Timing { at_ns, device_frame: frame, position, until, frame_ps, latency_ns };
        let schedule = match wake_ns.filter(|_| self.runs()) {
            Some(wake_ns) => Schedule {
                wake_ns,
                until: position
                    + wake_ns.saturating_sub(at_ns).saturating_mul(1000) / frame_ps.max(1),
                interval_ns: latency_ns,
                interval_frames: self.interval_frames,
            },
            None => Schedule { until: position, ..Schedule::default() },
        };
        self.memory.publish(timing, schedule);
    }
}
