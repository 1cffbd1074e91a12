//! The processes that pass frames on for modules: `consort device serve`, each with one link.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use sys::clock::now_ns;
use sys::helper::{Ending, Helper, Lines};
use sys::poll::{Interest, Poller};

use crate::output::{Heard, NewLink, NewLoopback, NewPipe, NewSimple, NewTunnel};

/// The server's name of the device that drives.
const DRIVER: &str = "system";
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
        command.args(["--report", "--until-stdin-ends"]);
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

/// Returns the arguments of `consort device serve`.
fn words(new: &NewLink, own: &Path) -> Vec<OsString> {
    match new {
        NewLink::TunnelSink(tunnel) => tunnel_words(tunnel, "tunnel-sink", "--from"),
        NewLink::TunnelSource(tunnel) => tunnel_words(tunnel, "tunnel-source", "--to"),
        NewLink::Simple(simple) => simple_words(simple, own),
        NewLink::Loopback(loopback) => loopback_words(loopback),
        NewLink::Processed(loopback, processing) => {
            let further = processing.words(DRIVER).into_iter().map(OsString::from);
            loopback_words(loopback).into_iter().chain(further).collect()
        }
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

fn tunnel_words(new: &NewTunnel, kind: &str, device: &str) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![
        kind.into(),
        format!("{device}={}", new.device).into(),
        format!("--peer={}", new.server).into(),
        format!("--format={}", new.format).into(),
        format!("--positions={}", new.map).into(),
        format!("--latency={}", new.latency_ms).into(),
    ];
    words.extend(new.far_device.iter().map(|name| format!("--peer-device={name}").into()));
    words.extend(new.reconnect_ms.map(|ms| format!("--reconnect={ms}").into()));
    words.extend(new.cookie.iter().map(|file| {
        let mut word = OsString::from("--peer-cookie=");
        word.push(file);
        word
    }));
    words
}

fn simple_words(new: &NewSimple, own: &Path) -> Vec<OsString> {
    let mut peer = OsString::from("--peer=unix:");
    peer.push(own);
    let mut words: Vec<OsString> = vec![
        "simple-protocol".into(),
        peer,
        format!("--listen={}", new.at).into(),
        format!("--format={}", new.format).into(),
        format!("--rate={}", new.rate_hz).into(),
        format!("--positions={}", new.map).into(),
    ];
    words.extend(new.plays.then(|| "--plays".into()));
    words.extend(new.records.then(|| "--records".into()));
    words.extend(new.sink.iter().map(|name| format!("--peer-device={name}").into()));
    words.extend(new.source.iter().map(|name| format!("--peer-source={name}").into()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processing::{NewEcho, NewPlugin, NewSpeex, Processing};

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
        let own = Path::new("/run/native");
        let all = words(&NewLink::Loopback(loopback.clone()), own);
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
        let other = NewLoopback { via: Some(stereo), mixed: false, ..loopback.clone() };
        let all = words(&NewLink::Loopback(other), own);
        assert!(all.contains(&"--via-positions=front-left,front-right".into()));
        assert!(all.contains(&"--unmixed".into()));
        let processing = Processing::Ladspa(NewPlugin {
            plugin: "-a".into(),
            label: "b c".into(),
            control: Some(",1".into()),
            inputs: None,
            outputs: Some("Out".into()),
        });
        let processed = words(&NewLink::Processed(loopback.clone(), Box::new(processing)), own);
        let expected = ["--plugin=-a", "--label=b c", "--control=,1", "--plugin-outputs=Out"];
        assert_eq!(processed[processed.len() - 4..], expected);
        let speex = NewSpeex {
            filter_ms: 200,
            agc: false,
            denoise: true,
            suppress: true,
            suppress_db: Some(-40),
            suppress_active_db: None,
        };
        let echo = NewEcho {
            of: "-k".into(),
            of_map: mono,
            heard_on: (None, stereo),
            latency_ms: 100,
            speex: Some(speex),
            frame_ms: 20,
        };
        let link = NewLink::Processed(loopback, Box::new(Processing::Echo(echo)));
        let processed = words(&link, own);
        let expected = [
            "--echo-of=-k",
            "--echo-of-positions=mono",
            "--echo-heard-on=system",
            "--echo-heard-positions=front-left,front-right",
            "--echo-latency=100",
            "--echo-frame=20",
            "--echo-method=speex",
            "--echo-filter=200",
            "--echo-denoise",
            "--echo-suppress",
            "--echo-suppress-db=-40",
        ];
        assert_eq!(processed[processed.len() - expected.len()..], expected);
        let pipe = NewPipe {
            device: "a".into(),
            file: "-f".into(),
            format: "s16le".parse().expect("a format"),
            rate_hz: 8000,
            channels: 1,
        };
        let piped = words(&NewLink::PipeSource(pipe), own);
        let expected =
            ["pipe-source", "--to=a", "--format=s16le", "--channels=1", "--rate=8000", "--file=-f"];
        assert_eq!(piped, expected);
        let tunnel = NewTunnel {
            device: "-a".into(),
            server: "tcp:one".into(),
            far_device: Some("-b".into()),
            cookie: Some("-c".into()),
            format: "s16le".parse().expect("a format"),
            map: mono,
            latency_ms: 50,
            reconnect_ms: Some(7),
        };
        let expected = [
            "tunnel-sink",
            "--from=-a",
            "--peer=tcp:one",
            "--format=s16le",
            "--positions=mono",
            "--latency=50",
            "--peer-device=-b",
            "--reconnect=7",
            "--peer-cookie=-c",
        ];
        assert_eq!(words(&NewLink::TunnelSink(tunnel), own), expected);
        let simple = NewSimple {
            at: "[::1]:99".parse().expect("an address"),
            sink: None,
            source: Some("-s".into()),
            plays: true,
            records: true,
            format: "s16le".parse().expect("a format"),
            rate_hz: 8000,
            map: mono,
        };
        let expected = [
            "simple-protocol",
            "--peer=unix:/run/native",
            "--listen=[::1]:99",
            "--format=s16le",
            "--rate=8000",
            "--positions=mono",
            "--plays",
            "--records",
            "--peer-source=-s",
        ];
        assert_eq!(words(&NewLink::Simple(simple), own), expected);
    }
}
