//! How deep the CPUs may sleep between cycles: as deep as the quantum bears.

use sys::wake_latency::WakeLatencyLimit;

use super::Control;

/// A wake-up from an idle state may take this part of a quantum: deep sleep is forbidden where it would cost cycles,
/// and saves power where it does not.
const QUANTUM_DIVISOR: u64 = 32;

/// The longest wake-up that cycles of `quantum` frames bear, µs.
fn bearable_us(quantum: u32, sample_rate_hz: u32) -> u32 {
    let quantum_us = u64::from(quantum) * 1_000_000 / u64::from(sample_rate_hz.max(1));
    u32::try_from(quantum_us / QUANTUM_DIVISOR).unwrap_or(u32::MAX)
}

/// The limit that holds now.
#[derive(Debug, Default)]
pub(super) struct IdleLimit {
    asked_us: Option<u32>,
    /// `None` if nothing was asked for, or the kernel does not let us: the machine's own rule holds then.
    _held: Option<WakeLatencyLimit>,
}

impl Control {
    /// Limits how long CPUs take to wake while real-time clients run, and no longer. To be called when it is known who
    /// runs.
    pub(super) fn limit_idle(&mut self, anybody_runs: bool) {
        let real_time =
            self.parts.config.realtime_priority.is_some() && !self.parts.driver.when_done && !self.freewheels;
        let wanted =
            (real_time && anybody_runs).then(|| bearable_us(self.quantum, self.parts.driver.sample_rate_hz));
        if wanted != self.idle.asked_us {
            // The new one is held before the old one goes.
            self.idle = IdleLimit { asked_us: wanted, _held: wanted.and_then(WakeLatencyLimit::hold) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bearable_us;

    #[test]
    fn short_quanta_forbid_deep_sleep_and_long_ones_allow_it() {
        assert_eq!([64, 256, 1024, 8192].map(|quantum| bearable_us(quantum, 48_000)), [41, 166, 666, 5333]);
        assert_eq!(bearable_us(16, 192_000), 2);
    }
}
