//! What streams and devices had last, and which devices are the default, as one readable text.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::MAX_VOLUME;
use crate::defaults::Defaults;
use crate::known::{KnownDevice, KnownDevices};
use crate::table::{MAX_NAME_BYTES, Table};

/// The version of a text without known devices, which every consort reads.
const FIRST_VERSION: u32 = 1;
/// The version of one with them: a consort that knows none would lose them, and leaves it alone.
const VERSION: u32 = 2;
/// Most channels of volumes.
const MAX_CHANNELS: usize = 32;

/// A volume for each position of a channel, in PulseAudio's steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Volumes(BTreeMap<String, u32>);

impl Volumes {
    /// Takes the volume of each channel, by the name of its position. Channels of the same position
    /// get the mean of theirs, and volumes above [`MAX_VOLUME`] are that.
    pub fn of<'a>(channels: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let mut all: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for (position, volume) in channels {
            all.entry(position).or_default().push(volume.min(MAX_VOLUME));
        }
        let mean = all.into_iter().map(|(position, of)| (position.to_owned(), mean(of.iter())));
        Self(mean.take(MAX_CHANNELS).collect())
    }

    /// Returns the volume of a channel: that of its position, or else the mean of all.
    #[must_use]
    pub fn at(&self, position: &str) -> u32 {
        self.0.get(position).copied().unwrap_or_else(|| mean(self.0.values()))
    }

    /// Returns whether there is no channel.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the names of all positions, and the volumes there.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(position, volume)| (position.as_str(), *volume))
    }
}

/// The position to which a volume of all channels belongs.
const ALL: &str = "mono";

fn one_or_each<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Volumes, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrEach {
        One(u32),
        Each(Volumes),
    }
    Ok(match OneOrEach::deserialize(deserializer)? {
        OneOrEach::One(volume) => Volumes::of([(ALL, volume)]),
        OneOrEach::Each(volumes) => volumes,
    })
}

fn mean<'a>(volumes: impl ExactSizeIterator<Item = &'a u32>) -> u32 {
    let count = volumes.len() as u64;
    let sum: u64 = volumes.map(|volume| u64::from(*volume)).sum();
    sum.checked_div(count).unwrap_or(0) as u32
}

/// What the streams of one name had last. What is `None`, nobody has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEntry {
    /// Volume of each channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<Volumes>,
    /// Whether it was muted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub muted: Option<bool>,
    /// The sink, or source, to which a user has moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// What a device had last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEntry {
    /// Volume of each channel. Older files have one number for all.
    #[serde(deserialize_with = "one_or_each")]
    pub volume: Volumes,
    /// Whether it was muted.
    pub muted: bool,
    /// Whether a card's mixer had a part in the volume. In older texts, none had.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixer: bool,
}

/// Everything that is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    streams: Table<StreamEntry>,
    devices: Table<DeviceEntry>,
    default_sinks: Defaults,
    default_source: Option<String>,
    known_devices: KnownDevices,
}

/// A text that is no memory.
#[derive(Debug, thiserror::Error)]
pub enum Damaged {
    /// It is not JSON, or has other members.
    #[error("{0}")]
    Content(#[from] serde_json::Error),
    /// A later version of consort has written it.
    #[error("it is of version {0}, which only a later consort can read")]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    consort_desktop: u32,
    #[serde(default)]
    streams: Vec<Named<StreamEntry>>,
    #[serde(default)]
    devices: Vec<Named<DeviceEntry>>,
    /// The latest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    default_sinks: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_source: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    known_devices: Vec<Named<KnownDevice>>,
}

#[derive(Serialize, Deserialize)]
struct Named<E> {
    name: String,
    #[serde(flatten)]
    entry: E,
}

impl Memory {
    /// Reads what [`to_text`](Self::to_text) has written.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn parse(text: &str) -> Result<Self, Damaged> {
        #[derive(Deserialize)]
        struct Version {
            consort_desktop: u32,
        }
        let Version { consort_desktop } = serde_json::from_str(text)?;
        if consort_desktop > VERSION {
            return Err(Damaged::Version(consort_desktop));
        }
        let text: Text = serde_json::from_str(text)?;
        let mut memory = Self::default();
        for Named { name, mut entry } in text.streams {
            let volume = entry.volume.take();
            entry.volume = volume.map(|volume| Volumes::of(volume.iter()));
            memory.set_stream(&name, entry);
        }
        for Named { name, entry } in text.devices {
            let volume = Volumes::of(entry.volume.iter());
            memory.set_device(&name, DeviceEntry { volume, ..entry });
        }
        for Named { name, entry } in text.known_devices {
            memory.known_devices.insert(&name, entry);
        }
        memory.default_sinks =
            Defaults::of(text.default_sinks.into_iter().filter(|name| is_name(name)));
        memory.default_source = text.default_source.filter(|name| is_name(name));
        Ok(memory)
    }

    /// Returns it as a text that a user can read.
    #[must_use]
    pub fn to_text(&self) -> String {
        let known_devices = named(self.known_devices.iter());
        let text = Text {
            consort_desktop: if known_devices.is_empty() { FIRST_VERSION } else { VERSION },
            streams: named(self.streams.iter()),
            devices: named(self.devices.iter()),
            default_sinks: self.default_sinks.chosen().to_vec(),
            default_source: self.default_source.clone(),
            known_devices,
        };
        // Names and numbers: nothing here can fail.
        let mut text = serde_json::to_string_pretty(&text).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Returns what the streams of a name had last.
    #[must_use]
    pub fn stream(&self, key: &str) -> Option<&StreamEntry> {
        self.streams.get(key)
    }

    /// Remembers what the streams of a name have; returns whether that is something new. Volumes
    /// without a channel are none, and neither is a device of a longer name than any.
    pub fn set_stream(&mut self, key: &str, mut entry: StreamEntry) -> bool {
        entry.volume = entry.volume.filter(|volume| !volume.is_empty());
        entry.device = entry.device.filter(|device| device.len() <= MAX_NAME_BYTES);
        self.streams.set(key, entry)
    }

    /// Forgets the streams of a name; returns whether they were known.
    pub fn forget_stream(&mut self, key: &str) -> bool {
        self.streams.remove(key)
    }

    /// Forgets all streams; returns whether there were some.
    pub fn forget_streams(&mut self) -> bool {
        self.streams.clear()
    }

    /// Returns what is remembered of streams, what was changed last at the end.
    pub fn streams(&self) -> impl Iterator<Item = (&str, &StreamEntry)> {
        self.streams.iter()
    }

    /// Returns what a device had last.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<&DeviceEntry> {
        self.devices.get(name)
    }

    /// Remembers what a device has; returns whether that is something new. A volume without a
    /// channel is none.
    pub fn set_device(&mut self, name: &str, entry: DeviceEntry) -> bool {
        !entry.volume.is_empty() && self.devices.set(name, entry)
    }

    /// Returns the sinks that were made the default.
    #[must_use]
    pub fn default_sinks(&self) -> &Defaults {
        &self.default_sinks
    }

    /// A sink is made the default; returns whether that is something new.
    pub fn choose_sink(&mut self, name: &str) -> bool {
        is_name(name) && self.default_sinks.choose(name)
    }

    /// Returns the source that was made the default last.
    #[must_use]
    pub fn default_source(&self) -> Option<&str> {
        self.default_source.as_deref()
    }

    /// A source is made the default; returns whether that is something new.
    pub fn choose_source(&mut self, name: &str) -> bool {
        let is_new = is_name(name) && self.default_source.as_deref() != Some(name);
        if is_new {
            self.default_source = Some(name.to_owned());
        }
        is_new
    }

    /// Returns the devices that were seen, with their names and their order.
    #[must_use]
    pub fn known_devices(&self) -> &KnownDevices {
        &self.known_devices
    }

    /// The same, to be changed.
    pub fn known_devices_mut(&mut self) -> &mut KnownDevices {
        &mut self.known_devices
    }
}

/// Returns whether a device may be remembered by this name.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES
}

fn named<'a, E: Clone + 'a>(entries: impl Iterator<Item = (&'a str, &'a E)>) -> Vec<Named<E>> {
    entries.map(|(name, entry)| Named { name: name.to_owned(), entry: entry.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Direction;

    #[test]
    fn the_text_is_one_that_users_can_read() {
        let mut memory = Memory::default();
        let entry = StreamEntry {
            volume: Some(Volumes::of([("front-right", 65_536), ("front-left", 32_768)])),
            muted: Some(false),
            device: Some("headset".into()),
        };
        memory.set_stream("sink-input-by-application-name:mpv", entry);
        let volume = Volumes::of([("front-left", 52_429), ("front-right", 26_214)]);
        memory.set_device("consort", DeviceEntry { volume, muted: true, mixer: false });
        assert!(memory.choose_sink("consort") && memory.choose_sink("headset"));
        assert!(memory.choose_source("consort.monitor"));
        let text = r#"{
  "consort_desktop": 1,
  "streams": [
    {
      "name": "sink-input-by-application-name:mpv",
      "volume": {
        "front-left": 32768,
        "front-right": 65536
      },
      "muted": false,
      "device": "headset"
    }
  ],
  "devices": [
    {
      "name": "consort",
      "volume": {
        "front-left": 52429,
        "front-right": 26214
      },
      "muted": true
    }
  ],
  "default_sinks": [
    "headset",
    "consort"
  ],
  "default_source": "consort.monitor"
}
"#;
        assert_eq!(memory.to_text(), text);
        assert_eq!(Memory::parse(text).expect("a memory"), memory);
    }

    #[test]
    fn known_devices_are_read_again_and_no_older_consort_reads_them() {
        let mut memory = Memory::default();
        let devices = memory.known_devices_mut();
        assert!(devices.see(Direction::Playback, "usb", "A card", "audio-card"));
        assert!(devices.see(Direction::Recording, "usb.capture", "A card", ""));
        assert!(devices.rename("sink:usb", "Kitchen"));
        let text = memory.to_text();
        assert!(text.starts_with("{\n  \"consort_desktop\": 2,"), "{text}");
        let shown = r#"
      "name": "sink:usb",
      "description": "Kitchen",
      "renamed": true,
      "icon": "audio-card",
      "ranks": {
        "none": 1,
        "video": 1,
"#;
        assert!(text.contains(shown), "{text}");
        assert_eq!(Memory::parse(&text).expect("a memory"), memory);
        for key in ["sink:usb", "source:usb.capture"] {
            assert!(memory.known_devices_mut().forget(key));
        }
        assert!(memory.to_text().contains("\"consort_desktop\": 1,"), "as it was before");
    }

    #[test]
    fn one_volume_of_a_device_is_that_of_all_of_its_channels() {
        let text = r#"{"consort_desktop": 1, "devices": [
            {"name": "old", "volume": 52429, "muted": false},
            {"name": "loud", "volume": {"front-left": 4294967295}, "muted": false},
            {"name": "none", "volume": {}, "muted": true}
        ]}"#;
        let memory = Memory::parse(text).expect("a memory");
        let of = |name: &str| memory.device(name).map(|entry| entry.volume.clone());
        let old = of("old").expect("it is known");
        assert_eq!(["front-left", "front-right"].map(|at| old.at(at)), [52_429; 2]);
        assert_eq!(of("loud").map(|loud| loud.at("front-left")), Some(MAX_VOLUME));
        assert_eq!(of("none"), None);
    }

    #[test]
    fn a_text_without_defaults_is_one_in_which_nobody_has_chosen_them() {
        let memory = Memory::parse("{\"consort_desktop\": 1}").expect("a memory");
        assert_eq!(memory, Memory::default());
        assert!(!memory.to_text().contains("default"));
    }

    #[test]
    fn a_default_of_an_empty_or_a_longer_name_than_any_is_none() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        let mut memory = Memory::default();
        for name in ["", &long] {
            assert!(!memory.choose_sink(name) && !memory.choose_source(name));
            let text = format!(
                "{{\"consort_desktop\": 1, \"default_sinks\": [\"{name}\", \"a\"], \
                 \"default_source\": \"{name}\"}}"
            );
            let read = Memory::parse(&text).expect("a memory");
            assert_eq!(
                (read.default_sinks().chosen(), read.default_source()),
                (&["a".into()][..], None)
            );
        }
        assert!(memory.choose_source("a") && !memory.choose_source("a"));
    }

    #[test]
    fn a_text_that_is_no_memory_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "EOF"),
            ("{\"consort_desktop\": 1, \"streams\": [{\"name\": 1}]}", "line 1 column"),
            ("{\"consort_desktop\": 1, \"more\": 1}", "more"),
            ("{\"consort_desktop\": 3, \"more\": 1}", "version 3"),
            ("{}", "consort_desktop"),
        ] {
            let refusal = Memory::parse(text).expect_err(text).to_string();
            assert!(refusal.contains(reason), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_channel_without_a_volume_has_the_mean() {
        let volumes = Volumes::of([("front-left", 100), ("front-right", 201)]);
        assert_eq!(["front-left", "front-right", "mono"].map(|at| volumes.at(at)), [100, 201, 150]);
        assert_eq!(Volumes::default().at("mono"), 0);
        let twice = Volumes::of([("mono", 100), ("mono", 300)]);
        assert_eq!(twice.at("mono"), 200);
    }
}
