//! MIDI hardware in a graph: each port of ALSA's sequencer, or each raw device, is a MIDI port of
//! one client.
//!
//! Messages that arrive are timestamped by the kernel, or else as soon as they are read, and heard
//! exactly a quantum later. Messages of the graph leave a quantum after their frame. Three threads
//! share the work: the process callback moves messages between ports and rings, the carrier moves
//! them between rings and [`Cables`](carrier::Cables), and the hotplug thread registers and
//! unregisters ports.

mod carrier;
mod hotplug;
mod messages;
mod process;
mod raw;
mod records;
mod sequencer;
mod stream;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use client::{Client, OpenOptions, Request, Requester, Session};
use rtrb::RingBuffer;
use sys::poll::{Interest, Poller, Waker};

use carrier::{Carrier, Lines, WAKER};
use hotplug::Hotplug;
use process::Ports;

use crate::notifications::{GraphListener, GraphState};

/// The most ports in each direction.
const MOST_PORTS: usize = 256;
/// Room for the longest message that a port's buffer can hold.
const ROOM_BYTES: usize = rt::midi::MIDI_WORDS * size_of::<u32>();
/// Size of the ring between two threads, per port.
const RING_BYTES: usize = 4 * ROOM_BYTES;
const STACK_BYTES: usize = 512 * 1024;

/// Where MIDI comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MidiHardware {
    /// ALSA's sequencer: all hardware, and other programs.
    Sequencer,
    /// The devices themselves. Each is open as long as this runs, and no other program has it.
    Raw,
}

/// An end of a cable: one of the sequencer's ports, or an input or an output of a raw device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Endpoint {
    /// The sequencer's client, or the card.
    owner: u32,
    /// Number of the end at its owner.
    end: u32,
}

/// The state that the threads share.
#[derive(Debug)]
struct Shared {
    waker: Waker,
    stop: AtomicBool,
    ports: AtomicU64,
    /// Messages for which there was no room, or that the hardware did not take.
    lost: AtomicU64,
    worst_late_ns: AtomicU64,
    /// The kernel timestamps messages.
    has_kernel_timestamps: AtomicBool,
    worst_read_ns: AtomicU64,
    /// Endpoints that cannot be used, and why.
    refusals: Mutex<BTreeMap<Endpoint, String>>,
}

/// MIDI hardware in a graph. Leaves it on drop.
#[derive(Debug)]
pub struct Midi {
    session: Arc<Session>,
    shared: Arc<Shared>,
    graph: Arc<GraphState>,
    threads: Vec<JoinHandle<()>>,
}

/// The state of the MIDI hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MidiState {
    /// The server is gone for good.
    pub has_left: bool,
    /// Ports in the graph.
    pub ports: u64,
    /// Messages that did not get through.
    pub lost: u64,
    /// Why endpoints cannot be used, a sentence each.
    pub refusals: Vec<String>,
    /// How late the worst message left, µs: the jitter between a frame and its message.
    pub worst_late_us: u64,
    /// How long the worst message waited from the kernel's timestamp until it was read, µs. The
    /// timestamp determines its frame, so the wait is heard only if it is longer than a quantum.
    /// `None`: the kernel has timestamped none.
    pub worst_read_us: Option<u64>,
}

impl Shared {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
            ports: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            worst_late_ns: AtomicU64::new(0),
            has_kernel_timestamps: AtomicBool::new(false),
            worst_read_ns: AtomicU64::new(0),
            refusals: Mutex::default(),
        })
    }

    fn refusals(&self) -> MutexGuard<'_, BTreeMap<Endpoint, String>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose(&self, messages: u64) {
        self.lost.fetch_add(messages, Ordering::Relaxed);
    }
}

impl Midi {
    /// Opens the hardware and joins the graph with all of its ports.
    ///
    /// # Errors
    /// A sentence that says why not. A missing server is [`client::Error::NoServer`].
    pub fn start(hardware: MidiHardware, name: &str, open: &OpenOptions) -> anyhow::Result<Self> {
        let client = Client::open_with(name, open)?;
        let (shared, poller) = (Arc::new(Shared::new()?), Arc::new(Poller::new()?));
        poller.add(&shared.waker, WAKER, Interest::Readable)?;
        let (cables, finder) = match hardware {
            MidiHardware::Sequencer => sequencer::open(name, &poller)?,
            MidiHardware::Raw => raw::open(&poller, &shared)?,
        };
        let graph = GraphState::new(client.quantum());
        client.notify(GraphListener(Arc::clone(&graph)))?;
        let ((changes, changed), (retired, returned)) =
            (RingBuffer::new(4 * MOST_PORTS), RingBuffer::new(2 * MOST_PORTS));
        let mut ports = Ports::new(changed, retired, Arc::clone(&shared));
        state_latencies(&client, &graph)?;
        let session = Arc::clone(client.session());
        let client = client.activate(move |cycle: &client::CycleScope<'_>| ports.process(cycle))?;
        let (news, heard) = channel();
        let lines = Arc::new(Mutex::new(Lines::default()));
        let hotplug = Hotplug::new(
            client,
            finder,
            Arc::clone(&lines),
            Arc::clone(&shared),
            changes,
            returned,
        );
        let (of_carrier, of_session) = (Arc::clone(&shared), Arc::clone(&session));
        let carry = move || {
            // Without memory for it there are no messages to carry.
            let Ok(cables) = cables() else { return };
            Carrier::new(cables).run(&poller, &lines, &of_carrier, &of_session, &news);
        };
        let threads = vec![
            sys::thread::spawn_named("consort-midi", STACK_BYTES, carry)?,
            sys::thread::spawn_named("consort-ports", STACK_BYTES, move || hotplug.run(&heard))?,
        ];
        Ok(Self { session, shared, graph, threads })
    }

    /// Returns the session under the client.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        Some(&self.session)
    }

    /// Returns the current state.
    #[must_use]
    pub fn state(&self) -> MidiState {
        let us = |ns: &AtomicU64| ns.load(Ordering::Relaxed) / 1000;
        MidiState {
            has_left: self.graph.has_left(),
            ports: self.shared.ports.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            refusals: self.shared.refusals().values().cloned().collect(),
            worst_late_us: us(&self.shared.worst_late_ns),
            worst_read_us: self
                .shared
                .has_kernel_timestamps
                .load(Ordering::Relaxed)
                .then(|| us(&self.shared.worst_read_ns)),
        }
    }
}

impl Drop for Midi {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
        for thread in self.threads.drain(..) {
            // A panic of that thread has been printed, and nothing else can be done about it.
            let _ = thread.join();
        }
    }
}

/// Sets the ports' latencies: a quantum in both directions.
fn state_latencies(
    client: &Client<client::Inactive>,
    graph: &Arc<GraphState>,
) -> Result<(), client::Error> {
    let (session, graph): (Weak<Session>, _) =
        (Arc::downgrade(client.session()), Arc::clone(graph));
    client.session().configure(|callbacks| {
        callbacks.latency = Some(client::callback(move |capture| {
            let Some(session) = session.upgrade() else { return };
            let frames = graph.quantum();
            let own: Vec<u32> = session
                .registry()
                .ports()
                // Output ports have a capture latency, input ports a playback latency.
                .filter(|port| session.is_own_port(port.id) && port.is_output() == capture)
                .map(|port| port.id)
                .collect();
            for port in own {
                // A server that is gone requests them again when it is back.
                let _ = session.request(Request::SetLatency {
                    port,
                    capture,
                    min: frames,
                    max: frames,
                });
            }
        }));
    })
}
