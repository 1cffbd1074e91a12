//! Streams for which nobody has chosen a device get the one that comes first for their role, while
//! `module-device-manager` says so.

use std::ffi::CString;

use policy::{DeviceReason, Direction, Identity, Role, route};

use super::FrontEnd;
use super::sources::Source;
use crate::output::Devices;

impl<D: Devices> FrontEnd<D> {
    /// All streams for which nobody has chosen a device go to the one of their role.
    pub(super) fn route_streams(&mut self, now_ns: u64) {
        for index in self.inputs.indices() {
            self.route_input(index, now_ns);
        }
        let outputs: Vec<u32> = self.outputs.keys().copied().collect();
        for index in outputs {
            self.route_output(index, now_ns);
        }
    }

    /// Has a stream go there, if it is one of these; returns whether it is there then.
    pub(super) fn route_input(&mut self, index: u32, now_ns: u64) -> bool {
        let Some((sink, role)) = self.route_of_input(index) else { return false };
        self.bring_input(index, sink, &DeviceReason::Routed { role }, now_ns)
    }

    /// The same of one that records.
    pub(super) fn route_output(&mut self, index: u32, now_ns: u64) -> bool {
        let Some((source, role)) = self.route_of_output(index) else { return false };
        self.bring_output(index, source, &DeviceReason::Routed { role }, now_ns)
    }

    fn route_of_input(&self, index: u32) -> Option<(u32, Role)> {
        let input = self.inputs.get(index).filter(|input| input.adrift.is_none())?;
        let treatment = &input.treatment;
        let routed = self.route_of(&treatment.identity).filter(|_| treatment.device.lets_route());
        routed.and_then(|(name, role)| Some((self.sink_called(&name)?, role)))
    }

    fn route_of_output(&self, index: u32) -> Option<(Source, Role)> {
        let output = self.outputs.get(&index).filter(|output| output.adrift.is_none())?;
        let treatment = &output.treatment;
        let routed = self.route_of(&treatment.identity).filter(|_| treatment.device.lets_route());
        routed.and_then(|(name, role)| Some((self.source_called(&name)?, role)))
    }

    /// Returns the name of the device that comes first for the role of a stream, and that role;
    /// `None`: none does, or streams are not routed.
    pub(super) fn route_of(&self, stream: &Identity) -> Option<(String, Role)> {
        if !self.modules.routes() {
            return None;
        }
        let there: Vec<CString> = match stream.direction {
            Direction::Playback => {
                let sinks = self.sinks.indices().into_iter();
                sinks.filter_map(|index| Some(self.sinks.get(index)?.name.clone())).collect()
            }
            Direction::Recording => {
                let sources = self.sources().into_iter();
                sources.filter_map(|source| self.source_name(source)).collect()
            }
        };
        let names = there.iter().filter_map(|name| name.to_str().ok());
        let (name, role) = route(stream, self.desktop.memory.known_devices(), names)?;
        Some((name.to_owned(), role))
    }

    /// Streams stay where they are. Those that are on a default device follow it from now on.
    pub(super) fn stop_routing(&mut self) {
        let (sink, source) = self.defaults();
        for index in self.inputs.indices() {
            let Some(input) = self.inputs.get_mut(index) else { continue };
            if matches!(input.treatment.device, DeviceReason::Routed { .. }) {
                input.is_pinned = false;
                if Some(input.sink) == sink {
                    input.treatment.device = DeviceReason::Default;
                }
            }
        }
        for output in self.outputs.values_mut() {
            if matches!(output.treatment.device, DeviceReason::Routed { .. }) {
                output.is_pinned = false;
                if Some(output.source) == source {
                    output.treatment.device = DeviceReason::Default;
                }
            }
        }
    }
}
