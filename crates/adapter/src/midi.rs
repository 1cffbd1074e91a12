//! ALSA's sequencer in a graph: each of its ports is a MIDI port of one client.
//!
//! What arrives is dated by the graph's clock as soon as it arrives, and heard exactly a quantum later; what the graph
//! says leaves a quantum after its frame. Three threads share the work: the process callback moves messages between
//! ports and rings, the carrier between rings and the sequencer, and the manager has ports come and go.

mod carrier;
mod messages;
mod process;
mod records;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use alsa::seq::Addr;
use client::{Active, Client, Notifications, OpenOptions, Request, Session, Shutdown};
use rtrb::{Consumer, Producer, RingBuffer};
use sys::poll::Waker;

use carrier::{Asker, Carrier, Found, Lines, News, SinkLine, SourceLine, Wish};
use process::{Change, Port, Ports, Sink, Source};

/// Ports in each direction.
const MOST_PORTS: usize = 256;
/// The longest message that a port's buffer holds, and more.
const ROOM_BYTES: usize = rt::midi::MIDI_WORDS * size_of::<u32>();
/// Messages on their way between two threads, per port.
const RING_BYTES: usize = 4 * ROOM_BYTES;
const STACK_BYTES: usize = 512 * 1024;
/// How often ports that were given back are unregistered.
const LOOK: Duration = Duration::from_millis(100);

/// What the threads know of each other.
#[derive(Debug)]
struct Shared {
    waker: Waker,
    stop: AtomicBool,
    left: AtomicBool,
    ports: AtomicU64,
    /// Messages for which there was no room, or that the sequencer did not take.
    lost: AtomicU64,
    /// Ports that refused to be connected.
    unconnected: AtomicU64,
    worst_late_ns: AtomicU64,
}

/// The sequencer in a graph. Leaves it on drop.
#[derive(Debug)]
pub struct Sequencer {
    session: Arc<Session>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SequencerState {
    /// There is no server any more.
    pub has_left: bool,
    /// Ports in the graph.
    pub ports: u64,
    /// Messages that did not get through.
    pub lost: u64,
    /// Ports in the graph that another program has for itself.
    pub unconnected: u64,
    /// How late the worst message left, µs: all of what is not constant between a frame and its message.
    pub worst_late_us: u64,
}

struct Listener(Arc<Shared>);

impl Notifications for Listener {
    fn shutdown(&mut self, _: &Shutdown) {
        self.0.left.store(true, Ordering::Relaxed);
    }
}

impl Sequencer {
    /// Opens the sequencer and joins the graph with all of its ports.
    ///
    /// # Errors
    /// Why it cannot. A server that is not there is [`client::Error::NoServer`].
    pub fn start(name: &str, open: &OpenOptions) -> anyhow::Result<Self> {
        let client = Client::open_with(name, open)?;
        let refused =
            |error| anyhow::anyhow!("cannot open ALSA's sequencer: {error}; is the module snd-seq loaded?");
        let carrier = Carrier::open(name).map_err(refused)?;
        let asker = Asker::open(carrier.own().map_err(refused)?).map_err(refused)?;
        let shared = Arc::new(Shared {
            waker: Waker::new()?,
            stop: AtomicBool::new(false),
            left: AtomicBool::new(false),
            ports: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            unconnected: AtomicU64::new(0),
            worst_late_ns: AtomicU64::new(0),
        });
        client.notify(Listener(Arc::clone(&shared)))?;
        let ((changes, changed), (retired, returned)) =
            (RingBuffer::new(4 * MOST_PORTS), RingBuffer::new(2 * MOST_PORTS));
        let mut ports = Ports::new(changed, retired, Arc::clone(&shared));
        state_latencies(&client)?;
        let session = Arc::clone(client.session());
        let client = client.activate(move |cycle: &client::CycleScope<'_>| ports.process(cycle))?;
        let (news, heard) = channel();
        let lines = Arc::new(Mutex::new(Lines::default()));
        let manager = Manager {
            client,
            asker,
            lines: Arc::clone(&lines),
            shared: Arc::clone(&shared),
            changes,
            returned,
        };
        let (of_carrier, of_session) = (Arc::clone(&shared), Arc::clone(&session));
        let carry = move || carrier.run(&lines, &of_carrier, &of_session, &news);
        let threads = vec![
            sys::thread::spawn_named("consort-midi", STACK_BYTES, carry)?,
            sys::thread::spawn_named("consort-ports", STACK_BYTES, move || manager.run(&heard))?,
        ];
        Ok(Self { session, shared, threads })
    }

    /// The layer below the client.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        Some(&self.session)
    }

    /// How it is now.
    #[must_use]
    pub fn state(&self) -> SequencerState {
        SequencerState {
            has_left: self.shared.left.load(Ordering::Relaxed),
            ports: self.shared.ports.load(Ordering::Relaxed),
            lost: self.shared.lost.load(Ordering::Relaxed),
            unconnected: self.shared.unconnected.load(Ordering::Relaxed),
            worst_late_us: self.shared.worst_late_ns.load(Ordering::Relaxed) / 1000,
        }
    }
}

impl Drop for Sequencer {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
        for thread in self.threads.drain(..) {
            // A panic there has been printed, and there is nothing more to do for it.
            let _ = thread.join();
        }
    }
}

/// Both directions take a quantum.
fn state_latencies(client: &Client<client::Inactive>) -> Result<(), client::Error> {
    let session: Weak<Session> = Arc::downgrade(client.session());
    client.session().configure(|callbacks| {
        callbacks.latency = Some(Box::new(move |capture| {
            let Some(session) = session.upgrade() else { return };
            let frames = session.info().map_or(0, |info| info.quantum);
            let own: Vec<u32> = session
                .registry()
                .ports()
                // Captured: what comes out of output ports; played: what goes into input ports.
                .filter(|port| session.is_own_port(port.id) && (port.flags & 2 != 0) == capture)
                .map(|port| port.id)
                .collect();
            for port in own {
                // A server that is gone asks again when it is back.
                let _ = session.order(Request::SetLatency { port, capture, min: frames, max: frames });
            }
        }));
    })
}

/// Has ports come and go.
struct Manager {
    client: Client<Active>,
    asker: Asker,
    lines: Arc<Mutex<Lines>>,
    shared: Arc<Shared>,
    changes: Producer<Change>,
    returned: Consumer<Port>,
}

impl Manager {
    fn run(mut self, heard: &Receiver<News>) {
        let mut known = HashSet::new();
        for address in self.asker.all() {
            self.come(&mut known, address);
        }
        while !self.shared.stop.load(Ordering::Relaxed) {
            match heard.recv_timeout(LOOK) {
                Ok(News::Came(address)) => self.come(&mut known, address),
                Ok(News::Went(address)) => self.go(&mut known, address),
                Ok(News::Left(client)) => {
                    let went: Vec<Addr> = known.iter().copied().filter(|at| at.client == client).collect();
                    went.into_iter().for_each(|address| self.go(&mut known, address));
                }
                Err(_) => {}
            }
            while let Ok(port) = self.returned.pop() {
                // A server that is gone has no ports.
                let _ = match port {
                    Port::Source(source) => source.port.unregister(),
                    Port::Sink(sink) => sink.port.unregister(),
                };
                self.shared.ports.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.client.close();
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn come(&mut self, known: &mut HashSet<Addr>, address: Addr) {
        let Some(found) = self.asker.look(address) else { return };
        if !known.insert(address) {
            return;
        }
        if found.says {
            self.add_source(&found);
        }
        if found.hears {
            self.add_sink(&found);
        }
    }

    fn add_source(&mut self, found: &Found) {
        let name = |suffix: &str| format!("{} (capture): {}{suffix}", found.client, found.port);
        let port = self.client.device_midi_output_port(&name(""));
        let Ok(port) = port.or_else(|_| self.client.device_midi_output_port(&name(&number(found)))) else {
            return;
        };
        let (producer, ring) = RingBuffer::new(RING_BYTES);
        let line = SourceLine { ring: producer, assembly: messages::Assembly::default() };
        {
            let mut lines = self.lines();
            lines.sources.insert(found.address, line);
            lines.wishes.push(Wish::Hear(found.address));
        }
        self.add(Port::Source(Source { address: found.address, port, ring }));
    }

    fn add_sink(&mut self, found: &Found) {
        let name = |suffix: &str| format!("{} (playback): {}{suffix}", found.client, found.port);
        let port = self.client.device_midi_input_port(&name(""));
        let Ok(port) = port.or_else(|_| self.client.device_midi_input_port(&name(&number(found)))) else {
            return;
        };
        let (ring, consumer) = RingBuffer::new(RING_BYTES);
        let line = SinkLine { ring: consumer, pace: messages::Pace::default() };
        {
            let mut lines = self.lines();
            lines.sinks.insert(found.address, line);
            lines.wishes.push(Wish::Say(found.address));
        }
        self.add(Port::Sink(Sink { address: found.address, port, ring }));
    }

    fn add(&mut self, port: Port) {
        if self.changes.push(Change::Add(port)).is_ok() {
            self.shared.ports.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.waker.wake();
    }

    fn go(&mut self, known: &mut HashSet<Addr>, address: Addr) {
        if !known.remove(&address) {
            return;
        }
        {
            let mut lines = self.lines();
            lines.sources.remove(&address);
            lines.sinks.remove(&address);
        }
        // Without cycles nobody takes changes: then there is no server, either.
        let _ = self.changes.push(Change::Remove(address));
    }
}

/// What tells two ports of the same name apart.
fn number(found: &Found) -> String {
    format!(" [{}:{}]", found.address.client, found.address.port)
}
