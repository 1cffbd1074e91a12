//! The 80 bits of a frame.

use crate::time_code::{TimeCode, VideoRate};

/// Bits of a frame.
pub(super) const BITS: u32 = 80;
/// The last 16 bits, the first of them lowest: they mark the end of a frame and its direction.
const SYNC_WORD: u128 = 0xBFFC;
const SYNC_BEGIN: u32 = 64;
/// The numbers were dropped as in NTSC.
const DROP_FLAG: u128 = 1 << 10;

/// A group of bits: the first, and how many.
type Field = (u32, u32);

const FRAME_UNITS: Field = (0, 4);
const FRAME_TENS: Field = (8, 2);
const SECOND_UNITS: Field = (16, 4);
const SECOND_TENS: Field = (24, 3);
const MINUTE_UNITS: Field = (32, 4);
const MINUTE_TENS: Field = (40, 3);
const HOUR_UNITS: Field = (48, 4);
const HOUR_TENS: Field = (56, 2);

/// The bits of a frame, the first one lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameBits(pub(super) u128);

fn put((begin, _): Field, value: u8) -> u128 {
    u128::from(value) << begin
}

impl FrameBits {
    /// Returns the bits of a time code.
    pub(super) fn of(code: TimeCode) -> Self {
        let TimeCode { hours, minutes, seconds, frames, rate } = code;
        let pairs = [
            (FRAME_UNITS, FRAME_TENS, frames),
            (SECOND_UNITS, SECOND_TENS, seconds),
            (MINUTE_UNITS, MINUTE_TENS, minutes),
            (HOUR_UNITS, HOUR_TENS, hours),
        ];
        let digits = pairs.iter().fold(0, |bits, (units, tens, value)| {
            bits | put(*units, value % 10) | put(*tens, value / 10)
        });
        let drop = if rate == VideoRate::Drop { DROP_FLAG } else { 0 };
        let bits = digits | drop | SYNC_WORD << SYNC_BEGIN;
        // An even number of ones, so that each frame begins with the same polarity.
        let correction = 1 << if rate == VideoRate::Pal { 59 } else { 27 };
        Self(if bits.count_ones().is_multiple_of(2) { bits } else { bits | correction })
    }

    /// Returns the numbers of these bits at a rate; `None` if the rate has no such frame.
    pub(super) fn time_code(self, rate: VideoRate) -> Option<TimeCode> {
        let get = |(begin, length): Field| ((self.0 >> begin) & ((1 << length) - 1)) as u8;
        let pair = |units: Field, tens: Field| {
            let (units, tens) = (get(units), get(tens));
            (units < 10).then_some(tens * 10 + units)
        };
        let drops = self.0 & DROP_FLAG != 0;
        let code = TimeCode {
            frames: pair(FRAME_UNITS, FRAME_TENS)?,
            seconds: pair(SECOND_UNITS, SECOND_TENS)?,
            minutes: pair(MINUTE_UNITS, MINUTE_TENS)?,
            hours: pair(HOUR_UNITS, HOUR_TENS)?,
            rate,
        };
        (drops == (rate == VideoRate::Drop) && code.is_valid()).then_some(code)
    }
}

/// Which way the tape runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// The bits that have come last, the newest one highest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BitWindow {
    bits: u128,
    /// Bits since the last error, at most [`BITS`].
    count: u32,
}

impl BitWindow {
    /// Forgets the bits: the next one does not follow them.
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Takes a bit; returns the frame that it completes, and the direction in which it was read.
    pub(super) fn push(&mut self, bit: bool) -> Option<(FrameBits, Direction)> {
        self.bits = self.bits >> 1 | u128::from(bit) << (BITS - 1);
        self.count = (self.count + 1).min(BITS);
        if self.count < BITS {
            return None;
        }
        if self.bits >> SYNC_BEGIN == SYNC_WORD {
            return Some((FrameBits(self.bits), Direction::Forward));
        }
        let turned = self.bits.reverse_bits() >> (u128::BITS - BITS);
        (turned >> SYNC_BEGIN == SYNC_WORD).then_some((FrameBits(turned), Direction::Backward))
    }
}
