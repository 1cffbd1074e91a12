//! The extensions of PulseAudio's modules that remember streams and devices, as mixers use them.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

use convert::ChannelMap;
use policy::StreamEntry;
use pulseaudio::protocol::{ChannelVolume, FormatEncoding, FormatInfo, PulseError, Volume};

use super::known_devices::MANAGER;
use super::{Answer, Answered, Client, FrontEnd, format};
use crate::output::Devices;
use crate::wire::{self, AboutDevices, AboutStreams, RememberedStream, WriteMode};

const STREAMS: &CStr = c"module-stream-restore";
const DEVICES: &CStr = c"module-device-restore";
/// The version of all, as PulseAudio's have it.
const VERSION: u32 = 1;

impl<D: Devices> FrontEnd<D> {
    /// Answers what an extension is asked.
    pub(super) fn answer_extension(
        &mut self,
        client: u32,
        tag: u32,
        (module, asked): (Option<&CStr>, &[u8]),
        now_ns: u64,
    ) -> Answered {
        let version = self.clients.get(&client).map_or(0, Client::version);
        match module {
            Some(module) if module == STREAMS => {
                let asked = AboutStreams::read(asked, version).ok_or(PulseError::Protocol)?;
                self.answer_about_memory(client, tag, asked, now_ns)
            }
            Some(module) if module == DEVICES => {
                let asked = AboutDevices::read(asked, version).ok_or(PulseError::Protocol)?;
                self.answer_about_formats(tag, version, asked)
            }
            Some(module) if module == MANAGER => {
                self.answer_about_devices(client, tag, asked, now_ns)
            }
            _ => Err(PulseError::NoExtension),
        }
    }

    fn answer_about_memory(
        &mut self,
        client: u32,
        tag: u32,
        asked: AboutStreams,
        now_ns: u64,
    ) -> Answered {
        let known = self.clients.get_mut(&client).ok_or(PulseError::NoEntity)?;
        let version = known.version();
        let changes = matches!(asked, AboutStreams::Write { .. } | AboutStreams::Delete(_));
        if changes && !known.rights().control {
            return Err(PulseError::AccessDenied);
        }
        match asked {
            AboutStreams::Test => Ok(answer(tag, version)),
            AboutStreams::Read => {
                let all = self.desktop.memory.streams();
                let all: Vec<_> = all.filter_map(|(name, entry)| shown(name, entry)).collect();
                Ok(Answer::Packet(wire::extension_reply(tag, version, &|values| {
                    all.iter().for_each(|entry| wire::write_remembered(values, entry));
                })))
            }
            AboutStreams::Write { mode, is_applied, entries } => {
                self.write_memory(mode, entries, is_applied.then_some(now_ns))
            }
            AboutStreams::Delete(names) => {
                let memory = &mut self.desktop.memory;
                let names = names.iter().filter_map(|name| name.to_str().ok());
                // Each of them, whether or not others are known.
                let forgotten = names.filter(|name| memory.forget_stream(name)).count();
                if forgotten > 0 {
                    self.memory_changed();
                }
                Ok(Answer::Done)
            }
            AboutStreams::Subscribe(wants) => {
                known.follows_memory = wants;
                Ok(Answer::Done)
            }
        }
    }

    /// Takes what is to be remembered; `applied_ns`: streams that play now get it at this time.
    fn write_memory(
        &mut self,
        mode: WriteMode,
        entries: Vec<RememberedStream>,
        applied_ns: Option<u64>,
    ) -> Answered {
        let entries: Option<Vec<(String, StreamEntry)>> =
            entries.into_iter().map(remembered).collect();
        let entries = entries.ok_or(PulseError::Invalid)?;
        let memory = &mut self.desktop.memory;
        let mut has_changed = mode == WriteMode::Set && memory.forget_streams();
        // Streams get what a name had last, once: each time may be a move.
        let mut written = BTreeSet::new();
        for (name, entry) in entries {
            if mode != WriteMode::Merge || memory.stream(&name).is_none() {
                has_changed |= memory.set_stream(&name, entry);
                written.insert(name);
            }
        }
        if has_changed {
            self.memory_changed();
        }
        if let Some(now_ns) = applied_ns {
            written.iter().for_each(|name| self.restore_inputs(name, now_ns));
        }
        Ok(Answer::Done)
    }

    /// Notifies programs that follow what is remembered.
    pub(super) fn notify_all_of_memory(&mut self) {
        let follow = self.clients.iter().filter(|(_, client)| client.follows_memory);
        let follow: Vec<u32> = follow.map(|(number, _)| *number).collect();
        for client in follow {
            self.notify_of_memory(client);
        }
    }

    /// Notifies a program that what is remembered has changed, once it has taken what was sent.
    pub(super) fn notify_of_memory(&mut self, client: u32) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        if known.is_behind {
            known.owes_memory = true;
        } else {
            let version = known.version();
            self.send(client, wire::streams_changed(STREAMS, version));
        }
    }

    /// Sinks play samples, and no encoded ones.
    fn answer_about_formats(&mut self, tag: u32, version: u16, asked: AboutDevices) -> Answered {
        const SINK: u32 = 0;
        let plays = |index| self.sinks.get(index).is_some();
        let sinks = match asked {
            AboutDevices::Test => return Ok(answer(tag, version)),
            // They never change.
            AboutDevices::Subscribe => return Ok(Answer::Done),
            AboutDevices::ReadAllFormats => self.sinks.indices(),
            AboutDevices::ReadFormats { is_sink: true, index } if plays(index) => vec![index],
            AboutDevices::SaveFormats { is_sink: true, index, formats } if plays(index) => {
                let is_pcm = |format: &FormatInfo| format.encoding == FormatEncoding::Pcm;
                let is_what_there_is = matches!(&formats[..], [format] if is_pcm(format));
                return if is_what_there_is {
                    Ok(Answer::Done)
                } else {
                    Err(PulseError::NotSupported)
                };
            }
            AboutDevices::ReadFormats { .. } | AboutDevices::SaveFormats { .. } => {
                return Err(PulseError::NoEntity);
            }
        };
        Ok(Answer::Packet(wire::extension_reply(tag, version, &|values| {
            for index in &sinks {
                let _ = values.write_u32(SINK);
                let _ = values.write_u32(*index);
                let _ = values.write_u8(1);
                let _ = values.write(FormatInfo::new(FormatEncoding::Pcm));
            }
        })))
    }
}

/// Returns the answer of an extension to whether it is there.
pub(super) fn answer(tag: u32, version: u16) -> Answer {
    Answer::Packet(wire::extension_reply(tag, version, &|values| {
        let _ = values.write_u32(VERSION);
    }))
}

/// Returns what is remembered in the protocol's words.
fn shown(name: &str, entry: &StreamEntry) -> Option<RememberedStream> {
    let volumes = entry.volume.clone().unwrap_or_default();
    // In the protocol's order of positions; what is none of them was written into the file by hand.
    let map = volumes.iter().map(|(position, _)| position).collect::<Vec<_>>().join(",");
    let map: Option<ChannelMap> = map.parse().ok().filter(|_| !volumes.is_empty());
    let mut volume = ChannelVolume::empty();
    for position in map.iter().flat_map(ChannelMap::positions) {
        volume.push(Volume::from_u32_clamped(volumes.at(&position.to_string())));
    }
    Some(RememberedStream {
        name: CString::new(name).ok()?,
        map: map.map_or_else(pulseaudio::protocol::ChannelMap::empty, |map| format::map(&map)),
        volume,
        device: entry.device.as_deref().and_then(|device| CString::new(device).ok()),
        is_muted: entry.muted.unwrap_or(false),
    })
}

/// Returns what is to be remembered; `None` if it makes no sense.
fn remembered(stream: RememberedStream) -> Option<(String, StreamEntry)> {
    let RememberedStream { name, map, volume, device, is_muted } = stream;
    let volumes = if volume.channels().is_empty() {
        None
    } else {
        let map = format::own_map(&map)?;
        Some(super::treatment::remembered(&volume, &map))
    };
    let device = device.map(CString::into_string).transpose().ok()?;
    let entry = StreamEntry { volume: volumes, muted: Some(is_muted), device };
    Some((name.into_string().ok()?, entry))
}
