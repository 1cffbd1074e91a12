//! Frames that were captured, a block at a time, without the echo of what was played: pure.

use effects::Canceller;

use super::frames::Frames;
use super::reference::Reference;

/// Collects frames until they are a block, and removes the echo from that.
pub(super) struct Blocks {
    pub(super) reference: Reference,
    canceller: Canceller,
    /// Frames that are fewer than a block, by position of the sink.
    waiting: Frames,
    /// A block of each channel: captured, and played.
    captured: Vec<Vec<f32>>,
    played: Vec<Vec<f32>>,
}

impl Blocks {
    /// Allocates room for a block of this many channels.
    pub(super) fn new(reference: Reference, canceller: Canceller, channels: usize) -> Self {
        let room = || vec![vec![0.0; canceller.block()]; channels];
        let (captured, played) = (room(), room());
        Self { reference, canceller, waiting: Frames::new(channels), captured, played }
    }

    /// Returns how many frames are processed at once.
    pub(super) fn block(&self) -> usize {
        self.canceller.block()
    }

    /// Returns how many frames wait until they are a block.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns how many channels it has.
    pub(super) fn channels(&self) -> usize {
        self.captured.len()
    }

    /// Returns how many frames what waits lacks of a block.
    pub(super) fn missing(&self) -> usize {
        match self.waiting.len() {
            0 => 0,
            waiting => self.block().saturating_sub(waiting),
        }
    }

    /// Forgets what waits.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
    }

    /// Takes frames that were captured, the first of which is heard at the sink's position `at`.
    /// Has those played that are a block.
    pub(super) fn write(&mut self, at: u64, planes: &[&[f32]], mut play: impl FnMut(&[&[f32]])) {
        self.waiting.push(at, planes);
        let block = self.block();
        while self.waiting.len() >= block {
            for (channel, captured) in self.captured.iter_mut().enumerate() {
                self.waiting.copy(channel, captured);
            }
            self.reference.take(self.waiting.first(), &mut self.played);
            let captured: Vec<&[f32]> = self.captured.iter().map(|plane| &**plane).collect();
            let played: Vec<&[f32]> = self.played.iter().map(|plane| &**plane).collect();
            let left = self.canceller.cancel(&captured, &played).chunks_exact(block);
            play(&left.collect::<Vec<_>>());
            self.waiting.skip(block as u64);
        }
    }
}

#[cfg(test)]
mod tests;
