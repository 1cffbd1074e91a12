//! The control loop: computes from a device's position error how much faster or slower it runs than
//! its nominal rate.
//!
//! A proportional and an integral part, behind two poles that keep the jitter of timestamps out of
//! the sound. The bandwidth is high after a lock and falls later, when only the temperature of two
//! crystals is left to follow.

use std::f64::consts::TAU;

/// Bandwidth just after a lock, Hz.
const WIDEST_HZ: f64 = 0.5;
/// Bandwidth in the long run, Hz.
const NARROWEST_HZ: f64 = 0.01;
/// The bandwidth is this divided by the seconds since the lock.
const NARROWING: f64 = 2.0;
/// Ratio of the poles' frequency to the bandwidth.
const POLES: f64 = 20.0;
/// Largest deviation of a crystal, relative.
pub(crate) const WORST: f64 = 0.005;

/// Steers one direction of one device.
#[derive(Debug, Clone)]
pub(crate) struct Steering {
    frames_per_second: f64,
    seconds: f64,
    poles: [f64; 2],
    /// Long-term deviation of the device, relative.
    drift: f64,
}

impl Steering {
    /// Returns a loop for positions in frames of this rate.
    pub(crate) fn new(frames_per_second: f64) -> Self {
        Self { frames_per_second, seconds: 0.0, poles: [0.0; 2], drift: 0.0 }
    }

    /// Restarts the loop after the device was aligned: its error is zero. The known drift stays.
    pub(crate) fn lock(&mut self) {
        (self.seconds, self.poles) = (0.0, [0.0; 2]);
    }

    /// Takes the frames by which the device is behind after another `seconds`, and returns how much
    /// faster it should run, relative to its nominal rate. Thread: the card's.
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

    /// Returns the long-term deviation of the device, relative.
    pub(crate) fn drift(&self) -> f64 {
        self.drift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_is_followed_without_a_remaining_error() {
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
            assert!(
                (steering.drift() - drift).abs() < 1e-7,
                "{} instead of {drift}",
                steering.drift()
            );
        }
    }
}
