//! Samples by their position on the graph's clock, between one thread that writes and one that
//! reads.
//!
//! Neither waits for the other: frames that have not been written yet, or are no longer there, read
//! as silence.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Capacity in frames: several times the longest quantum and the deepest device buffer.
pub const CAPACITY_FRAMES: u64 = 1 << 16;

/// Longer gaps are not filled with silence: everything before them is forgotten.
const LONGEST_GAP_FRAMES: u64 = CAPACITY_FRAMES / 4;

/// The last [`CAPACITY_FRAMES`] frames of several channels, addressed by the graph's frame count.
#[derive(Debug)]
pub struct Timeline {
    /// The samples as bits. Relaxed everywhere: `end` orders them, and a writer that laps a reader,
    /// which takes more than a second, is audible but does no other harm.
    channels: Box<[Box<[AtomicU32]>]>,
    /// The first available frame.
    begin: AtomicU64,
    /// The frame after the last available one.
    end: AtomicU64,
}

impl Timeline {
    /// Returns an empty timeline.
    #[must_use]
    pub fn new(channels: usize) -> Self {
        let silence = || (0..CAPACITY_FRAMES).map(|_| AtomicU32::new(0)).collect();
        Self {
            channels: (0..channels).map(|_| silence()).collect(),
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    fn index_of(frame: u64) -> usize {
        (frame % CAPACITY_FRAMES) as usize
    }

    /// Makes room for samples from `at` on, with silence where nothing was written. To be followed
    /// by [`put`](Self::put) and [`publish`](Self::publish). Thread: cycle, the writer's.
    pub fn begin_at(&self, at: u64) {
        // Relaxed: only this thread writes it.
        let end = self.end.load(Ordering::Relaxed);
        if at < end {
            // These frames are written again.
            self.end.store(at, Ordering::Relaxed);
        } else if at - end > LONGEST_GAP_FRAMES {
            // Relaxed: a reader that sees only one of the two changes reads a cycle of older sound,
            // or silence.
            self.begin.store(at, Ordering::Relaxed);
        } else {
            for channel in &self.channels {
                for frame in end..at {
                    store(channel, frame, 0.0);
                }
            }
        }
    }

    /// Writes samples of a channel from frame `at` on. Thread: cycle, the writer's.
    pub fn put(&self, channel: usize, at: u64, samples: &[f32]) {
        let Some(channel) = self.channels.get(channel) else { return };
        for (frame, sample) in (at..).zip(samples) {
            store(channel, frame, *sample);
        }
    }

    /// Makes everything before `end` available. Thread: cycle, the writer's.
    pub fn publish(&self, end: u64) {
        // Release: a reader that sees it sees the samples.
        self.end.store(end, Ordering::Release);
    }

    /// Reads a channel from frame `at` on, with silence for missing frames. Returns how many frames
    /// were available. Thread: cycle, the reader's.
    pub fn get(&self, channel: usize, at: u64, samples: &mut [f32]) -> usize {
        // Acquire: pairs with `publish`, so that the samples are visible.
        let end = self.end.load(Ordering::Acquire);
        let begin = self.begin.load(Ordering::Relaxed).max(end.saturating_sub(CAPACITY_FRAMES));
        let Some(channel) = self.channels.get(channel) else {
            samples.fill(0.0);
            return 0;
        };
        let mut found = 0;
        for (frame, sample) in (at..).zip(samples) {
            let is_there = (begin..end).contains(&frame);
            *sample = if is_there { load(channel, frame) } else { 0.0 };
            found += usize::from(is_there);
        }
        found
    }
}

fn store(channel: &[AtomicU32], frame: u64, sample: f32) {
    if let Some(cell) = channel.get(Timeline::index_of(frame)) {
        cell.store(sample.to_bits(), Ordering::Relaxed);
    }
}

fn load(channel: &[AtomicU32], frame: u64) -> f32 {
    channel
        .get(Timeline::index_of(frame))
        .map_or(0.0, |cell| f32::from_bits(cell.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(timeline: &Timeline, at: u64, samples: &[f32]) {
        timeline.begin_at(at);
        timeline.put(0, at, samples);
        timeline.publish(at + samples.len() as u64);
    }

    fn read<const N: usize>(timeline: &Timeline, at: u64) -> ([f32; N], usize) {
        let mut samples = [9.0; N];
        let found = timeline.get(0, at, &mut samples);
        (samples, found)
    }

    #[test]
    fn samples_are_read_at_the_position_where_they_were_written() {
        let timeline = Timeline::new(1);
        write(&timeline, 1_000_000, &[1.0, 2.0, 3.0]);
        assert_eq!(read(&timeline, 999_999), ([0.0, 1.0, 2.0, 3.0, 0.0], 3));
        assert_eq!(read(&timeline, 5), ([0.0, 0.0], 0));
    }

    #[test]
    fn a_gap_reads_as_silence() {
        let timeline = Timeline::new(1);
        write(&timeline, CAPACITY_FRAMES - 2, &[1.0, 2.0]);
        write(&timeline, CAPACITY_FRAMES + 2, &[3.0]);
        assert_eq!(read(&timeline, CAPACITY_FRAMES - 1), ([2.0, 0.0, 0.0, 3.0], 4));
    }

    #[test]
    fn old_frames_are_gone_after_a_long_gap() {
        let timeline = Timeline::new(1);
        write(&timeline, 0, &[1.0]);
        write(&timeline, CAPACITY_FRAMES, &[2.0]);
        assert_eq!(read(&timeline, 0), ([0.0], 0));
        assert_eq!(read(&timeline, CAPACITY_FRAMES - 1), ([0.0, 2.0], 1));
    }

    #[test]
    fn rewritten_frames_are_read_with_their_new_samples() {
        let timeline = Timeline::new(1);
        write(&timeline, 10, &[1.0, 2.0, 3.0]);
        write(&timeline, 11, &[4.0]);
        assert_eq!(read(&timeline, 10), ([1.0, 4.0, 0.0], 2));
    }
}
