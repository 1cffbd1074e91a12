use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::{comparable, samples};
use crate::kernels::convert as baseline;
use crate::kernels::weave::{self, Baseline};
use crate::{Format, LANES, PeerFrames16, decode, decode_frames, deinterleave, encode, interleave};

/// Bits of an integer format; `None` for floating point.
fn bits(format: Format) -> Option<u32> {
    match format {
        Format::S16Le | Format::S16Be => Some(16),
        Format::S24Le | Format::S24Be | Format::S24PackedLe | Format::S24PackedBe => Some(24),
        Format::S32Le | Format::S32Be => Some(32),
        Format::FloatLe | Format::FloatBe => None,
    }
}

fn is_big_endian(format: Format) -> bool {
    matches!(
        format,
        Format::S16Be | Format::S24Be | Format::S24PackedBe | Format::S32Be | Format::FloatBe
    )
}

/// Defines encoding through the standard library: round to nearest with ties to even, then clip.
fn encoded(format: Format, sample: f32) -> Vec<u8> {
    let value = match bits(format) {
        None => sample.to_bits(),
        Some(bits) => {
            let full_scale = 2_f64.powi(bits as i32 - 1);
            let rounded = (f64::from(sample) * full_scale).round_ties_even();
            rounded.clamp(-full_scale, full_scale - 1.0) as i32 as u32
        }
    };
    let mut bytes = value.to_le_bytes()[..format.bytes_per_sample()].to_vec();
    if is_big_endian(format) {
        bytes.reverse();
    }
    bytes
}

/// Defines decoding through 64-bit arithmetic.
fn decoded(format: Format, bytes: &[u8]) -> f32 {
    let mut bytes = bytes.to_vec();
    if is_big_endian(format) {
        bytes.reverse();
    }
    bytes.resize(4, 0);
    let raw = u32::from_le_bytes(bytes.try_into().unwrap());
    match bits(format) {
        None => f32::from_bits(raw),
        Some(bits) => {
            let modulus = 1_i64 << bits;
            let unsigned = i64::from(raw) % modulus;
            let value = if unsigned >= modulus / 2 { unsigned - modulus } else { unsigned };
            (value as f64 / (modulus / 2) as f64) as f32
        }
    }
}

fn format() -> impl Strategy<Value = Format> {
    prop::sample::select(&Format::ALL[..])
}

/// A channel and the number of channels, mostly valid.
fn channel() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![3 => Just((0, 1)), 6 => (2_usize..9).prop_flat_map(|n| (0..n, Just(n))), 1 => (0_usize..4, 0_usize..4)]
}

/// The first of eight adjacent channels and the number of all channels, mostly valid.
fn side_by_side() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![
        1 => Just((0, 8)),
        6 => (8_usize..20).prop_flat_map(|n| (0..=n - 8, Just(n))),
        1 => (0_usize..20, 0_usize..20),
    ]
}

proptest! {
    #[test]
    fn eight_channels_at_a_time_are_what_they_are_one_by_one(
        format in format(),
        planes in prop::collection::vec(samples(), LANES),
        (first, channels) in side_by_side(),
        bytes in prop::collection::vec(any::<u8>(), 0..8000),
    ) {
        let planes: [&[f32]; LANES] = std::array::from_fn(|lane| &planes[lane].0[planes[lane].1..]);
        let shortest = planes.iter().map(|plane| plane.len()).min().unwrap();
        let is_there = first + LANES <= channels;
        let [mut together, mut plain, mut one_by_one] = [(); 3].map(|()| bytes.clone());
        interleave(format, planes, &mut together, first, channels);
        weave::interleave::<Baseline>(format, planes, &mut plain, first, channels);
        for (lane, plane) in planes.iter().enumerate().filter(|_| is_there) {
            encode(format, &plane[..shortest], &mut one_by_one, first + lane, channels);
        }
        prop_assert_eq!(&together, &one_by_one);
        prop_assert_eq!(&plain, &one_by_one);

        let [mut together, mut plain, mut one_by_one] = [(); 3].map(|()| planes.map(<[f32]>::to_vec));
        deinterleave(format, &bytes, together.each_mut().map(Vec::as_mut_slice), first, channels);
        let into = plain.each_mut().map(Vec::as_mut_slice);
        weave::deinterleave::<Baseline>(format, &bytes, into, first, channels);
        for (lane, plane) in one_by_one.iter_mut().enumerate().filter(|_| is_there) {
            decode(format, &bytes, &mut plane[..shortest], first + lane, channels);
        }
        for ((together, plain), one_by_one) in together.iter().zip(&plain).zip(&one_by_one) {
            prop_assert_eq!(comparable(together), comparable(one_by_one));
            prop_assert_eq!(comparable(plain), comparable(one_by_one));
        }
    }

    #[test]
    fn encoding_follows_its_definition_in_one_channel(
        format in format(),
        (source, from) in samples(),
        (channel, channels) in channel(),
        into in prop::collection::vec(any::<u8>(), 0..4000),
        at in 0_usize..8,
    ) {
        let (source, at) = (&source[from..], at.min(into.len()));
        let mut expected = into.clone();
        if channel < channels {
            let size = format.bytes_per_sample();
            for (frame, sample) in expected[at..].chunks_exact_mut(size * channels).zip(source) {
                if bits(format).is_none() || !sample.is_nan() {
                    frame[channel * size..][..size].copy_from_slice(&encoded(format, *sample));
                } else {
                    frame[channel * size..][..size].fill(0);
                }
            }
        }
        let (mut chosen, mut plain) = (into.clone(), into);
        encode(format, source, &mut chosen[at..], channel, channels);
        baseline::encode(format, source, &mut plain[at..], channel, channels);
        prop_assert_eq!(&chosen, &expected);
        prop_assert_eq!(&plain, &expected);
    }

    #[test]
    fn decoding_follows_its_definition_in_one_channel(
        format in format(),
        source in prop::collection::vec(any::<u8>(), 0..4000),
        at in 0_usize..8,
        (channel, channels) in channel(),
        (into, to) in samples(),
    ) {
        let source = &source[at.min(source.len())..];
        let mut expected = into.clone();
        if channel < channels {
            let size = format.bytes_per_sample();
            for (sample, frame) in expected[to..].iter_mut().zip(source.chunks_exact(size * channels)) {
                *sample = decoded(format, &frame[channel * size..][..size]);
            }
        }
        let (mut chosen, mut plain) = (into.clone(), into);
        decode(format, source, &mut chosen[to..], channel, channels);
        baseline::decode(format, source, &mut plain[to..], channel, channels);
        prop_assert_eq!(comparable(&chosen), comparable(&expected));
        prop_assert_eq!(comparable(&plain), comparable(&expected));
    }
}

#[test]
fn every_16_bit_value_survives_there_and_back_in_every_format() {
    let source: Vec<f32> = (i16::MIN..=i16::MAX).map(|value| f32::from(value) / 32768.0).collect();
    for format in Format::ALL {
        let mut bytes = vec![0; source.len() * format.bytes_per_sample()];
        let mut back = vec![f32::NAN; source.len()];
        encode(format, &source, &mut bytes, 0, 1);
        decode(format, &bytes, &mut back, 0, 1);
        assert!(back == source, "{format:?}");
    }
}

#[test]
fn every_24_bit_value_survives_there_and_back() {
    for format in [Format::S24Le, Format::S24PackedBe, Format::S32Le] {
        for start in (-0x80_0000..0x80_0000).step_by(0x1_0000) {
            let source: Vec<f32> =
                (start..start + 0x1_0000).map(|value: i32| value as f32 / 8_388_608.0).collect();
            let mut bytes = vec![0; source.len() * format.bytes_per_sample()];
            let mut back = vec![f32::NAN; source.len()];
            encode(format, &source, &mut bytes, 0, 1);
            decode(format, &bytes, &mut back, 0, 1);
            assert!(back == source, "{format:?} from {start}");
        }
    }
}

#[test]
fn bytes_are_where_the_format_says() {
    for (format, half, below_zero) in [
        (Format::S16Le, &[0x00, 0x40][..], &[0x00, 0x80][..]),
        (Format::S16Be, &[0x40, 0x00], &[0x80, 0x00]),
        (Format::S24Le, &[0x00, 0x00, 0x40, 0x00], &[0x00, 0x00, 0x80, 0xff]),
        (Format::S24Be, &[0x00, 0x40, 0x00, 0x00], &[0xff, 0x80, 0x00, 0x00]),
        (Format::S24PackedLe, &[0x00, 0x00, 0x40], &[0x00, 0x00, 0x80]),
        (Format::S24PackedBe, &[0x40, 0x00, 0x00], &[0x80, 0x00, 0x00]),
        (Format::S32Le, &[0x00, 0x00, 0x00, 0x40], &[0x00, 0x00, 0x00, 0x80]),
        (Format::S32Be, &[0x40, 0x00, 0x00, 0x00], &[0x80, 0x00, 0x00, 0x00]),
        (Format::FloatLe, &[0x00, 0x00, 0x00, 0x3f], &[0x00, 0x00, 0x80, 0xbf]),
        (Format::FloatBe, &[0x3f, 0x00, 0x00, 0x00], &[0xbf, 0x80, 0x00, 0x00]),
    ] {
        for (sample, expected) in [(0.5, half), (-1.0, below_zero)] {
            let mut bytes = vec![0xee; format.bytes_per_sample()];
            encode(format, &[sample], &mut bytes, 0, 1);
            assert_eq!(bytes, expected, "{format:?} of {sample}");
        }
    }
}

#[test]
fn samples_beyond_full_scale_clip() {
    for (case, sample, expected) in [
        ("full scale", 1.0, i32::MAX),
        ("above", 7.5, i32::MAX),
        ("infinity", f32::INFINITY, i32::MAX),
        ("negative full scale", -1.0, i32::MIN),
        ("below", f32::MIN, i32::MIN),
        ("negative infinity", f32::NEG_INFINITY, i32::MIN),
        ("NaN", f32::NAN, 0),
        ("a denormal", 1e-40, 0),
    ] {
        let mut bytes = [0xee; 4];
        encode(Format::S32Le, &[sample], &mut bytes, 0, 1);
        assert_eq!(i32::from_le_bytes(bytes), expected, "{case}");
    }
}

#[test]
fn the_unused_byte_of_24_bits_in_32_is_ignored_when_read() {
    let mut sample = [0.0];
    decode(Format::S24Le, &[0x00, 0x00, 0x40, 0xa5], &mut sample, 0, 1);
    assert_eq!(sample, [0.5]);
    decode(Format::S24Be, &[0xa5, 0x40, 0x00, 0x00], &mut sample, 0, 1);
    assert_eq!(sample, [0.5]);
}

proptest! {
    #[test]
    fn frames_of_a_peer_are_decoded_as_private_ones_are(
        channels in 1..=2_usize,
        source in prop::collection::vec(any::<i16>(), 0..3000),
        room in 0..1600_usize,
        channel in 0..4_usize,
    ) {
        let bytes: Vec<u8> = source.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let mut expected = vec![0.0; room];
        decode(Format::S16Le, &bytes, &mut expected, channel, channels);
        let mut into = vec![7.0; room];
        decode_frames(PeerFrames16::from_slice(&source, channels == 2), &mut into, channel);
        prop_assert_eq!(comparable(&into), comparable(&expected));
    }
}
