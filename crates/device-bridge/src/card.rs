//! A sound card besides the server's own: a client whose ports are the card's channels.
//!
//! The card's thread waits for the card, as the server's driver thread does for its own, and moves
//! samples between the card and two timelines; the process callback moves them between the
//! timelines and the ports. Neither the graph nor the card waits for the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use client::{
    Active, Client, Control, CycleScope, InputPort, OpenOptions, OutputPort, Request, Requester,
    Session,
};
use device::{AlsaDriver, Capture, CardReservation, Driver, Playback, Wake};
use proto::driver::AlsaOptions;
use rt::shm::CycleInfo;

use crate::bridge::{CaptureBridge, Layout, PlaybackBridge};
use crate::notifications::{GraphListener, GraphState};
use crate::timeline::{CAPACITY_FRAMES, Timeline};

/// Which card to use, and how.
#[derive(Debug, Clone)]
pub struct CardOptions {
    /// The client's name.
    pub name: String,
    /// The card's options.
    pub alsa: AlsaOptions,
    /// Frames that the card moves at once.
    pub quantum: u32,
    /// Frames of the graph by which either side may be late; `None`: one quantum of the card.
    pub margin: Option<u32>,
}

/// The state that the threads share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// The card is not there.
    away: AtomicBool,
    /// Cycles that found fewer frames than they needed.
    gaps: AtomicU64,
    /// How often the card was aligned again.
    locks: AtomicU64,
}

/// A card in a graph. It leaves the graph on drop.
#[derive(Debug)]
pub struct Card {
    client: Option<Client<Active>>,
    description: String,
    shared: Arc<Shared>,
    graph: Arc<GraphState>,
    thread: Option<JoinHandle<()>>,
}

/// The state of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardState {
    /// The card was unplugged and has not come back.
    pub is_away: bool,
    /// The server is gone for good.
    pub has_left: bool,
    /// Cycles of the graph that received fewer frames than they needed.
    pub gaps: u64,
    /// How often the card was aligned again.
    pub locks: u64,
}

/// Cycles after a start or lost frames until the card's timestamps are reliable.
const CYCLES_TO_SETTLE: u32 = 8;
/// Cycles without an xrun after which earlier ones are forgotten.
const GOOD_CYCLES: u32 = 200;
/// Xruns after which the thread gives up its priority.
const MOST_STUMBLES: u32 = 8;
const STACK_BYTES: usize = 512 * 1024;
/// Above ordinary threads and below all threads of the graph: the card has a queue to bridge
/// delays.
const PRIORITY: u32 = 1;

impl Card {
    /// Opens the card, which `reservations` makes other sound servers release, joins the graph with
    /// the card's channels as ports, and runs it.
    ///
    /// # Errors
    /// A sentence that says what was refused, and what to do. A missing server is
    /// [`client::Error::NoServer`].
    pub fn start(
        options: &CardOptions,
        reservations: &dyn CardReservation,
        open: &OpenOptions,
    ) -> anyhow::Result<Self> {
        let client = Client::open_with(&options.name, open)?;
        let graph_hz = client.sample_rate_hz();
        let mut driver =
            open_driver(options, reservations, graph_hz).map_err(anyhow::Error::msg)?;
        let channels = driver.channels();
        let device_hz = f64::from(driver.sample_rate_hz());
        let layout = |channels: u32| Layout {
            channels: channels as usize,
            graph_hz: f64::from(graph_hz),
            device_hz,
            device_quantum: options.quantum,
            device_queue: options.alsa.periods.max(2) * options.quantum,
            margin: options.margin.unwrap_or(options.quantum),
        };
        let (capture, playback) = (layout(channels.capture), layout(channels.playback));
        if u64::from(capture.capture_latency(0).max(playback.playback_latency(0)))
            > CAPACITY_FRAMES / 4
        {
            anyhow::bail!(
                "{} frames × {} are too long a delay: use fewer",
                options.quantum,
                options.alsa.periods
            );
        }
        let shared = Arc::new(Shared::default());
        let graph = GraphState::new(client.quantum());
        let description = driver.description();
        let captured = Arc::new(Timeline::new(capture.channels));
        let played = Arc::new(Timeline::new(playback.channels));
        let bridges = BridgePair {
            capture: CaptureBridge::new(capture, Arc::clone(&captured))
                .map_err(anyhow::Error::msg)?,
            playback: PlaybackBridge::new(playback, Arc::clone(&played))
                .map_err(anyhow::Error::msg)?,
            layouts: (capture, playback),
            frames: options.quantum,
        };
        let outputs =
            (1..=channels.capture).map(|n| client.device_output_port(&format!("capture_{n}")));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let inputs =
            (1..=channels.playback).map(|n| client.device_input_port(&format!("playback_{n}")));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        client.notify(GraphListener(Arc::clone(&graph)))?;
        state_latencies(&client, &graph, (capture, playback), &outputs, &inputs)?;
        let session = Arc::clone(client.session());
        let gaps = Arc::clone(&shared);
        let client = client.activate(move_samples(outputs, inputs, captured, played, gaps))?;
        driver.start(options.quantum).map_err(anyhow::Error::msg)?;
        let of_thread = Arc::clone(&shared);
        let body = move || run(driver, bridges, &session, &of_thread);
        let thread = sys::thread::spawn_named("consort-card", STACK_BYTES, body)?;
        Ok(Self { client: Some(client), description, shared, graph, thread: Some(thread) })
    }

    /// Returns the client's name, as the server gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.client.as_ref().map_or("", |client| client.name())
    }

    /// Returns the session under the client.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.client.as_ref().map(Client::session)
    }

    /// Returns a description of the card and its configuration, for users.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> CardState {
        CardState {
            is_away: self.shared.away.load(Ordering::Relaxed),
            has_left: self.graph.has_left(),
            gaps: self.shared.gaps.load(Ordering::Relaxed),
            locks: self.shared.locks.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been printed, and nothing else can be done about it.
            let _ = thread.join();
        }
        if let Some(client) = self.client.take() {
            client.close();
        }
    }
}

/// Opens the card at the graph's rate, or else at one that it supports.
fn open_driver(
    options: &CardOptions,
    reservations: &dyn CardReservation,
    graph_hz: u32,
) -> Result<AlsaDriver, String> {
    let at = |rate_hz: u32| {
        let alsa = AlsaOptions { sample_rate_hz: Some(rate_hz), ..options.alsa.clone() };
        AlsaDriver::open(alsa, options.quantum, reservations)
    };
    let opened = match options.alsa.sample_rate_hz {
        Some(rate_hz) => at(rate_hz),
        None => {
            let first = at(graph_hz);
            let others = [48_000, 44_100, 96_000, 88_200, 32_000, 16_000, 8_000];
            let another = || others.into_iter().find_map(|rate_hz| at(rate_hz).ok());
            // If every rate is refused, the reason for the graph's rate is the one to report.
            first.or_else(|error| another().ok_or(error))
        }
    };
    opened?.ok_or_else(|| "this machine has no sound card".to_owned())
}

/// Sets the ports' latencies whenever the server requests them.
fn state_latencies(
    client: &Client<client::Inactive>,
    graph: &Arc<GraphState>,
    (capture, playback): (Layout, Layout),
    outputs: &[OutputPort],
    inputs: &[InputPort],
) -> Result<(), client::Error> {
    let outputs: Vec<u32> = outputs.iter().map(OutputPort::id).collect();
    let inputs: Vec<u32> = inputs.iter().map(InputPort::id).collect();
    let (session, graph): (Weak<Session>, _) =
        (Arc::downgrade(client.session()), Arc::clone(graph));
    client.session().configure(|callbacks| {
        callbacks.latency = Some(client::callback(move |is_capture| {
            let Some(session) = session.upgrade() else { return };
            let quantum = graph.quantum();
            let (ports, frames) = if is_capture {
                (&outputs, capture.capture_latency(quantum))
            } else {
                (&inputs, playback.playback_latency(quantum))
            };
            for port in ports {
                let request = Request::SetLatency {
                    port: *port,
                    capture: is_capture,
                    min: frames,
                    max: frames,
                };
                // A server that is gone requests them again when it is back.
                let _ = session.request(request);
            }
        }));
    })
}

/// Returns the process callback. Thread: cycle.
fn move_samples(
    mut outputs: Vec<OutputPort>,
    mut inputs: Vec<InputPort>,
    captured: Arc<Timeline>,
    played: Arc<Timeline>,
    shared: Arc<Shared>,
) -> impl FnMut(&CycleScope<'_>) -> Control + Send + 'static {
    move |cycle| {
        let (at, frames) = (cycle.info().frames, cycle.frames() as usize);
        let mut found = frames;
        for (channel, port) in outputs.iter_mut().enumerate() {
            found = found.min(captured.get(channel, at, &mut port.buffer(cycle)));
        }
        if found < frames {
            // Relaxed: a count for users.
            shared.gaps.fetch_add(1, Ordering::Relaxed);
        }
        played.begin_at(at);
        for (channel, port) in inputs.iter_mut().enumerate() {
            played.put(channel, at, &port.buffer(cycle));
        }
        played.publish(at + frames as u64);
        Control::Continue
    }
}

/// Both directions of the card.
struct BridgePair {
    capture: CaptureBridge,
    playback: PlaybackBridge,
    layouts: (Layout, Layout),
    /// The card's quantum, frames.
    frames: u32,
}

struct CaptureSink<'a>(&'a mut CaptureBridge);
struct PlaybackSource<'a>(&'a PlaybackBridge);
struct SilentPlayback;

impl Capture for CaptureSink<'_> {
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]> {
        self.0.channel(channel as usize)
    }
}

impl Playback for PlaybackSource<'_> {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        let made = self.0.channel(channel as usize);
        if made.len() == samples.len() { samples.copy_from_slice(made) } else { samples.fill(0.0) }
    }
}

impl Playback for SilentPlayback {
    fn mix_into(&mut self, _: u32, samples: &mut [f32]) {
        samples.fill(0.0);
    }
}

/// Returns the graph's position at `timestamp_ns` in frames and fractions; `None` if its clock does
/// not run.
fn graph_position(info: &CycleInfo, timestamp_ns: u64) -> Option<f64> {
    let length_ns =
        info.next_wakeup_ns.checked_sub(info.wakeup_ns).filter(|ns| *ns > 0 && info.cycle != 0)?;
    let since_ns = timestamp_ns.wrapping_sub(info.wakeup_ns).cast_signed() as f64;
    Some(info.frames as f64 + since_ns * f64::from(info.quantum) / length_ns as f64)
}

/// The body of the card's thread.
fn run(mut driver: AlsaDriver, mut bridges: BridgePair, session: &Session, shared: &Shared) {
    // Without a real-time priority the card is served like any ordinary thread, and may have xruns.
    let _ = sys::thread::set_fifo(0, PRIORITY);
    sys::thread::flush_denormals_to_zero();
    let (mut unsettled, mut stumbles, mut good) = (CYCLES_TO_SETTLE, 0, 0);
    while !shared.stop.load(Ordering::Relaxed) {
        let Wake::Cycle { due_ns, xrun_us } = driver.wait() else { break };
        let is_away = driver.is_away();
        shared.away.store(is_away, Ordering::Relaxed);
        driver.read(&mut CaptureSink(&mut bridges.capture));
        good = if xrun_us.is_some() { 0 } else { good + 1 };
        stumbles = if good > GOOD_CYCLES { 0 } else { stumbles + u32::from(xrun_us.is_some()) };
        if stumbles == MOST_STUMBLES {
            // The machine is too slow for the card: gaps are better than a machine that does not
            // respond.
            let _ = sys::thread::set_other(0);
        }
        if xrun_us.is_some() || is_away {
            unsettled = CYCLES_TO_SETTLE;
        }
        unsettled = unsettled.saturating_sub(1);
        let info = session.info();
        let position =
            info.as_ref().and_then(|info| graph_position(info, due_ns)).filter(|_| unsettled == 0);
        let (Some(position), Some(info)) = (position, info) else {
            bridges.capture.unlock();
            bridges.playback.unlock();
            driver.write(bridges.frames, &mut SilentPlayback);
            continue;
        };
        let (capture, playback) = bridges.layouts;
        if capture.channels > 0 {
            bridges.capture.cycle(position, capture.capture_latency(info.quantum));
        }
        if playback.channels > 0 {
            bridges.playback.cycle(position, playback.playback_latency(info.quantum));
        }
        driver.write(bridges.frames, &mut PlaybackSource(&bridges.playback));
        let locks = bridges.capture.stats().locks.max(bridges.playback.stats().locks);
        shared.locks.store(locks, Ordering::Relaxed);
    }
    driver.stop();
}
