//! The devices that `module-device-manager` has seen, with the names that users have given them.

use std::ffi::{CStr, CString};

use policy::{DeviceThere, Direction, KnownDevices};
use pulseaudio::protocol::{
    Prop, Props, SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::properties;
use super::sinks::{Face, Sink};
use super::sources::Source;
use super::{Client, FrontEnd};
use crate::output::Devices;
use crate::wire;

/// The name of the module, as its extension has it.
pub(super) const MANAGER: &CStr = c"module-device-manager";

impl<D: Devices> FrontEnd<D> {
    /// The module is loaded.
    pub(super) fn begin_to_manage(&mut self, now_ns: u64) {
        self.see_devices();
        self.notify_of_renamed();
        self.route_streams(now_ns);
    }

    /// The module is not loaded any more: devices have their own names again.
    pub(super) fn end_managing(&mut self) {
        self.stop_routing();
        self.notify_of_renamed();
    }

    /// Devices have changed, and some may have come.
    pub(super) fn manage_devices(&mut self, has_new: bool, now_ns: u64) {
        let Some((_, manager)) = self.modules.manager() else { return };
        let known = |front_end: &Self| front_end.desktop.memory.known_devices().iter().count();
        let before = known(self);
        let has_changed = self.see_devices();
        // One that was deleted is known again.
        let has_new = has_new || known(self) > before;
        if !has_changed && has_new {
            self.notify_of_known_devices();
        }
        if has_new && manager.on_hotplug {
            self.route_streams(now_ns);
        }
    }

    /// Streams have a place again: a device that came while they had none may be theirs.
    pub(super) fn route_again(&mut self, now_ns: u64) {
        if self.modules.manager().is_some_and(|(_, manager)| manager.on_hotplug) {
            self.route_streams(now_ns);
        }
    }

    /// Remembers all devices that are there; returns whether there was something new.
    fn see_devices(&mut self) -> bool {
        // At first, those with hardware come before the others, as in PulseAudio.
        let is_hardware = |index: &u32| {
            self.sinks.get(*index).is_some_and(|sink| sink.card.is_some() || sink.device.is_none())
        };
        let mut sinks = self.sinks.indices();
        sinks.sort_by_key(|index| !is_hardware(index));
        let mut sources = self.sources();
        sources.retain(|source| self.is_no_monitor(*source));
        sources.sort_by_key(|source| !is_hardware(&source.sink()));
        let sinks = sinks.into_iter().filter_map(|index| {
            let name = self.sinks.get(index)?.name.clone();
            let icon = icon(&self.sink_info(index)?.props);
            Some(there(Direction::Playback, &name, &self.sinks.description(index), icon))
        });
        let sources = sources.into_iter().filter_map(|source| {
            let name = self.source_name(source)?;
            let icon = icon(&self.source_info(source)?.props);
            let description = self.sinks.description(source.sink());
            Some(there(Direction::Recording, &name, &description, icon))
        });
        let seen: Vec<DeviceThere> = sinks.chain(sources).collect();
        let has_changed = self.desktop.memory.known_devices_mut().see_all(&seen);
        if has_changed {
            self.known_devices_changed();
        }
        has_changed
    }

    /// Returns whether a source is a device of its own, which can have a name.
    pub(super) fn is_no_monitor(&self, source: Source) -> bool {
        let face = self.sinks.get(source.sink()).map(Sink::face);
        matches!(source, Source::Capture(_)) || face == Some(Face::Source)
    }

    /// What is remembered of devices has changed: it is kept, and programs that want to know it are
    /// notified.
    pub(super) fn known_devices_changed(&mut self) {
        self.desktop.has_changed = true;
        self.notify_of_known_devices();
    }

    /// Notifies programs that follow what is known of devices, and whether they are there.
    pub(super) fn notify_of_known_devices(&mut self) {
        let Some((module, _)) = self.modules.manager() else { return };
        let follow = self.clients.iter().filter(|(_, known)| known.follows_module == Some(module));
        let follow: Vec<u32> = follow.map(|(number, _)| *number).collect();
        for client in follow {
            self.notify_of_devices(client);
        }
    }

    /// Notifies a program that what is remembered of devices has changed, once it has taken what
    /// was sent.
    pub(super) fn notify_of_devices(&mut self, client: u32) {
        let Some((module, _)) = self.modules.manager() else { return };
        let known = self.clients.get_mut(&client);
        // The one that it follows may have been unloaded while it was behind.
        let Some(known) = known.filter(|known| known.follows_module == Some(module)) else {
            return;
        };
        if known.is_behind {
            known.owes_devices = true;
        } else {
            let version = Client::version(known);
            self.send(client, wire::devices_changed(module, MANAGER, version));
        }
    }

    /// Returns the name that a user has given a device.
    pub(super) fn new_name(&self, direction: Direction, name: &CStr) -> Option<CString> {
        self.modules.manager()?;
        let key = KnownDevices::key(direction, name.to_str().ok()?);
        let known = self.desktop.memory.known_devices().get(&key)?;
        known.is_renamed.then(|| CString::new(known.description.as_str()).ok())?
    }

    /// Returns the name of a sink that users see.
    pub(super) fn sink_description(&self, index: u32) -> CString {
        let sink = self.sinks.get(index);
        let renamed = sink.and_then(|sink| self.new_name(Direction::Playback, &sink.name));
        renamed.unwrap_or_else(|| self.sinks.description(index))
    }

    /// Returns the index of a device of exactly this name.
    pub(super) fn index_of_device(&self, direction: Direction, name: &str) -> Option<u32> {
        match direction {
            Direction::Playback => self.sink_called(name),
            Direction::Recording => {
                let source = self.source_called(name).filter(|source| self.is_no_monitor(*source));
                source.map(Source::index)
            }
        }
    }

    /// Returns the index of the sink of exactly this name.
    pub(super) fn sink_called(&self, name: &str) -> Option<u32> {
        let found = self.sink_named(name)?;
        (self.sinks.get(found)?.name.to_bytes() == name.as_bytes()).then_some(found)
    }

    /// The same of a source.
    pub(super) fn source_called(&self, name: &str) -> Option<Source> {
        let found = self.source_named(name)?;
        (self.source_name(found)?.to_bytes() == name.as_bytes()).then_some(found)
    }

    /// Notifies programs that a device has another name, or its own again.
    pub(super) fn notify_of_name(&mut self, key: &str) {
        let Some((direction, name)) = KnownDevices::device_of(key) else { return };
        let Some(index) = self.index_of_device(direction, name) else { return };
        match direction {
            Direction::Playback => {
                self.notify(Facility::Sink, EventType::Changed, index);
                let monitor = Source::Monitor(index).index();
                self.notify(Facility::Source, EventType::Changed, monitor);
            }
            Direction::Recording => self.notify(Facility::Source, EventType::Changed, index),
        }
    }

    fn notify_of_renamed(&mut self) {
        let known = self.desktop.memory.known_devices().iter();
        let renamed = known.filter(|(_, device)| device.is_renamed);
        let renamed: Vec<String> = renamed.map(|(key, _)| key.to_owned()).collect();
        renamed.iter().for_each(|key| self.notify_of_name(key));
    }
}

fn there(direction: Direction, name: &CStr, description: &CStr, icon: String) -> DeviceThere {
    let [name, description] = [name, description].map(|text| text.to_string_lossy().into_owned());
    DeviceThere { direction, name, description, icon }
}

fn icon(props: &Props) -> String {
    let icon = properties::text(props, Prop::DeviceIconName);
    icon.unwrap_or_default().to_string_lossy().into_owned()
}
