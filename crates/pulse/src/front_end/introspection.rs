//! The server and its sinks, as programs see them.

use std::ffi::{CStr, CString};

use policy::DefaultReason;
use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, Command, LookupReply, Prop, Props, PulseError, SampleFormat,
    SampleSpec, ServerInfo, SinkFlags, SinkInfo, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, Volume,
};

use super::absence::or_later;
use super::cards::set_card_props;
use super::dispatch::OVER_PROGRAM;
use super::sinks::Sink;
use super::sources::{Source, for_each_channel};
use super::{Answer, Answered, Client, FrontEnd, format, properties};
use crate::output::Devices;
use crate::playback;
use crate::wire;

/// The steps of the protocol's volumes.
pub(super) const VOLUME_STEPS: u32 = 0x10001;

/// Why a sink is the default.
pub(crate) const WHY_DEFAULT: &CStr = c"consort.why.default";

/// What programs may expect as long as there is no device: PulseAudio's default.
const NO_DEVICE: SampleSpec =
    SampleSpec { format: SampleFormat::S16Le, channels: 2, sample_rate: 44_100 };

impl<D: Devices> FrontEnd<D> {
    /// Answers requests about the server and its sinks; `None` if it is none of these.
    pub(super) fn answer_about_sinks(
        &mut self,
        client: u32,
        tag: u32,
        command: &Command,
        now_ns: u64,
    ) -> Option<Answered> {
        let version = self.clients.get(&client).map_or(0, Client::version);
        let packet = |bytes| Ok(Answer::Packet(bytes));
        Some(match command {
            Command::GetServerInfo => packet(wire::reply(tag, &self.server_info(), version)),
            Command::GetSinkInfo(asked) => {
                self.refresh(now_ns);
                let sink = self.find_sink(asked.index, asked.name.as_deref());
                let info = sink.and_then(|index| self.sink_info(index).ok_or(PulseError::NoEntity));
                info.and_then(|info| packet(wire::reply(tag, &info, version)))
            }
            Command::GetSinkInfoList => {
                self.refresh(now_ns);
                let indices = self.sinks.indices().into_iter();
                let all: Vec<_> = indices.filter_map(|index| self.sink_info(index)).collect();
                packet(wire::reply(tag, &all, version))
            }
            Command::LookupSink(name) => {
                let found = self.find_sink(None, Some(name));
                found.and_then(|index| packet(wire::reply(tag, &LookupReply(index), version)))
            }
            Command::SetSinkVolume(asked) => {
                let sink = self.find_sink(asked.device_index, asked.device_name.as_deref());
                sink.and_then(|index| self.set_sink_volume(index, Some(&asked.volume), None))
            }
            Command::SetSinkMute(asked) => {
                let sink = self.find_sink(asked.device_index, asked.device_name.as_deref());
                sink.and_then(|index| self.set_sink_volume(index, None, Some(asked.mute)))
            }
            // No sink has ports.
            Command::SetSinkPort(asked) => {
                let sink = self.find_sink(asked.index, asked.name.as_deref());
                sink.and(Err(PulseError::NotImplemented))
            }
            Command::SuspendSink(asked) => self.suspend_sinks(asked),
            Command::SetDefaultSink(name) => {
                self.find_sink(None, Some(name)).map(|index| self.set_default_sink(index, now_ns))
            }
            _ => return None,
        })
    }

    fn server_info(&self) -> ServerInfo {
        let default = self.default_sink().and_then(|index| self.sinks.get(index));
        let version = CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
        ServerInfo {
            server_name: Some(c"consort".into()),
            server_version: Some(version),
            user_name: Some(self.machine.user.clone()),
            host_name: Some(self.machine.host.clone()),
            sample_spec: default.map_or(NO_DEVICE, |sink| format::spec(&sink.samples())),
            cookie: self.machine.cookie,
            default_sink_name: default.map(|sink| sink.name.clone()),
            default_source_name: self.default_source().and_then(|source| self.source_name(source)),
            channel_map: default.map_or_else(ChannelMap::stereo, |sink| format::map(&sink.map)),
        }
    }

    pub(super) fn sink_info(&self, index: u32) -> Option<SinkInfo> {
        let sink = self.sinks.get(index)?;
        let samples = sink.samples();
        let description = self.sink_description(index);
        let mut props = sink_props(sink, &description);
        // Also of one for which its module states another.
        props.set(Prop::DeviceDescription, &*description);
        if let Some((_, reason)) =
            self.default_sink_and_reason().filter(|(default, _)| *default == index)
        {
            properties::set(&mut props, WHY_DEFAULT, &reason.to_string());
        }
        let mut flags = SinkFlags::DECIBEL_VOLUME | SinkFlags::LATENCY | SinkFlags::DYNAMIC_LATENCY;
        flags.set(SinkFlags::HARDWARE, sink.card.is_some());
        flags.set(SinkFlags::HW_VOLUME_CTRL, sink.has_mixer);
        Some(SinkInfo {
            index,
            name: sink.name.clone(),
            description: Some(description),
            props,
            state: self.sink_state(index),
            sample_spec: format::spec(&samples),
            channel_map: format::map(&samples.map),
            owner_module_index: sink.described.as_ref().map(|described| described.module),
            cvolume: playback::device_volumes(&sink.volume.gains, samples.map.channels()),
            muted: sink.volume.is_muted(),
            monitor_source_index: Some(Source::Monitor(index).index()),
            monitor_source_name: Some(sink.monitor_name()),
            flags,
            card_index: sink.card.as_ref().map(|_| index),
            driver: Some(c"consort".into()),
            base_volume: Volume::NORM,
            volume_steps: Some(VOLUME_STEPS),
            formats: vec![pulseaudio::protocol::FormatInfo::default()],
            ..SinkInfo::default()
        })
    }

    /// Changes the volume of a sink: of each of its channels, or of all.
    fn set_sink_volume(
        &mut self,
        index: u32,
        volumes: Option<&ChannelVolume>,
        muted: Option<bool>,
    ) -> Answered {
        let sink = self.sinks.get_mut(index).ok_or(PulseError::NoEntity)?;
        let gains = match volumes {
            None => None,
            Some(volumes) => {
                let each = for_each_channel(*volumes, sink.map.channels());
                Some(each.as_ref().and_then(playback::device_gains).ok_or(PulseError::Invalid)?)
            }
        };
        if muted == Some(false) {
            self.devices.switch_on(sink.device.as_deref());
        }
        let volume = self.devices.set_volume(sink.device.as_deref(), gains, muted);
        let volume = volume.map_err(or_later(PulseError::AccessDenied))?;
        if std::mem::replace(&mut sink.volume, volume) != volume {
            self.sink_volume_changed(index);
            self.notify(Facility::Sink, EventType::Changed, index);
        }
        Ok(Answer::Done)
    }

    /// Returns how many streams play on a sink, or record it if programs see it as a source alone.
    pub(super) fn streams_of(&self, sink: u32) -> usize {
        match self.sinks.is_sink(sink) {
            true => {
                let of_programs = self.inputs.values().filter(|input| input.sink == sink).count();
                let device = self.sinks.get(sink).map(|sink| sink.device.as_deref());
                of_programs + device.map_or(0, |device| self.module_inputs_of(device))
            }
            false => {
                let source = Source::Monitor(sink);
                self.outputs.values().filter(|output| output.source == source).count()
            }
        }
    }

    /// Returns the index of the sink that a program names, by index or name; without either it is
    /// the default.
    ///
    /// # Errors
    /// There is none ([`PulseError::NoEntity`]); or it names one by both ([`PulseError::Invalid`]).
    pub(super) fn find_sink(
        &self,
        index: Option<u32>,
        name: Option<&CStr>,
    ) -> Result<u32, PulseError> {
        let found = match (index, name) {
            (Some(_), Some(_)) => return Err(PulseError::Invalid),
            (Some(index), None) => Some(index).filter(|index| self.sinks.is_sink(*index)),
            (None, None) => self.default_sink(),
            (None, Some(name)) if name == c"@DEFAULT_SINK@" => self.default_sink(),
            (None, Some(name)) => self.sinks.find(name),
        };
        found.ok_or(PulseError::NoEntity)
    }

    /// Returns the sink that programs get who name none: the one that was chosen last of those that
    /// are there, or else the device that drives.
    pub(super) fn default_sink(&self) -> Option<u32> {
        self.default_sink_and_reason().map(|(index, _)| index)
    }

    fn default_sink_and_reason(&self) -> Option<(u32, DefaultReason)> {
        // The device that drives is the first.
        let indices = self.sinks.indices();
        let name = |index: &u32| self.sinks.get(*index)?.name.to_str().ok();
        let names: Vec<&str> = indices.iter().filter_map(name).collect();
        let (default, reason) = self.desktop.memory.default_sinks().among(&names)?;
        Some((self.sink_named(default)?, reason))
    }
}

fn sink_props(sink: &Sink, description: &CStr) -> Props {
    let is_sound = sink.device.is_none() || sink.card.is_some();
    let class = if is_sound { c"sound" } else { c"abstract" };
    let mut own = device_props(description, class, c"audio-card");
    if let Some(card) = &sink.card {
        set_card_props(&mut own, card);
    }
    let Some(described) = &sink.described else { return own };
    properties::updated(&own, OVER_PROGRAM, &described.shown.props).unwrap_or(own)
}

pub(super) fn device_props(description: &CStr, class: &CStr, icon: &CStr) -> Props {
    let mut props = Props::new();
    props.set(Prop::DeviceDescription, description);
    props.set(Prop::DeviceClass, class);
    props.set(Prop::DeviceIconName, icon);
    props
}
