//! Which sample formats are tried, and in which order.

use dsp::Format;
use proto::driver::AlsaOptions;

const NATIVE_FIRST: [Format; 10] = if cfg!(target_endian = "big") {
    [
        Format::FloatBe,
        Format::S32Be,
        Format::S24Be,
        Format::S24PackedBe,
        Format::FloatLe,
        Format::S32Le,
        Format::S24Le,
        Format::S24PackedLe,
        Format::S16Be,
        Format::S16Le,
    ]
} else {
    [
        Format::FloatLe,
        Format::S32Le,
        Format::S24Le,
        Format::S24PackedLe,
        Format::FloatBe,
        Format::S32Be,
        Format::S24Be,
        Format::S24PackedBe,
        Format::S16Le,
        Format::S16Be,
    ]
};

/// Returns the formats to try, best first; none if the only requested one is unknown.
pub(super) fn formats(options: &AlsaOptions) -> Vec<Format> {
    if let Some(name) = &options.format {
        return alsa::parse_format(name).into_iter().collect();
    }
    let mut formats = NATIVE_FIRST.to_vec();
    if options.prefer_16_bits {
        // A stable sort: the others keep their order.
        formats.sort_by_key(|format| format.bytes_per_sample() != 2);
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_16_bits_are_tried_last_unless_preferred() {
        let mut options = AlsaOptions::default();
        assert!(Format::ALL.iter().all(|format| formats(&options).contains(format)));
        assert_eq!(formats(&options)[8].bytes_per_sample(), 2);
        options.prefer_16_bits = true;
        assert_eq!(formats(&options)[0].bytes_per_sample(), 2);
        assert_eq!(formats(&options).len(), 10);
        options.format = Some(alsa::format_name(Format::S24PackedBe).into());
        assert_eq!(formats(&options), [Format::S24PackedBe]);
        options.format = Some("S8".into());
        assert_eq!(formats(&options), []);
    }
}
