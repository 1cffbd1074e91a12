//! A program's stream in the loop of the device that plays it. Thread: the device's, unless said
//! otherwise.

use std::sync::Arc;

use mix::{NumberedWish, RecordMemory, StreamMemory};
use rt::shm::{Miss, SLOTS_PER_SLAB, Schedule, Timing};
use rt::sync::{AtomicU32, Ordering};
use sys::memory::{OwnSlab, PeerStream, RecordStream};

/// A gain that the control thread sets and the driver thread reads.
#[derive(Debug)]
pub struct SharedGain(AtomicU32);

impl SharedGain {
    /// Returns one of this factor.
    pub fn new(factor: f32) -> Self {
        Self(AtomicU32::new(factor.to_bits()))
    }

    /// Sets the factor; a call of the driver thread follows. Control thread.
    pub fn set(&self, factor: f32) {
        // Relaxed, here and below: says nothing about other memory.
        self.0.store(factor.to_bits(), Ordering::Relaxed);
    }

    /// Returns the factor. Thread: cycle.
    pub fn get(&self) -> f32 {
        f32::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// The memory of a program's stream, of which the device plays what is populated.
#[derive(Debug)]
pub struct DeviceStream {
    /// Its number.
    pub stream: u32,
    /// The memory.
    pub memory: PeerStream,
    /// The server's volume.
    pub volume: Arc<SharedGain>,
    /// Where programs of the graph hear it.
    pub feed: StreamFeed,
}

/// Where programs of the graph hear a stream: a slot for each channel, written by the driver thread
/// alone.
#[derive(Debug, Default)]
pub struct StreamFeed {
    /// Slabs, populated and locked; none as long as no program hears it.
    pub slabs: Vec<OwnSlab>,
    /// A bit for each channel that a program hears.
    pub heard: u32,
}

impl StreamFeed {
    fn is_heard(&self, channel: usize) -> bool {
        !self.slabs.is_empty() && channel < 32 && self.heard >> channel & 1 != 0
    }

    fn hear(&mut self, channel: usize, offset: usize, samples: &[f32]) {
        let slots = SLOTS_PER_SLAB as usize;
        let slot = u32::try_from(channel % slots).unwrap_or(u32::MAX);
        let slab = self.slabs.get_mut(channel / slots);
        let frames = slab.and_then(|slab| slab.samples_mut(slot, offset + samples.len()));
        let into =
            frames.map_or(&mut [][..], |frames| frames.get_mut(offset..).unwrap_or_default());
        into.iter_mut().zip(samples).for_each(|(into, sample)| *into = *sample);
    }

    /// Marks what was passed as that of a cycle. Thread: cycle.
    pub fn finish(&self, cycle: u32) {
        self.slabs.iter().for_each(|slab| slab.header().finish(cycle));
    }
}

impl StreamMemory for DeviceStream {
    fn channels(&self) -> usize {
        self.memory.shape().channels() as usize
    }

    fn next_wish(&mut self) -> Option<NumberedWish> {
        self.memory.next_wish().map(|(number, wish)| NumberedWish { number, wish })
    }

    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        self.memory.acknowledge(number, device_frame);
    }

    fn volume(&self) -> f32 {
        self.volume.get()
    }

    fn written(&mut self) -> u64 {
        self.memory.written()
    }

    fn read(&self, channel: usize, position: u64, into: &mut [f32]) {
        // A channel whose number is too large for a ring is silent, as any that it lacks.
        self.memory.read(u32::try_from(channel).unwrap_or(u32::MAX), position, into);
    }

    fn is_heard(&self, channel: usize) -> bool {
        self.feed.is_heard(channel)
    }

    fn hear(&mut self, channel: usize, offset: usize, samples: &[f32]) {
        self.feed.hear(channel, offset, samples);
    }

    fn set_lowest(&mut self, position: u64) {
        self.memory.set_lowest(position);
    }

    fn note_miss(&mut self, miss: Miss) {
        self.memory.note_miss(miss);
    }

    fn publish(&mut self, timing: Timing, schedule: Schedule) {
        self.memory.publish(timing, schedule);
    }
}

/// The memory of a program's record stream, made and locked.
#[derive(Debug)]
pub struct DeviceRecorder {
    /// Its number.
    pub stream: u32,
    /// The memory.
    pub memory: RecordStream,
    /// The server's volume.
    pub volume: Arc<SharedGain>,
    /// The device's channel for each of its own, of a stream that records what a further device
    /// captures.
    pub captured: Vec<u32>,
}

impl RecordMemory for DeviceRecorder {
    fn channels(&self) -> usize {
        self.memory.shape().channels() as usize
    }

    fn next_wish(&mut self) -> Option<NumberedWish> {
        self.memory.next_wish().map(|(number, wish)| NumberedWish { number, wish })
    }

    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        self.memory.acknowledge(number, device_frame);
    }

    fn volume(&self) -> f32 {
        self.volume.get()
    }

    fn begin(&mut self, end: u64) {
        self.memory.begin(end);
    }

    fn write(&mut self, channel: usize, position: u64, samples: &[f32]) {
        // A channel whose number is too large for a ring is none of its own.
        self.memory.write(u32::try_from(channel).unwrap_or(u32::MAX), position, samples);
    }

    fn finish(&mut self, end: u64) {
        self.memory.finish(end);
    }

    fn note_miss(&mut self, miss: Miss) {
        self.memory.note_miss(miss);
    }

    fn publish(&mut self, timing: Timing, schedule: Schedule) {
        self.memory.publish(timing, schedule);
    }
}

#[cfg(test)]
mod tests {
    use rt::shm::{RingShape, StreamPage};
    use rt::stream::Wish;
    use sys::memory::{OwnRing, Shared};

    use super::*;

    #[test]
    fn a_device_gets_a_programs_frames_and_wishes_and_answers_on_its_page() {
        let shape = RingShape::new(2, 1024).unwrap();
        let mut ring = OwnRing::create(shape).unwrap();
        let (page, memfd) = Shared::for_readers("page").unwrap();
        let ring_memfd = ring.segment().fd().try_clone_to_owned().unwrap();
        let stream = PeerStream::receive(shape, ring_memfd, Arc::new(page)).unwrap();
        let page = Shared::<StreamPage>::receive(memfd).unwrap();
        let volume = Arc::new(SharedGain::new(1.0));
        let mut stream = DeviceStream {
            stream: 1,
            memory: stream,
            volume: Arc::clone(&volume),
            feed: StreamFeed::default(),
        };
        volume.set(0.5);
        assert_eq!(stream.volume(), 0.5);

        for channel in 0..2 {
            ring.samples_mut(channel, 0, 10).unwrap()[0].fill(1.0 + channel as f32);
        }
        ring.header().publish(10);
        assert_eq!((stream.channels(), stream.written()), (2, 10));
        for (channel, expected) in [(0, 1.0), (1, 2.0), (2, 0.0), (usize::MAX, 0.0)] {
            let mut samples = [-1.0; 10];
            stream.read(channel, 0, &mut samples);
            assert_eq!(samples, [expected; 10], "channel {channel}");
        }

        ring.wishes().publish(1, Wish::Drain { end: 10 });
        let wish = Some(Wish::Drain { end: 10 });
        assert_eq!(stream.next_wish(), Some(NumberedWish { number: 1, wish }));
        stream.acknowledge(1, Some(480));
        let miss = Miss { position: 10, device_frame: 490, frames: 3 };
        stream.note_miss(miss);
        stream.set_lowest(7);
        stream.set_lowest(5);
        let (timing, schedule) = (
            Timing { position: 9, ..Timing::default() },
            Schedule { until: 64, ..Schedule::default() },
        );
        stream.publish(timing, schedule);
        assert_eq!(page.acknowledgement(1), Some(rt::shm::Acknowledgement::At(480)));
        assert_eq!((page.miss(1), page.missed_frames(), page.lowest()), (Some(miss), 3, 7));
        assert_eq!((page.timing(), page.schedule()), (Some(timing), Some(schedule)));
    }
}
