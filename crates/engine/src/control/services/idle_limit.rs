//! How deeply the CPUs may sleep between cycles: the longer the quantum, the deeper.

use sys::wake_latency::WakeLatencyLimit;

/// A wake-up from an idle state may take this part of a quantum: deep sleep is forbidden where it
/// would cost cycles, and saves power where it does not.
const QUANTUM_DIVISOR: u64 = 32;

/// The longest wake-up latency that cycles of `quantum` frames tolerate, µs.
fn bearable_us(quantum: u32, sample_rate_hz: u32) -> u32 {
    let quantum_us = u64::from(quantum) * 1_000_000 / u64::from(sample_rate_hz.max(1));
    u32::try_from(quantum_us / QUANTUM_DIVISOR).unwrap_or(u32::MAX)
}

/// The limit that holds now.
#[derive(Debug, Default)]
pub(in super::super) struct IdleLimit {
    asked_us: Option<u32>,
    /// `None` if no limit was requested or the kernel refuses it: then the machine's own rule
    /// holds.
    _held: Option<WakeLatencyLimit>,
}

impl IdleLimit {
    /// Limits how long CPUs take to wake while real-time clients run cycles of this quantum and
    /// sample rate. `None`: there are none, and CPUs sleep as deeply as the machine's own rule
    /// lets them.
    pub(in super::super) fn set(&mut self, cycles: Option<(u32, u32)>) {
        let wanted_us =
            cycles.map(|(quantum, sample_rate_hz)| bearable_us(quantum, sample_rate_hz));
        if wanted_us != self.asked_us {
            // The new one is held before the old one goes.
            let held = wanted_us.and_then(WakeLatencyLimit::hold);
            *self = Self { asked_us: wanted_us, _held: held };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bearable_us;

    #[test]
    fn deep_sleep_is_forbidden_only_for_short_quanta() {
        assert_eq!(
            [64, 256, 1024, 8192].map(|quantum| bearable_us(quantum, 48_000)),
            [41, 166, 666, 5333]
        );
        assert_eq!(bearable_us(16, 192_000), 2);
    }
}
