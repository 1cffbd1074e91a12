//! The thread that follows the server: collects what browsers are shown, and executes their
//! commands.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use client::{Error, Position, Requester, TransportState};
use hyper::body::Bytes;
use observe::{GraphFollower, Recorded, RecordingFollower};
use proto::status::Status;
use rt::record::Record;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::graph;
use crate::metrics::{self, Metrics};
use crate::model::Model;
use crate::served::Served;
use crate::xruns::Xruns;

/// Interval of updates to browsers.
const UPDATE: Duration = Duration::from_millis(200);
/// Interval of attempts to find a server.
const RETRY: Duration = Duration::from_millis(500);
/// Maximum number of commands in the queue.
const COMMANDS: usize = 64;

/// The current state, each part as an event of a stream. A part is sent when its number has
/// changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) live: Bytes,
    pub(crate) graph: (u64, Bytes),
    pub(crate) xruns: (u64, Bytes),
}

/// A browser's command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Command {
    /// Connects two ports, by their full names.
    Connect { source: String, destination: String },
    /// Disconnects two ports, by their full names.
    Disconnect { source: String, destination: String },
    /// Starts or stops the transport.
    Roll { roll: bool },
    /// Moves the transport.
    Locate { frame: u32 },
}

/// A message from the other thread.
#[derive(Debug)]
pub(crate) enum GathererMessage {
    /// Answered with the server's result.
    Command(Command, oneshot::Sender<Result<(), Failure>>),
    /// Answered with the page for Prometheus.
    Metrics(oneshot::Sender<String>),
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command is malformed or impossible.
    Wrong(String),
    /// The server refused it, or the page needs a token for this server; with this message.
    Refused(String),
    /// There is no server, or it does not respond.
    NoServer(String),
}

impl Failure {
    /// Returns why.
    fn reason(&self) -> &str {
        let (Self::Wrong(reason) | Self::Refused(reason) | Self::NoServer(reason)) = self;
        reason
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(reason) => Self::Refused(reason.to_string()),
            other => Self::NoServer(other.to_string()),
        }
    }
}

/// Starts the thread for a server.
pub(crate) fn start(
    served: Served,
    seen: watch::Sender<Snapshot>,
) -> io::Result<SyncSender<GathererMessage>> {
    let (asking, asked) = sync_channel(COMMANDS);
    std::thread::Builder::new()
        .name("gather".into())
        .spawn(move || Gatherer { served, seen, asked, watching: None, numbers: (0, 0) }.run())?;
    Ok(asking)
}

struct Gatherer {
    served: Served,
    seen: watch::Sender<Snapshot>,
    asked: Receiver<GathererMessage>,
    watching: Option<ConnectedServer>,
    /// Versions of the newest graph and list of xruns.
    numbers: (u64, u64),
}

/// A server that is being followed.
struct ConnectedServer {
    follower: RecordingFollower,
    model: Model,
    metrics: Metrics,
    xruns: Xruns,
    graph: GraphFollower,
    is_first: bool,
}

impl Gatherer {
    fn run(mut self) {
        let mut next = Instant::now();
        loop {
            match self.asked.recv_timeout(RecordingFollower::POLL) {
                Ok(asked) => self.answer(asked),
                Err(RecvTimeoutError::Timeout) => {}
                // The other thread has ended.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.watching.iter_mut().for_each(ConnectedServer::catch_up);
            if Instant::now() >= next {
                next = Instant::now() + self.publish();
            }
        }
    }

    /// Publishes what is new. Returns the time until the next update.
    fn publish(&mut self) -> Duration {
        let Some(mut watching) = self.watching.take() else {
            return match self.server().map(drop) {
                Ok(()) => Duration::ZERO,
                Err(failure) => self.publish_absence(failure.reason()),
            };
        };
        // Without viewers, only the recording is read and no requests are sent.
        if self.seen.receiver_count() == 0 {
            self.watching = Some(watching);
            return UPDATE;
        }
        let before = self.seen.borrow().clone();
        match watching.poll(before, &mut self.numbers) {
            Ok(seen) => {
                self.seen.send_replace(seen);
                self.watching = Some(watching);
                UPDATE
            }
            Err(error) => self.publish_absence(&error.to_string()),
        }
    }

    /// Returns the server that is followed; one may have appeared since the last attempt.
    fn server(&mut self) -> Result<&mut ConnectedServer, Failure> {
        let watching = match self.watching.take() {
            Some(watching) => watching,
            None => ConnectedServer::open(&self.served)?,
        };
        Ok(self.watching.insert(watching))
    }

    fn publish_absence(&mut self, why: &str) -> Duration {
        let live = event("live", &json!({ "up": false, "why": why }));
        self.seen.send_modify(|seen| seen.live = live);
        RETRY
    }

    fn answer(&mut self, asked: GathererMessage) {
        // The sender of the request may have gone.
        match asked {
            GathererMessage::Command(command, to) => drop(to.send(self.execute(command))),
            GathererMessage::Metrics(to) => drop(to.send(self.metrics())),
        }
    }

    fn execute(&mut self, command: Command) -> Result<(), Failure> {
        let observer = self.server()?.follower.observer();
        match command {
            Command::Connect { source, destination } => observer.connect(&source, &destination)?,
            Command::Disconnect { source, destination } => {
                observer.disconnect(&source, &destination)?
            }
            Command::Roll { roll } => observer.roll_transport(roll)?,
            Command::Locate { frame } => {
                observer.locate_transport(&Position { frame, ..Position::default() })?;
            }
        }
        Ok(())
    }

    fn metrics(&mut self) -> String {
        let browsers = self.seen.receiver_count();
        // Twice: the first attempt may find that a server has gone, the second uses its
        // replacement.
        for _ in 0..2 {
            match self.server().map(|watching| watching.metrics(browsers)) {
                Ok(Ok(text)) => return text,
                Ok(Err(_)) => self.watching = None,
                Err(_) => {}
            }
        }
        metrics::without_server()
    }
}

impl ConnectedServer {
    fn open(served: &Served) -> Result<Self, Failure> {
        Ok(Self {
            follower: served.follower()?,
            model: Model::default(),
            metrics: Metrics::default(),
            xruns: Xruns::default(),
            graph: GraphFollower::default(),
            is_first: true,
        })
    }

    fn catch_up(&mut self) {
        let Self { follower, model, metrics, .. } = self;
        let Ok(()) = follower.catch_up(|recorded| {
            match recorded {
                Recorded::Name(id, name) => metrics.name(id, name),
                Recorded::Record(words) => {
                    if let Some(record) = Record::from_words(words) {
                        model.add(record);
                        metrics.add(record);
                    }
                }
                Recorded::Lost(records) => metrics.lost(records),
            }
            Ok::<(), std::convert::Infallible>(())
        });
    }

    fn metrics(&mut self, browsers: usize) -> Result<String, Error> {
        let observer = self.follower.observer();
        let status = observer.status()?;
        self.xruns.poll(observer, |verdict| self.metrics.judged(verdict))?;
        Ok(self.metrics.text(&status, observer.transport().state, browsers))
    }

    fn poll(&mut self, mut seen: Snapshot, numbers: &mut (u64, u64)) -> Result<Snapshot, Error> {
        let observer = self.follower.observer();
        let status = observer.status()?;
        let transport = observer.transport();
        if let Some(graph) = self.graph.poll(observer.registry()) {
            numbers.0 += 1;
            seen.graph = (numbers.0, event("graph", &graph::value(&graph)));
        }
        let is_first = std::mem::take(&mut self.is_first);
        if self.xruns.poll(observer, |verdict| self.metrics.judged(verdict))? || is_first {
            numbers.1 += 1;
            seen.xruns = (numbers.1, event("xruns", &self.xruns.value()));
        }
        let columns = self.model.take_columns();
        let (latest, slowest) = self.model.take_cycles();
        seen.live = event(
            "live",
            &json!({
                "up": true, "status": status_value(&status),
                "transport": { "rolling": transport.state != TransportState::Stopped, "frame": transport.position.frame },
                "columns": columns, "latest": latest, "slowest": slowest,
            }),
        );
        Ok(seen)
    }
}

fn status_value(status: &Status) -> Value {
    let clients: Vec<Value> = status
        .clients
        .iter()
        .map(|client| {
            json!({
                "id": client.id, "name": client.name, "process": client.process, "active": client.active,
                "bypassed": client.bypassed, "late_cycles": client.late_cycles, "cpu": client.cpu,
            })
        })
        .collect();
    json!({
        "name": status.name, "version": status.version, "driver": status.driver,
        "sample_rate_hz": status.sample_rate_hz, "quantum": status.quantum, "sync": status.sync,
        "freewheel": status.freewheel, "realtime_priority": status.realtime_priority, "cycles": status.cycles,
        "xruns": status.xruns, "load": status.load, "ports": status.ports, "connections": status.connections,
        "clients": clients,
    })
}

/// Formats an event of a stream. JSON contains no raw line breaks.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_strictly() {
        let command = |text: &str| serde_json::from_str::<Command>(text).ok();
        let (source, destination) = ("a:b".to_owned(), "c:d".to_owned());
        assert_eq!(
            command(r#"{"connect":{"source":"a:b","destination":"c:d"}}"#),
            Some(Command::Connect { source, destination })
        );
        assert_eq!(
            command(r#"{"locate":{"frame":48000}}"#),
            Some(Command::Locate { frame: 48_000 })
        );
        for text in [
            "",
            "{}",
            "[]",
            "null",
            r#""connect""#,
            r#"{"connect":{}}"#,
            r#"{"stop":{}}"#,
            r#"{"roll":{"roll":1}}"#,
            r#"{"roll":{"roll":true,"more":1}}"#,
            r#"{"locate":{"frame":-1}}"#,
            r#"{"locate":{"frame":4294967296}}"#,
            r#"{"roll":{"roll":true},"locate":{"frame":1}}"#,
        ] {
            assert_eq!(command(text), None, "{text}");
        }
    }

    #[test]
    fn no_name_ends_an_event() {
        let sent = event("graph", &json!({ "name": "a\n\nevent: live\rdata" }));
        let text = String::from_utf8(sent.to_vec()).unwrap();
        assert_eq!(text.matches('\n').count(), 3, "{text}");
        assert!(!text.contains('\r') && text.ends_with("\n\n"));
    }
}
