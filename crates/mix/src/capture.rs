//! What a device captures, kept for the streams that record it.

use crate::PIECE_FRAMES;
use crate::history::FrameHistory;
use crate::planes::Planes;

/// Room for what a device captures, and the frames of the graph's cycle that come there.
#[derive(Debug)]
pub struct CapturedFrames {
    cycle: Planes,
    pub(crate) history: FrameHistory,
    /// Room for a piece of all channels.
    pub(crate) piece: Planes,
}

impl CapturedFrames {
    /// Returns room for `frames` frames, from cycles of at most `longest_cycle`. Not for a device's
    /// thread.
    #[must_use]
    pub fn new(channels: usize, frames: usize, longest_cycle: usize) -> Self {
        Self {
            cycle: Planes::new(channels, longest_cycle),
            history: FrameHistory::new(channels, frames),
            piece: Planes::new(channels, PIECE_FRAMES),
        }
    }

    pub(crate) fn cycle_mut(&mut self) -> &mut Planes {
        &mut self.cycle
    }

    /// Keeps the cycle, of which the last frame was captured when device frame `played` was heard,
    /// within `slack` frames: cycles that follow each other are kept without a gap, for those who
    /// capture and play by the same clock. Further apart, captured frames were lost, or no cycles
    /// ran. Thread: cycle.
    pub(crate) fn keep_cycle(&mut self, played: u64, slack: u64) {
        let frames = self.cycle.frames() as u64;
        let expected = played.saturating_sub(frames);
        if self.history.end().abs_diff(expected) > slack + 2 * frames {
            self.history.restart(expected);
        }
        self.history.push(self.history.end(), &self.cycle);
    }
}
