//! Samples and channels in the protocol's words and in ours.

use convert::{ChannelMap, ChannelPosition as P, ProgramFormat, SampleFormat, Standard};
use pulseaudio::protocol::{self as codec, FormatEncoding, FormatInfo, Prop, Props, SampleSpec};

use super::properties::set;

/// Positions in the protocol's order, before and after the 32 auxiliary ones.
const BEFORE_AUX: [P; 12] = [
    P::Mono,
    P::FrontLeft,
    P::FrontRight,
    P::FrontCenter,
    P::RearCenter,
    P::RearLeft,
    P::RearRight,
    P::Lfe,
    P::FrontLeftOfCenter,
    P::FrontRightOfCenter,
    P::SideLeft,
    P::SideRight,
];
const AFTER_AUX: [P; 7] = [
    P::TopCenter,
    P::TopFrontLeft,
    P::TopFrontRight,
    P::TopFrontCenter,
    P::TopRearLeft,
    P::TopRearRight,
    P::TopRearCenter,
];
const AUX: u8 = 32;

/// Returns every position in the protocol's order.
fn positions() -> impl Iterator<Item = P> {
    BEFORE_AUX.into_iter().chain((0..AUX).map(P::Aux)).chain(AFTER_AUX)
}

/// Returns the samples that a program describes; `None` if the description makes no sense.
pub(crate) fn program(spec: &SampleSpec, map: &codec::ChannelMap) -> Option<ProgramFormat> {
    let format = *SampleFormat::ALL.get(usize::from(spec.format as u8))?;
    let map = own_map(map)?;
    let is_rate = (1..=convert::MAX_RATE_HZ).contains(&spec.sample_rate);
    let is_program = is_rate && map.channels() == usize::from(spec.channels);
    is_program.then_some(ProgramFormat { format, rate_hz: spec.sample_rate, map })
}

/// Returns a map of channels; `None` if it makes no sense.
pub(super) fn own_map(map: &codec::ChannelMap) -> Option<ChannelMap> {
    let own = |position| positions().nth(usize::from(position as u8));
    let own: Option<Vec<P>> = map.into_iter().map(own).collect();
    ChannelMap::new(&own?).ok()
}

/// Returns the protocol's description of samples.
pub(crate) fn spec(program: &ProgramFormat) -> SampleSpec {
    SampleSpec {
        format: format(program.format),
        channels: program.map.channels() as u8,
        sample_rate: program.rate_hz,
    }
}

/// Returns the protocol's format of samples.
fn format(own: SampleFormat) -> codec::SampleFormat {
    use codec::SampleFormat as F;
    const ALL: [F; 13] = [
        F::U8,
        F::Alaw,
        F::Ulaw,
        F::S16Le,
        F::S16Be,
        F::Float32Le,
        F::Float32Be,
        F::S32Le,
        F::S32Be,
        F::S24Le,
        F::S24Be,
        F::S24In32Le,
        F::S24In32Be,
    ];
    let number = SampleFormat::ALL.iter().position(|format| *format == own);
    number.map_or(F::Invalid, |number| ALL[number])
}

/// Returns the protocol's map of channels.
pub(crate) fn map(own: &ChannelMap) -> codec::ChannelMap {
    codec::ChannelMap::new(own.positions().iter().map(|position| {
        let number = positions().position(|known| known == *position);
        number.and_then(codec_position).unwrap_or_default()
    }))
}

/// Returns the protocol's position of this number, by way of its bytes.
fn codec_position(number: usize) -> Option<codec::ChannelPosition> {
    let bytes = [b'm', 1, number as u8];
    let mut rest = &bytes[..];
    let map: codec::ChannelMap =
        codec::TagStructReader::new(&mut rest, codec::MAX_VERSION).read().ok()?;
    (&map).into_iter().next()
}

/// Returns the map of a device's channels: ALSA's order.
pub(super) fn device_map(channels: u32) -> Option<ChannelMap> {
    ChannelMap::extended(Standard::Alsa, channels as usize)
}

/// Returns the samples of a device: floating point.
pub(super) fn floating(rate_hz: u32, map: ChannelMap) -> ProgramFormat {
    ProgramFormat { format: SampleFormat::Linear(dsp::Format::FloatLe), rate_hz, map }
}

/// Returns the description of samples that replaces all four values of the older one.
pub(super) fn info(program: &ProgramFormat) -> FormatInfo {
    let mut props = Props::new();
    let values = [
        (Prop::FormatSampleFormat, format!("\"{}\"", program.format)),
        (Prop::FormatRate, program.rate_hz.to_string()),
        (Prop::FormatChannels, program.map.channels().to_string()),
        (Prop::FormatChannelMap, format!("\"{}\"", program.map)),
    ];
    values.iter().for_each(|(key, value)| set(&mut props, key.to_c_str(), value));
    FormatInfo { encoding: FormatEncoding::Pcm, props }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_and_position_is_the_same_in_both_words() {
        for own in SampleFormat::ALL {
            let all: Vec<P> = positions().take(32).collect();
            let map = ChannelMap::new(&all).expect("32 channels");
            let before = ProgramFormat { format: own, rate_hz: 44_100, map };
            let codec_map = super::map(&map);
            assert_eq!(program(&spec(&before), &codec_map), Some(before));
        }
        let rest: Vec<P> = positions().skip(32).collect();
        let map = ChannelMap::new(&rest).expect("19 channels");
        let names: Vec<u8> = (&super::map(&map)).into_iter().map(|at| at as u8).collect();
        assert_eq!(names, (32..51).collect::<Vec<u8>>());
    }

    #[test]
    fn a_description_that_makes_no_sense_is_none() {
        let right =
            SampleSpec { format: codec::SampleFormat::S16Le, channels: 2, sample_rate: 8000 };
        let stereo = codec::ChannelMap::stereo();
        assert!(program(&right, &stereo).is_some());
        for wrong in [
            SampleSpec { channels: 1, ..right },
            SampleSpec { sample_rate: 0, ..right },
            SampleSpec { sample_rate: 768_001, ..right },
            SampleSpec { format: codec::SampleFormat::Invalid, ..right },
        ] {
            assert_eq!(program(&wrong, &stereo), None, "{wrong:?}");
        }
        assert_eq!(
            program(&SampleSpec { channels: 0, ..right }, &codec::ChannelMap::empty()),
            None
        );
    }
}
