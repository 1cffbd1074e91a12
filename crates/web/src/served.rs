//! The server that a page serves, and whether it may.

use std::fmt;
use std::sync::Arc;

use client::{Error, Observer};
use observe::RecordingFollower;

use crate::access::Token;
use crate::commands::Failure;

/// A page without a token, and a server with a policy: the page would act for every program of the
/// user, whatever the policy lets that do, with the permissions of its own process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedsToken {
    server: Arc<str>,
}

impl fmt::Display for NeedsToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server '{}' has a policy, and a page without a token would act for every program \
             of this user, with its own permissions: start the page with --token-file",
            self.server
        )
    }
}

impl std::error::Error for NeedsToken {}

impl From<NeedsToken> for Failure {
    fn from(refusal: NeedsToken) -> Self {
        Self::Refused(refusal.to_string())
    }
}

/// The server of one name, which may be another one after each connection.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    name: Arc<str>,
    has_token: bool,
}

impl Served {
    /// Names the server of a page that answers those who present `token`.
    pub(crate) fn of(name: &str, token: Option<&Token>) -> Self {
        Self { name: name.into(), has_token: token.is_some() }
    }

    /// Connects with the server that has the name now. A page that is left open starts none: one
    /// that was stopped stays so.
    pub(crate) fn observer(&self) -> Result<Observer, Failure> {
        let observer = Observer::open_running(Some(&self.name))?;
        self.check(&observer)?;
        Ok(observer)
    }

    /// The same, and follows its recording.
    pub(crate) fn follower(&self) -> Result<RecordingFollower, Failure> {
        Ok(RecordingFollower::of(self.observer()?)?)
    }

    fn check(&self, observer: &Observer) -> Result<(), NeedsToken> {
        let has_policy = observer.engine().flags().has_policy;
        // MUTATION: served.acts_past_policy
        if has_policy && !self.has_token {
            return Err(NeedsToken { server: Arc::clone(&self.name) });
        }
        Ok(())
    }
}

/// Checks that a page with this token may serve the server that has the name now. One that comes
/// later is checked when the page connects with it.
///
/// # Errors
/// [`NeedsToken`].
pub fn check_server(name: &str, token: Option<&Token>) -> Result<(), NeedsToken> {
    let served = Served::of(name, token);
    let found: Result<Observer, Error> = Observer::open(Some(name));
    found.map_or(Ok(()), |observer| served.check(&observer))
}
