//! The graph's part in what a device plays: cycle after cycle, instead of as far ahead as streams
//! allow.

use super::{DeviceLoop, LOST_NS};
use crate::card::{Card, CardCycle};
use crate::memory::{RecordMemory, StreamMemory};
use crate::planes::Planes;

/// The cycles of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphCycles {
    /// Their length.
    pub frames: u64,
    /// How many frames after a cycle is due its output comes: none in sync mode, and otherwise as
    /// many as there are in a cycle.
    pub output_after: u64,
}

impl<M: StreamMemory, R: RecordMemory> DeviceLoop<M, R> {
    /// The graph begins to play, in these cycles: the returned device frame is that of its next
    /// cycle, and from now on nothing is rendered beyond its cycles, which
    /// [`play_graph`](Self::play_graph) brings. Also for cycles of another length. Thread: cycle.
    ///
    /// The cycle that begins now is heard as late as the card has it without streams, where that
    /// leaves half a cycle for outputs that come late, and otherwise after two cycles and the
    /// card's safety. Until then, streams alone are heard. On a card that has played the graph
    /// before the loop came, it follows what is queued there.
    pub fn begin_graph(&mut self, now_ns: u64, card: &mut dyn Card, cycles: GraphCycles) -> u64 {
        let position = card.position(now_ns);
        self.follow_card(position, card);
        if self.cycle_frames.is_none() {
            self.take_back(position, card);
        }
        self.cycle_frames = Some(cycles.frames);
        self.cycle_ns = now_ns;
        let written = card.written();
        let is_taken_over = self.came_at == Some(written) && position.played < written;
        self.is_started |= is_taken_over;
        self.lead_in(if is_taken_over {
            written
        } else {
            let two_cycles = position.played + u64::from(card.safety_frames()) + 2 * cycles.frames;
            heard_at(card, cycles.frames, cycles.output_after).unwrap_or(two_cycles)
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
            let frames = self.cycle_frames.unwrap_or(0);
            let as_before = heard_at(card, frames, 0).filter(|frame| *frame >= earliest);
            self.lead_in(as_before.unwrap_or(earliest + frames));
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

/// Returns the device frame at which an output is to be heard that comes `output_after` frames
/// after the card's cycle was due, to be as late as without streams; `None`: the card has no such
/// frame, or it leaves too little time.
fn heard_at(card: &dyn Card, frames: u64, output_after: u64) -> Option<u64> {
    let CardCycle { first, latency_frames } = card.cycle()?;
    // An output that comes when the next cycle is due has half a cycle to be late.
    let needed = frames + u64::from(card.safety_frames()) + frames / 2;
    (latency_frames >= needed).then(|| first + latency_frames + output_after - frames)
}
