//! The connection to the server.

use std::collections::BTreeMap;
use std::time::Duration;

use client::RequestError;
use client::stream::{
    ChannelGains, ClientRole, DeviceVolume, Direction, MAX_NAME_BYTES, NewDevice, NewHardware,
    PlaybackOptions, RecordOptions, ServerWatch, StreamConnection, StreamStatus, Volume, Watched,
};
use sys::clock::now_ns;

use super::card::card;
use super::line_limit::{Line, LineLimit};
use super::link_processes::{LinkNews, LinkProcesses};
use super::mixers::{Mixers, Shares, together};
use super::module_listeners::ModuleListeners;
use super::record_ring::ServerInput;
use super::ring::ServerOutput;
use crate::input::NewInput;
use crate::output::{
    Card, DeviceFormat, DeviceStatus, Devices, HeardVolume, LinkEnd, NewLink, NewListening,
    NewNullDevice, NewOutput, Refusal,
};

/// The server's devices, as long as there is a server.
#[derive(Debug)]
pub(crate) struct ServerDevices {
    server: String,
    connection: Option<Connection>,
    links: LinkProcesses,
    listeners: ModuleListeners,
    line_limit: LineLimit,
    /// What drives, if nothing has changed since somebody asked; if it is a card, with what is
    /// known of it.
    driver: Option<Option<Card>>,
    /// The cards of further devices, by their numbers.
    cards: BTreeMap<u32, Option<Card>>,
    mixers: Mixers,
    /// The server has answered when it was last asked for its devices.
    is_listed: bool,
}

#[derive(Debug)]
struct Connection {
    streams: StreamConnection,
    watch: ServerWatch,
}

impl Connection {
    fn open(server: &str) -> Result<Self, client::Error> {
        // What changes after the first look at the devices is noticed.
        let watch = ServerWatch::open(Some(server), Watched::Devices)?;
        Ok(Self { streams: StreamConnection::open(Some(server))?, watch })
    }
}

impl ServerDevices {
    /// Connects to a server.
    ///
    /// # Errors
    /// Those of [`StreamConnection::open`]; no descriptor is left.
    pub fn connect(server: &str) -> anyhow::Result<Self> {
        let connection = Some(Connection::open(server)?);
        let (links, listeners) = (LinkProcesses::new()?, ModuleListeners::new()?);
        let (driver, cards, mixers) = (None, BTreeMap::new(), Mixers::new()?);
        let (server, line_limit) = (server.to_owned(), LineLimit::default());
        Ok(Self {
            server,
            connection,
            links,
            listeners,
            line_limit,
            driver,
            cards,
            mixers,
            is_listed: false,
        })
    }

    /// Returns the connection, which is readable when it has
    /// [answers](StreamConnection::take_answers), and once the server has gone.
    pub fn connection(&self) -> Option<&StreamConnection> {
        self.connection.as_ref().map(|connection| &connection.streams)
    }

    /// Returns what is readable once the devices have changed.
    pub fn watch(&self) -> Option<&ServerWatch> {
        self.connection.as_ref().map(|connection| &connection.watch)
    }

    /// Returns whether the devices have changed since the last time.
    ///
    /// # Errors
    /// Those of [`ServerWatch::has_changed`].
    pub fn have_changed(&mut self) -> Result<bool, client::Error> {
        self.driver = None;
        self.connection.as_mut().map_or(Ok(false), |connection| connection.watch.has_changed())
    }

    /// Returns the mixers of cards, which are readable once another program has changed one.
    pub(super) fn mixers(&mut self) -> &mut Mixers {
        &mut self.mixers
    }

    /// Returns where modules let programs in.
    pub(super) fn listeners(&mut self) -> &mut ModuleListeners {
        &mut self.listeners
    }

    /// Returns what is readable once there is news of what passes frames on.
    pub(super) fn links(&mut self) -> &mut LinkProcesses {
        &mut self.links
    }

    /// Returns what is new about it, by its number.
    pub(super) fn link_news(&mut self, now_ns: u64) -> Vec<(u32, LinkNews)> {
        self.links.news(now_ns)
    }

    /// The server has gone. Returns for how long its programs wait for the next one.
    pub fn disconnect(&mut self) -> Duration {
        (self.driver, self.cards) = (None, BTreeMap::new());
        let gone = self.connection.take();
        gone.map_or(Duration::ZERO, |connection| connection.streams.note_gone())
    }

    /// Looks for the server.
    ///
    /// # Errors
    /// Those of [`StreamConnection::open`].
    pub fn reconnect(&mut self) -> Result<(), client::Error> {
        self.connection = Some(Connection::open(&self.server)?);
        Ok(())
    }

    /// Asks the server for something.
    fn ask<T>(
        &self,
        ask: impl FnOnce(&StreamConnection) -> Result<T, client::Error>,
    ) -> Result<T, Refusal> {
        let streams = self.streams().ok_or(Refusal::NotNow)?;
        ask(streams).map_err(|error| refusal(&error))
    }

    fn streams(&self) -> Option<&StreamConnection> {
        self.connection()
    }

    /// Gives a stream that has just been opened, and holds, a volume.
    fn begin_at(&self, stream: u32, volume: Volume) -> Result<(), Refusal> {
        if volume == Volume::default() {
            return Ok(());
        }
        let Volume { gain, muted } = volume;
        self.ask(|streams| streams.set_volume(stream, Some(gain), Some(muted))).map(drop)
    }

    /// Returns the device that drives, if it plays streams.
    fn driver(&mut self) -> Result<Option<DeviceStatus>, Refusal> {
        let device = self.ask(StreamConnection::device)?;
        if device.channels == 0 {
            return Ok(None);
        }
        let format = DeviceFormat {
            rate_hz: device.sample_rate_hz,
            channels: device.channels.min(MOST_CHANNELS),
            // Without a microphone, programs record the monitor unless they name another.
            captured: if device.captures { device.captured.min(MOST_CHANNELS) } else { 0 },
        };
        let card = match &self.driver {
            Some(card) => card.clone(),
            None => {
                let driver = self.ask(StreamConnection::driver)?;
                self.driver.insert(card_of(&driver).map(card)).clone()
            }
        };
        Ok(Some(self.heard(None, 0, format, device.volume, card)))
    }

    /// Returns all further devices.
    fn further(&mut self) -> Result<Vec<DeviceStatus>, Refusal> {
        let further = self.ask(StreamConnection::further_devices)?;
        self.cards.retain(|number, _| further.iter().any(|device| device.number == *number));
        let mut all = Vec::with_capacity(further.len());
        for device in further {
            let known = || device.card.as_deref().and_then(card_of).map(card);
            let card = self.cards.entry(device.number).or_insert_with(known).clone();
            let format = DeviceFormat {
                rate_hz: device.sample_rate_hz,
                channels: device.channels.min(MOST_CHANNELS),
                captured: device.captured.min(MOST_CHANNELS),
            };
            all.push(self.heard(Some(device.name), device.number, format, device.volume, card));
        }
        Ok(all)
    }

    /// Returns the server's own gains of a device.
    fn gains_of(&self, device: Option<&str>) -> Result<ChannelGains, Refusal> {
        let Some(name) = device else {
            return Ok(self.ask(StreamConnection::device)?.volume.gains);
        };
        let mut further = self.ask(StreamConnection::further_devices)?.into_iter();
        let found = further.find(|device| device.name == name).ok_or(Refusal::Never)?;
        Ok(found.volume.gains)
    }

    /// Returns a device as it is heard through the mixer of its card.
    fn heard(
        &mut self,
        name: Option<String>,
        number: u32,
        format: DeviceFormat,
        volume: DeviceVolume,
        card: Option<Card>,
    ) -> DeviceStatus {
        let is_untouched = volume == DeviceVolume::default();
        let played_by = card.as_ref().filter(|_| format.channels > 0);
        let key = played_by.map(|card| (name.clone(), number, card.name.clone()));
        let mixer = key.and_then(|key| self.mixers.of(&key)?.volume());
        let has_mixer = mixer.is_some();
        let volume = mixer.map_or_else(|| volume.into(), |mixer| together(volume, &mixer));
        DeviceStatus { name, number, format, volume, is_untouched, has_mixer, card }
    }
}

/// A server that does not answer may be followed by one that does.
pub(super) fn refusal(error: &client::Error) -> Refusal {
    match error {
        client::Error::ServerGone | client::Error::Timeout { .. } => Refusal::NotNow,
        _ => Refusal::Never,
    }
}

/// The same of a stream that returns: what is missing on a server that has just started may come.
fn refusal_of_return(error: &client::Error) -> Refusal {
    match error {
        client::Error::Refused(RequestError::Failed(_)) => Refusal::NotNow,
        error => refusal(error),
    }
}

/// Channels of a device that streams are converted to.
const MOST_CHANNELS: u32 = convert::MAX_CHANNELS as u32;

impl Devices for ServerDevices {
    type Output = ServerOutput;
    type Input = ServerInput;

    fn list(&mut self) -> Option<Vec<DeviceStatus>> {
        self.is_listed = false;
        let driver = self.driver().ok()?;
        let further = self.further().ok()?;
        let all: Vec<DeviceStatus> = driver.into_iter().chain(further).collect();
        self.mixers.retain(|(name, number, card)| {
            let is_it = |device: &DeviceStatus| {
                let of = device.card.as_ref().map(|card| &card.name);
                device.name == *name && device.number == *number && of == Some(card)
            };
            all.iter().any(is_it)
        });
        self.is_listed = true;
        Some(all)
    }

    fn may_have_changed(&self) -> bool {
        // The watch is read, and then the devices, when it is this one's turn in the event loop.
        !self.is_listed || self.watch().is_none_or(ServerWatch::is_ready)
    }

    fn client_roles(&mut self) -> Option<Vec<ClientRole>> {
        self.ask(StreamConnection::client_roles).ok()
    }

    fn switch_on(&mut self, device: Option<&str>) {
        let refused = self.mixers.of_device(device).and_then(|mixer| mixer.unmute().err());
        if let Some(error) = refused {
            let of = device.unwrap_or("the server's device");
            self.report(format!("the mixer of {of} stays switched off: {error}"));
        }
    }

    fn set_volume(
        &mut self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<HeardVolume, Refusal> {
        let set =
            |gains, muted| self.ask(|streams| streams.set_device_volume(device, gains, muted));
        // A card that has gone is noticed as one: its volume is that of the server then.
        let mixer = self.mixers.of_device(device).and_then(|mixer| Some((mixer, mixer.volume()?)));
        let Some((mixer, before)) = mixer else { return Ok(set(gains, muted)?.into()) };
        let loudest = |gains: ChannelGains| gains.greatest(ChannelGains::CHANNELS).factor();
        let wanted = gains.and_then(|wanted| Some((wanted, mixer.step(loudest(wanted))?)));
        let Some((wanted, step)) = wanted else {
            return Ok(together(set(gains, muted)?, &before));
        };
        let shares = Shares::of(&wanted, self.gains_of(device)?, &before, step.factor);
        if before.is_at(step.factor) {
            return Ok(together(set(Some(shares.left), muted)?, &before));
        }
        if let Some(meanwhile) = shares.meanwhile {
            set(Some(meanwhile), None)?;
        }
        if let Err(error) = mixer.set(step) {
            let server = set(Some(shares.without_step), muted)?;
            // What it says after that is not to be trusted.
            self.mixers.open_again(device);
            self.report(format!(
                "the mixer of {} does not take a volume, so the server alone sets it: {error}",
                device.unwrap_or("the server's device")
            ));
            return Ok(together(server, &before));
        }
        let server = set(Some(shares.left), muted)?;
        Ok(mixer.volume().map_or_else(|| server.into(), |mixer| together(server, &mixer)))
    }

    fn add(&mut self, new: NewNullDevice) -> Result<(), Refusal> {
        let NewNullDevice { name, channels, rate_hz } = new;
        let hardware = NewHardware::Nothing { channels };
        let new = NewDevice { name, hardware, sample_rate_hz: rate_hz, ends_with_connection: true };
        self.ask(|streams| streams.add_device(new))
    }

    fn remove(&mut self, device: &str) {
        // It may have gone already.
        let _ = self.ask(|streams| streams.remove_device(device));
    }

    fn link(&mut self, number: u32, new: NewLink) -> Result<(), String> {
        let started = self.links.start(number, &self.server, &new);
        started.map_err(|error| cli::error_chain(&error))
    }

    fn unlink(&mut self, number: u32) {
        self.links.end(number);
    }

    fn set_link_volume(
        &mut self,
        number: u32,
        end: &LinkEnd,
        volume: Volume,
    ) -> Result<(), Refusal> {
        let Some(process) = self.links.id(number) else { return Ok(()) };
        let is_end = |stream: &StreamStatus| {
            let direction = match end {
                LinkEnd::Plays(_) => Direction::Playback,
                LinkEnd::Records(heard) if heard.captures => Direction::Record,
                LinkEnd::Records(_) => Direction::Monitor,
            };
            let is_there = stream.device.as_deref() == end.device();
            stream.process == process && stream.direction == direction && is_there
        };
        let Volume { gain, muted } = volume;
        for stream in self.ask(StreamConnection::streams)?.iter().filter(|stream| is_end(stream)) {
            self.ask(|streams| streams.set_volume(stream.stream, Some(gain), Some(muted)))?;
        }
        Ok(())
    }

    fn listen(&mut self, number: u32, new: NewListening) -> Result<(), String> {
        self.listeners.listen(number, new).map_err(|error| cli::error_chain(&error))
    }

    fn unlisten(&mut self, number: u32) {
        self.listeners.end(number);
    }

    fn report(&mut self, line: String) {
        let Line::Printed { left_out } = self.line_limit.decide(now_ns()) else { return };
        if left_out > 0 {
            sys::report!("consort: {left_out} lines about modules were left out");
        }
        sys::report!("consort: {}", in_one_line(&line));
    }

    fn open(&mut self, new: NewOutput) -> Result<ServerOutput, Refusal> {
        let options = PlaybackOptions {
            program: name(&new.program, "a program"),
            name: name(&new.name, "a sound"),
            device: new.device,
            channels: (0..new.channels).collect(),
            depth_frames: new.depth_frames,
            samples: new.samples,
        };
        // A volume that it begins with is set once it is granted.
        let is_plain = new.volume == Volume::default();
        if is_plain
            && let Some(planned) =
                self.streams().and_then(|streams| streams.expect_for(new.account, &options))
        {
            return Ok(ServerOutput::new(planned));
        }
        let planned = self.ask(|streams| streams.grant_for(new.account, options))?;
        if let Some(number) = planned.number() {
            self.begin_at(number, new.volume)?;
        }
        Ok(ServerOutput::new(planned))
    }

    fn record(&mut self, new: NewInput) -> Result<ServerInput, Refusal> {
        let options = RecordOptions {
            program: name(&new.program, "a program"),
            name: name(&new.name, "a recording"),
            device: new.device,
            monitor: new.is_monitor,
            channels: (0..new.channels).collect(),
            interval_frames: new.kept_frames,
            lets_sleep: new.lets_sleep,
        };
        let stream = self.ask(|streams| streams.record_for(new.account, options))?;
        self.begin_at(stream.number(), new.volume)?;
        Ok(ServerInput::new(stream))
    }

    fn return_output(&mut self, output: &mut ServerOutput) -> Result<(), Refusal> {
        let streams = self.streams().ok_or(Refusal::NotNow)?;
        let returned = output.return_to(streams).ok_or(Refusal::Never)?;
        returned.map_err(|error| refusal_of_return(&error))
    }

    fn return_input(&mut self, input: &mut ServerInput) -> Result<(), Refusal> {
        let streams = self.streams().ok_or(Refusal::NotNow)?;
        input.return_to(streams).map_err(|error| refusal_of_return(&error))
    }

    fn move_output(&mut self, output: &ServerOutput, device: Option<&str>) -> bool {
        use crate::output::Output;
        let known = self.streams().zip(output.number());
        let moved = known.map(|(streams, number)| streams.move_stream(number, device));
        moved.is_some_and(|moved| moved.is_ok())
    }

    fn homes(&mut self) -> BTreeMap<u32, Option<String>> {
        let all = self.streams().and_then(|streams| streams.streams().ok()).unwrap_or_default();
        all.into_iter().map(|stream| (stream.stream, stream.device)).collect()
    }
}

/// Returns the name of the card that a server says drives it.
fn card_of(driver: &str) -> Option<&str> {
    let (names, _) = driver.strip_prefix("alsa ")?.split_once(" (")?;
    Some(names)
}

/// Returns a text that other programs have a part in as one printable line, no longer than a screen
/// holds.
fn in_one_line(text: &str) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    text.chars().map(printable).take(MAX_LINE_LETTERS).collect()
}

/// Letters of such a line.
const MAX_LINE_LETTERS: usize = 500;

/// Returns a name as a stream may have it.
fn name(name: &str, otherwise: &str) -> String {
    let mut name: String = name.chars().filter(|character| !character.is_control()).collect();
    while name.len() > MAX_NAME_BYTES {
        name.pop();
    }
    if name.is_empty() { otherwise.into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_is_one_short_line() {
        assert_eq!(in_one_line("a\n\x1bb"), "a  b");
        assert_eq!(in_one_line(&"ä".repeat(1000)).chars().count(), MAX_LINE_LETTERS);
    }

    #[test]
    fn a_card_has_the_name_that_alsa_has_for_it() {
        let alsa =
            "alsa hw:CARD=PCH,DEV=0 (capture 2 S32_LE, playback 2 S32_LE, by its interrupts)";
        assert_eq!(card_of(alsa), Some("hw:CARD=PCH,DEV=0"));
        for other in ["timer", "file alsa (x) → y", "alsa"] {
            assert_eq!(card_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_is_short_printable_and_there() {
        assert_eq!(name("one\ntwo", "x"), "onetwo");
        assert_eq!(name("\0", "x"), "x");
        assert!(name(&"ä".repeat(MAX_NAME_BYTES), "x").len() <= MAX_NAME_BYTES);
    }
}
