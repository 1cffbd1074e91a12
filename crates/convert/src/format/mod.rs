//! The formats of a program's samples.

mod decoder;
mod encoder;
mod g711;
mod names;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use names::UnknownFormat;

/// How one sample of a program is laid out in bytes: the formats that PulseAudio's protocol has.
///
/// In the format of its samples, full scale is 1.0. Encoding rounds to the nearest value and clips;
/// NaN becomes 0. What a format can represent survives decoding and encoding unchanged, with two
/// exceptions: of 32-bit integers, an `f32` keeps the 24 most significant bits, and the unused byte
/// of 24 bits in 32 extends the sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleFormat {
    /// Eight bits without a sign; 128 is silence.
    U8,
    /// G.711 A-law: eight bits, 13 before they were compressed.
    ALaw,
    /// G.711 μ-law: eight bits, 14 before they were compressed.
    MuLaw,
    /// What devices have as well.
    Linear(dsp::Format),
}

impl SampleFormat {
    /// Every format, in the order of PulseAudio's protocol.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::ALaw,
        Self::MuLaw,
        Self::Linear(dsp::Format::S16Le),
        Self::Linear(dsp::Format::S16Be),
        Self::Linear(dsp::Format::FloatLe),
        Self::Linear(dsp::Format::FloatBe),
        Self::Linear(dsp::Format::S32Le),
        Self::Linear(dsp::Format::S32Be),
        Self::Linear(dsp::Format::S24PackedLe),
        Self::Linear(dsp::Format::S24PackedBe),
        Self::Linear(dsp::Format::S24Le),
        Self::Linear(dsp::Format::S24Be),
    ];

    /// Returns the bytes of one sample.
    #[must_use]
    pub const fn bytes_per_sample(self) -> usize {
        match self {
            Self::U8 | Self::ALaw | Self::MuLaw => 1,
            Self::Linear(format) => format.bytes_per_sample(),
        }
    }
}

/// Most bytes of a sample.
const MAX_SAMPLE_BYTES: usize = 4;
