//! Reading WAV and FLAC.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use symphonia::core::codecs::audio::AudioDecoder;
use symphonia::core::codecs::audio::AudioDecoderOptions;
use symphonia::core::errors::Error as DecodingError;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSourceStream, MediaSourceStreamOptions};
use symphonia::core::meta::MetadataOptions;

use crate::{SoundFileError, riff};

/// What a file may start with: WAV, FLAC, or a tag in front of FLAC.
const FIRST_BYTES: [&[u8]; 3] = [b"RIFF", b"fLaC", b"ID3"];

/// A sound file being read from its beginning to its end.
pub struct Reader {
    path: PathBuf,
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track_id: u32,
    channels: usize,
    sample_rate_hz: u32,
    frames: Option<u64>,
    /// The last decoded packet, one vector per channel, of equal lengths.
    packet: Vec<Vec<f32>>,
    /// Frames of `packet` that have been handed out.
    taken: usize,
    /// Frames decoded so far, those in `packet` included.
    decoded: u64,
    /// An error met after a call had already read some frames: what the next call returns.
    failure: Option<SoundFileError>,
}

impl Reader {
    /// Opens a WAV (integers of 8 to 32 bits, floating point; at most 26 channels) or FLAC file.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Missing`, `Read`, `NotASoundFile`, `Unsupported`, `Damaged`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SoundFileError> {
        let path = path.as_ref().to_owned();
        let file = open_sound_file(&path)?;
        let stream = MediaSourceStream::new(Box::new(file), MediaSourceStreamOptions::default());
        let format = symphonia::default::get_probe()
            .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
            .map_err(|error| failure(&path, 0, error))?;

        let unsupported =
            |reason: &str| SoundFileError::Unsupported { path: path.clone(), reason: reason.into() };
        let track = format.default_track(TrackType::Audio).ok_or_else(|| unsupported("it has no sound"))?;
        let parameters = track.codec_params.as_ref().and_then(|parameters| parameters.audio());
        let parameters = parameters.ok_or_else(|| unsupported("its encoding is unknown"))?;
        let sample_rate_hz = parameters.sample_rate.ok_or_else(|| unsupported("it states no sample rate"))?;
        let channels = parameters.channels.as_ref().map_or(0, |channels| channels.count());
        if channels == 0 || sample_rate_hz == 0 {
            return Err(unsupported("it has no channels or no sample rate"));
        }
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(parameters, &AudioDecoderOptions::default())
            .map_err(|error| failure(&path, 0, error))?;
        let (track_id, frames) = (track.id, track.num_frames);
        Ok(Self {
            path,
            format,
            decoder,
            track_id,
            channels,
            sample_rate_hz,
            frames,
            packet: vec![Vec::new(); channels],
            taken: 0,
            decoded: 0,
            failure: None,
        })
    }

    /// Channels, at least 1.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Frames per second, at least 1.
    pub fn sample_rate_hz(&self) -> u32 {
        self.sample_rate_hz
    }

    /// Frames that the header announces, if it does.
    pub fn frames(&self) -> Option<u64> {
        self.frames
    }

    /// Reads the next frames, one plane per channel, and returns how many: as many as the shortest plane holds,
    /// fewer at the end of the file, then 0. What lies behind them in the planes is unchanged.
    ///
    /// Planes beyond the file's channels are filled with silence; channels without a plane are left out.
    /// Integers of `bits` bits are divided by `2^(bits - 1)`; up to 24 bits, that is exact.
    ///
    /// # Errors
    /// [`SoundFileError`]: `Read`, `Damaged`, `Truncated`; each once all frames before it have been read.
    pub fn read(&mut self, planes: &mut [impl AsMut<[f32]>]) -> Result<usize, SoundFileError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let wanted = planes.iter_mut().map(|plane| plane.as_mut().len()).min().unwrap_or(0);
        let mut filled = 0;
        while filled < wanted {
            if self.taken == self.packet[0].len() {
                match self.decode_packet() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) if filled == 0 => return Err(failure),
                    Err(failure) => {
                        self.failure = Some(failure);
                        break;
                    }
                }
            }
            filled += self.take(planes, filled, wanted - filled);
        }
        Ok(filled)
    }

    /// Moves up to `limit` frames of the packet to the planes, from frame `start` of these on.
    fn take(&mut self, planes: &mut [impl AsMut<[f32]>], start: usize, limit: usize) -> usize {
        let frames = limit.min(self.packet[0].len() - self.taken);
        for (channel, plane) in planes.iter_mut().enumerate() {
            let into = &mut plane.as_mut()[start..start + frames];
            match self.packet.get(channel) {
                Some(samples) => into.copy_from_slice(&samples[self.taken..self.taken + frames]),
                None => into.fill(0.0),
            }
        }
        self.taken += frames;
        frames
    }

    /// Replaces the packet by the next one that has frames; `false` at the end of the file.
    fn decode_packet(&mut self) -> Result<bool, SoundFileError> {
        loop {
            let packet = match self.format.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return self.end(),
                Err(DecodingError::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return self.end();
                }
                Err(error) => return Err(failure(&self.path, self.decoded, error)),
            };
            if packet.track_id != self.track_id {
                continue;
            }
            // The format skips over what it cannot make out; what follows must not move up into the gap.
            if u64::try_from(packet.pts.get()) != Ok(self.decoded) {
                return Err(damaged(&self.path, self.decoded, "frames are missing"));
            }
            let decoded =
                self.decoder.decode(&packet).map_err(|error| failure(&self.path, self.decoded, error))?;
            if decoded.num_planes() != self.channels {
                return Err(damaged(&self.path, self.decoded, "the number of channels changes"));
            }
            if decoded.frames() > 0 {
                self.decoded += decoded.frames() as u64;
                decoded.copy_to_vecs_planar(&mut self.packet);
                self.taken = 0;
                return Ok(true);
            }
        }
    }

    /// No more data: right at the announced end, an error before it.
    fn end(&self) -> Result<bool, SoundFileError> {
        match self.frames {
            Some(frames) if self.decoded < frames => {
                Err(SoundFileError::Truncated { path: self.path.clone(), frame: self.decoded, frames })
            }
            _ => Ok(false),
        }
    }
}

/// Opens the file if its first bytes promise sound; the decoder would search any file for the promise.
fn open_sound_file(path: &Path) -> Result<File, SoundFileError> {
    let read = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SoundFileError::Missing { path: path.to_owned() },
        _ => SoundFileError::Read { path: path.to_owned(), source },
    };
    let mut file = File::open(path).map_err(read)?;
    let mut start = Vec::new();
    (&file).take(4).read_to_end(&mut start).map_err(read)?;
    if !FIRST_BYTES.iter().any(|first| start.starts_with(first)) {
        return Err(SoundFileError::NotASoundFile { path: path.to_owned() });
    }
    file.rewind().map_err(read)?;
    match riff::channels(&mut file) {
        Some(channels) if channels > riff::MAXIMUM_CHANNELS => {
            let reason = format!("a WAV of {channels} channels, more than {}", riff::MAXIMUM_CHANNELS);
            return Err(SoundFileError::Unsupported { path: path.to_owned(), reason });
        }
        _ => {}
    }
    file.rewind().map_err(read)?;
    Ok(file)
}

/// The error for a file that contradicts its format after `frame` frames.
fn damaged(path: &Path, frame: u64, reason: &str) -> SoundFileError {
    SoundFileError::Damaged { path: path.to_owned(), frame, reason: reason.into() }
}

/// The decoder's error, met after `frame` frames.
fn failure(path: &Path, frame: u64, error: DecodingError) -> SoundFileError {
    match error {
        DecodingError::IoError(source) if source.kind() == io::ErrorKind::UnexpectedEof => {
            damaged(path, frame, "the file ends too early")
        }
        DecodingError::IoError(source) => SoundFileError::Read { path: path.to_owned(), source },
        DecodingError::Unsupported(reason) => {
            SoundFileError::Unsupported { path: path.to_owned(), reason: reason.into() }
        }
        error => damaged(path, frame, &error.to_string()),
    }
}
