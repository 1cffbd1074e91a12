//! A sound file as frames of a stream.

use convert::{
    ChannelMap, ConvertError, Filter, Mixing, Options, PlaybackConverter, ProgramFormat,
    SampleFormat, Standard, StreamFormat,
};
use soundfile::{Reader, SoundFileError};

/// Frames of the file that are decoded at once.
const BLOCK_FRAMES: usize = 4096;

/// A file that is decoded and converted as its frames are taken.
#[derive(Debug)]
pub(crate) struct Source {
    reader: Reader,
    program: FileFormat,
    options: Options,
    converter: PlaybackConverter,
    /// Decoded frames.
    planes: Vec<Vec<f32>>,
    /// The same, interleaved.
    bytes: Vec<u8>,
    /// Converted frames, of which the first `taken` are done with.
    ready: Vec<Vec<f32>>,
    taken: usize,
    has_ended: bool,
    /// Why it has ended before its time.
    failure: Option<SoundFileError>,
    /// Frames of the stream in all, as far as the file says.
    frames: Option<u64>,
}

/// What a file has; no map: the channels of the stream.
#[derive(Debug, Clone, Copy)]
struct FileFormat {
    rate_hz: u32,
    map: Option<ChannelMap>,
}

fn program_format(rate_hz: u32, map: ChannelMap) -> ProgramFormat {
    ProgramFormat { format: SampleFormat::Linear(dsp::Format::FloatLe), rate_hz, map }
}

impl Source {
    /// Converts a file to frames of this format.
    ///
    /// # Errors
    /// There is no conversion between the rates.
    pub(crate) fn new(
        reader: Reader,
        stream: &StreamFormat,
        filter: Filter,
    ) -> Result<Self, ConvertError> {
        // Channels beyond those that a stream can have are not decoded.
        let channels = reader.channels().min(convert::MAX_CHANNELS);
        let map = ChannelMap::extended(Standard::WaveEx, channels)
            .or_else(|| ChannelMap::standard(Standard::Aux, channels));
        let rate_hz = reader.sample_rate_hz();
        let program = program_format(rate_hz, map.unwrap_or(stream.map));
        let options = Options { mixing: Mixing::default(), filter };
        let converted = |frames: u64| {
            let ratio = u128::from(stream.rate_hz) * u128::from(frames);
            u64::try_from(ratio.div_ceil(u128::from(rate_hz))).unwrap_or(u64::MAX)
        };
        Ok(Self {
            frames: reader.frames().map(converted),
            program: FileFormat { rate_hz, map },
            options,
            converter: PlaybackConverter::new(&program, stream, options)?,
            planes: vec![vec![0.0; BLOCK_FRAMES]; channels],
            bytes: Vec::with_capacity(4 * channels * BLOCK_FRAMES),
            ready: vec![Vec::new(); stream.map.channels()],
            taken: 0,
            has_ended: false,
            failure: None,
            reader,
        })
    }

    /// Converts the rest of the file for another stream, of which frame `position` is next.
    /// Returns false if the file cannot go there; then everything is as before.
    ///
    /// # Errors
    /// There is no conversion between the rates.
    pub(crate) fn convert_for(
        &mut self,
        stream: &StreamFormat,
        position: u64,
    ) -> Result<bool, ConvertError> {
        let map = self.program.map.unwrap_or(stream.map);
        let program = program_format(self.program.rate_hz, map);
        let mut converter = PlaybackConverter::new(&program, stream, self.options)?;
        if !self.reader.seek(converter.start_at(position)) {
            return Ok(false);
        }
        self.converter = converter;
        self.ready = vec![Vec::new(); stream.map.channels()];
        (self.taken, self.has_ended, self.failure) = (0, false, None);
        Ok(true)
    }

    /// Returns the number of frames in all, as far as the file says.
    pub(crate) fn frames(&self) -> Option<u64> {
        self.frames
    }

    /// Returns the file's rate and channels.
    pub(crate) fn shape(&self) -> (u32, usize) {
        (self.reader.sample_rate_hz(), self.reader.channels())
    }

    /// Returns the next frames, a slice for each channel, until they are [taken](Self::take); none
    /// at the end, or where the file [cannot be read further](Self::check).
    pub(crate) fn next(&mut self) -> Vec<&[f32]> {
        while self.taken == self.ready[0].len() && !self.has_ended {
            self.convert_block();
        }
        self.ready.iter().map(|plane| &plane[self.taken..]).collect()
    }

    /// Checks whether there was nothing that could not be read.
    ///
    /// # Errors
    /// The file could not be read beyond the frames that were returned.
    pub(crate) fn check(&mut self) -> Result<(), SoundFileError> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Notes that the first of the next frames are done with.
    pub(crate) fn take(&mut self, frames: usize) {
        self.taken = (self.taken + frames).min(self.ready[0].len());
    }

    fn convert_block(&mut self) {
        self.ready.iter_mut().for_each(Vec::clear);
        self.taken = 0;
        let frames = self.reader.read(&mut self.planes).unwrap_or_else(|error| {
            self.failure = Some(error);
            0
        });
        let Self { converter, planes, bytes, ready, .. } = self;
        let keep = |converted: &[&[f32]]| {
            for (plane, converted) in ready.iter_mut().zip(converted) {
                plane.extend_from_slice(converted);
            }
        };
        if frames == 0 {
            self.has_ended = true;
            return converter.flush(keep);
        }
        bytes.clear();
        for frame in 0..frames {
            for plane in planes.iter() {
                bytes.extend_from_slice(&plane[frame].to_le_bytes());
            }
        }
        converter.push(bytes, keep);
    }
}

#[cfg(test)]
mod tests {
    use soundfile::Writer;

    use super::*;

    /// The frames of a file of this rate as a stereo stream at 48 kHz.
    fn frames(rate_hz: u32, channels: &[Vec<f32>]) -> (Option<u64>, Vec<Vec<f32>>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.wav");
        let mut writer = Writer::create(&path, channels.len() as u16, rate_hz).unwrap();
        writer.write(channels).unwrap();
        writer.finish().unwrap();
        let map = ChannelMap::standard(Standard::Alsa, 2).unwrap();
        let stream = StreamFormat { rate_hz: 48_000, map };
        let mut source =
            Source::new(Reader::open(&path).unwrap(), &stream, Filter::Medium).unwrap();
        let mut all = vec![Vec::new(); 2];
        loop {
            let next = source.next();
            let some = next[0].len().min(1000);
            if some == 0 {
                return (source.frames(), all);
            }
            all.iter_mut().zip(next).for_each(|(all, next)| all.extend_from_slice(&next[..some]));
            source.take(some);
        }
    }

    fn noise(frames: usize) -> Vec<f32> {
        (0..frames as u32)
            .map(|frame| (frame.wrapping_mul(40_503) % 65_536) as f32 / 65_536.0)
            .collect()
    }

    #[test]
    fn a_file_of_the_devices_rate_and_channels_is_passed_on_bit_for_bit() {
        let channels = [noise(10_000), noise(10_000)];
        assert_eq!(frames(48_000, &channels), (Some(10_000), channels.to_vec()));
    }

    #[test]
    fn a_file_goes_on_at_another_rate_with_the_frame_of_the_same_moment() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.wav");
        let mut writer = Writer::create(&path, 1, 48_000).unwrap();
        writer.write(&[noise(48_000)]).unwrap();
        writer.finish().unwrap();
        let map = ChannelMap::standard(Standard::Alsa, 1).unwrap();
        let format = |rate_hz| StreamFormat { rate_hz, map };
        let rest = |source: &mut Source| {
            let mut all: Vec<f32> = Vec::new();
            loop {
                let frames = source.next()[0].to_vec();
                if frames.is_empty() {
                    return all;
                }
                source.take(frames.len());
                all.extend(frames);
            }
        };
        let open = |rate_hz| {
            Source::new(Reader::open(&path).unwrap(), &format(rate_hz), Filter::Medium).unwrap()
        };
        let whole = rest(&mut open(44_100));
        let mut moved = open(48_000);
        let _ = moved.next();
        moved.take(100);
        assert_eq!(moved.convert_for(&format(44_100), 20_000), Ok(true));
        assert!(rest(&mut moved) == whole[20_000..], "bit for bit");
        assert_eq!(moved.convert_for(&format(48_000), 47_990), Ok(true), "also from its end");
        assert_eq!(rest(&mut moved), noise(48_000)[47_990..]);
    }

    #[test]
    fn what_there_is_of_a_damaged_file_comes_before_the_reason() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.wav");
        let mut writer = Writer::create(&path, 1, 48_000).unwrap();
        writer.write(&[noise(10_000)]).unwrap();
        writer.finish().unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 4 * 3000).unwrap();
        let map = ChannelMap::standard(Standard::Alsa, 1).unwrap();
        let stream = StreamFormat { rate_hz: 48_000, map };
        let reader = Reader::open(&path).unwrap();
        let mut source = Source::new(reader, &stream, Filter::Medium).unwrap();
        let mut all: Vec<f32> = Vec::new();
        loop {
            let frames = source.next()[0].to_vec();
            if frames.is_empty() {
                break;
            }
            source.take(frames.len());
            all.extend(frames);
        }
        assert_eq!(all, noise(10_000)[..7000]);
        let reason = source.check().unwrap_err().to_string();
        assert!(reason.contains("after 7000 of 10000 frames"), "{reason}");
    }

    #[test]
    fn a_mono_file_is_heard_on_both_sides() {
        let (_, heard) = frames(48_000, &[noise(100)]);
        assert_eq!(heard, [noise(100), noise(100)]);
    }

    #[test]
    fn a_file_of_another_rate_lasts_as_long_as_before() {
        let (frames, heard) = frames(44_100, &[noise(44_101), noise(44_101)]);
        assert_eq!((frames, heard[0].len()), (Some(48_002), 48_002));
    }
}
