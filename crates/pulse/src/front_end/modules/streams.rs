//! The streams of modules, as programs see them: where what passes frames on for a module plays,
//! and where it records.

use std::ffi::CString;

use client::stream::Volume;
use convert::{ChannelMap, ProgramFormat};
use pulseaudio::protocol::{
    ChannelVolume, Prop, Props, SinkInputInfo, SourceOutputInfo,
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::Module;
use super::arguments::Arguments;
use super::kinds::Kind;
use crate::front_end::sources::Source;
use crate::front_end::{FrontEnd, format, properties};
use crate::output::{Devices, Heard, LinkEnd, NewLink, NewLoopback};
use crate::playback::volume_of;
use crate::processing::Processing;

/// One of them: a sink input, or a source output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::front_end) struct ModuleStream {
    pub index: u32,
    pub end: LinkEnd,
    /// One for all of its channels, as the server has it.
    pub volume: Volume,
    /// A user has moved it there, and another default does not move it.
    pub is_pinned: bool,
}

impl ModuleStream {
    pub fn side(&self) -> Side {
        Side::of(&self.end)
    }
}

/// The list in which programs see a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::front_end) enum Side {
    Input,
    Output,
}

impl Side {
    pub fn of(end: &LinkEnd) -> Self {
        match end {
            LinkEnd::Plays(_) => Self::Input,
            LinkEnd::Records(_) => Self::Output,
        }
    }

    pub fn facility(self) -> Facility {
        match self {
            Self::Input => Facility::SinkInput,
            Self::Output => Facility::SourceOutput,
        }
    }
}

impl Module {
    /// Returns the ends of its link that are not at a device of its own.
    fn ends(&self) -> Vec<LinkEnd> {
        let ends = self.link.as_ref().map(|link| link.new.ends()).unwrap_or_default();
        let is_own = |end: &LinkEnd| self.devices().any(|own| end.device() == Some(&own.name));
        ends.into_iter().filter(|end| !is_own(end)).collect()
    }

    /// Returns the properties of a stream; `other` is the description of what is at the other end
    /// of a loopback.
    fn stream_props(&self, end: &LinkEnd, other: &str) -> Props {
        let (key, name) = match (self.kind, end) {
            (Kind::Loopback, LinkEnd::Plays(_)) => {
                (Some("sink_input_properties"), format!("Loopback from {other}"))
            }
            (Kind::Loopback, LinkEnd::Records(_)) => {
                (Some("source_output_properties"), format!("Loopback to {other}"))
            }
            (Kind::CombineSink, _) => (None, format!("Simultaneous output on {other}")),
            (Kind::LadspaSink, _) => (None, "LADSPA Stream".into()),
            (Kind::EchoCancel, LinkEnd::Plays(_)) => (None, "Echo-Cancel Sink Stream".into()),
            (Kind::EchoCancel, LinkEnd::Records(_)) => (None, "Echo-Cancel Source Stream".into()),
            _ => (None, "Remapped Stream".into()),
        };
        let mut props = Props::new();
        properties::set(&mut props, Prop::MediaName.to_c_str(), &name);
        let role = if self.kind == Kind::Loopback { "abstract" } else { "filter" };
        properties::set(&mut props, Prop::MediaRole.to_c_str(), role);
        if let Some(key) = key
            && let Ok(arguments) = Arguments::read(&self.argument_text(), self.kind.keys())
        {
            // They were read when it was loaded.
            let _ = arguments.add_properties(key, &mut props);
        }
        props
    }
}

/// What passes at an end of a link.
struct Passing<'a> {
    map: ChannelMap,
    /// The device whose rate the frames have there.
    clock: Option<&'a str>,
    latency_ms: u32,
}

impl NewLink {
    fn loopback(&self) -> Option<&NewLoopback> {
        match self {
            Self::Loopback(loopback) | Self::Processed(loopback, _) => Some(loopback),
            _ => None,
        }
    }

    fn passing(&self, end: &LinkEnd) -> Option<Passing<'_>> {
        if let (Self::Processed(_, processing), LinkEnd::Plays(device)) = (self, end)
            && let Processing::Echo(echo) = &**processing
            && echo.heard_on.0 == *device
        {
            let (map, clock, latency_ms) = (echo.of_map, Some(&*echo.of), echo.latency_ms);
            return Some(Passing { map, clock, latency_ms });
        }
        let NewLoopback { from, from_map, via, latency_ms, .. } = self.loopback()?;
        let clock = from.device.as_deref();
        Some(match end {
            LinkEnd::Plays(_) => {
                Passing { map: via.unwrap_or(*from_map), clock, latency_ms: *latency_ms }
            }
            LinkEnd::Records(_) => Passing { map: *from_map, clock, latency_ms: 0 },
        })
    }
}

impl<D: Devices> FrontEnd<D> {
    /// What passes frames on for a module has begun, perhaps again: programs see its streams, which
    /// have the volumes that they had.
    pub(super) fn module_streams_begin(&mut self, module: u32) {
        let Some(own) = self.modules.get_mut(module) else { return };
        let (mut ends, before) = (own.ends(), std::mem::take(&mut own.streams));
        let (mut kept, other): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|stream| ends.contains(&stream.end));
        ends.retain(|end| !kept.iter().any(|stream| stream.end == *end));
        let mut events = Vec::new();
        for stream in other {
            // One that goes on elsewhere.
            let side = stream.side();
            let end = ends.iter().position(|end| Side::of(end) == side);
            let event = if end.is_some() { EventType::Changed } else { EventType::Removed };
            events.push((side, event, stream.index));
            kept.extend(end.map(|end| ModuleStream { end: ends.swap_remove(end), ..stream }));
        }
        for end in ends {
            let side = Side::of(&end);
            let next = match side {
                Side::Input => &mut self.next_input,
                Side::Output => &mut self.next_output,
            };
            let index = *next;
            *next = next.wrapping_add(1);
            events.push((side, EventType::New, index));
            kept.push(ModuleStream { index, end, volume: Volume::default(), is_pinned: false });
        }
        for ModuleStream { end, volume, .. } in &kept {
            if *volume != Volume::default() {
                // A server that refuses it refused it before.
                let _ = self.devices.set_link_volume(module, end, *volume);
            }
        }
        if let Some(own) = self.modules.get_mut(module) {
            own.streams = kept;
        }
        for (side, event, index) in events {
            self.notify(side.facility(), event, index);
        }
    }

    /// Programs see the streams of a module no more.
    pub(super) fn module_streams_end(&mut self, streams: &[ModuleStream]) {
        for stream in streams {
            self.notify(stream.side().facility(), EventType::Removed, stream.index);
        }
    }

    /// Returns those that play, as programs see them.
    pub(in crate::front_end) fn module_inputs(&self) -> Vec<SinkInputInfo> {
        let all = self.modules.streams(Side::Input);
        all.filter_map(|(module, stream)| self.module_input_info(module, stream.index)).collect()
    }

    /// Returns those that record.
    pub(in crate::front_end) fn module_outputs(&self) -> Vec<SourceOutputInfo> {
        let all = self.modules.streams(Side::Output);
        all.filter_map(|(module, stream)| self.module_output_info(module, stream.index)).collect()
    }

    /// Returns how many play on a device.
    pub(in crate::front_end) fn module_inputs_of(&self, device: Option<&str>) -> usize {
        let all = self.modules.streams(Side::Input);
        all.filter(|(_, stream)| stream.end.device() == device).count()
    }

    pub(super) fn module_input_info(&self, module: u32, index: u32) -> Option<SinkInputInfo> {
        let own = self.modules.get(module)?;
        let stream = own.stream((Side::Input, index))?;
        let sink_index = self.sinks.of_device(stream.end.device())?;
        let (program, latency_us) = self.passing_at(own, &stream.end)?;
        let other = match own.kind {
            Kind::Loopback => self.source_of(own)?,
            _ => self.sink_description(sink_index),
        };
        let props = own.stream_props(&stream.end, &other.to_string_lossy());
        Some(SinkInputInfo {
            index,
            name: properties::text(&props, Prop::MediaName).unwrap_or_default().into(),
            owner_module_index: Some(module),
            client_index: None,
            sink_index,
            sample_spec: format::spec(&program),
            channel_map: format::map(&program.map),
            cvolume: all_channels(stream.volume, &program.map),
            buffer_latency: latency_us,
            sink_latency: self.sinks.get(sink_index)?.later_us(),
            resample_method: Some(c"rubato".into()),
            driver: Some(driver_of(own.kind)),
            props,
            muted: stream.volume.muted,
            corked: false,
            has_volume: true,
            volume_writable: true,
            format: format::info(&program),
        })
    }

    pub(super) fn module_output_info(&self, module: u32, index: u32) -> Option<SourceOutputInfo> {
        let own = self.modules.get(module)?;
        let stream = own.stream((Side::Output, index))?;
        let LinkEnd::Records(heard) = &stream.end else { return None };
        let source = self.source_at(heard)?;
        let (program, _) = self.passing_at(own, &stream.end)?;
        let plays_on = own.streams.iter().find(|stream| stream.side() == Side::Input);
        let sink = plays_on.and_then(|stream| self.sinks.of_device(stream.end.device()));
        let other = sink.map(|sink| self.sink_description(sink));
        let props = own.stream_props(&stream.end, &other.unwrap_or_default().to_string_lossy());
        Some(SourceOutputInfo {
            index,
            name: properties::text(&props, Prop::MediaName).unwrap_or_default().into(),
            owner_module_index: Some(module),
            client_index: None,
            source_index: source.index(),
            sample_spec: format::spec(&program),
            channel_map: format::map(&program.map),
            cvolume: all_channels(stream.volume, &program.map),
            buffer_latency: 0,
            source_latency: self.source_later_us(source),
            resample_method: Some(c"rubato".into()),
            driver: Some(driver_of(own.kind)),
            props,
            muted: stream.volume.muted,
            corked: false,
            has_volume: true,
            volume_writable: true,
            format: format::info(&program),
        })
    }

    /// Returns the frames that pass at an end of a module's link, and how long until they are
    /// heard, µs.
    pub(super) fn passing_at(
        &self,
        module: &Module,
        end: &LinkEnd,
    ) -> Option<(ProgramFormat, u64)> {
        let Passing { map, clock, latency_ms } = module.link.as_ref()?.new.passing(end)?;
        let rate_hz = self.sinks.get(self.sinks.of_device(clock)?)?.format.rate_hz;
        Some((format::floating(rate_hz, map), u64::from(latency_ms) * 1000))
    }

    /// Returns the description of the source of a loopback.
    fn source_of(&self, module: &Module) -> Option<CString> {
        let heard = &module.link.as_ref()?.new.loopback()?.from;
        Some(self.source_description(self.source_at(heard)?))
    }

    fn source_at(&self, heard: &Heard) -> Option<Source> {
        let source = if heard.captures { Source::Capture } else { Source::Monitor };
        self.sinks.of_device(heard.device.as_deref()).map(source)
    }
}

fn all_channels(volume: Volume, map: &ChannelMap) -> ChannelVolume {
    let mut all = ChannelVolume::empty();
    (0..map.channels()).for_each(|_| all.push(volume_of(volume.gain)));
    all
}

fn driver_of(kind: Kind) -> CString {
    CString::new([kind.name().to_bytes(), b".c"].concat()).unwrap_or_default()
}
