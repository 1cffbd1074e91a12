//! `consort device serve`: the process behind a device.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::process::ExitCode;

use alsa::CHANNELS_OF_HARDWARE;
use anyhow::ensure;
use clap::Args;
use cli::in_range;
use client::{Observer, OpenOptions, Property, PropertyValue, Requester, Session, client_uuid};
use device::CardReservation;
use proto::defaults::RESERVE_PRIORITY;
use proto::driver::{AlsaOptions, AlsaSide};
use proto::limits::{QUANTUM_FRAMES, SAMPLE_RATE_HZ};
use sys::poll::{Interest, Poller};
use sys::signals::TerminationSignals;

use super::every_card::EveryCard;
use super::links::{self, LinkArguments};
use super::rtp::{self, RtpArguments};
use super::tunnels::{self, TunnelArguments};
use super::{x11_bell, zeroconf};
use crate::links::Links;
use crate::{Card, CardOptions, DEVICE_KEY, LINK_KEY, Midi, MidiHardware, MidiState, STATE_KEY};

/// What a device's process prints once it has joined the graph, before the device's description.
pub(super) const READY: &str = "joined: ";
/// What comes before the reason when a link ends by itself.
const ENDED: &str = "ended: ";
/// Names of devices that are not cards: ALSA's sequencer, and raw MIDI devices.
const SEQUENCER: &str = "seq";
const RAW_MIDI: &str = "raw";
/// Stands for every card that can be heard, if these are for streams.
const EVERY_CARD: &str = "all";
/// Name of a device without hardware.
const NULL: &str = "null";

/// Interval at which the device's state is polled.
const POLL_NS: u64 = 200_000_000;
/// Time limit for the server's start.
const START_TIMEOUT_NS: u64 = 30_000_000_000;
const RETRY_NS: u64 = 50_000_000;
/// Time limit for this process's end, which a plug-in may delay.
const END_WITHIN_NS: u64 = 2_000_000_000;

/// Tokens of what is waited for.
const SIGNALS: u64 = 0;
const STATE: u64 = 1;
const SERVER: u64 = 2;

const DEFAULT_QUANTUM: u32 = 256;
const DEFAULT_PERIODS: u32 = 3;

/// A device, and how to run it.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// The card, as ALSA calls it, such as hw:USB; or "seq", "raw", "null", "loopback", "remap",
    /// "combined", "pipe-sink" or "pipe-source"
    pub device: String,
    /// Make a card a device for streams, with a clock of its own: programs play and record on it by
    /// its name. Programs of PulseAudio see a sink if it plays, and a source if it captures.
    /// Without this, its channels are ports of the graph, resampled
    #[arg(long)]
    pub streams: bool,
    /// Its name [default: the card's; of "seq" and "raw": midi; of others: as DEVICE]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Capture ports; 0: none [default: as many as the card has]
    #[arg(long, value_name = "N", value_parser = in_range(0..=CHANNELS_OF_HARDWARE))]
    pub capture: Option<u32>,
    /// Playback ports; 0: none [default: as many as the card has]
    #[arg(long, value_name = "N", value_parser = in_range(0..=CHANNELS_OF_HARDWARE))]
    pub playback: Option<u32>,
    /// The card's rate in Hz [default: the graph's if the card has it]
    #[arg(long, value_name = "HZ", value_parser = in_range(SAMPLE_RATE_HZ))]
    pub rate: Option<u32>,
    /// Frames that the card transfers at once
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_QUANTUM, value_parser = in_range(QUANTUM_FRAMES))]
    pub quantum: u32,
    /// Quanta buffered in the card
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PERIODS, value_parser = in_range(2..=64))]
    pub periods: u32,
    /// Frames by which the card or the graph may be late; part of the latency [default: the card's
    /// quantum]
    #[arg(long, value_name = "FRAMES", value_parser = in_range(QUANTUM_FRAMES))]
    pub margin: Option<u32>,
    /// Clock that the card follows, by the name that its control has for it (consort device list);
    /// repeatable, for a card with two such controls
    #[arg(long, value_name = "NAME")]
    pub clock_source: Vec<String>,
    /// Priority of the card's reservation on the session bus: a program that asks with a higher one
    /// gets the card until it releases it [default: the highest: none gets it]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub reserve_priority: Option<i32>,
    /// What it connects
    #[command(flatten)]
    pub link: LinkArguments,
    /// What it connects beyond this server
    #[command(flatten)]
    pub tunnel: TunnelArguments,
    /// What it sends or plays without a connection
    #[command(flatten)]
    pub rtp: RtpArguments,
}

/// The device, and how its process was started.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    options: Options,
    /// Wait for the server
    #[arg(long)]
    wait: bool,
    /// Report on standard output, in one line, whether the device has joined the graph
    #[arg(long)]
    report: bool,
    /// End once standard input has ended
    #[arg(long)]
    until_stdin_ends: bool,
}

impl Options {
    /// A device with default options.
    #[must_use]
    pub fn of(device: &str) -> Self {
        Self {
            device: device.into(),
            streams: false,
            name: None,
            capture: None,
            playback: None,
            rate: None,
            quantum: DEFAULT_QUANTUM,
            periods: DEFAULT_PERIODS,
            margin: None,
            clock_source: Vec::new(),
            reserve_priority: None,
            link: LinkArguments::default(),
            tunnel: TunnelArguments::default(),
            rtp: RtpArguments::default(),
        }
    }

    /// All ports of ALSA's sequencer.
    #[must_use]
    pub fn sequencer() -> Self {
        Self::of(SEQUENCER)
    }

    /// All raw MIDI devices.
    #[must_use]
    pub fn raw_midi() -> Self {
        Self::of(RAW_MIDI)
    }

    /// A card as a device for streams.
    #[must_use]
    pub fn card_for_streams(device: &str) -> Self {
        Self { streams: true, ..Self::of(device) }
    }

    /// Returns whether the server runs it, for streams alone.
    pub(super) fn is_of_server(&self) -> bool {
        self.is_null() || self.streams
    }

    /// Returns whether these are all cards that can be heard, for streams.
    pub(super) fn is_every_card(&self) -> bool {
        self.streams && self.device == EVERY_CARD
    }

    /// Returns whether it has no hardware.
    pub(super) fn is_null(&self) -> bool {
        self.device == NULL
    }

    /// Returns whether it is a card.
    pub(super) fn is_card(&self) -> bool {
        let is_link = links::Kind::named(&self.device).is_some()
            || tunnels::Kind::named(&self.device).is_some()
            || zeroconf::Kind::named(&self.device).is_some()
            || rtp::Kind::named(&self.device).is_some();
        !self.is_null() && !is_link && self.midi().is_none()
    }

    /// Returns whether there are options that only hardware has.
    pub(super) fn has_hardware_options(&self) -> bool {
        self.streams
            || self.capture.is_some()
            || self.margin.is_some()
            || !self.clock_source.is_empty()
            || self.reserve_priority.is_some()
    }

    /// The MIDI hardware, if the device is not a card.
    fn midi(&self) -> Option<MidiHardware> {
        match &*self.device {
            SEQUENCER => Some(MidiHardware::Sequencer),
            RAW_MIDI => Some(MidiHardware::Raw),
            _ => None,
        }
    }

    /// The command-line arguments that stand for these options.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec![self.device.clone()];
        words.extend(self.streams.then(|| "--streams".to_owned()));
        let numbers = [
            ("--capture", self.capture),
            ("--playback", self.playback),
            ("--rate", self.rate),
            ("--quantum", Some(self.quantum)),
            ("--periods", Some(self.periods)),
            ("--margin", self.margin),
        ];
        for (option, number) in numbers {
            words.extend(
                number.into_iter().flat_map(|number| [option.to_owned(), number.to_string()]),
            );
        }
        let priority =
            self.reserve_priority.map(|priority| format!("--reserve-priority={priority}"));
        words.extend(priority);
        words.extend(self.clock_source.iter().map(|name| format!("--clock-source={name}")));
        words.extend(self.link.words());
        words.extend(self.tunnel.words());
        words.extend(self.rtp.words());
        words.extend(self.name.iter().map(|name| format!("--name={name}")));
        words
    }

    pub(super) fn card(&self) -> CardOptions {
        let side = |channels: Option<u32>| {
            (channels != Some(0)).then(|| AlsaSide {
                device: Some(self.device.clone()),
                channels,
                extra_latency_frames: 0,
                required: channels.is_some(),
            })
        };
        CardOptions {
            name: self.name.clone().unwrap_or_else(|| card_name(&self.device)),
            alsa: AlsaOptions {
                capture: side(self.capture),
                playback: side(self.playback),
                sample_rate_hz: self.rate,
                periods: self.periods,
                clock_sources: self.clock_source.clone(),
                reserve_priority: self.reserve_priority.unwrap_or(RESERVE_PRIORITY),
                ..AlsaOptions::default()
            },
            quantum: self.quantum,
            margin: self.margin,
        }
    }
}

/// The name of a device's card, or else the device's own name without characters that client names
/// cannot have.
fn card_name(device: &str) -> String {
    let card = alsa::locate(device)
        .and_then(|(index, _)| alsa::cards().into_iter().find(|card| card.index == index));
    card.map_or_else(|| device.replace([':', '/'], "-"), |card| card.id)
}

/// The device that this process serves.
enum Served {
    Card(Card),
    Midi(MidiHardware, Midi),
    Links(Box<Links>),
}

impl Served {
    fn start(
        options: &Options,
        cards: &dyn CardReservation,
        open: &OpenOptions,
    ) -> anyhow::Result<Self> {
        if let Some(kind) = rtp::Kind::named(&options.device) {
            return Ok(Self::Links(Box::new(rtp::start(kind, options, open)?)));
        }
        ensure!(
            options.rtp == RtpArguments::default(),
            "an option of RTP is not for another device"
        );
        if let Some(kind) = zeroconf::Kind::named(&options.device) {
            return Ok(Self::Links(Box::new(zeroconf::start(kind, options, open)?)));
        }
        if options.device == x11_bell::NAME {
            return Ok(Self::Links(Box::new(x11_bell::start(options, open)?)));
        }
        if let Some(kind) = tunnels::Kind::named(&options.device) {
            return Ok(Self::Links(Box::new(tunnels::start(kind, options, open)?)));
        }
        ensure!(
            options.tunnel == TunnelArguments::default(),
            "an option of tunnels is not for another device"
        );
        if let Some(kind) = links::Kind::named(&options.device) {
            return Ok(Self::Links(Box::new(links::start(kind, options, open)?)));
        }
        ensure!(
            options.link == LinkArguments::default(),
            "an option of devices without hardware is not for a card: see consort device add --help"
        );
        if let Some(hardware) = options.midi() {
            let name = options.name.as_deref().unwrap_or("midi");
            return Ok(Self::Midi(hardware, Midi::start(hardware, name, open)?));
        }
        Ok(Self::Card(Card::start(&options.card(), cards, open)?))
    }

    fn session(&self) -> Option<&Session> {
        match self {
            Self::Card(card) => card.session().map(|session| &**session),
            Self::Midi(_, midi) => midi.session().map(|session| &**session),
            Self::Links(links) => Some(links.session()),
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Card(card) => card.description().to_owned(),
            Self::Midi(MidiHardware::Sequencer, _) => "alsa sequencer".into(),
            Self::Midi(MidiHardware::Raw, _) => "raw midi devices".into(),
            Self::Links(links) => links.description().to_owned(),
        }
    }

    /// The property that has the description.
    fn key(&self) -> &'static str {
        if matches!(self, Self::Links(_)) { LINK_KEY } else { DEVICE_KEY }
    }

    fn has_left(&self) -> bool {
        match self {
            Self::Card(card) => card.state().has_left,
            Self::Midi(_, midi) => midi.state().has_left,
            Self::Links(links) => links.has_left(),
        }
    }

    /// Why it has left, if it says.
    fn reason(&self) -> Option<&str> {
        match self {
            Self::Links(links) => links.reason(),
            Self::Card(_) | Self::Midi(..) => None,
        }
    }

    /// The state, for people.
    fn state(&self) -> String {
        match self {
            Self::Card(card) if card.state().is_away => "not there".into(),
            Self::Card(card) => {
                let state = card.state();
                format!("runs, {} gaps, {} starts", state.gaps, state.locks)
            }
            Self::Midi(_, midi) => midi_state(&midi.state()),
            Self::Links(links) => links.state(),
        }
    }
}

fn midi_state(state: &MidiState) -> String {
    let read = state.worst_read_us.map_or_else(String::new, |us| format!("read within {us} µs, "));
    let (ports, late_us, lost) = (state.ports, state.worst_late_us, state.lost);
    let refusals: String = state.refusals.iter().map(|refusal| format!("; {refusal}")).collect();
    format!("{ports} ports, {read}sent within {late_us} µs, {lost} lost{refusals}")
}

impl Serve {
    pub(super) fn run(self, server: &str, cards: &dyn CardReservation) -> anyhow::Result<ExitCode> {
        // The library must not log to standard error, which may be closed.
        client::log::set_hook(|_| {});
        let signals = match self.until_stdin_ends {
            true => cli::end_with_stdin_within(END_WITHIN_NS)?,
            false => TerminationSignals::block()?,
        };
        let open = OpenOptions { server: Some(server.to_owned()), ..OpenOptions::default() };
        // A plug-in may print what it likes.
        let mut report = self.report.then(sys::helper::take_stdout).transpose()?;
        let deadline_ns = sys::clock::now_ns() + START_TIMEOUT_NS;
        if self.options.is_every_card() {
            let every = self.when_there(&signals, deadline_ns, || EveryCard::open(server))?;
            every.map_or(Ok(()), |every| every.serve(&signals))?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.options.is_of_server() {
            let add = || super::of_server::add(&Observer::open(Some(server))?, &self.options);
            self.when_there(&signals, deadline_ns, add)?;
            return Ok(ExitCode::SUCCESS);
        }
        let start = || Served::start(&self.options, cards, &open);
        let served = match (self.when_there(&signals, deadline_ns, start), &mut report) {
            (Ok(Some(served)), _) => served,
            (Ok(None), _) => return Ok(ExitCode::SUCCESS),
            (Err(error), Some(report)) => {
                let _ = writeln!(report, "{error:#}");
                return Ok(ExitCode::FAILURE);
            }
            (Err(error), None) => return Err(error),
        };
        let name = served.session().map(|session| session.name().to_owned()).unwrap_or_default();
        set_property(&served, served.key(), &served.description());
        if let Some(report) = &mut report {
            let _ = writeln!(report, "{READY}{name}: {}", served.description());
        }
        watch(&served, &signals)?;
        match (served.reason(), &mut report) {
            (Some(reason), Some(report)) => drop(writeln!(report, "{ENDED}{reason}")),
            (Some(reason), None) => eprintln!("consort: a link has ended: {reason}"),
            (None, _) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Serve {
    /// Does this when there is a server, which is waited for if this process is to; `None`: it was
    /// asked to end before.
    fn when_there<T>(
        &self,
        signals: &TerminationSignals,
        deadline_ns: u64,
        attempt: impl Fn() -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        loop {
            match attempt() {
                Err(error)
                    if self.wait && is_early(&error) && sys::clock::now_ns() < deadline_ns =>
                {
                    sys::clock::sleep_until(sys::clock::now_ns() + RETRY_NS);
                    if signals.read()?.is_some() {
                        return Ok(None);
                    }
                }
                decided => return decided.map(Some),
            }
        }
    }
}

fn is_early(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(client::Error::NoServer { .. }))
}

/// Sets a property of the device's client.
fn set_property(served: &Served, key: &str, text: &str) {
    let Some(session) = served.session() else { return };
    let value = PropertyValue { text: text.to_owned(), type_name: String::new() };
    // If the server is gone, it learns the value at the next change after its return.
    let _ = session.set_property(Property {
        subject: client_uuid(session.id()),
        key: key.to_owned(),
        value,
    });
}

/// Publishes the device's state until this process is asked to end or the server has gone.
fn watch(served: &Served, signals: &TerminationSignals) -> anyhow::Result<()> {
    let (poller, mut events) = (Poller::new()?, Vec::new());
    poller.add(signals, SIGNALS, Interest::Readable)?;
    // A link says when it has changed.
    let polled = match served {
        Served::Links(links) => {
            poller.add(links.waker(), STATE, Interest::Readable)?;
            poller.add(links, SERVER, Interest::Readable)?;
            None
        }
        Served::Card(_) | Served::Midi(..) => Some(POLL_NS),
    };
    let mut published = String::new();
    while !served.has_left() {
        let state = served.state();
        if state != published {
            set_property(served, STATE_KEY, &state);
            published = state;
        }
        poller.wait(&mut events, polled.map(|interval_ns| sys::clock::now_ns() + interval_ns))?;
        if signals.read()?.is_some() || events.iter().any(|event| event.token == SERVER) {
            break;
        }
        if let Served::Links(links) = served {
            links.waker().reset();
        }
    }
    Ok(())
}
