//! The thread that follows the server: collects what browsers are shown, and executes their
//! commands.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use client::{Error, TransportState};
use hyper::body::Bytes;
use observe::{GraphFollower, Recorded, RecordingFollower, StreamsFollower};
use proto::status::Status;
use rt::record::Record;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::commands::{Command, Failure};
use crate::metrics::{self, Metrics};
use crate::model::Model;
use crate::served::Served;
use crate::xruns::Xruns;
use crate::{graph, streams};

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
    pub(crate) streams: (u64, Bytes),
    pub(crate) xruns: (u64, Bytes),
}

/// A message from the other thread.
#[derive(Debug)]
pub(crate) enum GathererMessage {
    /// Answered with the server's result.
    Command(Command, oneshot::Sender<Result<(), Failure>>),
    /// Answered with the page for Prometheus.
    Metrics(oneshot::Sender<String>),
}

/// Starts the thread for a server.
pub(crate) fn start(
    served: Served,
    seen: watch::Sender<Snapshot>,
) -> io::Result<SyncSender<GathererMessage>> {
    let (asking, asked) = sync_channel(COMMANDS);
    std::thread::Builder::new().name("gather".into()).spawn(move || {
        Gatherer { served, seen, asked, watching: None, numbers: Numbers::default() }.run()
    })?;
    Ok(asking)
}

struct Gatherer {
    served: Served,
    seen: watch::Sender<Snapshot>,
    asked: Receiver<GathererMessage>,
    watching: Option<ConnectedServer>,
    numbers: Numbers,
}

/// Versions of the newest parts of a [`Snapshot`].
#[derive(Debug, Default)]
struct Numbers {
    graph: u64,
    streams: u64,
    xruns: u64,
}

/// A server that is being followed.
struct ConnectedServer {
    follower: RecordingFollower,
    model: Model,
    metrics: Metrics,
    xruns: Xruns,
    graph: GraphFollower,
    streams: StreamsFollower,
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
        let outcome = self.server().and_then(|server| command.execute(server.follower.observer()));
        if matches!(outcome, Err(Failure::NoServer(_))) {
            // The next command is for its replacement.
            self.watching = None;
        }
        outcome
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
            streams: StreamsFollower::default(),
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

    fn poll(&mut self, mut seen: Snapshot, numbers: &mut Numbers) -> Result<Snapshot, Error> {
        let observer = self.follower.observer();
        let status = observer.status()?;
        let transport = observer.transport();
        if let Some(graph) = self.graph.poll(observer.registry()) {
            numbers.graph += 1;
            seen.graph = (numbers.graph, event("graph", &graph::value(&graph)));
        }
        if let Some(view) = self.streams.poll(observer, Instant::now())? {
            numbers.streams += 1;
            seen.streams = (numbers.streams, event("streams", &streams::value(&view, &status)));
        }
        let is_first = std::mem::take(&mut self.is_first);
        if self.xruns.poll(observer, |verdict| self.metrics.judged(verdict))? || is_first {
            numbers.xruns += 1;
            seen.xruns = (numbers.xruns, event("xruns", &self.xruns.value()));
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
    fn no_name_ends_an_event() {
        let sent = event("graph", &json!({ "name": "a\n\nevent: live\rdata" }));
        let text = String::from_utf8(sent.to_vec()).unwrap();
        assert_eq!(text.matches('\n').count(), 3, "{text}");
        assert!(!text.contains('\r') && text.ends_with("\n\n"));
    }
}
