//! Slabs: the memory of output ports, seen by their owner and by their readers.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

use dsp::PeerSamples;
use rt::midi::MidiWords;
use rt::shm::{Layout, SLAB_BYTES, SLOT_BYTES, SlabHeader};

use crate::write_faults::ReadableRange;

use super::{Access, Mapping, Prefault, Seals, Segment, SegmentError, Wanted};

const SAMPLES_PER_SLOT: usize = SLOT_BYTES / size_of::<f32>();

/// A slab in the process that owns its ports: the only writable mapping that will ever exist of it.
#[derive(Debug)]
pub struct OwnSlab {
    segment: Segment,
    mapping: Mapping,
}

/// A slab of another process: readable only, at any time changed by its owner.
#[derive(Debug)]
pub struct PeerSlab {
    /// Before the mapping, which it needs.
    writes: Option<ReadableRange>,
    mapping: Mapping,
}

#[inline]
fn header(mapping: &Mapping) -> &SlabHeader {
    // SAFETY: both constructors have mapped at least `SLAB_BYTES` at a page's start, sealed against
    // shrinking; the header is atomics only, valid for any bytes.
    unsafe { mapping.base().cast().as_ref() }
}

fn received(memfd: OwnedFd) -> Result<Segment, SegmentError> {
    let wanted = Wanted { seals: Seals::SIZE | Seals::FUTURE_WRITE, ..Wanted::exactly(SLAB_BYTES as u64) };
    Segment::receive(memfd, &wanted)
}

fn slot(mapping: &Mapping, slot: u32) -> Option<NonNull<f32>> {
    // SAFETY: `slot_offset` gives offsets of whole slots within `SLAB_BYTES`, which are mapped.
    SlabHeader::slot_offset(slot).map(|offset| unsafe { mapping.base().byte_add(offset) }.cast())
}

impl OwnSlab {
    /// A fresh slab, all silence, which nobody can map for writing after this.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel refuses memory or seals.
    pub fn create() -> Result<Self, SegmentError> {
        let segment = Segment::create("consort-slab", SLAB_BYTES)?;
        let mapping = Mapping::read_write(&segment, Prefault::OnDemand)?;
        header(&mapping).header().initialize(SlabHeader::KIND);
        segment.seal_future_writes()?;
        segment.seal_seals()?;
        Ok(Self { segment, mapping })
    }

    /// As [`Mapping::lock_on_fault`]. Readers' pages stay with it.
    ///
    /// # Errors
    /// As there.
    pub fn lock_on_fault(&self) -> io::Result<()> {
        self.mapping.lock_on_fault()
    }

    /// What readers receive.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Its beginning.
    #[must_use]
    pub fn header(&self) -> &SlabHeader {
        header(&self.mapping)
    }

    /// The first of the samples of a slot; it has room for the largest quantum, and for a MIDI buffer.
    #[must_use]
    pub fn slot(&self, number: u32) -> Option<NonNull<f32>> {
        slot(&self.mapping, number)
    }

    /// The first `frames` samples of a slot, for the server's own devices. At most a slot's length.
    #[must_use]
    pub fn samples_mut(&mut self, number: u32, frames: usize) -> Option<&mut [f32]> {
        let base = self.slot(number)?;
        // SAFETY: the slot is mapped for writing and at least this long; this process is its only writer
        // (the seal) and `&mut self` is its only access here. Other processes only read.
        Some(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), frames.min(SAMPLES_PER_SLOT)) })
    }

    /// Touches the pages of a slot's first `frames` samples, so that no cycle faults on them.
    pub fn silence(&mut self, number: u32, frames: usize) {
        if let Some(samples) = self.samples_mut(number, frames) {
            samples.fill(0.0);
        }
    }
}

impl PeerSlab {
    /// Maps a slab that was received, if its owner can neither shrink it nor let anyone else write to it.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive(memfd: OwnedFd) -> Result<Self, SegmentError> {
        Self::map(&received(memfd)?)
    }

    /// As [`receive`](Self::receive), for a program that may write to it although it must not: once
    /// [`write_faults::serve`](crate::write_faults::serve) was called, the program then writes to a copy of its own,
    /// until [`restore`](Self::restore). What the owner has written so far is present: no read of it faults.
    ///
    /// # Errors
    /// [`SegmentError`]: what is wrong with it.
    pub fn receive_for_program(memfd: OwnedFd) -> Result<Self, SegmentError> {
        let segment = received(memfd)?;
        let peer = Self::checked(Mapping::private(&segment)?)?;
        peer.mapping.populate(&segment);
        // SAFETY: whole pages of a private mapping, read-only, which lives as long as the range: both belong to this
        // value. Its content is another process's and may change at any time anyway.
        let writes = unsafe { ReadableRange::new(peer.mapping.base().cast(), peer.mapping.len()) };
        Ok(Self { writes: Some(writes), ..peer })
    }

    /// Shows what the owner writes again, where this process has written. True if it has, since the last call.
    /// Thread: cycle.
    pub fn restore(&self) -> bool {
        self.writes.as_ref().is_some_and(ReadableRange::restore)
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
            Ok(()) => Ok(Self { writes: None, mapping }),
            Err(_) => Err(SegmentError::Foreign),
        }
    }

    /// Its beginning.
    #[must_use]
    pub fn header(&self) -> &SlabHeader {
        header(&self.mapping)
    }

    /// The first `frames` samples of a slot, at most a slot's length.
    #[must_use]
    #[inline]
    pub fn samples(&self, number: u32, frames: usize) -> Option<PeerSamples<'_>> {
        let base = slot(&self.mapping, number)?;
        // SAFETY: the slot is mapped and at least this long, as long as the mapping; whoever keeps the
        // samples keeps the slab.
        Some(unsafe { PeerSamples::new(base, frames.min(SAMPLES_PER_SLOT)) })
    }

    /// A slot as a MIDI buffer, which may be anything: to be read only.
    #[must_use]
    pub fn midi(&self, number: u32) -> Option<&MidiWords> {
        let base = slot(&self.mapping, number)?;
        // SAFETY: the slot is mapped, aligned and as large as a MIDI buffer, as long as the mapping. The words are
        // atomics, so that the owner may write them at any time; `MidiReader` only loads them.
        Some(unsafe { base.cast::<MidiWords>().as_ref() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_hears_what_the_owner_wrote_and_cannot_write() {
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

    /// A slab with 0.25 everywhere in slot 3, and a program's view of it.
    fn owned_and_read() -> (OwnSlab, PeerSlab) {
        let mut own = OwnSlab::create().unwrap();
        own.samples_mut(3, 8192).unwrap().fill(0.25);
        let peer = PeerSlab::receive_for_program(own.segment().fd().try_clone_to_owned().unwrap()).unwrap();
        (own, peer)
    }

    fn heard(peer: &PeerSlab) -> [f32; 8192] {
        let mut heard = [0.0; 8192];
        dsp::copy(peer.samples(3, 8192).unwrap(), &mut heard);
        heard
    }

    /// What a program does that takes an input for memory of its own.
    fn write(peer: &PeerSlab, frame: usize) {
        let samples = peer.samples(3, 8192).unwrap().as_ptr().cast_mut();
        // SAFETY: within the slot; the fault is served by making the page this process's own.
        unsafe { samples.add(frame).write_volatile(-1.0) };
    }

    #[test]
    fn who_writes_to_a_slab_that_it_reads_changes_a_copy_until_it_is_restored() {
        crate::write_faults::serve();
        let (mut own, peer) = owned_and_read();
        let before = crate::write_faults::served();
        assert!(!peer.restore());
        for _ in 0..3 {
            write(&peer, 5000);
            write(&peer, 5001);
            assert!(crate::write_faults::served() > before);
            assert_eq!((heard(&peer)[5000], heard(&peer)[5001], heard(&peer)[4999]), (-1.0, -1.0, 0.25));
            assert!(own.samples_mut(3, 8192).unwrap().iter().all(|sample| *sample == 0.25));
            assert!(peer.restore());
            assert!(!peer.restore());
            assert_eq!(heard(&peer), [0.25; 8192]);
        }
        own.samples_mut(3, 8192).unwrap().fill(0.5);
        assert_eq!(heard(&peer), [0.5; 8192], "the shared pages again");
    }

    #[test]
    fn pages_that_nobody_wrote_to_here_show_what_the_owner_writes() {
        crate::write_faults::serve();
        let (mut own, peer) = owned_and_read();
        assert_eq!(heard(&peer), [0.25; 8192]);
        write(&peer, 0);
        own.samples_mut(3, 8192).unwrap().fill(0.5);
        let heard = heard(&peer);
        let begin = SlabHeader::slot_offset(3).unwrap();
        let (copied, shared) = heard.split_at((4096 - begin % 4096) / size_of::<f32>());
        assert_eq!(
            (copied[0], copied[1], copied.last()),
            (-1.0, 0.25, Some(&0.25)),
            "the page that is a copy"
        );
        assert!(shared.len() > 7000 && shared.iter().all(|sample| *sample == 0.5));
    }

    #[test]
    fn what_the_owner_has_written_is_present_and_what_it_has_not_takes_no_memory() {
        let (own, _peer) = owned_and_read();
        let held = || rustix::fs::fstat(own.segment().fd()).unwrap().st_blocks * 512;
        // The header's page, and those of one slot.
        let begin = SlabHeader::slot_offset(3).unwrap();
        let pages = (begin + SLOT_BYTES).div_ceil(4096) - begin / 4096;
        assert_eq!(held() as usize, 4096 * (1 + pages));
    }

    #[test]
    fn a_slab_that_others_could_still_write_is_refused() {
        let segment = Segment::create("writable", SLAB_BYTES).unwrap();
        assert!(matches!(PeerSlab::receive(segment.into_fd()), Err(SegmentError::NotSealed { .. })));
    }
}
