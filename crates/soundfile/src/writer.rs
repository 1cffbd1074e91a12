//! Writing WAV files.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::SoundFileError;
use crate::library::{MAXIMUM_CHANNELS, Refusal, SoundFile};

/// How a file stores samples. Those of several bytes begin with the least significant one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Eight bits without a sign.
    Unsigned8,
    /// 16 bits with a sign.
    Signed16,
    /// 24 bits with a sign, in three bytes.
    Signed24,
    /// 32 bits with a sign.
    Signed32,
    /// 32-bit floating point.
    #[default]
    Float32,
    /// G.711 A-law.
    ALaw,
    /// G.711 μ-law.
    MuLaw,
}

impl Encoding {
    /// Returns the bytes of one sample.
    #[must_use]
    pub fn bytes_per_sample(self) -> usize {
        match self {
            Self::Unsigned8 | Self::ALaw | Self::MuLaw => 1,
            Self::Signed16 => 2,
            Self::Signed24 => 3,
            Self::Signed32 | Self::Float32 => 4,
        }
    }

    /// Returns its number in `SF_FORMAT_…`.
    fn number(self) -> i32 {
        match self {
            Self::Unsigned8 => 0x05,
            Self::Signed16 => 0x02,
            Self::Signed24 => 0x03,
            Self::Signed32 => 0x04,
            Self::Float32 => 0x06,
            Self::MuLaw => 0x10,
            Self::ALaw => 0x11,
        }
    }
}

/// A WAV file that is being written. Beyond 4 GiB it continues as RF64 (EBU Tech 3306), whose
/// header has the same size.
///
/// After each [`write`](Self::write) the file on the disk is complete: header and data agree,
/// whether the writer is then finished, dropped, or killed with its process. Only a crash of the
/// whole machine can lose data that has not been [finished](Self::finish).
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    sound: SoundFile,
    channels: u16,
    encoding: Encoding,
    /// Size of the header in bytes.
    sound_offset: u64,
    frames: u64,
    /// A block in the file's format, kept to reuse its memory.
    interleaved: Vec<f32>,
}

impl Writer {
    /// Creates the file with 32-bit floating point, replacing one with the same name.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Shape`, `Write`, `DiskFull`, `Library`.
    pub fn create(
        path: impl AsRef<Path>,
        channels: u16,
        sample_rate_hz: u32,
    ) -> Result<Self, SoundFileError> {
        Self::create_in(path, channels, sample_rate_hz, Encoding::Float32)
    }

    /// Creates the file with samples in this encoding, replacing one with the same name.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Shape`, `Write`, `DiskFull`, `Library`.
    pub fn create_in(
        path: impl AsRef<Path>,
        channels: u16,
        sample_rate_hz: u32,
        encoding: Encoding,
    ) -> Result<Self, SoundFileError> {
        let path = path.as_ref().to_owned();
        let bytes_per_second =
            encoding.bytes_per_sample() as u64 * u64::from(channels) * u64::from(sample_rate_hz);
        // The library stores the byte rate in a signed integer.
        let fits = channels <= MAXIMUM_CHANNELS && i32::try_from(bytes_per_second).is_ok();
        if bytes_per_second == 0 || !fits {
            return Err(SoundFileError::Shape { path, channels, sample_rate_hz });
        }
        let file = File::create(&path).map_err(|source| failure(&path, 0, source))?;
        let sound = SoundFile::write_to(file, channels, sample_rate_hz, encoding.number())
            .map_err(|refusal| match refusal {
                Refusal::Library(reason) => SoundFileError::Library { path: path.clone(), reason },
                Refusal::System(source) => failure(&path, 0, source),
                refusal => {
                    failure(&path, 0, io::Error::other(format!("libsndfile refuses: {refusal:?}")))
                }
            })?;
        let sound_offset =
            sound.file().metadata().map_err(|source| failure(&path, 0, source))?.len();
        Ok(Self {
            path,
            sound,
            channels,
            encoding,
            sound_offset,
            frames: 0,
            interleaved: Vec::new(),
        })
    }

    /// Returns the number of frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Appends a block, one plane per channel, with the length of the shortest plane. Channels
    /// without a plane are silent; planes beyond the channels are dropped.
    ///
    /// Each call writes twice, the block and the header, so use thousands of frames rather than
    /// tens.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Write`, `DiskFull`. The file is then as before the call, and the same
    /// block may be tried again.
    pub fn write(&mut self, planes: &[impl AsRef<[f32]>]) -> Result<(), SoundFileError> {
        let frames = planes.iter().map(|plane| plane.as_ref().len()).min().unwrap_or(0);
        if frames == 0 {
            return Ok(());
        }
        let channels = usize::from(self.channels);
        self.interleaved.clear();
        self.interleaved.resize(frames * channels, 0.0);
        for (channel, plane) in planes.iter().take(channels).enumerate() {
            let into = self.interleaved.iter_mut().skip(channel).step_by(channels);
            into.zip(plane.as_ref()).for_each(|(into, sample)| *into = *sample);
        }
        let written = self.sound.write(&self.interleaved);
        self.note(written, frames)
    }

    /// Appends whole frames that are in the file's encoding: interleaved, as [`Encoding`] says.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), SoundFileError> {
        let frame_bytes = self.frame_bytes();
        let frames = bytes.len() / frame_bytes;
        if frames == 0 {
            return Ok(());
        }
        let written = self.sound.write_bytes(&bytes[..frames * frame_bytes]);
        self.note(written / frame_bytes, frames)
    }

    /// Returns the bytes of a frame in the file.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.encoding.bytes_per_sample() * usize::from(self.channels)
    }

    /// Notes that `written` of `frames` frames were written.
    fn note(&mut self, written: usize, frames: usize) -> Result<(), SoundFileError> {
        // The sound is written before the header that counts it: a process killed in between leaves
        // the previous file.
        if written == frames {
            self.sound.update_header();
        }
        match self.sound.failure() {
            Some(source) => {
                self.take_back();
                Err(failure(&self.path, self.frames, source))
            }
            None if written < frames => {
                let reason = self.sound.damage().unwrap_or_else(|| "not all was written".into());
                self.take_back();
                Err(failure(&self.path, self.frames, io::Error::other(reason)))
            }
            None => {
                self.frames += frames as u64;
                Ok(())
            }
        }
    }

    /// Waits until the disk has stored everything, which also reveals errors that the system has
    /// deferred.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Write`, `DiskFull`.
    pub fn finish(self) -> Result<(), SoundFileError> {
        // Closing the file afterwards writes the same header once more.
        self.sound.file().sync_all().map_err(|source| failure(&self.path, self.frames, source))
    }

    /// Restores the file to its state before the failed block.
    ///
    /// A disk that refuses even this keeps the previous header, which states where the sound ends.
    fn take_back(&mut self) {
        let end = self.sound_offset + self.frames * self.frame_bytes() as u64;
        // Fails if nothing of the block was written, and on a device, which cannot be shortened.
        let _ = self.sound.file().set_len(end);
        self.sound.seek(self.frames);
        self.sound.update_header();
        // Discards the error: the block's has been returned already.
        self.sound.failure();
    }
}

/// Returns the error for a file that holds `frames` frames.
fn failure(path: &Path, frames: u64, source: io::Error) -> SoundFileError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            SoundFileError::DiskFull { path, frames }
        }
        _ => SoundFileError::Write { path, source },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;
    use crate::Reader;

    /// The last frame that fits into a WAV of two channels.
    const LAST_WAV_FRAME: u64 = (u32::MAX as u64 - 1000) / 8;

    /// A writer that is about to exceed 4 GiB, as if silence had been written up to there. The file
    /// is sparse.
    fn nearly_full(path: &Path) -> Writer {
        let mut writer = Writer::create(path, 2, 48_000).unwrap();
        writer.frames = LAST_WAV_FRAME - 10;
        writer.take_back();
        writer
    }

    fn form(path: &Path) -> [u8; 4] {
        let mut form = [0; 4];
        File::open(path).unwrap().read_exact_at(&mut form, 0).unwrap();
        form
    }

    fn last_frames(path: &Path, begin: u64) -> (Vec<Vec<f32>>, Option<SoundFileError>) {
        let mut reader = Reader::open(path).unwrap();
        assert!(reader.seek(begin));
        let mut planes = vec![vec![0.0; 2000]; 2];
        let frames = reader.read(&mut planes).unwrap();
        planes.iter_mut().for_each(|plane| plane.truncate(frames));
        (planes, reader.read(&mut [[0.0]]).err())
    }

    #[test]
    fn every_encoding_is_read_again_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("encoded.wav");
        for (encoding, bytes, samples) in [
            (Encoding::Unsigned8, &[0x80, 0x00, 0xc0, 0x80][..], [0.0, -1.0, 0.5, 0.0]),
            (Encoding::Signed16, &[0, 0x80, 0, 0x40, 0, 0, 0, 0xc0], [-1.0, 0.5, 0.0, -0.5]),
            (
                Encoding::Signed24,
                &[0, 0, 0x80, 0, 0, 0x40, 0, 0, 0, 0, 0, 0xc0],
                [-1.0, 0.5, 0.0, -0.5],
            ),
        ] {
            let mut writer = Writer::create_in(&path, 2, 44_100, encoding).unwrap();
            assert_eq!(writer.frame_bytes(), bytes.len() / 2);
            writer.write_bytes(bytes).unwrap();
            assert_eq!(writer.frames(), 2);
            writer.finish().unwrap();
            let mut reader = Reader::open(&path).unwrap();
            assert_eq!((reader.sample_rate_hz(), reader.frames()), (44_100, Some(2)));
            let mut planes = vec![vec![9.0; 3]; 2];
            assert_eq!(reader.read(&mut planes).unwrap(), 2);
            let read = [planes[0][0], planes[1][0], planes[0][1], planes[1][1]];
            assert_eq!(read, samples, "{encoding:?}");
        }
        for encoding in [Encoding::ALaw, Encoding::MuLaw, Encoding::Signed32] {
            let mut writer = Writer::create_in(&path, 2, 8000, encoding).unwrap();
            writer.write_bytes(&vec![0x55; 10 * writer.frame_bytes()]).unwrap();
            writer.finish().unwrap();
            assert_eq!(Reader::open(&path).unwrap().frames(), Some(10), "{encoding:?}");
        }
    }

    #[test]
    fn a_recording_beyond_4_gib_is_complete_after_every_block() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.wav");
        let mut writer = nearly_full(&path);
        let begin = writer.frames();
        let mut written: Vec<f32> = Vec::new();
        for (block, frames, expected_form) in
            [(1, 10, b"RIFF"), (2, 1000, b"RF64"), (3, 10, b"RF64")]
        {
            let plane = vec![block as f32; frames];
            writer.write(&[&plane, &plane]).unwrap();
            written.extend(&plane);
            assert_eq!(&form(&path), expected_form, "block {block}");
            assert_eq!(
                Reader::open(&path).unwrap().frames(),
                Some(writer.frames()),
                "block {block}"
            );
            let (planes, error) = last_frames(&path, begin);
            assert!(error.is_none(), "block {block}: {error:?}");
            assert!(planes == [&*written, &*written], "block {block}");
        }
        let length = writer.sound_offset + 8 * writer.frames();
        writer.finish().unwrap();
        assert_eq!(path.metadata().unwrap().len(), length);
        assert_eq!(last_frames(&path, begin).0, [&*written, &*written]);
    }

    #[test]
    fn an_rf64_that_lost_its_end_is_reported_as_truncated() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.wav");
        let mut writer = nearly_full(&path);
        let begin = writer.frames();
        writer.write(&vec![vec![0.5; 1000]; 2]).unwrap();
        let frames = writer.frames();
        let length = path.metadata().unwrap().len();
        drop(writer);
        File::options().write(true).open(&path).unwrap().set_len(length - 8 * 300 - 3).unwrap();

        let (planes, error) = last_frames(&path, begin);
        assert_eq!(planes, vec![vec![0.5; 699]; 2]);
        let expected = (frames - 301, frames);
        assert!(
            matches!(error, Some(SoundFileError::Truncated { frame, frames, .. }) if (frame, frames) == expected),
            "{error:?}"
        );
    }

    #[test]
    fn a_writer_killed_before_the_header_leaves_the_previous_file() {
        let directory = tempfile::tempdir().unwrap();
        for (name, begin) in [("short.wav", 0), ("long.wav", LAST_WAV_FRAME + 500)] {
            let path = directory.path().join(name);
            let mut writer = Writer::create(&path, 2, 48_000).unwrap();
            writer.frames = begin;
            writer.take_back();
            writer.write(&[[0.5; 100]; 2]).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.write_all_at(&[0x55; 777], path.metadata().unwrap().len()).unwrap();

            let (planes, error) = last_frames(&path, begin);
            assert!(error.is_none(), "{name}: {error:?}");
            assert_eq!(planes, [[0.5; 100]; 2], "{name}");
        }
    }
}
