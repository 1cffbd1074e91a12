//! Sample formats: this project's, the library's, and their names.

use alsa_sys as ffi;
use dsp::Format;

const TABLE: [(Format, ffi::snd_pcm_format_t, &str); 10] = [
    (Format::S16Le, ffi::SND_PCM_FORMAT_S16_LE as _, "S16_LE"),
    (Format::S16Be, ffi::SND_PCM_FORMAT_S16_BE as _, "S16_BE"),
    (Format::S24Le, ffi::SND_PCM_FORMAT_S24_LE as _, "S24_LE"),
    (Format::S24Be, ffi::SND_PCM_FORMAT_S24_BE as _, "S24_BE"),
    (Format::S24PackedLe, ffi::SND_PCM_FORMAT_S24_3LE as _, "S24_3LE"),
    (Format::S24PackedBe, ffi::SND_PCM_FORMAT_S24_3BE as _, "S24_3BE"),
    (Format::S32Le, ffi::SND_PCM_FORMAT_S32_LE as _, "S32_LE"),
    (Format::S32Be, ffi::SND_PCM_FORMAT_S32_BE as _, "S32_BE"),
    (Format::FloatLe, ffi::SND_PCM_FORMAT_FLOAT_LE as _, "FLOAT_LE"),
    (Format::FloatBe, ffi::SND_PCM_FORMAT_FLOAT_BE as _, "FLOAT_BE"),
];

/// Returns the library's number of a format.
pub(crate) fn number(format: Format) -> ffi::snd_pcm_format_t {
    TABLE.iter().find(|row| row.0 == format).map_or(ffi::SND_PCM_FORMAT_S16_LE as _, |row| row.1)
}

/// Returns ALSA's name of a format, such as `S24_3LE`.
#[must_use]
pub fn format_name(format: Format) -> &'static str {
    TABLE.iter().find(|row| row.0 == format).map_or("", |row| row.2)
}

/// Returns the format with an ALSA name in upper or lower case. Without `_LE` or `_BE` the
/// processor's byte order applies.
#[must_use]
pub fn parse_format(name: &str) -> Option<Format> {
    let name = name.to_ascii_uppercase();
    let native = if cfg!(target_endian = "big") { "BE" } else { "LE" };
    let full = [format!("{name}_{native}"), format!("{name}{native}"), name];
    TABLE.iter().find(|row| full.iter().any(|name| name == row.2)).map(|row| row.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_that_leads_back_to_it() {
        for format in Format::ALL {
            assert_eq!(parse_format(format_name(format)), Some(format));
            assert_eq!(parse_format(&format_name(format).to_lowercase()), Some(format));
        }
        assert_eq!(parse_format("S8"), None);
        assert_eq!(parse_format(""), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_name_without_byte_order_means_the_processors() {
        assert_eq!(parse_format("S16"), Some(Format::S16Le));
        assert_eq!(parse_format("s24_3"), Some(Format::S24PackedLe));
        assert_eq!(parse_format("FLOAT"), Some(Format::FloatLe));
    }
}
