//! Conversion between frames and nanoseconds at a nominal rate, rounded down. Thread: any.

const NS_PER_SECOND: u128 = 1_000_000_000;

/// Returns how long `frames` last, ns. A rate of 0 counts as 1 Hz.
#[must_use]
pub fn duration_ns(frames: u64, sample_rate_hz: u32) -> u64 {
    let ns = u128::from(frames) * NS_PER_SECOND / u128::from(sample_rate_hz.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// Returns how many frames pass in this time.
#[must_use]
pub fn frames_in(duration_ns: u64, sample_rate_hz: u32) -> u64 {
    let frames = u128::from(duration_ns) * u128::from(sample_rate_hz) / NS_PER_SECOND;
    u64::try_from(frames).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn frames_and_nanoseconds_are_rounded_down_and_never_overflow() {
        assert_eq!(duration_ns(64, 48_000), 1_333_333);
        assert_eq!((frames_in(1_333_333, 48_000), frames_in(1_333_334, 48_000)), (63, 64));
        assert_eq!((duration_ns(u64::MAX, 1), frames_in(u64::MAX, u32::MAX)), (u64::MAX, u64::MAX));
        assert_eq!((duration_ns(3, 0), frames_in(3, 0)), (3_000_000_000, 0));
    }
}
