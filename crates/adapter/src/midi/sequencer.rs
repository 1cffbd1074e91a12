//! ALSA's sequencer: one client with one port, which is connected with all others.

mod stamps;

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io::ErrorKind;

use alsa::Direction;
use alsa::poll::Descriptors;
use alsa::seq::{Addr, Event, EventType, MidiEvent, PortCap, PortInfo, PortSubscribe, PortType, Seq};
use sys::poll::{Interest, Poller};

use super::Place;
use super::carrier::{Cables, Inbox, Lines, News, Opener, Wish};
use super::manager::{Finder, Found};
use super::messages::{Assembly, CHUNK_BYTES, split};
use stamps::Stamps;

/// What the poller says when something has arrived.
const ARRIVED: u64 = 1;
/// Events that the kernel keeps until they are read: as many as it can. A long message is one in each 28 bytes.
const POOL_EVENTS: u32 = 2000;
/// Longest message that is no System Exclusive, and several that one event may become.
const DECODED_BYTES: usize = 64;

impl From<Addr> for Place {
    fn from(address: Addr) -> Self {
        // Both are bytes.
        Self { owner: address.client as u32, end: address.port as u32 }
    }
}

impl Place {
    fn address(self) -> Addr {
        Addr { client: self.owner as i32, port: self.end as i32 }
    }
}

/// Opens the sequencer under this name.
pub(super) fn open(name: &str, poller: &Poller) -> anyhow::Result<(Opener, Box<dyn Finder>)> {
    let refused =
        |error| anyhow::anyhow!("cannot open ALSA's sequencer: {error}; is the module snd-seq loaded?");
    let handle = Handle::open(name).map_err(refused)?;
    let asker = Asker::open(handle.own).map_err(refused)?;
    for descriptor in &(&handle.seq, Some(Direction::Capture)).get().map_err(refused)? {
        poller.add_foreign(descriptor.fd, ARRIVED, Interest::Readable)?;
    }
    let opener = move || -> alsa::Result<Box<dyn Cables>> { Ok(Box::new(Sequencer::new(handle)?)) };
    Ok((Box::new(opener), Box::new(asker)))
}

/// The sequencer, opened.
struct Handle {
    seq: Seq,
    own: Addr,
    /// `None`: the kernel dates nothing.
    stamps: Option<Stamps>,
}

impl Handle {
    fn open(name: &str) -> alsa::Result<Self> {
        let seq = Seq::open(None, None, true)?;
        let name = CString::new(name).unwrap_or_default();
        seq.set_client_name(&name)?;
        // It works with fewer, too.
        let _ = seq.set_client_pool_input(POOL_EVENTS);
        let stamps = Stamps::start(&seq, &name);
        let mut port = PortInfo::empty()?;
        port.set_name(&name);
        port.set_capability(PortCap::READ | PortCap::WRITE | PortCap::NO_EXPORT);
        port.set_type(PortType::MIDI_GENERIC | PortType::APPLICATION);
        port.set_midi_channels(16);
        if let Some(stamps) = &stamps {
            stamps.be_put_on_what_arrives_at(&port);
        }
        seq.create_port(&port)?;
        let own = Addr { client: seq.client_id()?, port: port.get_port() };
        let handle = Self { seq, own, stamps };
        handle.subscribe(Addr::system_announce(), own)?;
        Ok(handle)
    }

    fn subscribe(&self, sender: Addr, dest: Addr) -> alsa::Result<()> {
        let subscription = PortSubscribe::empty()?;
        subscription.set_sender(sender);
        subscription.set_dest(dest);
        self.seq.subscribe_port(&subscription)
    }

    fn output(&self, address: Addr, event: &mut Event<'_>) -> bool {
        event.set_source(self.own.port);
        event.set_dest(address);
        event.set_direct();
        self.seq.event_output_direct(event).is_ok()
    }
}

/// The sequencer's side of the carrier.
struct Sequencer {
    handle: Handle,
    decoder: MidiEvent,
    /// One for each port, since a long message comes in pieces.
    assemblies: HashMap<Place, Assembly>,
    encoders: HashMap<Place, MidiEvent>,
}

impl Sequencer {
    fn new(handle: Handle) -> alsa::Result<Self> {
        let decoder = MidiEvent::new(DECODED_BYTES as u32)?;
        decoder.enable_running_status(false);
        Ok(Self { handle, decoder, assemblies: HashMap::new(), encoders: HashMap::new() })
    }
}

impl Cables for Sequencer {
    fn join(&mut self, wish: Wish) -> Result<(), String> {
        let (place, own) = (wish.place(), self.handle.own);
        let joined = match wish {
            Wish::Hear(..) => {
                self.assemblies.insert(place, Assembly::default());
                self.handle.subscribe(place.address(), own)
            }
            Wish::Say(..) => MidiEvent::new(2 * CHUNK_BYTES as u32).and_then(|encoder| {
                self.encoders.insert(place, encoder);
                self.handle.subscribe(own, place.address())
            }),
        };
        // It has gone, or another program has it for itself.
        joined.map_err(|_| format!("{}:{} refuses to be connected", place.owner, place.end))
    }

    fn keep(&mut self, lines: &Lines) {
        self.assemblies.retain(|place, _| lines.sources.contains_key(place));
        self.encoders.retain(|place, _| lines.sinks.contains_key(place));
    }

    fn receive(&mut self, ready: &[sys::poll::Event], inbox: &mut Inbox<'_>) {
        if ready.iter().all(|event| event.token != ARRIVED) {
            return;
        }
        let Self { handle, decoder, assemblies, .. } = self;
        let clock = handle.stamps.as_ref().and_then(|stamps| stamps.clock(&handle.seq));
        let mut input = handle.seq.input();
        loop {
            let mut event = match input.event_input() {
                Ok(event) => event,
                Err(error) if is_overrun(error) => {
                    inbox.lost();
                    continue;
                }
                Err(_) => return,
            };
            if let Some(news) = news(&event) {
                inbox.tell(news);
                continue;
            }
            let place = Place::from(event.get_source());
            let kernels_ns = clock.and_then(|clock| clock.date_ns(&event));
            if event.get_type() == EventType::Sysex {
                let Some(assembly) = assemblies.get_mut(&place) else { continue };
                let date_ns = inbox.date_ns(kernels_ns);
                let piece = event.get_ext().unwrap_or_default();
                assembly.add(piece, |message| inbox.message(place, date_ns, message));
                continue;
            }
            let mut bytes = [0; DECODED_BYTES];
            let length = decoder.decode(&mut bytes, &mut event).unwrap_or(0);
            let mut messages = split(bytes.get(..length).unwrap_or_default()).peekable();
            // What is no MIDI, such as a subscription, has no bytes, and nobody cares when it is read.
            if messages.peek().is_some() {
                let date_ns = inbox.date_ns(kernels_ns);
                messages.for_each(|message| inbox.message(place, date_ns, message));
            }
        }
    }

    fn send(&mut self, place: Place, bytes: &[u8]) -> bool {
        let Some(encoder) = self.encoders.get_mut(&place) else { return false };
        let (mut rest, mut is_taken) = (bytes, true);
        while !rest.is_empty() {
            let Ok((used, event)) = encoder.encode(rest) else { return false };
            if let Some(mut event) = event {
                is_taken &= self.handle.output(place.address(), &mut event);
            }
            rest = rest.get(used.max(1)..).unwrap_or_default();
        }
        is_taken
    }
}

/// Whether the kernel had no room for what arrived, and has thrown all of it away.
fn is_overrun(error: alsa::Error) -> bool {
    std::io::Error::from_raw_os_error(error.errno()).kind() == ErrorKind::StorageFull
}

/// What an event of the sequencer's own tells of its ports.
fn news(event: &Event<'_>) -> Option<News> {
    let address: Addr = event.get_data()?;
    match event.get_type() {
        EventType::PortStart => Some(News::Came),
        EventType::PortExit => Some(News::Went(address.into())),
        EventType::ClientExit => Some(News::Left(Place::from(address).owner)),
        _ => None,
    }
}

/// Another handle of the sequencer's, which only asks.
struct Asker {
    seq: Seq,
    carrier: Addr,
}

impl Asker {
    fn open(carrier: Addr) -> alsa::Result<Self> {
        let seq = Seq::open(None, None, true)?;
        seq.set_client_name(c"consort (looks)")?;
        Ok(Self { seq, carrier })
    }

    /// What a port is; `None`: none of the graph's business.
    fn describe(&self, address: Addr) -> Option<Found> {
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
        Some(Found {
            place: address.into(),
            owner: client.get_name().ok()?.to_owned(),
            port: port.get_name().ok()?.to_owned(),
            number: format!("{}:{}", address.client, address.port),
            says,
            hears,
            device: None,
        })
    }
}

impl Finder for Asker {
    fn look(&mut self, known: &HashSet<Place>) -> Vec<Found> {
        alsa::seq::ClientIter::new(&self.seq)
            .flat_map(|client| {
                alsa::seq::PortIter::new(&self.seq, client.get_client()).map(|port| port.addr())
            })
            .filter(|address| !known.contains(&Place::from(*address)))
            .filter_map(|address| self.describe(address))
            .collect()
    }
}
