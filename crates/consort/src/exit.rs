//! The exit codes.

use cli::UsageError;

/// The request was refused, or failed.
pub(crate) const REFUSED: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// There is no server of that name.
pub(crate) const NO_SERVER: u8 = 3;

/// For the help and the man page.
pub(crate) const CODES: &str = "Exit codes:
  0  done
  1  refused by the server, or failed
  2  the command line makes no sense
  3  no server of that name is running
  consort exec passes on the exit code of the program that it runs.";

/// The exit code for `error`.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    if error.is::<UsageError>() {
        USAGE
    } else if matches!(error.downcast_ref(), Some(client::Error::NoServer { .. })) {
        NO_SERVER
    } else {
        REFUSED
    }
}

#[cfg(test)]
mod tests {
    use proto::request::RequestError;

    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_own_exit_code() {
        let missing = client::Error::NoServer { server: "x".into(), path: "/x".into() };
        let refused = client::Error::Refused(RequestError::Quantum(0));
        for (error, expected) in [
            (anyhow::Error::from(missing), NO_SERVER),
            (refused.into(), REFUSED),
            (UsageError("x".into()).into(), USAGE),
            (anyhow::anyhow!("disk full"), REFUSED),
        ] {
            assert_eq!(code(&error), expected, "{error}");
        }
    }
}
