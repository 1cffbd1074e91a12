//! What the extensions of PulseAudio's modules are asked, and what they answer.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, CommandTag, DESCRIPTOR_SIZE, FormatInfo, TagStructReader,
    TagStructWriter,
};

use super::packet::NO_ANSWER;

/// Most entries of one request.
pub(super) const MAX_ENTRIES: usize = 256;

/// What is asked of the module that remembers streams.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AboutStreams {
    Test,
    Read,
    Write {
        /// What becomes of what is remembered already.
        mode: WriteMode,
        /// Streams that play now get it, too.
        is_applied: bool,
        entries: Vec<RememberedStream>,
    },
    Delete(Vec<CString>),
    Subscribe(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Everything else is forgotten.
    Set,
    /// What is remembered of a name stays.
    Merge,
    /// It is replaced.
    Replace,
}

/// What is remembered of the streams of a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RememberedStream {
    pub name: CString,
    /// As many channels as volumes; without any, no volume is remembered.
    pub map: ChannelMap,
    pub volume: ChannelVolume,
    pub device: Option<CString>,
    pub is_muted: bool,
}

/// What is asked of the module that remembers devices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AboutDevices {
    Test,
    Subscribe,
    ReadAllFormats,
    ReadFormats { is_sink: bool, index: u32 },
    SaveFormats { is_sink: bool, index: u32, formats: Vec<FormatInfo> },
}

impl AboutStreams {
    /// Reads what follows the name of the module; `None` if it makes no sense.
    pub fn read(mut bytes: &[u8], version: u16) -> Option<Self> {
        let rest = &mut bytes;
        let asked = match word(rest, version)? {
            0 => Self::Test,
            1 => Self::Read,
            2 => {
                let mode = match word(rest, version)? {
                    0 => WriteMode::Set,
                    1 => WriteMode::Merge,
                    2 => WriteMode::Replace,
                    _ => return None,
                };
                let is_applied = flag(rest, version)?;
                let mut entries = Vec::new();
                while !rest.is_empty() && entries.len() < MAX_ENTRIES {
                    entries.push(RememberedStream::read(rest, version)?);
                }
                Self::Write { mode, is_applied, entries }
            }
            3 => {
                let mut names = Vec::new();
                while !rest.is_empty() && names.len() < MAX_ENTRIES {
                    names.push(string(rest, version)??);
                }
                Self::Delete(names)
            }
            4 => Self::Subscribe(flag(rest, version)?),
            _ => return None,
        };
        rest.is_empty().then_some(asked)
    }
}

impl RememberedStream {
    fn read(rest: &mut &[u8], version: u16) -> Option<Self> {
        let name = string(rest, version)?.filter(|name| !name.is_empty())?;
        let map: ChannelMap = TagStructReader::new(rest, version).read().ok()?;
        let volume = volumes(rest, version)?;
        let device = string(rest, version)?.filter(|device| !device.is_empty());
        let is_muted = flag(rest, version)?;
        let fits = volume.channels().is_empty()
            || volume.channels().len() == usize::from(map.num_channels());
        fits.then_some(Self { name, map, volume, device, is_muted })
    }
}

impl AboutDevices {
    /// Reads what follows the name of the module; `None` if it makes no sense.
    pub fn read(mut bytes: &[u8], version: u16) -> Option<Self> {
        let rest = &mut bytes;
        let asked = match word(rest, version)? {
            0 => Self::Test,
            1 => {
                flag(rest, version)?;
                Self::Subscribe
            }
            3 => Self::ReadAllFormats,
            4 => {
                let (is_sink, index) = device(rest, version)?;
                Self::ReadFormats { is_sink, index }
            }
            5 => {
                let (is_sink, index) = device(rest, version)?;
                let count = TagStructReader::new(rest, version).read_u8().ok()?;
                let read = |_| TagStructReader::new(rest, version).read().ok();
                let formats = (0..count).map(read).collect::<Option<_>>()?;
                Self::SaveFormats { is_sink, index, formats }
            }
            _ => return None,
        };
        rest.is_empty().then_some(asked)
    }
}

/// Returns the bytes of an answer with these values.
pub(crate) fn reply(tag: u32, version: u16, values: &Values<'_>) -> Vec<u8> {
    packet(CommandTag::Reply, tag, version, values)
}

/// Returns the bytes of the event that what is remembered of streams has changed.
pub(crate) fn streams_changed(module: &CStr, version: u16) -> Vec<u8> {
    const CHANGED: u32 = 5;
    packet(CommandTag::Extension, NO_ANSWER, version, &|values| {
        let _ = values.write_u32(u32::MAX);
        let _ = values.write_string(Some(module));
        let _ = values.write_u32(CHANGED);
    })
}

/// Writes values, which a vector always takes.
pub(crate) type Values<'a> = dyn Fn(&mut TagStructWriter<'_>) + 'a;

/// Writes what is remembered of the streams of a name.
pub(crate) fn write_remembered(values: &mut TagStructWriter<'_>, remembered: &RememberedStream) {
    let RememberedStream { name, map, volume, device, is_muted } = remembered;
    let _ = values.write_string(Some(name));
    let _ = values.write(*map);
    let _ = values.write(*volume);
    let _ = values.write_string(device.as_ref());
    let _ = values.write_bool(*is_muted);
}

pub(super) fn packet(command: CommandTag, tag: u32, version: u16, values: &Values<'_>) -> Vec<u8> {
    let mut bytes = vec![0; DESCRIPTOR_SIZE];
    let mut writer = TagStructWriter::new(&mut bytes, version);
    let _ = writer.write_u32(command as u32);
    let _ = writer.write_u32(tag);
    values(&mut writer);
    let length = (bytes.len() - DESCRIPTOR_SIZE) as u32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    bytes
}

fn device(rest: &mut &[u8], version: u16) -> Option<(bool, u32)> {
    let is_sink = match word(rest, version)? {
        0 => true,
        1 => false,
        _ => return None,
    };
    Some((is_sink, word(rest, version)?))
}

pub(super) fn word(rest: &mut &[u8], version: u16) -> Option<u32> {
    TagStructReader::new(rest, version).read_u32().ok()
}

pub(super) fn flag(rest: &mut &[u8], version: u16) -> Option<bool> {
    TagStructReader::new(rest, version).read_bool().ok()
}

pub(super) fn string(rest: &mut &[u8], version: u16) -> Option<Option<CString>> {
    TagStructReader::new(rest, version).read_string().ok()
}

/// Reads volumes; there may be none, which the codec refuses.
fn volumes(rest: &mut &[u8], version: u16) -> Option<ChannelVolume> {
    if let [b'v', 0, after @ ..] = rest {
        *rest = after;
        return Some(ChannelVolume::empty());
    }
    TagStructReader::new(rest, version).read().ok()
}

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::MAX_VERSION;

    use super::*;

    fn read(bytes: &[u8]) -> Option<AboutStreams> {
        AboutStreams::read(bytes, MAX_VERSION)
    }

    #[test]
    fn each_request_about_streams_is_read() {
        assert_eq!(read(b"L\0\0\0\0"), Some(AboutStreams::Test));
        assert_eq!(read(b"L\0\0\0\x01"), Some(AboutStreams::Read));
        assert_eq!(read(b"L\0\0\0\x041"), Some(AboutStreams::Subscribe(true)));
        let names = AboutStreams::Delete(vec![c"a".into(), c"b".into()]);
        assert_eq!(read(b"L\0\0\0\x03ta\0tb\0"), Some(names));
        let written = b"L\0\0\0\x02L\0\0\0\x021ta\0m\x01\0v\x01\0\x01\0\0thead\0\x30tb\0m\0v\0N1";
        let mut volume = ChannelVolume::empty();
        volume.push(pulseaudio::protocol::Volume::NORM);
        let entries = vec![
            RememberedStream {
                name: c"a".into(),
                map: ChannelMap::mono(),
                volume,
                device: Some(c"head".into()),
                is_muted: false,
            },
            RememberedStream {
                name: c"b".into(),
                map: ChannelMap::empty(),
                volume: ChannelVolume::empty(),
                device: None,
                is_muted: true,
            },
        ];
        let (mode, is_applied) = (WriteMode::Replace, true);
        assert_eq!(read(written), Some(AboutStreams::Write { mode, is_applied, entries }));
    }

    #[test]
    fn a_request_that_makes_no_sense_is_none() {
        for bytes in [
            &b""[..],
            b"L\0\0\0\x05",
            b"L\0\0\0\0L\0\0\0\0",
            b"L\0\0\0\x02L\0\0\0\x031",
            b"L\0\0\0\x02L\0\0\0\x021t\0m\x01\0v\x01\0\x01\0\0N0",
            b"L\0\0\0\x02L\0\0\0\x021ta\0m\x01\0v\x02\0\x01\0\0\0\x01\0\0N0",
            b"L\0\0\0\x02L\0\0\0\x021ta\0m\x01\xff",
            b"L\0\0\0\x03N",
        ] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
        for bytes in [&b"L\0\0\0\x02"[..], b"L\0\0\0\x04L\0\0\0\x02L\0\0\0\0", b"L\0\0\0\x05"] {
            assert_eq!(AboutDevices::read(bytes, MAX_VERSION), None, "{bytes:?}");
        }
    }

    #[test]
    fn an_answer_has_the_length_of_its_values() {
        let bytes = reply(7, MAX_VERSION, &|values| {
            let _ = values.write_u32(1);
        });
        assert_eq!(
            bytes[..20],
            [0, 0, 0, 15, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(bytes[20..], *b"L\0\0\0\x02L\0\0\0\x07L\0\0\0\x01");
    }
}
