//! ALSA's sequencer: one client with one port, which is connected to all others.

mod stamps;

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::io::ErrorKind;

use alsa_rs::Direction;
use alsa_rs::poll::Descriptors;
use alsa_rs::seq::{
    Addr, Event, EventType, MidiEvent, PortCap, PortInfo, PortSubscribe, PortType, Seq,
};
use sys::poll::{Interest, Poller};

use super::Endpoint;
use super::carrier::{Cables, HardwareEvent, Inbox, Lines, Opener, PendingJoin};
use super::hotplug::{EndpointFinder, FoundEndpoint};
use super::messages::{Assembly, CHUNK_BYTES, split};
use stamps::Stamps;

/// The poller's token for arrived events.
const ARRIVED: u64 = 1;
/// Events that the kernel keeps until they are read: its maximum. A long message takes one for each
/// 28 bytes.
const POOL_EVENTS: u32 = 2000;
/// Longest message other than System Exclusive, and several that one event may become.
const DECODED_BYTES: usize = 64;

impl From<Addr> for Endpoint {
    fn from(address: Addr) -> Self {
        // Both numbers fit into a byte.
        Self { owner: address.client as u32, end: address.port as u32 }
    }
}

impl Endpoint {
    fn address(self) -> Addr {
        Addr { client: self.owner as i32, port: self.end as i32 }
    }
}

/// Opens the sequencer under this name.
pub(super) fn open(
    name: &str,
    poller: &Poller,
) -> anyhow::Result<(Opener, Box<dyn EndpointFinder>)> {
    let refused = |error| {
        anyhow::anyhow!("cannot open ALSA's sequencer: {error}; is the module snd-seq loaded?")
    };
    let handle = Handle::open(name).map_err(refused)?;
    let finder = SequencerFinder::open(handle.own).map_err(refused)?;
    for descriptor in &(&handle.seq, Some(Direction::Capture)).get().map_err(refused)? {
        poller.add_foreign(descriptor.fd, ARRIVED, Interest::Readable)?;
    }
    let opener =
        move || -> alsa_rs::Result<Box<dyn Cables>> { Ok(Box::new(Sequencer::new(handle)?)) };
    Ok((Box::new(opener), Box::new(finder)))
}

/// The open sequencer.
struct Handle {
    seq: Seq,
    own: Addr,
    /// `None`: the kernel does not timestamp events.
    stamps: Option<Stamps>,
}

impl Handle {
    fn open(name: &str) -> alsa_rs::Result<Self> {
        let seq = Seq::open(None, None, true)?;
        let name = CString::new(name).unwrap_or_default();
        seq.set_client_name(&name)?;
        // Fewer work, too.
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

    fn subscribe(&self, sender: Addr, dest: Addr) -> alsa_rs::Result<()> {
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

/// The sequencer as cables.
struct Sequencer {
    handle: Handle,
    decoder: MidiEvent,
    /// One for each port, since a long message arrives in pieces.
    assemblies: HashMap<Endpoint, Assembly>,
    encoders: HashMap<Endpoint, MidiEvent>,
}

impl Sequencer {
    fn new(handle: Handle) -> alsa_rs::Result<Self> {
        let decoder = MidiEvent::new(DECODED_BYTES as u32)?;
        decoder.enable_running_status(false);
        Ok(Self { handle, decoder, assemblies: HashMap::new(), encoders: HashMap::new() })
    }
}

impl Cables for Sequencer {
    fn join(&mut self, join: PendingJoin) -> Result<(), String> {
        let (endpoint, own) = (join.endpoint(), self.handle.own);
        let joined = match join {
            PendingJoin::Source(..) => {
                self.assemblies.insert(endpoint, Assembly::default());
                self.handle.subscribe(endpoint.address(), own)
            }
            PendingJoin::Sink(..) => MidiEvent::new(2 * CHUNK_BYTES as u32).and_then(|encoder| {
                self.encoders.insert(endpoint, encoder);
                self.handle.subscribe(own, endpoint.address())
            }),
        };
        // It has disappeared, or another program uses it exclusively.
        joined.map_err(|_| format!("{}:{} refuses to be connected", endpoint.owner, endpoint.end))
    }

    fn keep(&mut self, lines: &Lines) {
        self.assemblies.retain(|endpoint, _| lines.sources.contains_key(endpoint));
        self.encoders.retain(|endpoint, _| lines.sinks.contains_key(endpoint));
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
            let endpoint = Endpoint::from(event.get_source());
            let kernel_ns = clock.and_then(|clock| clock.timestamp_ns(&event));
            if event.get_type() == EventType::Sysex {
                let Some(assembly) = assemblies.get_mut(&endpoint) else { continue };
                let timestamp_ns = inbox.timestamp_ns(kernel_ns);
                let piece = event.get_ext().unwrap_or_default();
                assembly.add(piece, |message| inbox.message(endpoint, timestamp_ns, message));
                continue;
            }
            let mut bytes = [0; DECODED_BYTES];
            let length = decoder.decode(&mut bytes, &mut event).unwrap_or(0);
            let mut messages = split(bytes.get(..length).unwrap_or_default()).peekable();
            // An event that is not MIDI, such as a subscription, has no bytes, and its timestamp
            // does not matter.
            if messages.peek().is_some() {
                let timestamp_ns = inbox.timestamp_ns(kernel_ns);
                messages.for_each(|message| inbox.message(endpoint, timestamp_ns, message));
            }
        }
    }

    fn send(&mut self, endpoint: Endpoint, bytes: &[u8]) -> bool {
        let Some(encoder) = self.encoders.get_mut(&endpoint) else { return false };
        let (mut rest, mut is_taken) = (bytes, true);
        while !rest.is_empty() {
            let Ok((used, event)) = encoder.encode(rest) else { return false };
            if let Some(mut event) = event {
                is_taken &= self.handle.output(endpoint.address(), &mut event);
            }
            rest = rest.get(used.max(1)..).unwrap_or_default();
        }
        is_taken
    }
}

/// Returns whether the kernel had no room for what arrived, and discarded all of it.
fn is_overrun(error: alsa_rs::Error) -> bool {
    std::io::Error::from_raw_os_error(error.errno()).kind() == ErrorKind::StorageFull
}

/// Returns what an announcement of the sequencer reports about its ports.
fn news(event: &Event<'_>) -> Option<HardwareEvent> {
    let address: Addr = event.get_data()?;
    match event.get_type() {
        EventType::PortStart => Some(HardwareEvent::Appeared),
        EventType::PortExit => Some(HardwareEvent::Disappeared(address.into())),
        EventType::ClientExit => {
            Some(HardwareEvent::OwnerDisappeared(Endpoint::from(address).owner))
        }
        _ => None,
    }
}

/// A second handle of the sequencer for queries.
struct SequencerFinder {
    seq: Seq,
    carrier: Addr,
}

impl SequencerFinder {
    fn open(carrier: Addr) -> alsa_rs::Result<Self> {
        let seq = Seq::open(None, None, true)?;
        seq.set_client_name(c"consort (looks)")?;
        Ok(Self { seq, carrier })
    }

    /// Describes a port; `None` if it is not for the graph.
    fn describe(&self, address: Addr) -> Option<FoundEndpoint> {
        let system = Addr::system_announce().client;
        if address.client == system || address.client == self.carrier.client {
            return None;
        }
        let port = self.seq.get_any_port_info(address).ok()?;
        let client = self.seq.get_any_client_info(address.client).ok()?;
        let has = |wanted: PortCap| port.get_capability().contains(wanted);
        let (is_source, is_sink) =
            (has(PortCap::READ | PortCap::SUBS_READ), has(PortCap::WRITE | PortCap::SUBS_WRITE));
        if has(PortCap::NO_EXPORT) || !(is_source || is_sink) {
            return None;
        }
        Some(FoundEndpoint {
            endpoint: address.into(),
            owner: client.get_name().ok()?.to_owned(),
            port: port.get_name().ok()?.to_owned(),
            number: format!("{}:{}", address.client, address.port),
            is_source,
            is_sink,
            device: None,
        })
    }
}

impl EndpointFinder for SequencerFinder {
    fn find_new(&mut self, known: &HashSet<Endpoint>) -> Vec<FoundEndpoint> {
        alsa_rs::seq::ClientIter::new(&self.seq)
            .flat_map(|client| {
                alsa_rs::seq::PortIter::new(&self.seq, client.get_client()).map(|port| port.addr())
            })
            .filter(|address| !known.contains(&Endpoint::from(*address)))
            .filter_map(|address| self.describe(address))
            .collect()
    }
}
