//! Slabs: the memory of output ports, for their owner and for their readers.

use std::io;
use std::iter;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use dsp::PeerSamples;
use rt::midi::MidiWords;
use rt::shm::{Layout, SLAB_BYTES, SLOT_BYTES, SlabHeader};

use super::{Access, Mapping, Prefault, Seals, Segment, SegmentError, SegmentRequirements};

const SAMPLES_PER_SLOT: usize = SLOT_BYTES / size_of::<f32>();

/// A slab in the process that owns its ports: the only writable mapping that can exist of it.
#[derive(Debug)]
pub struct OwnSlab {
    segment: Segment,
    mapping: Arc<Mapping>,
}

/// The pages of a slab of this process, for a thread that has not the slab itself.
#[derive(Debug)]
pub struct SlabPages(Arc<Mapping>);

/// A slab of another process: readable only, and changed by its owner at any time.
#[derive(Debug)]
pub struct PeerSlab {
    mapping: Mapping,
}

#[inline]
fn header(mapping: &Mapping) -> &SlabHeader {
    // SAFETY: both constructors have mapped at least `SLAB_BYTES` at a page's start, sealed against
    // shrinking; the header is atomics only, valid for any bytes.
    unsafe { mapping.base().cast().as_ref() }
}

/// What a slab of another process must be.
fn wanted() -> SegmentRequirements {
    SegmentRequirements {
        seals: Seals::SIZE | Seals::FUTURE_WRITE,
        ..SegmentRequirements::exactly(SLAB_BYTES as u64)
    }
}

fn slot(mapping: &Mapping, slot: u32) -> Option<NonNull<f32>> {
    // SAFETY: `slot_offset` gives offsets of whole slots within `SLAB_BYTES`, which are mapped.
    SlabHeader::slot_offset(slot).map(|offset| unsafe { mapping.base().byte_add(offset) }.cast())
}

/// The bytes that a reader of a slot's first `frames` samples touches: the header, and those
/// samples.
fn touched(slot: u32, frames: usize) -> impl Iterator<Item = Range<usize>> {
    let samples = SlabHeader::slot_offset(slot)
        .map(|offset| offset..offset + frames.min(SAMPLES_PER_SLOT) * size_of::<f32>());
    iter::once(0..size_of::<SlabHeader>()).chain(samples)
}

impl OwnSlab {
    /// Returns a new, silent slab, which no other process can map for writing.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel refuses memory or seals.
    pub fn create() -> Result<Self, SegmentError> {
        let segment = Segment::create("consort-slab", SLAB_BYTES)?;
        let mapping = Mapping::read_write(&segment, Prefault::OnDemand)?;
        header(&mapping).header().initialize(SlabHeader::KIND);
        segment.seal_future_writes()?;
        segment.seal_seals()?;
        Ok(Self { segment, mapping: Arc::new(mapping) })
    }

    /// Same as [`Mapping::lock_on_fault`]. It keeps the readers' pages in memory as well.
    ///
    /// # Errors
    /// See [`Mapping::lock_on_fault`].
    pub fn lock_on_fault(&self) -> io::Result<()> {
        self.mapping.lock_on_fault()
    }

    /// Returns the segment for readers.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Returns its header.
    #[must_use]
    pub fn header(&self) -> &SlabHeader {
        header(&self.mapping)
    }

    /// Returns the first sample of a slot, which has room for the largest quantum and for a MIDI
    /// buffer.
    #[must_use]
    pub fn slot(&self, number: u32) -> Option<NonNull<f32>> {
        slot(&self.mapping, number)
    }

    /// Returns the first `frames` samples of a slot, at most its length, for the server's own
    /// devices.
    #[must_use]
    pub fn samples_mut(&mut self, number: u32, frames: usize) -> Option<&mut [f32]> {
        let base = self.slot(number)?;
        // SAFETY: the slot is mapped for writing and at least this long; this process is its only
        // writer (the seal) and `&mut self` is its only access here. Other processes only read.
        Some(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), frames.min(SAMPLES_PER_SLOT)) })
    }

    /// Touches the pages of a slot's first `frames` samples, so that no cycle faults there.
    pub fn silence(&mut self, number: u32, frames: usize) {
        if let Some(samples) = self.samples_mut(number, frames) {
            samples.fill(0.0);
        }
    }

    /// Same as [`SlabPages::populate_slots`].
    ///
    /// # Errors
    /// See there.
    pub fn populate_slots(&self, slots: u32) -> Result<(), SegmentError> {
        self.pages().populate_slots(slots)
    }

    /// Returns its pages.
    #[must_use]
    pub fn pages(&self) -> SlabPages {
        SlabPages(Arc::clone(&self.mapping))
    }
}

impl SlabPages {
    /// Populates the pages of the header and of the first `slots` slots and keeps them from being
    /// merged, so that no cycle of any quantum faults there. What is populated already stays as it
    /// is.
    ///
    /// # Errors
    /// [`SegmentError::Populate`].
    pub fn populate_slots(&self, slots: u32) -> Result<(), SegmentError> {
        let end = SlabHeader::slot_offset(slots).unwrap_or(SLAB_BYTES);
        self.0.populate(0..end)?;
        self.0.pin();
        Ok(())
    }
}

impl PeerSlab {
    /// Checks the seals and the size of a slab before it is received. The close of what passes is
    /// short.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn examine(memfd: impl AsFd) -> Result<(), SegmentError> {
        Segment::examine(memfd, &wanted()).map(drop)
    }

    /// Maps a received slab if its owner can neither shrink it nor let another process write to it,
    /// and keeps its pages from being merged, for all who read it.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive(memfd: OwnedFd) -> Result<Self, SegmentError> {
        let peer = Self::map(&Segment::receive(memfd, &wanted())?)?;
        peer.mapping.pin();
        Ok(peer)
    }

    /// Same as [`receive`](Self::receive), with all pages populated that the owner has written so
    /// far, so that reading them does not fault.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive_present(memfd: OwnedFd) -> Result<Self, SegmentError> {
        let segment = Segment::receive(memfd, &wanted())?;
        let peer = Self::map(&segment)?;
        peer.mapping.populate_written(&segment);
        Ok(peer)
    }

    /// Maps a slab of this process for reading, as its own driver does.
    ///
    /// # Errors
    /// [`SegmentError::Map`].
    pub fn map(segment: &Segment) -> Result<Self, SegmentError> {
        Self::checked(Mapping::new(segment, Access::ReadOnly, Prefault::OnDemand)?)
    }

    fn checked(mapping: Mapping) -> Result<Self, SegmentError> {
        match header(&mapping).header().check(SlabHeader::KIND) {
            Ok(()) => Ok(Self { mapping }),
            Err(_) => Err(SegmentError::Foreign),
        }
    }

    /// Populates the pages of the header and of a slot's first `frames` samples, so that reading
    /// them does not fault. The owner cannot discard them: the slab is sealed.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: the owner never wrote them, and the kernel has no memory.
    pub fn populate(&self, number: u32, frames: usize) -> Result<(), SegmentError> {
        for bytes in touched(number, frames) {
            self.mapping.populate(bytes)?;
        }
        Ok(())
    }

    /// Keeps in memory what [`populate`](Self::populate) has populated.
    ///
    /// # Errors
    /// See [`Mapping::lock_on_fault`].
    pub fn lock_on_fault(&self, number: u32, frames: usize) -> io::Result<()> {
        for bytes in touched(number, frames) {
            self.mapping.lock_range_on_fault(bytes)?;
        }
        Ok(())
    }

    /// Returns its header.
    #[must_use]
    pub fn header(&self) -> &SlabHeader {
        header(&self.mapping)
    }

    /// Returns the first `frames` samples of a slot, at most its length.
    #[must_use]
    #[inline]
    pub fn samples(&self, number: u32, frames: usize) -> Option<PeerSamples<'_>> {
        let base = slot(&self.mapping, number)?;
        // SAFETY: the slot is mapped and at least this long, as long as the mapping; the owner of
        // the samples keeps the slab.
        Some(unsafe { PeerSamples::new(base, frames.min(SAMPLES_PER_SLOT)) })
    }

    /// Returns a slot as a MIDI buffer with arbitrary content, for reading only.
    #[must_use]
    pub fn midi(&self, number: u32) -> Option<&MidiWords> {
        let base = slot(&self.mapping, number)?;
        // SAFETY: the slot is mapped, aligned and as large as a MIDI buffer, as long as the
        // mapping. The words are atomics, so that the owner may write them at any time;
        // `MidiReader` only loads them.
        Some(unsafe { base.cast::<MidiWords>().as_ref() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_hears_what_the_owner_wrote() {
        let mut own = OwnSlab::create().unwrap();
        own.samples_mut(15, 8192).unwrap().fill(0.25);
        own.header().finish(7);
        let memfd = own.segment().fd().try_clone_to_owned().unwrap();
        let peer = PeerSlab::receive(memfd).unwrap();
        let mut heard = [0.0; 8192];
        dsp::copy(peer.samples(15, 8192).unwrap(), &mut heard);
        assert_eq!((heard, peer.header().finished()), ([0.25; 8192], 7));
        assert!(peer.samples(16, 64).is_none());
        assert!(Mapping::read_write(own.segment(), Prefault::Now).is_err());
    }

    #[test]
    fn only_written_pages_of_a_slab_are_present() {
        let mut own = OwnSlab::create().unwrap();
        own.samples_mut(3, 8192).unwrap().fill(0.25);
        let memfd = own.segment().fd().try_clone_to_owned().unwrap();
        let _peer = PeerSlab::receive_present(memfd).unwrap();
        let held = || rustix::fs::fstat(own.segment().fd()).unwrap().st_blocks * 512;
        // The header's page, and those of one slot.
        let begin = SlabHeader::slot_offset(3).unwrap();
        let pages = (begin + SLOT_BYTES).div_ceil(4096) - begin / 4096;
        assert_eq!(held() as usize, 4096 * (1 + pages));
    }

    #[test]
    fn a_slab_that_others_could_still_write_is_refused() {
        let segment = Segment::create("writable", SLAB_BYTES).unwrap();
        assert!(matches!(
            PeerSlab::receive(segment.into_fd()),
            Err(SegmentError::NotSealed { .. })
        ));
    }
}
