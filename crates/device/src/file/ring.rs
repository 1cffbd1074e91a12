//! A ring of whole frames between the driver, inside a cycle, and a thread that may wait for a
//! disk.

use proto::limits::QUANTUM_FRAMES;
use rtrb::{Consumer, Producer, RingBuffer};

/// The most frames that pass through an end of a ring at once: the longest quantum.
pub(super) const BLOCK_FRAMES: usize = *QUANTUM_FRAMES.end() as usize;

/// Shortest ring. A disk may pause for as long as a ring lasts, so a ring holds a second if that is
/// longer.
const LEAST_FRAMES: usize = 4 * BLOCK_FRAMES;

/// Returns a ring for a second of audio, at least four of the longest quanta, of `channels`
/// channels (at least 1).
///
/// All its memory has been touched: neither end takes a page fault.
pub(super) fn frame_ring(channels: usize, sample_rate_hz: u32) -> (FrameProducer, FrameConsumer) {
    let frames = LEAST_FRAMES.max(sample_rate_hz as usize);
    let (producer, consumer) = RingBuffer::new(frames * channels);
    let plane = vec![0.0; BLOCK_FRAMES];
    let mut producer = FrameProducer { ring: producer, channels, plane: plane.clone() };
    let mut consumer = FrameConsumer { ring: consumer, channels, plane };
    while producer.room_frames() > 0 {
        producer.push(BLOCK_FRAMES, BLOCK_FRAMES, |_, samples| samples.fill(0.0));
    }
    while consumer.available_frames() > 0 {
        consumer.pop(BLOCK_FRAMES, |_, _| {});
    }
    (producer, consumer)
}

/// The producer's end. Its methods may be called inside a cycle.
#[derive(Debug)]
pub(super) struct FrameProducer {
    /// Interleaved; only ever holds whole frames.
    ring: Producer<f32>,
    channels: usize,
    /// One channel of a block while it is interleaved.
    plane: Vec<f32>,
}

impl FrameProducer {
    /// Returns the frames that can be pushed.
    pub(super) fn room_frames(&self) -> usize {
        self.ring.slots() / self.channels
    }

    /// Returns whether the other end is gone for good.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Calls `fill` with each channel of a block of `frames` frames, and pushes the first
    /// `kept_frames` frames, or as many as there is room for. Returns how many.
    pub(super) fn push(
        &mut self,
        frames: usize,
        kept_frames: usize,
        mut fill: impl FnMut(usize, &mut [f32]),
    ) -> usize {
        let plane = &mut self.plane[..frames.min(BLOCK_FRAMES)];
        let kept = kept_frames.min(plane.len()).min(self.ring.slots() / self.channels);
        let Ok(mut chunk) = self.ring.write_chunk(kept * self.channels) else { return 0 };
        let (first, second) = chunk.as_mut_slices();
        for channel in 0..self.channels {
            fill(channel, plane);
            // The ring's length is a multiple of the channels, so its end lies between two frames.
            let targets =
                first.chunks_exact_mut(self.channels).chain(second.chunks_exact_mut(self.channels));
            targets.zip(plane.iter()).for_each(|(frame, sample)| frame[channel] = *sample);
        }
        chunk.commit_all();
        kept
    }
}

/// The consumer's end. Its methods may be called inside a cycle.
#[derive(Debug)]
pub(super) struct FrameConsumer {
    /// Interleaved; only ever holds whole frames.
    ring: Consumer<f32>,
    channels: usize,
    /// One channel of a block while it is deinterleaved.
    plane: Vec<f32>,
}

impl FrameConsumer {
    /// Returns the frames that can be popped.
    pub(super) fn available_frames(&self) -> usize {
        self.ring.slots() / self.channels
    }

    /// Returns whether the other end is gone for good; what it pushed before is still there.
    pub(super) fn is_abandoned(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Pops up to `frames` frames and calls `take` with each channel and its samples, unless there
    /// are none. Returns how many frames.
    pub(super) fn pop(&mut self, frames: usize, mut take: impl FnMut(usize, &[f32])) -> usize {
        let popped = frames.min(BLOCK_FRAMES).min(self.ring.slots() / self.channels);
        let Ok(chunk) = self.ring.read_chunk(popped * self.channels) else { return 0 };
        let (first, second) = chunk.as_slices();
        let plane = &mut self.plane[..popped];
        for channel in 0..self.channels {
            let frames =
                first.chunks_exact(self.channels).chain(second.chunks_exact(self.channels));
            frames.zip(plane.iter_mut()).for_each(|(frame, sample)| *sample = frame[channel]);
            take(channel, plane);
        }
        chunk.commit_all();
        popped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_across_the_seam_of_the_ring() {
        const CHANNELS: usize = 3;
        let (mut producer, mut consumer) = frame_ring(CHANNELS, 1);
        let capacity = producer.room_frames();
        assert_eq!(capacity, LEAST_FRAMES);
        let (mut pushed, mut popped) = (0, 0);
        // 777 does not divide the length, so that blocks lie across the seam.
        while popped < 3 * capacity {
            pushed += producer.push(777, 777, |channel, samples| {
                (pushed..)
                    .zip(samples)
                    .for_each(|(frame, sample)| *sample = (frame * CHANNELS + channel) as f32);
            });
            popped += consumer.pop(777, |channel, samples| {
                let expected = (popped..).map(|frame| (frame * CHANNELS + channel) as f32);
                assert!(expected.zip(samples).all(|(expected, sample)| expected == *sample));
            });
            assert_eq!(pushed, popped);
        }
    }

    #[test]
    fn a_full_ring_takes_the_frames_it_has_room_for() {
        let (mut producer, consumer) = frame_ring(2, 1);
        let room = producer.room_frames();
        (1..room / BLOCK_FRAMES).for_each(|_| {
            producer.push(BLOCK_FRAMES, BLOCK_FRAMES, |_, samples| samples.fill(0.5));
        });
        assert_eq!(
            producer.push(BLOCK_FRAMES, BLOCK_FRAMES - 10, |_, samples| samples.fill(0.5)),
            BLOCK_FRAMES - 10
        );
        assert_eq!(producer.push(64, 64, |_, samples| samples.fill(0.25)), 10);
        assert_eq!(producer.push(64, 64, |_, samples| samples.fill(0.25)), 0);
        assert_eq!(consumer.available_frames(), room);
    }

    #[test]
    fn an_empty_ring_still_calls_for_every_channel() {
        let (_producer, mut consumer) = frame_ring(2, 1);
        let mut called = Vec::new();
        assert_eq!(consumer.pop(64, |channel, samples| called.push((channel, samples.len()))), 0);
        assert_eq!(called, [(0, 0), (1, 0)]);
    }
}
