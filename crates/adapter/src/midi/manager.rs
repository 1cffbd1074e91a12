//! The thread that has ports come and go.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alsa::Rawmidi;
use client::{Active, Client};
use rtrb::{Consumer, Producer, RingBuffer};

use super::carrier::{Lines, News, SinkLine, SourceLine, Wish};
use super::messages::Pace;
use super::process::{Change, Port, Sink, Source};
use super::{Place, RING_BYTES, Shared};

/// How often ports that were given back are unregistered.
const LOOK: Duration = Duration::from_millis(100);

/// Knows what hardware there is. Thread: manager.
pub(super) trait Finder: Send {
    /// What there is, of the graph's business, beside what is `known`.
    fn look(&mut self, known: &HashSet<Place>) -> Vec<Found>;

    /// To be called now and then: whether it is time to look though there is no news.
    fn is_due(&mut self) -> bool {
        false
    }
}

/// An end of a cable that the graph can use.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    /// The sequencer's client, or the card.
    pub(super) owner: String,
    pub(super) port: String,
    /// What tells two ports of the same name apart.
    pub(super) number: String,
    pub(super) says: bool,
    pub(super) hears: bool,
    /// The raw device, opened: either it says, or it hears.
    pub(super) device: Option<Rawmidi>,
}

pub(super) struct Manager {
    client: Client<Active>,
    finder: Box<dyn Finder>,
    lines: Arc<Mutex<Lines>>,
    shared: Arc<Shared>,
    changes: Producer<Change>,
    returned: Consumer<Port>,
    known: HashSet<Place>,
}

impl Manager {
    pub(super) fn new(
        client: Client<Active>,
        finder: Box<dyn Finder>,
        lines: Arc<Mutex<Lines>>,
        shared: Arc<Shared>,
        changes: Producer<Change>,
        returned: Consumer<Port>,
    ) -> Self {
        Self { client, finder, lines, shared, changes, returned, known: HashSet::new() }
    }

    pub(super) fn run(mut self, heard: &Receiver<News>) {
        self.look();
        while !self.shared.stop.load(Ordering::Relaxed) {
            match heard.recv_timeout(LOOK) {
                Ok(News::Came) => self.look(),
                Ok(News::Went(place)) => self.go(place),
                Ok(News::Left(owner)) => {
                    let went: Vec<Place> =
                        self.known.iter().copied().filter(|place| place.owner == owner).collect();
                    went.into_iter().for_each(|place| self.go(place));
                }
                Err(RecvTimeoutError::Timeout) => {}
                // The carrier has ended.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
            }
            if self.finder.is_due() {
                self.look();
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

    fn look(&mut self) {
        for mut found in self.finder.look(&self.known) {
            self.known.insert(found.place);
            if found.says {
                self.add_source(&mut found);
            }
            if found.hears {
                self.add_sink(&mut found);
            }
        }
    }

    fn add_source(&mut self, found: &mut Found) {
        let [name, numbered] = names(found, "capture");
        let port = self.client.device_midi_output_port(&name);
        let Ok(port) = port.or_else(|_| self.client.device_midi_output_port(&numbered)) else { return };
        let (producer, ring) = RingBuffer::new(RING_BYTES);
        {
            let mut lines = self.lines();
            lines.sources.insert(found.place, SourceLine { ring: producer, last_frame: 0 });
            lines.wishes.push(Wish::Hear(found.place, found.device.take()));
        }
        self.add(Port::Source(Source { place: found.place, port, ring }));
    }

    fn add_sink(&mut self, found: &mut Found) {
        let [name, numbered] = names(found, "playback");
        let port = self.client.device_midi_input_port(&name);
        let Ok(port) = port.or_else(|_| self.client.device_midi_input_port(&numbered)) else { return };
        let (ring, consumer) = RingBuffer::new(RING_BYTES);
        {
            let mut lines = self.lines();
            lines.sinks.insert(found.place, SinkLine { ring: consumer, pace: Pace::default() });
            lines.wishes.push(Wish::Say(found.place, found.device.take()));
        }
        self.add(Port::Sink(Sink { place: found.place, port, ring }));
    }

    fn add(&mut self, port: Port) {
        if self.changes.push(Change::Add(port)).is_ok() {
            self.shared.ports.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.waker.wake();
    }

    fn go(&mut self, place: Place) {
        self.shared.refusals().remove(&place);
        if !self.known.remove(&place) {
            return;
        }
        {
            let mut lines = self.lines();
            lines.sources.remove(&place);
            lines.sinks.remove(&place);
        }
        // Without cycles nobody takes changes: then there is no server, either.
        let _ = self.changes.push(Change::Remove(place));
    }
}

/// A port's name, and the one that it has if another of this name is there.
fn names(found: &Found, way: &str) -> [String; 2] {
    let name = format!("{} ({way}): {}", found.owner, found.port);
    let numbered = format!("{name} [{}]", found.number);
    [name, numbered]
}
