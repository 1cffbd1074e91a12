//! What streams and devices had last is remembered and restored.

use std::ffi::CString;

use policy::{Asked, DeviceEntry, Direction, Identity, Memory, Rules, Start, StreamEntry, start};
use pulseaudio::protocol::{
    Props, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::treatment::{Treatment, identity, remembered, restored};
use super::{FrontEnd, sinks::Sink};
use crate::output::Devices;
use crate::playback::{device_gains, device_volumes};

/// The tables on which decisions rest.
#[derive(Debug, Default)]
pub(super) struct Desktop {
    pub rules: Rules,
    pub memory: Memory,
    /// The clients of the graph that state a role.
    pub clients: Vec<Identity>,
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
        let routes = self.routes(direction);
        let start = start(&identity, asked, rules, memory, routes.of(&identity), is_there);
        (Treatment::new(identity, &start), start)
    }

    /// Returns the index of the sink of this name.
    pub(super) fn sink_named(&self, name: &str) -> Option<u32> {
        self.sinks.find(&CString::new(name).ok()?)
    }

    /// Remembers what this program has changed of a stream, if it may: a confined one could say
    /// that its stream is another program's.
    pub(super) fn remember(
        &mut self,
        client: u32,
        key: &str,
        change: impl FnOnce(&mut StreamEntry),
    ) {
        // MUTATION: remember.by_anyone
        if !self.rights_of(client).control {
            return;
        }
        let mut entry = self.desktop.memory.stream(key).cloned().unwrap_or_default();
        change(&mut entry);
        if self.desktop.memory.set_stream(key, entry) {
            self.memory_changed();
        }
    }

    /// What is remembered of streams has changed: programs that want to know it are notified.
    pub(super) fn memory_changed(&mut self) {
        self.desktop.has_changed = true;
        self.notify_all_of_memory();
    }

    /// A sink gets the volume that one of this name had, unless somebody has changed it already.
    pub(super) fn restore_sink(&mut self, index: u32) {
        let Some(sink) = self.sinks.get_mut(index) else { return };
        let entry = sink.name.to_str().ok().and_then(|name| self.desktop.memory.device(name));
        let Some(DeviceEntry { volume, muted, mixer }) = entry else { return };
        // What was left of a card's mixer says nothing about one that is left alone, and could be
        // much too loud there.
        if sink.has_mixer != *mixer {
            return;
        }
        // A card has the mixer that it was made with when it is plugged in, whatever volume the
        // server has kept for its name.
        if !sink.is_untouched && !sink.has_mixer {
            return;
        }
        let gains = device_gains(&restored(volume, &sink.map));
        let volume = self.devices.set_volume(sink.device.as_deref(), gains, Some(*muted));
        if let Ok(volume) = volume {
            sink.volume = volume;
            self.notify(Facility::Sink, EventType::Changed, index);
        }
    }

    /// A sink is there again on the next server. A volume that somebody has set there, or that the
    /// server has kept, stays.
    pub(super) fn sink_returned(&mut self, index: u32) {
        let is_new = |sink: &Sink| sink.is_untouched;
        match self.sinks.get(index).is_some_and(is_new) {
            true => self.restore_sink(index),
            false => self.sink_volume_changed(index),
        }
    }

    /// The volume of a sink has changed.
    pub(super) fn sink_volume_changed(&mut self, index: u32) {
        let Some(Sink { name, volume, map, has_mixer, .. }) = self.sinks.get(index) else { return };
        let Ok(name) = name.to_str() else { return };
        let volumes = remembered(&device_volumes(&volume.gains, map.channels()), map);
        let entry = DeviceEntry { volume: volumes, muted: volume.muted, mixer: *has_mixer };
        self.desktop.has_changed |= self.desktop.memory.set_device(name, entry);
    }
}
