//! A server's state as one file of JSON that people can read and change: connections, aliases,
//! properties, the transport and the quantum, by name rather than by number.
//!
//! [`State`] is the content of such a file. It is checked as a whole where it is read, so that an
//! invalid file changes nothing.
#![forbid(unsafe_code)]

mod check;
mod file;

use std::collections::BTreeMap;

use proto::stream::Gain;
use rt::transport::{Position, valid};
use serde::{Deserialize, Serialize};

pub use file::{MAX_FILE_BYTES, read, read_from, replace, write};

/// A server's state. Everything is optional: what a state does not contain is left as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Length of a cycle, frames.
    #[serde(default, rename = "buffer_size", skip_serializing_if = "Option::is_none")]
    pub quantum: Option<u32>,
    /// The transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportPosition>,
    /// Connections, by the full names of their ports, in the order in which they were made.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// Aliases, by the full name of their port.
    #[serde(default)]
    pub aliases: BTreeMap<String, Vec<String>>,
    /// Properties of clients and ports.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// Volumes of devices that play streams, those that were changed last at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_volumes: Vec<DeviceVolume>,
    /// Volumes of programs' streams, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stream_volumes: Vec<StreamVolume>,
}

/// The volume of a device that plays streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceVolume {
    /// Its name; `system` is the device that drives.
    pub device: String,
    /// Factors of its first channels; further ones have the greatest.
    pub volumes: Vec<Gain>,
    /// Nothing of it is heard.
    #[serde(default)]
    pub muted: bool,
}

/// The volume of what a program plays or records as a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamVolume {
    /// Name of the program.
    pub program: String,
    /// Name of what it plays or records.
    pub stream: String,
    /// The factor.
    pub volume: Gain,
    /// Nothing of it is heard.
    #[serde(default)]
    pub muted: bool,
}

/// State and position of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransportPosition {
    /// Whether the transport rolls.
    pub rolling: bool,
    /// Frames from the start of the piece.
    pub frame: u32,
    /// Bar, beat and tempo at that frame, if a timebase master has stated them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bar_beat_tick: Option<BarBeatTick>,
}

/// A position in bars, beats and ticks, and the tempo: the members of [`Position`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each is a member of `Position`")]
pub struct BarBeatTick {
    pub bar: i32,
    pub beat: i32,
    pub tick: i32,
    pub bar_start_tick: f64,
    pub beats_per_bar: f32,
    pub beat_type: f32,
    pub ticks_per_beat: f64,
    pub beats_per_minute: f64,
}

// No member is NaN: a position's members are checked before they are copied, and JSON has no NaN.
impl Eq for BarBeatTick {}

impl TransportPosition {
    /// The state of a transport at this position.
    #[must_use]
    pub fn of(rolling: bool, position: &Position) -> Self {
        let Position { frame, bar, beat, tick, .. } = *position;
        let bar_beat_tick = (position.valid & valid::BBT != 0).then_some(BarBeatTick {
            bar,
            beat,
            tick,
            bar_start_tick: position.bar_start_tick,
            beats_per_bar: position.beats_per_bar,
            beat_type: position.beat_type,
            ticks_per_beat: position.ticks_per_beat,
            beats_per_minute: position.beats_per_minute,
        });
        Self { rolling, frame, bar_beat_tick }
    }

    /// Returns the position to request from the transport.
    #[must_use]
    pub fn position(&self) -> Position {
        let position = Position::at(self.frame);
        let Some(stated) = self.bar_beat_tick else { return position };
        let BarBeatTick { bar, beat, tick, bar_start_tick, .. } = stated;
        let BarBeatTick { beats_per_bar, beat_type, ticks_per_beat, beats_per_minute, .. } = stated;
        Position {
            valid: valid::BBT,
            bar,
            beat,
            tick,
            bar_start_tick,
            beats_per_bar,
            beat_type,
            ticks_per_beat,
            beats_per_minute,
            ..position
        }
    }
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Full name of the output port.
    pub source: String,
    /// Full name of the input port.
    pub destination: String,
}

/// The subject of a property.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// A client, by its name.
    Client(String),
    /// A port, by its full name.
    Port(String),
}

/// A property of a client or a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// Its subject.
    pub owner: Owner,
    /// Its key, usually a URI.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Its MIME type; empty if none was given.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_name: String,
}

/// Why a file could not be read as a state, or not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The file cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// "read" or "write".
        what: &'static str,
        /// The file.
        path: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The file contains no state.
    #[error(
        "{path}: {reason}; name a file that 'consort save' or 'consort run --state' has written"
    )]
    Content {
        /// The file.
        path: String,
        /// What is wrong with its content.
        reason: Box<StateError>,
    },
    /// The text is larger than [`MAX_FILE_BYTES`].
    #[error("a state has at most {MAX_FILE_BYTES} bytes")]
    TooLarge,
    /// The text is not JSON, or not the JSON of a state.
    #[error("this is not a state of consort's: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The state was written by another release.
    #[error("this state is of version {0}, and this consort knows version {VERSION}")]
    Version(u64),
    /// The state contains something that no server accepts.
    #[error("this state is impossible: {0}")]
    Wrong(String),
}

/// Version of the file format. A file of another version is refused.
pub const VERSION: u64 = 1;

const VERSION_KEY: &str = "consort_state";

impl State {
    /// Reads a state, and checks that a server would accept it.
    ///
    /// # Errors
    /// [`StateError`] with the reason.
    pub fn parse(text: &str) -> Result<Self, StateError> {
        use serde::de::Error as _;
        if text.len() > MAX_FILE_BYTES {
            return Err(StateError::TooLarge);
        }
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)?;
        let version = fields.remove(VERSION_KEY).and_then(|version| version.as_u64());
        match version {
            Some(VERSION) => {}
            Some(other) => return Err(StateError::Version(other)),
            None => {
                let missing = format!("its version, a number '{VERSION_KEY}', is missing");
                return Err(serde_json::Error::custom(missing).into());
            }
        }
        let state = Self::deserialize(serde_json::Value::Object(fields))?;
        state.check().map_err(StateError::Wrong)?;
        Ok(state)
    }

    /// Returns the state as a text that [`parse`](Self::parse) reads.
    #[must_use]
    pub fn to_text(&self) -> String {
        #[derive(Serialize)]
        struct Versioned<'a> {
            consort_state: u64,
            #[serde(flatten)]
            state: &'a State,
        }
        // There are only texts and numbers: writing them cannot fail.
        let text = serde_json::to_string_pretty(&Versioned { consort_state: VERSION, state: self });
        text.unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_position() -> Position {
        Position {
            valid: valid::BBT,
            bar: 3,
            beat: 2,
            tick: 480,
            bar_start_tick: 7680.0,
            beats_per_bar: 3.5,
            beat_type: 4.0,
            ticks_per_beat: 1920.0,
            beats_per_minute: 97.3,
            ..Position::at(48_000)
        }
    }

    #[test]
    fn a_position_is_restored_with_bar_beat_and_tempo() {
        for position in [sample_position(), Position::at(5)] {
            assert_eq!(TransportPosition::of(false, &position).position(), position);
        }
        let video = Position {
            valid: valid::VIDEO_RATIO,
            audio_frames_per_video_frame: 1920.0,
            ..Position::at(5)
        };
        assert_eq!(
            TransportPosition::of(false, &video).position(),
            Position::at(5),
            "only bar, beat and tempo are part of a state"
        );
    }

    fn sample() -> State {
        let connection =
            Connection { source: "synth:left".into(), destination: "system:playback_1".into() };
        let property = |owner, type_name: &str| Property {
            owner,
            key: "http://jackaudio.org/metadata/pretty-name".into(),
            value: "Flöte \"1\"".into(),
            type_name: type_name.into(),
        };
        State {
            quantum: Some(256),
            transport: Some(TransportPosition::of(true, &sample_position())),
            connections: vec![connection],
            aliases: [("synth:left".to_owned(), vec!["main".to_owned()])].into(),
            properties: vec![
                property(Owner::Client("synth".into()), "text/plain"),
                property(Owner::Port("synth:left".into()), ""),
            ],
            device_volumes: vec![DeviceVolume {
                device: "headphones".into(),
                volumes: [0.3, 1.5].map(|factor| Gain::new(factor).unwrap()).into(),
                muted: false,
            }],
            stream_volumes: vec![StreamVolume {
                program: "consort play".into(),
                stream: "song.wav".into(),
                volume: Gain::UNITY,
                muted: true,
            }],
        }
    }

    #[test]
    fn a_state_is_written_as_text_and_read_back() {
        for state in [sample(), State::default()] {
            assert_eq!(State::parse(&state.to_text()).unwrap(), state, "{}", state.to_text());
        }
        let text = sample().to_text();
        for part in
            ["\"consort_state\": 1", "\"buffer_size\": 256", "\"source\": \"synth:left\"", "Flöte"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(
            State::parse("{\"consort_state\": 1}").unwrap(),
            State::default(),
            "everything is optional"
        );
    }

    #[test]
    fn an_invalid_state_is_refused_with_the_reason() {
        let long = "x".repeat(320);
        for (text, reason) in [
            ("", "EOF"),
            ("nonsense", "not a state of consort's"),
            ("[]", "not a state of consort's"),
            ("{}", "'consort_state', is missing"),
            ("{\"consort_state\": \"1\"}", "'consort_state', is missing"),
            ("{\"consort_state\": 2, \"more\": true}", "version 2"),
            ("{\"consort_state\": 1, \"bufer_size\": 64}", "bufer_size"),
            ("{\"consort_state\": 1, \"buffer_size\": 0}", "quantum of 0"),
            ("{\"consort_state\": 1, \"buffer_size\": 8193}", "quantum of 8193"),
            ("{\"consort_state\": 1, \"buffer_size\": -1}", "-1"),
            ("{\"consort_state\": 1, \"transport\": {\"frame\": 1}}", "rolling"),
            (
                "{\"consort_state\": 1, \"transport\": {\"rolling\": false, \"frame\": 4294967296}}",
                "4294967296",
            ),
            ("{\"consort_state\": 1, \"connections\": [{\"source\": \"a:b\"}]}", "destination"),
            (
                "{\"consort_state\": 1, \"connections\": [{\"source\": \"a:b\", \"destination\": \"a\\nb\"}]}",
                "control characters",
            ),
            (
                &format!(
                    "{{\"consort_state\": 1, \"connections\": [{{\"source\": \"{long}\", \"destination\": \"a\"}}]}}"
                ),
                "320 bytes",
            ),
            ("{\"consort_state\": 1, \"aliases\": {\"a:b\": [\"1\", \"2\", \"3\"]}}", "3 aliases"),
            ("{\"consort_state\": 1, \"aliases\": {\"a:b\": [\"\"]}}", "empty"),
            (
                "{\"consort_state\": 1, \"properties\": [{\"owner\": {\"mixer\": \"a\"}, \"key\": \"k\", \"value\": \"v\"}]}",
                "mixer",
            ),
            (
                "{\"consort_state\": 1, \"properties\": [{\"owner\": {\"client\": \"a\"}, \"key\": \"\", \"value\": \"v\"}]}",
                "a key and a value",
            ),
            (
                "{\"consort_state\": 1, \"device_volumes\": [{\"device\": \"a\", \"volumes\": []}]}",
                "1 to 32",
            ),
            (
                "{\"consort_state\": 1, \"device_volumes\": [{\"device\": \"\", \"volumes\": [1]}]}",
                "a device's name",
            ),
            (
                "{\"consort_state\": 1, \"stream_volumes\": [{\"program\": \"a\", \"stream\": \"b\", \"volume\": 17}]}",
                "17 is not a gain",
            ),
        ] {
            let refusal = State::parse(text).expect_err(text).to_string();
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }
}
