//! The arguments of modules, in PulseAudio's syntax: `key=value` with spaces in between, where a
//! value may be quoted, and a backslash takes the next character as it is.

use std::ffi::CString;
use std::ops::RangeInclusive;

use convert::{ChannelMap, SampleFormat, Standard};
use pulseaudio::protocol::Props;

use crate::front_end::properties;

/// Longest text, bytes.
const MAX_BYTES: usize = 64 << 10;

/// What a module is given; the values are still escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arguments(Vec<(String, String)>);

/// The samples that arguments describe, as far as they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Samples {
    pub format: Option<SampleFormat>,
    pub rate_hz: Option<u32>,
    pub map: Option<ChannelMap>,
}

impl Arguments {
    /// Reads arguments with these keys.
    ///
    /// # Errors
    /// A reason: the syntax, an unknown key, or one that is there twice.
    pub fn read(text: &str, known: &[&str]) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err("they are too long".into());
        }
        let all = assignments(text).ok_or("they are no key=value pairs")?;
        for (at, (key, _)) in all.iter().enumerate() {
            if !known.contains(&key.as_str()) {
                return Err(format!("there is no argument '{key}': it takes {}", known.join(", ")));
            }
            if all[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(format!("'{key}' is there twice"));
            }
        }
        Ok(Self(all))
    }

    fn raw(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Returns a value.
    pub fn text(&self, key: &str) -> Option<String> {
        self.raw(key).map(unescaped)
    }

    /// Returns a name, if there is one.
    ///
    /// # Errors
    /// It is empty.
    pub fn name(&self, key: &str) -> Result<Option<String>, String> {
        match self.text(key) {
            Some(name) if name.is_empty() => Err(format!("{key} is empty")),
            name => Ok(name),
        }
    }

    /// Returns a number, if there is one.
    ///
    /// # Errors
    /// It is none of these.
    pub fn number(&self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (least, most) = range.into_inner();
        number.map(Some).ok_or_else(|| format!("{key} is '{text}', and takes {least} to {most}"))
    }

    /// Returns a yes or no, if there is one.
    ///
    /// # Errors
    /// It is neither, in PulseAudio's words.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        match &*text.to_ascii_lowercase() {
            "1" | "y" | "t" | "yes" | "true" | "on" => Ok(Some(true)),
            "0" | "n" | "f" | "no" | "false" | "off" => Ok(Some(false)),
            _ => Err(format!("{key} is '{text}', and takes yes or no")),
        }
    }

    /// Sets the properties of a value, in the syntax of PulseAudio's lists of properties: a value
    /// that begins with `hex:` is bytes.
    ///
    /// # Errors
    /// They are no `key=value` pairs.
    pub fn add_properties(&self, key: &str, to: &mut Props) -> Result<(), String> {
        let wrong = || format!("{key} are no key=value pairs");
        for (name, value) in assignments(self.raw(key).unwrap_or_default()).ok_or_else(wrong)? {
            let name = CString::new(name).map_err(|_| wrong())?;
            match value.strip_prefix("hex:") {
                Some(digits) => to.set_bytes(&name, &bytes(digits).ok_or_else(wrong)?),
                None => properties::set(to, &name, &unescaped(&value)),
            }
        }
        properties::limited(to.clone()).map(|_| ()).map_err(|_| format!("{key} are too long"))
    }

    /// Returns the samples that `format`, `rate`, `channels` and `channel_map` describe.
    ///
    /// # Errors
    /// They make no sense.
    pub fn samples(&self) -> Result<Samples, String> {
        let format = self.text("format").map(|name| name.parse::<SampleFormat>());
        let format = format.transpose().map_err(|unknown| unknown.to_string())?;
        let rate_hz = self.number("rate", 1..=convert::MAX_RATE_HZ)?;
        let channels = self.number("channels", 1..=convert::MAX_CHANNELS as u32)?;
        let map = self.map("channel_map")?.or_else(|| {
            channels.and_then(|channels| ChannelMap::extended(Standard::Aiff, channels as usize))
        });
        let counts = (channels, map.map(|map| map.channels() as u32));
        if let (Some(channels), Some(positions)) = counts
            && channels != positions
        {
            return Err(format!("channel_map has {positions} channels, and channels={channels}"));
        }
        Ok(Samples { format, rate_hz, map })
    }

    /// Returns the positions of channels, if there are some.
    ///
    /// # Errors
    /// They are none.
    pub fn map(&self, key: &str) -> Result<Option<ChannelMap>, String> {
        let map = self.text(key).map(|map| map.parse::<ChannelMap>());
        map.transpose().map_err(|invalid| format!("{key}: {invalid}"))
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

/// Reads bytes of two hexadecimal digits each.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulseaudio::protocol::Prop;

    use super::*;

    const KEYS: [&str; 8] =
        ["name", "properties", "format", "rate", "channels", "channel_map", "remix", "other"];

    fn read(text: &str) -> Result<Arguments, String> {
        Arguments::read(text, &KEYS)
    }

    fn properties(text: &str) -> Result<Props, String> {
        let mut props = Props::new();
        properties::set(&mut props, c"device.description", "Null Output");
        read(text)?.add_properties("properties", &mut props).map(|()| props)
    }

    fn description(text: &str) -> Option<String> {
        let props = properties(text).ok()?;
        let text = properties::text(&props, Prop::DeviceDescription)?;
        Some(text.to_string_lossy().into_owned())
    }

    #[test]
    fn arguments_say_what_a_module_is_like() {
        let arguments = read(" name=two rate=22050 channels=1\tformat=u8 remix=No").expect("some");
        assert_eq!(arguments.name("name"), Ok(Some("two".into())));
        assert_eq!(arguments.boolean("remix"), Ok(Some(false)));
        let samples = arguments.samples().expect("samples");
        assert_eq!(samples.format, "u8".parse().ok());
        assert_eq!((samples.rate_hz, samples.map), (Some(22_050), "mono".parse().ok()));
        let samples = read("channel_map=front-left,lfe").and_then(|all| all.samples());
        assert_eq!(samples.map(|samples| samples.map), Ok("front-left,lfe".parse().ok()));
        let plain = read("").expect("none");
        assert_eq!((plain.name("name"), plain.boolean("remix")), (Ok(None), Ok(None)));
        let nothing = Samples { format: None, rate_hz: None, map: None };
        assert_eq!(plain.samples(), Ok(nothing));
    }

    /// Those that PulseAudio 16.1 takes.
    #[test]
    fn values_are_quoted_and_escaped_as_in_pulseaudio() {
        assert_eq!(description("").as_deref(), Some("Null Output"));
        for (text, expected) in [
            ("properties=device.description=Hello", "Hello"),
            (r#"properties="device.description='Two Words' a.b=c""#, "Two Words"),
            (r#"properties='device.description="Two Words"'"#, "Two Words"),
            (r"properties=device.description=Two\ Words", "Two Words"),
            ("properties=device.description=hex:48656C6c6f00", "Hello"),
        ] {
            assert_eq!(description(text).as_deref(), Some(expected), "{text}");
        }
        let name = |text| read(text).and_then(|all| all.name("name"));
        assert_eq!(name("name=\"a b\""), Ok(Some("a b".into())));
        assert_eq!(name("name=unbalanced\""), Ok(Some("unbalanced\"".into())));
    }

    #[test]
    fn a_property_in_hexadecimal_digits_is_bytes() {
        let props = properties("properties='a=hex:00ff7f b=text'").expect("properties");
        let value = |key: &std::ffi::CStr| {
            props
                .iter()
                .find(|(known, _)| known.to_bytes() == key.to_bytes())
                .map(|(_, value)| &**value)
        };
        assert_eq!(value(c"a"), Some(&[0, 0xff, 0x7f][..]));
        assert_eq!(value(c"b"), Some(&b"text\0"[..]));
        for wrong in ["a=hex:0", "a=hex:0g", "a=hex:é0"] {
            assert!(properties(&format!("properties={wrong}")).is_err(), "{wrong}");
        }
    }

    /// Those that PulseAudio 16.1 refuses.
    #[test]
    fn arguments_that_make_no_sense_are_refused() {
        for (text, reason) in [
            ("bogus=1", "there is no argument 'bogus'"),
            ("rate=0", "rate is '0'"),
            ("rate=abc", "rate is 'abc'"),
            ("rate=768001", "rate is '768001'"),
            ("format=xx", "xx"),
            ("channels=99", "channels is '99'"),
            ("channels=0", "channels is '0'"),
            ("channels=2 channel_map=mono", "channel_map has 1 channels, and channels=2"),
            ("channel_map=left,bogus", "channel_map: unknown channel position"),
            ("name=bad name", "no key=value pairs"),
            ("name=", "name is empty"),
            ("name=a name=b", "'name' is there twice"),
            ("name=\"a", "no key=value pairs"),
            ("properties=x", "properties are no key=value pairs"),
            (r#"properties="device.description=\"Two Words\" a.b=c""#, "properties are no"),
            ("=x", "no key=value pairs"),
            ("remix=perhaps", "remix is 'perhaps'"),
        ] {
            let read = read(text).and_then(|all| {
                all.name("name")?;
                all.boolean("remix")?;
                all.samples()?;
                all.add_properties("properties", &mut Props::new())
            });
            let refused = read.expect_err(text);
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_arguments_or_refused(text in "[ =\"'a-z_\\\\é.:]{0,60}") {
            let _ = read(&text);
            let _ = properties(&format!("properties={text}"));
        }

        #[test]
        fn any_name_is_read_as_it_was_quoted(name in "[^\0]{1,30}") {
            let quoted: String =
                name.chars().flat_map(|letter| ['\\', letter]).collect();
            let arguments = read(&format!("name=\"{quoted}\" rate=8000"));
            prop_assert_eq!(arguments.and_then(|all| all.name("name")), Ok(Some(name)));
        }
    }
}
