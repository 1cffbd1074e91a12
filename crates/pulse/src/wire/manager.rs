//! What the extension of PulseAudio's `module-device-manager` is asked, and what it answers.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::{CommandTag, TagStructWriter};

use super::extension::{MAX_ENTRIES, flag, packet, string, word};
use super::packet::NO_ANSWER;

/// What is asked of the module that keeps track of devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AboutManager {
    Test,
    Read,
    /// A device gets a name for users.
    Rename {
        device: CString,
        description: CString,
    },
    /// Devices are forgotten.
    Delete(Vec<CString>),
    /// Whether streams get the device that comes first for their role.
    Route(bool),
    /// These devices come first for a role, in this order.
    Reorder {
        role: CString,
        devices: Vec<CString>,
    },
    Subscribe(bool),
}

/// What is known of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedDevice {
    pub name: CString,
    pub description: CString,
    pub icon: Option<CString>,
    /// `None`: it is not there.
    pub index: Option<u32>,
    /// Its place among all of its kind, for each role.
    pub ranks: Vec<(CString, u32)>,
}

impl AboutManager {
    /// Reads what follows the name of the module; `None` if it makes no sense.
    pub fn read(mut bytes: &[u8], version: u16) -> Option<Self> {
        let rest = &mut bytes;
        let asked = match word(rest, version)? {
            0 => Self::Test,
            1 => Self::Read,
            2 => Self::Rename { device: name(rest, version)?, description: name(rest, version)? },
            3 => {
                let mut names = Vec::new();
                while !rest.is_empty() && names.len() < MAX_ENTRIES {
                    names.push(string(rest, version)??);
                }
                Self::Delete(names)
            }
            4 => Self::Route(flag(rest, version)?),
            5 => {
                let role = name(rest, version)?;
                let count = word(rest, version)? as usize;
                let count = Some(count).filter(|count| (1..=MAX_ENTRIES).contains(count))?;
                let devices = (0..count).map(|_| name(rest, version)).collect::<Option<_>>()?;
                Self::Reorder { role, devices }
            }
            6 => Self::Subscribe(flag(rest, version)?),
            _ => return None,
        };
        rest.is_empty().then_some(asked)
    }

    /// Returns whether it changes what all programs see.
    pub fn changes(&self) -> bool {
        match self {
            Self::Test | Self::Read | Self::Subscribe(_) => false,
            Self::Rename { .. } | Self::Delete(_) | Self::Route(_) | Self::Reorder { .. } => true,
        }
    }
}

fn name(rest: &mut &[u8], version: u16) -> Option<CString> {
    string(rest, version)?.filter(|name| !name.is_empty())
}

/// Writes what is known of a device.
pub(crate) fn write_listed(values: &mut TagStructWriter<'_>, device: &ListedDevice) {
    let ListedDevice { name, description, icon, index, ranks } = device;
    let _ = values.write_string(Some(name));
    let _ = values.write_string(Some(description));
    let _ = values.write_string(icon.as_ref());
    let _ = values.write_u32(index.unwrap_or(u32::MAX));
    let _ = values.write_u32(ranks.len() as u32);
    for (role, rank) in ranks {
        let _ = values.write_string(Some(role));
        let _ = values.write_u32(*rank);
    }
}

/// Returns the bytes of the event that something has changed, by the module of this index.
pub(crate) fn devices_changed(index: u32, module: &CStr, version: u16) -> Vec<u8> {
    const CHANGED: u32 = 7;
    packet(CommandTag::Extension, NO_ANSWER, version, &|values| {
        let _ = values.write_u32(index);
        let _ = values.write_string(Some(module));
        let _ = values.write_u32(CHANGED);
    })
}

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::MAX_VERSION;

    use super::*;

    fn read(bytes: &[u8]) -> Option<AboutManager> {
        AboutManager::read(bytes, MAX_VERSION)
    }

    #[test]
    fn each_request_about_known_devices_is_read() {
        let (device, description) = (c"sink:a".into(), c"Kitchen".into());
        let devices = || vec![c"sink:a".into(), c"sink:b".into()];
        let role = c"music".into();
        for (bytes, expected) in [
            (&b"L\0\0\0\0"[..], AboutManager::Test),
            (b"L\0\0\0\x01", AboutManager::Read),
            (b"L\0\0\0\x02tsink:a\0tKitchen\0", AboutManager::Rename { device, description }),
            (b"L\0\0\0\x03tsink:a\0tsink:b\0", AboutManager::Delete(devices())),
            (b"L\0\0\0\x041", AboutManager::Route(true)),
            (
                b"L\0\0\0\x05tmusic\0L\0\0\0\x02tsink:a\0tsink:b\0",
                AboutManager::Reorder { role, devices: devices() },
            ),
            (b"L\0\0\0\x060", AboutManager::Subscribe(false)),
        ] {
            assert_eq!(read(bytes), Some(expected), "{bytes:?}");
        }
    }

    #[test]
    fn a_request_about_known_devices_that_makes_no_sense_is_none() {
        let many = [&b"L\0\0\0\x03"[..], &b"ta\0".repeat(MAX_ENTRIES + 1)].concat();
        for bytes in [
            &b""[..],
            b"L\0\0\0\x07",
            b"L\0\0\0\0L\0\0\0\0",
            b"L\0\0\0\x02tsink:a\0",
            b"L\0\0\0\x02tsink:a\0t\0",
            b"L\0\0\0\x02NtKitchen\0",
            b"L\0\0\0\x03N",
            b"L\0\0\0\x04L\0\0\0\x01",
            b"L\0\0\0\x05tmusic\0L\0\0\0\0",
            b"L\0\0\0\x05tmusic\0L\0\0\0\x02tsink:a\0",
            b"L\0\0\0\x05tmusic\0L\xff\xff\xff\xfftsink:a\0",
            b"L\0\0\0\x05NL\0\0\0\x01tsink:a\0",
            &many,
        ] {
            assert_eq!(read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_written_with_no_index() {
        let device = ListedDevice {
            name: c"sink:a".into(),
            description: c"A card".into(),
            icon: None,
            index: None,
            ranks: vec![(c"none".into(), 3)],
        };
        let bytes = super::super::extension_reply(7, MAX_VERSION, &|values| {
            write_listed(values, &device);
        });
        let expected = b"tsink:a\0tA card\0NL\xff\xff\xff\xffL\0\0\0\x01tnone\0L\0\0\0\x03";
        assert_eq!(bytes[30..], *expected);
    }
}
