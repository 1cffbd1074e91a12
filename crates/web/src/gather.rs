//! The thread that follows the server: gathers what there is to be seen, and does what browsers order.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use client::{Error, Follower, Position, Recorded, TransportState};
use hyper::body::Bytes;
use proto::status::Status;
use rt::record::Record;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::graph::graph;
use crate::metrics::{self, Metrics};
use crate::model::Model;
use crate::xruns::Xruns;

/// How often browsers are told.
const TELL: Duration = Duration::from_millis(200);
/// How often a server is looked for that is not there.
const RETRY: Duration = Duration::from_millis(500);
/// Orders that wait, at most.
const ORDERS: usize = 64;

/// What is to be seen, each part as an event of a stream; a part is sent where its number has changed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) live: Bytes,
    pub(crate) graph: (u64, Bytes),
    pub(crate) xruns: (u64, Bytes),
}

/// What a browser may order.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Ports by their full names.
    Connect { source: String, destination: String },
    /// Ports by their full names.
    Disconnect { source: String, destination: String },
    /// Whether it shall roll.
    Roll { roll: bool },
    /// Where it shall be.
    Locate { frame: u32 },
}

/// What the other thread asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Answered with what the server said.
    Order(Order, oneshot::Sender<Result<(), Failure>>),
    /// Answered with the page for Prometheus.
    Metrics(oneshot::Sender<String>),
}

/// Why an order was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is not what was asked for, or cannot be.
    Wrong(String),
    /// In the server's words.
    Refused(String),
    /// There is no server, or it does not answer.
    NoServer(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(reason) => Self::Refused(reason.to_string()),
            other => Self::NoServer(other.to_string()),
        }
    }
}

/// Starts the thread, for the server of this name.
pub(crate) fn start(server: String, seen: watch::Sender<Seen>) -> io::Result<SyncSender<Asked>> {
    let (asking, asked) = sync_channel(ORDERS);
    std::thread::Builder::new()
        .name("gather".into())
        .spawn(move || Gatherer { server, seen, asked, watching: None, numbers: (0, 0) }.run())?;
    Ok(asking)
}

struct Gatherer {
    server: String,
    seen: watch::Sender<Seen>,
    asked: Receiver<Asked>,
    watching: Option<Watching>,
    /// Of the newest graph and list of xruns.
    numbers: (u64, u64),
}

/// A server that is there.
struct Watching {
    follower: Follower,
    model: Model,
    metrics: Metrics,
    xruns: Xruns,
    changes: Option<u64>,
}

impl Gatherer {
    fn run(mut self) {
        let mut next = Instant::now();
        loop {
            match self.asked.recv_timeout(Follower::LOOK) {
                Ok(asked) => self.answer(asked),
                Err(RecvTimeoutError::Timeout) => {}
                // The other thread has ended.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.watching.iter_mut().for_each(Watching::catch_up);
            if Instant::now() >= next {
                next = Instant::now() + self.tell();
            }
        }
    }

    /// Tells browsers what is new; gives the time until the next turn.
    fn tell(&mut self) -> Duration {
        let Some(mut watching) = self.watching.take() else { return self.look_for_server() };
        // Nobody looks: the server is not asked, only its recording is read.
        if self.seen.receiver_count() == 0 {
            self.watching = Some(watching);
            return TELL;
        }
        let before = self.seen.borrow().clone();
        match watching.look(before, &mut self.numbers) {
            Ok(seen) => {
                self.seen.send_replace(seen);
                self.watching = Some(watching);
                TELL
            }
            Err(error) => self.miss(&error.to_string()),
        }
    }

    fn look_for_server(&mut self) -> Duration {
        match Follower::of(&self.server) {
            Ok(follower) => {
                self.watching = Some(Watching {
                    follower,
                    model: Model::default(),
                    metrics: Metrics::default(),
                    xruns: Xruns::default(),
                    changes: None,
                });
                Duration::ZERO
            }
            Err(error) => self.miss(&error.to_string()),
        }
    }

    fn miss(&mut self, why: &str) -> Duration {
        let live = event("live", &json!({ "up": false, "why": why }));
        self.seen.send_modify(|seen| seen.live = live);
        RETRY
    }

    fn answer(&mut self, asked: Asked) {
        // Whoever asked may have gone.
        match asked {
            Asked::Order(order, to) => drop(to.send(self.execute(order))),
            Asked::Metrics(to) => drop(to.send(self.metrics())),
        }
    }

    fn execute(&mut self, order: Order) -> Result<(), Failure> {
        // It may have come since it was looked for.
        if self.watching.is_none() {
            self.look_for_server();
        }
        let Some(watching) = &self.watching else {
            return Err(Failure::NoServer(format!("the server '{}' is not running", self.server)));
        };
        let observer = watching.follower.observer();
        match order {
            Order::Connect { source, destination } => observer.connect(&source, &destination)?,
            Order::Disconnect { source, destination } => observer.disconnect(&source, &destination)?,
            Order::Roll { roll } => observer.roll_transport(roll)?,
            Order::Locate { frame } => {
                observer.locate_transport(&Position { frame, ..Position::default() })?;
            }
        }
        Ok(())
    }

    fn metrics(&mut self) -> String {
        let browsers = self.seen.receiver_count();
        // Once for a server that has gone unnoticed, once for one that has come in its place.
        for _ in 0..2 {
            if self.watching.is_none() {
                self.look_for_server();
            }
            match self.watching.as_mut().map(|watching| watching.metrics(browsers)) {
                Some(Ok(text)) => return text,
                Some(Err(_)) => self.watching = None,
                None => {}
            }
        }
        metrics::without_server()
    }
}

impl Watching {
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
        self.xruns.look(observer, |verdict| self.metrics.judged(verdict))?;
        Ok(self.metrics.text(&status, observer.transport().state, browsers))
    }

    fn look(&mut self, mut seen: Seen, numbers: &mut (u64, u64)) -> Result<Seen, Error> {
        let observer = self.follower.observer();
        let status = observer.status()?;
        let transport = observer.transport();
        let registry = observer.registry();
        let changes = registry.changes();
        let is_first = self.changes.is_none();
        if self.changes != Some(changes) {
            self.changes = Some(changes);
            numbers.0 += 1;
            seen.graph = (numbers.0, event("graph", &graph(registry)));
        }
        if self.xruns.look(observer, |verdict| self.metrics.judged(verdict))? || is_first {
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

/// An event of a stream. JSON has no line breaks of its own.
fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_strictly() {
        let order = |text: &str| serde_json::from_str::<Order>(text).ok();
        let (source, destination) = ("a:b".to_owned(), "c:d".to_owned());
        assert_eq!(
            order(r#"{"connect":{"source":"a:b","destination":"c:d"}}"#),
            Some(Order::Connect { source, destination })
        );
        assert_eq!(order(r#"{"locate":{"frame":48000}}"#), Some(Order::Locate { frame: 48_000 }));
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
            assert_eq!(order(text), None, "{text}");
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
