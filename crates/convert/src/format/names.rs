//! Formats by PulseAudio's names for them.

use std::fmt;
use std::str::FromStr;

use dsp::Format;

use super::SampleFormat;

/// A name that is not one of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown sample format \"{0}\": use u8, alaw, ulaw, s16, s24, s24-32, s32 or float32; the last \
     five may end in le or be"
)]
pub struct UnknownFormat(String);

impl fmt::Display for SampleFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::U8 => "u8",
            Self::ALaw => "aLaw",
            Self::MuLaw => "uLaw",
            Self::Linear(format) => match format {
                Format::S16Le => "s16le",
                Format::S16Be => "s16be",
                Format::FloatLe => "float32le",
                Format::FloatBe => "float32be",
                Format::S32Le => "s32le",
                Format::S32Be => "s32be",
                Format::S24PackedLe => "s24le",
                Format::S24PackedBe => "s24be",
                Format::S24Le => "s24-32le",
                Format::S24Be => "s24-32be",
            },
        })
    }
}

impl FromStr for SampleFormat {
    type Err = UnknownFormat;

    /// Takes every name that PulseAudio takes, in upper or lower case. A name without a byte order,
    /// or with `ne`, is of this machine's; one with `re` is of the other. (PulseAudio 16.1 takes
    /// `s32re` for 24 bits; here it is what it says.)
    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let lower = name.to_ascii_lowercase();
        let (native, reverse) =
            if cfg!(target_endian = "little") { ("le", "be") } else { ("be", "le") };
        let full = match lower.as_str() {
            "8" => "u8".into(),
            "mulaw" => "ulaw".into(),
            "16" | "s16" => format!("s16{native}"),
            "float" | "float32" => format!("float32{native}"),
            "s32" | "s24" | "s24-32" => format!("{lower}{native}"),
            other => match (other.strip_suffix("ne"), other.strip_suffix("re")) {
                (Some(stem), _) => format!("{stem}{native}"),
                (_, Some(stem)) => format!("{stem}{reverse}"),
                _ => other.into(),
            },
        };
        Self::ALL
            .into_iter()
            .find(|format| format.to_string().eq_ignore_ascii_case(&full))
            .ok_or_else(|| UnknownFormat(name.into()))
    }
}
