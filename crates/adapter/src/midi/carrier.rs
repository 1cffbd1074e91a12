//! The thread between ALSA's sequencer and the rings: dates what arrives, and lets go what is due.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use alsa::Direction;
use alsa::poll::Descriptors;
use alsa::seq::{Addr, Event, EventType, MidiEvent, PortCap, PortType, Seq};
use client::Session;
use rtrb::{Consumer, Producer};
use sys::poll::{Interest, Poller};

use super::messages::{Assembly, CHUNK_BYTES, Pace, split};
use super::{Shared, records};

/// What the sequencer tells of its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// A port came.
    Came(Addr),
    /// A port went.
    Went(Addr),
    /// A client went, with all of its ports.
    Left(i32),
}

/// The thread's ends of the ports' rings, by address.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) sources: HashMap<Addr, SourceLine>,
    pub(super) sinks: HashMap<Addr, SinkLine>,
    /// Ports that the carrier is still to be connected with.
    pub(super) wishes: Vec<Wish>,
}

/// What the carrier is to be connected with: only it may connect itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// What this port says is to be heard.
    Hear(Addr),
    /// What the graph says, this port is to hear.
    Say(Addr),
}

#[derive(Debug)]
pub(super) struct SourceLine {
    pub(super) ring: Producer<u8>,
    pub(super) assembly: Assembly,
}

#[derive(Debug)]
pub(super) struct SinkLine {
    pub(super) ring: Consumer<u8>,
    pub(super) pace: Pace,
}

/// Bytes on their way out: when, in which order among equals, where to, when they were due (if that is to be measured).
type Outgoing = Reverse<(u64, u64, Addr, Option<u64>, Vec<u8>)>;

/// The sequencer, opened.
pub(super) struct Carrier {
    seq: Seq,
    own_port: i32,
    outgoing: BinaryHeap<Outgoing>,
    count: u64,
}

/// Longest message that is no System Exclusive, and several that one event may become.
const DECODED_BYTES: usize = 64;

impl Carrier {
    /// Opens the sequencer under this name, with one port for all.
    pub(super) fn open(name: &str) -> alsa::Result<Self> {
        let seq = Seq::open(None, None, true)?;
        let name = CString::new(name).unwrap_or_default();
        seq.set_client_name(&name)?;
        let both = PortCap::READ | PortCap::WRITE | PortCap::NO_EXPORT;
        let own_port = seq.create_simple_port(&name, both, PortType::MIDI_GENERIC | PortType::APPLICATION)?;
        let carrier = Self { seq, own_port, outgoing: BinaryHeap::new(), count: 0 };
        carrier.subscribe(Addr::system_announce(), carrier.own()?)?;
        Ok(carrier)
    }

    /// Its own address.
    pub(super) fn own(&self) -> alsa::Result<Addr> {
        Ok(Addr { client: self.seq.client_id()?, port: self.own_port })
    }

    fn subscribe(&self, sender: Addr, dest: Addr) -> alsa::Result<()> {
        let subscription = alsa::seq::PortSubscribe::empty()?;
        subscription.set_sender(sender);
        subscription.set_dest(dest);
        self.seq.subscribe_port(&subscription)
    }

    /// Carries until it is told to stop.
    pub(super) fn run(
        mut self,
        lines: &Mutex<Lines>,
        shared: &Shared,
        session: &Session,
        news: &Sender<News>,
    ) {
        if let Some(priority) = session.engine().and_then(rt::shm::EngineSegment::client_priority) {
            // Without the right to it, events are as late as the machine is busy, which is reported.
            let _ = sys::thread::set_fifo(0, priority);
        }
        let Ok(poller) = self.poller(shared) else { return };
        let Ok(decoder) = MidiEvent::new(DECODED_BYTES as u32) else { return };
        decoder.enable_running_status(false);
        // One for each port, since a long message comes in pieces.
        let (mut events, mut encoders) = (Vec::new(), HashMap::new());
        while !shared.stop.load(Ordering::Relaxed) {
            let due_ns = self.outgoing.peek().map(|Reverse((date_ns, ..))| *date_ns);
            if poller.wait(&mut events, due_ns).is_err() {
                return;
            }
            shared.waker.reset();
            let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
            for wish in std::mem::take(&mut lines.wishes) {
                self.connect(wish, shared);
            }
            self.receive(&mut lines, &decoder, shared, session, news);
            self.collect(&mut lines);
            encoders.retain(|address, _| lines.sinks.contains_key(address));
            drop(lines);
            self.send(&mut encoders, shared);
        }
    }

    fn connect(&self, wish: Wish, shared: &Shared) {
        let connected = self.own().and_then(|own| match wish {
            Wish::Hear(port) => self.subscribe(port, own),
            Wish::Say(port) => self.subscribe(own, port),
        });
        if connected.is_err() {
            // It has gone, or another program has it for itself.
            shared.unconnected.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poller(&self, shared: &Shared) -> std::io::Result<Poller> {
        let poller = Poller::new()?;
        poller.add(&shared.waker, 0, Interest::Readable)?;
        let descriptors = (&self.seq, Some(Direction::Capture)).get().map_err(std::io::Error::other)?;
        for descriptor in &descriptors {
            poller.add_foreign(descriptor.fd, 1)?;
        }
        Ok(poller)
    }

    /// Takes in what the sequencer has.
    fn receive(
        &self,
        lines: &mut Lines,
        decoder: &MidiEvent,
        shared: &Shared,
        session: &Session,
        news: &Sender<News>,
    ) {
        let mut input = self.seq.input();
        while let Ok(mut event) = input.event_input() {
            let change = event.get_data::<Addr>().and_then(|address| match event.get_type() {
                EventType::PortStart => Some(News::Came(address)),
                EventType::PortExit => Some(News::Went(address)),
                EventType::ClientExit => Some(News::Left(address.client)),
                _ => None,
            });
            if let Some(change) = change {
                // Nobody listens any more when all of this ends.
                let _ = news.send(change);
                continue;
            }
            let Some(line) = lines.sources.get_mut(&event.get_source()) else { continue };
            let frame = session.info().map_or(0, |info| info.frame_at(sys::clock::now_ns()));
            let mut put = |message: &[u8]| {
                if !records::push(&mut line.ring, frame, message) {
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                }
            };
            if event.get_type() == EventType::Sysex {
                line.assembly.add(event.get_ext().unwrap_or_default(), put);
            } else {
                let mut bytes = [0; DECODED_BYTES];
                // What is no MIDI, such as a subscription, has no bytes.
                let length = decoder.decode(&mut bytes, &mut event).unwrap_or(0);
                split(bytes.get(..length).unwrap_or_default()).for_each(&mut put);
            }
        }
    }

    /// Takes what the graph has said, and dates it.
    fn collect(&mut self, lines: &mut Lines) {
        let mut room = [0; super::ROOM_BYTES];
        for (address, line) in &mut lines.sinks {
            while let Some((due_ns, length)) = records::next(&mut line.ring) {
                for chunk in records::take(&mut line.ring, length, &mut room).chunks(CHUNK_BYTES) {
                    let date_ns = line.pace.date_of(due_ns, chunk.len());
                    // What waits for the cable is not late.
                    let measured = Some(due_ns).filter(|due_ns| *due_ns == date_ns);
                    self.count += 1;
                    self.outgoing.push(Reverse((date_ns, self.count, *address, measured, chunk.to_vec())));
                }
            }
        }
    }

    /// Lets go what is due.
    fn send(&mut self, encoders: &mut HashMap<Addr, MidiEvent>, shared: &Shared) {
        while let Some(Reverse((date_ns, ..))) = self.outgoing.peek() {
            let now_ns = sys::clock::now_ns();
            if *date_ns > now_ns {
                return;
            }
            let Some(Reverse((_, _, address, due_ns, bytes))) = self.outgoing.pop() else { return };
            if let Some(due_ns) = due_ns {
                shared.worst_late_ns.fetch_max(now_ns.saturating_sub(due_ns), Ordering::Relaxed);
            }
            let encoder = match encoders.entry(address) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => match MidiEvent::new(2 * CHUNK_BYTES as u32) {
                    Ok(encoder) => entry.insert(encoder),
                    Err(_) => continue,
                },
            };
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let Ok((used, event)) = encoder.encode(rest) else { break };
                if let Some(mut event) = event {
                    self.output(shared, address, &mut event);
                }
                rest = rest.get(used.max(1)..).unwrap_or_default();
            }
        }
    }

    fn output(&self, shared: &Shared, address: Addr, event: &mut Event<'_>) {
        event.set_source(self.own_port);
        event.set_dest(address);
        event.set_direct();
        if self.seq.event_output_direct(event).is_err() {
            shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Another handle of the sequencer's, which only asks.
pub(super) struct Asker {
    seq: Seq,
    carrier: Addr,
}

/// A port of the sequencer's that the graph can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) address: Addr,
    pub(super) client: String,
    pub(super) port: String,
    pub(super) says: bool,
    pub(super) hears: bool,
}

impl Asker {
    pub(super) fn open(carrier: Addr) -> alsa::Result<Self> {
        let seq = Seq::open(None, None, true)?;
        seq.set_client_name(c"consort (looks)")?;
        Ok(Self { seq, carrier })
    }

    /// All ports that are there now.
    pub(super) fn all(&self) -> Vec<Addr> {
        alsa::seq::ClientIter::new(&self.seq)
            .flat_map(|client| {
                alsa::seq::PortIter::new(&self.seq, client.get_client()).map(|port| port.addr())
            })
            .collect()
    }

    /// What a port is; `None`: none of the graph's business.
    pub(super) fn look(&self, address: Addr) -> Option<Found> {
        let system = Addr::system_announce().client;
        if address.client == system || address.client == self.carrier.client {
            return None;
        }
        let port = self.seq.get_any_port_info(address).ok()?;
        let client = self.seq.get_any_client_info(address.client).ok()?;
        let has = |wanted: PortCap| port.get_capability().contains(wanted);
        let (says, hears) =
            (has(PortCap::READ | PortCap::SUBS_READ), has(PortCap::WRITE | PortCap::SUBS_WRITE));
        if has(PortCap::NO_EXPORT) || !(says || hears) {
            return None;
        }
        let (client, port) = (client.get_name().ok()?.to_owned(), port.get_name().ok()?.to_owned());
        Some(Found { address, client, port, says, hears })
    }
}
