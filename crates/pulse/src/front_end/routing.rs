//! Streams for which nobody has chosen a device get the one that comes first for their role, while
//! `module-device-manager` says so.

use std::ffi::CString;

use policy::{DeviceReason, Direction, Routes};

use super::FrontEnd;
use super::sources::Source;
use crate::output::Devices;

impl<D: Devices> FrontEnd<D> {
    /// All streams for which nobody has chosen a device go to the one of their role. Those that
    /// look for a place are routed when they have one.
    pub(super) fn route_streams(&mut self, now_ns: u64) {
        let routes = self.routes(Direction::Playback);
        let inputs = self.inputs.iter().filter(|(_, input)| input.adrift.is_none());
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        for index in inputs {
            self.route_input_by(&routes, index, now_ns);
        }
        let routes = self.routes(Direction::Recording);
        let outputs = self.outputs.iter().filter(|(_, output)| output.adrift.is_none());
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        for index in outputs {
            self.route_output_by(&routes, index, now_ns);
        }
    }

    /// Has a stream go there, if it is one of these; returns whether it is there then.
    pub(super) fn route_input(&mut self, index: u32, now_ns: u64) -> bool {
        self.route_input_by(&self.routes(Direction::Playback), index, now_ns)
    }

    /// The same of one that records.
    pub(super) fn route_output(&mut self, index: u32, now_ns: u64) -> bool {
        self.route_output_by(&self.routes(Direction::Recording), index, now_ns)
    }

    /// One for which no device comes first any more has the default one.
    fn route_input_by(&mut self, routes: &Routes, index: u32, now_ns: u64) -> bool {
        let Some(input) = self.inputs.get(index) else { return false };
        let treatment = &input.treatment;
        let route = routes.of(&treatment.identity).filter(|_| treatment.device.lets_route());
        let route = route.and_then(|(name, role)| Some((self.sink_called(name)?, role)));
        let routed = route.map(|(sink, role)| (sink, DeviceReason::Routed { role }));
        let default = || self.default_sink().map(|sink| (sink, DeviceReason::Default));
        let to = routed.or_else(|| treatment.is_routed().then(default)?);
        let Some((sink, reason)) = to else { return false };
        let is_there = self.bring_input(index, sink, &reason, now_ns);
        if let Some(input) = self.inputs.get_mut(index) {
            input.is_pinned &= reason != DeviceReason::Default;
            input.treatment.stays_where_it_was_routed_unless(is_there);
        }
        is_there
    }

    fn route_output_by(&mut self, routes: &Routes, index: u32, now_ns: u64) -> bool {
        let Some(output) = self.outputs.get(&index) else { return false };
        let treatment = &output.treatment;
        let route = routes.of(&treatment.identity).filter(|_| treatment.device.lets_route());
        let route = route.and_then(|(name, role)| Some((self.source_called(name)?, role)));
        let routed = route.map(|(source, role)| (source, DeviceReason::Routed { role }));
        let default = || self.default_source().map(|source| (source, DeviceReason::Default));
        let to = routed.or_else(|| treatment.is_routed().then(default)?);
        let Some((source, reason)) = to else { return false };
        let is_there = self.bring_output(index, source, &reason, now_ns);
        if let Some(output) = self.outputs.get_mut(&index) {
            output.is_pinned &= reason != DeviceReason::Default;
            output.treatment.stays_where_it_was_routed_unless(is_there);
        }
        is_there
    }

    /// Returns where new streams, and those for which nobody has chosen a device, go; nowhere if
    /// streams are not routed.
    pub(super) fn routes(&self, direction: Direction) -> Routes {
        if !self.modules.routes() {
            return Routes::default();
        }
        let is_there = |sink: u32| self.sinks.get(sink).is_some_and(|sink| !sink.is_away);
        let there: Vec<CString> = match direction {
            Direction::Playback => {
                let sinks = self.sinks.indices().into_iter().filter(|index| is_there(*index));
                sinks.filter_map(|index| Some(self.sinks.get(index)?.name.clone())).collect()
            }
            Direction::Recording => {
                let sources = self.sources().into_iter();
                let known = |source: &Source| self.is_no_monitor(*source);
                let sources = sources.filter(|source| is_there(source.sink()) && known(source));
                sources.filter_map(|source| self.source_name(source)).collect()
            }
        };
        let names = there.iter().filter_map(|name| name.to_str().ok());
        self.desktop.memory.known_devices().routes(direction, names)
    }

    /// Streams stay where they are. Those that are on a default device follow it from now on.
    pub(super) fn stop_routing(&mut self) {
        let (sink, source) = self.defaults();
        let reason = |is_default| match is_default {
            true => DeviceReason::Default,
            false => DeviceReason::WasRouted,
        };
        let inputs = self.inputs.values_mut();
        for input in inputs.filter(|input| input.treatment.is_routed()) {
            input.is_pinned = false;
            input.treatment.device = reason(Some(input.sink) == sink);
        }
        let outputs = self.outputs.values_mut();
        for output in outputs.filter(|output| output.treatment.is_routed()) {
            output.is_pinned = false;
            output.treatment.device = reason(Some(output.source) == source);
        }
    }
}
