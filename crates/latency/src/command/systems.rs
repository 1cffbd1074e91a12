//! Systems under test, accessed as an ordinary program would access them.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::library::JackLibraryClient;
use anyhow::{Context, ensure};
use client::{Client, Control, CycleScope, Notifications, Observer, OpenOptions};
use sys::thread::Scheduling;

use super::probe::{ProbeRecorder, ProbeSender};
use super::subject::{Planner, Recorded};

/// A system as a row of the paper's tables describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct System {
    /// The programming interface: the server or the library.
    pub(crate) interface: String,
    /// The devices or ports that play and record.
    pub(crate) device: String,
    /// Quantum, or periods.
    pub(crate) buffer: String,
    pub(crate) sample_rate_hz: u32,
    /// Sample format.
    pub(crate) format: &'static str,
    pub(crate) kernel: String,
    /// Scheduling class and priority of the measuring thread.
    pub(crate) scheduling: String,
    /// The latency that the system reports, frames.
    pub(crate) stated_frames: Option<u32>,
    /// Xruns that the system reported during the measurement, if it reports them.
    pub(crate) xruns: Option<u32>,
}

/// The path between the measuring client's ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// The graph alone.
    Graph,
    /// A playback port, a loop outside of the server, and a capture port.
    Device { playback: String, capture: String },
}

impl Way {
    /// Returns source and destination of every connection.
    fn connections(&self, input: &str, output: &str) -> Vec<(String, String)> {
        match self {
            Self::Graph => vec![(output.into(), input.into())],
            Self::Device { playback, capture } => {
                vec![(output.into(), playback.clone()), (capture.clone(), input.into())]
            }
        }
    }
}

/// Sample format of all JACK servers.
const JACK_FORMAT: &str = "32-bit float";
const CLIENT: &str = "latency";
/// Time limit for a server to change its quantum.
const QUANTUM_TIMEOUT: Duration = Duration::from_secs(5);

/// Counts the xruns that the server reports.
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
    let before = quantum.map(|frames| TemporaryQuantum::set(server, frames)).transpose()?;
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
        "the server does not run with {frames} frames"
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

/// A temporary change of a server's quantum, undone on drop.
struct TemporaryQuantum {
    observer: Observer,
    before: u32,
}

impl TemporaryQuantum {
    fn set(server: &str, frames: u32) -> anyhow::Result<Self> {
        let observer = Observer::open(Some(server))?;
        let before = observer.status()?.quantum;
        observer.set_quantum(frames)?;
        Ok(Self { observer, before })
    }
}

impl Drop for TemporaryQuantum {
    fn drop(&mut self) {
        // Fails only if the server has gone, and its quantum with it.
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
    // The server's rate is known only to a client, so a first one is opened to ask for it.
    let sample_rate_hz = {
        let client =
            JackLibraryClient::open(library, server, CLIENT, Box::new(|_, sent| sent.fill(0.0)))?;
        client.sample_rate_hz()
    };
    let (mut sender, recorder) = ProbeSender::new(&plan(sample_rate_hz));
    let cycle = Box::new(move |received: &[f32], sent: &mut [f32]| sender.cycle(received, sent));
    let client = JackLibraryClient::open(library, server, CLIENT, cycle)?;
    // The signal begins once the ports are connected, so all of it is sent with the new quantum.
    let before = client.quantum();
    if let Some(frames) = quantum.filter(|frames| *frames != before) {
        client.set_quantum(frames)?;
        let since = Instant::now();
        while client.quantum() != frames {
            ensure!(
                since.elapsed() < QUANTUM_TIMEOUT,
                "the server still runs with {} frames",
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

/// The sum of the latencies that the device's two ports report.
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

/// Runs `task` in a thread of its own, with `SCHED_FIFO` if that is permitted and `priority` is not
/// 0, and passes it a description of its scheduling, while `recorder` takes what it records. The
/// calling thread, and programs that it starts, are not affected.
///
/// # Errors
/// The task's, or that the system has stopped: the thread is left in a library's call that does not
/// return.
pub(crate) fn recorded_in_thread<T: Send + 'static>(
    priority: u32,
    recorder: ProbeRecorder,
    task: impl FnOnce(String) -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<(T, [Vec<f32>; 2])> {
    let realtime = move || {
        if priority > 0
            && let Err(error) = sys::thread::set_fifo(0, priority)
        {
            eprintln!("consort: not real-time, expect dropouts under load: {error}");
        }
        task(scheduling(0))
    };
    let thread = std::thread::Builder::new().name("latency".into()).spawn(realtime)?;
    let recorded = recorder.wait(|| !thread.is_finished());
    if !thread.is_finished()
        && let Err(stopped) = recorded
    {
        return Err(stopped);
    }
    let done = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok((done, recorded?))
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
    fn a_path_through_a_device_takes_two_connections() {
        let device = Way::Device { playback: "s:p".into(), capture: "s:c".into() };
        let pairs = |way: &Way| way.connections("l:in", "l:out");
        assert_eq!(pairs(&device), [("l:out".into(), "s:p".into()), ("s:c".into(), "l:in".into())]);
        assert_eq!(pairs(&Way::Graph), [("l:out".into(), "l:in".into())]);
    }

    #[test]
    fn a_devices_latency_is_known_only_if_both_ports_report_theirs() {
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
