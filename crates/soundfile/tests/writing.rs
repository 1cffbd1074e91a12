//! The writer's files, as the reader and an independent WAV library read them.

use std::fs;
use std::path::Path;

use consort_soundfile::{Reader, SoundFileError, Writer};
use proptest::prelude::*;

/// Everything in the file, one vector per channel, read `block_frames` at a time.
fn read_all(path: &Path, block_frames: usize) -> Vec<Vec<f32>> {
    let mut reader = Reader::open(path).unwrap();
    let mut block = vec![vec![f32::NAN; block_frames]; reader.channels()];
    let mut all = vec![Vec::new(); reader.channels()];
    loop {
        let frames = reader.read(&mut block).unwrap();
        for (channel, samples) in all.iter_mut().zip(&block) {
            channel.extend_from_slice(&samples[..frames]);
        }
        if frames < block_frames {
            assert_eq!(reader.read(&mut block).unwrap(), 0, "the end stays the end");
            return all;
        }
    }
}

fn bits(channels: &[Vec<f32>]) -> Vec<Vec<u32>> {
    channels.iter().map(|samples| samples.iter().map(|sample| sample.to_bits()).collect()).collect()
}

/// Distinct samples, some beyond full scale, for one channel.
fn ramp(channel: usize, frames: usize) -> Vec<f32> {
    (0..frames).map(|frame| (frame as f32 - 100.0) * 0.013 + channel as f32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn samples_are_read_back_bit_by_bit_in_blocks_of_any_size(
        channels in 1_usize..5,
        samples in prop::collection::vec(any::<f32>(), 0..6000),
        written_frames in 1_usize..1500,
        read_frames in 1_usize..3000,
    ) {
        let frames = samples.len() / channels;
        let planes: Vec<Vec<f32>> = samples.chunks_exact(frames.max(1)).take(channels).map(<[f32]>::to_vec).collect();
        prop_assume!(planes.len() == channels);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sound.wav");
        let mut writer = Writer::create(&path, channels as u16, 44_100).unwrap();
        for start in (0..frames).step_by(written_frames) {
            let block: Vec<&[f32]> =
                planes.iter().map(|plane| &plane[start..frames.min(start + written_frames)]).collect();
            writer.write(&block).unwrap();
        }
        prop_assert_eq!(writer.frames(), frames as u64);
        writer.finish().unwrap();
        prop_assert_eq!(bits(&read_all(&path, read_frames)), bits(&planes));
    }
}

#[test]
fn samples_that_are_not_numbers_keep_their_bits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    let odd = [
        f32::NAN,
        -f32::NAN,
        f32::from_bits(0x7f80_0001),
        f32::INFINITY,
        f32::NEG_INFINITY,
        -0.0,
        1e-45,
    ];
    let planes = [odd.to_vec(), odd.iter().rev().copied().collect()];
    Writer::create(&path, 2, 48_000).unwrap().write(&planes).unwrap();
    assert_eq!(bits(&read_all(&path, 3)), bits(&planes));
}

#[test]
fn another_library_reads_the_same_header_and_samples() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    let mut writer = Writer::create(&path, 2, 96_000).unwrap();
    writer.write(&[ramp(0, 500), ramp(1, 500)]).unwrap();
    writer.finish().unwrap();

    let mut wav = hound::WavReader::open(&path).unwrap();
    let expected = hound::WavSpec {
        channels: 2,
        sample_rate: 96_000,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    assert_eq!(wav.spec(), expected);
    assert_eq!(wav.duration(), 500);
    let samples: Vec<f32> = wav.samples().map(Result::unwrap).collect();
    let expected: Vec<f32> =
        ramp(0, 500).into_iter().zip(ramp(1, 500)).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(samples, expected);
}

#[test]
fn a_writer_that_never_finishes_leaves_a_complete_file_after_every_block() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    let mut writer = Writer::create(&path, 1, 48_000).unwrap();
    assert_eq!(read_all(&path, 64), [vec![]]);
    for blocks in 1..4 {
        writer.write(&[ramp(0, 100)]).unwrap();
        assert_eq!(read_all(&path, 64), [ramp(0, 100).repeat(blocks)]);
    }
    drop(writer);
    assert_eq!(read_all(&path, 64), [ramp(0, 100).repeat(3)]);
}

#[test]
fn a_file_with_many_channels_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    for channels in [3, 8, 18, 26, 27, 200, 1024] {
        let path = directory.path().join(format!("{channels}.wav"));
        let planes: Vec<_> = (0..channels).map(|channel| ramp(channel, 50)).collect();
        Writer::create(&path, channels as u16, 48_000).unwrap().write(&planes).unwrap();
        assert_eq!(read_all(&path, 33), planes, "{channels} channels");
    }
}

#[test]
fn a_channel_without_a_plane_is_silent() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    Writer::create(&path, 3, 48_000).unwrap().write(&[ramp(0, 20), ramp(1, 10)]).unwrap();
    assert_eq!(read_all(&path, 64), [ramp(0, 10), ramp(1, 10), vec![0.0; 10]]);
}

#[test]
fn creating_replaces_the_file_of_that_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    let other = directory.path().join("other.wav");
    fs::write(&path, vec![0x55; 10_000]).unwrap();
    Writer::create(&path, 1, 48_000).unwrap().write(&[ramp(0, 5)]).unwrap();
    assert_eq!(read_all(&path, 64), [ramp(0, 5)]);
    Writer::create(&other, 1, 48_000).unwrap().write(&[ramp(0, 5)]).unwrap();
    assert_eq!(path.metadata().unwrap().len(), other.metadata().unwrap().len());
}

#[test]
fn impossible_shapes_are_refused_before_a_file_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    for (case, channels, sample_rate_hz) in [
        ("no channels", 0, 48_000),
        ("no rate", 2, 0),
        ("more channels than libsndfile takes", 1025, 1),
        ("bytes per second beyond 31 bits", 1024, 524_288),
    ] {
        let error = Writer::create(&path, channels, sample_rate_hz).unwrap_err();
        assert!(matches!(error, SoundFileError::Shape { .. }), "{case}: {error}");
        assert!(!path.exists(), "{case}");
    }
}

#[test]
fn a_full_disk_is_named_as_such() {
    let error = Writer::create("/dev/full", 2, 48_000).unwrap_err();
    assert!(matches!(error, SoundFileError::DiskFull { frames: 0, .. }), "{error}");
    assert!(error.to_string().contains("/dev/full"), "{error}");
}

#[test]
fn a_file_in_a_missing_directory_cannot_be_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nowhere").join("sound.wav");
    let error = Writer::create(&path, 2, 48_000).unwrap_err();
    assert!(matches!(error, SoundFileError::Write { .. }), "{error}");
    assert!(error.to_string().contains("nowhere/sound.wav"), "{error}");
}
