//! Reading sound files.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::library::{Refusal, SoundFile};
use crate::{SoundFileError, announced};

/// Frames decoded at once. The position of damage within them is unknown, so it costs all of them.
const BLOCK_FRAMES: usize = 512;

/// A sound file that is read from its beginning to its end.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    sound: SoundFile,
    channels: usize,
    sample_rate_hz: u32,
    frames: Option<u64>,
    /// Whether the file is known to be truncated.
    is_cut: bool,
    /// Decoded frames, interleaved.
    block: Vec<f32>,
    /// Number of valid frames in `block`.
    filled: usize,
    /// Number of frames of `block` that have been returned.
    taken: usize,
    /// Number of frames decoded so far, including those in `block`.
    decoded: u64,
    /// An error that followed frames of the same call; the next call returns it.
    failure: Option<SoundFileError>,
}

impl Reader {
    /// Opens a sound file: WAV, RF64, FLAC, AIFF, Ogg and other formats of libsndfile, with up to
    /// 1024 channels.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Missing`, `Read`, `NotASoundFile`, `Unsupported`, `Damaged`, `Library`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SoundFileError> {
        let path = path.as_ref().to_owned();
        let file = File::open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => SoundFileError::Missing { path: path.clone() },
            _ => SoundFileError::Read { path: path.clone(), source },
        })?;
        let unread = |source| SoundFileError::Read { path: path.clone(), source };
        if file.metadata().map_err(unread)?.len() == 0 {
            return Err(SoundFileError::NotASoundFile { path });
        }
        let (sound, shape) =
            SoundFile::read_from(file).map_err(|refusal| refused(&path, refusal))?;
        let cut_bytes = announced::bytes_of_a_cut_file(sound.file()).map_err(unread)?;
        let frames = match cut_bytes {
            Some(bytes) => {
                shape.bytes_per_sample.map(|size| bytes / (size * shape.channels as u64))
            }
            None => shape.frames,
        };
        Ok(Self {
            path,
            sound,
            channels: shape.channels,
            sample_rate_hz: shape.sample_rate_hz,
            frames,
            is_cut: cut_bytes.is_some() || shape.lacks_last_page,
            block: vec![0.0; BLOCK_FRAMES * shape.channels],
            filled: 0,
            taken: 0,
            decoded: 0,
            failure: None,
        })
    }

    /// Returns the number of channels, at least 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the sample rate in Hz, at least 1.
    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// Returns the number of frames that the header announces, if it does.
    pub fn frames(&self) -> Option<u64> {
        self.frames
    }

    /// Reads the next frames, one plane per channel, and returns their number: the length of the
    /// shortest plane, fewer at the end of the file, then 0. The rest of the planes is unchanged.
    ///
    /// Planes beyond the file's channels are filled with silence; channels without a plane are
    /// dropped. Integers of `bits` bits are divided by `2^(bits - 1)`; up to 24 bits, that is
    /// exact.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Read`, `Damaged`, `Truncated`. Each is returned after all frames before
    /// it, except for up to 511 frames before damage in a compressed file.
    pub fn read(&mut self, planes: &mut [impl AsMut<[f32]>]) -> Result<usize, SoundFileError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let wanted = planes.iter_mut().map(|plane| plane.as_mut().len()).min().unwrap_or(0);
        let mut read = 0;
        while read < wanted {
            if self.taken == self.filled {
                match self.decode() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) if read == 0 => return Err(failure),
                    Err(failure) => {
                        self.failure = Some(failure);
                        break;
                    }
                }
            }
            read += self.take(planes, read, wanted - read);
        }
        Ok(read)
    }

    /// Goes to this frame, which is read next. Returns false if the file cannot do that: a pipe, or
    /// a frame beyond its end. Then it reads on where it was.
    pub fn seek(&mut self, frame: u64) -> bool {
        let can_seek = self.failure.is_none() && self.sound.seek(frame);
        if can_seek {
            (self.filled, self.taken, self.decoded) = (0, 0, frame);
        }
        can_seek
    }

    /// Moves up to `limit` frames of the block to the planes, from their frame `start` on.
    fn take(&mut self, planes: &mut [impl AsMut<[f32]>], start: usize, limit: usize) -> usize {
        let frames = limit.min(self.filled - self.taken);
        let interleaved = &self.block[self.taken * self.channels..][..frames * self.channels];
        for (channel, plane) in planes.iter_mut().enumerate() {
            let into = &mut plane.as_mut()[start..start + frames];
            if channel < self.channels {
                let samples = interleaved.iter().skip(channel).step_by(self.channels);
                into.iter_mut().zip(samples).for_each(|(into, sample)| *into = *sample);
            } else {
                into.fill(0.0);
            }
        }
        self.taken += frames;
        frames
    }

    /// Replaces the block by the next one. Returns false at the end of the file.
    fn decode(&mut self) -> Result<bool, SoundFileError> {
        (self.filled, self.taken) = (0, 0);
        let frames = self.sound.read(&mut self.block);
        if let Some(source) = self.sound.failure() {
            return Err(SoundFileError::Read { path: self.path.clone(), source });
        }
        if let Some(reason) = self.sound.damage() {
            // A decoder that runs out of bytes also reports an error in the last of them.
            return match self.end() {
                Err(truncated) if self.sound.has_met_the_end() => Err(truncated),
                _ => Err(damaged(&self.path, self.decoded, reason)),
            };
        }
        if frames == 0 {
            return self.end();
        }
        self.decoded += frames as u64;
        self.filled = frames;
        Ok(true)
    }

    /// Handles the end of the data: an error if it comes before the announced end.
    fn end(&self) -> Result<bool, SoundFileError> {
        match self.frames {
            Some(frames) if self.decoded < frames => Err(SoundFileError::Truncated {
                path: self.path.clone(),
                frame: self.decoded,
                frames,
            }),
            None if self.is_cut => {
                Err(damaged(&self.path, self.decoded, "the file ends too early".into()))
            }
            _ => Ok(false),
        }
    }
}

/// Returns the error for a file that could not be opened.
fn refused(path: &Path, refusal: Refusal) -> SoundFileError {
    let path = path.to_owned();
    match refusal {
        Refusal::Library(reason) => SoundFileError::Library { path, reason },
        Refusal::System(source) => SoundFileError::Read { path, source },
        Refusal::Unrecognised => SoundFileError::NotASoundFile { path },
        Refusal::Malformed(reason) => SoundFileError::Damaged { path, frame: 0, reason },
        Refusal::Unsupported(reason) => SoundFileError::Unsupported { path, reason },
    }
}

/// Returns the error for a file that is damaged after `frame` frames.
fn damaged(path: &Path, frame: u64, reason: String) -> SoundFileError {
    SoundFileError::Damaged { path: path.to_owned(), frame, reason }
}
