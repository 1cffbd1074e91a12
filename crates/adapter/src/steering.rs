//! The delay-locked loop: how much faster or slower than it says a device runs, from how far it is off its place.
//!
//! A proportional and an integral part, behind two poles that keep the jitter of dates out of the sound. The loop is
//! quick at first and slow later, when all that is left to follow is the temperature of two crystals.

use std::f64::consts::TAU;

/// Of the loop when it has just been locked, Hz.
const WIDEST_HZ: f64 = 0.5;
/// Of the loop in the long run, Hz.
const NARROWEST_HZ: f64 = 0.01;
/// The bandwidth is this over the seconds since the lock.
const NARROWING: f64 = 2.0;
/// The poles lie so much higher than the loop.
const POLES: f64 = 20.0;
/// No crystal is further off than this.
pub(crate) const WORST: f64 = 0.005;

/// Steers one direction of one device.
#[derive(Debug, Clone)]
pub(crate) struct Steering {
    frames_per_second: f64,
    seconds: f64,
    poles: [f64; 2],
    /// What the device is off in the long run, relative.
    drift: f64,
}

impl Steering {
    /// A loop for positions in frames of this rate.
    pub(crate) fn new(frames_per_second: f64) -> Self {
        Self { frames_per_second, seconds: 0.0, poles: [0.0; 2], drift: 0.0 }
    }

    /// The device has been put to its place: it is off by nothing. What is known of its drift stays.
    pub(crate) fn lock(&mut self) {
        (self.seconds, self.poles) = (0.0, [0.0; 2]);
    }

    /// Takes how many frames the device is behind its place after another `seconds`; by how much it is to run faster,
    /// relative to what it says. Thread: the card's.
    pub(crate) fn update(&mut self, behind_frames: f64, seconds: f64) -> f64 {
        self.seconds += seconds;
        let omega = TAU * (NARROWING / self.seconds).clamp(NARROWEST_HZ, WIDEST_HZ);
        let pole = 1.0 - (-POLES * omega * seconds).exp();
        let [first, second] = &mut self.poles;
        *first += pole * (behind_frames - *first);
        *second += pole * (*first - *second);
        let off_seconds = *second / self.frames_per_second;
        self.drift = (self.drift + omega * omega * seconds * off_seconds).clamp(-WORST, WORST);
        (self.drift + 1.5 * omega * off_seconds).clamp(-WORST, WORST)
    }

    /// What the device is off in the long run, relative.
    pub(crate) fn drift(&self) -> f64 {
        self.drift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_found_and_followed_without_a_rest() {
        for drift in [-200e-6, 3e-6, 200e-6] {
            let (mut steering, mut behind, mut worst) = (Steering::new(48_000.0), 0.3, 0.0_f64);
            for cycle in 0..40_000 {
                let faster = steering.update(behind, 256.0 / 48_000.0);
                behind += 256.0 * (drift - faster);
                if cycle > 20_000 {
                    worst = worst.max(behind.abs());
                }
            }
            assert!(worst < 0.01, "{drift}: {worst} frames");
            assert!((steering.drift() - drift).abs() < 1e-7, "{} instead of {drift}", steering.drift());
        }
    }
}
