//! The errors with which calls are answered.

use proto::request::RequestError;

/// An error with one of jackdbus's names. Nothing was changed.
#[derive(Debug, zbus::DBusError)]
#[zbus(prefix = "org.jackaudio.Error")]
pub(crate) enum Failure {
    /// A failure of the bus itself.
    #[zbus(error)]
    Bus(zbus::Error),
    /// An argument that names nothing that exists, or is out of range.
    InvalidArgs(String),
    /// The call needs a running server.
    ServerNotRunning(String),
    /// The server refused the call, or it failed.
    Generic(String),
}

/// The answer to a call.
pub(crate) type Answer<T> = Result<T, Failure>;

impl From<client::Error> for Failure {
    fn from(error: client::Error) -> Self {
        match error {
            client::Error::NoServer { .. } | client::Error::ServerGone => Self::not_running(),
            client::Error::Refused(
                refused @ (RequestError::UnknownPort { .. }
                | RequestError::UnknownClient(_)
                | RequestError::Quantum(_)
                | RequestError::Name(_)
                | RequestError::WrongDirection { .. }
                | RequestError::TypeMismatch { .. }),
            ) => Self::InvalidArgs(refused.to_string()),
            other => Self::Generic(other.to_string()),
        }
    }
}

impl Failure {
    pub(crate) fn not_running() -> Self {
        Self::ServerNotRunning("the server is not running: start it with StartServer".into())
    }
}
