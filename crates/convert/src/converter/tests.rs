use dsp::Format;
use proptest::prelude::*;

use super::{PlaybackConverter, ProgramFormat, RecordConverter, StreamFormat};
use crate::resampler::resampler;
use crate::{
    ConvertError, Decoder, Encoder, Filter, MAX_CHANNELS, Matrix, Mixing, Options, PIECE_FRAMES,
    SampleFormat,
};

const S16: SampleFormat = SampleFormat::Linear(Format::S16Le);
const FLOAT: SampleFormat = SampleFormat::Linear(Format::FloatLe);

const MAPS: [&str; 6] = ["mono", "stereo", "surround-40", "surround-51", "surround-71", "aux0,lfe"];
const RATES: [u32; 5] = [8_000, 44_100, 44_101, 48_000, 96_000];

fn program(format: SampleFormat, rate_hz: u32, map: &str) -> ProgramFormat {
    ProgramFormat { format, rate_hz, map: map.parse().unwrap() }
}

fn stream(rate_hz: u32, map: &str) -> StreamFormat {
    StreamFormat { rate_hz, map: map.parse().unwrap() }
}

/// Returns bytes without a pattern.
fn noise(bytes: usize) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53) as u8;
    (0..bytes as u64).map(byte).collect()
}

/// The frames of a stream that were passed on.
#[derive(Debug, Clone, Default)]
struct Frames(Vec<Vec<f32>>);

/// Equal bits; all NaNs are equal.
impl PartialEq for Frames {
    fn eq(&self, other: &Self) -> bool {
        let equals =
            |(a, b): (&f32, &f32)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        let mut planes = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len()
            && planes.all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(equals))
    }
}

impl Frames {
    fn keep(&mut self, planes: &[&[f32]]) {
        assert!(planes.iter().all(|plane| plane.len() == planes[0].len()));
        assert!((1..=PIECE_FRAMES).contains(&planes[0].len()));
        self.0.resize(planes.len(), Vec::new());
        for (all, plane) in self.0.iter_mut().zip(planes) {
            all.extend_from_slice(plane);
        }
    }

    fn len(&self) -> usize {
        self.0.first().map_or(0, Vec::len)
    }

    /// The frames from one on.
    fn from(&self, first: usize) -> Self {
        Self(self.0.iter().map(|plane| plane[first..].to_vec()).collect())
    }
}

fn push(converter: &mut PlaybackConverter, bytes: &[u8]) -> Frames {
    let mut frames = Frames::default();
    converter.push(bytes, |planes| frames.keep(planes));
    frames
}

fn flush(converter: &mut PlaybackConverter) -> Frames {
    let mut frames = Frames::default();
    converter.flush(|planes| frames.keep(planes));
    frames
}

/// Pushes and flushes.
fn converted(converter: &mut PlaybackConverter, bytes: &[u8]) -> Frames {
    let mut frames = Frames::default();
    converter.push(bytes, |planes| frames.keep(planes));
    converter.flush(|planes| frames.keep(planes));
    frames
}

fn any_program() -> impl Strategy<Value = ProgramFormat> {
    (
        prop::sample::select(&SampleFormat::ALL[..]),
        prop::sample::select(&RATES[..]),
        prop::sample::select(&MAPS[..]),
    )
        .prop_map(|(format, rate_hz, map)| program(format, rate_hz, map))
}

fn any_stream() -> impl Strategy<Value = StreamFormat> {
    (prop::sample::select(&RATES[..]), prop::sample::select(&MAPS[..]))
        .prop_map(|(rate_hz, map)| stream(rate_hz, map))
}

fn any_options() -> impl Strategy<Value = Options> {
    (
        prop::sample::select(&[Mixing::Mixed, Mixing::ByPosition, Mixing::ByNumber][..]),
        prop::sample::select(&[Filter::Prompt, Filter::Short, Filter::Medium, Filter::Long][..]),
    )
        .prop_map(|(mixing, filter)| Options { mixing, filter })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_conversion_is_its_steps_one_by_one(
        program in any_program(),
        stream in any_stream(),
        options in any_options(),
        frames in 0_usize..4_000,
    ) {
        let mut decoded = Frames::default();
        let mut decoder = Decoder::new(program.format, program.map.channels());
        // Levels of sound, whatever the format.
        let level = |frame: usize| noise(frame + 1)[frame] as f32 / 256.0 - 0.5;
        let plane = |channel| (0..frames).map(|at| level((at * 7 + channel * 3) % 997)).collect();
        let planes: Vec<Vec<f32>> = (0..program.map.channels()).map(plane).collect();
        let planes: Vec<&[f32]> = planes.iter().map(Vec::as_slice).collect();
        let mut bytes = Vec::new();
        Encoder::new(program.format, planes.len()).push(&planes, |piece| bytes.extend(piece));
        decoder.push(&bytes, |planes| decoded.keep(planes));
        decoded.0.resize(program.map.channels(), Vec::new());

        let resampled = |plane: &Vec<f32>| {
            if program.rate_hz == stream.rate_hz {
                return plane.clone();
            }
            let mut resampled = Frames(vec![Vec::new()]);
            let mut resampler =
                resampler(1, program.rate_hz, stream.rate_hz, options.filter).unwrap();
            resampler.push(&[plane], &mut |planes| resampled.keep(planes));
            resampler.flush(&mut |planes| resampled.keep(planes));
            resampled.0.remove(0)
        };
        let resampled: Vec<Vec<f32>> = decoded.0.iter().map(resampled).collect();
        let matrix = Matrix::new(&program.map, &stream.map, options.mixing);

        let mut converter = PlaybackConverter::new(&program, &stream, options).unwrap();
        let converted = converted(&mut converter, &bytes);
        prop_assert_eq!(converted.len(), resampled[0].len());
        for (sink, plane) in converted.0.iter().enumerate() {
            for (at, sample) in plane.iter().enumerate() {
                let products = matrix.row(sink).iter().zip(&resampled);
                let expected: f32 = products.map(|(factor, plane)| factor * plane[at]).sum();
                prop_assert!((sample - expected).abs() < 1e-5, "{} is not {}", sample, expected);
            }
        }
    }

    #[test]
    fn bytes_may_come_in_any_pieces_and_be_counted_before(
        program in any_program(),
        stream in any_stream(),
        options in any_options(),
        length in 0_usize..60_000,
        cuts in prop::collection::vec((any::<bool>(), 0_u64..3_000), 0..20),
    ) {
        let bytes = noise(length);
        let mut converter = PlaybackConverter::new(&program, &stream, options).unwrap();
        let whole = push(&mut converter, &bytes);
        let held = converter.held_frames();
        prop_assert_eq!(converter.position(), whole.len() as u64);
        let rest = flush(&mut converter);
        prop_assert_eq!(rest.len() as u64, held);
        let frame_bytes = program.map.channels() * program.format.bytes_per_sample();
        let exact = (length / frame_bytes) as u64 * u64::from(stream.rate_hz);
        prop_assert_eq!((whole.len() + rest.len()) as u64, exact.div_ceil(program.rate_hz.into()));

        let (mut cut, mut left) = (Frames::default(), &bytes[..]);
        for (is_most, frames) in cuts {
            let (most, fewest) = (converter.most_bytes(frames), converter.fewest_bytes(frames + 1));
            prop_assert_eq!(most + 1, fewest);
            let count = if is_most { most } else { fewest };
            let is_complete = count <= left.len() as u64;
            let (piece, after) = left.split_at((count as usize).min(left.len()));
            let before = cut.len();
            converter.push(piece, |planes| cut.keep(planes));
            let made = (cut.len() - before) as u64;
            prop_assert!(made <= frames || !is_most);
            prop_assert!(made > frames || is_most || !is_complete);
            prop_assert!(converter.held_frames() <= converter.latency_frames());
            left = after;
        }
        converter.push(left, |planes| cut.keep(planes));
        prop_assert_eq!(&cut, &whole);
    }

    #[test]
    fn frames_are_decoded_in_place_as_they_are_in_pieces(
        format in prop::sample::select(&SampleFormat::ALL[..]),
        map in prop::sample::select(&MAPS[..]),
        length in 0_usize..20_000,
        begun in 0_usize..10,
        rooms in prop::collection::vec(0_usize..3_000, 1..8),
    ) {
        let (program, stream) = (program(format, 48_000, map), stream(48_000, map));
        let channels = program.map.channels();
        let frame_bytes = channels * format.bytes_per_sample();
        let bytes = noise(length);
        let mut converter =
            PlaybackConverter::new(&program, &stream, Options::default()).unwrap();
        let expected = push(&mut converter, &bytes);
        converter.reset();
        // An incomplete frame has to be completed first.
        let (first, mut rest) = bytes.split_at(begun.min(length));
        let mut decoded = push(&mut converter, first);
        decoded.0.resize(channels, Vec::new());
        for room in rooms {
            let mut planes = vec![vec![0.0; room]; channels];
            let mut into: Vec<&mut [f32]> = planes.iter_mut().map(|plane| &mut **plane).collect();
            let (taken, frames) = converter.decode_into(rest, &mut into);
            let is_whole = first.len() % frame_bytes == 0;
            let possible = room.min(rest.len() / frame_bytes);
            prop_assert_eq!(frames, if is_whole { possible } else { 0 });
            prop_assert_eq!(taken, frames * frame_bytes);
            for (all, plane) in decoded.0.iter_mut().zip(&planes) {
                all.extend_from_slice(&plane[..frames]);
            }
            rest = &rest[taken..];
            prop_assert_eq!(converter.position(), decoded.len() as u64);
        }
        converter.push(rest, |planes| decoded.keep(planes));
        decoded.0.truncate(expected.0.len());
        prop_assert_eq!(decoded, expected);
    }

    #[test]
    fn frames_are_copied_as_they_are_where_nothing_changes_them(
        format in prop::sample::select(&[
            SampleFormat::Linear(dsp::Format::S16Le),
            SampleFormat::Linear(dsp::Format::S16Le),
            SampleFormat::Linear(dsp::Format::S16Be),
            SampleFormat::U8,
        ][..]),
        maps in prop::sample::select(&[("stereo", "stereo"), ("mono", "stereo")][..]),
        length in 0_usize..2_000,
        begun in 0_usize..10,
        room in 0_usize..2_000,
    ) {
        let (program, stream) = (program(format, 48_000, maps.0), stream(48_000, maps.1));
        let frame_bytes = program.map.channels() * format.bytes_per_sample();
        let bytes = noise(length);
        let mut converter =
            PlaybackConverter::new(&program, &stream, Options::default()).unwrap();
        let (first, rest) = bytes.split_at(begun.min(length));
        push(&mut converter, first);
        let before = converter.position();
        let mut into = vec![0; room];
        let copy = |room: &mut [u8]| room.copy_from_slice(&rest[..room.len()]);
        let taken = converter.copy_16(rest.len(), &mut into, copy);
        let is_16 = format == SampleFormat::Linear(dsp::Format::S16Le);
        let is_possible = is_16 && maps.0 == maps.1 && first.len() % frame_bytes == 0;
        prop_assert_eq!(converter.only_decodes(), program.is_unchanged_on(&stream, Mixing::Mixed));
        let frames = if is_possible { room.min(rest.len()) / frame_bytes } else { 0 };
        prop_assert_eq!(taken, frames * frame_bytes);
        prop_assert_eq!(&into[..taken], &rest[..taken]);
        prop_assert!(into[taken..].iter().all(|byte| *byte == 0));
        prop_assert_eq!(converter.position(), before + frames as u64);
    }

    #[test]
    fn a_seek_gives_the_bits_of_the_whole(
        program in any_program(),
        stream in any_stream(),
        options in any_options(),
        length in 1_000_usize..60_000,
        part in 0.0..1.0,
    ) {
        let bytes = noise(length);
        let mut converter = PlaybackConverter::new(&program, &stream, options).unwrap();
        let whole = converted(&mut converter, &bytes);
        let position = (whole.len() as f64 * part) as usize;
        // What was pushed before, and half a frame, leave nothing behind.
        push(&mut converter, &noise(12_345));
        let from = converter.start_at(position as u64) as usize;
        prop_assert_eq!(converter.position(), position as u64);
        let frame_bytes = program.map.channels() * program.format.bytes_per_sample();
        let again = converted(&mut converter, &bytes[from * frame_bytes..]);
        prop_assert_eq!(again, whole.from(position));
    }
}

#[test]
fn equal_rates_and_maps_change_no_bit() {
    for map in ["mono", "stereo", "surround-71"] {
        for format in [S16, SampleFormat::Linear(Format::S24PackedBe), SampleFormat::U8] {
            let (program, stream) = (program(format, 48_000, map), stream(48_000, map));
            let options = Options::default();
            let bytes = noise(5_000 * program.map.channels() * format.bytes_per_sample());
            let mut playback = PlaybackConverter::new(&program, &stream, options).unwrap();
            let mut record = RecordConverter::new(&stream, &program, options).unwrap();
            assert_eq!((playback.latency_frames(), record.latency_frames()), (0, 0));
            let mut back: Vec<u8> = Vec::new();
            playback
                .push(&bytes, |planes| record.push(planes, |piece| back.extend_from_slice(piece)));
            assert!(back == bytes, "{format} {map}");
        }
    }
}

#[test]
fn the_latency_is_the_most_that_is_ever_held() {
    for (from_hz, to_hz) in [(44_100, 48_000), (48_000, 44_100), (8_000, 48_000), (96_000, 48_000)]
    {
        for filter in [Filter::Prompt, Filter::Short, Filter::Medium] {
            let options = Options { filter, ..Options::default() };
            let program = program(FLOAT, from_hz, "mono");
            let mut converter =
                PlaybackConverter::new(&program, &stream(to_hz, "mono"), options).unwrap();
            let mut made = 0;
            let held = (1..20_000_u64).map(|taken| {
                converter.push(&[0; 4], |planes| made += planes[0].len() as u64);
                let all = (taken * u64::from(to_hz)).div_ceil(from_hz.into());
                assert_eq!(converter.held_frames(), all - made);
                all - made
            });
            let most = held.max().unwrap();
            assert_eq!(converter.latency_frames(), most, "{from_hz} -> {to_hz} {filter:?}");
        }
    }
}

#[test]
fn rates_with_little_in_common_are_not_later_than_others() {
    for from_hz in [44_100, 44_056, 44_101, 47_952, 22_255] {
        for (filter, frames) in [(Filter::Short, 256), (Filter::Medium, 512), (Filter::Long, 2048)]
        {
            let options = Options { filter, ..Options::default() };
            let (program, stream) = (program(S16, from_hz, "mono"), stream(48_000, "mono"));
            let converter = PlaybackConverter::new(&program, &stream, options).unwrap();
            // A block of four times the filter, and half of it.
            let most = frames * 6 * 48_000 / u64::from(from_hz);
            let latency = converter.latency_frames();
            assert!(latency <= most, "{from_hz} Hz {filter:?}: {latency} frames");
        }
    }
}

#[test]
fn a_recording_is_what_playback_is_the_other_way_round() {
    let (device, wanted) = (stream(48_000, "surround-51"), program(FLOAT, 44_100, "stereo"));
    let same = program(FLOAT, device.rate_hz, "surround-51");
    let options = Options::default();
    let bytes: Vec<u8> = (0..60_000)
        .flat_map(|at| ((at * 7919 % 1000) as f32 / 1000.0 - 0.5).to_le_bytes())
        .collect();
    let target = StreamFormat { rate_hz: wanted.rate_hz, map: wanted.map };
    let mut playback = PlaybackConverter::new(&same, &target, options).unwrap();
    let expected = converted(&mut playback, &bytes);

    let mut record = RecordConverter::new(&device, &wanted, options).unwrap();
    let mut recorded = Vec::new();
    Decoder::new(FLOAT, 6).push(&bytes, |planes| {
        record.push(planes, |piece| recorded.extend_from_slice(piece));
    });
    assert_eq!(record.latency_frames(), playback.latency_frames());
    let (before, held) = (recorded.len(), record.held_frames());
    record.flush(|piece| recorded.extend_from_slice(piece));
    assert_eq!((recorded.len() - before) as u64, held * 8);
    let mut frames = Frames::default();
    Decoder::new(FLOAT, 2).push(&recorded, |planes| frames.keep(planes));
    assert!(frames == expected);
    // A reset leaves nothing behind.
    let silence = [0.0; 600];
    record.push(&[&[0.5; 600][..]; 6], |_| {});
    record.reset();
    let mut level = 0.0_f32;
    for _ in 0..4 {
        record.push(&[&silence[..]; 6], |piece| {
            let samples = piece.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
            level = samples.map(f32::abs).fold(level, f32::max);
        });
    }
    assert_eq!(level, 0.0);
    record.push(&[&silence[..]; 5], |_| unreachable!("five channels are not six"));
}

#[test]
fn what_is_no_sound_does_no_harm_to_a_resampler() {
    let (program, stream) = (program(FLOAT, 44_100, "mono"), stream(48_000, "mono"));
    let samples: Vec<f32> = (0..10_000).map(|at| (at as f32 * 0.01).sin()).collect();
    let bytes = |replacement: f32| -> Vec<u8> {
        let mut samples = samples.clone();
        samples[3_000] = replacement;
        samples.into_iter().flat_map(f32::to_le_bytes).collect()
    };
    for filter in [Filter::Prompt, Filter::Medium] {
        let options = Options { filter, ..Options::default() };
        let mut converter = PlaybackConverter::new(&program, &stream, options).unwrap();
        let expected = converted(&mut converter, &bytes(0.0));
        for hostile in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(converted(&mut converter, &bytes(hostile)) == expected, "{hostile}");
        }
        // What is beyond any sound stays where it is, and stops nothing.
        for hostile in [f32::MAX, f32::MIN, 1e30] {
            let shaken = converted(&mut converter, &bytes(hostile));
            assert!(shaken != expected && shaken.from(6_000) == expected.from(6_000), "{hostile}");
        }
        let all = [f32::MAX, f32::MIN].map(f32::to_le_bytes).as_flattened().repeat(5_000);
        converter.push(&all, |planes| assert!(planes[0].iter().all(|sample| sample.is_finite())));
        converter.reset();
        assert!(converted(&mut converter, &bytes(0.0)) == expected);
    }
}

#[test]
fn impossible_rates_are_refused_in_both_directions() {
    let options = Options::default();
    for (ours, theirs, error) in [
        (0, 48_000, ConvertError::Rate(0)),
        (0, 0, ConvertError::Rate(0)),
        (48_000, 1_000_000, ConvertError::Rate(1_000_000)),
        (1, 48_000, ConvertError::Ratio(1, 48_000)),
    ] {
        let (program, stream) = (program(S16, ours, "mono"), stream(theirs, "mono"));
        let playback = PlaybackConverter::new(&program, &stream, options).err();
        assert_eq!(playback, Some(error.clone()));
        let record = RecordConverter::new(&stream, &program, options).err();
        assert!(record.is_some(), "{error}");
    }
}

#[test]
fn the_most_channels_that_there_are_can_be_resampled() {
    let map = ["aux0"; MAX_CHANNELS].join(",");
    let (program, stream) = (program(S16, 44_100, &map), stream(48_000, &map));
    let mut converter = PlaybackConverter::new(&program, &stream, Options::default()).unwrap();
    let frames = converted(&mut converter, &noise(64 * 1_000));
    assert_eq!((frames.0.len(), frames.len()), (MAX_CHANNELS, 1_089));
}

#[test]
fn a_stream_has_the_channels_of_a_program_where_nothing_is_added_to_them() {
    let on = |map: &str, device| {
        program(S16, 44_100, map).channels_on(&stream(48_000, device), Mixing::Mixed)
    };
    assert_eq!(on("stereo", "stereo"), Some(vec![0, 1]));
    assert_eq!(on("stereo", "surround-51"), Some(vec![0, 1]));
    assert_eq!(on("front-right,front-left", "stereo"), Some(vec![1, 0]));
    assert_eq!(on("mono", "stereo"), Some(vec![0]));
    assert_eq!(on("stereo", "mono"), None, "both are in one");
    assert_eq!(on("surround-51", "stereo"), None);
}
