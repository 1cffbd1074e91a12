//! The gain of what is recorded, which moves to another one without a step.

use client::stream::Gains;

/// Gains of a source's channels: 1 until they are set, and then where they are set first.
#[derive(Debug)]
pub(super) struct RampedGains {
    from: Gains,
    to: Gains,
    has_begun: bool,
    /// Frames of the way that have passed.
    passed: u32,
    /// Frames of the whole way.
    ramp_frames: u32,
}

impl RampedGains {
    pub fn new(ramp_frames: u32) -> Self {
        let gains = Gains::default();
        Self { from: gains, to: gains, has_begun: false, passed: ramp_frames, ramp_frames }
    }

    /// Begins to move to other gains.
    pub fn set(&mut self, gains: Gains) {
        if self.to == gains {
            return;
        }
        let mut now = [0.0; convert::MAX_CHANNELS];
        for (channel, gain) in now.iter_mut().enumerate() {
            *gain = self.at(channel, self.passed);
        }
        self.from = Gains::new(now).unwrap_or(self.to);
        // Nothing was scaled before: there is no step to be avoided.
        self.passed = if self.has_begun { 0 } else { self.ramp_frames };
        self.to = gains;
    }

    /// Scales the next frames, a slice for each channel. A gain of 1 keeps every bit.
    pub fn scale(&mut self, planes: &mut [Vec<f32>], frames: usize) {
        for (channel, plane) in planes.iter_mut().enumerate() {
            let is_still = self.passed >= self.ramp_frames;
            if is_still && self.to.of(channel) == 1.0 {
                continue;
            }
            for (frame, sample) in (self.passed..).zip(&mut plane[..frames]) {
                *sample *= self.at(channel, frame.saturating_add(1));
            }
        }
        self.has_begun = true;
        let frames = u32::try_from(frames).unwrap_or(u32::MAX);
        self.passed = self.passed.saturating_add(frames).min(self.ramp_frames);
    }

    fn at(&self, channel: usize, passed: u32) -> f32 {
        let (from, to) = (self.from.of(channel), self.to.of(channel));
        if passed >= self.ramp_frames {
            return to;
        }
        from + (to - from) * passed as f32 / self.ramp_frames as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(of: [f32; 2]) -> Gains {
        let mut all = [0.0; convert::MAX_CHANNELS];
        all[..2].copy_from_slice(&of);
        Gains::new(all).expect("gains")
    }

    #[test]
    fn a_gain_moves_without_a_step_and_one_keeps_every_bit() {
        let mut ramped = RampedGains::new(100);
        ramped.set(gains([1.0, 1.0]));
        let mut planes = vec![vec![0.1; 50], vec![1.0; 50]];
        ramped.scale(&mut planes, 50);
        assert_eq!(planes[0], vec![0.1; 50]);
        ramped.set(gains([1.0, 0.0]));
        let mut last = 1.0;
        for _ in 0..3 {
            let mut planes = vec![vec![0.1; 50], vec![1.0; 50]];
            ramped.scale(&mut planes, 50);
            assert_eq!(planes[0], vec![0.1; 50]);
            for sample in &planes[1] {
                assert!((last - sample).abs() < 0.011, "from {last} to {sample}");
                last = *sample;
            }
        }
        assert_eq!(last, 0.0);
    }

    #[test]
    fn a_gain_that_is_changed_on_its_way_goes_on_from_there() {
        let mut ramped = RampedGains::new(100);
        ramped.set(gains([0.0, 0.0]));
        ramped.scale(&mut vec![vec![1.0; 50]; 2], 50);
        ramped.set(gains([1.0, 1.0]));
        ramped.scale(&mut vec![vec![1.0; 50]; 2], 50);
        ramped.set(gains([0.0, 0.0]));
        let mut planes = vec![vec![1.0; 50]; 2];
        ramped.scale(&mut planes, 50);
        assert!((planes[0][0] - 0.5).abs() < 0.01, "{}", planes[0][0]);
    }
}
