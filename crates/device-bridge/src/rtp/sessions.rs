//! Which sessions are played, by what is announced: pure.

use std::net::IpAddr;

use super::announcement::Announcement;
use super::description::{Description, origin};

/// Sessions at once, as with PulseAudio.
const MOST: usize = 16;
/// A session has ended when nothing was heard of it for this long, ns: four of PulseAudio's
/// intervals.
const SILENT_NS: u64 = 20_000_000_000;
/// How soon one that could not be played, or has ended, may begin again, ns.
const AGAIN_NS: u64 = 5_000_000_000;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Play this session, by a number that no other has.
    Begin(u64, Description),
    /// Play it no longer.
    End(u64),
}

/// A session that was announced.
#[derive(Debug)]
struct Session {
    /// Who announced it: nobody else ends or changes it.
    from: IpAddr,
    origin: String,
    heard_ns: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Plays(u64, Description),
    /// Since when.
    Ended(u64),
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    all: Vec<Session>,
    next: u64,
}

impl Sessions {
    /// Takes a datagram that has come from this address.
    pub(super) fn heard(&mut self, now_ns: u64, from: IpAddr, datagram: &[u8]) -> Vec<Change> {
        let Some(said) = Announcement::read(datagram) else { return Vec::new() };
        let Some(origin) = origin(said.description) else { return Vec::new() };
        let known = self.all.iter().position(|session| session.origin == origin);
        let Some(at) = known else {
            let description = Description::read(said.description).filter(|_| !said.ends);
            // MUTATION: rtp.any_number_of_sessions
            let is_full = self.all.len() >= MOST;
            let Some(description) = description.filter(|_| !is_full) else { return Vec::new() };
            let origin = origin.to_owned();
            let (state, begin) = self.begin(description);
            self.all.push(Session { from, origin, heard_ns: now_ns, state });
            return vec![begin];
        };
        // MUTATION: rtp.anybody_ends_sessions
        if self.all[at].from != from {
            return Vec::new();
        }
        if said.ends {
            return self.end(at, now_ns);
        }
        let Some(description) = Description::read(said.description) else { return Vec::new() };
        self.all[at].heard_ns = now_ns;
        match &self.all[at].state {
            State::Plays(_, known) if *known == description => Vec::new(),
            State::Ended(since_ns) if now_ns < since_ns + AGAIN_NS => Vec::new(),
            // It has changed, or is back.
            _ => {
                let mut changes = self.end(at, now_ns);
                // Whoever changes it all the time has it played no more often.
                if changes.is_empty() {
                    let (state, begin) = self.begin(description);
                    self.all[at].state = state;
                    changes.push(begin);
                }
                changes
            }
        }
    }

    fn begin(&mut self, description: Description) -> (State, Change) {
        self.next += 1;
        (State::Plays(self.next, description.clone()), Change::Begin(self.next, description))
    }

    fn end(&mut self, at: usize, now_ns: u64) -> Vec<Change> {
        match self.all[at].state {
            State::Plays(number, _) => {
                self.all[at].state = State::Ended(now_ns);
                vec![Change::End(number)]
            }
            State::Ended(_) => Vec::new(),
        }
    }

    /// One has ended by itself.
    pub(super) fn ended(&mut self, number: u64, now_ns: u64) {
        for session in &mut self.all {
            if matches!(session.state, State::Plays(of, _) if of == number) {
                session.state = State::Ended(now_ns);
            }
        }
    }

    /// Ends those of which nothing was heard.
    pub(super) fn expire(&mut self, now_ns: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        self.all.retain(|session| {
            let is_silent = session.gone_ns() <= now_ns;
            if let State::Plays(number, _) = session.state
                && is_silent
            {
                changes.push(Change::End(number));
            }
            !is_silent
        });
        changes
    }

    /// Returns when to [expire](Self::expire) next, ns.
    pub(super) fn due_ns(&self) -> Option<u64> {
        self.all.iter().map(Session::gone_ns).min()
    }
}

impl Session {
    /// When it is forgotten if nothing more is heard of it, ns.
    fn gone_ns(&self) -> u64 {
        match self.state {
            State::Plays(..) => self.heard_ns + SILENT_NS,
            State::Ended(since_ns) => self.heard_ns.max(since_ns) + AGAIN_NS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::Samples;
    use super::*;

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));
    const SECOND: u64 = 1_000_000_000;

    fn session(origin: &str, port: u16) -> Description {
        Description {
            origin: origin.into(),
            name: "music".into(),
            to: ([224, 0, 0, 56], port).into(),
            samples: Samples::new(48_000, 2),
        }
    }

    fn said(description: &Description, ends: bool) -> Vec<u8> {
        let text = description.write(1, 0);
        Announcement { ends, version: 1, from: HOST, description: &text }.write()
    }

    #[test]
    fn a_session_plays_from_its_first_announcement_until_it_ends_or_is_silent() {
        let mut sessions = Sessions::default();
        let (one, two) = (session("one", 5000), session("two", 5002));
        let begin = sessions.heard(0, HOST, &said(&one, false));
        assert_eq!(begin, [Change::Begin(1, one.clone())]);
        let begin = sessions.heard(SECOND, HOST, &said(&two, false));
        assert_eq!(begin, [Change::Begin(2, two.clone())]);
        assert_eq!(sessions.heard(5 * SECOND, HOST, &said(&one, false)), []);
        assert_eq!(sessions.due_ns(), Some(21 * SECOND));
        assert_eq!(sessions.expire(21 * SECOND - 1), []);
        assert_eq!(sessions.expire(21 * SECOND), [Change::End(2)]);
        assert_eq!(sessions.heard(22 * SECOND, HOST, &said(&one, true)), [Change::End(1)]);
        assert_eq!(sessions.heard(22 * SECOND, HOST, &said(&one, true)), []);
        assert_eq!(sessions.expire(27 * SECOND), []);
        assert_eq!(sessions.due_ns(), None);
    }

    #[test]
    fn nobody_else_ends_or_changes_a_session() {
        let mut sessions = Sessions::default();
        sessions.heard(0, HOST, &said(&session("one", 5000), false));
        assert_eq!(sessions.heard(0, OTHER, &said(&session("one", 5000), true)), []);
        assert_eq!(sessions.heard(0, OTHER, &said(&session("one", 6000), false)), []);
        assert_eq!(sessions.heard(0, HOST, &said(&session("one", 5000), true)), [Change::End(1)]);
    }

    #[test]
    fn a_session_that_changes_or_fails_begins_again_after_a_while() {
        let mut sessions = Sessions::default();
        let (before, after) = (session("one", 5000), session("one", 6000));
        sessions.heard(0, HOST, &said(&before, false));
        assert_eq!(sessions.heard(0, HOST, &said(&after, false)), [Change::End(1)]);
        assert_eq!(sessions.heard(AGAIN_NS - 1, HOST, &said(&after, false)), []);
        let begin = sessions.heard(AGAIN_NS, HOST, &said(&after, false));
        assert_eq!(begin, [Change::Begin(2, after.clone())]);
        sessions.ended(2, AGAIN_NS);
        assert_eq!(sessions.heard(2 * AGAIN_NS - 1, HOST, &said(&after, false)), []);
        let begin = sessions.heard(2 * AGAIN_NS, HOST, &said(&after, false));
        assert_eq!(begin, [Change::Begin(3, after)]);
    }

    #[test]
    fn sessions_are_few_however_many_are_announced() {
        let mut sessions = Sessions::default();
        let mut began = 0;
        for number in 0..1000_u16 {
            let session = session(&number.to_string(), 5000);
            began += sessions.heard(0, HOST, &said(&session, false)).len();
            sessions.heard(0, HOST, &said(&session, true));
        }
        assert_eq!(began, MOST);
        assert_eq!(sessions.expire(AGAIN_NS), []);
        let session = session("later", 5000);
        assert_eq!(sessions.heard(AGAIN_NS, HOST, &said(&session, false)).len(), 1);
    }

    #[test]
    fn what_is_no_announcement_changes_nothing() {
        let mut sessions = Sessions::default();
        for datagram in [&b""[..], b"\x20\0\0\0\x0a\0\0\x01v=0\n", &[0xff; 1000]] {
            assert_eq!(sessions.heard(0, HOST, datagram), []);
        }
        assert_eq!(sessions.due_ns(), None);
    }
}
