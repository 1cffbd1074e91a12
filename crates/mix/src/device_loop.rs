//! The loop of a device that plays: when it wakes, what it renders, how far ahead.

use crate::card::{Card, CardPosition};
use crate::graph::GraphHistory;
use crate::lead::Lead;
use crate::memory::StreamMemory;
use crate::planes::Planes;
use crate::stream::{Heard, Stream};
use crate::{FIRST_PIECE_FRAMES, PIECE_FRAMES};

/// The greatest depth of all, ns.
const MOST_DEPTH_NS: u64 = 2_000_000_000;
/// How far ahead is rendered for [`QUIET_NS`] after a change: a slider that is dragged has so much
/// rendered again each time, and not seconds.
const DEPTH_AFTER_CHANGE_NS: u64 = 100_000_000;
const QUIET_NS: u64 = 1_000_000_000;
/// Wake-ups that are further away than [`FAR_NS`] are rounded down to multiples of this, for all
/// devices alike, so that threads wake together.
const GRID_NS: u64 = 10_000_000;
const FAR_NS: u64 = 100_000_000;
/// The shortest sleep: a clock that stands makes no thread spin.
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
}

/// Renders a device's streams and the graph's playback ahead of its hardware.
///
/// Belongs to the device's thread. After each call of [`wake`](Self::wake), the thread sleeps until
/// the returned time, or until it is called because of a wish, a stream or the graph.
#[derive(Debug)]
pub struct DeviceLoop<M> {
    streams: Vec<Option<Box<Stream<M>>>>,
    graph: GraphHistory,
    graph_runs: bool,
    planes: Planes,
    scratch: Vec<f32>,
    sample_rate_hz: u32,
    /// Device frames before this one have been passed to the card.
    rendered: u64,
    /// The card plays.
    is_started: bool,
    changed_ns: Option<u64>,
    lead: Lead,
    wake_ns: Option<u64>,
    /// Frames that were not rendered in time.
    lost_frames: u64,
}

impl<M: StreamMemory> DeviceLoop<M> {
    /// Returns a loop without streams, parked. Not for a device's thread.
    #[must_use]
    pub fn new(shape: DeviceShape) -> Self {
        let mut scratch = vec![1.0; PIECE_FRAMES];
        scratch.fill(0.0);
        Self {
            streams: (0..shape.streams).map(|_| None).collect(),
            graph: GraphHistory::new(shape.channels, shape.graph_frames),
            graph_runs: false,
            planes: Planes::new(shape.channels, PIECE_FRAMES),
            scratch,
            sample_rate_hz: shape.sample_rate_hz,
            rendered: 0,
            is_started: false,
            changed_ns: None,
            lead: Lead::default(),
            wake_ns: None,
            lost_frames: 0,
        }
    }

    /// Adds a stream; returns its place, or gives it back if there is none. Thread: cycle.
    ///
    /// # Errors
    /// The stream, if the device has as many as it can have.
    pub fn add(&mut self, stream: Box<Stream<M>>) -> Result<usize, Box<Stream<M>>> {
        match self.streams.iter().position(Option::is_none) {
            Some(place) => {
                self.streams[place] = Some(stream);
                Ok(place)
            }
            None => Err(stream),
        }
    }

    /// Takes a stream away, which should hold by now: it is cut. It is to be dropped elsewhere.
    /// Thread: cycle.
    pub fn remove(&mut self, place: usize) -> Option<Box<Stream<M>>> {
        self.streams.get_mut(place)?.take()
    }

    /// Returns the streams. Thread: cycle.
    pub fn streams(&self) -> impl Iterator<Item = &Stream<M>> {
        self.streams.iter().flatten().map(Box::as_ref)
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

    /// Returns how many frames were not rendered in time. Thread: cycle.
    #[must_use]
    pub fn lost_frames(&self) -> u64 {
        self.lost_frames
    }

    /// The graph begins to play: from the returned device frame on, [`play_graph`](Self::play_graph)
    /// has to bring its cycles, and nothing is rendered beyond them. Thread: cycle.
    pub fn begin_graph(&mut self, now_ns: u64, card: &mut impl Card) -> u64 {
        let position = card.position(now_ns);
        self.note_underrun(position, card);
        self.take_back(position, card);
        self.graph_runs = true;
        self.next_of_graph()
    }

    /// Returns the device frame of the graph's next cycle: after what it has played, even if that
    /// is to be rendered again.
    fn next_of_graph(&self) -> u64 {
        self.graph.end().max(self.rendered)
    }

    /// Renders what the graph plays in its next cycle, with the streams. Thread: cycle.
    pub fn play_graph(&mut self, now_ns: u64, card: &mut impl Card, cycle: &Planes) {
        self.graph.push(self.next_of_graph(), cycle);
        self.wake(now_ns, card);
    }

    /// The graph plays no further. Thread: cycle.
    pub fn end_graph(&mut self) {
        self.graph_runs = false;
    }

    /// Does what is to be done at `now_ns`; returns when to wake, `CLOCK_MONOTONIC` ns. `None`: not
    /// before a wish, a stream or the graph. Thread: cycle.
    pub fn wake(&mut self, now_ns: u64, card: &mut impl Card) -> Option<u64> {
        if let Some(due_ns) = self.wake_ns.filter(|due_ns| *due_ns <= now_ns) {
            self.lead.note(now_ns - due_ns);
        }
        let position = card.position(now_ns);
        self.note_underrun(position, card);
        let wants_change =
            self.streams.iter_mut().flatten().fold(false, |any, stream| stream.look() | any);
        if wants_change {
            self.take_back(position, card);
            self.streams.iter_mut().flatten().for_each(|stream| stream.change(self.rendered));
            self.changed_ns = Some(now_ns);
        }
        let depth = self.depth_frames(now_ns, card);
        if self.plays() {
            self.render(position, depth, card);
            if !self.is_started && self.rendered > position.played {
                card.start(now_ns);
                self.is_started = true;
            }
        } else if self.is_started && position.played >= self.rendered {
            card.stop();
            self.is_started = false;
        }
        let lead = self.lead_frames(depth, card);
        self.wake_ns = self.next_wake_ns(now_ns, position, lead);
        self.publish(position, depth.saturating_sub(lead));
        self.wake_ns
    }

    fn plays(&self) -> bool {
        let graph_plays = self.graph_runs || self.graph.end() > self.rendered;
        graph_plays || self.streams().any(|stream| stream.plays_at(self.rendered))
    }

    /// Continues behind the hardware's position, if the hardware has read more than was rendered.
    fn note_underrun(&mut self, position: CardPosition, card: &impl Card) {
        if !self.is_started {
            // It may have played some silence before it was stopped.
            self.rendered = self.rendered.max(position.played);
        }
        if !self.is_started || position.played <= self.rendered || !self.plays() {
            return;
        }
        let next = position.played + u64::from(card.safety_frames());
        self.lost_frames += next - self.rendered;
        let from = self.rendered;
        self.streams.iter_mut().flatten().for_each(|stream| stream.skip(from, next));
        self.rendered = next;
    }

    /// Takes back what the hardware has not read yet. What it refuses to give back is played as it
    /// is. If there is nothing, because nothing was to be played, what comes next must still be in
    /// time.
    fn take_back(&mut self, position: CardPosition, card: &mut impl Card) {
        let earliest = position.played + u64::from(card.safety_frames());
        let taken = self.rendered.saturating_sub(earliest);
        if taken > 0 {
            self.rendered -= card.rewind(taken).min(taken);
        } else if self.is_started && !self.plays() {
            self.rendered = earliest;
        }
    }

    /// Returns how far ahead to render: as far as the stream that allows least, and less for a
    /// while after a change.
    fn depth_frames(&self, now_ns: u64, card: &impl Card) -> u64 {
        let most = self.frames_in(MOST_DEPTH_NS).min(card.buffer_frames().into());
        let playing = self.streams().filter(|stream| stream.plays_at(self.rendered));
        let depth = playing.map(|stream| u64::from(stream.depth_frames())).fold(most, u64::min);
        let is_quiet =
            self.changed_ns.is_none_or(|changed_ns| now_ns.saturating_sub(changed_ns) >= QUIET_NS);
        let limit = if is_quiet { most } else { self.frames_in(DEPTH_AFTER_CHANGE_NS) };
        // Less than this could never be rendered in time.
        depth.min(limit).max(2 * u64::from(card.safety_frames()))
    }

    fn render(&mut self, position: CardPosition, depth: u64, card: &mut impl Card) {
        let target = if self.graph_runs { self.graph.end() } else { position.played + depth };
        let mut piece = FIRST_PIECE_FRAMES;
        while self.rendered < target && self.plays() {
            let left = usize::try_from(target - self.rendered).unwrap_or(PIECE_FRAMES);
            self.planes.silence(piece.min(left));
            self.graph.render(self.rendered, &mut self.planes);
            for stream in self.streams.iter_mut().flatten() {
                stream.render(self.rendered, &mut self.planes, &mut self.scratch);
            }
            card.write(self.rendered, &self.planes);
            self.rendered += self.planes.frames() as u64;
            piece = (2 * piece).min(PIECE_FRAMES);
        }
    }

    /// Returns how many frames before the end of what is rendered to wake.
    fn lead_frames(&self, depth: u64, card: &impl Card) -> u64 {
        self.frames_in(self.lead.ns()).min(depth / 2) + u64::from(card.safety_frames())
    }

    fn next_wake_ns(&self, now_ns: u64, position: CardPosition, lead: u64) -> Option<u64> {
        if self.graph_runs || !self.is_started {
            return None;
        }
        // Without anything to play, the next thing to do is to stop the card.
        let before = if self.plays() { lead } else { 0 };
        let ahead = self.rendered.saturating_sub(position.played).saturating_sub(before);
        let wake_ns = position.at_ns.saturating_add(ahead.saturating_mul(position.frame_ps) / 1000);
        let wake_ns = wake_ns.max(now_ns + LEAST_SLEEP_NS);
        let is_far = wake_ns - now_ns > FAR_NS && self.plays();
        Some(if is_far { wake_ns / GRID_NS * GRID_NS } else { wake_ns })
    }

    fn publish(&mut self, position: CardPosition, renewed: u64) {
        let heard = Heard {
            frame: position.played,
            at_ns: position.at_ns,
            frame_ps: position.frame_ps,
            rendered: self.rendered,
            next_rendered: self.rendered + renewed,
            wake_ns: self.wake_ns,
        };
        self.streams.iter_mut().flatten().for_each(|stream| stream.publish(heard));
    }

    fn frames_in(&self, duration_ns: u64) -> u64 {
        rt::rate::frames_in(duration_ns, self.sample_rate_hz)
    }
}
