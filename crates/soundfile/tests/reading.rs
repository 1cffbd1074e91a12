//! Files made by other encoders, and files that are not what they claim to be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use consort_soundfile::{Reader, SoundFileError, Writer};
use flacenc::component::BitRepr as _;
use flacenc::error::Verify as _;
use proptest::prelude::*;

const CHANNELS: usize = 2;
const FRAMES: usize = 10_007;

/// Interleaved integers over the whole range of `bits`, the extremes included.
fn integers(bits: u32) -> Vec<i32> {
    let largest = (1_i64 << (bits - 1)) - 1;
    (0..(FRAMES * CHANNELS) as i64)
        .map(|index| match index {
            0 => largest as i32,
            1 => (-largest - 1) as i32,
            // A multiple of a large prime, folded into the range: every bit varies.
            _ => ((index * 2_654_435_761) % (2 * largest + 2) - largest - 1) as i32,
        })
        .collect()
}

/// The samples expected from interleaved integers of `bits`: one plane per channel.
fn expected(integers: &[i32], bits: u32) -> Vec<Vec<f32>> {
    let full_scale = 2_f64.powi(bits as i32 - 1);
    (0..CHANNELS)
        .map(|channel| integers.iter().skip(channel).step_by(CHANNELS))
        .map(|samples| samples.map(|sample| (f64::from(*sample) / full_scale) as f32).collect())
        .collect()
}

fn write_wav(path: &Path, integers: &[i32], bits: u32) {
    let spec = hound::WavSpec {
        channels: CHANNELS as u16,
        sample_rate: 44_100,
        bits_per_sample: bits as u16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut writer = hound::WavWriter::create(path, spec).unwrap();
    integers.iter().for_each(|sample| writer.write_sample(*sample).unwrap());
    writer.finalize().unwrap();
}

fn write_flac(path: &Path, integers: &[i32], bits: u32) {
    let configuration = flacenc::config::Encoder::default().into_verified().unwrap();
    let source =
        flacenc::source::MemSource::from_samples(integers, CHANNELS, bits as usize, 44_100);
    let stream =
        flacenc::encode_with_fixed_block_size(&configuration, source, configuration.block_size)
            .unwrap();
    let mut bytes = flacenc::bitsink::ByteSink::new();
    stream.write(&mut bytes).unwrap();
    let mut bytes = bytes.as_slice().to_vec();
    // The encoder counts the last, short block in the least block size, which RFC 9639, 8.2
    // excludes: with two sizes the blocks would have to be numbered differently. Copy the greatest
    // size over the least.
    bytes.copy_within(10..12, 8);
    fs::write(path, bytes).unwrap();
}

/// Reads to the end or the first error, whichever comes first.
fn read(path: &Path, block_frames: usize) -> (Vec<Vec<f32>>, Option<SoundFileError>) {
    let mut reader = Reader::open(path).unwrap();
    let mut block = vec![vec![0.0; block_frames]; reader.channels()];
    let mut all = vec![Vec::new(); reader.channels()];
    loop {
        match reader.read(&mut block) {
            Ok(0) => return (all, None),
            Ok(frames) => {
                all.iter_mut()
                    .zip(&block)
                    .for_each(|(channel, samples)| channel.extend(&samples[..frames]));
            }
            Err(error) => return (all, Some(error)),
        }
    }
}

type Encoder = fn(&Path, &[i32], u32);

#[test]
fn integers_are_read_to_the_last_bit_in_blocks_of_any_size() {
    let directory = tempfile::tempdir().unwrap();
    for (case, bits, encode) in [
        ("16-bit WAV", 16, write_wav as Encoder),
        ("24-bit WAV", 24, write_wav),
        ("32-bit WAV", 32, write_wav),
        ("16-bit FLAC", 16, write_flac),
        ("24-bit FLAC", 24, write_flac),
    ] {
        let path = directory.path().join(case);
        let integers = integers(bits);
        encode(&path, &integers, bits);
        let reader = Reader::open(&path).unwrap();
        assert_eq!(reader.channels(), CHANNELS, "{case}");
        assert_eq!(reader.sample_rate_hz(), 44_100, "{case}");
        assert_eq!(reader.frames(), Some(FRAMES as u64), "{case}");
        for block_frames in [1, 64, 1000, FRAMES, 3 * FRAMES] {
            let (samples, error) = read(&path, block_frames);
            assert!(error.is_none(), "{case}: {error:?}");
            assert!(samples == expected(&integers, bits), "{case} in blocks of {block_frames}");
        }
    }
}

#[test]
fn planes_beyond_the_channels_are_silent() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    let integers = integers(16);
    write_wav(&path, &integers, 16);
    let expected = expected(&integers, 16);

    let mut three = vec![vec![f32::NAN; 10]; 3];
    assert_eq!(Reader::open(&path).unwrap().read(&mut three).unwrap(), 10);
    assert_eq!(three, [&expected[0][..10], &expected[1][..10], &[0.0; 10]]);

    let mut one = [[f32::NAN; 10]];
    assert_eq!(Reader::open(&path).unwrap().read(&mut one).unwrap(), 10);
    assert_eq!(one[0], expected[0][..10]);
}

#[test]
fn a_truncated_file_is_read_up_to_where_it_ends() {
    let directory = tempfile::tempdir().unwrap();
    for (case, encode, granularity) in
        [("truncated.wav", write_wav as Encoder, 1), ("truncated.flac", write_flac, 4096)]
    {
        let path = directory.path().join(case);
        let integers = integers(16);
        encode(&path, &integers, 16);
        let whole = fs::read(&path).unwrap();
        // The cut is not at a frame's boundary.
        fs::write(&path, &whole[..whole.len() - 4001]).unwrap();

        let (samples, error) = read(&path, 100);
        let frames = samples[0].len();
        let expected = expected(&integers, 16);
        assert!(frames + 1001 + granularity >= FRAMES, "{case}: only {frames} frames");
        assert!(
            samples[0] == expected[0][..frames] && samples[1] == expected[1][..frames],
            "{case}"
        );
        match error {
            Some(SoundFileError::Truncated { path: named, frame, frames: announced }) => {
                assert_eq!(
                    (named, frame, announced),
                    (path, frames as u64, FRAMES as u64),
                    "{case}"
                );
            }
            other => panic!("{case}: {other:?}"),
        }
    }
}

#[test]
fn damage_in_the_middle_of_a_flac_file_is_not_passed_off_as_sound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.flac");
    let integers = integers(16);
    write_flac(&path, &integers, 16);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 16].iter_mut().for_each(|byte| *byte ^= 0x5a);
    fs::write(&path, bytes).unwrap();

    let (samples, error) = read(&path, 100);
    let frames = samples[0].len();
    assert!(error.is_some(), "{frames} frames read without an error");
    let expected = expected(&integers, 16);
    assert!(samples[0] == expected[0][..frames] && samples[1] == expected[1][..frames]);
}

#[test]
fn a_file_that_is_not_a_sound_file_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let make = |name: &str, content: &[u8]| -> PathBuf {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    // Format tag 0x0161: Windows Media Audio.
    let mut unknown_encoding =
        b"RIFF\x2e\0\0\0WAVEfmt \x12\0\0\0\x61\x01\x02\0\x44\xac\0\0\0\x71\x02\0".to_vec();
    unknown_encoding.extend(b"\x04\0\x10\0\0\0data\x08\0\0\0\0\0\0\0\0\0\0\0");
    type Check = fn(&SoundFileError) -> bool;
    let cases: [(&str, PathBuf, Check); 8] = [
        ("missing", directory.path().join("missing.wav"), |e| {
            matches!(e, SoundFileError::Missing { .. })
        }),
        ("a directory", directory.path().to_owned(), |e| matches!(e, SoundFileError::Read { .. })),
        ("empty", make("empty.wav", b""), |e| matches!(e, SoundFileError::NotASoundFile { .. })),
        ("text", make("text.wav", &b"It says RIFF and fLaC. ".repeat(100)), |e| {
            matches!(e, SoundFileError::NotASoundFile { .. })
        }),
        ("another RIFF", make("film.wav", b"RIFF\x10\0\0\0AVI LIST\0\0\0\0"), |e| {
            matches!(e, SoundFileError::NotASoundFile { .. })
        }),
        ("an unknown encoding", make("wma.wav", &unknown_encoding), |e| {
            matches!(e, SoundFileError::Unsupported { .. })
        }),
        ("half a WAV header", make("half.wav", b"RIFF\x10\0\0\0WAVEfmt "), |e| {
            matches!(e, SoundFileError::Damaged { .. } | SoundFileError::Unsupported { .. })
        }),
        ("half a FLAC header", make("half.flac", b"fLaC\0\0\0\x22\x10\0\x10\0\0\0"), |e| {
            matches!(e, SoundFileError::Damaged { .. } | SoundFileError::Unsupported { .. })
        }),
    ];
    for (case, path, check) in cases {
        let Err(error) = Reader::open(&path) else { panic!("{case}: opened") };
        assert!(check(&error), "{case}: {error:?}");
        assert!(error.to_string().contains(path.to_str().unwrap()), "{case}: {error}");
    }
}

#[test]
fn a_wav_of_another_program_is_read_with_all_its_channels() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.wav");
    let write = |channels: u16| {
        let spec = hound::WavSpec {
            channels,
            sample_rate: 48_000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let mut writer = hound::WavWriter::create(&path, spec).unwrap();
        (0..channels * 10).for_each(|sample| writer.write_sample(sample as i16).unwrap());
        writer.finalize().unwrap();
    };
    for channels in [1, 6, 26, 27, 33, 64, 300, 1024] {
        write(channels);
        let (samples, error) = read(&path, 7);
        assert!(error.is_none(), "{channels}: {error:?}");
        assert_eq!(samples.len(), usize::from(channels));
        for (channel, samples) in samples.iter().enumerate() {
            let expected =
                (0..10).map(|frame| (frame * usize::from(channels) + channel) as f32 / 32_768.0);
            assert!(samples.iter().copied().eq(expected), "channel {channel} of {channels}");
        }
    }
    write(1025);
    let refused = Reader::open(&path).err();
    assert!(matches!(refused, Some(SoundFileError::Unsupported { .. })), "{refused:?}");
}

/// A header of 44 bytes, and `sound` behind it.
fn wav(channels: u16, sample_rate_hz: u32, data_bytes: u32, sound: &[u8]) -> Vec<u8> {
    let mut bytes = b"RIFF".to_vec();
    bytes.extend(data_bytes.saturating_add(36).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    bytes.extend(channels.to_le_bytes());
    bytes.extend(sample_rate_hz.to_le_bytes());
    bytes.extend(sample_rate_hz.wrapping_mul(u32::from(channels) * 2).to_le_bytes());
    bytes.extend(channels.wrapping_mul(2).to_le_bytes());
    bytes.extend(b"\x10\0data");
    bytes.extend(data_bytes.to_le_bytes());
    bytes.extend(sound);
    bytes
}

#[test]
fn absurd_headers_never_crash_the_reader() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("absurd.wav");
    for (case, bytes) in [
        ("no channels", wav(0, 48_000, 4, &[0; 4])),
        ("65535 channels", wav(u16::MAX, 48_000, 4, &[0; 4])),
        ("no rate", wav(2, 0, 4, &[0; 4])),
        ("a rate beyond 31 bits", wav(2, u32::MAX, 4, &[0; 4])),
    ] {
        fs::write(&path, bytes).unwrap();
        let Err(refused) = Reader::open(&path) else { panic!("{case}: opened") };
        let is_refusal =
            matches!(refused, SoundFileError::Unsupported { .. } | SoundFileError::Damaged { .. });
        assert!(is_refusal, "{case}: {refused:?}");
    }
    fs::write(&path, wav(2, 1_000_000_000, 8, &[0; 8])).unwrap();
    assert_eq!(Reader::open(&path).unwrap().sample_rate_hz(), 1_000_000_000);
    fs::write(&path, wav(2, 48_000, u32::MAX - 1, &[0; 400])).unwrap();
    let (samples, error) = read(&path, 64);
    assert_eq!(samples, vec![vec![0.0; 100]; 2]);
    assert!(matches!(error, Some(SoundFileError::Truncated { frame: 100, .. })), "{error:?}");
}

#[test]
fn a_wav_without_a_stated_length_is_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("piped.wav");
    fs::write(&path, wav(2, 48_000, u32::MAX, &[0x40; 400])).unwrap();
    let (samples, error) = read(&path, 64);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(samples, vec![vec![f32::from(0x4040_i16) / 32_768.0; 100]; 2]);
}

#[test]
fn a_truncated_aiff_is_reported_as_truncated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.aiff");
    let mut bytes = b"FORM\0\0\0\x56AIFFCOMM\0\0\0\x12\0\x02\0\0\0\x0a\0\x10".to_vec();
    // 48000 in 80 bits.
    bytes.extend(b"\x40\x0e\xbb\x80\0\0\0\0\0\0SSND\0\0\0\x30\0\0\0\0\0\0\0\0");
    bytes.extend((0..20_i16).flat_map(i16::to_be_bytes));
    let expected = |frames: i16, channel: i16| {
        (0..frames).map(|f| f32::from(2 * f + channel) / 32_768.0).collect()
    };
    fs::write(&path, &bytes).unwrap();
    assert_eq!(Reader::open(&path).unwrap().sample_rate_hz(), 48_000);
    let (samples, error) = read(&path, 4);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(samples, [expected(10, 0), expected(10, 1)] as [Vec<f32>; 2]);

    fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
    let (samples, error) = read(&path, 4);
    assert_eq!(samples, [expected(7, 0), expected(7, 1)] as [Vec<f32>; 2]);
    let is_truncated =
        matches!(error, Some(SoundFileError::Truncated { frame: 7, frames: 10, .. }));
    assert!(is_truncated, "{error:?}");
}

/// Real files of every kind that can be made here, small.
fn real_files(directory: &Path) -> Vec<Vec<u8>> {
    let integers = integers(16);
    let integers = &integers[..3000];
    let (flac, plain, float) =
        (directory.join("real.flac"), directory.join("real.wav"), directory.join("float.wav"));
    write_flac(&flac, integers, 16);
    write_wav(&plain, integers, 24);
    Writer::create(&float, 3, 48_000).unwrap().write(&vec![vec![0.25; 700]; 3]).unwrap();
    let mut rf64 = fs::read(&float).unwrap();
    rf64[..4].copy_from_slice(b"RF64");
    rf64[12..16].copy_from_slice(b"ds64");
    let mut files: Vec<_> =
        [&flac, &plain, &float].iter().map(|path| fs::read(path).unwrap()).collect();
    files.extend([rf64, wav(1, 8000, 2000, &[3; 2000])]);
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn damage_is_read_over_or_refused_with_a_reason(
        which in 0_usize..5,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<bool>()), 1..20),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        thread_local!(static FILES: (tempfile::TempDir, Vec<Vec<u8>>) = {
            let directory = tempfile::tempdir().unwrap();
            let files = real_files(directory.path());
            (directory, files)
        });
        FILES.with(|(directory, files)| {
            let mut bytes = files[which].clone();
            let length = bytes.len();
            for (at, byte, is_in_header) in &changes {
                bytes[at.index(if *is_in_header { length.min(150) } else { length })] = *byte;
            }
            bytes.truncate(cut.map_or(length, |cut| cut.index(length)));
            let path = directory.path().join("damaged");
            fs::write(&path, &bytes).unwrap();
            match Reader::open(&path) {
                Ok(mut reader) => {
                    prop_assert!((1..=1024).contains(&reader.channels()) && reader.sample_rate_hz() > 0);
                    let mut planes = vec![vec![0.0; 999]; reader.channels()];
                    // No sound that is not in the file: a FLAC's frame of 16 bytes may say that
                    // 65535 are equal.
                    for _ in 0..100_000 {
                        match reader.read(&mut planes) {
                            Ok(0) => return Ok(()),
                            Ok(_) => {}
                            Err(error) => {
                                prop_assert!(error.to_string().contains("damaged"), "{}", error);
                                return Ok(());
                            }
                        }
                    }
                    prop_assert!(false, "no end");
                }
                Err(error) => prop_assert!(error.to_string().contains("damaged"), "{}", error),
            }
            Ok(())
        })?;
    }
}

#[test]
fn without_libsndfile_the_error_names_what_to_install() {
    const INNER: &str = "CONSORT_TEST_WITHOUT_LIBRARY";
    if let Some(path) = std::env::var_os(INNER) {
        let error = Reader::open(Path::new(&path)).unwrap_err();
        assert!(matches!(error, SoundFileError::Library { .. }), "{error:?}");
        assert!(error.to_string().contains("libsndfile1"), "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sound.wav");
    write_wav(&path, &[0; 10], 16);
    // The first file that the dynamic linker finds under that name is not a library.
    fs::write(directory.path().join("libsndfile.so.1"), "no library").unwrap();
    let name = "without_libsndfile_the_error_names_what_to_install";
    let inner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env("LD_LIBRARY_PATH", directory.path())
        .env(INNER, &path)
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&inner.stdout).into_owned();
    assert!(inner.status.success() && output.contains("1 passed"), "{output}");
}

#[test]
fn a_reader_can_be_moved_to_the_thread_that_reads() {
    fn is_send<T: Send + 'static>() {}
    is_send::<Reader>();
}
