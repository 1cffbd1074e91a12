//! What users and programs change of streams is remembered, and given to others of the same name.

use std::ffi::CStr;

use policy::{Asked, DeviceReason, StreamEntry, VolumeReason, start};
use pulseaudio::protocol::{
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::FrontEnd;
use super::desktop::Desktop;
use super::sources::Source;
use super::treatment::{Treatment, remembered, restored};
use crate::output::Devices;

impl<D: Devices> FrontEnd<D> {
    /// A program, its own or a mixer, has changed the volume of a stream.
    pub(super) fn input_volume_changed(&mut self, client: u32, index: u32) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        input.treatment.volume = VolumeReason::Changed;
        let volume = Some(remembered(&input.volume, &input.playback.program().map));
        let key = input.treatment.key.clone();
        self.remember(client, &key, |entry| entry.volume = volume);
    }

    /// The same of its mute.
    pub(super) fn input_mute_changed(&mut self, client: u32, index: u32) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        input.treatment.muted = VolumeReason::Changed;
        let (key, muted) = (input.treatment.key.clone(), input.is_muted);
        self.remember(client, &key, |entry| entry.muted = Some(muted));
    }

    /// A user has moved a stream. On the default sink, it follows the default.
    pub(super) fn input_device_changed(&mut self, client: u32, index: u32) {
        let Some(input) = self.inputs.get_mut(index) else { return };
        input.treatment.device = DeviceReason::Moved;
        let key = input.treatment.key.clone();
        let sink = self.sinks.get(input.sink).filter(|_| input.is_pinned);
        let device = sink.map(|sink| sink.name.to_string_lossy().into_owned());
        self.remember(client, &key, |entry| entry.device = device);
    }

    /// The volume of a stream that records has changed.
    pub(super) fn output_volume_changed(&mut self, client: u32, index: u32) {
        let Some(output) = self.outputs.get_mut(&index) else { return };
        output.treatment.volume = VolumeReason::Changed;
        let volume = Some(remembered(&output.volume, &output.recording.program().map));
        let key = output.treatment.key.clone();
        self.remember(client, &key, |entry| entry.volume = volume);
    }

    /// The same of its mute.
    pub(super) fn output_mute_changed(&mut self, client: u32, index: u32) {
        let Some(output) = self.outputs.get_mut(&index) else { return };
        output.treatment.muted = VolumeReason::Changed;
        let (key, muted) = (output.treatment.key.clone(), output.is_muted);
        self.remember(client, &key, |entry| entry.muted = Some(muted));
    }

    /// A user has moved a stream that records.
    pub(super) fn output_device_changed(&mut self, client: u32, index: u32) {
        let Some(output) = self.outputs.get_mut(&index) else { return };
        output.treatment.device = DeviceReason::Moved;
        let (key, source) = (output.treatment.key.clone(), output.source);
        let source = Some(source).filter(|_| output.is_pinned);
        let device = source.and_then(|source| self.source_name(source));
        let device = device.map(|name| name.to_string_lossy().into_owned());
        self.remember(client, &key, |entry| entry.device = device);
    }

    /// All streams of a name get what is remembered now.
    pub(super) fn restore_inputs(&mut self, key: &str, now_ns: u64) {
        let Some(entry) = self.desktop.memory.stream(key).cloned() else { return };
        self.restore_outputs(key, &entry, now_ns);
        let inputs = self.inputs.iter().filter(|(_, input)| input.treatment.key == key);
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        for index in inputs {
            let Some(input) = self.inputs.get_mut(index) else { continue };
            if let Some(volume) = &entry.volume {
                input.volume = restored(volume, &input.playback.program().map);
                input.treatment.volume = VolumeReason::ChangedForAll;
            }
            if let Some(muted) = entry.muted {
                input.is_muted = muted;
                input.treatment.muted = VolumeReason::ChangedForAll;
            }
            let _ = self.apply_gains(index);
            let device = entry.device.as_deref().and_then(|device| self.sink_named(device));
            if let Some(sink) = device {
                self.bring_input(index, sink, &DeviceReason::Remembered, now_ns);
            }
        }
        self.desktop.is_stale = true;
    }

    /// The same of those that record.
    fn restore_outputs(&mut self, key: &str, entry: &StreamEntry, now_ns: u64) {
        let outputs = self.outputs.iter().filter(|(_, output)| output.treatment.key == key);
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        for index in outputs {
            let Some(output) = self.outputs.get_mut(&index) else { continue };
            if let Some(volume) = &entry.volume {
                output.volume = restored(volume, &output.recording.program().map);
                output.treatment.volume = VolumeReason::ChangedForAll;
            }
            if let Some(muted) = entry.muted {
                output.is_muted = muted;
                output.treatment.muted = VolumeReason::ChangedForAll;
            }
            self.apply_output_gains(index);
            self.notify(Facility::SourceOutput, EventType::Changed, index);
            let device = entry.device.as_deref().and_then(|device| self.source_named(device));
            if let Some(source) = device {
                self.bring_output(index, source, &DeviceReason::Remembered, now_ns);
            }
        }
    }

    /// A sink is new: it gets its volume, and the streams return that a user has moved to one of
    /// this name, or to its monitor.
    pub(super) fn sink_came(&mut self, index: u32, now_ns: u64) {
        self.restore_sink(index);
        let Some(sink) = self.sinks.get(index) else { return };
        let (name, monitor) = (sink.name.clone(), sink.monitor_name());
        let inputs = self
            .inputs
            .iter()
            .filter(|(_, input)| !input.stays && self.desktop.wants(&input.treatment, &name));
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        for input in inputs {
            self.bring_input(input, index, &DeviceReason::DeviceCame, now_ns);
        }
        let outputs = self
            .outputs
            .iter()
            .filter(|(_, output)| !output.stays && self.desktop.wants(&output.treatment, &monitor));
        let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
        for output in outputs {
            self.bring_output(output, Source::Monitor(index), &DeviceReason::DeviceCame, now_ns);
        }
    }

    /// Moves a stream to the sink that was chosen for it; returns whether it is there then. One
    /// that cannot go there stays where it is.
    pub(super) fn bring_input(
        &mut self,
        index: u32,
        sink: u32,
        reason: &DeviceReason,
        now_ns: u64,
    ) -> bool {
        let is_there = self.move_input(index, sink, now_ns).is_ok();
        if let Some(input) = self.inputs.get_mut(index).filter(|_| is_there) {
            input.is_pinned = true;
            input.treatment.device = reason.clone();
        }
        is_there
    }

    /// The same of a source.
    pub(super) fn bring_output(
        &mut self,
        index: u32,
        source: Source,
        reason: &DeviceReason,
        now_ns: u64,
    ) -> bool {
        let is_there = self.move_output(index, source, now_ns).is_ok();
        if let Some(output) = self.outputs.get_mut(&index).filter(|_| is_there) {
            output.is_pinned = true;
            output.treatment.device = reason.clone();
        }
        is_there
    }
}

impl Desktop {
    /// Returns whether a stream is to go to a device of this name, which has just come.
    fn wants(&self, treatment: &Treatment, name: &CStr) -> bool {
        let may_return = !matches!(
            treatment.device,
            DeviceReason::Program | DeviceReason::Moved | DeviceReason::Rule { .. }
        );
        let is_it = |device: &str| device.as_bytes() == name.to_bytes();
        let Self { rules, memory, .. } = self;
        let start = start(&treatment.identity, Asked::default(), rules, memory, None, is_it);
        may_return && start.device.value.is_some()
    }
}
