//! What can be recorded, as programs see it: the monitor of each sink, and what devices capture.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use convert::ProgramFormat;
use policy::Direction;
use pulseaudio::protocol::{
    ChannelVolume, Command, LookupReply, Prop, PulseError, SourceFlags, SourceInfo,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, Volume,
};

use super::cards::set_card_props;
use super::dispatch::OVER_PROGRAM;
use super::introspection::{VOLUME_STEPS, device_props};
use super::sinks::{DRIVER, Face, Sink};
use super::{Answer, Answered, Client, FrontEnd, format, properties};
use crate::output::Devices;
use crate::wire;

/// The index of what the device that drives captures.
const CAPTURE_INDEX: u32 = 1;

/// What a stream records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// What leaves the device of the sink of this index.
    Monitor(u32),
    /// What the device of the sink of this index captures.
    Capture(u32),
}

impl Source {
    /// Returns its index: it stays, whatever else comes and goes.
    pub(super) fn index(self) -> u32 {
        match self {
            Self::Monitor(DRIVER) => DRIVER,
            Self::Capture(DRIVER) => CAPTURE_INDEX,
            Self::Monitor(sink) => sink.wrapping_add(CAPTURE_INDEX),
            // No other sink has the next index: see `Sinks::add`.
            Self::Capture(sink) => sink.wrapping_add(CAPTURE_INDEX + 1),
        }
    }

    /// Returns the sink whose device it is recorded from.
    pub(super) fn sink(self) -> u32 {
        match self {
            Self::Monitor(sink) | Self::Capture(sink) => sink,
        }
    }
}

/// The volume of a source: for each of its channels, or as it is recorded.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SourceVolume {
    pub volume: Option<ChannelVolume>,
    pub is_muted: bool,
}

/// Those of all sources that were changed.
#[derive(Debug, Default)]
pub(super) struct SourceVolumes(BTreeMap<Source, SourceVolume>);

impl SourceVolumes {
    pub fn of(&self, source: Source) -> SourceVolume {
        self.0.get(&source).copied().unwrap_or_default()
    }

    fn of_mut(&mut self, source: Source) -> &mut SourceVolume {
        self.0.entry(source).or_default()
    }

    /// The source has gone.
    pub fn forget(&mut self, source: Source) {
        self.0.remove(&source);
    }
}

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about sources and the streams that record them; `None` if it is none of
    /// these.
    pub(super) fn answer_about_sources(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        now_ns: u64,
    ) -> Option<Answered> {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let packet = |bytes| Ok(Answer::Packet(bytes));
        Some(match command {
            Command::GetSourceInfo(asked) => {
                self.refresh(now_ns);
                let source = self.find_source(asked.index, asked.name.as_deref());
                let info =
                    source.and_then(|source| self.source_info(source).ok_or(PulseError::NoEntity));
                info.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::GetSourceInfoList => {
                self.refresh(now_ns);
                let all = self.sources().into_iter().filter_map(|source| self.source_info(source));
                packet(wire::reply(tag, &all.collect::<Vec<_>>(), version))
            }
            Command::LookupSource(name) => {
                let source = self.find_source(None, Some(name));
                source.and_then(|source| {
                    packet(wire::reply(tag, &LookupReply(source.index()), version))
                })
            }
            // No source has ports.
            Command::SetSourcePort(asked) => {
                let source = self.find_source(asked.index, asked.name.as_deref());
                source.and(Err(PulseError::NotImplemented))
            }
            Command::SetDefaultSource(name) => {
                let source = self.find_source(None, Some(name));
                source.map(|source| self.set_default_source(source, now_ns))
            }
            Command::SuspendSource(asked) => self.suspend_sources(asked),
            Command::SetSourceVolume(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| self.set_source_volume(source, asked.volume))
            }
            Command::SetSourceMute(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| {
                    let own = &mut self.source_volumes.of_mut(source).is_muted;
                    if std::mem::replace(own, asked.mute) == asked.mute {
                        return Ok(Answer::Done);
                    }
                    self.source_changed(source)
                })
            }
            Command::GetSourceOutputInfo(index) => {
                let info = self.output_info(*index, now_ns).ok_or(PulseError::NoEntity);
                info.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::GetSourceOutputInfoList => {
                let indices: Vec<u32> = self.outputs.keys().copied().collect();
                let own = indices.into_iter().filter_map(|index| self.output_info(index, now_ns));
                let mut all: Vec<_> = own.collect();
                all.extend(self.module_outputs());
                all.sort_unstable_by_key(|info| info.index);
                packet(wire::reply(tag, &all, version))
            }
            Command::SetSourceOutputVolume(asked) => {
                self.set_output_volume(client, asked.index, asked.volume)
            }
            Command::SetSourceOutputMute(asked) => {
                self.set_output_mute(client, asked.index, asked.mute)
            }
            Command::KillSourceOutput(index) if self.outputs.contains_key(index) => {
                self.kill_output(*index);
                Ok(Answer::Done)
            }
            Command::KillSourceOutput(_) => Err(PulseError::NoEntity),
            Command::MoveSourceOutput(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| self.move_output_of(client, asked.index, source, now_ns))
            }
            _ => return None,
        })
    }

    /// Returns the source that programs get who name none: the one that was chosen, or else what is
    /// captured, or the monitor of the default sink.
    pub(super) fn default_source(&self) -> Option<Source> {
        let chosen = self.desktop.memory.default_source();
        let chosen = chosen.and_then(|name| self.source_named(name));
        let captured = || self.captures().next();
        chosen.or_else(captured).or_else(|| self.default_sink().map(Source::Monitor))
    }

    /// Returns what devices capture, by the index of their sinks.
    fn captures(&self) -> impl Iterator<Item = Source> {
        let all = self.sinks.devices().into_iter().map(Source::Capture);
        all.filter(|source| self.samples_of(*source).is_some())
    }

    /// Returns the source of this index, if it is there.
    fn source_of_index(&self, index: u32) -> Option<Source> {
        self.sources().into_iter().find(|source| source.index() == index)
    }

    /// Returns all sources, by index.
    pub(super) fn sources(&self) -> Vec<Source> {
        let monitors = self.sinks.monitored().into_iter().map(Source::Monitor);
        let mut all: Vec<Source> = monitors.chain(self.captures()).collect();
        all.sort_unstable_by_key(|source| source.index());
        all
    }

    /// Returns the samples of a source; `None` if it is not there.
    pub(super) fn samples_of(&self, source: Source) -> Option<ProgramFormat> {
        match source {
            Source::Monitor(index) => {
                let sink = self.sinks.get(index)?;
                (sink.face() != Face::Capture).then(|| sink.samples())
            }
            Source::Capture(sink) => {
                let format = self.sinks.get(sink)?.format;
                let map = format::device_map(format.captured).filter(|_| format.captured > 0)?;
                Some(format::floating(format.rate_hz, map))
            }
        }
    }

    /// Returns the name of a source, if it is there.
    pub(super) fn source_name(&self, source: Source) -> Option<CString> {
        match source {
            Source::Monitor(sink) => Some(self.sinks.get(sink)?.monitor_name()),
            Source::Capture(sink) => Some(self.sinks.get(sink)?.capture_name()),
        }
    }

    pub(super) fn source_info(&self, source: Source) -> Option<SourceInfo> {
        let samples = self.samples_of(source)?;
        let SourceVolume { volume, is_muted } = self.source_volumes.of(source);
        let channels = samples.map.channels();
        let monitored = match source {
            Source::Monitor(index) => Some((index, self.sinks.get(index)?)),
            Source::Capture(_) => None,
        };
        let described = monitored.and_then(|(_, sink)| sink.described.as_ref());
        let monitored = monitored.filter(|(_, sink)| sink.face() == Face::Sink);
        let card = self.sinks.get(source.sink())?.card.as_ref();
        let is_hardware = card.is_some() && matches!(source, Source::Capture(_));
        let class = if monitored.is_some() { c"monitor" } else { c"sound" };
        let description = self.source_description(source);
        let mut props = device_props(&description, class, c"audio-input-microphone");
        if let Some(card) = card.filter(|_| is_hardware) {
            set_card_props(&mut props, card);
        }
        if let Some(described) = described.filter(|_| monitored.is_none()) {
            props =
                properties::updated(&props, OVER_PROGRAM, &described.shown.props).unwrap_or(props);
            props.set(Prop::DeviceDescription, &*description);
        }
        Some(SourceInfo {
            index: source.index(),
            name: self.source_name(source)?,
            props,
            description: Some(description),
            state: self.source_state(source),
            sample_spec: format::spec(&samples),
            channel_map: format::map(&samples.map),
            owner_module_index: described.map(|described| described.module),
            cvolume: volume
                .filter(|volume| volume.channels().len() == channels)
                .unwrap_or_else(|| ChannelVolume::norm(channels as u8)),
            muted: is_muted,
            base_volume: Volume::NORM,
            volume_steps: Some(VOLUME_STEPS),
            monitor_of_sink_index: monitored.map(|(index, _)| index),
            monitor_of_sink_name: monitored.map(|(_, sink)| sink.name.clone()),
            flags: SourceFlags::DECIBEL_VOLUME
                | SourceFlags::LATENCY
                | SourceFlags::DYNAMIC_LATENCY
                | if is_hardware { SourceFlags::HARDWARE } else { SourceFlags::empty() },
            card_index: card.map(|_| source.sink()),
            driver: Some(c"consort".into()),
            formats: vec![pulseaudio::protocol::FormatInfo::default()],
            ..SourceInfo::default()
        })
    }

    /// Returns the name of a source that users see.
    pub(super) fn source_description(&self, source: Source) -> CString {
        if self.is_no_monitor(source) {
            let name = self.source_name(source).unwrap_or_default();
            let renamed = self.new_name(Direction::Recording, &name);
            return renamed.unwrap_or_else(|| self.sinks.description(source.sink()));
        }
        let description = self.sink_description(source.sink());
        let name = [&b"Monitor of "[..], description.to_bytes()].concat();
        CString::new(name).unwrap_or_default()
    }

    /// Returns since when what is recorded there was heard at the master of a remapped source.
    pub(super) fn source_later_us(&self, source: Source) -> u64 {
        let sink = match source {
            Source::Monitor(index) => self.sinks.get(index),
            Source::Capture(_) => None,
        };
        sink.filter(|sink| sink.face() == Face::Source).map_or(0, Sink::later_us)
    }

    /// Returns whether a stream keeps the device of a sink awake to record.
    pub(super) fn is_recorded(&self, sink: u32) -> bool {
        let mut outputs = self.outputs.values();
        outputs.any(|output| output.source.sink() == sink && output.recording.keeps_awake())
    }

    /// Returns the source that a program names, by index or name; without either it is the default.
    ///
    /// # Errors
    /// There is none ([`PulseError::NoEntity`]); or it names one by both ([`PulseError::Invalid`]).
    pub(super) fn find_source(
        &self,
        index: Option<u32>,
        name: Option<&CStr>,
    ) -> Result<Source, PulseError> {
        let found = match (index, name) {
            (Some(_), Some(_)) => return Err(PulseError::Invalid),
            (Some(index), None) => self.source_of_index(index),
            (None, None) => self.default_source(),
            (None, Some(name)) if name == c"@DEFAULT_SOURCE@" => self.default_source(),
            (None, Some(name)) if name == c"@DEFAULT_MONITOR@" => {
                self.default_sink().map(Source::Monitor)
            }
            (None, Some(name)) => self.find_named(name),
        };
        found.filter(|source| self.samples_of(*source).is_some()).ok_or(PulseError::NoEntity)
    }

    /// Returns the source of this name, if it is there; a number is a name as well.
    fn find_named(&self, name: &CStr) -> Option<Source> {
        let mut all = self.sources().into_iter();
        let of_name = all.find(|source| self.source_name(*source).is_some_and(|own| *own == *name));
        of_name.or_else(|| self.source_of_index(name.to_str().ok()?.parse().ok()?))
    }

    /// Returns the source of this name, if it is there.
    pub(super) fn source_named(&self, name: &str) -> Option<Source> {
        self.find_named(&CString::new(name).ok()?)
    }

    fn set_source_volume(&mut self, source: Source, volume: ChannelVolume) -> Answered {
        let channels = self.samples_of(source).ok_or(PulseError::NoEntity)?.map.channels();
        let volume = for_each_channel(volume, channels).ok_or(PulseError::Invalid)?;
        let before = self.source_volumes.of_mut(source).volume.replace(volume);
        let is_same = before.is_some_and(|before| before.channels() == volume.channels());
        if is_same { Ok(Answer::Done) } else { self.source_changed(source) }
    }

    fn source_changed(&mut self, source: Source) -> Answered {
        let outputs = self.outputs.iter().filter(|(_, output)| output.source == source);
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        outputs.into_iter().for_each(|index| self.apply_output_gains(index));
        self.notify(Facility::Source, EventType::Changed, source.index());
        Ok(Answer::Done)
    }
}

/// Returns a volume for each channel, of one for all or for each; `None` if it has another number.
pub(super) fn for_each_channel(volume: ChannelVolume, channels: usize) -> Option<ChannelVolume> {
    match volume.channels() {
        all if all.len() == channels => Some(volume),
        [all] => {
            let mut each = ChannelVolume::empty();
            (0..channels).for_each(|_| each.push(*all));
            Some(each)
        }
        _ => None,
    }
}
