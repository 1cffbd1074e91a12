//! The graph's part in what a device plays: cycle after cycle, instead of as far ahead as streams
//! allow.

use super::{DeviceLoop, LOST_NS};
use crate::card::Card;
use crate::memory::{RecordMemory, StreamMemory};
use crate::planes::Planes;

impl<M: StreamMemory, R: RecordMemory> DeviceLoop<M, R> {
    /// The graph begins to play, in cycles of `cycle_frames`: the first returned device frame is
    /// that of its next cycle, and from now on nothing is rendered beyond its cycles, which
    /// [`play_graph`](Self::play_graph) brings. Also for cycles of another length. Thread: cycle.
    ///
    /// The cycle that begins now is heard two cycles later: its output may come when the next one
    /// is due, and as much later again. Until then, streams alone are heard. On a card that has
    /// played the graph before the loop came, it follows what is queued there.
    pub fn begin_graph(&mut self, now_ns: u64, card: &mut dyn Card, cycle_frames: u64) -> u64 {
        let position = card.position(now_ns);
        self.follow_card(position, card);
        if self.cycle_frames.is_none() {
            self.take_back(position, card);
        }
        self.cycle_frames = Some(cycle_frames);
        self.cycle_ns = now_ns;
        let written = card.written();
        let is_taken_over = self.came_at == Some(written) && position.played < written;
        self.is_started |= is_taken_over;
        self.lead_in(if is_taken_over {
            written
        } else {
            position.played + u64::from(card.safety_frames()) + 2 * cycle_frames
        });
        let next = self.graph.end();
        self.wake(now_ns, card);
        next
    }

    /// Lets the graph's next cycle begin at device frame `earliest`, or after what is rendered, or
    /// after what the graph has played, even if that is to be rendered again.
    fn lead_in(&mut self, earliest: u64) {
        self.graph.be_silent_until(earliest.max(self.rendered));
    }

    /// Renders what the graph plays in its next cycle, with the streams. Thread: cycle.
    pub fn play_graph(&mut self, now_ns: u64, card: &mut dyn Card, cycle: &Planes) {
        let position = card.position(now_ns);
        self.follow_card(position, card);
        let earliest = position.played + u64::from(card.safety_frames());
        if self.graph.end() < earliest {
            // The cycles were late. What follows shall be in time again.
            self.lead_in(earliest + self.cycle_frames.unwrap_or(0));
        }
        self.graph.push(self.graph.end(), cycle);
        self.cycle_ns = now_ns;
        self.wake(now_ns, card);
    }

    /// The graph plays no further. Thread: cycle.
    pub fn end_graph(&mut self, now_ns: u64) {
        self.cycle_frames = None;
        self.changed_ns = Some(now_ns);
    }

    /// Passes what streams play in the graph's next cycle of `frames` frames to the programs that
    /// hear them. Comes after [`begin_graph`](Self::begin_graph) and each
    /// [`play_graph`](Self::play_graph). Thread: cycle.
    pub fn feed_graph(&mut self, frames: usize) {
        self.cycle_played = self.played;
        let first = self.graph.end();
        for stream in self.streams.iter_mut() {
            stream.feed_graph(first, frames, &mut self.fed, &mut self.scratch);
        }
    }

    /// Records the graph's cycle that began with the last [`feed_graph`](Self::feed_graph), in the
    /// streams that are [fed](crate::Recorders::feed): as many frames as there are `samples`, into
    /// which `bring` puts a channel of a stream. Comes before [`play_graph`](Self::play_graph).
    /// Thread: cycle.
    pub fn record_graph(&mut self, samples: &mut [f32], bring: impl FnMut(&R, usize, &mut [f32])) {
        let slack = self.frames_in(LOST_NS);
        self.recorders.record_cycle(self.cycle_played, slack, samples, bring);
    }
}
