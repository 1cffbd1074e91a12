use rt::shm::RingSamples;
use rustix::fs::{FallocateFlags, fallocate, fstat};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};

use super::*;

fn shape(channels: u32, capacity_frames: u32) -> RingShape {
    RingShape::new(channels, capacity_frames).unwrap()
}

fn frames(channels: u32, capacity_frames: u32) -> RingShape {
    shape(channels, capacity_frames).holding(RingSamples::Frames16).unwrap()
}

fn fd(ring: &OwnRing) -> OwnedFd {
    ring.segment().fd().try_clone_to_owned().unwrap()
}

#[test]
fn a_reader_gets_each_channel_as_it_was_written_also_over_the_rings_end() {
    let mut own = OwnRing::create(shape(3, 1024)).unwrap();
    let position = (1 << 40) + 1000;
    for channel in 0..3 {
        let pieces = own.samples_mut(channel, position, 100).unwrap();
        for (frame, sample) in pieces.into_iter().flatten().enumerate() {
            *sample = (100 * channel) as f32 + frame as f32;
        }
        let own = own.samples(channel, position, 100).unwrap().concat();
        assert!(
            own.iter()
                .enumerate()
                .all(|(frame, sample)| { *sample == (100 * channel) as f32 + frame as f32 })
        );
    }
    own.header().publish(position + 100);
    let peer = PeerRing::receive(fd(&own), own.shape()).unwrap();
    assert_eq!(peer.header().written(), position + 100);
    for channel in 0..3 {
        let mut copy = [-1.0; 102];
        peer.copy(channel, position - 1, &mut copy);
        let written = (0..100).map(|frame| (100 * channel) as f32 + frame as f32);
        let expected: Vec<f32> = [0.0].into_iter().chain(written).chain([0.0]).collect();
        assert_eq!(copy[..], expected, "channel {channel}");
    }
    let mut lacking = [-1.0; 4];
    peer.copy(3, position, &mut lacking);
    assert_eq!((lacking, own.samples_mut(3, 0, 1).is_none()), ([0.0; 4], true));
}

#[test]
fn a_new_ring_has_memory_for_the_frames_that_are_to_come_alone() {
    for shape in [frames(2, 65_536), shape(2, 65_536)] {
        let taken = |position: u64, frames: usize| {
            let ring = OwnRing::create_with(shape, position, frames).unwrap();
            let bytes = 512 * fstat(ring.segment().fd()).unwrap().st_blocks;
            let mut samples = vec![1.0; 65_536];
            ring.copy(1, 0, &mut samples);
            assert!(samples.iter().all(|sample| *sample == 0.0), "it is silent");
            bytes
        };
        let header = taken(0, 0);
        let bytes = 10_000 * shape.frame_bytes() as i64;
        for position in [0, 60_000, 1 << 40] {
            let more = taken(position, 10_000) - header;
            assert!((bytes..bytes + 6 * 4096).contains(&more), "{more} bytes for {bytes}");
        }
        let all = taken(0, usize::MAX) - header;
        assert_eq!(all, 65_536 * shape.frame_bytes() as i64, "no more than it holds");
    }
}

#[test]
fn a_reader_gets_each_channel_of_frames_also_over_the_rings_end() {
    for shape in [frames(1, 1024), frames(2, 1024), shape(2, 1024)] {
        let mut own = OwnRing::create(shape).unwrap();
        let (channels, position) = (shape.channels(), (1 << 40) + 1000);
        let sample = |channel: u32, frame: u32| (100 * channel + frame) as f32 / 32768.0;
        for channel in 0..channels {
            let written: Vec<f32> = (0..100).map(|frame| sample(channel, frame)).collect();
            assert_eq!(own.write(channel, position, &written), 100);
        }
        assert_eq!(own.write(channels, position, &[0.5]), 0);
        let peer = PeerRing::receive(fd(&own), own.shape()).unwrap();
        for channel in 0..channels {
            let written = (0..100).map(|frame| sample(channel, frame));
            let expected: Vec<f32> = [0.0].into_iter().chain(written).chain([0.0]).collect();
            let mut copies = [[-1.0; 102]; 2];
            peer.copy(channel, position - 1, &mut copies[0]);
            own.copy(channel, position - 1, &mut copies[1]);
            assert_eq!(copies.map(Vec::from), [expected.clone(), expected], "{shape:?}");
        }
        let mut lacking = [-1.0; 4];
        peer.copy(channels, position, &mut lacking);
        assert_eq!(lacking, [0.0; 4]);
        lacking = [-1.0; 4];
        own.copy(channels, position, &mut lacking);
        assert_eq!(lacking, [0.0; 4]);
        let mut long = vec![-1.0; 1030];
        peer.copy(0, position, &mut long);
        assert_eq!(long[1024..], [0.0; 6], "no more than the ring holds");
    }
}

#[test]
fn the_frames_of_a_ring_are_a_programs_bytes() {
    let mut own = OwnRing::create(frames(2, 1024)).unwrap();
    assert!(OwnRing::create(shape(2, 1024)).unwrap().frames(0, 1).is_none());
    let bytes: Vec<u8> = (0..40).collect();
    let [first, second] = own.frames_mut(1020, 10).unwrap();
    assert_eq!((first.len(), second.len()), (16, 24));
    first.copy_from_slice(&bytes[..16]);
    second.copy_from_slice(&bytes[16..]);
    assert_eq!(own.frames(1020, 10).unwrap().concat(), bytes);
    assert_eq!(own.samples(0, 0, 1), None, "it has no planes");
    let mut right = [0.0; 10];
    own.copy(1, 1020, &mut right);
    let sample = |at: usize| f32::from(i16::from_le_bytes([bytes[at], bytes[at + 1]]));
    assert!((0..10).all(|frame| right[frame] == sample(4 * frame + 2) / 32768.0));
}

#[test]
fn the_page_of_a_received_ring_stays_populated_whatever_its_writer_does() {
    let own = OwnRing::create(shape(1, 1024)).unwrap();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    assert_eq!(fallocate(own.segment().fd(), hole, 4096, 4096), Err(Errno::PERM));
    let base = own.mapping.base().as_ptr().cast();
    // SAFETY: this test's own mapping, of whose content it keeps no reference.
    let removed = unsafe { madvise(base, own.mapping.len(), Advice::LinuxRemove) };
    assert_eq!(removed, Err(Errno::PERM));
    assert!(Mapping::read_write(own.segment(), Prefault::Now).is_err());
}

#[test]
fn a_ring_of_another_size_or_without_the_seal_is_refused() {
    let own = OwnRing::create(shape(2, 2048)).unwrap();
    let refused = PeerRing::receive(fd(&own), shape(2, 1024)).unwrap_err();
    assert!(matches!(refused, SegmentError::WrongSize { .. }), "{refused}");
    let bytes = shape(1, 1024).bytes();
    let open = Segment::create("open", bytes).unwrap();
    let refused = PeerRing::receive(open.into_fd(), shape(1, 1024)).unwrap_err();
    assert!(matches!(refused, SegmentError::NotSealed { .. }), "{refused}");
    let foreign = Segment::create("foreign", bytes).unwrap();
    foreign.seal_future_writes().unwrap();
    let refused = PeerRing::receive(foreign.into_fd(), shape(1, 1024)).unwrap_err();
    assert!(matches!(refused, SegmentError::Foreign), "{refused}");
}

/// Sets the limit on locked memory in a forked child, gives up the right to exceed it, and
/// returns what `lock` says there: the capacity that could be locked / 1024, 0 for none, or 255
/// if all was locked; 254 if this machine does not let the child give up its rights.
fn lock_within(limit_bytes: u64, shape: RingShape) -> i32 {
    crate::forked::exit_status(|| {
        use rustix::process::{Resource, Rlimit, setrlimit};
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        let limit = Rlimit { current: Some(limit_bytes), maximum: Some(limit_bytes) };
        if setrlimit(Resource::Memlock, limit).is_err() || set_capabilities(None, sets).is_err() {
            return 254;
        }
        let Ok(own) = OwnRing::create(shape) else { return 253 };
        match own.lock() {
            Ok(()) => 255,
            Err(refusal) => {
                refusal.lockable.map_or(0, |shape| (shape.capacity_frames() / 1024) as u8)
            }
        }
    })
}

#[test]
fn a_ring_that_cannot_be_locked_says_how_much_could_be() {
    let (page, whole) = (4096, shape(2, 16 * 1024));
    for (limit, locked) in [
        (whole.bytes(), 255),
        (whole.bytes() - page, 8),
        (shape(2, 2048).bytes(), 2),
        (shape(2, 1024).bytes() - page, 0),
        (0, 0),
    ] {
        assert_eq!(lock_within(limit as u64, whole), locked, "{limit} bytes may be locked");
    }
}

#[test]
fn a_reserved_ring_has_the_pages_that_are_populated() {
    let (own, position) = (OwnRing::create(shape(2, 65536)).unwrap(), 1000);
    let held = || rustix::fs::fstat(own.segment().fd()).unwrap().st_blocks as usize * 512;
    let peer = PeerRing::receive(fd(&own), own.shape()).unwrap();
    peer.reserve().unwrap();
    assert_eq!(held(), 4096, "the header's page");
    let until = PopulatedUntil::whole();
    assert_eq!(until.position(), u64::MAX);
    let mut population = peer.population(position, 48_000, &until);
    assert_eq!((until.position(), held()), (position, 4096));
    // A tenth of a second, and then 128 KiB of both channels.
    let ends = [5800, 22_184, 38_568, 54_952, u64::MAX];
    for end in ends {
        assert_eq!(population.step().unwrap(), end == u64::MAX);
        // The first page is the last one as well.
        let pages = 2 * (end.div_ceil(1024) as usize).min(64);
        assert_eq!((until.position(), held()), (end, (1 + pages) * 4096));
    }
}

#[test]
fn a_ring_of_frames_has_all_of_its_pages_once_it_is_populated() {
    for (shape, position) in [(frames(1, 1024), 0), (frames(2, 32_768), 30_000)] {
        let own = OwnRing::create(shape).unwrap();
        let held = || rustix::fs::fstat(own.segment().fd()).unwrap().st_blocks as usize * 512;
        let peer = PeerRing::receive(fd(&own), shape).unwrap();
        let until = PopulatedUntil::whole();
        let mut population = peer.population(position, 48_000, &until);
        let first = population.step().unwrap();
        let frames = population.populated_frames() as usize;
        assert!(held() >= 4096 + frames * shape.frame_bytes(), "{frames} of {shape:?}");
        while !first && !population.step().unwrap() {}
        assert_eq!(held(), shape.bytes());
    }
}

#[test]
fn a_tenth_of_a_second_is_populated_at_least() {
    let own = OwnRing::create(shape(32, 8192)).unwrap();
    let until = PopulatedUntil::whole();
    let peer = PeerRing::receive(fd(&own), own.shape()).unwrap();
    let mut population = peer.population(0, 48_000, &until);
    assert_eq!((population.step().unwrap(), until.position()), (false, 4800));
    assert_eq!(population.populated_frames(), 4800);
    assert_eq!((population.step().unwrap(), until.position()), (true, u64::MAX));
}

#[test]
fn a_populated_ring_has_all_of_its_pages() {
    let own = OwnRing::create(shape(2, 4096)).unwrap();
    let held = || rustix::fs::fstat(own.segment().fd()).unwrap().st_blocks * 512;
    assert_eq!(held(), 4096, "the header's page");
    own.populate().unwrap();
    assert_eq!(held() as usize, own.shape().bytes());
}
