//! Recordings in another format than the stream's.

use convert::{ChannelMap, Options, ProgramFormat, SampleFormat, Standard, StreamFormat};
use dsp::Format;

use super::device::record;
use super::{planes, shape};
use crate::stream::ConvertedReader;

fn map(channels: usize) -> ChannelMap {
    ChannelMap::standard(Standard::Alsa, channels).expect("a map")
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let sample = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks_exact(4).map(sample).collect()
}

fn converted(from_hz: u32, to_hz: u32, format: SampleFormat, channels: usize) -> ConvertedReader {
    let stream = StreamFormat { rate_hz: from_hz, map: map(2) };
    let program = ProgramFormat { format, rate_hz: to_hz, map: map(channels) };
    ConvertedReader::new(&stream, &program, Options::default()).expect("a conversion")
}

const FLOAT: SampleFormat = SampleFormat::Linear(Format::FloatLe);

#[test]
fn equal_rates_and_channels_keep_every_sample() {
    let (mut reader, mut recorder) = record(shape(2, 8192));
    let mut converted = converted(48_000, 48_000, FLOAT, 2);
    let mut all = Vec::new();
    for frames in [1, 700, 5000, 8192] {
        recorder.record(frames);
        while !converted.read(&mut reader, |bytes| all.extend_from_slice(bytes))[0].is_empty() {}
    }
    let expected = planes(0, 1 + 700 + 5000 + 8192, 2);
    let samples = floats(&all);
    for (channel, expected) in expected.iter().enumerate() {
        let channel: Vec<f32> = samples.iter().skip(channel).step_by(2).copied().collect();
        assert!(channel == *expected);
    }
    assert_eq!(converted.held_frames(), 0);
}

#[test]
fn a_tone_at_another_rate_begins_with_the_first_frame_and_stays_pure() {
    const FRAMES: u64 = 48_000;
    let angle = |frame: u64, rate_hz: u32| {
        std::f64::consts::TAU * 997.0 * frame as f64 / f64::from(rate_hz)
    };
    let (mut reader, mut recorder) = record(shape(2, 8192));
    let mut converted = converted(48_000, 44_100, FLOAT, 1);
    let mut all = Vec::new();
    while recorder.position < FRAMES {
        recorder.record_with(1000, |position, _| (0.5 * angle(position, 48_000).cos()) as f32);
        while !converted.read(&mut reader, |bytes| all.extend_from_slice(bytes))[0].is_empty() {}
    }
    assert!(converted.held_frames() > 0);
    converted.flush(|bytes| all.extend_from_slice(bytes));
    let samples = floats(&all);
    assert_eq!(samples.len(), 44_100, "a second, with both channels as one");
    // The filter has the beginning and the end of the tone in it as well.
    let (mut signal, mut noise) = (0.0, 0.0);
    for (frame, sample) in (0..).zip(&samples).skip(2000).take(40_000) {
        let expected = 0.5 * angle(frame, 44_100).cos();
        signal += expected * expected;
        noise += (f64::from(*sample) - expected).powi(2);
    }
    let thd_n_db = 10.0 * (noise / signal).log10();
    assert!(thd_n_db < -110.0, "{thd_n_db} dB, also if it is a part of a frame late");
}

#[test]
fn samples_of_another_format_are_rounded_and_clipped() {
    let (mut reader, mut recorder) = record(shape(2, 1024));
    let mut converted = converted(48_000, 48_000, SampleFormat::Linear(Format::S16Le), 2);
    let samples = [0.25, -1.0, 7.0];
    recorder.record_with(3, |position, _| samples[position as usize]);
    let mut all = Vec::new();
    converted.read(&mut reader, |bytes| all.extend_from_slice(bytes));
    assert_eq!(all, [0, 32, 0, 32, 0, 128, 0, 128, 255, 127, 255, 127]);
}
