use dsp::Format;
use proptest::prelude::*;

use super::{Decoder, Encoder, SampleFormat};
use crate::{MAX_CHANNELS, PIECE_FRAMES};

/// Decodes bytes that are cut into pieces of the given lengths, and the rest at once.
fn decoded(format: SampleFormat, channels: usize, bytes: &[u8], cuts: &[usize]) -> Vec<Vec<f32>> {
    let mut decoder = Decoder::new(format, channels);
    let mut planes = vec![Vec::new(); channels];
    let mut rest = bytes;
    for length in cuts.iter().chain([&usize::MAX]) {
        let (piece, after) = rest.split_at(rest.len().min(*length));
        decoder.push(piece, |frames| {
            for (plane, frames) in planes.iter_mut().zip(frames) {
                plane.extend_from_slice(frames);
            }
        });
        rest = after;
    }
    assert_eq!(decoder.partial().len(), bytes.len() % decoder.frame_bytes());
    planes
}

fn encoded(format: SampleFormat, planes: &[Vec<f32>]) -> Vec<u8> {
    let planes: Vec<&[f32]> = planes.iter().map(Vec::as_slice).collect();
    let mut bytes = Vec::new();
    Encoder::new(format, planes.len()).push(&planes, |piece| bytes.extend_from_slice(piece));
    bytes
}

/// Returns what is left of bytes after there and back: all of them, but for what [`SampleFormat`]
/// excepts. `None` for samples that are not compared.
fn expected(format: SampleFormat, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut expected = bytes.to_vec();
    match format {
        SampleFormat::Linear(Format::S24Le) => {
            expected[3] = if expected[2] & 0x80 == 0 { 0 } else { 0xff };
        }
        SampleFormat::Linear(Format::S24Be) => {
            expected[0] = if expected[1] & 0x80 == 0 { 0 } else { 0xff };
        }
        SampleFormat::Linear(Format::S32Le | Format::S32Be) => return None,
        SampleFormat::Linear(Format::FloatLe | Format::FloatBe) => {
            let mut bytes: [u8; 4] = bytes.try_into().unwrap();
            if format == SampleFormat::Linear(Format::FloatBe) {
                bytes.reverse();
            }
            return (!f32::from_le_bytes(bytes).is_nan()).then_some(expected);
        }
        _ => {}
    }
    Some(expected)
}

proptest! {
    #[test]
    fn any_bytes_survive_there_and_back_however_they_are_cut(
        format in prop::sample::select(&SampleFormat::ALL[..]),
        channels in 1..=MAX_CHANNELS,
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        cuts in prop::collection::vec(0_usize..200, 0..30),
    ) {
        let planes = decoded(format, channels, &bytes, &cuts);
        let back = encoded(format, &planes);
        let size = format.bytes_per_sample();
        prop_assert_eq!(back.len(), bytes.len() / (channels * size) * channels * size);
        for (sample, back) in bytes.chunks_exact(size).zip(back.chunks_exact(size)) {
            if let Some(expected) = expected(format, sample) {
                prop_assert_eq!(back, &expected[..], "{:?} of {:?}", format, sample);
            }
        }
    }
}

#[test]
fn long_blocks_are_converted_in_pieces_without_a_seam() {
    let frames = 3 * PIECE_FRAMES + 7;
    for channels in [1, 2, 9, 32] {
        let bytes: Vec<u8> = (0..frames * channels * 3).map(|byte| (byte % 251) as u8).collect();
        let format = SampleFormat::Linear(Format::S24PackedLe);
        let mut lengths = Vec::new();
        Decoder::new(format, channels).push(&bytes, |planes| lengths.push(planes[0].len()));
        assert_eq!(lengths, [PIECE_FRAMES, PIECE_FRAMES, PIECE_FRAMES, 7]);
        assert!(encoded(format, &decoded(format, channels, &bytes, &[])) == bytes);
    }
}

#[test]
fn a_seek_forgets_half_a_frame() {
    let mut decoder = Decoder::new(SampleFormat::Linear(Format::S16Le), 2);
    let mut frames = Vec::new();
    decoder.push(&[1, 2, 3], |_| unreachable!("a frame has four bytes"));
    decoder.reset();
    decoder.push(&[0, 0x40, 0, 0xc0], |planes| frames.push([planes[0][0], planes[1][0]]));
    assert_eq!(frames, [[0.5, -0.5]]);
}

#[test]
fn samples_are_where_the_format_says() {
    for (format, bytes, samples) in [
        (SampleFormat::U8, &[0, 64, 128, 255][..], [-1.0, -0.5, 0.0, 127.0 / 128.0]),
        (
            SampleFormat::Linear(Format::S16Be),
            &[0x80, 0, 0xc0, 0, 0, 0, 0x7f, 0xff],
            [-1.0, -0.5, 0.0, 32767.0 / 32768.0],
        ),
    ] {
        let planes = decoded(format, 4, bytes, &[]);
        assert_eq!(planes.concat(), samples, "{format}");
        assert_eq!(encoded(format, &planes), bytes, "{format}");
    }
}

#[test]
fn eight_bits_are_rounded_and_clipped() {
    let nearly = 1.0 / 256.0;
    for (sample, code) in [
        (0.0, 128),
        (1.0, 255),
        (9.0, 255),
        (f32::INFINITY, 255),
        (-1.0, 0),
        (f32::NEG_INFINITY, 0),
        (f32::NAN, 128),
        (nearly, 128),
        (nearly * 1.01, 129),
        (-nearly * 1.01, 127),
        (3.0 * nearly, 130),
    ] {
        assert_eq!(encoded(SampleFormat::U8, &[vec![sample]]), [code], "{sample}");
    }
}

/// The decision values and the quantised values of one sign, in G.711's own units: tables 1a and
/// 2a, by their construction from segments of 16 steps.
struct G711Table {
    /// Where each step begins, and where the last ends.
    decisions: Vec<u32>,
    values: Vec<u32>,
}

/// Returns the table that begins with the given decision values and continues with segments of 16
/// steps, each twice as long as the ones before.
fn g711_table(first_steps: Vec<u32>, mut step: u32) -> G711Table {
    let mut decisions = first_steps;
    while decisions.len() < 129 {
        let start = decisions[decisions.len() - 1];
        decisions.extend((1..=16).map(|number| start + number * step));
        step *= 2;
    }
    let values = decisions.windows(2).map(|ends| u32::midpoint(ends[0], ends[1])).collect();
    G711Table { decisions, values }
}

/// Checks all codes of a format against its table; `code` gives the code of a value's number.
fn check(format: SampleFormat, table: &G711Table, full_scale: f32, code: fn(usize) -> u8) {
    assert_eq!((table.decisions.len(), table.values.len()), (129, 128));
    let in_g711 = |value: f32| value / full_scale;
    for (number, (value, ends)) in table.values.iter().zip(table.decisions.windows(2)).enumerate() {
        for (sign, bit) in [(1.0, 0), (-1.0, 0x80)] {
            let code = code(number) ^ bit;
            let sample = decoded(format, 1, &[code], &[])[0][0];
            assert_eq!(sample, sign * in_g711(*value as f32), "code {code:#x}");
            let (low, high) = (ends[0] as f32 + 0.001, ends[1] as f32 - 0.001);
            for magnitude in [low, *value as f32, high] {
                let sample = sign * in_g711(magnitude.max(f32::MIN_POSITIVE));
                let back = encoded(format, &[vec![sample]]);
                assert_eq!(back, [code], "{sign} * {magnitude}");
            }
        }
    }
    let beyond: Vec<f32> = vec![1.0, 7.0, f32::INFINITY, -1.0, f32::NEG_INFINITY, f32::NAN];
    let most = code(127);
    let expected = [most, most, most, most ^ 0x80, most ^ 0x80, code(0)];
    assert_eq!(encoded(format, &[beyond]), expected);
}

#[test]
fn a_law_is_the_table_of_g711() {
    let table = g711_table((0..=32).map(|number| 2 * number).collect(), 4);
    assert_eq!(table.decisions[128], 4096);
    check(SampleFormat::ALaw, &table, 4096.0, |number| (0x80 | number as u8) ^ 0x55);
}

#[test]
fn mu_law_is_the_table_of_g711() {
    let mut first = vec![0];
    first.extend((0..16).map(|number| 2 * number + 1));
    let mut table = g711_table(first, 4);
    // The value of the lowest step is zero itself.
    assert_eq!((table.values[0], table.decisions[128]), (0, 8159));
    table.values[0] = 0;
    check(SampleFormat::MuLaw, &table, 8192.0, |number| !(number as u8));
}

#[test]
fn formats_have_the_names_of_pulseaudio() {
    // What `pa_parse_sample_format` and `pa_sample_format_to_string` of libpulse 16.1 return.
    for (name, canonical) in [
        ("u8", "u8"),
        ("U8", "u8"),
        ("8", "u8"),
        ("s16", "s16le"),
        ("s16ne", "s16le"),
        ("s16re", "s16be"),
        ("S16LE", "s16le"),
        ("16", "s16le"),
        ("s24", "s24le"),
        ("s24re", "s24be"),
        ("s24-32", "s24-32le"),
        ("s24-32re", "s24-32be"),
        ("s32be", "s32be"),
        ("float", "float32le"),
        ("float32", "float32le"),
        ("float32re", "float32be"),
        ("alaw", "aLaw"),
        ("aLaw", "aLaw"),
        ("ulaw", "uLaw"),
        ("mulaw", "uLaw"),
    ] {
        let format: SampleFormat = name.parse().unwrap();
        assert_eq!(format.to_string(), canonical, "{name}");
    }
    for name in ["", "s16ce", "s24_32le", "u-law", "s8", "s24in32", "ne", "le", "s16 "] {
        assert!(name.parse::<SampleFormat>().is_err(), "{name}");
    }
    for format in SampleFormat::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
}

#[test]
fn stereo_of_16_bits_has_the_same_samples_as_each_channel_by_itself() {
    let codes = (0..=u16::MAX).flat_map(|code| [code, code.wrapping_mul(40_503)]);
    let bytes: Vec<u8> = codes.flat_map(u16::to_le_bytes).collect();
    let planes = decoded(SampleFormat::Linear(Format::S16Le), 2, &bytes, &[3, 4097]);
    for (channel, plane) in planes.iter().enumerate() {
        let mut alone = vec![f32::NAN; 1 << 16];
        dsp::decode(Format::S16Le, &bytes, &mut alone, channel, 2);
        assert!(alone.iter().map(|one| one.to_bits()).eq(plane.iter().map(|one| one.to_bits())));
    }
}
