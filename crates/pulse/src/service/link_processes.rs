//! The processes that pass frames on for modules: `consort device serve`, each with one link.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Stdio;

use anyhow::Context;
use sys::helper::{Ending, Helper, Lines};
use sys::poll::{Interest, Poller};

use crate::output::{Heard, NewLink, NewLoopback, NewPipe};

/// The server's name of the device that drives.
const DRIVER: &str = "system";
/// How long a process may take to end when this one does, or has closed its output, ns.
const END_TIMEOUT_NS: u64 = 2_000_000_000;
/// Within how long after the processes of its clients a server has ended, ns.
const WITH_SERVER_NS: u64 = 500_000_000;
/// How the line begins by which a process says that it passes frames on.
const READY: &str = "joined: ";

/// What is new about a process.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LinkNews {
    /// It passes frames on, or says why it cannot.
    Begun(Result<(), String>),
    /// It has ended, and its server has not.
    Ended,
}

/// All of them, by the numbers that they were given.
#[derive(Debug)]
pub(super) struct LinkProcesses {
    /// Readable once there is news.
    poller: Poller,
    all: BTreeMap<u64, Process>,
    ended: Ended,
    next: u64,
}

/// Processes that have ended by themselves, the first first, and when that is news, ns. If their
/// server has ended, its connection says so before.
#[derive(Debug, Default)]
struct Ended(VecDeque<(u32, u64)>);

impl Ended {
    fn note(&mut self, number: u32, now_ns: u64) {
        self.0.push_back((number, now_ns + WITH_SERVER_NS));
    }

    /// Nobody waits for news of this number: another process may have it next.
    fn forget(&mut self, number: u32) {
        self.0.retain(|(ended, _)| *ended != number);
    }

    fn due_ns(&self) -> Option<u64> {
        self.0.front().map(|(_, at_ns)| *at_ns)
    }

    fn take_due(&mut self, now_ns: u64) -> Option<u32> {
        self.0.pop_front_if(|(_, at_ns)| *at_ns <= now_ns).map(|(number, _)| number)
    }
}

#[derive(Debug)]
struct Process {
    /// `None`: it was asked to end, and nobody waits for news of it.
    number: Option<u32>,
    helper: Helper,
    lines: Lines,
    has_begun: bool,
}

impl LinkProcesses {
    /// Begins without any.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { poller: Poller::new()?, all: BTreeMap::new(), ended: Ended::default(), next: 0 })
    }

    /// Starts a process.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(&mut self, number: u32, server: &str, new: &NewLink) -> anyhow::Result<()> {
        let mut command = cli::own_program()?;
        command.args(["--server", server, "device", "serve"]).args(words(new));
        command.args(["--report", "--until-stdin-ends"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let ending = Ending::CloseInput { timeout_ns: END_TIMEOUT_NS };
        let helper = Helper::spawn(&mut command, ending);
        let mut helper = helper.context("no process can be started for it")?;
        let lines = helper.lines().context("its process has no output")?;
        self.poller.add(&lines, self.next, Interest::Readable)?;
        self.all
            .insert(self.next, Process { number: Some(number), helper, lines, has_begun: false });
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

    /// Returns when to look for news although none is readable, ns.
    pub fn due_ns(&self) -> Option<u64> {
        self.ended.due_ns()
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
                if let Some(number) = process.number.filter(|_| !process.has_begun) {
                    let begun = if line.starts_with(READY) { Ok(()) } else { Err(line) };
                    news.push((number, LinkNews::Begun(begun)));
                }
                process.has_begun = true;
            }
            if process.lines.has_ended() {
                let _ = self.poller.remove(&process.lines);
                // It has closed its output, so that it is about to end.
                let ended = self.all.remove(&event.token);
                let number = ended.and_then(|process| process.number);
                if let Some(number) = number {
                    self.ended.note(number, now_ns);
                }
            }
        }
        while let Some(number) = self.ended.take_due(now_ns) {
            news.push((number, LinkNews::Ended));
        }
        news
    }
}

impl AsFd for LinkProcesses {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Returns the arguments of `consort device serve`.
fn words(new: &NewLink) -> Vec<OsString> {
    match new {
        NewLink::Loopback(loopback) => loopback_words(loopback),
        NewLink::PipeSink(pipe) => pipe_words(pipe, "pipe-sink", "--from", false),
        NewLink::PipeSource(pipe) => pipe_words(pipe, "pipe-source", "--to", true),
    }
}

fn loopback_words(new: &NewLoopback) -> Vec<OsString> {
    let NewLoopback { from: Heard { device, captures }, from_map, via, to, mixed, latency_ms } =
        new;
    let named = |device: &Option<String>| device.clone().unwrap_or_else(|| DRIVER.into());
    let part = if *captures { ":capture" } else { "" };
    let mut words = vec![
        "loopback".to_owned(),
        format!("--from={}{part}", named(device)),
        format!("--from-positions={from_map}"),
        format!("--latency={latency_ms}"),
    ];
    words.extend(via.iter().map(|map| format!("--via-positions={map}")));
    words.extend(to.iter().map(|(device, _)| format!("--to={}", named(device))));
    words.extend(to.iter().map(|(_, map)| format!("--to-positions={map}")));
    words.extend((!mixed).then(|| "--unmixed".to_owned()));
    words.into_iter().map(OsString::from).collect()
}

fn pipe_words(new: &NewPipe, kind: &str, device: &str, states_rate: bool) -> Vec<OsString> {
    let mut file = OsString::from("--file=");
    file.push(&new.file);
    let mut words = vec![kind.to_owned()];
    words.push(format!("{device}={}", new.device));
    words.push(format!("--format={}", new.format));
    words.push(format!("--channels={}", new.channels));
    words.extend(states_rate.then(|| format!("--rate={}", new.rate_hz)));
    words.into_iter().map(OsString::from).chain(std::iter::once(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_news_after_a_while_and_never_if_its_number_was_given_up() {
        let mut ended = Ended::default();
        ended.note(1, 0);
        ended.note(2, 10);
        assert_eq!(
            (ended.due_ns(), ended.take_due(WITH_SERVER_NS - 1)),
            (Some(WITH_SERVER_NS), None)
        );
        ended.forget(1);
        assert_eq!(ended.take_due(WITH_SERVER_NS), None);
        assert_eq!(ended.take_due(WITH_SERVER_NS + 10), Some(2));
        assert_eq!((ended.due_ns(), ended.take_due(u64::MAX)), (None, None));
    }

    #[test]
    fn a_process_is_given_all_that_its_link_is() {
        let stereo = "front-left,front-right".parse().expect("a map");
        let mono = "mono".parse().expect("a map");
        let loopback = NewLoopback {
            from: Heard { device: None, captures: true },
            from_map: mono,
            via: None,
            to: vec![(None, stereo), (Some("-other".into()), mono)],
            mixed: true,
            latency_ms: 50,
        };
        let all = words(&NewLink::Loopback(loopback.clone()));
        assert_eq!(
            all,
            [
                "loopback",
                "--from=system:capture",
                "--from-positions=mono",
                "--latency=50",
                "--to=system",
                "--to=-other",
                "--to-positions=front-left,front-right",
                "--to-positions=mono",
            ]
        );
        let other = NewLoopback { via: Some(stereo), mixed: false, ..loopback };
        let all = words(&NewLink::Loopback(other));
        assert!(all.contains(&"--via-positions=front-left,front-right".into()));
        assert!(all.contains(&"--unmixed".into()));
        let pipe = NewPipe {
            device: "a".into(),
            file: "-f".into(),
            format: "s16le".parse().expect("a format"),
            rate_hz: 8000,
            channels: 1,
        };
        let words = words(&NewLink::PipeSource(pipe));
        let expected =
            ["pipe-source", "--to=a", "--format=s16le", "--channels=1", "--rate=8000", "--file=-f"];
        assert_eq!(words, expected);
    }
}
