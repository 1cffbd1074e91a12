//! The buffers of a plan, as a driver fills and reads them. Thread: cycle.

use device::{Capture, Playback};
use sys::memory::OwnSlab;

use crate::plan::{Plan, PlaybackSource};

/// The capture ports' buffers.
pub(super) struct CaptureBuffers<'a> {
    pub(super) slabs: &'a mut [OwnSlab],
    pub(super) plan: &'a Plan,
    pub(super) frames: usize,
}

impl Capture for CaptureBuffers<'_> {
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]> {
        let slab = self.slabs.get_mut((channel / rt::shm::SLOTS_PER_SLAB) as usize)?;
        slab.samples_mut(channel % rt::shm::SLOTS_PER_SLAB, self.frames)
    }

    fn is_heard(&self, channel: u32) -> bool {
        self.plan.connected.get(channel as usize).copied().unwrap_or_default()
    }
}

/// The mixes of the playback ports in a cycle.
pub(super) struct PlaybackMix<'a> {
    pub(super) plan: &'a Plan,
    pub(super) cycle: u32,
}

impl Playback for PlaybackMix<'_> {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        let (cycle, frames) = (self.cycle, samples.len());
        let mut sources = self.sources(channel).iter();
        let mut next = || sources.find_map(|source| source.samples(cycle, frames));
        let Some(first) = next() else { return dsp::silence(samples) };
        dsp::copy(first, samples);
        while let Some(other) = next() {
            dsp::add(other, samples);
        }
        dsp::scrub(samples);
    }

    fn is_played_into(&self, channel: u32) -> bool {
        !self.sources(channel).is_empty()
    }
}

impl PlaybackMix<'_> {
    fn sources(&self, channel: u32) -> &[PlaybackSource] {
        self.plan.playback.get(channel as usize).map_or(&[], Vec::as_slice)
    }
}
