//! One LADSPA plug-in for all channels of a stream.

mod controls;
mod files;

use anyhow::{Context, bail, ensure};

use crate::library::ladspa::{Instance, Plugin, Port, PortKind};

/// Frames that a plug-in is given at once, at most.
const BLOCK_FRAMES: usize = 1_024;

/// A plug-in, and how to use it: the arguments of PulseAudio's `module-ladspa-sink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LadspaOptions {
    /// Its library: a name that is looked for in `LADSPA_PATH`, or else in the usual directories,
    /// or a whole path.
    pub plugin: String,
    /// Its label in there.
    pub label: String,
    /// The values of its control inputs, with commas in between; an empty one is the default.
    pub control: Option<String>,
    /// The names of its audio inputs in the order of the channels, with commas in between; those
    /// that are left out follow in the plug-in's order.
    pub inputs: Option<String>,
    /// The same of its audio outputs.
    pub outputs: Option<String>,
}

/// A plug-in at work: one instance for as many channels as it has inputs or outputs.
#[derive(Debug)]
pub struct Ladspa {
    instances: Vec<Instance>,
    /// Its ports in the order of the channels of an instance.
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Channels of an instance.
    width: usize,
}

impl Ladspa {
    /// Loads a plug-in for sound of this many channels.
    ///
    /// # Errors
    /// It is not there, cannot be loaded or does not suit: the channels, the rate, or its own ports
    /// and what the options say of them.
    pub fn open(options: &LadspaOptions, channels: usize, rate_hz: u32) -> anyhow::Result<Self> {
        let file = files::find(&options.plugin)?;
        let plugin = Plugin::load(&file, &options.label)?;
        let title = || format!("the plug-in '{}' of {}", options.label, file.display());
        Self::of(plugin, options, channels, rate_hz).with_context(title)
    }

    fn of(
        plugin: Plugin,
        options: &LadspaOptions,
        channels: usize,
        rate_hz: u32,
    ) -> anyhow::Result<Self> {
        let ports = plugin.ports()?;
        let of_kind = |kind: PortKind| {
            let is_one = move |port: &(usize, &Port)| port.1.kind == kind;
            ports.iter().enumerate().filter(is_one).map(|(number, _)| number).collect::<Vec<_>>()
        };
        let inputs = mapped(&ports, of_kind(PortKind::AudioInput), options.inputs.as_deref())
            .context("input_ladspaport_map")?;
        let outputs = mapped(&ports, of_kind(PortKind::AudioOutput), options.outputs.as_deref())
            .context("output_ladspaport_map")?;
        let width = inputs.len().max(outputs.len());
        ensure!(!outputs.is_empty(), "it has no audio output");
        ensure!(
            channels > 0 && channels.is_multiple_of(width),
            "it has {} audio inputs and {} outputs, which does not suit {channels} channels",
            inputs.len(),
            outputs.len()
        );
        let control_ports = of_kind(PortKind::ControlInput);
        let described: Vec<&Port> = control_ports.iter().map(|number| &ports[*number]).collect();
        let values = controls::values(options.control.as_deref(), &described, rate_hz)?;
        let instance = || {
            let mut instance = Instance::new(plugin, rate_hz, BLOCK_FRAMES)?;
            for (port, value) in control_ports.iter().zip(&values) {
                instance.port(*port).iter_mut().take(1).for_each(|cell| *cell = *value);
            }
            Ok(instance)
        };
        let instances = (0..channels / width).map(|_| instance()).collect::<anyhow::Result<_>>()?;
        Ok(Self { instances, inputs, outputs, width })
    }

    /// Processes frames in place: a slice for each channel, all of the same length. Samples are
    /// clamped to full scale before and after, as by PulseAudio; what is no number is silence.
    ///
    /// Thread: any but a real-time one, as a plug-in may do anything.
    pub fn process(&mut self, planes: &mut [&mut [f32]]) {
        let frames = planes.iter().map(|plane| plane.len()).min().unwrap_or(0);
        let channels = planes.chunks_mut(self.width);
        for (instance, planes) in self.instances.iter_mut().zip(channels) {
            for first in (0..frames).step_by(BLOCK_FRAMES) {
                let block = first..frames.min(first + BLOCK_FRAMES);
                for (port, plane) in self.inputs.iter().zip(&*planes) {
                    copy(&plane[block.clone()], instance.port(*port));
                }
                instance.run(block.len());
                for (number, plane) in planes.iter_mut().enumerate() {
                    match self.outputs.get(number) {
                        Some(port) => copy(instance.port(*port), &mut plane[block.clone()]),
                        None => plane[block.clone()].fill(0.0),
                    }
                }
            }
        }
    }
}

fn copy(from: &[f32], to: &mut [f32]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = if from.is_finite() { from.clamp(-1.0, 1.0) } else { 0.0 };
    }
}

/// Puts ports in the order of a list of names. Those that it does not name come after.
///
/// # Errors
/// A name is none of these ports, or is there twice.
fn mapped(
    ports: &[Port],
    mut of_kind: Vec<usize>,
    map: Option<&str>,
) -> anyhow::Result<Vec<usize>> {
    let mut first = Vec::new();
    for name in map.unwrap_or_default().split(',').filter(|name| !name.is_empty()) {
        let Some(at) = of_kind.iter().position(|number| ports[*number].name == name) else {
            let left: Vec<&str> = of_kind.iter().map(|number| &*ports[*number].name).collect();
            bail!("there is no further port '{name}': left are {}", left.join(", "));
        };
        first.push(of_kind.remove(at));
    }
    first.append(&mut of_kind);
    Ok(first)
}

#[cfg(test)]
mod tests;
