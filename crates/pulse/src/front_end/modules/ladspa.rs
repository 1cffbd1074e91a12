//! `module-ladspa-sink`: a sink that is heard on another through a LADSPA plug-in.

use super::arguments::{Arguments, Samples};
use super::plans::{FILTER_LATENCY_MS, Plan, PlannedDevice, described};
use crate::front_end::FrontEnd;
use crate::front_end::properties;
use crate::front_end::sinks::{Face, Shown};
use crate::output::{Devices, Heard, NewLink, NewLoopback};
use crate::processing::{NewPlugin, Processing};

/// The samples of plug-ins.
const FORMAT: &str = "float32le";

impl<D: Devices> FrontEnd<D> {
    pub(super) fn ladspa_sink(&self, arguments: &Arguments) -> Result<Plan, String> {
        let needed = |key: &str| arguments.name(key)?.ok_or_else(|| format!("{key} is needed"));
        let (plugin, label) = (needed("plugin")?, needed("label")?);
        let master = arguments.text("sink_master").or_else(|| arguments.text("master"));
        let master = self.named_sink(master)?;
        let Samples { format, rate_hz, map } = arguments.samples()?;
        if format.is_some_and(|format| FORMAT.parse() != Ok(format)) {
            return Err(format!("format is that of plug-ins: leave it out, or use {FORMAT}"));
        }
        arguments.boolean("autoloaded")?;
        let name = arguments.name("sink_name")?;
        let name = name.unwrap_or_else(|| format!("{}.ladspa", master.name));
        let description = format!("LADSPA Plugin {label} on {}", master.description);
        let mut props = described(&description, "filter");
        properties::set(&mut props, c"device.master_device", &master.name);
        properties::set(&mut props, c"device.ladspa.module", &plugin);
        properties::set(&mut props, c"device.ladspa.label", &label);
        arguments.add_properties("sink_properties", &mut props)?;
        arguments
            .add_properties("sink_input_properties", &mut pulseaudio::protocol::Props::new())?;
        let plugin = NewPlugin {
            plugin,
            label,
            control: arguments.text("control"),
            inputs: arguments.text("input_ladspaport_map"),
            outputs: arguments.text("output_ladspaport_map"),
        };
        let map = map.unwrap_or(master.map);
        let later_us = u64::from(FILTER_LATENCY_MS) * 1000 + master.later_us;
        let shown = Shown { props, map, face: Face::Sink, later_us };
        let rate_hz = Some(rate_hz.unwrap_or(master.rate_hz));
        let link = move |device| {
            let loopback = NewLoopback {
                from: Heard { device: Some(device), captures: false },
                from_map: map,
                via: None,
                to: vec![(master.heard.device, master.map)],
                mixed: true,
                latency_ms: FILTER_LATENCY_MS,
            };
            NewLink::Processed(loopback, Box::new(Processing::Ladspa(plugin)))
        };
        let device = PlannedDevice { name, rate_hz, shown };
        Ok(Plan { device: Some(device), link: Some(Box::new(link)), listening: None })
    }
}
