//! What is in the ring and not heard yet, as the program's bytes: to be written again there or on
//! another device.

use std::collections::VecDeque;

use convert::{Encoder, PlaybackConverter};

use super::Playback;
use crate::output::Output;

/// The part of what is kept by which the room for it grows, at least.
const GROWTH_PART: usize = 8;
/// Frames that are read back at once.
const PIECE_FRAMES: usize = 1024;

/// Where these bytes are.
#[derive(Debug)]
pub(super) enum SentBytes {
    /// In the ring, from this position on, as frames: its program's samples, only decoded.
    InRing { from: u64 },
    /// Here: what the ring has is converted, and cannot be converted back.
    Kept(VecDeque<u8>),
}

impl SentBytes {
    /// None is sent yet; the first frame will be at this position.
    pub fn new(converter: &PlaybackConverter, from: u64) -> Self {
        if converter.only_decodes() { Self::InRing { from } } else { Self::Kept(VecDeque::new()) }
    }

    /// Forgets all; the next frame is written at this position.
    pub fn clear(&mut self, position: u64) {
        match self {
            Self::InRing { from } => *from = position,
            Self::Kept(bytes) => bytes.clear(),
        }
    }

    /// Notes bytes that go to the converter. The queue goes round in all the room that it has, so
    /// this grows by parts: doubled, much of it would be memory that is used for nothing.
    pub fn push(&mut self, piece: &[u8]) {
        let Self::Kept(bytes) = self else { return };
        let room = bytes.capacity() - bytes.len();
        if piece.len() > room {
            bytes.reserve_exact(piece.len().max(bytes.len() / GROWTH_PART));
        }
        bytes.extend(piece);
    }

    /// Forgets those before the last `unheard`.
    pub fn forget_heard(&mut self, unheard: usize) {
        if let Self::Kept(bytes) = self {
            bytes.drain(..bytes.len().saturating_sub(unheard));
        }
    }
}

impl<O: Output> Playback<O> {
    /// Forgets the bytes that have been heard.
    pub(super) fn forget_heard(&mut self, now_ns: u64) {
        let unheard = self.unheard_in_ring(now_ns);
        self.sent.forget_heard(unheard);
    }

    /// Returns all bytes that are not heard yet, up to the end of what was written. They are to be
    /// written again: after a [splice](Self::splice), or on another device.
    pub(super) fn unheard(&mut self, now_ns: u64) -> VecDeque<u8> {
        let count = self.readable_in_ring(now_ns);
        let mut bytes = match &mut self.sent {
            SentBytes::InRing { .. } => self.bytes_in_ring(count),
            SentBytes::Kept(bytes) => bytes.split_off(bytes.len() - count),
        };
        bytes.append(&mut self.backlog);
        bytes
    }

    fn unheard_in_ring(&mut self, now_ns: u64) -> usize {
        let unheard = usize::try_from(self.queued(now_ns)).unwrap_or(usize::MAX);
        unheard.saturating_sub(self.backlog.len())
    }

    /// Returns how many of the unheard bytes in the ring can be read again, with the beginning of a
    /// frame that the converter has.
    fn readable_in_ring(&mut self, now_ns: u64) -> usize {
        let unheard = self.unheard_in_ring(now_ns);
        match &self.sent {
            SentBytes::InRing { from } => {
                let there = self.output.written().saturating_sub(*from);
                // A frame that was never completed counts as unheard, and is not in the ring.
                let there = there.min(self.output.capacity_frames());
                let there = usize::try_from(there).unwrap_or(usize::MAX);
                let partial = self.converter.partial().len();
                let frame_bytes = self.pace().frame_bytes as usize;
                there.min(unheard.saturating_sub(partial) / frame_bytes) * frame_bytes + partial
            }
            SentBytes::Kept(bytes) => unheard.min(bytes.len()),
        }
    }

    /// Returns the last `count` bytes of what was converted: whole frames, and the beginning of
    /// one.
    fn bytes_in_ring(&self, count: usize) -> VecDeque<u8> {
        let partial = self.converter.partial();
        let channels = self.program.map.channels();
        let mut encoder = Encoder::new(self.program.format, channels);
        let frames = (count - partial.len()) / encoder.frame_bytes();
        let begin = self.output.written() - frames as u64;
        let mut bytes = Vec::with_capacity(count);
        let mut planes = vec![[0.0; PIECE_FRAMES]; channels];
        for first in (0..frames).step_by(PIECE_FRAMES) {
            let piece = ..PIECE_FRAMES.min(frames - first);
            for (channel, plane) in (0..).zip(&mut planes) {
                self.output.read(channel, begin + first as u64, &mut plane[piece]);
            }
            let planes: Vec<&[f32]> = planes.iter().map(|plane| &plane[piece]).collect();
            encoder.push(&planes, |encoded| bytes.extend_from_slice(encoded));
        }
        bytes.extend_from_slice(partial);
        bytes.into()
    }
}
