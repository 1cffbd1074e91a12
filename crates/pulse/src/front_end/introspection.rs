//! The server and its sink, as programs see them.

use std::ffi::{CStr, CString};

use pulseaudio::protocol::{
    ChannelMap, ChannelVolume, Prop, Props, PulseError, SampleFormat, SampleSpec, ServerInfo,
    SinkFlags, SinkInfo, SinkState, SubscriptionEventFacility as Facility,
    SubscriptionEventType as EventType, Volume,
};

use super::sources::MONITOR;
use super::{Answer, Answered, FrontEnd, format};
use crate::output::Device;
use crate::playback;

/// The only sink, and its monitor.
pub(super) const INDEX: u32 = 0;
pub(super) const SINK: &CStr = c"consort";
/// The steps of the protocol's volumes.
pub(super) const VOLUME_STEPS: u32 = 0x10001;

/// What programs may expect as long as there is no device: PulseAudio's default.
const NO_DEVICE: SampleSpec =
    SampleSpec { format: SampleFormat::S16Le, channels: 2, sample_rate: 44_100 };

impl<D: Device> FrontEnd<D> {
    pub(super) fn server_info(&self) -> ServerInfo {
        let device = self.device.format().and_then(format::device);
        let version = CString::new(env!("CARGO_PKG_VERSION")).unwrap_or_default();
        ServerInfo {
            server_name: Some(c"consort".into()),
            server_version: Some(version),
            user_name: Some(self.machine.user.clone()),
            host_name: Some(self.machine.host.clone()),
            sample_spec: device.as_ref().map_or(NO_DEVICE, format::spec),
            cookie: self.machine.cookie,
            default_sink_name: device.is_some().then(|| SINK.into()),
            default_source_name: self.default_source().map(|source| source.name().into()),
            channel_map: device.map_or_else(ChannelMap::stereo, |device| format::map(&device.map)),
        }
    }

    /// Returns the sink; `None` as long as the server has none.
    pub(super) fn sink_info(&self) -> Option<SinkInfo> {
        let device = format::device(self.device.format()?)?;
        Some(SinkInfo {
            index: INDEX,
            name: SINK.into(),
            description: Some(c"consort".into()),
            props: device_props(c"consort", c"sound"),
            state: self.sink_state(),
            sample_spec: format::spec(&device),
            channel_map: format::map(&device.map),
            cvolume: self.sink_volume(device.map.channels()),
            muted: self.device.volume().muted,
            monitor_source_index: Some(INDEX),
            monitor_source_name: Some(MONITOR.into()),
            flags: SinkFlags::DECIBEL_VOLUME | SinkFlags::LATENCY | SinkFlags::DYNAMIC_LATENCY,
            driver: Some(c"consort".into()),
            base_volume: Volume::NORM,
            volume_steps: Some(VOLUME_STEPS),
            formats: vec![pulseaudio::protocol::FormatInfo::default()],
            ..SinkInfo::default()
        })
    }

    fn sink_volume(&self, channels: usize) -> ChannelVolume {
        let volume = playback::volume_of(self.device.volume().gain);
        let mut volumes = ChannelVolume::empty();
        (0..channels).for_each(|_| volumes.push(volume));
        volumes
    }

    /// Changes the volume of the sink, which is one for all of its channels: the loudest is it.
    pub(super) fn set_sink_volume(
        &mut self,
        volumes: Option<&ChannelVolume>,
        muted: Option<bool>,
    ) -> Answered {
        let gain = volumes.map(|volumes| playback::gain_of(volumes).ok_or(PulseError::Invalid));
        if !self.device.set_volume(gain.transpose()?, muted) {
            return Err(PulseError::AccessDenied);
        }
        self.notify(Facility::Sink, EventType::Changed, INDEX);
        Ok(Answer::Done)
    }

    /// Running while a stream plays, idle while one could, or records; else its device sleeps.
    pub(super) fn sink_state(&self) -> SinkState {
        match self.inputs.values().any(|input| input.playback.runs()) {
            true => SinkState::Running,
            false if !self.inputs.is_empty() || self.records() => SinkState::Idle,
            false => SinkState::Suspended,
        }
    }

    /// Returns the index of the sink that a program names, by index or name; without either it is
    /// the default.
    pub(super) fn find_sink(
        &self,
        index: Option<u32>,
        name: Option<&CStr>,
    ) -> Result<u32, PulseError> {
        // A number is a name as well.
        let is_it = |name: &CStr| [SINK, c"@DEFAULT_SINK@", c"0"].contains(&name);
        let is_known = index.is_none_or(|index| index == INDEX) && name.is_none_or(is_it);
        if is_known && self.device.format().is_some() {
            Ok(INDEX)
        } else {
            Err(PulseError::NoEntity)
        }
    }
}

pub(super) fn device_props(description: &CStr, class: &CStr) -> Props {
    let mut props = Props::new();
    props.set(Prop::DeviceDescription, description);
    props.set(Prop::DeviceClass, class);
    props.set(Prop::DeviceIconName, c"audio-card");
    props
}
