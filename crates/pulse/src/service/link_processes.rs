//! The processes that pass frames on for modules: `consort device serve`, each with one link.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context;
use sys::clock::now_ns;
use sys::helper::{Ending, Helper, Lines};
use sys::poll::{Interest, Poller};

use super::link_words::{environment, words};
use crate::output::NewLink;

/// How long a process may take to end when this one does, or has closed its output, ns.
const END_TIMEOUT_NS: u64 = 2_000_000_000;
/// Within how long after the processes of its clients a server has ended, ns.
const WITH_SERVER_NS: u64 = 500_000_000;
/// Within how long a process says that it passes frames on, ns: the server and a plug-in may keep
/// it waiting.
const BEGIN_WITHIN_NS: u64 = 20_000_000_000;
/// How the line begins by which a process says that it passes frames on.
const READY: &str = "joined: ";
/// And the one by which it says why it ends.
const ENDED: &str = "ended: ";

/// What is new about a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkNews {
    /// It passes frames on, or says why it cannot.
    Begun(Result<(), String>),
    /// It has ended, and its server has not: why, if it says.
    Ended(Option<String>),
}

/// All of them, by the numbers that they were given.
#[derive(Debug)]
pub(super) struct LinkProcesses {
    /// Readable once there is news.
    poller: Poller,
    all: BTreeMap<u64, Process>,
    ended: Ended,
    next: u64,
    /// Where this front end listens.
    own: PathBuf,
}

/// Processes that have ended by themselves, the first first, and when that is news, ns. If their
/// server has ended, its connection says so before.
#[derive(Debug, Default)]
struct Ended(VecDeque<(u32, u64, Option<String>)>);

impl Ended {
    fn note(&mut self, number: u32, reason: Option<String>, now_ns: u64) {
        self.0.push_back((number, now_ns + WITH_SERVER_NS, reason));
    }

    /// Nobody waits for news of this number: another process may have it next.
    fn forget(&mut self, number: u32) {
        self.0.retain(|(ended, ..)| *ended != number);
    }

    fn due_ns(&self) -> Option<u64> {
        self.0.front().map(|(_, at_ns, _)| *at_ns)
    }

    fn take_due(&mut self, now_ns: u64) -> Option<(u32, Option<String>)> {
        let due = self.0.pop_front_if(|(_, at_ns, _)| *at_ns <= now_ns);
        due.map(|(number, _, reason)| (number, reason))
    }
}

#[derive(Debug)]
struct Process {
    /// `None`: it was asked to end, and nobody waits for news of it.
    number: Option<u32>,
    helper: Helper,
    lines: Lines,
    /// By when it says whether it passes frames on, ns; `None`: it has.
    begins_by_ns: Option<u64>,
    /// Why it ends.
    reason: Option<String>,
}

impl LinkProcesses {
    /// Begins without any.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> std::io::Result<Self> {
        let (all, ended, own) = Default::default();
        Ok(Self { poller: Poller::new()?, all, ended, next: 0, own })
    }

    /// Has processes that are programs of this front end connect here.
    pub fn listens_at(&mut self, own: PathBuf) {
        self.own = own;
    }

    /// Starts a process.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(&mut self, number: u32, server: &str, new: &NewLink) -> anyhow::Result<()> {
        let mut command = cli::own_program()?;
        command.args(["--server", server, "device", "serve"]).args(words(new, &self.own));
        command.args(["--report", "--until-stdin-ends"]).envs(environment(new));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let ending = Ending::CloseInput { timeout_ns: END_TIMEOUT_NS };
        let helper = Helper::spawn(&mut command, ending);
        let mut helper = helper.context("no process can be started for it")?;
        let lines = helper.lines().context("its process has no output")?;
        self.poller.add(&lines, self.next, Interest::Readable)?;
        let (number, reason) = (Some(number), None);
        let begins_by_ns = Some(now_ns() + BEGIN_WITHIN_NS);
        self.all.insert(self.next, Process { number, helper, lines, begins_by_ns, reason });
        self.next += 1;
        Ok(())
    }

    /// Asks the process of this number to end, and does not wait for it.
    pub fn end(&mut self, number: u32) {
        self.ended.forget(number);
        for process in self.all.values_mut().filter(|process| process.number == Some(number)) {
            process.helper.close_input();
            process.number = None;
        }
    }

    /// Returns the id of the process of this number.
    pub fn id(&self, number: u32) -> Option<u32> {
        let mut all = self.all.values();
        let process = all.find(|process| process.number == Some(number));
        process.map(|process| process.helper.id())
    }

    /// Returns when to look for news although none is readable, ns.
    pub fn due_ns(&self) -> Option<u64> {
        let begins = self.all.values().filter_map(|process| process.begins_by_ns);
        begins.chain(self.ended.due_ns()).min()
    }

    /// Returns what is new, by the numbers of the processes.
    pub fn news(&mut self, now_ns: u64) -> Vec<(u32, LinkNews)> {
        let (mut events, mut news) = (Vec::new(), Vec::new());
        if self.poller.wait(&mut events, Some(0)).is_err() {
            return news;
        }
        for event in events {
            let Some(process) = self.all.get_mut(&event.token) else { continue };
            while let Some(line) = process.lines.next_until(Some(0)) {
                let is_awaited = process.begins_by_ns.take().is_some();
                if let Some(reason) = line.strip_prefix(ENDED) {
                    process.reason = Some(reason.to_owned());
                } else if let Some(number) = process.number.filter(|_| is_awaited) {
                    let begun = if line.starts_with(READY) { Ok(()) } else { Err(line) };
                    news.push((number, LinkNews::Begun(begun)));
                }
            }
            if process.lines.has_ended() {
                let _ = self.poller.remove(&process.lines);
                // It has closed its output, so that it is about to end.
                let ended = self.all.remove(&event.token);
                if let Some(Process { number: Some(number), reason, .. }) = ended {
                    self.ended.note(number, reason, now_ns);
                }
            }
        }
        for process in self.all.values_mut() {
            // One that hangs: its output ends next.
            // MUTATION: link_processes.begun_after_any_time
            if process.begins_by_ns.take_if(|by_ns| *by_ns <= now_ns).is_some() {
                process.helper.kill();
                let reason = "its process does not begin: a plug-in that it loads may hang";
                news.extend(process.number.map(|of| (of, LinkNews::Begun(Err(reason.into())))));
            }
        }
        while let Some((number, reason)) = self.ended.take_due(now_ns) {
            news.push((number, LinkNews::Ended(reason)));
        }
        news
    }
}

impl AsFd for LinkProcesses {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_news_after_a_while_and_never_if_its_number_was_given_up() {
        let mut ended = Ended::default();
        ended.note(1, None, 0);
        ended.note(2, Some("why".into()), 10);
        assert_eq!(
            (ended.due_ns(), ended.take_due(WITH_SERVER_NS - 1)),
            (Some(WITH_SERVER_NS), None)
        );
        ended.forget(1);
        assert_eq!(ended.take_due(WITH_SERVER_NS), None);
        assert_eq!(ended.take_due(WITH_SERVER_NS + 10), Some((2, Some("why".into()))));
        assert_eq!((ended.due_ns(), ended.take_due(u64::MAX)), (None, None));
    }
}
