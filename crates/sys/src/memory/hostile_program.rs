//! A test: a program writes any bytes into its stream's memory while the server reads it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rt::shm::{RingHeader, RingSamples, RingShape, WISHES};

use super::{Mapping, OwnRing, PeerStream, Segment, Shared};

/// A generator of numbers that look random (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns numbers of all magnitudes: those near to what is expected, and those far from it.
    fn number(&mut self) -> u64 {
        let bits = self.next() % 65;
        self.next().checked_shr(bits as u32).unwrap_or(u64::MAX)
    }
}

/// Ends the program, also when an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Overwrites words of `memory` until `stop`.
fn scribble(mapping: &Mapping, stop: &AtomicBool) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while !stop.load(Ordering::Relaxed) {
        // Most of it where the count and the wishes are: the count in the first words.
        let within = [mapping.len(), 4096, 4096, 64][random.next() as usize % 4];
        let word = random.next() as usize % (within / 8);
        // SAFETY: an aligned word within a writable mapping of this test's, which other threads
        // access as atomics or as a peer's samples.
        let place = unsafe { mapping.base().cast::<AtomicU64>().add(word).as_ref() };
        place.store(random.number(), Ordering::Relaxed);
    }
}

/// Plays a stream as a device's thread does, and checks what that relies on.
struct Device {
    stream: PeerStream,
    last_wish: u64,
    /// Everything before is played.
    lowest: u64,
    accepted: u64,
}

impl Device {
    fn new(shape: RingShape, ring: OwnedFd) -> Self {
        let (page, _memfd) = Shared::for_readers("page").unwrap();
        let stream = PeerStream::receive(shape, ring, Arc::new(page)).unwrap();
        Self { stream, last_wish: 0, lowest: 0, accepted: 0 }
    }

    /// Plays what is written, at most `frames` frames of each channel; returns the first channel.
    fn wake(&mut self, frames: usize) -> Vec<f32> {
        let shape = self.stream.shape();
        let accepted = self.stream.written();
        assert!(self.accepted <= accepted, "never back");
        assert!(accepted <= self.lowest + u64::from(shape.capacity_frames()), "never beyond");
        self.accepted = accepted;
        let frames = frames.min((accepted - self.lowest) as usize);
        let mut samples = vec![0.0; frames];
        for channel in (0..shape.channels()).rev() {
            self.stream.read(channel, self.lowest, &mut samples);
            dsp::scrub(&mut samples);
            assert!(dsp::peak(&samples).is_finite());
        }
        self.lowest += frames as u64;
        self.stream.set_lowest(self.lowest);
        for _ in 0..WISHES {
            let Some((number, _)) = self.stream.next_wish() else { break };
            assert_ne!(number, self.last_wish, "once");
            self.stream.acknowledge(number, None);
            self.last_wish = number;
        }
        samples
    }
}

fn descriptor(segment: &Segment) -> OwnedFd {
    segment.fd().try_clone_to_owned().unwrap()
}

#[test]
fn any_bytes_in_a_streams_memory_harm_only_that_stream() {
    for samples in [RingSamples::Planes, RingSamples::Frames16] {
        harm_only_their_stream(samples);
    }
}

/// Writes any bytes to the memory of a stream whose samples lie like this, beside another one.
fn harm_only_their_stream(samples: RingSamples) {
    // The other thread may get its CPU late.
    const WAKE_UPS: std::ops::Range<u64> = 20_000..2_000_000;
    let shape = RingShape::new(2, 2048).unwrap();
    let of_hostile = shape.holding(samples).unwrap();
    let segment = Segment::create("consort-test-hostile", of_hostile.bytes()).unwrap();
    let ring = Shared::<RingHeader>::create(&segment).unwrap();
    segment.seal_future_writes().unwrap();
    let mut hostile = Device::new(of_hostile, descriptor(&segment));

    let mut own = OwnRing::create(shape).unwrap();
    let mut neighbour = Device::new(shape, descriptor(own.segment()));

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| scribble(ring.mapping(), &stop));
        let _stop = Stop(&stop);
        for wake_up in 0..WAKE_UPS.end {
            let is_struck = hostile.stream.faults() > 0 && hostile.last_wish > 0;
            if is_struck && wake_up >= WAKE_UPS.start {
                break;
            }
            let frames = (wake_up * 379 % 2048) as usize;
            hostile.wake(frames);
            for channel in 0..2 {
                let pieces = own.samples_mut(channel, neighbour.lowest, frames).unwrap();
                for (position, place) in (neighbour.lowest..).zip(pieces.into_iter().flatten()) {
                    *place = (position % (1 << 24)) as f32;
                }
            }
            own.header().publish(neighbour.lowest + frames as u64);
            let begin = neighbour.lowest;
            let expected: Vec<f32> =
                (begin..).take(frames).map(|position| (position % (1 << 24)) as f32).collect();
            assert_eq!(neighbour.wake(frames), expected, "the neighbour's frames");
        }
    });
    assert_eq!((neighbour.stream.faults(), neighbour.last_wish), (0, 0));
    assert!(hostile.stream.faults() > 0 && hostile.last_wish > 0, "it wrote where it counts");
}
