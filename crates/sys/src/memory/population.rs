//! Rings that are populated piece by piece.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rt::shm::RingShape;

use super::Mapping;

/// How much is populated at once, bytes of all channels: it takes about a tenth of a millisecond.
const PIECE_BYTES: usize = 128 << 10;
/// The part of a second that is populated before the stream begins, and at once at least: what a
/// device renders after a change. With many channels it is more than [`PIECE_BYTES`], up to the
/// whole ring.
const LEAST_PART: u32 = 10;

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
    /// Frames of the next piece.
    piece: usize,
    /// Frames of all pieces but the first.
    usual_piece: usize,
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
    /// Returns that of a ring, nothing of which counts as populated from now on. It is played from
    /// `position` on, at a rate in Hz.
    pub(super) fn new(
        (mapping, shape): (&Arc<Mapping>, RingShape),
        position: u64,
        rate_hz: u32,
        until: &PopulatedUntil,
    ) -> Self {
        until.set(position);
        let by_size = PIECE_BYTES / shape.frame_bytes();
        let least = (rate_hz / LEAST_PART) as usize;
        Self {
            mapping: Arc::clone(mapping),
            shape,
            piece: least,
            usual_piece: by_size.max(least),
            next: position,
            left: shape.capacity_frames() as usize,
            until: until.clone(),
        }
    }

    /// Populates the next piece: no access to it faults any more. Returns whether it was the last.
    ///
    /// # Errors
    /// `EINVAL` before Linux 5.14; `ENOMEM`.
    pub fn step(&mut self) -> io::Result<bool> {
        let frames = self.piece.min(self.left);
        let ranges = self.shape.byte_ranges(self.next, frames);
        ranges
            .filter(|bytes| !bytes.is_empty())
            .try_for_each(|bytes| self.mapping.advise_to_populate(bytes))?;
        self.piece = self.usual_piece;
        self.next += frames as u64;
        self.left -= frames;
        let is_whole = self.left == 0;
        self.until.set(if is_whole { u64::MAX } else { self.next });
        Ok(is_whole)
    }

    /// Returns how many frames are populated.
    #[must_use]
    pub fn populated_frames(&self) -> u64 {
        u64::from(self.shape.capacity_frames()) - self.left as u64
    }
}
