//! Frames of a stream that wait to be resampled.

use std::collections::VecDeque;

/// Frames that follow each other, by position.
#[derive(Debug)]
pub(super) struct Frames {
    channels: Vec<VecDeque<f32>>,
    /// Position of the first frame, or of the next one that comes.
    first: u64,
    /// Frames before this position are left out as they come.
    wanted_from: u64,
}

impl Frames {
    pub(super) fn new(channels: usize) -> Self {
        let channels = (0..channels).map(|_| VecDeque::new()).collect();
        Self { channels, first: 0, wanted_from: 0 }
    }

    /// Returns the position of the first frame.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn len(&self) -> usize {
        self.channels.first().map_or(0, VecDeque::len)
    }

    /// Appends frames from `position` on; those from before a gap are dropped.
    pub(super) fn push(&mut self, position: u64, planes: &[&[f32]]) {
        if position != self.first + self.len() as u64 {
            self.clear();
            self.first = position;
        }
        for (channel, plane) in self.channels.iter_mut().zip(planes) {
            channel.extend(*plane);
        }
        self.leave_out();
    }

    /// Appends silence.
    pub(super) fn push_silence(&mut self, frames: usize) {
        let length = self.len() + frames;
        self.channels.iter_mut().for_each(|channel| channel.resize(length, 0.0));
    }

    /// Leaves out the next `frames`, also those that come later.
    pub(super) fn skip(&mut self, frames: u64) {
        self.wanted_from = self.first + frames;
        self.leave_out();
    }

    fn leave_out(&mut self) {
        let unwanted = self.wanted_from.saturating_sub(self.first);
        let unwanted = usize::try_from(unwanted).unwrap_or(usize::MAX).min(self.len());
        self.channels.iter_mut().for_each(|channel| drop(channel.drain(..unwanted)));
        self.first += unwanted as u64;
    }

    /// Leaves out the oldest frames, so that at most `most` are left; returns whether it did.
    pub(super) fn keep(&mut self, most: usize) -> bool {
        let beyond = self.len().saturating_sub(most);
        if beyond > 0 {
            self.skip(beyond as u64);
        }
        beyond > 0
    }

    /// Copies the first frames of a channel.
    pub(super) fn copy(&self, channel: usize, into: &mut [f32]) {
        let samples = self.channels.get(channel).into_iter().flatten();
        into.iter_mut().zip(samples).for_each(|(into, sample)| *into = *sample);
    }

    pub(super) fn clear(&mut self) {
        self.first += self.len() as u64;
        self.wanted_from = 0;
        self.channels.iter_mut().for_each(VecDeque::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_two(frames: &Frames) -> (u64, [f32; 2]) {
        let mut samples = [-1.0; 2];
        frames.copy(0, &mut samples);
        (frames.first(), samples)
    }

    #[test]
    fn skipped_frames_are_left_out_also_those_that_have_not_come() {
        let mut frames = Frames::new(1);
        frames.push(10, &[&[0.0, 1.0, 2.0]]);
        frames.skip(5);
        assert_eq!((frames.len(), frames.first()), (0, 13));
        frames.push(13, &[&[3.0, 4.0, 5.0, 6.0]]);
        assert_eq!((first_two(&frames), frames.len()), ((15, [5.0, 6.0]), 2));
    }

    #[test]
    fn frames_from_before_a_gap_are_dropped() {
        let mut frames = Frames::new(1);
        frames.push(0, &[&[0.0, 1.0]]);
        frames.push(7, &[&[7.0, 8.0, 9.0]]);
        assert_eq!((first_two(&frames), frames.len()), ((7, [7.0, 8.0]), 3));
        assert!(frames.keep(2) && !frames.keep(2));
        frames.push_silence(1);
        assert_eq!((first_two(&frames), frames.len()), ((8, [8.0, 9.0]), 3));
    }
}
