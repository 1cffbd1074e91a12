//! The buffers of a plan, as a driver fills and reads them. Thread: cycle.

use device::{Capture, Playback};
use rt::stream::Gains;
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
    /// The device's volume in this cycle; `None`: it is applied later.
    pub(super) gains: Option<&'a CycleGains>,
}

/// The gain of a cycle's frames: a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GainRamp {
    from: f32,
    to: f32,
}

impl GainRamp {
    /// Samples keep every bit.
    const UNITY: Self = Self { from: 1.0, to: 1.0 };

    /// Returns the gain of the cycle after this one: it moves to `wanted` by `most` at most.
    fn next(self, wanted: f32, most: f32) -> Self {
        let from = self.to;
        let is_near = (wanted - from).abs() <= most;
        Self { from, to: if is_near { wanted } else { from + most.copysign(wanted - from) } }
    }

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

/// The gains of the device's channels from cycle to cycle, which follow what is wanted.
#[derive(Debug, Clone, Copy)]
pub struct CycleGains([GainRamp; Gains::CHANNELS]);

impl CycleGains {
    /// Goes on to the coming cycle, for the first channels: each gain moves to what is wanted of it
    /// by no more than the whole range from 0 to 1 in `fade_frames`. Thread: cycle.
    pub(super) fn advance(
        &mut self,
        channels: usize,
        wanted: impl Fn(usize) -> f32,
        quantum: u32,
        fade_frames: u32,
    ) {
        let most = quantum as f32 / fade_frames.max(1) as f32;
        for (channel, ramp) in self.0.iter_mut().enumerate().take(channels) {
            *ramp = ramp.next(wanted(channel), most);
        }
    }

    /// Channels beyond those that can have a gain of their own have that of the last.
    fn ramp(&self, channel: u32) -> GainRamp {
        self.0[(channel as usize).min(Gains::CHANNELS - 1)]
    }
}

impl Default for CycleGains {
    fn default() -> Self {
        Self([GainRamp::UNITY; Gains::CHANNELS])
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
        if let Some(gains) = self.gains {
            gains.ramp(channel).apply(samples);
        }
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
    fn the_gain_of_a_channel_moves_from_cycle_to_cycle_without_a_step() {
        const QUANTUM: usize = 64;
        let (mut gains, mut last) = (CycleGains::default(), 1.0);
        let mut cycle = |wanted: f32| {
            let mut samples = [1.0_f32; QUANTUM];
            let of = |channel| if channel == 1 { wanted } else { 1.0 };
            gains.advance(2, of, QUANTUM as u32, 240);
            gains.ramp(1).apply(&mut samples);
            for sample in samples {
                assert!((sample - last).abs() <= 1.01 / 240.0, "from {last} to {sample}");
                last = sample;
            }
            assert_eq!([0, 2, 99].map(|other| gains.ramp(other)), [GainRamp::UNITY; 3]);
            last
        };
        assert_eq!(cycle(1.0), 1.0, "every bit");
        assert!(cycle(0.25) > 0.7, "not at once");
        assert_eq!([0.25; 3].map(&mut cycle)[2], 0.25);
        assert_eq!([0.0; 2].map(&mut cycle)[1], 0.0);
        assert_eq!([2.0; 8].map(&mut cycle)[7], 2.0);
    }
}
