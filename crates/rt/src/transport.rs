//! The transport as every client of a cycle sees it: its position, and whether it rolls.

use crate::rate::frames_in;

/// Whether the transport rolls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum TransportState {
    /// The transport is stopped.
    #[default]
    Stopped = 0,
    /// The position advances by a quantum in each cycle.
    Rolling = 1,
    /// The transport rolls in a loop. Programs know the number; this server never uses it.
    Looping = 2,
    /// The transport is stopped until the clients that need time are ready.
    Starting = 3,
}

impl TransportState {
    /// Decodes a number. Unknown numbers mean stopped.
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Rolling,
            2 => Self::Looping,
            3 => Self::Starting,
            _ => Self::Stopped,
        }
    }

    /// Returns whether the position advances.
    #[must_use]
    pub const fn passes(self) -> bool {
        matches!(self, Self::Rolling | Self::Looping)
    }
}

/// The bits of `jack_position_bits_t`: which members of a [`Position`] are valid.
pub mod valid {
    /// `bar` to `beats_per_minute`.
    pub const BBT: u32 = 1 << 4;
    /// `frame_time` and `next_time`.
    pub const TIMECODE: u32 = 1 << 5;
    /// `bbt_offset`.
    pub const BBT_OFFSET: u32 = 1 << 6;
    /// `audio_frames_per_video_frame`.
    pub const VIDEO_RATIO: u32 = 1 << 7;
    /// `video_offset`.
    pub const VIDEO_OFFSET: u32 = 1 << 8;
    /// `tick_double`.
    pub const TICK_DOUBLE: u32 = 1 << 9;
    /// All bits.
    pub const ALL: u32 = BBT | TIMECODE | BBT_OFFSET | VIDEO_RATIO | VIDEO_OFFSET | TICK_DOUBLE;
    /// The bits for the position in bars and beats.
    pub const MUSICAL: u32 = BBT | BBT_OFFSET | TICK_DOUBLE;
}

/// A position of the transport. All members but the first are meaningful only if `valid` says so.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Position {
    /// Frames from the start of the piece; wraps.
    pub frame: u32,
    /// Bits of [`valid`].
    pub valid: u32,
    /// Bar, counted from 1.
    pub bar: i32,
    /// Beat in the bar, counted from 1.
    pub beat: i32,
    /// Tick in the beat, counted from 0.
    pub tick: i32,
    /// Frames from the cycle's start to the time of bar, beat and tick.
    pub bbt_offset: u32,
    /// Ticks from the start of the piece to this bar.
    pub bar_start_tick: f64,
    /// Upper number of the time signature.
    pub beats_per_bar: f32,
    /// Lower number of the time signature.
    pub beat_type: f32,
    /// Ticks per beat.
    pub ticks_per_beat: f64,
    /// Tempo in beats per minute.
    pub beats_per_minute: f64,
    /// Time of the cycle's first frame, s.
    pub frame_time: f64,
    /// Time of the next cycle's first frame, s.
    pub next_time: f64,
    /// Audio frames per video frame; there is no video if not greater than 0.
    pub audio_frames_per_video_frame: f32,
    /// Frames from the cycle's start to the next video frame.
    pub video_offset: u32,
    /// `tick` with its fractional part.
    pub tick_double: f64,
}

/// Words of a packed position.
pub const POSITION_WORDS: usize = 11;

/// The transport in one cycle, the same for every client. The driver decides it before any client
/// runs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Transport {
    /// The cycle to which it applies.
    pub cycle: u32,
    /// Whether the transport rolls in this cycle.
    pub state: TransportState,
    /// Position at the cycle's first frame.
    pub position: Position,
    /// Counts starts and jumps. In each round the clients that need time get ready again.
    pub round: u32,
    /// Whether clients that need time are asked in this round, until they are ready.
    pub asks: bool,
    /// Id of the timebase master; 0 if there is none.
    pub master: u32,
    /// The driver's estimate of when the cycle began, `CLOCK_MONOTONIC` ns.
    pub wakeup_ns: u64,
}

/// Words of a packed transport.
pub const TRANSPORT_WORDS: usize = POSITION_WORDS + 4;

const fn pair(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

#[expect(clippy::cast_possible_truncation, reason = "each half of a packed word is 32 bits wide")]
const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Position {
    /// Encodes the position for shared memory.
    #[must_use]
    pub fn to_words(&self) -> [u64; POSITION_WORDS] {
        [
            pair(self.valid, self.frame),
            pair(self.bar.cast_unsigned(), self.beat.cast_unsigned()),
            pair(self.tick.cast_unsigned(), self.bbt_offset),
            self.bar_start_tick.to_bits(),
            pair(self.beats_per_bar.to_bits(), self.beat_type.to_bits()),
            self.ticks_per_beat.to_bits(),
            self.beats_per_minute.to_bits(),
            self.frame_time.to_bits(),
            self.next_time.to_bits(),
            pair(self.audio_frames_per_video_frame.to_bits(), self.video_offset),
            self.tick_double.to_bits(),
        ]
    }

    /// Decodes words of shared memory. Any words are some position; a reader that does not trust
    /// their writer applies [`checked`](Self::checked).
    #[must_use]
    pub fn from_words(words: &[u64; POSITION_WORDS]) -> Self {
        let [
            first,
            bar_beat,
            tick,
            bar_start,
            signature,
            resolution,
            tempo,
            time,
            next,
            video,
            double,
        ] = words.map(|word| (halves(word), f64::from_bits(word)));
        Self {
            valid: first.0.0,
            frame: first.0.1,
            bar: bar_beat.0.0.cast_signed(),
            beat: bar_beat.0.1.cast_signed(),
            tick: tick.0.0.cast_signed(),
            bbt_offset: tick.0.1,
            bar_start_tick: bar_start.1,
            beats_per_bar: f32::from_bits(signature.0.0),
            beat_type: f32::from_bits(signature.0.1),
            ticks_per_beat: resolution.1,
            beats_per_minute: tempo.1,
            frame_time: time.1,
            next_time: next.1,
            audio_frames_per_video_frame: f32::from_bits(video.0.0),
            video_offset: video.0.1,
            tick_double: double.1,
        }
    }

    /// Returns the position with only the values that programs can expect: members that are not
    /// marked valid become 0, and so do groups that contain a NaN or an infinity.
    #[must_use]
    pub fn checked(self) -> Self {
        let musical = [
            self.bar_start_tick,
            f64::from(self.beats_per_bar),
            f64::from(self.beat_type),
            self.ticks_per_beat,
            self.beats_per_minute,
        ];
        let mut kept = self.valid & valid::ALL;
        if !musical.iter().all(|number| number.is_finite()) {
            kept &= !valid::MUSICAL;
        }
        if !self.tick_double.is_finite() {
            kept &= !valid::TICK_DOUBLE;
        }
        if !(self.frame_time.is_finite() && self.next_time.is_finite()) {
            kept &= !valid::TIMECODE;
        }
        if !self.audio_frames_per_video_frame.is_finite() {
            kept &= !valid::VIDEO_RATIO;
        }
        let with =
            |bits: u32, member: Self| if kept & bits != 0 { member } else { Self::default() };
        let bbt = with(valid::BBT, self);
        let time = with(valid::TIMECODE, self);
        Self {
            frame: self.frame,
            valid: kept,
            bbt_offset: with(valid::BBT_OFFSET, self).bbt_offset,
            frame_time: time.frame_time,
            next_time: time.next_time,
            audio_frames_per_video_frame: with(valid::VIDEO_RATIO, self)
                .audio_frames_per_video_frame,
            video_offset: with(valid::VIDEO_OFFSET, self).video_offset,
            tick_double: with(valid::TICK_DOUBLE, self).tick_double,
            ..bbt
        }
    }

    /// Returns a position that consists of a frame only.
    #[must_use]
    pub fn at(frame: u32) -> Self {
        Self { frame, ..Self::default() }
    }
}

impl Transport {
    /// Encodes the transport for shared memory.
    #[must_use]
    pub fn to_words(&self) -> [u64; TRANSPORT_WORDS] {
        let mut words = [0; TRANSPORT_WORDS];
        words[0] = pair(self.state as u32 | u32::from(self.asks) << 31, self.cycle);
        words[1] = pair(self.master, self.round);
        words[2] = self.wakeup_ns;
        let (_, position) = words.split_at_mut(TRANSPORT_WORDS - POSITION_WORDS);
        position.copy_from_slice(&self.position.to_words());
        words
    }

    /// Decodes words of shared memory.
    #[must_use]
    pub fn from_words(words: &[u64; TRANSPORT_WORDS]) -> Self {
        let (state, cycle) = halves(words[0]);
        let (master, round) = halves(words[1]);
        let position =
            core::array::from_fn(|index| words[TRANSPORT_WORDS - POSITION_WORDS + index]);
        Self {
            cycle,
            state: TransportState::from_number(state & 0xffff),
            position: Position::from_words(&position),
            round,
            asks: state >> 31 != 0,
            master,
            wakeup_ns: words[2],
        }
    }

    /// Returns the position at the first frame of the next cycle, if the transport is neither
    /// stopped nor moved.
    #[must_use]
    pub fn next_frame(&self, quantum: u32) -> u32 {
        if self.state.passes() {
            self.position.frame.wrapping_add(quantum)
        } else {
            self.position.frame
        }
    }

    /// Returns the estimated frame at `time_ns`. Never a frame of a later cycle than this one,
    /// which has `quantum` frames and may last longer than the clock says.
    #[must_use]
    pub fn frame_at(&self, time_ns: u64, quantum: u32, sample_rate_hz: u32) -> u32 {
        if !self.state.passes() {
            return self.position.frame;
        }
        let frames = frames_in(time_ns.saturating_sub(self.wakeup_ns), sample_rate_hz);
        self.position.frame.wrapping_add(u32::try_from(frames).unwrap_or(quantum).min(quantum))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn full() -> Position {
        Position {
            frame: u32::MAX,
            valid: valid::ALL,
            bar: 3,
            beat: -4,
            tick: 959,
            bbt_offset: 17,
            bar_start_tick: 7680.25,
            beats_per_bar: 3.0,
            beat_type: 8.0,
            ticks_per_beat: 960.0,
            beats_per_minute: 121.5,
            frame_time: 1.5,
            next_time: 1.75,
            audio_frames_per_video_frame: 1920.0,
            video_offset: 12,
            tick_double: 959.5,
        }
    }

    #[test]
    fn positions_and_transports_survive_the_way_through_shared_memory() {
        assert_eq!(Position::from_words(&full().to_words()), full());
        let transport = Transport {
            cycle: 7,
            state: TransportState::Starting,
            position: full(),
            round: u32::MAX,
            asks: true,
            master: 5,
            wakeup_ns: 1 << 60,
        };
        assert_eq!(Transport::from_words(&transport.to_words()), transport);
        assert_eq!(full().checked(), full(), "nothing is wrong with it");
    }

    #[test]
    fn a_checked_position_contains_only_valid_groups() {
        let spoilt =
            Position { beats_per_minute: f64::NAN, frame_time: f64::INFINITY, ..full() }.checked();
        assert_eq!(spoilt.valid, valid::VIDEO_RATIO | valid::VIDEO_OFFSET);
        let left = Position {
            frame: u32::MAX,
            valid: spoilt.valid,
            audio_frames_per_video_frame: 1920.0,
            video_offset: 12,
            ..Position::default()
        };
        assert_eq!(spoilt, left);
        assert_eq!(
            Position { valid: 0xf, ..full() }.checked(),
            Position::at(u32::MAX),
            "unknown bits"
        );
        let words = [u64::MAX; POSITION_WORDS];
        assert_eq!(Position::from_words(&words).checked().valid, valid::VIDEO_OFFSET);
    }

    #[test]
    fn the_frame_that_passes_now_moves_only_while_the_piece_rolls() {
        let rolling = Transport {
            state: TransportState::Rolling,
            position: Position::at(1000),
            wakeup_ns: 1_000_000_000,
            ..Transport::default()
        };
        assert_eq!(rolling.frame_at(1_001_000_000, 64, 48_000), 1048);
        assert_eq!(rolling.frame_at(0, 64, 48_000), 1000, "a clock that is behind");
        assert_eq!(rolling.frame_at(u64::MAX, 64, 48_000), 1064, "a cycle that does not end");
        assert_eq!(rolling.next_frame(64), 1064);
        let starting = Transport { state: TransportState::Starting, ..rolling };
        assert_eq!(
            (starting.frame_at(2_000_000_000, 64, 48_000), starting.next_frame(64)),
            (1000, 1000)
        );
    }
}
