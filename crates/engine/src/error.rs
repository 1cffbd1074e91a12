//! Why a server did not start, or ended badly.

use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use proto::names::NameError;
use state::StateError;
use sys::memory::SegmentError;
use sys::runtime_directory::RuntimeDirectoryError;

/// What should start with the server did not. The caller, which tried to start it, knows why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a process that starts with the server did not start")]
pub struct CompanionError;

/// Why a server did not start, or ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A process or thread that should have started with the server did not.
    #[error(transparent)]
    Companion(#[from] CompanionError),
    /// Another server has this name.
    #[error(
        "a server named '{name}' runs already: stop it with 'consort stop -n {name}', or start this one under another name with -n"
    )]
    AlreadyRunning {
        /// The name.
        name: String,
    },
    /// A parameter cannot be.
    #[error("{what} of {value} is out of range: {least} to {most}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: u32,
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
    /// A name that cannot be a server's.
    #[error("server name: {0}")]
    Name(#[from] NameError),
    /// There is no place for the socket.
    #[error(transparent)]
    Directory(#[from] RuntimeDirectoryError),
    /// A server for the members of a group that is none.
    #[error("there is no group '{name}': name one of those that 'getent group' lists")]
    UnknownGroup {
        /// Its name.
        name: String,
    },
    /// The socket's directory cannot be used.
    #[error("cannot use {path}: {source}")]
    Path {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No memory to share.
    #[error("no memory to share with programs: {0}")]
    Memory(#[from] SegmentError),
    /// The state cannot be kept where it was asked to be.
    #[error("{0}")]
    State(#[from] StateError),
    /// The driver's device, files or parameters.
    #[error("{0}")]
    Driver(String),
    /// A thread, a descriptor.
    #[error("the kernel refused {what}: {source}")]
    Kernel {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Checks that `value`, if there is one, is in `range`. `what` names the parameter in the error.
///
/// # Errors
/// [`ServerError::OutOfRange`]
pub(crate) fn within(
    what: &'static str,
    value: Option<u32>,
    range: RangeInclusive<u32>,
) -> Result<(), ServerError> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(ServerError::OutOfRange { what, value, least: *range.start(), most: *range.end() })
        }
        _ => Ok(()),
    }
}
