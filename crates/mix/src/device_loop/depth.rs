//! How far ahead a device's loop renders, and how long before the end of that it wakes.

use super::{DeviceLoop, LEAST_SLEEP_NS, MOST_DEPTH_NS};
use crate::card::{Card, CardPosition};
use crate::memory::{RecordMemory, StreamMemory};
use crate::stream::Stream;

/// How far ahead to render for [`QUIET_NS`] after a change, so that dragging a slider renders
/// 100 ms again each time, and not seconds. Always, on a card that gives little back: a change is
/// heard after what it keeps.
const DEPTH_AFTER_CHANGE_NS: u64 = 100_000_000;
const QUIET_NS: u64 = 1_000_000_000;

impl<M: StreamMemory, R: RecordMemory> DeviceLoop<M, R> {
    /// Returns the depth to render: the smallest among the playing streams, and less for a while
    /// after a change.
    pub(super) fn depth_frames(&self, now_ns: u64, card: &dyn Card) -> u64 {
        let most = u64::from(card.buffer_frames());
        let depth = self.wanted_depth_frames().min(most);
        let is_quiet =
            self.changed_ns.is_none_or(|changed_ns| now_ns.saturating_sub(changed_ns) >= QUIET_NS);
        let limit = if is_quiet && !self.keeps_frames {
            most
        } else {
            self.frames_in(DEPTH_AFTER_CHANGE_NS)
        };
        // Less than this could never be rendered in time.
        depth.min(limit).max(2 * u64::from(card.safety_frames()))
    }

    /// Returns the smallest depth among the playing streams.
    pub(super) fn wanted_depth_frames(&self) -> u64 {
        let playing = self.streams().filter(|stream| stream.plays_at(self.rendered));
        let depths = playing.map(|stream| u64::from(stream.depth_frames()));
        depths.fold(self.frames_in(MOST_DEPTH_NS), u64::min)
    }

    /// Returns the device frame up to which to render: no further than all streams have frames, so
    /// that nothing has to be taken back when more come. A stream that has too few for the next
    /// wake-up starves, and the device plays on.
    pub(super) fn target(&self, position: CardPosition, depth: u64, lead: u64) -> u64 {
        if self.cycle_frames.is_some() {
            return self.graph.end();
        }
        let soon = position.played + lead + self.frames_in(LEAST_SLEEP_NS);
        let ends = self.streams().filter_map(Stream::runs_out_at).filter(|end| *end > soon);
        ends.fold(position.played + depth, u64::min)
    }

    /// Returns how many frames before the end of what is rendered to wake.
    pub(super) fn lead_frames(&self, depth: u64, card: &dyn Card) -> u64 {
        let depth_ns = rt::rate::duration_ns(depth, self.sample_rate_hz);
        self.frames_in(self.lead.ns(depth_ns)) + u64::from(card.safety_frames())
    }
}
