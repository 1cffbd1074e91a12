//! The connection to the server.

use std::collections::BTreeMap;
use std::time::Duration;

use client::RequestError;
use client::stream::{
    ChannelGains, ClientRole, DeviceVolume, DeviceWatch, Direction, MAX_NAME_BYTES, NewDevice,
    NewHardware, PlaybackOptions, RecordOptions, StreamConnection, StreamStatus, Volume,
};

use super::link_processes::{LinkNews, LinkProcesses};
use super::module_listeners::ModuleListeners;
use super::record_ring::ServerInput;
use super::ring::ServerOutput;
use crate::input::NewInput;
use crate::output::{
    DeviceFormat, DeviceStatus, Devices, LinkEnd, NewLink, NewListening, NewNullDevice, NewOutput,
    Refusal,
};

/// The server's devices, as long as there is a server.
#[derive(Debug)]
pub(crate) struct ServerDevices {
    server: String,
    connection: Option<Connection>,
    links: LinkProcesses,
    listeners: ModuleListeners,
    /// The card that drives; `None`: nobody has asked since the devices have changed.
    card: Option<Option<String>>,
}

#[derive(Debug)]
struct Connection {
    streams: StreamConnection,
    watch: DeviceWatch,
}

impl Connection {
    fn open(server: &str) -> Result<Self, client::Error> {
        // What changes after the first look at the devices is noticed.
        let watch = DeviceWatch::open(Some(server))?;
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
        Ok(Self { server: server.to_owned(), connection, links, listeners, card: None })
    }

    /// Returns the connection, which is readable once the server has gone.
    pub fn connection(&self) -> Option<&StreamConnection> {
        self.connection.as_ref().map(|connection| &connection.streams)
    }

    /// Returns what is readable once the devices have changed.
    pub fn watch(&self) -> Option<&DeviceWatch> {
        self.connection.as_ref().map(|connection| &connection.watch)
    }

    /// Returns whether the devices have changed since the last time.
    ///
    /// # Errors
    /// Those of [`DeviceWatch::has_changed`].
    pub fn have_changed(&mut self) -> Result<bool, client::Error> {
        self.card = None;
        self.connection.as_mut().map_or(Ok(false), |connection| connection.watch.has_changed())
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
        self.card = None;
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

    /// Returns the device that drives, if it plays streams.
    fn driver(&self) -> Result<Option<DeviceStatus>, Refusal> {
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
        Ok(Some(DeviceStatus { name: None, number: 0, format, volume: device.volume }))
    }
}

/// A server that does not answer may be followed by one that does.
fn refusal(error: &client::Error) -> Refusal {
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
        let driver = self.driver().ok()?;
        let further = self.ask(StreamConnection::further_devices).ok()?;
        let further = further.into_iter().map(|device| DeviceStatus {
            name: Some(device.name),
            number: device.number,
            format: DeviceFormat {
                rate_hz: device.sample_rate_hz,
                channels: device.channels.min(MOST_CHANNELS),
                captured: device.captured.min(MOST_CHANNELS),
            },
            volume: device.volume,
        });
        Some(driver.into_iter().chain(further).collect())
    }

    fn client_roles(&mut self) -> Option<Vec<ClientRole>> {
        self.ask(StreamConnection::client_roles).ok()
    }

    fn card(&mut self) -> Option<String> {
        let streams = self.connection.as_ref().map(|connection| &connection.streams)?;
        let ask = || streams.driver().ok().and_then(|driver| card_of(&driver));
        self.card.get_or_insert_with(ask).clone()
    }

    fn set_volume(
        &mut self,
        device: Option<&str>,
        gains: Option<ChannelGains>,
        muted: Option<bool>,
    ) -> Result<DeviceVolume, Refusal> {
        self.ask(|streams| streams.set_device_volume(device, gains, muted))
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
        sys::report!("consort: {}", in_one_line(&line));
    }

    fn open(&mut self, new: NewOutput) -> Result<ServerOutput, Refusal> {
        let options = PlaybackOptions {
            program: name(&new.program, "a program"),
            name: name(&new.name, "a sound"),
            device: new.device,
            channels: (0..new.channels).collect(),
            depth_frames: new.depth_frames,
        };
        self.ask(|streams| streams.play_for(new.account, options)).map(ServerOutput::new)
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
        self.ask(|streams| streams.record_for(new.account, options)).map(ServerInput::new)
    }

    fn return_output(&mut self, output: &mut ServerOutput) -> Result<(), Refusal> {
        let streams = self.streams().ok_or(Refusal::NotNow)?;
        output.return_to(streams).map_err(|error| refusal_of_return(&error))
    }

    fn return_input(&mut self, input: &mut ServerInput) -> Result<(), Refusal> {
        let streams = self.streams().ok_or(Refusal::NotNow)?;
        input.return_to(streams).map_err(|error| refusal_of_return(&error))
    }

    fn move_output(&mut self, output: &ServerOutput, device: Option<&str>) -> bool {
        use crate::output::Output;
        let moved = self.streams().map(|streams| streams.move_stream(output.number(), device));
        moved.is_some_and(|moved| moved.is_ok())
    }

    fn homes(&mut self) -> BTreeMap<u32, Option<String>> {
        let all = self.streams().and_then(|streams| streams.streams().ok()).unwrap_or_default();
        all.into_iter().map(|stream| (stream.stream, stream.device)).collect()
    }
}

/// Returns the name of the card that a server says drives it.
fn card_of(driver: &str) -> Option<String> {
    let (names, _) = driver.strip_prefix("alsa ")?.split_once(" (")?;
    Some(names.to_owned())
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
        assert_eq!(card_of(alsa).as_deref(), Some("hw:CARD=PCH,DEV=0"));
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
