//! Buffer attributes: what a program asks for, and what it is granted. PulseAudio's rules.

use convert::ProgramFormat;
use pulseaudio::protocol::MAX_MEMBLOCKQ_LENGTH;
use pulseaudio::protocol::stream::BufferAttr;

/// What a program leaves to the server.
const DEFAULT: u32 = u32::MAX;
const DEFAULT_TLENGTH_US: u64 = 2_000_000;
const DEFAULT_MINREQ_US: u64 = 20_000;
/// How far ahead of the hardware a device renders, at least and at most.
const SINK_LATENCY_US: std::ops::RangeInclusive<u64> = 5_000..=2_000_000;

/// Less than this until it is heard is short, and the part of it that a device
/// may render at times.
const SHORT_US: u64 = 50_000;
const SHORT_DEPTH: (u128, u128) = (7, 8);

/// What the target length is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Latency {
    /// What is queued before the device.
    Queue,
    /// Everything until it is heard.
    Total,
    /// Everything; and data is requested in pieces of the minimal request, as early as possible.
    Early,
}

/// What a program asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requested {
    /// Bytes; all ones where the server may choose.
    pub buffer: BufferAttr,
    /// What they are about.
    pub latency: Latency,
}

/// What it is granted. Lengths are in bytes, whole frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// The most that is kept for the program.
    pub max_length: u32,
    /// What shall be queued before the device.
    pub target_length: u32,
    /// What is queued before the stream begins; 0: it begins at once.
    pub prebuffer: u32,
    /// The least that is requested at once.
    pub minimum_request: u32,
    /// How far ahead the device may render, µs.
    pub sink_latency_us: u64,
    /// Each minimal request is made as soon as it is missing.
    pub asks_early: bool,
}

/// Bytes and time of a program's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Bytes of a frame.
    pub frame_bytes: u32,
    /// Frames per second.
    pub rate_hz: u32,
}

impl Pace {
    /// Returns that of a program.
    pub fn of(program: &ProgramFormat) -> Self {
        let frame_bytes = program.format.bytes_per_sample() * program.map.channels();
        Self { frame_bytes: frame_bytes as u32, rate_hz: program.rate_hz }
    }

    /// Returns the time of bytes, µs, rounded down.
    pub fn us(self, bytes: u64) -> u64 {
        let frames = u128::from(bytes / u64::from(self.frame_bytes));
        u64::try_from(frames * 1_000_000 / u128::from(self.rate_hz)).unwrap_or(u64::MAX)
    }

    /// Returns the bytes of a time, rounded up to whole frames.
    pub fn bytes(self, us: u64) -> u32 {
        let frames = (u128::from(us) * u128::from(self.rate_hz)).div_ceil(1_000_000);
        u32::try_from(frames * u128::from(self.frame_bytes)).unwrap_or(u32::MAX)
    }

    /// Returns whole frames, rounded down.
    pub fn down(self, bytes: u32) -> u32 {
        bytes - bytes % self.frame_bytes
    }

    /// Returns whole frames, rounded up.
    pub fn up(self, bytes: u32) -> u32 {
        self.down(bytes.saturating_add(self.frame_bytes - 1))
    }
}

impl Requested {
    /// Returns what is granted without regard to memory.
    pub fn grant(self, pace: Pace) -> Attributes {
        let Self { buffer, latency } = self;
        let frame = pace.frame_bytes;
        let most = u32::try_from(MAX_MEMBLOCKQ_LENGTH).unwrap_or(u32::MAX);
        let asked_most = buffer.max_length.clamp(1, most);
        let mut target = match buffer.target_length {
            DEFAULT => pace.bytes(DEFAULT_TLENGTH_US),
            target => target.max(frame),
        };
        target = target.min(asked_most);
        let mut minimum = match buffer.minimum_request_length {
            DEFAULT => pace.down(target / 4).min(pace.bytes(DEFAULT_MINREQ_US)),
            minimum => minimum.min(most / 4),
        };
        minimum = minimum.max(frame);
        target = target.max(minimum.saturating_add(frame));

        let (mut target_us, mut minimum_us) = (pace.us(target.into()), pace.us(minimum.into()));
        let beyond_requests_us = target_us.saturating_sub(2 * minimum_us);
        let sink_us = match latency {
            Latency::Early => minimum_us,
            Latency::Total => beyond_requests_us / 2,
            Latency::Queue => beyond_requests_us,
        };
        let sink_us = sink_us.clamp(*SINK_LATENCY_US.start(), *SINK_LATENCY_US.end());
        match latency {
            Latency::Early => minimum_us = sink_us,
            Latency::Total => target_us = target_us.checked_sub(sink_us).unwrap_or(target_us),
            Latency::Queue => {}
        }
        target_us = target_us.max(sink_us + 2 * minimum_us);
        // Only what has changed is rounded by its time.
        if target_us != pace.us(target.into()) {
            target = pace.bytes(target_us);
        }
        if minimum_us != pace.us(minimum.into()) {
            minimum = pace.bytes(minimum_us);
        }
        // What the device renders and one request have room, whatever the program allows.
        let least = pace.bytes(*SINK_LATENCY_US.start()).saturating_add(2 * frame);
        let max_length = pace.up(asked_most.max(least));
        let target = pace.up(target).min(max_length);
        let minimum = pace.down(minimum).max(frame).min(target);
        let most_prebuffer = target + frame - minimum;
        let prebuffer = pace.up(buffer.pre_buffering.min(most_prebuffer)).min(most_prebuffer);
        Attributes {
            max_length,
            target_length: target,
            prebuffer,
            minimum_request: minimum,
            sink_latency_us: sink_us,
            asks_early: latency == Latency::Early,
        }
    }

    /// Returns what is granted if no more than `most_us` can be kept until it is heard, or the
    /// least that there is.
    pub fn grant_within(mut self, pace: Pace, most_us: u64) -> Attributes {
        loop {
            let granted = self.grant(pace);
            let is_least = pace.us(granted.target_length.into()) <= 2 * SINK_LATENCY_US.start();
            if granted.total_us(pace) <= most_us || is_least {
                return granted;
            }
            self.buffer.target_length = pace.down(granted.target_length / 8 * 7);
            if granted.minimum_request > self.buffer.target_length / 4 {
                self.buffer.minimum_request_length = DEFAULT;
            }
        }
    }
}

impl Attributes {
    /// Returns the depth to ask a server for, so that its ring holds what is queued and what is
    /// rendered. Half of a ring is for either.
    pub fn depth_frames(&self, pace: Pace, device_rate_hz: u32) -> u32 {
        self.part_in_frames((1, 2), pace, device_rate_hz)
    }

    /// Returns the depth that is wished at times: more, of a short stream.
    pub fn most_depth_frames(&self, pace: Pace, device_rate_hz: u32) -> u32 {
        let part = if self.is_short(pace) { SHORT_DEPTH } else { (1, 2) };
        self.part_in_frames(part, pace, device_rate_hz)
    }

    fn part_in_frames(&self, (part, of): (u128, u128), pace: Pace, device_rate_hz: u32) -> u32 {
        let frames = u128::from(self.total_us(pace)) * u128::from(device_rate_hz) * part;
        u32::try_from(frames / (of * 1_000_000)).unwrap_or(u32::MAX).max(1)
    }

    /// Returns whether little is kept until it is heard: its program may be asked for more by the
    /// device's clock.
    pub fn is_short(&self, pace: Pace) -> bool {
        self.total_us(pace) < SHORT_US
    }

    /// Returns the time of all that is kept until it is heard, µs.
    pub fn total_us(&self, pace: Pace) -> u64 {
        pace.us(self.target_length.into()) + self.sink_latency_us
    }

    /// Returns them as the protocol has them.
    pub fn to_buffer(self) -> BufferAttr {
        BufferAttr {
            max_length: self.max_length,
            target_length: self.target_length,
            pre_buffering: self.prebuffer,
            minimum_request_length: self.minimum_request,
            fragment_size: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 16-bit stereo at 44.1 kHz, as `pacat` has it.
    const PACE: Pace = Pace { frame_bytes: 4, rate_hz: 44_100 };

    fn asked(target_length: u32, latency: Latency) -> Requested {
        Requested { buffer: BufferAttr { target_length, ..BufferAttr::default() }, latency }
    }

    /// What PulseAudio 16.1 granted on its null sink: `pacat --latency-msec`.
    #[test]
    fn latencies_are_those_that_pulseaudio_grants() {
        let least = asked(PACE.bytes(20_000), Latency::Total).grant(PACE);
        let Attributes { target_length, prebuffer, minimum_request, .. } = least;
        assert_eq!([target_length, prebuffer, minimum_request], [2644, 1768, 880]);
        for (ms, sink_us) in [(500, 230_000), (100, 30_000), (40, 10_000)] {
            let granted = asked(PACE.bytes(ms * 1000), Latency::Total).grant(PACE);
            assert!(granted.sink_latency_us.abs_diff(sink_us) < 40, "{ms} ms: {granted:?}");
            let total = PACE.us(granted.target_length.into()) + granted.sink_latency_us;
            assert!(total.abs_diff(ms * 1000) < 40, "{ms} ms: {granted:?}");
        }
        let granted = asked(DEFAULT, Latency::Queue).grant(PACE);
        assert_eq!(granted.sink_latency_us, 1_960_000);
        assert_eq!(
            granted,
            Attributes {
                max_length: 4 << 20,
                target_length: 352_800,
                prebuffer: 352_800 + 4 - 3528,
                minimum_request: 3528,
                sink_latency_us: 1_960_000,
                asks_early: false,
            }
        );
    }

    #[test]
    fn early_requests_are_as_long_as_what_is_rendered() {
        let mut requested = asked(PACE.bytes(200_000), Latency::Early);
        requested.buffer.minimum_request_length = PACE.bytes(50_000);
        let granted = requested.grant(PACE);
        assert_eq!((granted.sink_latency_us, granted.minimum_request), (50_000, 8820));
    }

    /// What PulseAudio 16.1 granted on its null sink.
    #[test]
    fn no_more_is_kept_than_a_program_allows() {
        let buffer = BufferAttr {
            max_length: PACE.bytes(100_000),
            target_length: PACE.bytes(50_000),
            pre_buffering: PACE.bytes(300_000),
            minimum_request_length: PACE.bytes(90_000),
            fragment_size: DEFAULT,
        };
        for latency in [Latency::Queue, Latency::Total, Latency::Early] {
            let granted = Requested { buffer, latency }.grant(PACE);
            let Attributes { max_length, target_length, prebuffer, minimum_request, .. } = granted;
            assert_eq!((max_length, target_length), (17_640, 17_640), "{latency:?}");
            assert_eq!((prebuffer, minimum_request), (1768, 15_876), "{latency:?}");
        }
        // Less than a device renders at once is not possible.
        let buffer = BufferAttr { max_length: 0, target_length: 0, ..BufferAttr::default() };
        let granted = Requested { buffer, latency: Latency::Total }.grant(PACE);
        assert_eq!((granted.max_length, granted.target_length), (892, 892));
    }

    #[test]
    fn no_prebuffer_stays_none() {
        let mut requested = asked(DEFAULT, Latency::Queue);
        requested.buffer.pre_buffering = 0;
        assert_eq!(requested.grant(PACE).prebuffer, 0);
    }

    #[test]
    fn a_small_ring_shrinks_what_is_granted() {
        for latency in [Latency::Queue, Latency::Total, Latency::Early] {
            let granted = asked(DEFAULT, latency).grant_within(PACE, 300_000);
            assert!(granted.total_us(PACE) <= 300_000, "{granted:?}");
            assert!(granted.total_us(PACE) > 150_000, "{granted:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_granted_makes_sense(
            frame_bytes in 1..129_u32,
            rate_hz in 1..768_001_u32,
            lengths in prop::array::uniform4(prop_oneof![any::<u32>(), 0..100_000_u32]),
            latency in prop_oneof![
                Just(Latency::Queue), Just(Latency::Total), Just(Latency::Early)
            ],
            most_us in any::<u64>(),
        ) {
            let pace = Pace { frame_bytes, rate_hz };
            let [max_length, target_length, pre_buffering, minimum_request_length] = lengths;
            let buffer = BufferAttr {
                max_length, target_length, pre_buffering, minimum_request_length,
                fragment_size: 0,
            };
            let granted = Requested { buffer, latency }.grant_within(pace, most_us);
            let Attributes { max_length, target_length, prebuffer, minimum_request, .. } = granted;
            for length in [max_length, target_length, prebuffer, minimum_request] {
                prop_assert_eq!(length % frame_bytes, 0);
            }
            prop_assert!(0 < minimum_request && minimum_request <= target_length);
            prop_assert!(target_length <= max_length && prebuffer <= target_length);
        }
    }
}
