//! What streams and devices had last is remembered and restored.

use std::ffi::CString;

use policy::{
    Asked, DeviceEntry, DeviceReason, Direction, Memory, Rules, Start, StreamEntry, VolumeReason,
    start,
};
use pulseaudio::protocol::{
    Props, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType, Volume,
};

use super::treatment::{Treatment, identity, remembered, restored};
use super::{FrontEnd, sinks::Sink};
use crate::output::Devices;
use crate::playback::{gain_of, volume_of};

/// The tables on which decisions rest.
#[derive(Debug, Default)]
pub(super) struct Desktop {
    pub rules: Rules,
    pub memory: Memory,
    /// Whether the memory has changed since somebody asked.
    pub has_changed: bool,
    /// Something has changed by which streams do something to each other.
    pub is_stale: bool,
}

impl<D: Devices> FrontEnd<D> {
    /// Remembers what this memory does, and obeys rules.
    pub fn remembering(mut self, memory: Memory, rules: Rules) -> Self {
        (self.desktop.memory, self.desktop.rules) = (memory, rules);
        for index in self.sinks.indices() {
            self.restore_sink(index);
        }
        self
    }

    /// Obeys other rules from now on; what they say about the beginning of a stream holds for
    /// later ones.
    pub fn obey(&mut self, rules: Rules) {
        self.desktop.rules = rules;
        self.desktop.is_stale = true;
    }

    /// Returns what is remembered.
    pub fn memory(&self) -> &Memory {
        &self.desktop.memory
    }

    /// Returns whether it has changed since the last time.
    pub fn take_memory_has_changed(&mut self) -> bool {
        std::mem::take(&mut self.desktop.has_changed)
    }

    /// Decides how a stream with these properties begins.
    pub(super) fn decide_start(
        &self,
        direction: Direction,
        props: &Props,
        asked: Asked,
    ) -> (Treatment, Start) {
        let identity = identity(direction, props);
        let Desktop { rules, memory, .. } = &self.desktop;
        let is_there = |device: &str| match direction {
            Direction::Playback => self.sink_named(device).is_some(),
            Direction::Recording => self.source_named(device).is_some(),
        };
        let start = start(&identity, asked, rules, memory, is_there);
        (Treatment::new(identity, &start), start)
    }

    /// Returns the index of the sink of this name.
    pub(super) fn sink_named(&self, name: &str) -> Option<u32> {
        self.sinks.find(&CString::new(name).ok()?)
    }

    /// A user or its program has changed the volume of a stream.
    pub(super) fn input_volume_changed(&mut self, index: u32) {
        let Some(input) = self.inputs.get_mut(&index) else { return };
        input.treatment.volume = VolumeReason::Changed;
        let volume = Some(remembered(&input.volume, &input.playback.program().map));
        let key = input.treatment.key.clone();
        self.remember(&key, |entry| entry.volume = volume);
    }

    /// The same of its mute.
    pub(super) fn input_mute_changed(&mut self, index: u32) {
        let Some(input) = self.inputs.get_mut(&index) else { return };
        input.treatment.muted = VolumeReason::Changed;
        let (key, muted) = (input.treatment.key.clone(), input.is_muted);
        self.remember(&key, |entry| entry.muted = Some(muted));
    }

    /// A user has moved a stream. On the default sink, it follows the default.
    pub(super) fn input_device_changed(&mut self, index: u32) {
        let Some(input) = self.inputs.get_mut(&index) else { return };
        input.treatment.device = DeviceReason::Moved;
        let key = input.treatment.key.clone();
        let sink = self.sinks.get(input.sink).filter(|_| input.is_pinned);
        let device = sink.map(|sink| sink.name.to_string_lossy().into_owned());
        self.remember(&key, |entry| entry.device = device);
    }

    pub(super) fn remember(&mut self, key: &str, change: impl FnOnce(&mut StreamEntry)) {
        let mut entry = self.desktop.memory.stream(key).cloned().unwrap_or_default();
        change(&mut entry);
        if self.desktop.memory.set_stream(key, entry) {
            self.memory_changed();
        }
    }

    /// What is remembered of streams has changed: programs that want to know it are notified.
    pub(super) fn memory_changed(&mut self) {
        self.desktop.has_changed = true;
        self.notify_of_memory();
    }

    /// All streams of a name get what is remembered now.
    pub(super) fn restore_inputs(&mut self, key: &str, now_ns: u64) {
        let Some(entry) = self.desktop.memory.stream(key).cloned() else { return };
        let inputs = self.inputs.iter().filter(|(_, input)| input.treatment.key == key);
        let inputs: Vec<u32> = inputs.map(|(index, _)| *index).collect();
        for index in inputs {
            let Some(input) = self.inputs.get_mut(&index) else { continue };
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
                self.bring(index, sink, &DeviceReason::Remembered, now_ns);
            }
        }
        self.desktop.is_stale = true;
    }

    /// A sink is new: it gets its volume, and the streams that a user has moved to one of this
    /// name return.
    pub(super) fn sink_came(&mut self, index: u32, now_ns: u64) {
        self.restore_sink(index);
        let Some(name) = self.sinks.get(index).map(|sink| sink.name.clone()) else { return };
        let Desktop { rules, memory, .. } = &self.desktop;
        let wants = |treatment: &Treatment| {
            let is_it = |device: &str| device.as_bytes() == name.to_bytes();
            let may_return = !matches!(
                treatment.device,
                DeviceReason::Program | DeviceReason::Moved | DeviceReason::Rule { .. }
            );
            let start = start(&treatment.identity, Asked::default(), rules, memory, is_it);
            may_return && start.device.value.is_some()
        };
        let inputs = self.inputs.iter();
        let inputs = inputs.filter(|(_, input)| !input.stays && wants(&input.treatment));
        let inputs: Vec<u32> = inputs.map(|(index, _)| *index).collect();
        for input in inputs {
            self.bring(input, index, &DeviceReason::DeviceCame, now_ns);
        }
    }

    /// Moves a stream to the sink that was chosen for it.
    fn bring(&mut self, index: u32, sink: u32, reason: &DeviceReason, now_ns: u64) {
        // One that cannot go there stays where it is.
        if self.move_input(index, sink, now_ns).is_ok()
            && let Some(input) = self.inputs.get_mut(&index)
        {
            input.is_pinned = true;
            input.treatment.device = reason.clone();
        }
    }

    /// A sink gets the volume that one of this name had, unless somebody has changed it already.
    fn restore_sink(&mut self, index: u32) {
        let Some(sink) = self.sinks.get_mut(index) else { return };
        let entry = sink.name.to_str().ok().and_then(|name| self.desktop.memory.device(name));
        let Some(DeviceEntry { volume, muted }) = entry else { return };
        if sink.volume != client::stream::Volume::default() {
            return;
        }
        let mut volumes = pulseaudio::protocol::ChannelVolume::empty();
        volumes.push(Volume::from_u32_clamped(volume));
        let restored =
            self.devices.set_volume(sink.device.as_deref(), gain_of(&volumes), Some(muted));
        if let Some(restored) = restored {
            sink.volume = restored;
            self.notify(Facility::Sink, EventType::Changed, index);
        }
    }

    /// The volume of a sink has changed.
    pub(super) fn sink_volume_changed(&mut self, index: u32) {
        let Some(Sink { name, volume, .. }) = self.sinks.get(index) else { return };
        let Ok(name) = name.to_str() else { return };
        let entry = DeviceEntry { volume: volume_of(volume.gain).as_u32(), muted: volume.muted };
        self.desktop.has_changed |= self.desktop.memory.set_device(name, entry);
    }
}
