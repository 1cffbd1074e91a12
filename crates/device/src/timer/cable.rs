//! A cable from playback to capture, in which frames keep their order.

use crate::{Capture, Playback, touched};

/// Periods in the cable at most: two in a device, and what a cycle adds.
const PERIODS: usize = 4;

/// The samples in the cable, for each channel. All memory is allocated at the start.
#[derive(Debug)]
pub(super) struct Cable {
    channels: Vec<Vec<f32>>,
    /// Buffer for a period while it is mixed.
    period: Vec<f32>,
    /// Index of the oldest frame, and number of frames.
    oldest: usize,
    frames: usize,
}

impl Cable {
    /// Returns an empty cable for quanta of up to `longest` frames.
    pub(super) fn new(channels: usize, longest: usize) -> Self {
        let channels = (0..channels).map(|_| touched(PERIODS * longest)).collect();
        Self { channels, period: touched(longest), oldest: 0, frames: 0 }
    }

    /// Returns the number of frames in the cable.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// Restarts with `frames` frames of silence. Thread: cycle.
    pub(super) fn restart(&mut self, frames: usize) {
        self.oldest = 0;
        self.frames = frames.min(self.capacity());
        self.silence();
    }

    /// Replaces everything in the cable by silence. Thread: cycle.
    pub(super) fn silence(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.fill(0.0));
    }

    fn capacity(&self) -> usize {
        self.channels.first().map_or(0, Vec::len)
    }

    /// Takes `frames` frames of every channel; those without room are lost. Thread: cycle.
    pub(super) fn write(&mut self, frames: usize, playback: &mut dyn Playback) {
        let capacity = self.capacity();
        let frames = frames.min(capacity - self.frames).min(self.period.len());
        let at = self.oldest + self.frames;
        for (number, channel) in (0..).zip(&mut self.channels) {
            let period = &mut self.period[..frames];
            playback.mix_into(number, period);
            for (offset, sample) in period.iter().enumerate() {
                channel[(at + offset) % capacity] = *sample;
            }
        }
        self.frames += frames;
    }

    /// Returns the oldest `frames` frames of every channel, with silence for missing ones. Thread:
    /// cycle.
    pub(super) fn read(&mut self, frames: usize, capture: &mut dyn Capture) {
        let (capacity, there) = (self.capacity(), frames.min(self.frames));
        for (number, channel) in (0..).zip(&self.channels) {
            let Some(samples) = capture.channel(number) else { continue };
            for (offset, sample) in samples.iter_mut().enumerate() {
                *sample =
                    if offset < there { channel[(self.oldest + offset) % capacity] } else { 0.0 };
            }
        }
        self.oldest = (self.oldest + there).checked_rem(capacity).unwrap_or(0);
        self.frames -= there;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays ascending numbers, and records what is captured.
    #[derive(Default)]
    struct CableEnds {
        played: f32,
        captured: Vec<f32>,
    }

    impl Playback for CableEnds {
        fn mix_into(&mut self, _channel: u32, samples: &mut [f32]) {
            for sample in samples {
                self.played += 1.0;
                *sample = self.played;
            }
        }
    }

    impl Capture for CableEnds {
        fn channel(&mut self, _channel: u32) -> Option<&mut [f32]> {
            Some(&mut self.captured)
        }
    }

    fn captured(cable: &mut Cable, ends: &mut CableEnds, frames: usize) -> Vec<f32> {
        ends.captured = vec![-1.0; frames];
        cable.read(frames, ends);
        ends.captured.clone()
    }

    #[test]
    fn frames_come_out_in_order_after_the_initial_silence() {
        let (mut cable, mut ends) = (Cable::new(1, 4), CableEnds::default());
        cable.restart(8);
        let mut heard = Vec::new();
        for _ in 0..20 {
            cable.write(4, &mut ends);
            heard.extend(captured(&mut cable, &mut ends, 4));
        }
        let expected: Vec<f32> = (0..80).map(|frame| (frame as f32 - 7.0).max(0.0)).collect();
        assert_eq!(heard, expected);
    }

    #[test]
    fn frames_in_the_cable_can_be_lost_without_a_shift() {
        let (mut cable, mut ends) = (Cable::new(1, 4), CableEnds::default());
        cable.restart(2);
        cable.write(4, &mut ends);
        cable.silence();
        cable.write(2, &mut ends);
        assert_eq!(captured(&mut cable, &mut ends, 8), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 6.0]);
    }

    #[test]
    fn missing_frames_are_replaced_by_silence() {
        let (mut cable, mut ends) = (Cable::new(1, 4), CableEnds::default());
        assert_eq!(captured(&mut cable, &mut ends, 2), [0.0, 0.0]);
        for _ in 0..9 {
            cable.write(4, &mut ends);
        }
        assert_eq!(cable.frames(), 16);
        let mut none = Cable::new(0, 4);
        none.restart(8);
        none.write(4, &mut ends);
        none.read(4, &mut ends);
    }
}
