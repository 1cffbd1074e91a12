//! The client's part in saving a session.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use proto::event::Answer;
use proto::limits::SESSION_COMMAND_BYTES;
use proto::session::{SessionAnswer, SessionKind};

use crate::Session;
use crate::callbacks::SessionEvent;
use crate::session::Core;

/// `JackSessionSaveError`.
const NOT_SAVED: u32 = 1;

/// Returns the directory of client `name` below the session's: always one directory, whatever the
/// name contains.
fn directory_of(name: &str, session: &str) -> PathBuf {
    let name = match name {
        "." | ".." => "_".to_owned(),
        name => name.replace('/', "_"),
    };
    // Appends a trailing '/'.
    Path::new(session).join(name).join("")
}

impl Core {
    /// Calls the program's session callback. Notification thread.
    pub(crate) fn take_session(&self, kind: SessionKind, path: &str, token: u64) {
        let directory = directory_of(&self.name, path);
        if let Err(error) = std::fs::create_dir_all(&directory) {
            crate::log::warn(&format!(
                "no directory {} for the session: {error}",
                directory.display()
            ));
            return self.refuse_session(token);
        }
        // Release: pairs with the answer, which may come from another thread.
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
    /// Answers the session manager. Returns false if no question is pending or the command is
    /// longer than 2 KiB. Thread: any that may wait.
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
