//! A sound card beside the server's own: a client whose ports are the card's channels.
//!
//! The card's thread waits for the card, as the server's does for its own, and moves samples between it and two
//! timelines; the process callback moves them between these and the ports. The graph never waits for the card, nor
//! the card for the graph.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use client::{Active, Client, Control, CycleScope, InputPort, OpenOptions, OutputPort, Request, Session};
use engine::driver::{AlsaDriver, AlsaOptions, Capture, Driver, Playback, Wake};
use rt::shm::CycleInfo;

use crate::bridge::{CaptureBridge, Layout, PlaybackBridge};
use crate::timeline::{CAPACITY_FRAMES, Timeline};
use crate::told::{Listener, Told};

/// What card, and how it is to be run.
#[derive(Debug, Clone)]
pub struct CardOptions {
    /// The client's name.
    pub name: String,
    /// The card.
    pub alsa: AlsaOptions,
    /// Frames that the card moves at once.
    pub quantum: u32,
    /// Frames of the graph that either side may be late by; `None`: one quantum of the card's.
    pub margin: Option<u32>,
    /// What takes the arguments of `consort`.
    pub program: PathBuf,
}

/// What the threads know of each other.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// The card is not there.
    away: AtomicBool,
    /// Cycles that found less than they should have.
    gaps: AtomicU64,
    /// Times that the card had to be put to its place anew.
    locks: AtomicU64,
}

/// A card in a graph. Leaves it on drop.
#[derive(Debug)]
pub struct Card {
    client: Option<Client<Active>>,
    description: String,
    shared: Arc<Shared>,
    told: Arc<Told>,
    thread: Option<JoinHandle<()>>,
}

/// How a card is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CardState {
    /// It was pulled out, and is looked for.
    pub is_away: bool,
    /// There is no server any more.
    pub has_left: bool,
    /// The graph's cycles that heard less of it than they should have.
    pub gaps: u64,
    /// How often it was put to its place anew.
    pub locks: u64,
}

/// Cycles of a card that has just been started, or has lost frames, until its dates can be relied on.
const CYCLES_TO_SETTLE: u32 = 8;
/// So many cycles without an xrun, and those before are forgotten.
const GOOD_CYCLES: u32 = 200;
/// After so many xruns the thread is an ordinary one.
const MOST_STUMBLES: u32 = 8;
const STACK_BYTES: usize = 512 * 1024;
/// Above ordinary threads, below whatever the graph runs: a card has a queue to live on.
const PRIORITY: u32 = 1;

impl Card {
    /// Opens the card, joins the graph with its channels as ports, and runs it.
    ///
    /// # Errors
    /// A sentence that says who refused what, and what to do. A server that is not there is [`client::Error::NoServer`].
    pub fn start(options: &CardOptions, open: &OpenOptions) -> anyhow::Result<Self> {
        let client = Client::open_with(&options.name, open)?;
        let graph_hz = client.sample_rate_hz();
        let mut driver = open_driver(options, graph_hz).map_err(anyhow::Error::msg)?;
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
        if u64::from(capture.capture_latency(0).max(playback.playback_latency(0))) > CAPACITY_FRAMES / 4 {
            anyhow::bail!(
                "{} frames × {} are too long a way: use fewer",
                options.quantum,
                options.alsa.periods
            );
        }
        let shared = Arc::new(Shared::default());
        let told = Told::new(client.quantum());
        let description = driver.description();
        let captured = Arc::new(Timeline::new(capture.channels));
        let played = Arc::new(Timeline::new(playback.channels));
        let sides = Sides {
            capture: CaptureBridge::new(capture, Arc::clone(&captured)).map_err(anyhow::Error::msg)?,
            playback: PlaybackBridge::new(playback, Arc::clone(&played)).map_err(anyhow::Error::msg)?,
            layouts: (capture, playback),
            frames: options.quantum,
        };
        let outputs = (1..=channels.capture).map(|n| client.device_output_port(&format!("capture_{n}")));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let inputs = (1..=channels.playback).map(|n| client.device_input_port(&format!("playback_{n}")));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        client.notify(Listener(Arc::clone(&told)))?;
        state_latencies(&client, &told, (capture, playback), &outputs, &inputs)?;
        let session = Arc::clone(client.session());
        let gaps = Arc::clone(&shared);
        let client = client.activate(move_samples(outputs, inputs, captured, played, gaps))?;
        driver.start(options.quantum).map_err(anyhow::Error::msg)?;
        let of_thread = Arc::clone(&shared);
        let body = move || run(driver, sides, &session, &of_thread);
        let thread = sys::thread::spawn_named("consort-card", STACK_BYTES, body)?;
        Ok(Self { client: Some(client), description, shared, told, thread: Some(thread) })
    }

    /// The client's name, as the server gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.client.as_ref().map_or("", |client| client.name())
    }

    /// The layer below the client.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.client.as_ref().map(Client::session)
    }

    /// The card and how it is run, for people.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How it is now.
    #[must_use]
    pub fn state(&self) -> CardState {
        CardState {
            is_away: self.shared.away.load(Ordering::Relaxed),
            has_left: self.told.has_left(),
            gaps: self.shared.gaps.load(Ordering::Relaxed),
            locks: self.shared.locks.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and there is nothing more to do for it.
            let _ = thread.join();
        }
        if let Some(client) = self.client.take() {
            client.close();
        }
    }
}

/// Opens the card at the graph's rate, or else at one that it has.
fn open_driver(options: &CardOptions, graph_hz: u32) -> Result<AlsaDriver, String> {
    let at = |rate_hz: u32| {
        let alsa = AlsaOptions { sample_rate_hz: Some(rate_hz), ..options.alsa.clone() };
        AlsaDriver::open(alsa, options.quantum, &options.program)
    };
    let opened = match options.alsa.sample_rate_hz {
        Some(rate_hz) => at(rate_hz),
        None => {
            let first = at(graph_hz);
            let others = [48_000, 44_100, 96_000, 88_200, 32_000, 16_000, 8_000];
            let another = || others.into_iter().find_map(|rate_hz| at(rate_hz).ok());
            // What the graph's own rate was refused for is what there is to say, if all are refused.
            first.or_else(|error| another().ok_or(error))
        }
    };
    opened?.ok_or_else(|| "this machine has no sound card".to_owned())
}

/// Has the ports' latencies stated whenever the server asks for them.
fn state_latencies(
    client: &Client<client::Inactive>,
    told: &Arc<Told>,
    (capture, playback): (Layout, Layout),
    outputs: &[OutputPort],
    inputs: &[InputPort],
) -> Result<(), client::Error> {
    let outputs: Vec<u32> = outputs.iter().map(OutputPort::id).collect();
    let inputs: Vec<u32> = inputs.iter().map(InputPort::id).collect();
    let (session, told): (Weak<Session>, _) = (Arc::downgrade(client.session()), Arc::clone(told));
    client.session().configure(|callbacks| {
        callbacks.latency = Some(client::callback(move |is_capture| {
            let Some(session) = session.upgrade() else { return };
            let quantum = told.quantum();
            let (ports, frames) = if is_capture {
                (&outputs, capture.capture_latency(quantum))
            } else {
                (&inputs, playback.playback_latency(quantum))
            };
            for port in ports {
                let request =
                    Request::SetLatency { port: *port, capture: is_capture, min: frames, max: frames };
                // A server that is gone asks again when it is back.
                let _ = session.order(request);
            }
        }));
    })
}

/// The process callback. Thread: cycle.
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
            // Relaxed: a count for people.
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
struct Sides {
    capture: CaptureBridge,
    playback: PlaybackBridge,
    layouts: (Layout, Layout),
    /// The card's quantum.
    frames: u32,
}

struct Into<'a>(&'a mut CaptureBridge);
struct From<'a>(&'a PlaybackBridge);
struct Silence;

impl Capture for Into<'_> {
    fn channel(&mut self, channel: u32) -> Option<&mut [f32]> {
        self.0.channel(channel as usize)
    }
}

impl Playback for From<'_> {
    fn mix_into(&mut self, channel: u32, samples: &mut [f32]) {
        let made = self.0.channel(channel as usize);
        if made.len() == samples.len() { samples.copy_from_slice(made) } else { samples.fill(0.0) }
    }
}

impl Playback for Silence {
    fn mix_into(&mut self, _: u32, samples: &mut [f32]) {
        samples.fill(0.0);
    }
}

/// Where the graph is at `date_ns`, in frames and parts of them; `None`: its clock does not run.
fn graph_position(info: &CycleInfo, date_ns: u64) -> Option<f64> {
    let length_ns =
        info.next_wakeup_ns.checked_sub(info.wakeup_ns).filter(|ns| *ns > 0 && info.cycle != 0)?;
    let since_ns = date_ns.wrapping_sub(info.wakeup_ns).cast_signed() as f64;
    Some(info.frames as f64 + since_ns * f64::from(info.quantum) / length_ns as f64)
}

/// The card's thread.
fn run(mut driver: AlsaDriver, mut sides: Sides, session: &Session, shared: &Shared) {
    // Without the right to it, the card is moved as ordinary threads are, and may have xruns.
    let _ = sys::thread::set_fifo(0, PRIORITY);
    sys::thread::flush_denormals_to_zero();
    let (mut unsettled, mut stumbles, mut good) = (CYCLES_TO_SETTLE, 0, 0);
    while !shared.stop.load(Ordering::Relaxed) {
        let Wake::Cycle { due_ns, xrun_us } = driver.wait() else { break };
        let is_away = driver.is_away();
        shared.away.store(is_away, Ordering::Relaxed);
        driver.read(&mut Into(&mut sides.capture));
        good = if xrun_us.is_some() { 0 } else { good + 1 };
        stumbles = if good > GOOD_CYCLES { 0 } else { stumbles + u32::from(xrun_us.is_some()) };
        if stumbles == MOST_STUMBLES {
            // The machine is too slow for it: rather a card with gaps than a machine that answers nobody.
            let _ = sys::thread::set_other(0);
        }
        if xrun_us.is_some() || is_away {
            unsettled = CYCLES_TO_SETTLE;
        }
        unsettled = unsettled.saturating_sub(1);
        let info = session.info();
        let position = info.as_ref().and_then(|info| graph_position(info, due_ns)).filter(|_| unsettled == 0);
        let (Some(position), Some(info)) = (position, info) else {
            sides.capture.unlock();
            sides.playback.unlock();
            driver.write(sides.frames, &mut Silence);
            continue;
        };
        let (capture, playback) = sides.layouts;
        if capture.channels > 0 {
            sides.capture.cycle(position, capture.capture_latency(info.quantum));
        }
        if playback.channels > 0 {
            sides.playback.cycle(position, playback.playback_latency(info.quantum));
        }
        driver.write(sides.frames, &mut From(&sides.playback));
        let locks = sides.capture.course().locks.max(sides.playback.course().locks);
        shared.locks.store(locks, Ordering::Relaxed);
    }
    driver.stop();
}
