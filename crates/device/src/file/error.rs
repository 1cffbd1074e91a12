//! Why a file driver cannot be opened.

use std::io;
use std::path::PathBuf;

use proto::limits::SAMPLE_RATE_HZ;
use soundfile::SoundFileError;

/// Why a file driver cannot be opened, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileDriverError {
    /// Neither an input nor an output was given.
    #[error(
        "the file driver has nothing to do: give a file to play or one to record to, or use the timer"
    )]
    NoFile,
    /// The input cannot be read, or the output cannot be created.
    #[error(transparent)]
    SoundFile(#[from] SoundFileError),
    /// The requested rate is not the input's.
    #[error(
        "{path} has {file_hz} Hz, but {asked_hz} Hz were requested: leave out the rate, or convert the file"
    )]
    OtherSampleRate {
        /// The input.
        path: PathBuf,
        /// Its rate.
        file_hz: u32,
        /// The rate in the options.
        asked_hz: u32,
    },
    /// The server does not support the rate.
    #[error(
        "{sample_rate_hz} Hz is out of range: the sample rate may be {} to {} Hz",
        SAMPLE_RATE_HZ.start(),
        SAMPLE_RATE_HZ.end()
    )]
    SampleRate {
        /// The rate of the input, or the one in the options.
        sample_rate_hz: u32,
    },
    /// Recording would overwrite the file that is played.
    #[error("{path} cannot be played and recorded to at once: record to another file")]
    SameFile {
        /// The file, as named for the output.
        path: PathBuf,
    },
    /// No thread can be started for the file.
    #[error(
        "cannot start a thread for {path}: {source}; raise the limit on threads or free memory"
    )]
    Thread {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}
