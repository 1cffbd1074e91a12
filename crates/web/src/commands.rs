//! Browsers' commands. The server judges each as one of the page's own process, by the same
//! permissions as the command line's.

use client::stream::{ChannelGains, Gain};
use client::{Error, Observer, Position, Requester};
use serde::Deserialize;

use crate::streams::DRIVER_NAME;

/// A browser's command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Command {
    /// Connects two ports, by their full names.
    Connect { source: String, destination: String },
    /// Disconnects two ports, by their full names.
    Disconnect { source: String, destination: String },
    /// Starts or stops the transport.
    Roll { roll: bool },
    /// Moves the transport.
    Locate { frame: u32 },
    /// Sets the factor of a volume while it is not muted.
    Volume { of: Target, factor: f32 },
    /// Mutes a stream or a device, or has it heard again.
    Mute { of: Target, muted: bool },
    /// Moves the stream of this number to the device of this name.
    Move { stream: u32, device: String },
}

/// What a volume belongs to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// The stream of this number.
    Stream(u32),
    /// All that leaves the device of this name.
    Device(String),
}

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command is malformed or impossible.
    Wrong(String),
    /// The server refused it, or the page needs a token for this server; with this message.
    Refused(String),
    /// There is no server, or it does not respond.
    NoServer(String),
}

impl Failure {
    /// Returns why.
    pub(crate) fn reason(&self) -> &str {
        let (Self::Wrong(reason) | Self::Refused(reason) | Self::NoServer(reason)) = self;
        reason
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(reason) => Self::Refused(reason.to_string()),
            other => Self::NoServer(other.to_string()),
        }
    }
}

impl Command {
    /// Has the server carry it out, and waits for its answer, for a bounded time.
    pub(crate) fn execute(self, observer: &Observer) -> Result<(), Failure> {
        match self {
            Self::Connect { source, destination } => observer.connect(&source, &destination)?,
            Self::Disconnect { source, destination } => {
                observer.disconnect(&source, &destination)?;
            }
            Self::Roll { roll } => observer.roll_transport(roll)?,
            Self::Locate { frame } => {
                observer.locate_transport(&Position { frame, ..Position::default() })?;
            }
            Self::Volume { of, factor } => {
                let gain = Gain::new(factor).map_err(|error| Failure::Wrong(error.to_string()))?;
                set_volume(observer, of, Some(gain), None)?;
            }
            Self::Mute { of, muted } => set_volume(observer, of, None, Some(muted))?,
            Self::Move { stream, device } => observer.move_stream(stream, Some(&device))?,
        }
        Ok(())
    }
}

/// Changes what is not `None` of a volume; all channels of a device have the same then.
fn set_volume(
    observer: &Observer,
    of: Target,
    gain: Option<Gain>,
    muted: Option<bool>,
) -> Result<(), Error> {
    let device = match of {
        Target::Stream(stream) => return observer.set_volume(stream, gain, muted).map(drop),
        Target::Device(name) => Some(name).filter(|name| name != DRIVER_NAME),
    };
    let gains = gain.map(ChannelGains::all);
    observer.set_device_volume(device.as_deref(), gains, muted).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Option<Command> {
        serde_json::from_str(text).ok()
    }

    #[test]
    fn commands_are_parsed_strictly() {
        let (source, destination) = ("a:b".to_owned(), "c:d".to_owned());
        for (text, expected) in [
            (
                r#"{"connect":{"source":"a:b","destination":"c:d"}}"#,
                Command::Connect { source, destination },
            ),
            (r#"{"locate":{"frame":48000}}"#, Command::Locate { frame: 48_000 }),
            (
                r#"{"volume":{"of":{"stream":3},"factor":0.5}}"#,
                Command::Volume { of: Target::Stream(3), factor: 0.5 },
            ),
            (
                r#"{"mute":{"of":{"device":"system"},"muted":true}}"#,
                Command::Mute { of: Target::Device("system".into()), muted: true },
            ),
            (
                r#"{"move":{"stream":3,"device":"headset"}}"#,
                Command::Move { stream: 3, device: "headset".into() },
            ),
        ] {
            assert_eq!(command(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "{}",
            "[]",
            "null",
            r#""connect""#,
            r#"{"connect":{}}"#,
            r#"{"stop":{}}"#,
            r#"{"roll":{"roll":1}}"#,
            r#"{"roll":{"roll":true,"more":1}}"#,
            r#"{"locate":{"frame":-1}}"#,
            r#"{"locate":{"frame":4294967296}}"#,
            r#"{"roll":{"roll":true},"locate":{"frame":1}}"#,
            r#"{"volume":{"of":{"stream":3}}}"#,
            r#"{"volume":{"of":{"stream":3},"factor":"1"}}"#,
            r#"{"volume":{"of":{"stream":-3},"factor":1}}"#,
            r#"{"volume":{"of":{"stream":3,"device":"x"},"factor":1}}"#,
            r#"{"volume":{"of":"system","factor":1}}"#,
            r#"{"volume":{"of":{"device":null},"factor":1}}"#,
            r#"{"mute":{"of":{"stream":3},"muted":0}}"#,
            r#"{"move":{"stream":3,"device":null}}"#,
        ] {
            assert_eq!(command(text), None, "{text}");
        }
    }
}
