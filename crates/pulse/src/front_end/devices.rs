//! What follows when the server's devices change: sinks come and go, and their streams with them.

use std::collections::BTreeMap;

use policy::DeviceReason;
use pulseaudio::protocol::{
    SubscriptionEventFacility as Facility, SubscriptionEventType as EventType,
};

use super::sinks::{Change, Face, Sink};
use super::source_outputs::SourceOutput;
use super::sources::Source;
use super::{Answer, FrontEnd};
use crate::input::Input;
use crate::output::{Devices, Output};

/// The sink and the source that programs get who name none.
type Defaults = (Option<u32>, Option<Source>);

impl<D: Devices> FrontEnd<D> {
    /// The server has come or gone, or says that something about its devices, or the roles of the
    /// graph's clients, has changed.
    pub fn devices_changed(&mut self, now_ns: u64) {
        self.take_all_heard(now_ns);
        self.refresh(now_ns);
        self.refresh_client_roles();
        if !self.inputs.is_empty() || !self.outputs.is_empty() {
            let homes = self.devices.homes();
            self.follow(&homes, now_ns);
        }
        self.restart_links(now_ns);
        self.note_ended_streams(now_ns);
        self.convert_recordings_again(now_ns);
        self.announce_states(now_ns);
    }

    /// Does the same as [`refresh`](Self::refresh) for a stream that begins, and is to be heard
    /// soon: the server is asked only if something may have changed.
    pub(super) fn refresh_if_changed(&mut self, now_ns: u64) {
        if self.devices.may_have_changed() {
            self.refresh(now_ns);
        }
    }

    /// Asks the server for its devices, and carries out what has changed.
    pub(super) fn refresh(&mut self, now_ns: u64) {
        let before = self.defaults();
        let Some(devices) = self.devices.list() else { return };
        let (cards, there_before) = (self.sinks.cards(), self.sources_there());
        let described = self.sinks.descriptions();
        let (modules, away) = (&self.modules, self.sinks.away());
        let changes = self.sinks.update(devices, |name| modules.description_of(name));
        if changes.is_empty() {
            return;
        }
        self.states.is_stale = true;
        self.announce_cards(&cards);
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                Change::Gone(index) => gone.push(index),
                other => there.push(other),
            }
        }
        let (mut new, mut has_returned) = (Vec::new(), false);
        for change in there {
            self.notify_sink(change);
            match change {
                Change::New(index) => {
                    self.sink_came(index, now_ns);
                    new.push(index);
                }
                Change::Changed(index) if away.contains(&index) => {
                    self.sink_returned(index);
                    has_returned = true;
                }
                Change::Changed(index) => self.sink_volume_changed(index),
                Change::Gone(_) => {}
            }
        }
        self.remove_sinks(&gone, before, now_ns);
        // Two cards of one name have other descriptions as long as both are there.
        for (index, description) in described {
            if self.sinks.get(index).is_some() && self.sinks.description(index) != description {
                self.notify_sink(Change::Changed(index));
            }
        }
        self.obey_policies(&new, now_ns);
        self.manage_devices(has_returned || !new.is_empty(), now_ns);
        self.note_devices_since(&there_before, now_ns);
    }

    /// Notifies programs of a sink and its sources.
    fn notify_sink(&mut self, change: Change) {
        let (index, event) = match change {
            Change::New(index) => (index, EventType::New),
            Change::Changed(index) => (index, EventType::Changed),
            Change::Gone(index) => (index, EventType::Removed),
        };
        let sources = self.sinks.get(index).map_or_else(Vec::new, |sink| sources_of(index, sink));
        for source in sources {
            self.notify(Facility::Source, event, source.index());
        }
        if self.sinks.is_sink(index) {
            self.notify(Facility::Sink, event, index);
        }
    }

    /// Takes leave of sinks whose devices have gone, or will: their streams go on at the default
    /// one, or end if there is none.
    pub(super) fn remove_sinks(&mut self, gone: &[u32], before: Defaults, now_ns: u64) {
        self.states.is_stale = true;
        self.keep_a_sink_without(gone, now_ns);
        let mut removed = Vec::new();
        for index in gone {
            removed.extend(self.sinks.remove(*index).map(|sink| (*index, sink)));
        }
        self.defaults_changed(before, now_ns);
        for (index, sink) in removed {
            self.rescue_streams_of(index, &sink, now_ns);
            for source in sources_of(index, &sink) {
                self.source_volumes.forget(source);
                self.notify(Facility::Source, EventType::Removed, source.index());
            }
            if sink.face() == Face::Sink {
                self.notify(Facility::Sink, EventType::Removed, index);
            }
            if sink.card.is_some() {
                self.notify(Facility::Card, EventType::Removed, index);
            }
            if let Some(described) = sink.described {
                let device = sink.device.unwrap_or_default();
                self.device_of_module_has_gone(described.module, &device, now_ns);
            }
        }
        if !gone.is_empty() {
            self.notify_of_known_devices();
        }
    }

    /// Moves the streams of a sink that is not listed any more, and of its sources.
    fn rescue_streams_of(&mut self, index: u32, sink: &Sink, now_ns: u64) {
        let rescues = self.modules.manager().is_some_and(|(_, manager)| manager.on_rescue);
        let inputs = self.inputs.iter().filter(|(_, input)| input.sink == index);
        let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
        for index in inputs {
            if let Some(input) = self.inputs.get_mut(index) {
                let device = sink.name.to_string_lossy().into_owned();
                input.treatment.device = DeviceReason::DeviceGone { device };
                input.is_pinned = false;
            }
            if rescues && self.route_input(index, now_ns) {
                continue;
            }
            let to = self.default_sink();
            if to.is_none_or(|to| self.move_input(index, to, now_ns).is_err()) {
                self.kill_input(index);
            }
        }
        let outputs: Vec<u32> = self.outputs.keys().copied().collect();
        for index in outputs {
            let source = self.outputs.get(&index).map(|output| output.source);
            if source.is_none_or(|source| self.samples_of(source).is_some()) {
                continue;
            }
            if let Some(output) = self.outputs.get_mut(&index) {
                let device = match source {
                    Some(Source::Capture(_)) => sink.capture_name(),
                    _ => sink.monitor_name(),
                };
                let device = device.to_string_lossy().into_owned();
                output.treatment.device = DeviceReason::DeviceGone { device };
                output.is_pinned = false;
            }
            if rescues && self.route_output(index, now_ns) {
                continue;
            }
            let to = self.default_source();
            if to.is_none_or(|to| self.move_output(index, to, now_ns).is_err()) {
                self.kill_output(index);
            }
        }
    }

    /// Returns the default sink and source.
    pub(super) fn defaults(&self) -> Defaults {
        (self.default_sink(), self.default_source())
    }

    /// Makes a sink the default one.
    pub(super) fn set_default_sink(&mut self, index: u32, now_ns: u64) -> Answer {
        let before = self.defaults();
        if let Some(name) = self.sinks.get(index).and_then(|sink| sink.name.to_str().ok()) {
            self.desktop.has_changed |= self.desktop.memory.choose_sink(name);
        }
        self.defaults_changed(before, now_ns);
        Answer::Done
    }

    /// Makes a source the default one.
    pub(super) fn set_default_source(&mut self, source: Source, now_ns: u64) -> Answer {
        let before = self.defaults();
        if let Some(name) = self.source_name(source).as_deref().and_then(|name| name.to_str().ok())
        {
            self.desktop.has_changed |= self.desktop.memory.choose_source(name);
        }
        self.defaults_changed(before, now_ns);
        Answer::Done
    }

    /// If there are other defaults than before, programs are notified, and streams follow, as with
    /// PulseAudio: all but those that a user has moved to where they are.
    pub(super) fn defaults_changed(&mut self, before: Defaults, now_ns: u64) {
        let after = self.defaults();
        if before == after {
            return;
        }
        self.notify(Facility::Server, EventType::Changed, u32::MAX);
        if before.0 != after.0
            && let (Some(from), Some(to)) = (before.0, after.0)
        {
            let inputs =
                self.inputs.iter().filter(|(_, input)| input.sink == from && !input.is_pinned);
            let inputs: Vec<u32> = inputs.map(|(index, _)| index).collect();
            for index in inputs {
                // One that cannot go there stays where it is.
                if self.move_input(index, to, now_ns).is_ok()
                    && let Some(input) = self.inputs.get_mut(index)
                {
                    input.treatment.follows_default();
                }
            }
        }
        if before.1 != after.1
            && let (Some(from), Some(to)) = (before.1, after.1)
        {
            let outputs = self.outputs.iter();
            let outputs = outputs.filter(|(_, output)| output.source == from && !output.is_pinned);
            let outputs: Vec<u32> = outputs.map(|(index, _)| *index).collect();
            for index in outputs {
                if self.move_output(index, to, now_ns).is_ok()
                    && let Some(output) = self.outputs.get_mut(&index)
                {
                    output.treatment.follows_default();
                }
            }
        }
        self.loopbacks_follow(now_ns);
    }

    /// Notes the streams that other programs of the server have moved.
    fn follow(&mut self, homes: &BTreeMap<u32, Option<String>>, now_ns: u64) {
        let indices: Vec<u32> = self.inputs.indices();
        for index in indices {
            let Some(input) = self.inputs.get(index) else { continue };
            if input.adrift.is_some() {
                continue;
            }
            let number = input.playback.output().number();
            let Some(device) = number.and_then(|number| homes.get(&number)) else { continue };
            let Some(sink) = self.sinks.of_device(device.as_deref()) else { continue };
            if input.sink != sink {
                self.input_has_moved(index, sink, now_ns);
                if let Some(input) = self.inputs.get_mut(index) {
                    input.treatment.device = DeviceReason::Moved;
                }
            }
        }
        let of_home = |output: &SourceOutput<D::Input>| {
            let is_monitor = matches!(output.source, Source::Monitor(_));
            let device = homes.get(&output.recording.input().number()?).filter(|_| is_monitor)?;
            let source = Source::Monitor(self.sinks.of_device(device.as_deref())?);
            (output.adrift.is_none() && output.source != source).then_some(source)
        };
        let outputs = self.outputs.iter();
        let moved: Vec<(u32, Source)> =
            outputs.filter_map(|(index, output)| Some((*index, of_home(output)?))).collect();
        for (index, source) in moved {
            self.output_has_moved(index, source, now_ns);
            if let Some(output) = self.outputs.get_mut(&index) {
                output.treatment.device = DeviceReason::Moved;
            }
        }
    }
}

/// Returns the sources that programs see of a device.
fn sources_of(index: u32, sink: &Sink) -> Vec<Source> {
    let monitor = (sink.face() != Face::Capture).then_some(Source::Monitor(index));
    let capture = (sink.format.captured > 0).then_some(Source::Capture(index));
    monitor.into_iter().chain(capture).collect()
}
