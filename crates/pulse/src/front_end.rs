//! Who is connected, and what each packet asks: packets in, packets out. No I/O, but for the rings
//! of streams. Thread: the only one that serves programs ([`service`](crate::service)).

mod absence;
mod admission;
mod agenda;
mod cards;
mod client;
mod connections;
mod desktop;
mod device_manager;
mod devices;
mod dispatch;
mod extensions;
mod format;
mod inputs;
mod interactions;
mod introspection;
mod kept_sound;
mod known_devices;
mod modules;
mod monitored;
mod moves;
mod new_input;
mod objects;
mod offers;
mod owed_events;
mod playback_requests;
mod properties;
mod record_requests;
mod remembering;
mod rights;
mod routing;
mod sample_requests;
mod samples;
#[cfg(any(test, fuzzing))]
pub(crate) mod silence;
mod sink_inputs;
mod sinks;
mod source_outputs;
mod sources;
mod states;
#[cfg(test)]
mod tests;
mod treatment;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::PathBuf;

pub(crate) use self::admission::{Admission, COOKIE_BYTES, Cookie, Way};
use self::client::Client;
pub(crate) use self::format::{map as codec_map, program as own_program, spec as codec_spec};
pub(crate) use self::introspection::WHY_DEFAULT;
pub(crate) use self::rights::Confined;
use absence::Absence;
use desktop::Desktop;
use inputs::SinkInputs;
use modules::Modules;
use pulseaudio::protocol::{
    Command, PulseError, SubscriptionEvent, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType,
};
use sample_requests::Upload;
use samples::Samples;
use sink_inputs::Owner;
use sinks::Sinks;
use source_outputs::SourceOutput;
use sources::SourceVolumes;
use states::States;

use crate::output::Devices;
use crate::wire;

/// Most connections at once.
pub(crate) const MAX_CLIENTS: usize = 512;
/// Most connections of one program, or of one address of the network.
pub(crate) const MAX_CLIENTS_OF_ONE: usize = 128;
/// Most connections over the network: the others are left to this machine.
const MAX_NETWORK_CLIENTS: usize = 256;
/// Bytes of answers after which a program that has sent many requests at once is disconnected, as
/// it would be if they waited for it.
const MAX_ANSWERED_BYTES: usize = 4 << 20;
/// Most streams of one program.
const MAX_STREAMS_OF_ONE: usize = 64;
/// The longest time for which a program is not read from while it answers a request.
const GATHERED_NS: u64 = 3_000_000;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its program: all of the same process, as the kernel says, or of the same address.
    pub account: u32,
    /// How it has come.
    pub way: Way,
}

/// A stream of a program, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// A sink input.
    Plays(u32),
    /// A source output.
    Records(u32),
}

/// What is to be done with a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// These bytes are for a program.
    Send {
        /// The program.
        client: u32,
        /// One packet.
        bytes: Vec<u8>,
    },
    /// A program is to be disconnected once what is for it has been sent.
    Close {
        /// The program.
        client: u32,
    },
    /// A program was asked for samples, and is to be read from once it has had the time to send
    /// them: it would be interrupted by each of its own packets, and this process woken.
    Gather {
        /// The program.
        client: u32,
        /// Until then, ns.
        until_ns: u64,
    },
}

/// What programs see of this machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    /// Name of the user that runs the server.
    pub user: CString,
    /// Name of the machine.
    pub host: CString,
    /// Where PulseAudio's programs have the files that only run-time needs.
    pub runtime_directory: PathBuf,
    /// A number that is another one for each server.
    pub cookie: u32,
    /// The port at which programs of other machines come in, besides those of modules.
    pub tcp_port: Option<u16>,
}

/// The server, as programs that speak the protocol see it.
#[derive(Debug)]
pub(crate) struct FrontEnd<D: Devices> {
    devices: D,
    sinks: Sinks,
    modules: Modules,
    desktop: Desktop,
    machine: Machine,
    admission: Admission,
    clients: BTreeMap<u32, Client>,
    inputs: SinkInputs<D::Output>,
    /// Indices of those that have not begun yet, as far as they are still there.
    beginning: Vec<u32>,
    /// Indices of those whose memory the server was sent, and has not taken yet.
    awaited: Vec<u32>,
    uploads: Vec<Upload>,
    samples: Samples,
    outputs: BTreeMap<u32, SourceOutput<D::Input>>,
    source_volumes: SourceVolumes,
    absence: Absence,
    states: States,
    next_client: u32,
    next_input: u32,
    next_output: u32,
    effects: Vec<Effect>,
}

/// How a request is answered.
enum Answer {
    /// It was done.
    Done,
    /// With this packet.
    Packet(Vec<u8>),
    /// By a packet that comes later.
    Later,
}

type Answered = Result<Answer, PulseError>;

impl<D: Devices> FrontEnd<D> {
    /// Begins without programs, and lets in those of this user only.
    pub fn new(devices: D, machine: Machine) -> Self {
        let mut front_end = Self {
            devices,
            sinks: Sinks::default(),
            modules: Modules::default(),
            desktop: Desktop::default(),
            machine,
            admission: Admission::default(),
            clients: BTreeMap::new(),
            inputs: SinkInputs::default(),
            beginning: Vec::new(),
            awaited: Vec::new(),
            uploads: Vec::new(),
            samples: Samples::default(),
            outputs: BTreeMap::new(),
            source_volumes: SourceVolumes::default(),
            absence: Absence::default(),
            states: States::default(),
            next_client: 0,
            next_input: 0,
            next_output: 0,
            effects: Vec::new(),
        };
        front_end.refresh(0);
        front_end.refresh_client_roles();
        front_end.announce_states(0);
        front_end
    }

    /// Lets in whom `admission` says.
    pub fn admitting(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    /// Returns the server's devices.
    pub fn devices_mut(&mut self) -> &mut D {
        &mut self.devices
    }

    /// Returns what is to be done, in this order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.interact();
        self.clients.values_mut().for_each(|client| client.answered_bytes = 0);
        std::mem::take(&mut self.effects)
    }

    /// Returns when [`begin_update`](Self::begin_update) is to be called, ns; `None`: after the
    /// next packet.
    pub fn deadline(&mut self, now_ns: u64) -> Option<u64> {
        let inputs = self.inputs.due_ns(now_ns);
        let outputs = self.outputs.values_mut().filter(|output| output.adrift.is_none());
        let outputs = outputs.filter_map(|output| output.recording.deadline(now_ns)).min();
        let states = self.states.is_stale.then_some(now_ns);
        let others = [self.absence.due_ns(), self.next_sleep_ns(), self.modules.due_ns(), states];
        [inputs, outputs].into_iter().chain(others).flatten().min()
    }

    /// Begins to do what is due. Returns the streams to [look](Self::look) at, each behind the
    /// account of its program; those that are left out are returned again.
    pub fn begin_update(&mut self, now_ns: u64) -> Vec<(u32, Stream)> {
        self.note_ended_streams(now_ns);
        self.end_absence_if_due(now_ns);
        self.load_missing_modules_if_due(now_ns);
        let inputs = self.inputs.due(now_ns).into_iter().filter_map(|index| {
            self.inputs.get(index).map(|input| (input.account, Stream::Plays(index)))
        });
        let outputs = self.outputs.iter();
        let outputs = outputs.map(|(index, output)| (output.account, Stream::Records(*index)));
        inputs.chain(outputs).collect()
    }

    /// Does what is due for a stream.
    pub fn look(&mut self, stream: Stream, now_ns: u64) {
        match stream {
            Stream::Plays(index) => {
                self.take_heard_of(index, now_ns);
                let Some(input) = self.inputs.get_mut(index) else { return };
                let ran = input.playback.runs();
                input.playback.look(now_ns);
                if input.feed.is_some() {
                    self.feed(index, now_ns);
                } else if self.send_notices(index) {
                    self.gather(index, now_ns);
                }
                let runs = self.inputs.get(index).is_some_and(|input| input.playback.runs());
                self.states.is_stale |= runs != ran;
            }
            Stream::Records(index) => self.update_output(index, now_ns),
        }
    }

    /// Notifies programs of what has changed by the looks.
    pub fn end_update(&mut self, now_ns: u64) {
        self.announce_stale_states(now_ns);
    }

    /// Does what is due for all streams.
    #[cfg(any(test, fuzzing))]
    pub fn update(&mut self, now_ns: u64) {
        for (_, stream) in self.begin_update(now_ns) {
            self.look(stream, now_ns);
        }
        self.end_update(now_ns);
    }

    /// Has what the program of a stream sends be read together, if nothing of it is needed soon.
    fn gather(&mut self, index: u32, now_ns: u64) {
        let Some(Owner { client, .. }) = self.inputs.get(index).and_then(|input| input.owner)
        else {
            return;
        };
        let unread_ns =
            self.inputs.of_program(client).map(|input| input.playback.unread_ns(now_ns));
        let gathered_ns = unread_ns.min().unwrap_or(0).min(GATHERED_NS);
        if gathered_ns > 0 {
            self.effects.push(Effect::Gather { client, until_ns: now_ns + gathered_ns });
        }
    }

    fn send(&mut self, client: u32, bytes: Vec<u8>) {
        self.effects.push(Effect::Send { client, bytes });
    }

    fn send_event(&mut self, client: u32, command: &Command) {
        if let Some(version) = self.clients.get(&client).map(Client::version) {
            self.send(client, wire::event(command, version));
        }
    }

    /// Notifies the programs that have subscribed to it.
    fn notify(&mut self, facility: Facility, event_type: EventType, index: u32) {
        let event = SubscriptionEvent { event_facility: facility, event_type, index: Some(index) };
        let subscribed = self.clients.iter().filter(|(_, client)| client.has_subscribed(facility));
        let subscribed: Vec<u32> = subscribed.map(|(number, _)| *number).collect();
        for client in subscribed {
            // MUTATION: notify.those_who_are_behind
            let behind = self.clients.get_mut(&client).filter(|known| known.is_behind);
            match behind {
                Some(known) => known.owed_events.add(facility, event_type, index),
                None => self.send_event(client, &Command::SubscribeEvent(event)),
            }
        }
    }
}
