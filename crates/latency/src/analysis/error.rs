//! Why a recording gives no latency.

use super::Side;

/// Why there is no number, and what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LatencyError {
    /// A measurement needs a direct and a delayed channel.
    #[error("the recording has {channels} channels: give one with 2, left direct, right delayed")]
    NotStereo {
        /// Channels that there are.
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
    #[error("the recording has {frames} frames, and {needed} are needed: record for longer")]
    TooShort {
        /// Frames that there are.
        frames: usize,
        /// Frames that are needed.
        needed: usize,
    },
    /// Samples have no distance in time without a rate.
    #[error("the recording states no sample rate")]
    NoRate,
    /// NaN or infinity.
    #[error("the {side} channel has no number at frame {frame}: the recording is damaged")]
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
    /// The recorder was overloaded, and where a clipped sound begins cannot be told.
    #[error("the {side} channel is clipped at frame {frame}: record at a lower level")]
    Clipped {
        /// The channel.
        side: Side,
        /// The first frame of the first flat top.
        frame: usize,
    },
    /// The right channel has nothing of the left one, as far as can be told.
    #[error(
        "the left sound cannot be found in the right channel (clarity {clarity:.1}, {needed:.1} is needed): \
         unrelated channels, a delay longer than the recording, or too much noise for this signal; \
         record for longer, or send a sequence"
    )]
    NotFound {
        /// The best match above the rest, in standard deviations of the rest.
        clarity: f64,
        /// What it would have to be.
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
    /// So few sounds agree that others, which have nothing to do with each other, might as well.
    #[error(
        "it cannot be told whether the channels are related: {agreeing} of {clicks} clicks agree, as unrelated ones may by \
         chance; send a train of impulses, or a sequence"
    )]
    Chance {
        /// Clicks of the left channel that the best delay explains.
        agreeing: usize,
        /// Clicks of the left channel that there are.
        clicks: usize,
    },
    /// The right channel is the earlier one.
    #[error(
        "the right channel is {frames} frames ahead of the left: left is the direct one, swap the cables"
    )]
    Swapped {
        /// By how much.
        frames: i64,
    },
}
