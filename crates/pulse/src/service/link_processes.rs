//! The processes that pass frames on for modules: `consort device serve`, each with one link.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context;
use sys::clock::now_ns;
use sys::helper::{Ending, Helper, Lines, end_all};
use sys::poll::{Interest, Poller};

use super::link_words::{environment, words};
use crate::output::NewLink;

/// How long a process may take to end when this one does, or has closed its output, ns.
const END_TIMEOUT_NS: u64 = 2_000_000_000;
/// Lines of one process that are read at once: more than it ever says.
const MOST_LINES: usize = 16;
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
    /// By when it says whether it passes frames on, ns; or once it was asked to, ends. `None`: it
    /// has begun.
    due_ns: Option<u64>,
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
        self.watch(number, helper.context("no process can be started for it")?)
    }

    /// Reads what a process says.
    fn watch(&mut self, number: u32, mut helper: Helper) -> anyhow::Result<()> {
        let lines = helper.lines().context("its process has no output")?;
        self.poller.add(&lines, self.next, Interest::Readable)?;
        let (number, reason) = (Some(number), None);
        let due_ns = Some(now_ns() + BEGIN_WITHIN_NS);
        self.all.insert(self.next, Process { number, helper, lines, due_ns, reason });
        self.next += 1;
        Ok(())
    }

    /// Asks the process of this number to end, and does not wait for it.
    pub fn end(&mut self, number: u32) {
        self.ended.forget(number);
        for process in self.all.values_mut().filter(|process| process.number == Some(number)) {
            process.helper.close_input();
            process.number = None;
            // MUTATION: link_processes.ended_after_any_time
            process.due_ns = Some(now_ns() + END_TIMEOUT_NS);
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
        let due = self.all.values().filter_map(|process| process.due_ns);
        due.chain(self.ended.due_ns()).min()
    }

    /// Returns what is new, by the numbers of the processes.
    pub fn news(&mut self, now_ns: u64) -> Vec<(u32, LinkNews)> {
        let (mut events, mut news) = (Vec::new(), Vec::new());
        if self.poller.wait(&mut events, Some(0)).is_err() {
            return news;
        }
        for event in events {
            let Some(process) = self.all.get_mut(&event.token) else { continue };
            let mut count = 0;
            while count < MOST_LINES
                && let Some(line) = process.lines.next_until(Some(0))
            {
                count += 1;
                let Some(number) = process.number else { continue };
                let is_awaited = process.due_ns.take().is_some();
                if let Some(reason) = line.strip_prefix(ENDED) {
                    process.reason = Some(reason.to_owned());
                } else if is_awaited {
                    let begun = if line.starts_with(READY) { Ok(()) } else { Err(line) };
                    news.push((number, LinkNews::Begun(begun)));
                }
            }
            // One whose output has ended is about to end. A plug-in may say anything in its name,
            // and without end.
            if count == MOST_LINES || process.lines.has_ended() {
                let _ = self.poller.remove(&process.lines);
                let Some(ended) = self.all.remove(&event.token) else { continue };
                if let Some(number) = ended.number {
                    self.ended.note(number, ended.reason, now_ns);
                }
                end_elsewhere(ended.helper);
            }
        }
        let hangs = |process: &mut Process| {
            // MUTATION: link_processes.begun_after_any_time
            process.due_ns.take_if(|by_ns| *by_ns <= now_ns).is_some()
        };
        for (_, mut process) in self.all.extract_if(.., |_, process| hangs(process)) {
            // Its output may not end with it: it may have passed that on.
            let _ = self.poller.remove(&process.lines);
            process.helper.kill();
            end_elsewhere(process.helper);
            let reason = "its process does not begin: a plug-in that it loads may hang";
            news.extend(process.number.map(|of| (of, LinkNews::Begun(Err(reason.into())))));
        }
        while let Some((number, reason)) = self.ended.take_due(now_ns) {
            news.push((number, LinkNews::Ended(reason)));
        }
        news
    }
}

impl Drop for LinkProcesses {
    /// Ends all processes, in the time that one of them may take.
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.all).into_values();
        // A process may still say why it ends.
        let (helpers, _lines): (Vec<_>, Vec<_>) =
            all.map(|process| (process.helper, process.lines)).unzip();
        end_all(helpers);
    }
}

impl AsFd for LinkProcesses {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Waits on a thread for the end of a process, which may take its time although it has closed its
/// output.
fn end_elsewhere(helper: Helper) {
    // MUTATION: end_elsewhere.at_once
    let body = move || drop(helper);
    // Without a thread, it is waited for here.
    let _ = std::thread::Builder::new().name("ending".into()).spawn(body);
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use sys::process::PidFd;
    use sys::signals::Signal;

    use super::*;

    /// Longer than any test.
    const LONG_NS: u64 = 600_000_000_000;

    /// How long such a process is waited for.
    const WAITED_NS: u64 = 20_000_000_000;

    /// A process with the number 1 that is a script.
    fn with_script(script: &str) -> (LinkProcesses, PidFd) {
        let mut links = LinkProcesses::new().expect("a poller");
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let ending = Ending::CloseInput { timeout_ns: WAITED_NS };
        let helper = Helper::spawn(&mut command, ending).expect("a process");
        let process = PidFd::open(helper.id()).expect("it runs");
        links.watch(1, helper).expect("watched");
        (links, process)
    }

    /// Waits for what is said, until the process is not watched any more; returns the news.
    fn news_of_end(links: &mut LinkProcesses) -> Vec<(u32, LinkNews)> {
        let mut news = Vec::new();
        while !links.all.is_empty() {
            let mut events = Vec::new();
            links.poller.wait(&mut events, None).expect("a poller");
            news.extend(links.news(now_ns()));
        }
        news
    }

    #[test]
    fn a_process_that_closes_its_output_and_stays_is_not_waited_for() {
        let (mut links, process) = with_script("echo joined: x; exec >&-; exec sleep 1000");
        assert_eq!(news_of_end(&mut links), [(1, LinkNews::Begun(Ok(())))]);
        assert_eq!(process.has_ended().ok(), Some(false));
        process.kill(Signal::Terminate).expect("it runs");
        let later_ns = now_ns() + WITH_SERVER_NS;
        assert_eq!(links.news(later_ns), [(1, LinkNews::Ended(None))]);
    }

    #[test]
    fn a_process_that_says_more_than_any_is_one_that_has_ended() {
        let (mut links, process) = with_script("exec yes");
        let refused = LinkNews::Begun(Err("y".into()));
        assert_eq!(news_of_end(&mut links), [(1, refused)]);
        assert_eq!(process.wait_until(Some(now_ns() + LONG_NS)).ok(), Some(true));
    }

    #[test]
    fn a_process_that_is_not_needed_any_more_and_stays_is_killed() {
        let (mut links, process) = with_script("echo joined: x; exec sleep 1000");
        let mut events = Vec::new();
        links.poller.wait(&mut events, None).expect("a poller");
        assert_eq!(links.news(0), [(1, LinkNews::Begun(Ok(())))]);
        assert_eq!(links.due_ns(), None);
        links.end(1);
        let due_ns = links.due_ns().expect("it is to end");
        assert_eq!((links.news(due_ns - 1), links.all.len()), (vec![], 1));
        assert_eq!((links.news(due_ns), links.all.len()), (vec![], 0));
        assert_eq!(process.wait_until(Some(now_ns() + LONG_NS)).ok(), Some(true));
    }

    #[test]
    fn processes_that_stay_are_waited_for_together_when_the_front_end_ends() {
        const PROCESSES: u32 = 4;
        let mut links = LinkProcesses::new().expect("a poller");
        let processes: Vec<PidFd> = (0..PROCESSES)
            .map(|number| {
                let mut command = Command::new("sleep");
                command.arg("1000").stdin(Stdio::piped()).stdout(Stdio::piped());
                let ending = Ending::CloseInput { timeout_ns: END_TIMEOUT_NS };
                let helper = Helper::spawn(&mut command, ending).expect("a process");
                let process = PidFd::open(helper.id()).expect("it runs");
                links.watch(number, helper).expect("watched");
                process
            })
            .collect();
        let began_ns = now_ns();
        drop(links);
        assert!(now_ns() - began_ns < u64::from(PROCESSES - 1) * END_TIMEOUT_NS);
        assert!(processes.iter().all(|process| process.has_ended().unwrap_or(false)));
    }

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
