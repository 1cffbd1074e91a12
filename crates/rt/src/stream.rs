//! What a program can want of a stream, as values. How wishes travel is [`crate::shm`]'s part, and
//! what follows from them the mixer's.
//!
//! Two clocks count frames: a stream's *position* counts the frames of its ring from the first one
//! on, and the *device frame* counts what the device has played since it was opened.

use crate::shm::MAX_STREAM_CHANNELS;

/// Channels of a stream, at most.
const CHANNELS: usize = MAX_STREAM_CHANNELS as usize;

/// Words of an encoded wish: kind and ramp, a number, and two gains in each of the others.
pub const WISH_WORDS: usize = 2 + CHANNELS / 2;

/// The largest gain of a channel: 24 dB.
pub const MAX_GAIN: f32 = 16.0;

/// The longest ramp of a gain, frames: more than a minute at 768 kHz.
pub const MAX_RAMP_FRAMES: u32 = 1 << 26;

/// How long a stream fades out and in where it is held, goes on elsewhere or ends, ns.
pub const FADE_NS: u64 = 5_000_000;

/// A factor for each channel, 0 to [`MAX_GAIN`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gains([f32; CHANNELS]);

impl Gains {
    /// Channels that have a factor.
    pub const CHANNELS: usize = CHANNELS;

    /// The same factor for all channels; `None` if it is no gain.
    #[must_use]
    pub fn all(gain: f32) -> Option<Self> {
        Self::new([gain; CHANNELS])
    }

    /// A factor for each channel; `None` if one is no gain.
    #[must_use]
    pub fn new(gains: [f32; CHANNELS]) -> Option<Self> {
        // NaN is in no range.
        gains.iter().all(|gain| (0.0..=MAX_GAIN).contains(gain)).then_some(Self(gains))
    }

    /// Returns the factor of a channel; 0 of one that no stream has.
    #[must_use]
    pub fn of(&self, channel: usize) -> f32 {
        self.0.get(channel).copied().unwrap_or(0.0)
    }
}

impl Default for Gains {
    /// The samples as they are.
    fn default() -> Self {
        Self([1.0; CHANNELS])
    }
}

/// What a program wants of its stream from the earliest possible device frame on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wish {
    /// To be played, from where it holds.
    Run,
    /// To fade out, and to hold the position at which the fade began.
    Hold,
    /// To be played up to this position, exactly and without a fade, and to hold there.
    Drain {
        /// The position after the last frame.
        end: u64,
    },
    /// To continue at this position of the ring: a seek, a flush, another rate, another device.
    /// What was played fades out while the new frames fade in.
    Splice {
        /// The position of the first frame.
        position: u64,
    },
    /// Other gains, reached in a straight line.
    Gain {
        /// The factors at the end of the ramp.
        gains: Gains,
        /// How long the ramp takes.
        ramp_frames: u32,
    },
    /// To be rendered at most this far ahead of the hardware.
    Depth {
        /// Frames of the device.
        frames: u32,
    },
}

const RUN: u64 = 1;
const HOLD: u64 = 2;
const DRAIN: u64 = 3;
const SPLICE: u64 = 4;
const GAIN: u64 = 5;
const DEPTH: u64 = 6;

impl Wish {
    /// Returns the wish as words.
    #[must_use]
    pub fn to_words(self) -> [u64; WISH_WORDS] {
        let mut words = [0; WISH_WORDS];
        let (kind, number) = match self {
            Self::Run => (RUN, 0),
            Self::Hold => (HOLD, 0),
            Self::Drain { end } => (DRAIN, end),
            Self::Splice { position } => (SPLICE, position),
            Self::Depth { frames } => (DEPTH, u64::from(frames)),
            Self::Gain { gains, ramp_frames } => {
                let pairs = gains.0.chunks_exact(2);
                for (word, pair) in words[2..].iter_mut().zip(pairs) {
                    *word = u64::from(pair[0].to_bits()) | u64::from(pair[1].to_bits()) << 32;
                }
                (GAIN, u64::from(ramp_frames))
            }
        };
        (words[0], words[1]) = (kind, number);
        words
    }

    /// Returns the wish in words that a program wrote; `None` if they make no sense.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "each half of a word has a gain's bits")]
    pub fn from_words(words: &[u64; WISH_WORDS]) -> Option<Self> {
        let number = words[1];
        Some(match words[0] {
            RUN => Self::Run,
            HOLD => Self::Hold,
            DRAIN => Self::Drain { end: number },
            SPLICE => Self::Splice { position: number },
            DEPTH => Self::Depth { frames: u32::try_from(number).ok()? },
            GAIN => {
                let gains = core::array::from_fn(|channel| {
                    f32::from_bits((words[2 + channel / 2] >> (channel % 2 * 32)) as u32)
                });
                let ramp_frames = u32::try_from(number).ok()?;
                if ramp_frames > MAX_RAMP_FRAMES {
                    return None;
                }
                Self::Gain { gains: Gains::new(gains)?, ramp_frames }
            }
            _ => return None,
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gains() -> impl Strategy<Value = Gains> {
        prop::array::uniform32(0.0..=MAX_GAIN).prop_map(|gains| Gains::new(gains).unwrap())
    }

    fn wishes() -> impl Strategy<Value = Wish> {
        prop_oneof![
            Just(Wish::Run),
            Just(Wish::Hold),
            any::<u64>().prop_map(|end| Wish::Drain { end }),
            any::<u64>().prop_map(|position| Wish::Splice { position }),
            any::<u32>().prop_map(|frames| Wish::Depth { frames }),
            (gains(), 0..=MAX_RAMP_FRAMES)
                .prop_map(|(gains, ramp_frames)| Wish::Gain { gains, ramp_frames }),
        ]
    }

    proptest! {
        #[test]
        fn a_wish_is_read_as_it_was_written(wish in wishes()) {
            prop_assert_eq!(Wish::from_words(&wish.to_words()), Some(wish));
        }

        #[test]
        fn any_words_are_a_wish_within_its_limits_or_none(
            kind in 0..8_u64,
            number in any::<u64>(),
            bits in prop::array::uniform16(any::<u64>()),
        ) {
            let mut words = [0; WISH_WORDS];
            (words[0], words[1]) = (kind, number);
            words[2..].copy_from_slice(&bits);
            if let Some(Wish::Gain { gains, ramp_frames }) = Wish::from_words(&words) {
                prop_assert!(ramp_frames <= MAX_RAMP_FRAMES);
                prop_assert!((0..CHANNELS).all(|channel| gains.of(channel) <= MAX_GAIN));
            }
        }
    }

    #[test]
    fn nonsense_is_no_gain() {
        for gain in [f32::NAN, f32::INFINITY, -0.1, MAX_GAIN * 1.01] {
            assert_eq!(Gains::all(gain), None, "{gain}");
        }
        assert_eq!(Gains::all(0.5).unwrap().of(CHANNELS), 0.0);
    }
}
