//! The ports inside a cycle.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::midi::{MidiInputPort, MidiOutputPort};
use client::{Control, CycleScope};
use rtrb::{Consumer, Producer};

use super::{MOST_PORTS, Place, ROOM_BYTES, Shared, records};

/// From ALSA to the graph.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) place: Place,
    pub(super) port: MidiOutputPort,
    /// Messages by the frame at which they arrived.
    pub(super) ring: Consumer<u8>,
}

/// From the graph to ALSA.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) place: Place,
    pub(super) port: MidiInputPort,
    /// Messages by the date at which they are to leave.
    pub(super) ring: Producer<u8>,
}

/// A port that is there.
#[derive(Debug)]
pub(super) enum Port {
    Source(Source),
    Sink(Sink),
}

/// What changes while cycles go on.
#[derive(Debug)]
pub(super) enum Change {
    /// A port takes part.
    Add(Port),
    /// All ports of this place are given back.
    Remove(Place),
}

/// The process callback's part of it all. Nothing in it grows: the vectors have room for all ports.
pub(super) struct Ports {
    pub(super) changes: Consumer<Change>,
    pub(super) retired: Producer<Port>,
    pub(super) sources: Vec<Source>,
    pub(super) sinks: Vec<Sink>,
    pub(super) room: Box<[u8]>,
    pub(super) shared: Arc<Shared>,
}

impl Ports {
    pub(super) fn new(changes: Consumer<Change>, retired: Producer<Port>, shared: Arc<Shared>) -> Self {
        Self {
            changes,
            retired,
            sources: Vec::with_capacity(MOST_PORTS),
            sinks: Vec::with_capacity(MOST_PORTS),
            room: vec![0; ROOM_BYTES].into_boxed_slice(),
            shared,
        }
    }

    /// A cycle. Thread: cycle.
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
                // A quantum later than it was said: while it is said, its cycle's own frames already pass.
                let frame = begin + u64::from(event.time()) + u64::from(cycle.frames());
                let message = event.copy_to(&mut self.room).unwrap_or_default();
                has_said = true;
                if message.is_empty() || !records::push(&mut sink.ring, info.date_of(frame), message) {
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
                Change::Add(Port::Sink(sink)) if self.sinks.len() < MOST_PORTS => self.sinks.push(sink),
                Change::Add(port) => self.retire(port),
                Change::Remove(place) => {
                    while let Some(index) = self.sources.iter().position(|source| source.place == place) {
                        let source = self.sources.swap_remove(index);
                        self.retire(Port::Source(source));
                    }
                    while let Some(index) = self.sinks.iter().position(|sink| sink.place == place) {
                        let sink = self.sinks.swap_remove(index);
                        self.retire(Port::Sink(sink));
                    }
                }
            }
        }
    }

    fn retire(&mut self, port: Port) {
        // There is room for all ports, and whoever takes them out is never far behind.
        let _ = self.retired.push(port);
    }
}

/// Says what has arrived during the cycle before. Thread: cycle.
fn hear(source: &mut Source, cycle: &CycleScope<'_>, begin: u64, room: &mut [u8], shared: &Shared) {
    let frames = u64::from(cycle.frames());
    let mut buffer = source.port.buffer(cycle);
    while let Some((frame, length)) = records::next(&mut source.ring) {
        if frame >= begin {
            break;
        }
        if length > buffer.max_event_bytes() {
            // There is more room in the next cycle.
            break;
        }
        let time = (frame + frames).saturating_sub(begin).min(frames - 1) as u32;
        let message = records::take(&mut source.ring, length, room);
        if buffer.write(time, message).is_err() {
            // Behind a long message that was put off, time has stood still.
            shared
                .lost
                .fetch_add(u64::from(buffer.write(cycle.frames() - 1, message).is_err()), Ordering::Relaxed);
        }
    }
}
