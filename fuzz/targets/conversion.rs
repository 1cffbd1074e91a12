//! Any bytes in any format, at any rate, in pieces of any length, and a seek: there are as many
//! frames as there should be, all that is resampled is a number, and the second time gives the same
//! bits.
#![no_main]

use convert::{
    ChannelMap, Filter, Mixing, Options, PlaybackConverter, ProgramFormat, SampleFormat, Standard,
    StreamFormat,
};

const FILTERS: [Filter; 4] = [Filter::Prompt, Filter::Short, Filter::Medium, Filter::Long];
const MIXINGS: [Mixing; 3] = [Mixing::Mixed, Mixing::ByPosition, Mixing::ByNumber];
/// Rates that are tried more often than others.
const RATES: [u32; 6] = [8_000, 44_100, 44_101, 48_000, 96_000, 768_000];

fn rate(word: [u8; 2]) -> u32 {
    let others = u32::from(u16::from_le_bytes(word)) * 12;
    RATES.get(usize::from(word[0] % 8)).copied().unwrap_or(others)
}

fn map([standard, channels]: [u8; 2]) -> Option<ChannelMap> {
    let standard = Standard::ALL[usize::from(standard) % Standard::ALL.len()];
    ChannelMap::extended(standard, usize::from(channels % 10))
}

/// The bits of all channels, one after the other.
fn push(converter: &mut PlaybackConverter, bytes: &[u8], piece: usize) -> Vec<Vec<u32>> {
    let mut made: Vec<Vec<u32>> = Vec::new();
    let mut keep = |planes: &[&[f32]]| {
        made.resize(planes.len(), Vec::new());
        for (all, plane) in made.iter_mut().zip(planes) {
            all.extend(plane.iter().map(|sample| sample.to_bits()));
        }
    };
    for piece in bytes.chunks(piece) {
        converter.push(piece, &mut keep);
    }
    assert!(converter.held_frames() <= converter.latency_frames());
    converter.flush(&mut keep);
    made
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((header, bytes)) = input.split_first_chunk::<13>() else { return };
    let [format, mixing, filter, piece, seek, from @ .., to_0, to_1, m0, m1, m2, m3] = *header;
    // A map or a format that a program names.
    let name = String::from_utf8_lossy(bytes);
    if let Ok(named) = name.parse::<ChannelMap>() {
        assert_eq!(named.to_string().parse(), Ok(named));
    }
    if let Ok(named) = name.parse::<SampleFormat>() {
        assert_eq!(named.to_string().parse(), Ok(named));
    }
    let (Some(ours), Some(theirs)) = (map([m0, m1]), map([m2, m3])) else { return };
    let (from_hz, to_hz) = (rate(from), rate([to_0, to_1]));
    let format = SampleFormat::ALL[usize::from(format) % SampleFormat::ALL.len()];
    let program = ProgramFormat { format, rate_hz: from_hz, map: ours };
    let stream = StreamFormat { rate_hz: to_hz, map: theirs };
    let options = Options {
        mixing: MIXINGS[usize::from(mixing) % MIXINGS.len()],
        filter: FILTERS[usize::from(filter) % FILTERS.len()],
    };
    let Ok(mut converter) = PlaybackConverter::new(&program, &stream, options) else { return };
    let whole = push(&mut converter, bytes, usize::from(piece) + 1);
    let frame_bytes = ours.channels() * format.bytes_per_sample();
    let exact = (bytes.len() / frame_bytes) as u64 * u64::from(to_hz);
    let frames = whole.first().map_or(0, Vec::len);
    assert_eq!(frames as u64, exact.div_ceil(from_hz.into()));
    if from_hz != to_hz {
        assert!(whole.iter().flatten().all(|bits| f32::from_bits(*bits).is_finite()));
    }
    let position = frames * usize::from(seek) / 256;
    let from = converter.start_at(position as u64) as usize;
    let again = push(&mut converter, &bytes[from * frame_bytes..], bytes.len().max(1));
    for (again, whole) in again.iter().zip(&whole) {
        // Of bits that are no number, the sign is open.
        let is_same = |(a, b): (&u32, &u32)| {
            a == b || (f32::from_bits(*a).is_nan() && f32::from_bits(*b).is_nan())
        };
        assert!(again.len() == frames - position);
        assert!(again.iter().zip(&whole[position..]).all(is_same));
    }
});
