//! A program's stream in the loop of the device that plays it.

use mix::{NumberedWish, StreamMemory};
use rt::shm::{Miss, Schedule, Timing};
use sys::memory::PeerStream;

/// The memory of a program's stream, received and locked.
#[derive(Debug)]
pub struct DeviceStream(pub PeerStream);

impl StreamMemory for DeviceStream {
    fn channels(&self) -> usize {
        self.0.shape().channels() as usize
    }

    fn next_wish(&mut self) -> Option<NumberedWish> {
        self.0.next_wish().map(|(number, wish)| NumberedWish { number, wish })
    }

    fn acknowledge(&mut self, number: u64, device_frame: Option<u64>) {
        self.0.acknowledge(number, device_frame);
    }

    fn written(&mut self) -> u64 {
        self.0.written()
    }

    fn read(&self, channel: usize, position: u64, into: &mut [f32]) {
        // A channel whose number is too large for a ring is silent, as any that it lacks.
        self.0.read(u32::try_from(channel).unwrap_or(u32::MAX), position, into);
    }

    fn set_lowest(&mut self, position: u64) {
        self.0.set_lowest(position);
    }

    fn note_miss(&mut self, miss: Miss) {
        self.0.note_miss(miss);
    }

    fn publish(&mut self, timing: Timing, schedule: Schedule) {
        self.0.publish(timing, schedule);
    }
}

#[cfg(test)]
mod tests {
    use rt::shm::{RingShape, StreamPage, WishPage};
    use rt::stream::Wish;
    use sys::memory::{OwnRing, Shared};

    use super::*;

    #[test]
    fn a_device_gets_a_programs_frames_and_wishes_and_answers_on_its_page() {
        let shape = RingShape::new(2, 1024).unwrap();
        let mut ring = OwnRing::create(shape).unwrap();
        let (wishes, memfd) = Shared::<WishPage>::for_readers("consort-wishes").unwrap();
        let ring_memfd = ring.segment().fd().try_clone_to_owned().unwrap();
        let (stream, page) = PeerStream::receive(shape, ring_memfd, memfd).unwrap();
        let page = Shared::<StreamPage>::receive(page).unwrap();
        let mut stream = DeviceStream(stream);

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

        wishes.publish(1, Wish::Drain { end: 10 });
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
