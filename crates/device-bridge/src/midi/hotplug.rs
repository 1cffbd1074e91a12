//! The thread that registers and unregisters ports as hardware appears and disappears.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alsa_rs::Rawmidi;
use client::{Active, Client};
use rtrb::{Consumer, Producer, RingBuffer};

use super::carrier::{HardwareEvent, Lines, PendingJoin, SinkLine, SourceLine};
use super::messages::CableRate;
use super::process::{Change, Port, Sink, Source};
use super::{Endpoint, RING_BYTES, Shared};

/// Interval at which returned ports are unregistered.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Finds hardware. Thread: hotplug.
pub(super) trait EndpointFinder: Send {
    /// Returns the endpoints for the graph that are not in `known`.
    fn find_new(&mut self, known: &HashSet<Endpoint>) -> Vec<FoundEndpoint>;

    /// Returns whether to search although no change was reported. Called regularly.
    fn is_due(&mut self) -> bool {
        false
    }
}

/// An endpoint that the graph can use.
#[derive(Debug)]
pub(super) struct FoundEndpoint {
    pub(super) endpoint: Endpoint,
    /// Name of the sequencer's client, or of the card.
    pub(super) owner: String,
    pub(super) port: String,
    /// Distinguishes two ports of the same name.
    pub(super) number: String,
    pub(super) is_source: bool,
    pub(super) is_sink: bool,
    /// The raw device, opened for one direction.
    pub(super) device: Option<Rawmidi>,
}

pub(super) struct Hotplug {
    client: Client<Active>,
    finder: Box<dyn EndpointFinder>,
    lines: Arc<Mutex<Lines>>,
    shared: Arc<Shared>,
    changes: Producer<Change>,
    returned: Consumer<Port>,
    known: HashSet<Endpoint>,
}

impl Hotplug {
    pub(super) fn new(
        client: Client<Active>,
        finder: Box<dyn EndpointFinder>,
        lines: Arc<Mutex<Lines>>,
        shared: Arc<Shared>,
        changes: Producer<Change>,
        returned: Consumer<Port>,
    ) -> Self {
        Self { client, finder, lines, shared, changes, returned, known: HashSet::new() }
    }

    pub(super) fn run(mut self, heard: &Receiver<HardwareEvent>) {
        self.find_new();
        while !self.shared.stop.load(Ordering::Relaxed) {
            match heard.recv_timeout(POLL_INTERVAL) {
                Ok(HardwareEvent::Appeared) => self.find_new(),
                Ok(HardwareEvent::Disappeared(endpoint)) => self.go(endpoint),
                Ok(HardwareEvent::OwnerDisappeared(owner)) => {
                    let went: Vec<Endpoint> = self
                        .known
                        .iter()
                        .copied()
                        .filter(|endpoint| endpoint.owner == owner)
                        .collect();
                    went.into_iter().for_each(|endpoint| self.go(endpoint));
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The carrier has ended.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL_INTERVAL),
            }
            if self.finder.is_due() {
                self.find_new();
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

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find_new(&mut self) {
        for mut found in self.finder.find_new(&self.known) {
            self.known.insert(found.endpoint);
            if found.is_source {
                self.add_source(&mut found);
            }
            if found.is_sink {
                self.add_sink(&mut found);
            }
        }
    }

    fn add_source(&mut self, found: &mut FoundEndpoint) {
        let [name, numbered] = names(found, "capture");
        let port = self.client.device_midi_output_port(&name);
        let Ok(port) = port.or_else(|_| self.client.device_midi_output_port(&numbered)) else {
            return;
        };
        let (producer, ring) = RingBuffer::new(RING_BYTES);
        {
            let mut lines = self.lines();
            lines.sources.insert(found.endpoint, SourceLine { ring: producer, last_frame: 0 });
            lines.pending_joins.push(PendingJoin::Source(found.endpoint, found.device.take()));
        }
        self.add(Port::Source(Source { endpoint: found.endpoint, port, ring }));
    }

    fn add_sink(&mut self, found: &mut FoundEndpoint) {
        let [name, numbered] = names(found, "playback");
        let port = self.client.device_midi_input_port(&name);
        let Ok(port) = port.or_else(|_| self.client.device_midi_input_port(&numbered)) else {
            return;
        };
        let (ring, consumer) = RingBuffer::new(RING_BYTES);
        {
            let mut lines = self.lines();
            lines
                .sinks
                .insert(found.endpoint, SinkLine { ring: consumer, rate: CableRate::default() });
            lines.pending_joins.push(PendingJoin::Sink(found.endpoint, found.device.take()));
        }
        self.add(Port::Sink(Sink { endpoint: found.endpoint, port, ring }));
    }

    fn add(&mut self, port: Port) {
        if self.changes.push(Change::Add(port)).is_ok() {
            self.shared.ports.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.waker.wake();
    }

    fn go(&mut self, endpoint: Endpoint) {
        self.shared.refusals().remove(&endpoint);
        if !self.known.remove(&endpoint) {
            return;
        }
        {
            let mut lines = self.lines();
            lines.sources.remove(&endpoint);
            lines.sinks.remove(&endpoint);
        }
        // Fails only without cycles to take the changes, and then there is no server either.
        let _ = self.changes.push(Change::Remove(endpoint));
    }
}

/// Returns a port's name, and the name to use if the first is taken.
fn names(found: &FoundEndpoint, way: &str) -> [String; 2] {
    let name = format!("{} ({way}): {}", found.owner, found.port);
    let numbered = format!("{name} [{}]", found.number);
    [name, numbered]
}
