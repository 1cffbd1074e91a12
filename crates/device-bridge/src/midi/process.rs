//! The process callback's ports.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::midi::{MidiInputPort, MidiOutputPort};
use client::{Control, CycleScope};
use rtrb::{Consumer, Producer};

use super::{Endpoint, MOST_PORTS, ROOM_BYTES, Shared, records};

/// From ALSA to the graph.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) endpoint: Endpoint,
    pub(super) port: MidiOutputPort,
    /// Messages, each with the frame at which it arrived.
    pub(super) ring: Consumer<u8>,
}

/// From the graph to ALSA.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) endpoint: Endpoint,
    pub(super) port: MidiInputPort,
    /// Messages, each with the time at which it must be sent.
    pub(super) ring: Producer<u8>,
}

/// A registered port.
#[derive(Debug)]
pub(super) enum Port {
    Source(Source),
    Sink(Sink),
}

/// A change of the ports while cycles run.
#[derive(Debug)]
pub(super) enum Change {
    /// A port is added.
    Add(Port),
    /// All ports of this endpoint are returned.
    Remove(Endpoint),
}

/// The state of the process callback. Its vectors have room for all ports and never grow.
pub(super) struct Ports {
    pub(super) changes: Consumer<Change>,
    pub(super) retired: Producer<Port>,
    pub(super) sources: Vec<Source>,
    pub(super) sinks: Vec<Sink>,
    pub(super) room: Box<[u8]>,
    pub(super) shared: Arc<Shared>,
}

impl Ports {
    pub(super) fn new(
        changes: Consumer<Change>,
        retired: Producer<Port>,
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            changes,
            retired,
            sources: Vec::with_capacity(MOST_PORTS),
            sinks: Vec::with_capacity(MOST_PORTS),
            room: vec![0; ROOM_BYTES].into_boxed_slice(),
            shared,
        }
    }

    /// Runs a cycle. Thread: cycle.
    pub(super) fn process(&mut self, cycle: &CycleScope<'_>) -> Control {
        self.adopt();
        let info = *cycle.info();
        let begin = info.frames;
        for source in &mut self.sources {
            hear(source, cycle, begin, &mut self.room, &self.shared);
        }
        let mut has_said = false;
        for sink in &mut self.sinks {
            for event in sink.port.buffer(cycle).events() {
                // A quantum after its frame: while the message is written, the frames of its cycle
                // already pass.
                let frame = begin + u64::from(event.time()) + u64::from(cycle.frames());
                let message = event.copy_to(&mut self.room).unwrap_or_default();
                has_said = true;
                if message.is_empty()
                    || !records::push(&mut sink.ring, info.time_of(frame), message)
                {
                    self.shared.lost.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        if has_said {
            self.shared.waker.wake();
        }
        Control::Continue
    }

    fn adopt(&mut self) {
        while let Ok(change) = self.changes.pop() {
            match change {
                Change::Add(Port::Source(source)) if self.sources.len() < MOST_PORTS => {
                    self.sources.push(source)
                }
                Change::Add(Port::Sink(sink)) if self.sinks.len() < MOST_PORTS => {
                    self.sinks.push(sink)
                }
                Change::Add(port) => self.retire(port),
                Change::Remove(endpoint) => {
                    while let Some(index) =
                        self.sources.iter().position(|source| source.endpoint == endpoint)
                    {
                        let source = self.sources.swap_remove(index);
                        self.retire(Port::Source(source));
                    }
                    while let Some(index) =
                        self.sinks.iter().position(|sink| sink.endpoint == endpoint)
                    {
                        let sink = self.sinks.swap_remove(index);
                        self.retire(Port::Sink(sink));
                    }
                }
            }
        }
    }

    fn retire(&mut self, port: Port) {
        // The ring has room for all ports, and the thread that empties it is never far behind.
        let _ = self.retired.push(port);
    }
}

/// Writes the messages that arrived during the previous cycle. Thread: cycle.
fn hear(source: &mut Source, cycle: &CycleScope<'_>, begin: u64, room: &mut [u8], shared: &Shared) {
    let frames = u64::from(cycle.frames());
    let mut buffer = source.port.buffer(cycle);
    while let Some((frame, length)) = records::next(&mut source.ring) {
        if frame >= begin {
            break;
        }
        if length > buffer.max_event_bytes() {
            // The next cycle has more room.
            break;
        }
        let time = (frame + frames).saturating_sub(begin).min(frames - 1) as u32;
        let message = records::take(&mut source.ring, length, room);
        if buffer.write(time, message).is_err() {
            // A long message that was postponed has delayed this one.
            shared.lost.fetch_add(
                u64::from(buffer.write(cycle.frames() - 1, message).is_err()),
                Ordering::Relaxed,
            );
        }
    }
}
