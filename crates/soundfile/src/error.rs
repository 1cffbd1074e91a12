//! Errors of sound files.

use std::io;
use std::path::PathBuf;

/// Why a sound file could not be read or written, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoundFileError {
    /// There is no such file.
    #[error("there is no sound file {path}: check the name")]
    Missing {
        /// The file asked for.
        path: PathBuf,
    },
    /// The file could not be opened, or not be read once open.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file being read.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// libsndfile does not recognise the file.
    #[error(
        "{path} is not a sound file: give a WAV or FLAC file, or another that libsndfile reads"
    )]
    NotASoundFile {
        /// The file being read.
        path: PathBuf,
    },
    /// The file is a sound file of a kind that is not supported.
    #[error(
        "cannot decode {path} ({reason}): convert it to WAV with PCM samples and at most 1024 channels, or to FLAC"
    )]
    Unsupported {
        /// The file being read.
        path: PathBuf,
        /// What is not supported.
        reason: String,
    },
    /// The file contradicts its own format.
    #[error("{path} is damaged after frame {frame} ({reason}): replace it by an intact copy")]
    Damaged {
        /// The file being read.
        path: PathBuf,
        /// Frames that could be read before the damage.
        frame: u64,
        /// What is wrong.
        reason: String,
    },
    /// The file ends before the number of frames that its header announces.
    #[error("{path} ends after {frame} of {frames} frames: replace it by a complete copy")]
    Truncated {
        /// The file being read.
        path: PathBuf,
        /// Frames that are there.
        frame: u64,
        /// Frames that the header announces.
        frames: u64,
    },
    /// A WAV file cannot have this number of channels or this sample rate.
    #[error(
        "cannot make {path} with {channels} channels at {sample_rate_hz} Hz: \
         a WAV file takes 1 to 1024 channels and less than 2^31 bytes per second; use several files"
    )]
    Shape {
        /// The file to be made.
        path: PathBuf,
        /// Channels asked for.
        channels: u16,
        /// Frames per second asked for.
        sample_rate_hz: u32,
    },
    /// The file could not be created or written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file being written.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// There is no room left. What was written before is a valid file.
    #[error("the disk is full: {path} ends after {frames} frames; make room or write elsewhere")]
    DiskFull {
        /// The file being written.
        path: PathBuf,
        /// Frames that the file holds.
        frames: u64,
    },
    /// libsndfile is not installed.
    #[error(
        "cannot open {path} without libsndfile ({reason}): install it (Debian's package is libsndfile1)"
    )]
    Library {
        /// The file to be read or written.
        path: PathBuf,
        /// What the dynamic linker says.
        reason: String,
    },
}
