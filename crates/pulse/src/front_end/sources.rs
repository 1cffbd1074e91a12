//! What can be recorded, as programs see it: the monitor of the sink, and what the device captures.

use std::ffi::CStr;

use pulseaudio::protocol::{
    ChannelVolume, Command, LookupReply, PulseError, SinkState, SourceFlags, SourceInfo,
    SourceState, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, Volume,
};

use super::introspection::{INDEX, SINK, VOLUME_STEPS, device_props};
use super::{Answer, Answered, Client, FrontEnd, format};
use crate::input::Source;
use crate::output::{Device, DeviceFormat};
use crate::wire;

pub(super) const MONITOR: &CStr = c"consort.monitor";
const CAPTURE: &CStr = c"consort.capture";

impl Source {
    const ALL: [Self; 2] = [Self::Monitor, Self::Capture];

    /// Returns its number.
    pub(super) fn index(self) -> u32 {
        match self {
            Self::Monitor => INDEX,
            Self::Capture => INDEX + 1,
        }
    }

    /// Returns its name.
    pub(super) fn name(self) -> &'static CStr {
        match self {
            Self::Monitor => MONITOR,
            Self::Capture => CAPTURE,
        }
    }

    fn number(self) -> &'static CStr {
        match self {
            Self::Monitor => c"0",
            Self::Capture => c"1",
        }
    }

    fn description(self) -> &'static CStr {
        match self {
            Self::Monitor => c"Monitor of consort",
            Self::Capture => c"consort",
        }
    }

    /// Returns the samples of it; `None` if the device has none.
    pub(super) fn format(self, device: DeviceFormat) -> Option<convert::ProgramFormat> {
        let channels = match self {
            Self::Monitor => device.channels,
            Self::Capture => device.captured,
        };
        format::device(DeviceFormat { channels, ..device })
    }
}

/// The volume of a source: for each of its channels, or as it is recorded.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SourceVolume {
    pub volume: Option<ChannelVolume>,
    pub is_muted: bool,
}

/// Those of all sources.
#[derive(Debug, Default)]
pub(super) struct SourceVolumes([SourceVolume; 2]);

impl SourceVolumes {
    pub fn of(&self, source: Source) -> SourceVolume {
        self.0[source as usize]
    }

    fn of_mut(&mut self, source: Source) -> &mut SourceVolume {
        &mut self.0[source as usize]
    }
}

impl<D: Device> FrontEnd<D> {
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
                let source = self.find_source(asked.index, asked.name.as_deref());
                let info =
                    source.and_then(|source| self.source_info(source).ok_or(PulseError::NoEntity));
                info.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::GetSourceInfoList => {
                let all = Source::ALL.into_iter().filter_map(|source| self.source_info(source));
                packet(wire::reply(tag, &all.collect::<Vec<_>>(), version))
            }
            Command::LookupSource(name) => {
                let source = self.find_source(None, Some(name));
                source.and_then(|source| {
                    packet(wire::reply(tag, &LookupReply(source.index()), version))
                })
            }
            Command::SetDefaultSource(name) => {
                // There is no choice to be remembered.
                self.find_source(None, Some(name)).and_then(|source| {
                    let is_default = self.default_source() == Some(source);
                    if is_default { Ok(Answer::Done) } else { Err(PulseError::NotSupported) }
                })
            }
            Command::SetSourceVolume(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| self.set_source_volume(source, asked.volume))
            }
            Command::SetSourceMute(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| {
                    self.source_volumes.of_mut(source).is_muted = asked.mute;
                    self.source_changed(source)
                })
            }
            Command::GetSourceOutputInfo(index) => {
                let info = self.output_info(*index, now_ns).ok_or(PulseError::NoEntity);
                info.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::GetSourceOutputInfoList => {
                let indices: Vec<u32> = self.outputs.keys().copied().collect();
                let all = indices.into_iter().filter_map(|index| self.output_info(index, now_ns));
                packet(wire::reply(tag, &all.collect::<Vec<_>>(), version))
            }
            Command::SetSourceOutputVolume(asked) => {
                self.set_output_volume(asked.index, asked.volume)
            }
            Command::SetSourceOutputMute(asked) => self.set_output_mute(asked.index, asked.mute),
            Command::KillSourceOutput(index) if self.outputs.contains_key(index) => {
                self.kill_output(*index);
                Ok(Answer::Done)
            }
            Command::KillSourceOutput(_) => Err(PulseError::NoEntity),
            Command::MoveSourceOutput(asked) => {
                let source = self.find_source(asked.device_index, asked.device_name.as_deref());
                source.and_then(|source| self.move_output(asked.index, source))
            }
            _ => return None,
        })
    }

    /// Returns the source that programs get who name none: what is captured, or else the monitor.
    pub(super) fn default_source(&self) -> Option<Source> {
        let device = self.device.format()?;
        Some(if device.captured > 0 { Source::Capture } else { Source::Monitor })
    }

    fn source_info(&self, source: Source) -> Option<SourceInfo> {
        let format = source.format(self.device.format()?)?;
        let SourceVolume { volume, is_muted } = self.source_volumes.of(source);
        let channels = format.map.channels();
        let is_monitor = source == Source::Monitor;
        Some(SourceInfo {
            index: source.index(),
            name: source.name().into(),
            description: Some(source.description().into()),
            props: device_props(
                source.description(),
                if is_monitor { c"monitor" } else { c"sound" },
            ),
            state: self.source_state(source),
            sample_spec: format::spec(&format),
            channel_map: format::map(&format.map),
            cvolume: volume
                .filter(|volume| volume.channels().len() == channels)
                .unwrap_or_else(|| ChannelVolume::norm(channels as u8)),
            muted: is_muted,
            base_volume: Volume::NORM,
            volume_steps: Some(VOLUME_STEPS),
            monitor_of_sink_index: is_monitor.then_some(INDEX),
            monitor_of_sink_name: is_monitor.then(|| SINK.into()),
            flags: SourceFlags::DECIBEL_VOLUME | SourceFlags::LATENCY,
            driver: Some(c"consort".into()),
            formats: vec![pulseaudio::protocol::FormatInfo::default()],
            ..SourceInfo::default()
        })
    }

    /// Running while a stream records it; idle while its device is awake; else it sleeps.
    fn source_state(&self, source: Source) -> SourceState {
        let records = |output: &super::SourceOutput<D::Input>| {
            output.source == source && output.recording.keeps_awake()
        };
        if self.outputs.values().any(records) {
            return SourceState::Running;
        }
        match self.sink_state() {
            SinkState::Suspended => SourceState::Suspended,
            _ => SourceState::Idle,
        }
    }

    /// Returns whether a stream keeps the device awake to record.
    pub(super) fn records(&self) -> bool {
        self.outputs.values().any(|output| output.recording.keeps_awake())
    }

    /// Returns the source that a program names, by index or name; without either it is the default.
    pub(super) fn find_source(
        &self,
        index: Option<u32>,
        name: Option<&CStr>,
    ) -> Result<Source, PulseError> {
        let device = self.device.format().ok_or(PulseError::NoEntity)?;
        let found = match (index, name) {
            (Some(index), _) => Source::ALL.into_iter().find(|source| source.index() == index),
            (None, None) => self.default_source(),
            (None, Some(name)) if name == c"@DEFAULT_SOURCE@" => self.default_source(),
            (None, Some(name)) if name == c"@DEFAULT_MONITOR@" => Some(Source::Monitor),
            // A number is a name as well.
            (None, Some(name)) => {
                let mut all = Source::ALL.into_iter();
                all.find(|source| source.name() == name || source.number() == name)
            }
        };
        found.filter(|source| source.format(device).is_some()).ok_or(PulseError::NoEntity)
    }

    fn set_source_volume(&mut self, source: Source, volume: ChannelVolume) -> Answered {
        let format = self.device.format().and_then(|device| source.format(device));
        let channels = format.ok_or(PulseError::NoEntity)?.map.channels();
        let volume = for_each_channel(volume, channels).ok_or(PulseError::Invalid)?;
        self.source_volumes.of_mut(source).volume = Some(volume);
        self.source_changed(source)
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
