//! Frames that are kept: those of the graph, for as long as they can be rendered again, since a
//! cycle cannot be run twice; and those that leave a device, for its monitors.

use crate::planes::Planes;

/// The last frames of a device or of what it plays, by device frame.
#[derive(Debug)]
pub struct FrameHistory {
    ring: Vec<Vec<f32>>,
    /// The device frames that are kept.
    begin: u64,
    end: u64,
}

impl FrameHistory {
    /// Returns an empty one that keeps up to `frames` frames. Not for a device's thread.
    #[must_use]
    pub fn new(channels: usize, frames: usize) -> Self {
        let mut plane = vec![1.0; frames.max(1)];
        plane.fill(0.0);
        Self { ring: vec![plane; channels], begin: 0, end: 0 }
    }

    /// Returns the device frame after the last one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Keeps frames from device frame `first` on, in place of those that were kept there. A gap
    /// before them is not kept. Thread: cycle.
    pub fn push(&mut self, first: u64, planes: &Planes) {
        if first < self.begin || self.end < first {
            self.begin = first;
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

    /// Keeps silence up to device frame `end`. Thread: cycle.
    pub fn be_silent_until(&mut self, end: u64) {
        let kept = self.ring.first().map_or(0, |ring| ring.len() as u64);
        let first = self.end.max(end.saturating_sub(kept));
        for ring in &mut self.ring {
            let length = ring.len() as u64;
            (first..end).for_each(|frame| ring[(frame % length) as usize] = 0.0);
        }
        self.end = self.end.max(end);
        self.begin = self.begin.max(self.end.saturating_sub(kept));
    }

    /// Returns the first device frame that is kept. Thread: cycle.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Forgets everything: what is kept begins at device frame `first`. Thread: cycle.
    pub fn restart(&mut self, first: u64) {
        (self.begin, self.end) = (first, first);
    }

    /// Adds what is kept from device frame `first` on to `planes`. Thread: cycle.
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
