//! Rings of streams, for their writer and for their reader.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use dsp::{Format, PeerFrames16, PeerSamples};
use rt::shm::{Layout, RingHeader, RingShape, Wishes};
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
    mapping: Arc<Mapping>,
}

/// The wishes of a stream that plays, which lie with its ring: its program's alone to write.
#[derive(Debug)]
pub struct RingWishes(Arc<Mapping>);

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

/// Returns the address of a ring's first frame of 16-bit samples; `None` if they lie in planes.
#[inline]
fn frames_of(mapping: &Mapping, shape: RingShape) -> Option<NonNull<i16>> {
    let offset = shape.frames_offset()?;
    // SAFETY: both constructors have mapped exactly `shape.bytes()`, and all frames lie within
    // these from the offset on.
    Some(unsafe { mapping.base().byte_add(offset) }.cast())
}

/// Returns the address of a channel's first sample; `None` if there is no such plane.
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
        Self::create_with(shape, 0, 0)
    }

    /// The same with memory for these frames from `position` on, for a writer that is about to
    /// write them.
    ///
    /// # Errors
    /// [`SegmentError`] if the kernel refuses memory or seals.
    pub fn create_with(
        shape: RingShape,
        position: u64,
        frames: usize,
    ) -> Result<Self, SegmentError> {
        let segment = Segment::create("consort-ring", shape.bytes())?;
        for bytes in shape.byte_ranges(position, frames) {
            segment.give_memory(bytes)?;
        }
        let mapping = Mapping::read_write(&segment, Prefault::OnDemand)?;
        if frames > 0 {
            mapping.populate_written(&segment);
        }
        header(&mapping).header().initialize(RingHeader::KIND);
        segment.seal_future_writes()?;
        segment.seal_seals()?;
        Ok(Self { shape, segment, mapping: Arc::new(mapping) })
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

    /// Returns the wishes of the stream that it is of, which is to play.
    #[must_use]
    pub fn wishes(&self) -> RingWishes {
        RingWishes(Arc::clone(&self.mapping))
    }

    /// Returns the samples of `frames` frames of a plane from `position` on, in two pieces, at
    /// most the whole ring; `None` if there is no such plane.
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

    /// Returns the same of all planes, in their order.
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

    /// Returns the bytes of `frames` frames from `position` on, in two pieces, at most the whole
    /// ring; `None` if they lie in planes.
    #[must_use]
    pub fn frames(&self, position: u64, frames: usize) -> Option<[&[u8]; 2]> {
        let base = frames_of(&self.mapping, self.shape)?.cast::<u8>();
        let unit = self.frame_bytes();
        Some(self.shape.pieces(position, frames).map(|piece| {
            // SAFETY: the piece is within the frames, which stay mapped as long as `self`. This
            // process is the only writer (the seal), and writes through `&mut self` only.
            unsafe {
                let first = base.as_ptr().add(piece.start * unit);
                std::slice::from_raw_parts(first, piece.len() * unit)
            }
        }))
    }

    /// Same as [`frames`](Self::frames), to write them.
    #[must_use]
    pub fn frames_mut(&mut self, position: u64, frames: usize) -> Option<[&mut [u8]; 2]> {
        let base = frames_of(&self.mapping, self.shape)?.cast::<u8>();
        let unit = self.frame_bytes();
        Some(self.shape.pieces(position, frames).map(|piece| {
            // SAFETY: the pieces are disjoint, and within the frames, which are mapped for writing;
            // this process is the only writer (the seal) and what borrows `self` mutably its only
            // access here. Other processes only read.
            unsafe {
                let first = base.as_ptr().add(piece.start * unit);
                std::slice::from_raw_parts_mut(first, piece.len() * unit)
            }
        }))
    }

    fn frame_bytes(&self) -> usize {
        self.shape.frame_bytes()
    }

    /// Copies frames of a channel from `position` on, at most the whole ring; silence follows, and
    /// takes the place of a channel that the ring lacks.
    pub fn copy(&self, number: u32, position: u64, into: &mut [f32]) {
        let (channel, channels) = (number as usize, self.shape.channels() as usize);
        let mut rest = into;
        if let Some(pieces) = self.frames(position, rest.len()) {
            for piece in pieces.into_iter().filter(|_| channel < channels) {
                let (now, later) = rest.split_at_mut(piece.len() / self.frame_bytes());
                dsp::decode(Format::S16Le, piece, now, channel, channels);
                rest = later;
            }
        } else {
            for piece in self.samples(number, position, rest.len()).into_iter().flatten() {
                let (now, later) = rest.split_at_mut(piece.len());
                now.copy_from_slice(piece);
                rest = later;
            }
        }
        rest.fill(0.0);
    }

    /// Writes samples of a channel from `position` on, as many as the ring has frames; returns how
    /// many, 0 for a channel that it lacks.
    pub fn write(&mut self, number: u32, position: u64, samples: &[f32]) -> usize {
        let (channel, channels) = (number as usize, self.shape.channels() as usize);
        let unit = self.frame_bytes();
        let mut rest = samples;
        if let Some(pieces) = self.frames_mut(position, rest.len()) {
            for piece in pieces.into_iter().filter(|_| channel < channels) {
                let (now, later) = rest.split_at(piece.len() / unit);
                dsp::encode(Format::S16Le, now, piece, channel, channels);
                rest = later;
            }
        } else {
            for piece in self.samples_mut(number, position, rest.len()).into_iter().flatten() {
                let (now, later) = rest.split_at(piece.len());
                piece.copy_from_slice(now);
                rest = later;
            }
        }
        samples.len() - rest.len()
    }
}

impl Deref for RingWishes {
    type Target = Wishes;

    fn deref(&self) -> &Wishes {
        header(&self.0).wishes()
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

    /// Returns the samples of `frames` frames of a plane from `position` on, in two pieces, at
    /// most the whole ring; `None` if there is no such plane. Thread: cycle.
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
        if let Some(base) = frames_of(&self.mapping, self.shape) {
            return self.decode(base, number, position, into);
        }
        let Some([first, second]) = self.samples(number, position, into.len()) else {
            return dsp::silence(into);
        };
        let (begin, end) = into.split_at_mut(first.len());
        dsp::copy(first, begin);
        dsp::copy(second, end);
    }

    /// Copies frames that do not lie in planes.
    fn decode(&self, base: NonNull<i16>, number: u32, position: u64, into: &mut [f32]) {
        let (channel, channels) = (number as usize, self.shape.channels() as usize);
        let mut rest = into;
        for piece in self.shape.pieces(position, rest.len()) {
            // SAFETY: the piece is within the frames, of one channel or two, which begin at a page
            // and stay mapped as long as the mapping, and this mapping is never written.
            let frames = unsafe {
                PeerFrames16::new(base.add(piece.start * channels), piece.len(), channels == 2)
            };
            let (now, later) = rest.split_at_mut(piece.len().min(rest.len()));
            dsp::decode_frames(frames, now, channel);
            rest = later;
        }
        dsp::silence(rest);
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
    // A ring of half the capacity is no longer than this one, whose beginning stands for it.
    let smaller = std::iter::successors(shape.halved(), |shape| shape.halved());
    let lockable = smaller.into_iter().find(|shape| lock(shape.bytes()).is_ok());
    unlock();
    Err(RingNotLocked { bytes: shape.bytes(), lockable, source: errno.into() })
}

#[cfg(test)]
mod tests;
