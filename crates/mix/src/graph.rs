//! What the graph has played, kept for as long as it can be rendered again: a cycle cannot be run
//! twice.

use crate::planes::Planes;

/// The graph's playback of the last cycles, by device frame.
#[derive(Debug)]
pub struct GraphHistory {
    ring: Vec<Vec<f32>>,
    /// The device frames that are kept.
    begin: u64,
    end: u64,
}

impl GraphHistory {
    /// Returns an empty one that keeps up to `frames` frames. Not for a device's thread.
    #[must_use]
    pub fn new(channels: usize, frames: usize) -> Self {
        let mut plane = vec![1.0; frames.max(1)];
        plane.fill(0.0);
        Self { ring: vec![plane; channels], begin: 0, end: 0 }
    }

    /// Returns the device frame after the last one that the graph has played.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Keeps what the graph plays from device frame `first` on. A gap before it is silent. Thread:
    /// cycle.
    pub fn push(&mut self, first: u64, planes: &Planes) {
        if first != self.end {
            (self.begin, self.end) = (first, first);
        }
        for (channel, ring) in self.ring.iter_mut().enumerate() {
            let length = ring.len() as u64;
            for (frame, sample) in (first..).zip(planes.channel(channel)) {
                // Below the length of the ring.
                ring[(frame % length) as usize] = *sample;
            }
        }
        self.end = first + planes.frames() as u64;
        let kept = self.ring.first().map_or(0, |ring| ring.len() as u64);
        self.begin = self.begin.max(self.end.saturating_sub(kept));
    }

    /// Adds what the graph played from device frame `first` on to `planes`. Thread: cycle.
    pub fn render(&self, first: u64, planes: &mut Planes) {
        let (from, to) = (first.max(self.begin), (first + planes.frames() as u64).min(self.end));
        if from >= to {
            return;
        }
        let offset = usize::try_from(from - first).unwrap_or(0);
        for (channel, ring) in self.ring.iter().enumerate() {
            let length = ring.len() as u64;
            let sums = planes.channel_mut(channel).iter_mut().skip(offset);
            for (frame, sum) in (from..to).zip(sums) {
                *sum += ring[(frame % length) as usize];
            }
        }
    }
}
