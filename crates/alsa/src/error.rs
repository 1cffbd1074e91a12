//! Errors of devices.

/// Why a device did not serve a cycle. Plain data: made and read inside a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device ran out of frames, or of room for them, and stopped.
    Xrun,
    /// The machine was suspended, and the device with it.
    Suspended,
    /// The device is gone.
    Gone,
    /// The device reports no progress although it should run.
    Stalled,
    /// Anything else: an `errno`.
    Other(i32),
}

impl Fault {
    /// Returns the meaning of a negative result of the library.
    pub(crate) fn from_result(result: i64) -> Self {
        match i32::try_from(-result).unwrap_or(libc::EIO) {
            libc::EPIPE => Self::Xrun,
            libc::ESTRPIPE => Self::Suspended,
            libc::ENODEV | libc::ENOTTY | libc::ENXIO => Self::Gone,
            errno => Self::Other(errno),
        }
    }
}

/// Why a device could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Another program has it.
    #[error("it is in use")]
    Busy,
    /// No device has this name.
    #[error("there is no such device")]
    Missing,
    /// This user lacks the permission.
    #[error("permission denied")]
    Denied,
    /// It passes its samples to a sound server of this kind, which may be consort itself.
    #[error("it leads to a sound server ({0}), and to no card")]
    SoundServer(&'static str),
    /// Anything else: an `errno`.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Other(i32),
}

impl OpenError {
    pub(crate) fn from_errno(errno: i32) -> Self {
        match errno {
            libc::EBUSY | libc::EAGAIN => Self::Busy,
            libc::ENOENT | libc::ENODEV | libc::ENXIO => Self::Missing,
            libc::EACCES | libc::EPERM => Self::Denied,
            errno => Self::Other(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_errors_are_mapped_to_faults() {
        assert_eq!(Fault::from_result(-32), Fault::Xrun);
        assert_eq!(Fault::from_result(-86), Fault::Suspended);
        assert_eq!(Fault::from_result(-19), Fault::Gone);
        assert_eq!(Fault::from_result(-5), Fault::Other(5));
        assert_eq!(OpenError::from_errno(libc::EBUSY), OpenError::Busy);
        assert_eq!(OpenError::from_errno(libc::ENOENT), OpenError::Missing);
        assert_eq!(OpenError::from_errno(libc::EACCES), OpenError::Denied);
    }
}
