//! Writing WAV with 32-bit floating point.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use dsp::Format;

use crate::SoundFileError;

const BYTES_PER_SAMPLE: u32 = 4;
/// RIFF header (12), format chunk (26), fact chunk (12), header of the data chunk (8).
const HEADER_BYTES: u32 = 58;
/// The part of a RIFF file that its size field does not count: the field and the four letters before it.
const UNCOUNTED_BYTES: u32 = 8;
const IEEE_FLOAT: u16 = 3;

/// A WAV file being written.
///
/// After each [`write`](Self::write) the file on the disk is complete: header and data agree, whether the writer
/// is then finished, dropped, or killed with its process. (Only a crash of the whole machine can lose what has
/// not been [finished](Self::finish).)
///
/// Format: `WAVE_FORMAT_IEEE_FLOAT` with a fact chunk, as in "Multimedia Programming Interface and Data
/// Specifications 1.0" and its "New Multimedia Data Types" supplement; no speaker positions, since ports have none.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    channels: u16,
    sample_rate_hz: u32,
    frames: u64,
    frame_limit: u64,
    /// A block as the file has it; kept for its memory.
    interleaved: Vec<u8>,
}

impl Writer {
    /// Creates the file, replacing one of the same name.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Shape`, `Write`, `DiskFull`.
    pub fn create(
        path: impl AsRef<Path>,
        channels: u16,
        sample_rate_hz: u32,
    ) -> Result<Self, SoundFileError> {
        let path = path.as_ref().to_owned();
        let bytes_per_frame = BYTES_PER_SAMPLE * u32::from(channels);
        let fits =
            u16::try_from(bytes_per_frame).is_ok() && bytes_per_frame.checked_mul(sample_rate_hz).is_some();
        if channels == 0 || sample_rate_hz == 0 || !fits {
            return Err(SoundFileError::Shape { path, channels, sample_rate_hz });
        }
        let file = match File::create(&path) {
            Ok(file) => file,
            Err(source) => return Err(failure(&path, 0, source)),
        };
        let data_limit = u32::MAX - (HEADER_BYTES - UNCOUNTED_BYTES);
        let frame_limit = u64::from(data_limit / bytes_per_frame);
        let writer =
            Self { path, file, channels, sample_rate_hz, frames: 0, frame_limit, interleaved: Vec::new() };
        writer.write_at(0, &writer.header(0))?;
        Ok(writer)
    }

    /// Frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Frames that the file can hold: 4 GiB of them.
    pub fn frame_limit(&self) -> u64 {
        self.frame_limit
    }

    /// Appends a block, one plane per channel, as long as the shortest plane. Channels without a plane are
    /// silent; planes beyond the channels are left out.
    ///
    /// Makes two system calls, so give it thousands of frames rather than tens.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Write`, `DiskFull`, `FileFull`. The file then is as it was before the call, and the
    /// same block may be tried again.
    pub fn write(&mut self, planes: &[impl AsRef<[f32]>]) -> Result<(), SoundFileError> {
        let frames = planes.iter().map(|plane| plane.as_ref().len()).min().unwrap_or(0);
        if frames == 0 {
            return Ok(());
        }
        let frames_after = self.frames + frames as u64;
        if frames_after > self.frame_limit {
            return Err(SoundFileError::FileFull { path: self.path.clone(), frames: self.frames });
        }
        let channels = usize::from(self.channels);
        self.interleaved.clear();
        self.interleaved.resize(frames * self.bytes_per_frame() as usize, 0);
        for (channel, plane) in planes.iter().take(channels).enumerate() {
            let samples = &plane.as_ref()[..frames];
            dsp::encode(Format::FloatLe, samples, &mut self.interleaved, channel, channels);
        }
        let end = u64::from(HEADER_BYTES) + self.frames * u64::from(self.bytes_per_frame());
        self.write_at(end, &self.interleaved)?;
        self.write_at(0, &self.header(frames_after))?;
        self.frames = frames_after;
        Ok(())
    }

    /// Waits until the disk has everything, which also brings out errors that the system held back.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Write`, `DiskFull`.
    pub fn finish(self) -> Result<(), SoundFileError> {
        self.file.sync_all().map_err(|source| failure(&self.path, self.frames, source))
    }

    fn bytes_per_frame(&self) -> u32 {
        BYTES_PER_SAMPLE * u32::from(self.channels)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), SoundFileError> {
        self.file.write_all_at(bytes, offset).map_err(|source| failure(&self.path, self.frames, source))
    }

    /// The header of a file of `frames` frames, at most `frame_limit`.
    fn header(&self, frames: u64) -> Vec<u8> {
        let frames = frames as u32;
        let data_bytes = frames * self.bytes_per_frame();
        let mut header = Vec::with_capacity(HEADER_BYTES as usize);
        header.extend(b"RIFF");
        header.extend((HEADER_BYTES - UNCOUNTED_BYTES + data_bytes).to_le_bytes());
        header.extend(b"WAVEfmt ");
        header.extend(18_u32.to_le_bytes());
        header.extend(IEEE_FLOAT.to_le_bytes());
        header.extend(self.channels.to_le_bytes());
        header.extend(self.sample_rate_hz.to_le_bytes());
        header.extend((self.sample_rate_hz * self.bytes_per_frame()).to_le_bytes());
        header.extend((self.bytes_per_frame() as u16).to_le_bytes());
        header.extend((8 * BYTES_PER_SAMPLE as u16).to_le_bytes());
        header.extend(0_u16.to_le_bytes()); // No extension follows.
        header.extend(b"fact");
        header.extend(4_u32.to_le_bytes());
        header.extend(frames.to_le_bytes());
        header.extend(b"data");
        header.extend(data_bytes.to_le_bytes());
        header
    }
}

/// The system's error, met when the file held `frames` frames.
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
    use super::*;

    #[test]
    fn a_block_beyond_4_gib_is_refused_and_the_file_stays_valid_up_to_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("long.wav");
        let mut writer = Writer::create(&path, 2, 48_000).unwrap();
        assert_eq!(writer.frame_limit(), (u64::from(u32::MAX) - 50) / 8);
        // As if all but the last three frames had been written; the file becomes sparse, not 4 GiB.
        writer.frames = writer.frame_limit() - 3;

        let refused = writer.write(&[[0.5; 4], [0.25; 4]]).unwrap_err();
        assert!(matches!(refused, SoundFileError::FileFull { frames, .. } if frames == writer.frames));
        writer.write(&[[0.5; 3], [0.25; 3]]).unwrap();
        assert!(matches!(writer.write(&[[0.5], [0.25]]), Err(SoundFileError::FileFull { .. })));

        assert_eq!(path.metadata().unwrap().len(), 58 + 8 * writer.frame_limit());
        assert_eq!(crate::Reader::open(&path).unwrap().frames(), Some(writer.frame_limit()));
    }
}
