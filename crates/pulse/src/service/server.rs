//! The connection to the server.

use client::stream::{
    Gain, MAX_NAME_BYTES, PlaybackOptions, RecordOptions, StreamConnection, Volume, VolumeOf,
};

use super::record_ring::ServerInput;
use super::ring::ServerOutput;
use crate::input::{NewInput, Source};
use crate::output::{Device, DeviceFormat, NewOutput};

/// The server's device, as long as there is a server.
#[derive(Debug)]
pub(crate) struct ServerDevice {
    server: String,
    connection: Option<StreamConnection>,
    format: Option<DeviceFormat>,
    volume: Volume,
}

impl ServerDevice {
    /// Connects to a server.
    ///
    /// # Errors
    /// Those of [`StreamConnection::open`].
    pub fn connect(server: &str) -> Result<Self, client::Error> {
        let connection = Some(StreamConnection::open(Some(server))?);
        let mut device =
            Self { server: server.to_owned(), connection, format: None, volume: Volume::default() };
        device.refresh();
        Ok(device)
    }

    /// Returns the connection, which is readable once the server has gone.
    pub fn connection(&self) -> Option<&StreamConnection> {
        self.connection.as_ref()
    }

    /// The server has gone.
    pub fn disconnect(&mut self) {
        (self.connection, self.format) = (None, None);
    }

    /// Looks for the server; returns whether there is one.
    pub fn reconnect(&mut self) -> bool {
        self.connection = StreamConnection::open(Some(&self.server)).ok();
        self.refresh();
        self.connection.is_some()
    }
}

impl Device for ServerDevice {
    type Output = ServerOutput;
    type Input = ServerInput;

    fn format(&self) -> Option<DeviceFormat> {
        self.format
    }

    fn refresh(&mut self) {
        let device = self.connection.as_ref().and_then(|connection| connection.device().ok());
        self.volume = device.map(|device| device.volume).unwrap_or_default();
        self.format = device.filter(|device| device.channels > 0).map(|device| {
            let most = convert::MAX_CHANNELS as u32;
            DeviceFormat {
                rate_hz: device.sample_rate_hz,
                channels: device.channels.min(most),
                // Without a microphone, programs record the monitor unless they name another.
                captured: if device.captures { device.captured.min(most) } else { 0 },
            }
        });
    }

    fn volume(&self) -> Volume {
        self.volume
    }

    fn set_volume(&mut self, gain: Option<Gain>, muted: Option<bool>) -> bool {
        let Some(connection) = &self.connection else { return false };
        let changed = connection.set_volume(VolumeOf::Device, gain, muted);
        self.volume = *changed.as_ref().unwrap_or(&self.volume);
        changed.is_ok()
    }

    fn open(&mut self, new: NewOutput) -> Option<ServerOutput> {
        let options = PlaybackOptions {
            program: name(&new.program, "a program"),
            name: name(&new.name, "a sound"),
            device: None,
            channels: (0..self.format?.channels).collect(),
            depth_frames: new.depth_frames,
        };
        self.connection.as_ref()?.play_for(new.account, options).ok().map(ServerOutput::new)
    }

    fn record(&mut self, new: NewInput) -> Option<ServerInput> {
        let format = self.format?;
        let monitor = new.source == Source::Monitor;
        let options = RecordOptions {
            program: name(&new.program, "a program"),
            name: name(&new.name, "a recording"),
            device: None,
            monitor,
            channels: (0..if monitor { format.channels } else { format.captured }).collect(),
            interval_frames: new.kept_frames,
            lets_sleep: new.lets_sleep,
        };
        self.connection.as_ref()?.record_for(new.account, options).ok().map(ServerInput::new)
    }
}

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
    fn a_name_is_short_printable_and_there() {
        assert_eq!(name("one\ntwo", "x"), "onetwo");
        assert_eq!(name("\0", "x"), "x");
        assert!(name(&"ä".repeat(MAX_NAME_BYTES), "x").len() <= MAX_NAME_BYTES);
    }
}
