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
    /// The device's volume in this cycle.
    pub(super) gain: GainRamp,
}

/// The gain of a cycle's frames: a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GainRamp {
    from: f32,
    to: f32,
}

impl GainRamp {
    /// Samples keep every bit.
    pub(super) const UNITY: Self = Self { from: 1.0, to: 1.0 };

    fn apply(self, samples: &mut [f32]) {
        if self == Self::UNITY {
            return;
        }
        let step = (self.to - self.from) / samples.len() as f32;
        for (index, sample) in (1_u16..).zip(samples) {
            *sample *= self.from + step * f32::from(index);
        }
    }
}

/// The gain of the device's playback from cycle to cycle, which follows what is wanted.
#[derive(Debug, Clone, Copy)]
pub struct CycleGain(f32);

impl CycleGain {
    /// Returns the gain of the coming cycle: it moves to `wanted` by no more than the whole range
    /// from 0 to 1 in `fade_frames`. Thread: cycle.
    pub(super) fn next(&mut self, wanted: f32, quantum: u32, fade_frames: u32) -> GainRamp {
        let most = quantum as f32 / fade_frames.max(1) as f32;
        let from = self.0;
        let is_near = (wanted - from).abs() <= most;
        self.0 = if is_near { wanted } else { from + most.copysign(wanted - from) };
        GainRamp { from, to: self.0 }
    }
}

impl Default for CycleGain {
    fn default() -> Self {
        Self(1.0)
    }
}

/// Mixes what sources have written in a cycle; those that have not finished it are silent. Thread:
/// cycle.
pub(super) fn mix(sources: &[PlaybackSource], cycle: u32, samples: &mut [f32]) {
    let frames = samples.len();
    let mut next = sources.iter().filter_map(|source| source.samples(cycle, frames));
    let Some(first) = next.next() else { return dsp::silence(samples) };
    dsp::copy(first, samples);
    next.for_each(|other| dsp::add(other, samples));
    dsp::scrub(samples);
}

impl Playback for PlaybackMix<'_> {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        mix(self.sources(channel), self.cycle, samples);
        self.gain.apply(samples);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycles_gain_moves_to_what_is_wanted_without_a_step() {
        const QUANTUM: usize = 64;
        let (mut gain, mut last) = (CycleGain::default(), 1.0);
        let mut cycle = |wanted: f32| {
            let mut samples = [1.0_f32; QUANTUM];
            gain.next(wanted, QUANTUM as u32, 240).apply(&mut samples);
            for sample in samples {
                assert!((sample - last).abs() <= 1.01 / 240.0, "from {last} to {sample}");
                last = sample;
            }
            last
        };
        assert_eq!(cycle(1.0), 1.0, "every bit");
        assert!(cycle(0.25) > 0.7, "not at once");
        assert_eq!([0.25; 3].map(&mut cycle)[2], 0.25);
        assert_eq!([0.0; 2].map(&mut cycle)[1], 0.0);
        assert_eq!([2.0; 8].map(&mut cycle)[7], 2.0);
    }
}
