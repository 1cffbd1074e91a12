//! Which samples a new stream has: programs describe them once, or offer several formats whose
//! values are JSON.

use std::ffi::CStr;

use convert::{ChannelMap, Mixing, ProgramFormat, SampleFormat, Standard};
use pulseaudio::protocol::stream::StreamFlags;
use pulseaudio::protocol::{
    ChannelMap as CodecMap, FormatEncoding, FormatInfo, PlaybackStreamParams, Prop, PulseError,
    SampleSpec,
};

use super::{format, properties};

/// Returns the samples that a new stream has on this device.
///
/// # Errors
/// The description makes no sense, or none of the formats can be played.
pub(super) fn chosen(
    asked: &PlaybackStreamParams,
    device: &ProgramFormat,
) -> Result<ProgramFormat, PulseError> {
    let PlaybackStreamParams { sample_spec, channel_map, formats, flags, .. } = asked;
    chosen_of((sample_spec, channel_map), formats, flags, device)
}

/// Returns the samples that a stream to or from this device has: as they are described, or the
/// first of the formats that is possible.
///
/// # Errors
/// The description makes no sense, or none of the formats is possible.
pub(super) fn chosen_of(
    (spec, map): (&SampleSpec, &CodecMap),
    formats: &[FormatInfo],
    flags: &StreamFlags,
    device: &ProgramFormat,
) -> Result<ProgramFormat, PulseError> {
    let program = if formats.is_empty() {
        format::program(spec, map).ok_or(PulseError::Invalid)?
    } else {
        let offered = formats.iter().find_map(|offer| offered(offer, device));
        offered.ok_or(PulseError::NotSupported)?
    };
    Ok(fixed(program, flags, device))
}

/// Returns how the channels of a stream go to those of the device.
pub(super) fn mixing(flags: &StreamFlags) -> Mixing {
    match (flags.no_remap_channels, flags.no_remix_channels) {
        (true, _) => Mixing::ByNumber,
        (false, true) => Mixing::ByPosition,
        (false, false) => Mixing::Mixed,
    }
}

/// Replaces what the program leaves to the device.
fn fixed(program: ProgramFormat, flags: &StreamFlags, device: &ProgramFormat) -> ProgramFormat {
    ProgramFormat {
        format: if flags.fix_format { device.format } else { program.format },
        rate_hz: if flags.fix_rate { device.rate_hz } else { program.rate_hz },
        map: if flags.fix_channels { device.map } else { program.map },
    }
}

/// Returns the samples of an offer: what it leaves open is as the device has it.
fn offered(offer: &FormatInfo, device: &ProgramFormat) -> Option<ProgramFormat> {
    if !matches!(offer.encoding, FormatEncoding::Pcm | FormatEncoding::Any) {
        return None;
    }
    let value = |prop| properties::text(&offer.props, prop).and_then(first_value);
    let format: SampleFormat = match value(Prop::FormatSampleFormat) {
        Some(name) => name.parse().ok()?,
        None => device.format,
    };
    let rate_hz = match value(Prop::FormatRate) {
        Some(rate) => rate.parse().ok().filter(|rate| (1..=convert::MAX_RATE_HZ).contains(rate))?,
        None => device.rate_hz,
    };
    let channels = match value(Prop::FormatChannels) {
        Some(channels) => channels.parse().ok()?,
        None => device.map.channels(),
    };
    let map: ChannelMap = match value(Prop::FormatChannelMap) {
        Some(map) => map.parse().ok()?,
        None if channels == device.map.channels() => device.map,
        None => ChannelMap::extended(Standard::Aiff, channels)?,
    };
    (map.channels() == channels).then_some(ProgramFormat { format, rate_hz, map })
}

/// Returns the value of a property, of an array its first, of a range its lowest.
fn first_value(json: &CStr) -> Option<String> {
    let json = json.to_str().ok()?.trim();
    let array = json.strip_prefix('[').and_then(|json| json.strip_suffix(']'));
    if let Some(array) = array {
        return first_value_of_list(array);
    }
    match json.strip_prefix('{') {
        Some(range) => {
            let least = range.split_once("\"min\"")?.1.trim_start().strip_prefix(':')?;
            Some(least.split([',', '}']).next()?.trim().to_owned())
        }
        None => Some(unquoted(json).to_owned()),
    }
}

fn first_value_of_list(list: &str) -> Option<String> {
    let list = list.trim();
    match list.strip_prefix('"') {
        // A map has commas within its quotes.
        Some(quoted) => quoted.split('"').next().map(str::to_owned),
        None => list.split(',').next().map(|value| value.trim().to_owned()),
    }
    .filter(|value| !value.is_empty())
}

fn unquoted(json: &str) -> &str {
    json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(json)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use pulseaudio::protocol::Props;

    use super::*;

    fn device() -> ProgramFormat {
        let format = SampleFormat::Linear(dsp::Format::FloatLe);
        ProgramFormat { format, rate_hz: 48_000, map: "stereo".parse().expect("a map") }
    }

    fn offer(values: &[(Prop, &str)]) -> FormatInfo {
        let mut props = Props::new();
        values.iter().for_each(|(prop, value)| props.set(*prop, CString::new(*value).unwrap()));
        FormatInfo { encoding: FormatEncoding::Pcm, props }
    }

    #[test]
    fn an_offers_values_are_taken_and_the_devices_where_it_has_none() {
        let full = offer(&[
            (Prop::FormatSampleFormat, "\"s16le\""),
            (Prop::FormatRate, "44100"),
            (Prop::FormatChannels, "6"),
            (Prop::FormatChannelMap, "\"surround-51\""),
        ]);
        let map = "surround-51".parse().expect("a map");
        let format = SampleFormat::Linear(dsp::Format::S16Le);
        let expected = ProgramFormat { format, rate_hz: 44_100, map };
        assert_eq!(offered(&full, &device()), Some(expected));
        assert_eq!(offered(&offer(&[]), &device()), Some(device()));
        let several = offer(&[
            (Prop::FormatSampleFormat, "[ \"s16le\", \"u8\" ]"),
            (Prop::FormatRate, "{ \"min\": 8000, \"max\": 48000 }"),
            (Prop::FormatChannels, "[ 1, 2 ]"),
            (Prop::FormatChannelMap, "[ \"mono\" ]"),
        ]);
        let map = "mono".parse().expect("a map");
        assert_eq!(
            offered(&several, &device()),
            Some(ProgramFormat { format, rate_hz: 8000, map })
        );
    }

    #[test]
    fn an_offer_that_cannot_be_played_is_passed_over() {
        let compressed =
            FormatInfo { encoding: FormatEncoding::Ac3Iec61937, ..FormatInfo::default() };
        let nonsense = offer(&[(Prop::FormatRate, "[")]);
        let other_channels =
            offer(&[(Prop::FormatChannels, "1"), (Prop::FormatChannelMap, "\"stereo\"")]);
        let mut asked = PlaybackStreamParams {
            formats: vec![compressed, nonsense, other_channels],
            ..PlaybackStreamParams::default()
        };
        assert_eq!(chosen(&asked, &device()), Err(PulseError::NotSupported));
        asked.formats.push(offer(&[(Prop::FormatRate, "8000")]));
        assert_eq!(chosen(&asked, &device()).map(|program| program.rate_hz), Ok(8000));
    }

    #[test]
    fn flags_leave_values_to_the_device() {
        let format = pulseaudio::protocol::SampleFormat::U8;
        let mut asked = PlaybackStreamParams {
            sample_spec: SampleSpec { format, channels: 1, sample_rate: 8000 },
            channel_map: CodecMap::mono(),
            ..PlaybackStreamParams::default()
        };
        let program = chosen(&asked, &device()).expect("a format");
        assert_eq!((program.format, program.rate_hz), (SampleFormat::U8, 8000));
        asked.flags = StreamFlags {
            fix_format: true,
            fix_rate: true,
            fix_channels: true,
            ..StreamFlags::default()
        };
        assert_eq!(chosen(&asked, &device()), Ok(device()));
    }
}
