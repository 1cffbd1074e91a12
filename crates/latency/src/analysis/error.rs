//! Why a recording gives no latency.

use super::Side;

/// Why nothing was measured, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LatencyError {
    /// A measurement needs a direct and a delayed channel.
    #[error("the recording has {channels} channels: give one with 2, left direct, right delayed")]
    NotStereo {
        /// Channels of the recording.
        channels: usize,
    },
    /// The two channels were not recorded together.
    #[error("the channels have {left} and {right} frames: record both together")]
    Lengths {
        /// Frames of the left channel.
        left: usize,
        /// Frames of the right channel.
        right: usize,
    },
    /// Too few frames for any sound to be recognised.
    #[error("the recording has {frames} frames, and {needed} are needed: make it longer")]
    TooShort {
        /// Frames of the recording.
        frames: usize,
        /// Frames that are needed.
        needed: usize,
    },
    /// Without a rate, frames cannot be converted to time.
    #[error("the recording has no sample rate")]
    NoRate,
    /// NaN or infinity.
    #[error("the {side} channel has NaN or infinity at frame {frame}: the recording is damaged")]
    NotFinite {
        /// The channel.
        side: Side,
        /// The first such frame.
        frame: usize,
    },
    /// Nothing was recorded.
    #[error("the {side} channel is silent: check the connection and the levels")]
    Silent {
        /// The channel.
        side: Side,
    },
    /// The recorder was overloaded, and the beginning of a clipped sound is unknown.
    #[error("the {side} channel is clipped at frame {frame}: record at a lower level")]
    Clipped {
        /// The channel.
        side: Side,
        /// The first frame of the first flat top.
        frame: usize,
    },
    /// Nothing of the left channel was found in the right one.
    #[error(
        "the left sound cannot be found in the right channel (clarity {clarity:.1}, {needed:.1} is needed): \
         unrelated channels, a delay longer than the recording, or too much noise for this signal; \
         make a longer recording, or send a sequence"
    )]
    NotFound {
        /// Height of the best match above the rest, in standard deviations of the rest.
        clarity: f64,
        /// The minimum.
        needed: f64,
    },
    /// The sound repeats itself, so that several delays explain the recording equally well.
    #[error(
        "the delay could be {first_frames} or {second_frames} frames: the sound repeats itself; \
         send one that does not, or record from the silence before it"
    )]
    Ambiguous {
        /// The best explanation.
        first_frames: i64,
        /// One nearly as good.
        second_frames: i64,
    },
    /// So few clicks agree that unrelated ones might agree as well.
    #[error(
        "the channels may be unrelated: {agreeing} of {clicks} clicks agree, as unrelated ones may by chance; send a train \
         of impulses, or a sequence"
    )]
    Chance {
        /// Clicks of the left channel that the best delay explains.
        agreeing: usize,
        /// Clicks of the left channel.
        clicks: usize,
    },
    /// The right channel is the earlier one.
    #[error(
        "the right channel is {frames} frames ahead of the left: left is the direct one, swap the cables"
    )]
    Swapped {
        /// How far it is ahead.
        frames: i64,
    },
}
