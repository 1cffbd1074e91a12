//! Buffer attributes of record streams: what a program asks for, and what it is granted.
//! PulseAudio's rules.

use pulseaudio::protocol::MAX_MEMBLOCKQ_LENGTH;
use pulseaudio::protocol::stream::BufferAttr;

use crate::playback::{Latency, Pace};

/// What a program leaves to the server.
const DEFAULT: u32 = u32::MAX;
const DEFAULT_FRAGMENT_US: u64 = 2_000_000;
/// How long a device keeps what it has recorded, at least and at most.
const SOURCE_LATENCY_US: std::ops::RangeInclusive<u64> = 5_000..=2_000_000;

/// What a program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordRequested {
    /// Bytes; all ones where the server may choose. Only the most that is kept and the length of a
    /// fragment count.
    pub buffer: BufferAttr,
    /// What the length of a fragment is about.
    pub latency: Latency,
}

/// What it is granted. Lengths are in bytes, whole frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordAttributes {
    /// The most that is kept for the program.
    pub max_length: u32,
    /// The most that is sent at once.
    pub fragment: u32,
    /// How long the device keeps frames, as the program is told, µs; 0: it asked for nothing.
    pub source_latency_us: u64,
}

impl RecordRequested {
    /// Returns what is granted.
    pub fn grant(self, pace: Pace) -> RecordAttributes {
        let Self { buffer, latency } = self;
        let frame = pace.frame_bytes;
        let most = u32::try_from(MAX_MEMBLOCKQ_LENGTH).unwrap_or(u32::MAX);
        let max_length = pace.up(buffer.max_length.clamp(1, most));
        let mut fragment = match buffer.fragment_size {
            DEFAULT => pace.bytes(DEFAULT_FRAGMENT_US),
            fragment => fragment.max(frame),
        };
        let source_us = match latency {
            Latency::Early | Latency::Total => {
                // Programs round the shortest time down to whole frames.
                let least = pace.bytes(*SOURCE_LATENCY_US.start()).saturating_sub(frame);
                let most = pace.bytes(*SOURCE_LATENCY_US.end());
                fragment = fragment.max(least.max(frame));
                let kept = fragment.min(most);
                if latency == Latency::Total {
                    fragment = kept;
                }
                pace.us(kept.into())
            }
            Latency::Queue => 0,
        };
        let fragment = pace.down(fragment).max(frame).min(max_length);
        RecordAttributes { max_length, fragment, source_latency_us: source_us }
    }
}

impl RecordAttributes {
    /// Returns how often the device is to pass frames on, µs.
    pub fn interval_us(self, pace: Pace) -> u64 {
        let us = match self.source_latency_us {
            0 => pace.us(self.fragment.into()),
            us => us,
        };
        us.clamp(*SOURCE_LATENCY_US.start(), *SOURCE_LATENCY_US.end())
    }

    /// Returns them as the protocol has them.
    pub fn to_buffer(self) -> BufferAttr {
        BufferAttr {
            max_length: self.max_length,
            fragment_size: self.fragment,
            target_length: 0,
            pre_buffering: 0,
            minimum_request_length: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 16-bit stereo at 44.1 kHz, as `parec` has it.
    const PACE: Pace = Pace { frame_bytes: 4, rate_hz: 44_100 };

    fn asked(fragment_size: u32, latency: Latency) -> RecordRequested {
        RecordRequested { buffer: BufferAttr { fragment_size, ..BufferAttr::default() }, latency }
    }

    /// What PulseAudio 16.1 granted on the monitor of its null sink: `parec --latency-msec`.
    #[test]
    fn fragments_are_those_that_pulseaudio_grants() {
        for (ms, fragment) in
            [(5, 880), (10, 1764), (20, 3528), (100, 17_640), (500, 88_200), (3000, 352_800)]
        {
            let bytes = ms * 44_100 / 1000 * 4;
            let granted = asked(bytes, Latency::Total).grant(PACE);
            assert_eq!((granted.max_length, granted.fragment), (4 << 20, fragment), "{ms} ms");
            assert_eq!(granted.source_latency_us, PACE.us(fragment.into()));
        }
        let granted = asked(DEFAULT, Latency::Queue).grant(PACE);
        assert_eq!((granted.max_length, granted.fragment), (4 << 20, 352_800));
        assert_eq!((granted.source_latency_us, granted.interval_us(PACE)), (0, 2_000_000));
    }

    #[test]
    fn early_requests_keep_the_fragment_and_limit_the_device() {
        let granted = asked(PACE.bytes(5_000_000), Latency::Early).grant(PACE);
        assert_eq!((granted.fragment, granted.source_latency_us), (882_000, 2_000_000));
    }

    #[test]
    fn a_meter_of_25_frames_a_second_gets_each_by_itself() {
        let pace = Pace { frame_bytes: 4, rate_hz: 25 };
        let granted = asked(4, Latency::Total).grant(pace);
        assert_eq!((granted.fragment, granted.interval_us(pace)), (4, 40_000));
    }

    proptest! {
        #[test]
        fn what_is_granted_makes_sense(
            frame_bytes in 1..129_u32,
            rate_hz in 1..768_001_u32,
            max_length in prop_oneof![any::<u32>(), 0..100_000_u32],
            fragment_size in prop_oneof![any::<u32>(), 0..100_000_u32],
            latency in prop_oneof![
                Just(Latency::Queue), Just(Latency::Total), Just(Latency::Early)
            ],
        ) {
            let pace = Pace { frame_bytes, rate_hz };
            let buffer = BufferAttr { max_length, fragment_size, ..BufferAttr::default() };
            let granted = RecordRequested { buffer, latency }.grant(pace);
            let RecordAttributes { max_length, fragment, .. } = granted;
            prop_assert_eq!((max_length % frame_bytes, fragment % frame_bytes), (0, 0));
            prop_assert!(0 < fragment && fragment <= max_length);
            prop_assert!(max_length <= (4 << 20) + frame_bytes);
            prop_assert!(SOURCE_LATENCY_US.contains(&granted.interval_us(pace)));
        }
    }
}
