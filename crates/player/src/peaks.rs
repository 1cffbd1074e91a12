//! How loud sound is: what is heard now, of what was written long before. Pure.

use std::collections::VecDeque;

/// Frames that share a peak, at most.
const BLOCK_FRAMES: usize = 2048;

/// The peaks of frames that were written and are not heard yet.
#[derive(Debug, Default)]
pub(crate) struct Peaks {
    /// The position after the last frame, and the peak, by position.
    blocks: VecDeque<(u64, f32)>,
}

impl Peaks {
    /// Notes the frames from `position` on, a slice for each channel.
    pub(crate) fn note(&mut self, position: u64, planes: &[&[f32]]) {
        let frames = planes.first().map_or(0, |plane| plane.len());
        for first in (0..frames).step_by(BLOCK_FRAMES) {
            let end = frames.min(first + BLOCK_FRAMES);
            let peak = peak(planes.iter().map(|plane| &plane[first..end]));
            self.blocks.push_back((position + end as u64, peak));
        }
    }

    /// Returns the peak of what was heard since the last time, when frame `heard` is.
    pub(crate) fn take_heard(&mut self, heard: u64) -> f32 {
        let mut loudest = 0.0_f32;
        while let Some((_, peak)) = self.blocks.pop_front_if(|(end, _)| *end <= heard) {
            loudest = loudest.max(peak);
        }
        // Of the block that is being heard.
        self.blocks.front().map_or(loudest, |(_, peak)| loudest.max(*peak))
    }
}

/// Returns the greatest amplitude of samples, a slice for each channel.
pub(crate) fn peak<'a>(planes: impl Iterator<Item = &'a [f32]>) -> f32 {
    planes.flatten().fold(0.0, |peak, sample| peak.max(sample.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_shown_while_it_is_heard_and_not_when_it_is_written() {
        let mut peaks = Peaks::default();
        let (soft, mut loud) = (vec![0.25; 3 * BLOCK_FRAMES], vec![0.0; 3 * BLOCK_FRAMES]);
        loud[2 * BLOCK_FRAMES] = -0.5;
        peaks.note(1000, &[&soft, &loud]);
        let end = |block: u64| 1000 + block * BLOCK_FRAMES as u64;
        assert_eq!(peaks.take_heard(0), 0.25);
        assert_eq!(peaks.take_heard(end(2) - 1), 0.25);
        assert_eq!(peaks.take_heard(end(2)), 0.5, "either channel, either sign");
        assert_eq!(peaks.take_heard(end(3)), 0.5);
        assert_eq!((peaks.take_heard(end(3)), peaks.blocks.len()), (0.0, 0));
    }

    #[test]
    fn a_peak_between_two_looks_is_shown_at_the_second() {
        let mut peaks = Peaks::default();
        for (position, level) in [(0, 0.1), (10, 0.9), (20, 0.2), (30, 0.3)] {
            peaks.note(position, &[&[level; 10]]);
        }
        assert_eq!((peaks.take_heard(5), peaks.take_heard(25)), (0.1, 0.9));
        assert_eq!(peaks.take_heard(29), 0.2);
    }
}
