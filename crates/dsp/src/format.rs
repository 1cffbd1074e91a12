//! The layouts of one sample in a device's buffer.

/// How one sample is laid out in bytes. Integers are two's complement.
///
/// Encoding turns a sample `x` into the integer `x * 2^(bits - 1)`, rounded to nearest (ties to
/// even) and clipped to the range of `bits`: 1.0 becomes the largest integer, -1.0 the smallest,
/// NaN becomes 0. Decoding divides the integer by `2^(bits - 1)`, so that every 16- and 24-bit
/// value survives a round trip; of 32 bits an `f32` keeps the 24 most significant. Floating point
/// passes unchanged and unclipped, NaN included.
///
/// The names are ALSA's `snd_pcm_format_t` (`alsa/pcm.h`), except where it counts bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// 16 bits, little endian.
    S16Le,
    /// 16 bits, big endian.
    S16Be,
    /// 24 bits in the low three bytes of four, little endian. Encoding extends the sign; decoding
    /// ignores the fourth byte, since hardware may leave anything in it.
    S24Le,
    /// 24 bits in the low three bytes of four, big endian; the fourth byte as in [`Format::S24Le`].
    S24Be,
    /// 24 bits in three bytes, little endian (ALSA: `S24_3LE`).
    S24PackedLe,
    /// 24 bits in three bytes, big endian (ALSA: `S24_3BE`).
    S24PackedBe,
    /// 32 bits, little endian.
    S32Le,
    /// 32 bits, big endian.
    S32Be,
    /// IEEE 754 binary32, little endian; full scale is ±1.0.
    FloatLe,
    /// IEEE 754 binary32, big endian; full scale is ±1.0.
    FloatBe,
}

impl Format {
    /// Every format, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::S16Le,
        Self::S16Be,
        Self::S24Le,
        Self::S24Be,
        Self::S24PackedLe,
        Self::S24PackedBe,
        Self::S32Le,
        Self::S32Be,
        Self::FloatLe,
        Self::FloatBe,
    ];

    /// Bytes that one sample takes in a buffer.
    pub const fn bytes_per_sample(self) -> usize {
        match self {
            Self::S16Le | Self::S16Be => 2,
            Self::S24PackedLe | Self::S24PackedBe => 3,
            Self::S24Le
            | Self::S24Be
            | Self::S32Le
            | Self::S32Be
            | Self::FloatLe
            | Self::FloatBe => 4,
        }
    }
}
