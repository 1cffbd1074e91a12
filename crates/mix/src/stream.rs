//! A stream on a device: its memory, and what it does at each frame.

use dsp::PeerSamples;
use rt::shm::{Miss, Schedule, Timing};
use rt::stream::Wish;

use crate::memory::{NumberedWish, StreamMemory};
use crate::planes::Planes;
use crate::volume::VolumeLine;
use crate::{ChannelSet, GainLine, MAX_LEVEL, PIECE_FRAMES, Part, RouteLine, Routes, Timeline};

/// Wishes of a stream that are read in one wake-up.
const WISHES_AT_ONCE: usize = 16;

/// How long before a change its positions are published as if it were heard, ns.
const MOMENT_NS: u64 = 10_000_000;

/// A stream that a device plays.
#[derive(Debug)]
pub struct Stream<M> {
    memory: M,
    timeline: Timeline,
    /// What the program wishes.
    gains: GainLine,
    /// What the server makes of that.
    volume: VolumeLine,
    /// Where it is heard.
    routes: RouteLine,
    /// Routes that are not applied yet.
    rerouted: Option<Routes>,
    /// The greatest depth that the stream's ring allows, frames.
    granted_frames: u32,
    /// The greatest depth that its program wants, frames.
    wanted_frames: u32,
    /// A wish that was read, and for which there is no room yet.
    waiting: Option<NumberedWish>,
    written: u64,
    /// Programs of the graph have heard what it plays at device frames before this one.
    heard: u64,
    /// Positions below this one may be overwritten by now.
    lowest: u64,
    end: End,
    /// It ran on another device when it was moved, and runs on here.
    goes_on: bool,
}

/// How far the end of a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its program goes on.
    Open,
    /// It is to fade out.
    Asked,
    /// It fades out, or holds.
    Decided,
}

impl<M: StreamMemory> Stream<M> {
    /// Returns a stream that holds at position 0, and whose ring allows a depth of
    /// `granted_frames`. Not for a device's thread.
    #[must_use]
    pub fn new(memory: M, routes: Routes, granted_frames: u32, fade_frames: u32) -> Self {
        Self {
            memory,
            timeline: Timeline::new(fade_frames),
            gains: GainLine::new(),
            volume: VolumeLine::new(fade_frames),
            routes: RouteLine::new(routes, fade_frames),
            rerouted: None,
            granted_frames,
            wanted_frames: granted_frames,
            waiting: None,
            written: 0,
            heard: 0,
            lowest: 0,
            end: End::Open,
            goes_on: false,
        }
    }

    /// Returns a new stream as one that was played up to `position` before, on a server that has
    /// gone: it holds there, at the server's volume, and fades in when it runs. Not for a device's
    /// thread.
    #[must_use]
    pub fn beginning_at(self, position: u64, fade_frames: u32) -> Self {
        let mut volume = VolumeLine::new(fade_frames);
        volume.start_at(self.memory.volume());
        let timeline = Timeline::held_at(position, fade_frames);
        Self { timeline, volume, lowest: position, ..self }
    }

    /// Returns it for another device of the same rate, which renders it from its first frame on: it
    /// holds where it did in the end, and runs on if it ran when it was closed or cut off. Not for
    /// a device's thread.
    #[must_use]
    pub fn moved(self, routes: Routes, fade_frames: u32) -> Self {
        let mut volume = VolumeLine::new(fade_frames);
        volume.start_at(self.memory.volume());
        Self {
            timeline: self.timeline.moved(),
            gains: self.gains.moved(),
            volume,
            routes: RouteLine::new(routes, fade_frames),
            rerouted: None,
            heard: 0,
            end: End::Open,
            ..self
        }
    }

    /// Returns its memory.
    #[must_use]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns its memory.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Returns how far ahead it may be rendered, frames. Thread: cycle.
    #[must_use]
    pub fn depth_frames(&self) -> u32 {
        self.granted_frames.min(self.wanted_frames)
    }

    /// Returns the server's volume at each device frame.
    #[cfg(test)]
    pub(crate) fn volume(&self) -> &VolumeLine {
        &self.volume
    }

    /// Returns whether it plays at or after a device frame. Thread: cycle.
    #[must_use]
    pub fn plays_at(&self, frame: u64) -> bool {
        self.timeline.plays_at(frame)
    }

    /// Returns the device frame after the last one for which its program has written frames; `None`
    /// if it needs no more. Thread: cycle.
    pub(crate) fn runs_out_at(&self) -> Option<u64> {
        self.timeline.runs_out_at(self.written).filter(|_| self.end == End::Open)
    }

    /// Returns the device frame from which on it waits for its program to write. Thread: cycle.
    #[must_use]
    pub fn starves_from(&self) -> Option<u64> {
        self.timeline.starves_from().filter(|_| self.end == End::Open)
    }

    /// Returns its newest routes, and from which device frame on it has them.
    #[cfg(test)]
    pub(crate) fn routed(&self) -> (u64, Routes) {
        self.routes.newest()
    }

    /// Has one of its channels heard on others of the device, as soon as that can be heard.
    /// Thread: cycle.
    pub(crate) fn route(&mut self, channel: usize, to: ChannelSet) {
        self.rerouted.get_or_insert_with(|| self.routes.newest().1).set(channel, to);
    }

    /// Ends it with a fade. Thread: cycle.
    pub(crate) fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Asked;
        }
    }

    /// Cuts it off after device frame `heard`, the last that its device plays: that is where it
    /// holds in the end. Thread: cycle.
    pub(crate) fn cut_off(&mut self, heard: u64) {
        self.goes_on |= self.end != End::Decided && self.timeline.runs();
        self.timeline.cut_off(heard);
        self.end = End::Decided;
    }

    /// Returns whether it was closed, and nothing of it is heard from device frame `played` on.
    /// Thread: cycle.
    pub(crate) fn is_over(&self, played: u64) -> bool {
        self.end == End::Decided && !self.plays_at(played)
    }

    /// Returns the device frame from which on nothing of it is heard, once it was closed. Thread:
    /// cycle.
    pub(crate) fn over_from(&self) -> Option<u64> {
        (self.end == End::Decided).then(|| self.timeline.silent_from())
    }

    /// Reads what the program has written; returns whether it wants a change of what is rendered.
    /// Thread: cycle.
    pub(crate) fn look(&mut self) -> bool {
        let is_moved = self.volume.wants(self.memory.volume());
        if self.end != End::Open {
            // What it fades out over was there before.
            return self.end == End::Asked || is_moved;
        }
        self.waiting = self.next_wish();
        let is_rerouted = self.rerouted.is_some() && self.routes.has_room();
        let is_new = is_moved || is_rerouted || self.goes_on;
        is_new || self.waiting.is_some() || self.timeline.can_be_fed(self.written)
    }

    /// Applies the volume and pending wishes from device frame `at`, the first that is not rendered
    /// yet, or after what programs of the graph have heard. Thread: cycle.
    pub(crate) fn change(&mut self, at: u64) {
        let at = at.max(self.heard);
        self.volume.follow(self.memory.volume(), at);
        if self.end != End::Open {
            return self.fade_out(at);
        }
        if let Some(routes) = self.rerouted.take_if(|_| self.routes.has_room()) {
            self.routes.apply(routes, at.max(self.routes.first_changeable()));
        }
        if std::mem::take(&mut self.goes_on) {
            self.timeline.apply(Wish::Run, at, self.written);
        }
        self.go_on(at);
        self.obey(at);
        // What a drain ends needs no more frames.
        self.go_on(at);
    }

    /// Goes on at device frame `at` if it starves, and what it needs is there.
    fn go_on(&mut self, at: u64) {
        let missed = self.timeline.feed(at, self.written);
        if missed > 0 {
            let (position, device_frame) = (self.timeline.position(at), at - missed);
            self.memory.note_miss(Miss { position, device_frame, frames: missed });
        }
    }

    /// Takes the next wish, and with it all that was written before the program wished.
    fn next_wish(&mut self) -> Option<NumberedWish> {
        let next = self.waiting.take().or_else(|| self.memory.next_wish());
        self.written = self.memory.written();
        next
    }

    fn obey(&mut self, at: u64) {
        for _ in 0..WISHES_AT_ONCE {
            let Some(next) = self.next_wish() else { return };
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

    fn fade_out(&mut self, at: u64) {
        if self.end == End::Asked && self.timeline.has_room() {
            let at = at.max(self.timeline.first_changeable());
            self.goes_on |= self.timeline.runs();
            self.timeline.apply(Wish::Hold, at, self.written);
            self.end = End::Decided;
        }
    }

    /// Frames below the lowest position are gone from the ring; to seek there, a program writes
    /// them again at a later position.
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

    /// It is about to play the device frames from `first` to before `end`: it starves where its
    /// program has written nothing for them. Thread: cycle.
    pub(crate) fn starve(&mut self, first: u64, end: u64) {
        self.timeline.starve(first, end, self.written, self.lowest);
    }

    /// Adds what it plays from device frame `first` on to `planes`, after [`starve`](Self::starve)
    /// for these frames. `scratch` is for one channel. Thread: cycle.
    pub(crate) fn render(&self, first: u64, planes: &mut Planes, scratch: &mut [f32]) {
        let frames = planes.frames().min(scratch.len()).min(PIECE_FRAMES);
        for part in self.timeline.parts(first, frames) {
            let offset = usize::try_from(part.first - first).unwrap_or(frames);
            for channel in 0..self.memory.channels() {
                let mut reached = self.routes.reached(channel, part.first, part.frames).peekable();
                if reached.peek().is_none() {
                    continue;
                }
                let samples = &mut scratch[..part.frames];
                self.read(channel, part, samples);
                for (to, level) in reached {
                    let sum = planes.channel_mut(to).get_mut(offset..).unwrap_or_default();
                    if level.is_full() {
                        dsp::add(PeerSamples::from_slice(samples), sum);
                    } else {
                        let sum = sum.iter_mut().zip(&*samples).zip(part.first..);
                        sum.for_each(|((sum, sample), frame)| *sum += *sample * level.at(frame));
                    }
                }
            }
        }
    }

    /// Passes what it plays in the `frames` frames from device frame `first` on to the programs of
    /// the graph that hear it. `plane` and `scratch` are for one channel. Thread: cycle.
    pub(crate) fn feed_graph(
        &mut self,
        first: u64,
        frames: usize,
        plane: &mut [f32],
        scratch: &mut [f32],
    ) {
        let channels = self.memory.channels();
        if !(0..channels).any(|channel| self.memory.is_heard(channel)) {
            return;
        }
        let end = first + frames as u64;
        if self.end == End::Open {
            self.written = self.memory.written();
        }
        self.starve(first, end);
        let most = plane.len().min(scratch.len()).max(1);
        for channel in 0..channels {
            if !self.memory.is_heard(channel) {
                continue;
            }
            for offset in (0..frames).step_by(most) {
                let plane = &mut plane[..most.min(frames - offset)];
                dsp::silence(plane);
                let first = first + offset as u64;
                for part in self.timeline.parts(first, plane.len()) {
                    let offset = usize::try_from(part.first - first).unwrap_or(most);
                    let samples = &mut scratch[..part.frames];
                    self.read(channel, part, samples);
                    let sum = plane.get_mut(offset..).unwrap_or_default();
                    dsp::add(PeerSamples::from_slice(samples), sum);
                }
                self.memory.hear(channel, offset, plane);
            }
        }
        self.heard = self.heard.max(end);
    }

    /// Reads the samples of a part as they are heard.
    fn read(&self, channel: usize, part: Part, samples: &mut [f32]) {
        self.memory.read(channel, part.position, samples);
        if part.is_backwards {
            samples.reverse();
        }
        match self.constant_gain(channel, part.first, part.frames) {
            Some(gain) if part.is_flat() => dsp::limited_gain(samples, MAX_LEVEL, gain),
            _ => {
                dsp::limited_gain(samples, MAX_LEVEL, 1.0);
                for (index, sample) in samples.iter_mut().enumerate() {
                    let frame = part.first + index as u64;
                    let gain = self.gains.at(channel, frame) * self.volume.at(frame);
                    *sample *= part.level(index) * gain;
                }
            }
        }
    }

    fn constant_gain(&self, channel: usize, first: u64, frames: usize) -> Option<f32> {
        let wished = self.gains.constant(channel, first, frames)?;
        Some(wished * self.volume.constant(first, frames)?)
    }

    /// Publishes what is heard when: device frame `heard` at `at_ns`. Nothing before it will be
    /// rendered again. Thread: cycle.
    pub(crate) fn publish(&mut self, heard: Heard) {
        let Heard { frame, at_ns, frame_ps, rendered, .. } = heard;
        self.timeline.prune(frame);
        self.gains.prune(frame);
        self.volume.prune(frame);
        self.routes.prune(frame);
        self.lowest = self.lowest.max(self.timeline.lowest(frame));
        self.memory.set_lowest(self.lowest);
        let latency_ns = (rendered.saturating_sub(frame)).saturating_mul(frame_ps) / 1000;
        let (device_frame, until) = self.stretch(heard);
        let position = self.timeline.position(device_frame);
        let at_ns = at_ns.saturating_add((device_frame - frame).saturating_mul(frame_ps) / 1000);
        // A card that is stopped has no clock.
        let frame_ps = if heard.is_started { frame_ps } else { 0 };
        let timing = Timing { at_ns, device_frame, position, until, frame_ps, latency_ns };
        self.memory.publish(timing, self.schedule(heard));
    }

    /// Returns the device frame from which on positions are published, and the position up to which
    /// they follow each other. A change that is heard in a moment counts as heard: the next wake-up
    /// may be seconds away.
    fn stretch(&self, heard: Heard) -> (u64, u64) {
        let soon =
            heard.frame.saturating_add(MOMENT_NS.saturating_mul(1000) / heard.frame_ps.max(1));
        let (mut from, mut next) = (heard.frame, self.timeline.next_change(heard.frame));
        while let Some(change) = next.filter(|change| *change <= soon.min(heard.rendered)) {
            (from, next) = (change, self.timeline.next_change(change));
        }
        // At a change that comes later, nothing is known beyond it.
        let until = match next.filter(|change| *change <= heard.rendered) {
            Some(change) => self.timeline.position_before(change),
            None => self.timeline.position(heard.rendered),
        };
        (from, until)
    }

    /// Returns when more of its frames are needed, and up to where.
    fn schedule(&self, heard: Heard) -> Schedule {
        let Heard { rendered, interval_frames, interval_ns, .. } = heard;
        let starves = self.starves_from().is_some();
        match heard.wake_ns.filter(|_| starves || self.plays_at(rendered)) {
            Some(wake_ns) => {
                // Programs of the graph hear it a cycle before it is rendered.
                let is_fed = self.heard > 0 && self.heard >= rendered;
                let ahead = interval_frames * (1 + u64::from(is_fed));
                let until = self.timeline.position(rendered + ahead);
                // A stream that starves needs whatever comes next.
                let until = if starves { until.max(self.written) + interval_frames } else { until };
                Schedule { wake_ns, until, interval_ns, interval_frames }
            }
            None => Schedule::default(),
        }
    }
}

/// What a device has played, and will.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heard {
    /// The frame that is heard at `at_ns`.
    pub(crate) frame: u64,
    pub(crate) at_ns: u64,
    pub(crate) frame_ps: u64,
    /// The card plays.
    pub(crate) is_started: bool,
    /// Frames up to here are rendered.
    pub(crate) rendered: u64,
    /// When more will be rendered; `None`: not before something changes.
    pub(crate) wake_ns: Option<u64>,
    /// How many frames then, and in each wake-up after that.
    pub(crate) interval_frames: u64,
    /// Time between these wake-ups.
    pub(crate) interval_ns: u64,
}
