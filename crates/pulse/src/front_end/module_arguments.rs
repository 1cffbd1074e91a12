//! The arguments of modules, in PulseAudio's syntax: `key=value` with spaces in between, where a
//! value may be quoted, and a backslash takes the next character as it is.

use std::ffi::CString;

use convert::{ChannelMap, SampleFormat, Standard};
use pulseaudio::protocol::Props;

use super::properties;

/// The keys of `module-null-sink`. The formats of programs' streams, and rewinding, are the
/// server's own concern.
const KEYS: [&str; 8] = [
    "sink_name",
    "sink_properties",
    "format",
    "rate",
    "channels",
    "channel_map",
    "formats",
    "norewinds",
];
const DEFAULT_NAME: &str = "null";
const DEFAULT_DESCRIPTION: &str = "Null Output";

/// What `module-null-sink` is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NullSink {
    pub name: String,
    pub props: Props,
    /// `None`: that of the server's device.
    pub rate_hz: Option<u32>,
    /// Likewise.
    pub map: Option<ChannelMap>,
}

impl NullSink {
    /// Reads arguments; `None` if they make no sense.
    pub fn read(text: &str) -> Option<Self> {
        let arguments = assignments(text)?;
        let mut keys: Vec<&str> = arguments.iter().map(|(key, _)| key.as_str()).collect();
        keys.sort_unstable();
        let is_repeated = keys.windows(2).any(|two| two[0] == two[1]);
        if is_repeated || keys.iter().any(|key| !KEYS.contains(key)) {
            return None;
        }
        let raw = |key: &str| {
            arguments.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
        };
        let value = |key: &str| raw(key).map(unescaped);
        let name = value("sink_name").unwrap_or_else(|| DEFAULT_NAME.into());
        if let Some(format) = value("format") {
            // Its samples are the server's; a name of none is refused all the same.
            format.parse::<SampleFormat>().ok()?;
        }
        let rate_hz = match value("rate") {
            Some(rate) => {
                Some(rate.parse().ok().filter(|hz| (1..=convert::MAX_RATE_HZ).contains(hz))?)
            }
            None => None,
        };
        let mut props = Props::new();
        properties::set(&mut props, c"device.description", DEFAULT_DESCRIPTION);
        for (key, value) in assignments(raw("sink_properties").unwrap_or_default())? {
            properties::set(&mut props, &CString::new(key).ok()?, &unescaped(&value));
        }
        let map = map(value("channels").as_deref(), value("channel_map").as_deref())?;
        (!name.is_empty()).then_some(Self { name, props, rate_hz, map })
    }
}

/// Returns the map that both describe: `Some(None)` if neither is given, `None` if they are wrong.
fn map(channels: Option<&str>, map: Option<&str>) -> Option<Option<ChannelMap>> {
    let channels: Option<usize> = match channels {
        Some(channels) => Some(channels.parse().ok()?),
        None => None,
    };
    let map: Option<ChannelMap> = match map {
        Some(map) => Some(map.parse().ok()?),
        None => None,
    };
    match (channels, map) {
        (Some(channels), Some(map)) => (map.channels() == channels).then_some(Some(map)),
        (Some(channels), None) => ChannelMap::extended(Standard::Aiff, channels).map(Some),
        (None, map) => Some(map),
    }
}

/// Splits a text into keys and values, which are still escaped; `None` if it is none of such.
fn assignments(text: &str) -> Option<Vec<(String, String)>> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        if key.is_empty() || key.contains(|letter: char| !letter.is_ascii_graphic()) {
            return None;
        }
        let (value, after) = match after.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let after = &after[quote.len_utf8()..];
                let end = end_of(after, |letter| letter == quote)?;
                (&after[..end], &after[end + quote.len_utf8()..])
            }
            _ => {
                let end = end_of(after, char::is_whitespace).unwrap_or(after.len());
                (&after[..end], &after[end..])
            }
        };
        all.push((key.to_owned(), value.to_owned()));
        rest = after.trim_start();
    }
    Some(all)
}

/// Returns where the first character is that ends a value, and is not escaped.
fn end_of(text: &str, ends: impl Fn(char) -> bool) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        if !is_escaped && ends(letter) {
            return Some(at);
        }
        is_escaped = !is_escaped && letter == '\\';
    }
    None
}

/// Takes what follows a backslash as it is.
fn unescaped(value: &str) -> String {
    let mut letters = value.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulseaudio::protocol::Prop;

    use super::*;

    fn description(text: &str) -> Option<String> {
        let sink = NullSink::read(text)?;
        let text = properties::text(&sink.props, Prop::DeviceDescription)?;
        Some(text.to_string_lossy().into_owned())
    }

    #[test]
    fn arguments_say_what_a_sink_is_like() {
        let sink = NullSink::read(" sink_name=two rate=22050 channels=1\tformat=u8").expect("one");
        assert_eq!((sink.name.as_str(), sink.rate_hz), ("two", Some(22_050)));
        assert_eq!(sink.map.map(|map| map.channels()), Some(1));
        let sink = NullSink::read("channel_map=front-left,lfe formats=pcm").expect("one");
        assert_eq!(sink.map, "front-left,lfe".parse().ok());
        let plain = NullSink::read("").expect("one");
        assert_eq!((plain.name.as_str(), plain.rate_hz, plain.map), ("null", None, None));
    }

    /// Those that PulseAudio 16.1 takes.
    #[test]
    fn values_are_quoted_and_escaped_as_in_pulseaudio() {
        assert_eq!(description("").as_deref(), Some("Null Output"));
        for (text, expected) in [
            ("sink_properties=device.description=Hello", "Hello"),
            (r#"sink_properties="device.description='Two Words' a.b=c""#, "Two Words"),
            (r#"sink_properties='device.description="Two Words"'"#, "Two Words"),
            (r"sink_properties=device.description=Two\ Words", "Two Words"),
        ] {
            assert_eq!(description(text).as_deref(), Some(expected), "{text}");
        }
        let name = |text| NullSink::read(text).map(|sink| sink.name);
        assert_eq!(name("sink_name=\"a b\"").as_deref(), Some("a b"));
        assert_eq!(name("sink_name=unbalanced\"").as_deref(), Some("unbalanced\""));
    }

    /// Those that PulseAudio 16.1 refuses.
    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        for text in [
            "bogus=1",
            "rate=0",
            "rate=abc",
            "rate=768001",
            "format=xx",
            "channels=99",
            "channels=0",
            "channels=2 channel_map=mono",
            "channel_map=left,bogus",
            "sink_name=bad name",
            "sink_name=",
            "sink_name=a sink_name=b",
            "sink_name=\"a",
            "sink_properties=x",
            r#"sink_properties="device.description=\"Two Words\" a.b=c""#,
            "=x",
        ] {
            assert_eq!(NullSink::read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_arguments_or_refused(text in "[ =\"'a-z_\\\\é.]{0,60}") {
            let _ = NullSink::read(&text);
        }

        #[test]
        fn any_name_is_read_as_it_was_quoted(name in "[^\0]{1,30}") {
            let quoted: String =
                name.chars().flat_map(|letter| ['\\', letter]).collect();
            let sink = NullSink::read(&format!("sink_name=\"{quoted}\" rate=8000"));
            prop_assert_eq!(sink.map(|sink| sink.name), Some(name));
        }
    }
}
