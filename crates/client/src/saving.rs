//! Sessions: asking other clients to save, and being asked.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use proto::event::Answer;
use proto::limits::SESSION_COMMAND_BYTES;
use proto::request::{Reply, Request};
use proto::session::{SessionAnswer, SessionCommand, SessionKind, SessionRequest};

use crate::callbacks::SessionEvent;
use crate::session::Core;
use crate::{Error, Observer, Session};

/// `JackSessionSaveError`
const NOT_SAVED: u32 = 1;

/// The directory of client `name` in that of the session: one directory, whatever the name is.
fn directory_of(name: &str, session: &str) -> PathBuf {
    let name = match name {
        "." | ".." => "_".to_owned(),
        name => name.replace('/', "_"),
    };
    // So that it ends in '/'.
    Path::new(session).join(name).join("")
}

impl Core {
    /// Has the program save. Notification thread.
    pub(crate) fn take_session(&self, kind: SessionKind, path: &str, token: u64) {
        let directory = directory_of(&self.name, path);
        if let Err(error) = std::fs::create_dir_all(&directory) {
            crate::log::warn(&format!("no directory {} for the session: {error}", directory.display()));
            return self.refuse_session(token);
        }
        // Release: pairs with the answer, which another thread may give.
        self.session_question.store(token, Ordering::Release);
        let event = SessionEvent { kind, directory };
        if !self.call(|callbacks| &callbacks.session, |callback| callback(event)) {
            self.refuse_session(token);
        }
    }

    pub(crate) fn refuse_session(&self, token: u64) {
        self.answer(Answer::Session {
            token,
            answer: SessionAnswer { flags: NOT_SAVED, command: String::new() },
        });
    }
}

impl Session {
    /// Asks the client `target`, or all that have a session callback, to save in a directory of its own in `path`; waits
    /// for their answers, at most 30 s.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn notify_session(
        &self,
        target: Option<&str>,
        kind: SessionKind,
        path: &str,
    ) -> Result<Vec<SessionCommand>, Error> {
        // The clients may be in other directories.
        let path = std::path::absolute(path).ok().and_then(|path| path.into_os_string().into_string().ok());
        let path = path.unwrap_or_default();
        let request = SessionRequest::Notify { target: target.map(str::to_owned), kind, path };
        match self.exchange(Request::Session(request))? {
            Reply::Session(commands) => Ok(commands),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// Answers the session manager; false if nothing was asked, or the command is longer than 2 KiB. Any thread.
    pub fn answer_session(&self, answer: SessionAnswer) -> bool {
        let core = self.core();
        if core.is_forked() || answer.command.len() > SESSION_COMMAND_BYTES {
            return false;
        }
        let token = core.session_question.swap(0, Ordering::Acquire);
        if token != 0 {
            core.answer(Answer::Session { token, answer });
        }
        token != 0
    }

    /// Keeps a name for the client that opens with this uuid as its session's.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn reserve_name(&self, name: &str, uuid: u64) -> Result<(), Error> {
        self.order(Request::Session(SessionRequest::Reserve { name: name.to_owned(), uuid }))
    }

    /// Whether the client of that name has a session callback and is active.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn has_session_callback(&self, name: &str) -> Result<bool, Error> {
        let request = SessionRequest::HasCallback { name: name.to_owned() };
        match self.exchange(Request::Session(request))? {
            Reply::Count(count) => Ok(count > 0),
            _ => Err(Error::OTHER_REPLY),
        }
    }
}

impl Observer {
    /// As [`Session::notify_session`]; `path` is taken as it is.
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn notify_session(
        &self,
        target: Option<&str>,
        kind: SessionKind,
        path: &str,
    ) -> Result<Vec<SessionCommand>, Error> {
        let (target, path) = (target.map(str::to_owned), path.to_owned());
        match self.exchange(Request::Session(SessionRequest::Notify { target, kind, path }))? {
            Reply::Session(commands) => Ok(commands),
            _ => Err(Error::OTHER_REPLY),
        }
    }

    /// As [`Session::reserve_name`].
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn reserve_name(&self, name: &str, uuid: u64) -> Result<(), Error> {
        self.order(Request::Session(SessionRequest::Reserve { name: name.to_owned(), uuid }))
    }

    /// As [`Session::has_session_callback`].
    ///
    /// # Errors
    /// Those of [`order`](Self::order).
    pub fn has_session_callback(&self, name: &str) -> Result<bool, Error> {
        let request = SessionRequest::HasCallback { name: name.to_owned() };
        match self.exchange(Request::Session(request))? {
            Reply::Count(count) => Ok(count > 0),
            _ => Err(Error::OTHER_REPLY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_one_directory_in_the_sessions_whatever_its_name_is() {
        for (name, expected) in [
            ("synth", "/s/synth/"),
            ("a/b", "/s/a_b/"),
            ("/etc", "/s/_etc/"),
            ("..", "/s/_/"),
            (".", "/s/_/"),
            ("../x", "/s/.._x/"),
        ] {
            assert_eq!(directory_of(name, "/s").to_str(), Some(expected));
        }
    }
}
