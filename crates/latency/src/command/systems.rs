//! Systems under test, each reached as a program would reach it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::library::JackLibraryClient;
use anyhow::{Context, ensure};
use client::{Client, Control, CycleScope, Notifications, Observer, OpenOptions};
use sys::thread::Scheduling;

use super::probe::ProbeSender;
use super::subject::{Planner, Recorded};

/// What a row of the paper's tables says of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct System {
    /// The programming interface: whose server, or whose library.
    pub(crate) interface: String,
    /// What plays and records.
    pub(crate) device: String,
    /// Quantum or periods.
    pub(crate) buffer: String,
    pub(crate) sample_rate_hz: u32,
    /// Of the samples.
    pub(crate) format: &'static str,
    pub(crate) kernel: String,
    /// Class and priority of the thread that measured.
    pub(crate) scheduling: String,
    /// The latency that the system itself states, frames.
    pub(crate) stated_frames: Option<u32>,
    /// Xruns that the system told of meanwhile, if it tells of any.
    pub(crate) xruns: Option<u32>,
}

/// What lies between the measuring client's ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// Nothing but the graph.
    Graph,
    /// A playback port, whatever closes the way behind it, and a capture port.
    Device { playback: String, capture: String },
}

impl Way {
    /// Source and destination of every connection.
    fn connections(&self, input: &str, output: &str) -> Vec<(String, String)> {
        match self {
            Self::Graph => vec![(output.into(), input.into())],
            Self::Device { playback, capture } => {
                vec![(output.into(), playback.clone()), (capture.clone(), input.into())]
            }
        }
    }
}

/// The samples of all JACK servers.
const JACK_FORMAT: &str = "32-bit float";
const CLIENT: &str = "latency";
/// A server that has been asked for another quantum may take so long.
const QUANTUM_PATIENCE: Duration = Duration::from_secs(5);

/// Counts what the server tells of.
struct XrunCounter(Arc<AtomicU32>);

impl Notifications for XrunCounter {
    fn xrun(&mut self, _delay_us: u32) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Measures the consort server `server`.
pub(crate) fn through_consort(
    server: &str,
    way: &Way,
    quantum: Option<u32>,
    plan: Planner<'_>,
) -> anyhow::Result<Recorded> {
    let before = quantum.map(|frames| Quantum::set(server, frames)).transpose()?;
    let options = OpenOptions { server: Some(server.into()), ..OpenOptions::default() };
    let client = Client::open_with(CLIENT, &options)?;
    let (mut input, mut output) = (client.input_port("in")?, client.output_port("out")?);
    let connections = way.connections(input.name(), output.name());
    let xruns = Arc::new(AtomicU32::new(0));
    client.notify(XrunCounter(Arc::clone(&xruns)))?;
    let sample_rate_hz = client.sample_rate_hz();
    let (mut sender, recorder) = ProbeSender::new(&plan(sample_rate_hz));
    let client = client.activate(move |cycle: &CycleScope<'_>| {
        sender.cycle(&input.buffer(cycle), &mut output.buffer(cycle));
        Control::Continue
    })?;
    for (source, destination) in &connections {
        client
            .connect(source, destination)
            .with_context(|| format!("{source} to {destination}"))?;
    }
    let channels = recorder.wait(|| client.is_running())?;
    let frames = client.quantum();
    ensure!(
        quantum.is_none_or(|wanted| wanted == frames),
        "the server runs {frames} frames, not those asked for"
    );
    let status = Observer::open(Some(server))?.status()?;
    let mode = if status.sync { "sync" } else { "async" };
    let stated = |name: &str, capture| {
        let registry = client.registry();
        Some(registry.port_latency(registry.port_by_name(name)?, capture)?.max)
    };
    let system = System {
        interface: format!("consort {}", status.version),
        device: device(way, &status.driver),
        buffer: format!("{} frames, {mode}", client.quantum()),
        sample_rate_hz,
        format: JACK_FORMAT,
        kernel: kernel(),
        scheduling: client.session().process_thread().map_or_else(String::new, scheduling),
        stated_frames: stated_frames(way, stated),
        xruns: Some(xruns.load(Ordering::Relaxed)),
    };
    drop(before);
    Ok((system, channels))
}

/// A quantum that a server has for a while; it has its old one again afterwards.
struct Quantum {
    observer: Observer,
    before: u32,
}

impl Quantum {
    fn set(server: &str, frames: u32) -> anyhow::Result<Self> {
        let observer = Observer::open(Some(server))?;
        let before = observer.status()?.quantum;
        observer.set_quantum(frames)?;
        Ok(Self { observer, before })
    }
}

impl Drop for Quantum {
    fn drop(&mut self) {
        // It fails only if the server has gone, and its quantum with it.
        let _ = self.observer.set_quantum(self.before);
    }
}

/// Measures the server `server` that `library` belongs to.
pub(crate) fn through_library(
    library: &Path,
    server: &str,
    way: &Way,
    quantum: Option<u32>,
    plan: Planner<'_>,
) -> anyhow::Result<Recorded> {
    // The rate is the server's, and is known only once there is a client; the first one is there to
    // ask.
    let sample_rate_hz = {
        let asking =
            JackLibraryClient::open(library, server, CLIENT, Box::new(|_, sent| sent.fill(0.0)))?;
        asking.sample_rate_hz()
    };
    let (mut sender, recorder) = ProbeSender::new(&plan(sample_rate_hz));
    let cycle = Box::new(move |received: &[f32], sent: &mut [f32]| sender.cycle(received, sent));
    let client = JackLibraryClient::open(library, server, CLIENT, cycle)?;
    // The signal begins only when it is connected: nothing of it is sent with another quantum.
    let before = client.quantum();
    if let Some(frames) = quantum.filter(|frames| *frames != before) {
        client.set_quantum(frames)?;
        let since = Instant::now();
        while client.quantum() != frames {
            ensure!(
                since.elapsed() < QUANTUM_PATIENCE,
                "the server goes on with {} frames",
                client.quantum()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let (input, output) = client.port_names();
    for (source, destination) in way.connections(&input, &output) {
        client.connect(&source, &destination)?;
    }
    let channels = recorder.wait(|| client.is_running())?;
    let name = fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
    let system = System {
        interface: format!("JACK, {}", name.file_name().unwrap_or_default().to_string_lossy()),
        device: device(way, &format!("server {server}")),
        buffer: format!("{} frames", client.quantum()),
        sample_rate_hz,
        format: JACK_FORMAT,
        kernel: kernel(),
        scheduling: client.process_thread().map_or_else(String::new, scheduling),
        stated_frames: stated_frames(way, |port, capture| client.port_latency(port, capture)),
        xruns: Some(client.xruns()),
    };
    if client.quantum() != before {
        client.set_quantum(before)?;
    }
    Ok((system, channels))
}

fn device(way: &Way, driver: &str) -> String {
    match way {
        Way::Graph => format!("{driver}, graph only"),
        Way::Device { playback, capture } => format!("{driver}, {playback} to {capture}"),
    }
}

/// What the two ports of the device state together.
fn stated_frames(way: &Way, latency: impl Fn(&str, bool) -> Option<u32>) -> Option<u32> {
    match way {
        Way::Graph => None,
        Way::Device { playback, capture } => {
            Some(latency(capture, true)? + latency(playback, false)?)
        }
    }
}

/// The running kernel's release.
pub(crate) fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Does `task` in a thread of its own, `SCHED_FIFO` where it may be and `priority` is not 0, and
/// tells it what it is. The calling thread, and the programs that it starts, stay as they are.
pub(crate) fn in_thread<T: Send>(
    priority: u32,
    task: impl FnOnce(String) -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let realtime = || {
        if priority > 0
            && let Err(error) = sys::thread::set_fifo(0, priority)
        {
            eprintln!("consort: not real-time, expect dropouts under load: {error}");
        }
        task(scheduling(0))
    };
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("latency".into()).spawn_scoped(scope, realtime)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

pub(crate) fn scheduling(thread: u32) -> String {
    match sys::thread::scheduling(thread) {
        Ok(Scheduling::Fifo(priority)) => format!("FIFO {priority}"),
        Ok(Scheduling::RoundRobin(priority)) => format!("RR {priority}"),
        Ok(_) => "OTHER".into(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_through_a_device_has_two_connections_and_one_through_the_graph_has_one() {
        let device = Way::Device { playback: "s:p".into(), capture: "s:c".into() };
        let pairs = |way: &Way| way.connections("l:in", "l:out");
        assert_eq!(pairs(&device), [("l:out".into(), "s:p".into()), ("s:c".into(), "l:in".into())]);
        assert_eq!(pairs(&Way::Graph), [("l:out".into(), "l:in".into())]);
    }

    #[test]
    fn what_a_device_states_is_known_only_if_both_ports_do() {
        let device = Way::Device { playback: "p".into(), capture: "c".into() };
        assert_eq!(
            stated_frames(&device, |port, capture| Some(if port == "c" && capture {
                3
            } else {
                4
            })),
            Some(7)
        );
        assert_eq!(stated_frames(&device, |_, capture| capture.then_some(3)), None);
        assert_eq!(stated_frames(&Way::Graph, |_, _| Some(1)), None);
    }
}
