//! Rings that are populated piece by piece.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rt::shm::RingShape;

use super::{Mapping, SegmentError};

/// How much is populated at once, bytes of all channels: about a tenth of a millisecond.
const PIECE_BYTES: usize = 128 << 10;
/// How much at least, frames, so that a stream of many channels plays meanwhile.
const LEAST_FRAMES: usize = 4096;

/// The position up to which a ring is populated; `u64::MAX`: all of it is.
#[derive(Debug, Clone)]
pub(super) struct PopulatedUntil(Arc<AtomicU64>);

/// What is left to be populated of the ring of a stream, which [plays](super::PeerStream)
/// meanwhile as far as it is.
///
/// Belongs to the thread that populates, which may fault.
#[derive(Debug)]
pub struct RingPopulation {
    mapping: Arc<Mapping>,
    shape: RingShape,
    /// The position with which the next piece begins.
    next: u64,
    /// Frames that are left.
    left: usize,
    until: PopulatedUntil,
}

impl PopulatedUntil {
    /// Returns that of a ring which is populated.
    pub(super) fn whole() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// Returns the position. Thread: cycle.
    pub(super) fn position(&self) -> u64 {
        // Pairs with `set`: what the position says was done before.
        self.0.load(Ordering::Acquire)
    }

    fn set(&self, position: u64) {
        self.0.store(position, Ordering::Release);
    }
}

impl RingPopulation {
    /// From now on, nothing of a ring counts as populated, whose stream begins at `position`.
    pub(super) fn new(
        mapping: &Arc<Mapping>,
        shape: RingShape,
        position: u64,
        until: &PopulatedUntil,
    ) -> Self {
        until.set(position);
        let (mapping, until) = (Arc::clone(mapping), until.clone());
        Self { mapping, shape, next: position, left: shape.capacity_frames() as usize, until }
    }

    /// Populates the next piece: no access to it faults any more. Returns whether it was the last.
    ///
    /// # Errors
    /// [`SegmentError::Populate`]: there is no memory.
    pub fn step(&mut self) -> Result<bool, SegmentError> {
        let channels = self.shape.channels();
        let piece = PIECE_BYTES / size_of::<f32>() / channels as usize;
        let frames = piece.max(LEAST_FRAMES).min(self.left);
        for offset in (0..channels).filter_map(|channel| self.shape.channel_offset(channel)) {
            for piece in self.shape.pieces(self.next, frames) {
                let bytes = [piece.start, piece.end].map(|frame| offset + frame * size_of::<f32>());
                self.mapping.populate(bytes[0]..bytes[1])?;
            }
        }
        self.next += frames as u64;
        self.left -= frames;
        let is_whole = self.left == 0;
        self.until.set(if is_whole { u64::MAX } else { self.next });
        Ok(is_whole)
    }
}
