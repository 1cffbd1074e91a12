//! The loop of a device that plays: when it wakes, what it renders, how far ahead.

mod depth;
mod graph;

pub use self::graph::GraphCycles;
use std::mem;

use rt::stream::Gains;

use crate::boxes::Boxes;
use crate::card::{Card, CardPosition};
use crate::history::FrameHistory;
use crate::lead::Lead;
use crate::memory::{RecordMemory, StreamMemory};
use crate::planes::Planes;
use crate::recorder::Workspace;
use crate::recorders::Recorders;
use crate::stream::{Heard, Stream};
use crate::volume::DeviceVolumeLine;
use crate::{ChannelSet, FIRST_PIECE_FRAMES, PIECE_FRAMES};

/// The greatest depth of all, ns.
const MOST_DEPTH_NS: u64 = 2_000_000_000;
/// Wake-ups that are further away than [`FAR_NS`] are rounded down to multiples of this, for all
/// devices alike, so that threads wake together.
const GRID_NS: u64 = 10_000_000;
const FAR_NS: u64 = 100_000_000;
/// A record stream that is further behind has lost what is before: the machine slept.
const MOST_BEHIND_NS: u64 = 2 * MOST_DEPTH_NS;
/// Cycles that are further apart than they last have not brought what was between them.
const LOST_NS: u64 = 20_000_000;
/// How long a card that is [makeshift](Card::is_makeshift) has played silence before it is opened
/// again: a pause in music, and none between two of its waves.
const SILENCE_NS: u64 = 100_000_000;
/// The shortest sleep, so that a stopped clock cannot make the thread spin.
const LEAST_SLEEP_NS: u64 = 500_000;

/// What a device is, for its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceShape {
    /// Hz.
    pub sample_rate_hz: u32,
    /// Channels.
    pub channels: usize,
    /// Frames of the graph that are kept to be rendered again.
    pub graph_frames: usize,
    /// Streams at once.
    pub streams: usize,
    /// Frames in which the device's volume moves to another one.
    pub ramp_frames: u32,
}

/// Renders a device's streams and the graph's playback ahead of its hardware.
///
/// Belongs to the device's thread. After each call of [`wake`](Self::wake), the thread sleeps until
/// the returned time, or until it is called because of a wish, a stream or the graph.
#[derive(Debug)]
pub struct DeviceLoop<M, R> {
    streams: Boxes<Stream<M>>,
    recorders: Recorders<R>,
    graph: FrameHistory,
    /// Frames of the graph's cycles. `None`: it plays no further.
    cycle_frames: Option<u64>,
    /// When the newest cycle was rendered.
    cycle_ns: u64,
    planes: Planes,
    scratch: Vec<f32>,
    /// What programs of the graph hear of a channel.
    fed: Vec<f32>,
    /// The gains of all that leaves the device.
    volume: DeviceVolumeLine,
    wanted_volume: Gains,
    sample_rate_hz: u32,
    /// Device frames before this one have been passed to the card.
    rendered: u64,
    /// The card had the device frames before this one when the loop came to it: they cannot be
    /// rendered again. `None`: it has not been looked at.
    came_at: Option<u64>,
    /// The frame from which on the newest wish is obeyed: those of a later wish follow it.
    changed: u64,
    /// Device frames before this one had been heard at the last wake-up.
    played: u64,
    /// Device frames before this one had been heard when the graph's cycle began.
    cycle_played: u64,
    /// The card plays.
    is_started: bool,
    changed_ns: Option<u64>,
    /// The card has refused to give back most of what it had not played yet.
    keeps_frames: bool,
    lead: Lead,
    wake_ns: Option<u64>,
    /// What was rendered from this frame on is silent. `None`: the last frame is not, or the card
    /// is not [makeshift](Card::is_makeshift).
    silent_from: Option<u64>,
    /// Frames that were not rendered in time, and were not [taken](Self::take_lost_frames) yet.
    lost_frames: u64,
}

impl<M: StreamMemory, R: RecordMemory> DeviceLoop<M, R> {
    /// Returns a loop without streams, parked, whose device's channels have the gains `volume`.
    /// Not for a device's thread.
    #[must_use]
    pub fn new(shape: DeviceShape, volume: Gains) -> Self {
        let mut scratch = vec![1.0; PIECE_FRAMES];
        scratch.fill(0.0);
        Self {
            streams: Boxes::new(shape.streams),
            recorders: Recorders::new(shape.streams),
            graph: FrameHistory::new(shape.channels, shape.graph_frames),
            cycle_frames: None,
            cycle_ns: 0,
            planes: Planes::new(shape.channels, PIECE_FRAMES),
            fed: scratch.clone(),
            scratch,
            volume: DeviceVolumeLine::new(volume, shape.ramp_frames),
            wanted_volume: volume,
            sample_rate_hz: shape.sample_rate_hz,
            rendered: 0,
            came_at: None,
            changed: 0,
            played: 0,
            cycle_played: 0,
            is_started: false,
            changed_ns: None,
            keeps_frames: false,
            lead: Lead::default(),
            wake_ns: None,
            silent_from: None,
            lost_frames: 0,
        }
    }

    /// Adds a stream. Thread: cycle.
    ///
    /// # Errors
    /// Returns the stream if the device is full.
    pub fn add(&mut self, stream: Box<Stream<M>>) -> Result<(), Box<Stream<M>>> {
        self.streams.add(stream)
    }

    /// Returns the record streams.
    #[must_use]
    pub fn recorders(&self) -> &Recorders<R> {
        &self.recorders
    }

    /// Returns the record streams.
    pub fn recorders_mut(&mut self) -> &mut Recorders<R> {
        &mut self.recorders
    }

    /// States the gains of all that leaves the device, by channel; channels beyond the last have
    /// that of the last. The next wake-up begins to move to them. Thread: cycle.
    pub fn set_volume(&mut self, gains: Gains) {
        self.wanted_volume = gains;
    }

    /// Returns the device's gains at each of its frames.
    #[cfg(test)]
    pub(crate) fn volume(&self) -> &DeviceVolumeLine {
        &self.volume
    }

    /// Returns the streams. Thread: cycle.
    pub fn streams(&self) -> impl Iterator<Item = &Stream<M>> {
        self.streams.iter()
    }

    /// Returns the device frame after the last one that was rendered. Thread: cycle.
    #[must_use]
    pub fn rendered(&self) -> u64 {
        self.rendered
    }

    /// Returns whether the card is stopped, and nothing wakes. Thread: cycle.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        !self.is_started
    }

    /// Returns how many frames were not rendered in time since the last call. Thread: cycle.
    pub fn take_lost_frames(&mut self) -> u64 {
        mem::take(&mut self.lost_frames)
    }

    /// Returns the streams' memories. Thread: cycle.
    pub fn memories_mut(&mut self) -> impl Iterator<Item = &mut M> {
        self.streams.iter_mut().map(|stream| stream.memory_mut())
    }

    /// Ends the streams of `which`: they fade out, and obey no more wishes. Thread: cycle.
    pub fn close(&mut self, which: impl Fn(&M) -> bool) {
        let streams = self.streams.iter_mut();
        streams.filter(|stream| which(stream.memory())).for_each(|stream| stream.close());
    }

    /// Has one channel of the streams of `which` heard on these channels of the device: what is
    /// queued is rendered again at the next wake-up. Thread: cycle.
    pub fn route(&mut self, which: impl Fn(&M) -> bool, channel: usize, to: ChannelSet) {
        let streams = self.streams.iter_mut();
        let routed = streams.filter(|stream| which(stream.memory()));
        routed.for_each(|stream| stream.route(channel, to));
    }

    /// Returns a stream that has been [closed](Self::close), and whose end was heard by the last
    /// wake-up. It is to be dropped elsewhere. Thread: cycle.
    pub fn take_closed(&mut self) -> Option<Box<Stream<M>>> {
        let played = self.played;
        self.streams.take(|stream| stream.is_over(played))
    }

    /// Cuts a stream off after what was heard of it, and returns it, for a device that has
    /// [finished](Self::finish). It is to be dropped elsewhere. Thread: cycle.
    pub fn take_any(&mut self) -> Option<Box<Stream<M>>> {
        let mut stream = self.streams.take(|_| true)?;
        stream.cut_off(self.played);
        Some(stream)
    }

    /// Leaves the card, wherever it is at `now_ns`. Thread: cycle.
    pub fn finish(&mut self, now_ns: u64, card: &mut dyn Card) {
        if self.is_started {
            let played = card.position(now_ns).played.min(self.rendered);
            self.played = self.played.max(played);
            card.leave();
            self.is_started = false;
        }
    }

    /// Runs everything due at `now_ns`. Returns the next wake-up, `CLOCK_MONOTONIC` ns, or `None`
    /// if only a wish, a stream or the graph can cause one. Thread: cycle.
    pub fn wake(&mut self, now_ns: u64, card: &mut dyn Card) -> Option<u64> {
        if let Some(due_ns) = self.wake_ns.filter(|due_ns| *due_ns <= now_ns) {
            self.lead.note(now_ns - due_ns);
        }
        let position = card.position(now_ns);
        self.played = position.played;
        self.follow_card(position, card);
        self.record(position);
        let begins_to_keep = self.recorders.begin_to_keep();
        let is_moved = self.volume.wants(&self.wanted_volume);
        let wants_change = self
            .streams
            .iter_mut()
            .fold(is_moved || begins_to_keep, |any, stream| stream.look() | any);
        if wants_change {
            self.take_back(position, card);
            self.volume.follow(self.wanted_volume, self.rendered);
            self.changed = self.changed.max(self.rendered);
            self.streams.iter_mut().for_each(|stream| stream.change(self.rendered));
            self.render_from_changes();
            self.changed_ns = Some(now_ns);
        }
        self.recorders.obey(position.played, self.rendered);
        if self.plays() && (self.reopen_in_silence(position, card) || !card.open()) {
            return self.await_card(position);
        }
        let depth = self.depth_frames(now_ns, card);
        let lead = self.lead_frames(depth, card);
        if self.plays() {
            self.render(self.target(position, depth, lead), card);
            if !self.is_started && self.rendered > position.played {
                card.start(now_ns);
                self.is_started = true;
            }
        } else if self.is_started && position.played >= self.rendered {
            card.stop();
            self.is_started = false;
        }
        if self.is_started && !self.plays() {
            card.end_in_silence();
        }
        self.wake_ns = self.next_wake_ns(now_ns, position, lead, card);
        self.publish(position, depth.saturating_sub(lead));
        self.wake_ns
    }

    /// Has a card opened again that holds less than every stream wants of it, once nothing is heard
    /// and nothing else is queued: streams lose no frame, and go on when it is there.
    fn reopen_in_silence(&mut self, position: CardPosition, card: &mut dyn Card) -> bool {
        self.silent_from = self.silent_from.filter(|from| *from <= self.rendered);
        let least = self.frames_in(SILENCE_NS);
        let is_silent = self.silent_from.is_some_and(|from| from + least <= position.played);
        let reopens = is_silent
            && self.is_started
            && self.cycle_frames.is_none()
            && card.is_makeshift()
            && self.wanted_depth_frames() > card.buffer_frames().into();
        if reopens {
            card.reopen();
            (self.is_started, self.silent_from) = (false, None);
            // With more room, it may give back most of what it has.
            self.keeps_frames = false;
            self.rendered = card.written();
        }
        reopens
    }

    /// Nothing can be played before the card is open; then the loop is called.
    fn await_card(&mut self, position: CardPosition) -> Option<u64> {
        self.wake_ns = None;
        self.publish(position, 0);
        None
    }

    fn plays(&self) -> bool {
        let graph_plays = self.cycle_frames.is_some() || self.graph.end() > self.rendered;
        graph_plays
            || self.streams().any(|stream| stream.plays_at(self.rendered))
            || self.recorders.keep_awake()
    }

    /// Records what has been heard since the last wake-up.
    fn record(&mut self, position: CardPosition) {
        let most = self.frames_in(MOST_BEHIND_NS);
        let Self { recorders, planes, scratch, .. } = self;
        recorders.record(position.played, most, Workspace { planes, scratch });
    }

    /// Continues where the card does: it may have lost what it had. If the hardware has read more
    /// than was rendered, that is behind its position.
    fn follow_card(&mut self, position: CardPosition, card: &dyn Card) {
        self.came_at.get_or_insert_with(|| card.written());
        self.is_started &= card.is_open();
        self.rendered = card.written();
        if !self.is_started {
            // It may have played some silence before it was stopped.
            self.rendered = self.rendered.max(position.played);
        }
        self.render_from_changes();
        if !self.is_started || position.played <= self.rendered || !self.plays() {
            return;
        }
        let next = position.played + u64::from(card.fetched_frames());
        let from = self.rendered;
        // The graph's own cycles and recorders lose theirs elsewhere.
        if self.streams().any(|stream| stream.plays_at(from)) {
            self.lost_frames += next - from;
        }
        self.streams.iter_mut().for_each(|stream| stream.skip(from, next));
        self.rendered = next;
    }

    /// Continues where the newest wish is obeyed, if nothing plays before it.
    fn render_from_changes(&mut self) {
        if !self.plays() {
            self.rendered = self.rendered.max(self.changed);
        }
    }

    /// Rewinds what the hardware has not read yet. Frames that the card refuses to return are
    /// played as they are. If nothing was queued, rendering continues at the first frame that can
    /// still be changed.
    fn take_back(&mut self, position: CardPosition, card: &mut dyn Card) {
        let earliest = position.played + u64::from(card.fetched_frames());
        let earliest = earliest.max(self.came_at.unwrap_or(0));
        // Not from where rendering would go on: the card has nothing of a silence before a change.
        let written = card.written();
        let taken = written.saturating_sub(earliest);
        if taken > 0 {
            let given = card.rewind(taken).min(taken);
            self.keeps_frames = given < taken / 2;
            self.rendered = written - given;
        } else if self.is_started && !self.plays() {
            self.rendered = earliest;
        }
    }

    fn render(&mut self, target: u64, card: &mut dyn Card) {
        let is_heard = card.is_heard() || self.recorders.keeps();
        let mut piece = FIRST_PIECE_FRAMES;
        while self.rendered < target && self.plays() {
            let left = usize::try_from(target - self.rendered).unwrap_or(PIECE_FRAMES);
            self.planes.resize(piece.min(left));
            let end = self.rendered + self.planes.frames() as u64;
            self.streams.iter_mut().for_each(|stream| stream.starve(self.rendered, end));
            if is_heard {
                self.mix();
            }
            let is_silent = card.is_makeshift() && self.planes.are_silent();
            self.silent_from = is_silent.then(|| self.silent_from.unwrap_or(self.rendered));
            self.recorders.keep(self.rendered, &self.planes);
            card.write(self.rendered, &self.planes);
            self.rendered = end;
            piece = (2 * piece).min(PIECE_FRAMES);
        }
    }

    /// Mixes what is heard in the next frames, as many as the planes have.
    fn mix(&mut self) {
        self.planes.silence(self.planes.frames());
        self.graph.render(self.rendered, &mut self.planes);
        for stream in self.streams.iter() {
            stream.render(self.rendered, &mut self.planes, &mut self.scratch);
        }
        self.volume.scale(self.rendered, &mut self.planes);
    }

    fn next_wake_ns(
        &self,
        now_ns: u64,
        position: CardPosition,
        lead: u64,
        card: &dyn Card,
    ) -> Option<u64> {
        if self.cycle_frames.is_some() || !self.is_started {
            return None;
        }
        // Without anything to play, the next thing to do is to stop the card.
        let before = if self.plays() { lead } else { 0 };
        let regular = self.rendered.saturating_sub(before);
        // What a starving stream lacks may have come by then: in time for a calm look, or at last.
        let last_look = 2 * u64::from(card.safety_frames());
        let look = |starves: u64| {
            let looks = [lead, last_look].map(|before| starves.saturating_sub(before));
            looks.into_iter().find(|look| *look > position.played)
        };
        let looks = self.streams().filter_map(Stream::starves_from).filter_map(look);
        // Another device waits for a stream that is over here.
        let ends = self.streams().filter_map(Stream::over_from);
        let ends = ends.filter(|end| *end > position.played);
        let next = looks.chain(ends).chain(self.recorders.due()).fold(regular, u64::min);
        let ahead = next.saturating_sub(position.played);
        let wake_ns = position.at_ns.saturating_add(duration_ns(ahead, position));
        let wake_ns = wake_ns.max(now_ns + LEAST_SLEEP_NS);
        let is_far = wake_ns - now_ns > FAR_NS && next < self.rendered;
        Some(if is_far { wake_ns / GRID_NS * GRID_NS } else { wake_ns })
    }

    /// Publishes what is heard when, and when up to where will be rendered: `renewed` frames at
    /// each wake-up, or the graph's cycles.
    fn publish(&mut self, position: CardPosition, renewed: u64) {
        self.volume.prune(position.played);
        let interval_frames = self.cycle_frames.unwrap_or(renewed);
        let interval_ns = duration_ns(interval_frames, position);
        let wake_ns = match self.cycle_frames {
            Some(_) => Some(self.cycle_ns.saturating_add(interval_ns)),
            None => self.wake_ns,
        };
        let heard = Heard {
            frame: position.played,
            at_ns: position.at_ns,
            frame_ps: position.frame_ps,
            is_started: self.is_started,
            rendered: self.rendered,
            wake_ns,
            interval_frames,
            interval_ns,
        };
        self.streams.iter_mut().for_each(|stream| stream.publish(heard));
        self.recorders.publish(heard);
    }

    fn frames_in(&self, duration_ns: u64) -> u64 {
        rt::rate::frames_in(duration_ns, self.sample_rate_hz)
    }
}

/// Returns how long the frames of a card last, ns.
fn duration_ns(frames: u64, position: CardPosition) -> u64 {
    frames.saturating_mul(position.frame_ps) / 1000
}
