//! Rings of streams, for their writer and for their reader.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use dsp::PeerSamples;
use rt::shm::{Layout, RingHeader, RingShape};
use rustix::mm::{MlockFlags, mlock_with, munlock};

use super::population::PopulatedUntil;
use super::shared::check_header;
use super::{
    Access, Mapping, Prefault, RingPopulation, Seals, Segment, SegmentError, SegmentRequirements,
};

/// A ring in the process that writes it: the only writable mapping that can exist of it.
#[derive(Debug)]
pub struct OwnRing {
    shape: RingShape,
    segment: Segment,
    mapping: Mapping,
}

/// A ring of another process: readable only, and changed by its writer at any time.
#[derive(Debug)]
pub struct PeerRing {
    shape: RingShape,
    mapping: Arc<Mapping>,
}

/// The kernel does not keep a whole ring in memory.
#[derive(Debug, thiserror::Error)]
#[error("cannot lock {bytes} bytes of a stream's ring into memory: {source}")]
pub struct RingNotLocked {
    /// The size of the ring.
    pub(super) bytes: usize,
    /// The largest ring, with as many channels, that could have been locked instead; `None` if not
    /// even the smallest.
    pub lockable: Option<RingShape>,
    /// The kernel's error: `EPERM` if nothing may be locked, `ENOMEM` beyond the limit
    /// ([`memlock_limit`](crate::process::memlock_limit)) or without memory.
    pub source: io::Error,
}

#[inline]
fn header(mapping: &Mapping) -> &RingHeader {
    // SAFETY: both constructors have mapped at least a header's page at a page's start, sealed
    // against shrinking; the header is atomics only, valid for any bytes.
    unsafe { mapping.base().cast().as_ref() }
}

/// Returns the address of a channel's first sample.
#[inline]
fn channel(mapping: &Mapping, shape: RingShape, number: u32) -> Option<NonNull<f32>> {
    let offset = shape.channel_offset(number)?;
    // SAFETY: both constructors have mapped exactly `shape.bytes()`, and the offset is of a whole
    // channel within these.
    Some(unsafe { mapping.base().byte_add(offset) }.cast())
}

/// What a ring of another process must be.
fn wanted(shape: RingShape) -> SegmentRequirements {
    SegmentRequirements {
        // MUTATION: ring.others_may_write
        seals: Seals::SIZE | Seals::FUTURE_WRITE,
        ..SegmentRequirements::exactly(shape.bytes() as u64)
    }
}

impl OwnRing {
    /// Returns a new, silent ring, which no other process can map for writing. Its pages are
    /// populated as they are first written, or by [`populate`](Self::populate).
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel refuses memory or seals.
    pub fn create(shape: RingShape) -> Result<Self, SegmentError> {
        let segment = Segment::create("consort-ring", shape.bytes())?;
        let mapping = Mapping::read_write(&segment, Prefault::OnDemand)?;
        header(&mapping).header().initialize(RingHeader::KIND);
        segment.seal_future_writes()?;
        segment.seal_seals()?;
        Ok(Self { shape, segment, mapping })
    }

    /// Populates all pages, so that no write of a real-time thread faults.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.14; `ENOMEM`.
    pub fn populate(&self) -> io::Result<()> {
        self.mapping.advise_to_populate(0..self.mapping.len())
    }

    /// Keeps the kernel from merging the ring's pages, for all who have it mapped, so that no write
    /// of a real-time thread faults because of a reader. Best effort, as for any segment.
    pub(super) fn pin(&self) {
        self.mapping.pin();
    }

    /// Keeps the whole ring in memory, for a real-time thread that writes.
    ///
    /// # Errors
    /// [`RingNotLocked`]; the ring works all the same.
    pub fn lock(&self) -> Result<(), RingNotLocked> {
        lock(&self.mapping, self.shape, MlockFlags::empty())
    }

    /// Returns the segment for the reader.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns its shape.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.shape
    }

    /// Returns its header.
    #[must_use]
    pub fn header(&self) -> &RingHeader {
        header(&self.mapping)
    }

    /// Returns the samples of `frames` frames of a channel from `position` on, in two pieces, at
    /// most the whole ring; `None` if there is no such channel.
    #[must_use]
    pub fn samples(&self, number: u32, position: u64, frames: usize) -> Option<[&[f32]; 2]> {
        let base = channel(&self.mapping, self.shape, number)?;
        Some(self.shape.pieces(position, frames).map(|piece| {
            // SAFETY: the piece is within the channel, which stays mapped as long as `self`. This
            // process is the only writer (the seal), and writes through `&mut self` only.
            unsafe { std::slice::from_raw_parts(base.as_ptr().add(piece.start), piece.len()) }
        }))
    }

    /// Same as [`samples`](Self::samples), to write them.
    #[must_use]
    pub fn samples_mut(
        &mut self,
        number: u32,
        position: u64,
        frames: usize,
    ) -> Option<[&mut [f32]; 2]> {
        self.all_samples_mut(position, frames).nth(number as usize)
    }

    /// Returns the same of all channels, in their order.
    pub fn all_samples_mut(
        &mut self,
        position: u64,
        frames: usize,
    ) -> impl Iterator<Item = [&mut [f32]; 2]> {
        let (mapping, shape) = (&self.mapping, self.shape);
        let bases = (0..shape.channels()).filter_map(move |number| channel(mapping, shape, number));
        bases.map(move |base| {
            shape.pieces(position, frames).map(|piece| {
                // SAFETY: the pieces are disjoint, as the channels are, each of which comes once.
                // They are within the channel, which is mapped for writing; this process is the
                // only writer (the seal) and what borrows `self` mutably its only access here.
                // Other processes only read.
                unsafe {
                    std::slice::from_raw_parts_mut(base.as_ptr().add(piece.start), piece.len())
                }
            })
        })
    }
}

impl PeerRing {
    /// Checks the seals and the size of a ring of `shape` before it is received. The close of what
    /// passes is short.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn examine(memfd: impl AsFd, shape: RingShape) -> Result<(), SegmentError> {
        Segment::examine(memfd, &wanted(shape)).map(drop)
    }

    /// Maps a received ring of `shape` if its writer can neither shrink it, nor take its pages
    /// away, nor let another process write to it, and keeps its pages from being merged.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive(memfd: OwnedFd, shape: RingShape) -> Result<Self, SegmentError> {
        let segment = Segment::receive(memfd, &wanted(shape))?;
        let mapping = Mapping::new(&segment, Access::ReadOnly, Prefault::OnDemand)?;
        check_header::<RingHeader>(header(&mapping))?;
        // MUTATION: ring.pages_not_pinned
        mapping.pin();
        Ok(Self { shape, mapping: Arc::new(mapping) })
    }

    /// Has the kernel count the whole ring as locked, and keep each page in memory from its first
    /// touch on: the seal keeps the writer from taking it away. Populates nothing.
    ///
    /// # Errors
    /// [`RingNotLocked`], with the size that would be possible. The ring works all the same.
    pub fn reserve(&self) -> Result<(), RingNotLocked> {
        lock(&self.mapping, self.shape, MlockFlags::ONFAULT)
    }

    /// Returns what there is to be populated, so that no read of a real-time thread faults, of a
    /// ring that is read from `position` on, at a rate in Hz. `until` says how far that is.
    pub(super) fn population(
        &self,
        position: u64,
        rate_hz: u32,
        until: &PopulatedUntil,
    ) -> RingPopulation {
        RingPopulation::new((&self.mapping, self.shape), position, rate_hz, until)
    }

    /// Returns its shape.
    #[must_use]
    pub fn shape(&self) -> RingShape {
        self.shape
    }

    /// Returns its header.
    #[must_use]
    #[inline]
    pub fn header(&self) -> &RingHeader {
        header(&self.mapping)
    }

    /// Returns the samples of `frames` frames of a channel from `position` on, in two pieces, at
    /// most the whole ring; `None` if there is no such channel. Thread: cycle.
    #[must_use]
    #[inline]
    pub fn samples(
        &self,
        number: u32,
        position: u64,
        frames: usize,
    ) -> Option<[PeerSamples<'_>; 2]> {
        let base = channel(&self.mapping, self.shape, number)?;
        Some(self.shape.pieces(position, frames).map(|piece| {
            // SAFETY: the piece is within the channel, which stays mapped as long as the mapping,
            // and this mapping is never written.
            unsafe { PeerSamples::new(base.add(piece.start), piece.len()) }
        }))
    }

    /// Copies frames of a channel from `position` on into private memory, at most the whole ring;
    /// silence follows, and takes the place of a channel that the ring lacks. Thread: cycle.
    #[inline]
    pub fn copy(&self, number: u32, position: u64, into: &mut [f32]) {
        let Some([first, second]) = self.samples(number, position, into.len()) else {
            return dsp::silence(into);
        };
        let (begin, end) = into.split_at_mut(first.len());
        dsp::copy(first, begin);
        dsp::copy(second, end);
    }
}

/// Locks a whole ring, or nothing.
fn lock(mapping: &Mapping, shape: RingShape, flags: MlockFlags) -> Result<(), RingNotLocked> {
    let base = mapping.base().as_ptr().cast();
    // SAFETY: each range is within our own mapping; neither call changes its content.
    let lock = |bytes| unsafe { mlock_with(base, bytes, flags) };
    let unlock = || {
        // Of a range of our own this cannot fail.
        // SAFETY: as above.
        let _ = unsafe { munlock(base, mapping.len()) };
    };
    let Err(errno) = lock(shape.bytes()) else { return Ok(()) };
    // A ring of half the capacity is half as long, so the beginning of this one stands for it.
    let smaller = std::iter::successors(shape.halved(), |shape| shape.halved());
    let lockable = smaller.into_iter().find(|shape| lock(shape.bytes()).is_ok());
    unlock();
    Err(RingNotLocked { bytes: shape.bytes(), lockable, source: errno.into() })
}

#[cfg(test)]
mod tests {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    use rustix::mm::{Advice, madvise};

    use super::*;

    fn shape(channels: u32, capacity_frames: u32) -> RingShape {
        RingShape::new(channels, capacity_frames).unwrap()
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
            if setrlimit(Resource::Memlock, limit).is_err() || set_capabilities(None, sets).is_err()
            {
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
}
