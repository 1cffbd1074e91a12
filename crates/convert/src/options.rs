//! What a converter is asked for, and why it may be impossible.

use crate::Mixing;

/// What both ways of a conversion have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Options {
    /// What becomes of channels that the other side lacks.
    pub mixing: Mixing,
    /// Filter of the resampler, if the rates differ.
    pub filter: Filter,
}

/// How long the filter of a resampler is. A longer one keeps more of the treble, and is later; all
/// are equally pure.
///
/// The figures are for 44.1 kHz with the other side at 48 kHz. The treble that is kept is in
/// proportion to the lower rate, the latency in inverse proportion. Rates that have next to nothing
/// in common, such as 44,101 Hz and 48 kHz, are converted with a latency below 6 ms, and cost five
/// to fifteen times as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Filter {
    /// Everything up to 19 kHz, 1.5 ms, for programs that wait for what is heard. Costs three times
    /// as much as a longer one.
    Prompt,
    /// Everything up to 20 kHz, 10 ms.
    Short,
    /// Everything up to 21 kHz, 20 ms.
    #[default]
    Medium,
    /// Everything up to 21.75 kHz, 70 ms.
    Long,
}

/// The highest rate, in Hz: that of PulseAudio's protocol.
pub const MAX_RATE_HZ: u32 = 768_000;

/// Why no converter can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A rate beyond what exists.
    #[error("a rate of {0} Hz: use 1 to {MAX_RATE_HZ} Hz")]
    Rate(u32),
    /// Two rates of which one is hundreds of times the other.
    #[error(
        "{0} Hz cannot become {1} Hz, since the rates are too far apart: use a usual rate, such as \
         44100 or 48000 Hz"
    )]
    Ratio(u32, u32),
}
