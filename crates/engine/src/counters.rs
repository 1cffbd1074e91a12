//! Where a server's counters begin.

/// The variable that makes a server begin this many seconds before its counters wrap, for tests:
/// cycles have 32-bit numbers, and JACK's programs see the low 32 bits of the frame clock.
const NEAR_END: &str = "CONSORT_COUNTERS_NEAR_END";

/// The counters as they were before the first cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// The number of a cycle; 0: there was none.
    pub cycle: u32,
    /// The frame clock.
    pub frames: u64,
}

impl Counters {
    /// Returns the counters of a server with cycles of `quantum` frames.
    pub fn of_environment(quantum: u32, sample_rate_hz: u32) -> Self {
        let seconds = std::env::var(NEAR_END).ok().and_then(|seconds| seconds.parse::<u32>().ok());
        seconds
            .map_or_else(Self::default, |seconds| Self::near_end(seconds, quantum, sample_rate_hz))
    }

    fn near_end(seconds: u32, quantum: u32, sample_rate_hz: u32) -> Self {
        let frames = u64::from(seconds) * u64::from(sample_rate_hz);
        let cycles = frames / u64::from(quantum.max(1));
        Self {
            cycle: u32::MAX - u32::try_from(cycles).unwrap_or(0),
            frames: (1 << 32) - frames.min(1 << 32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_near_their_ends_wrap_after_these_seconds() {
        let Counters { cycle, frames } = Counters::near_end(2, 64, 48_000);
        assert_eq!((u32::MAX - cycle, (1_u64 << 32) - frames), (1500, 96_000));
    }
}
