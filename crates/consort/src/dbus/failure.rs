//! What a call is answered that cannot be done.

use proto::request::RequestError;

/// An error of jackdbus's names. Nothing was changed.
#[derive(Debug, zbus::DBusError)]
#[zbus(prefix = "org.jackaudio.Error")]
pub(super) enum Failure {
    /// Of the bus itself.
    #[zbus(error)]
    Bus(zbus::Error),
    /// An argument that names nothing, or cannot be.
    InvalidArgs(String),
    /// It needs a server that runs.
    ServerNotRunning(String),
    /// The server refused it, or it failed.
    Generic(String),
}

/// How a call is answered.
pub(super) type Answer<T> = Result<T, Failure>;

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
    pub(super) fn not_running() -> Self {
        Self::ServerNotRunning("the server does not run: start it with StartServer".into())
    }
}
