//! A driver's channels as ports: `capture_1`, `monitor_1`, `playback_1` and so on.

use device::Channels;
use proto::port_flags;
use proto::request::{NewPort, PortType, RequestError, SlabSlot};
use rt::shm::SLOTS_PER_SLAB;

use super::Model;

/// Flags of a device's ports. Monitors do not have them, so that programs that look for a
/// microphone do not find one.
const OF_DEVICE: u32 = port_flags::PHYSICAL | port_flags::TERMINAL;

fn port(name: &str, channel: u32, flags: u32, number: u32) -> NewPort {
    let is_output = flags & port_flags::OUTPUT != 0;
    let slot = is_output
        .then_some(SlabSlot { slab: number / SLOTS_PER_SLAB, slot: number % SLOTS_PER_SLAB });
    let name = format!("{name}_{}", channel + 1);
    NewPort { name, port_type: PortType::Audio, flags, number, slot }
}

/// The ports of these channels, in the order of their numbers in each direction.
fn ports(channels: &Channels) -> impl Iterator<Item = NewPort> {
    let Channels { capture, playback, monitors } = *channels;
    let first_monitor = channels.first_monitor();
    let captures = (0..capture)
        .map(|channel| port("capture", channel, port_flags::OUTPUT | OF_DEVICE, channel));
    let monitors = (0..monitors)
        .map(move |channel| port("monitor", channel, port_flags::OUTPUT, first_monitor + channel));
    let playbacks = (0..playback)
        .map(|channel| port("playback", channel, port_flags::INPUT | OF_DEVICE, channel));
    captures.chain(monitors).chain(playbacks)
}

impl Model {
    /// Sets a device's channels. Existing ports stay as they are, the others are removed or added.
    /// The ports of each direction stay in the order of their channels.
    pub fn set_channels(&mut self, owner: u32, channels: &Channels) -> Result<(), RequestError> {
        let all = u64::from(channels.capture)
            + u64::from(channels.monitors)
            + u64::from(channels.playback);
        let owned = self.ports_of(owner).count() as u64;
        if self.ports.len() as u64 - owned + all > u64::from(self.limits.ports) {
            let advice = "start the server with a larger --port-max".into();
            return Err(RequestError::Full {
                what: "port".into(),
                limit: self.limits.ports,
                advice,
            });
        }
        let mut new: Vec<NewPort> = ports(channels).collect();
        let mut gone = Vec::new();
        for there in self.ports_of(owner) {
            // Compares flags and numbers, since a program may have renamed the port.
            let same = |port: &NewPort| (port.flags, port.number) == (there.flags, there.number);
            match new.iter().position(same) {
                Some(index) => drop(new.remove(index)),
                None => gone.push(there.id),
            }
        }
        for port in &new {
            match self.new_port_name(owner, port) {
                Err(RequestError::NameTaken(name)) if gone.contains(&self.port_names[&name]) => {}
                checked => drop(checked?),
            }
        }
        let announced = self.clients.get(&owner).is_some_and(|client| client.active);
        gone.into_iter().for_each(|port| self.remove_port(port, announced));
        if let Some(device) = self.devices.get_mut(&owner) {
            device.captures = channels.capture;
        }
        new.iter().try_for_each(|port| self.register_port(owner, port).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Limits};

    fn model(ports: u32) -> (Model, u32) {
        let mut model = Model::new(Limits { clients: 8, ports, connections: 64 });
        let system = model.open_device("system").unwrap();
        (model, system)
    }

    fn channels(capture: u32, playback: u32) -> Channels {
        Channels { capture, playback, monitors: 0 }
    }

    fn names(model: &Model, owner: u32) -> Vec<&str> {
        let mut names: Vec<&str> =
            model.ports_of(owner).map(|port| &port.name["system:".len()..]).collect();
        names.sort_unstable();
        names
    }

    fn ids(model: &Model, owner: u32, output: bool) -> Vec<(u32, u32)> {
        let ports = model.ports_of(owner).filter(|port| port.is_output() == output);
        ports.map(|port| (port.number, port.id)).collect()
    }

    #[test]
    fn ports_of_unchanged_channels_survive_a_change_of_channels() {
        let (mut model, system) = model(64);
        model.set_channels(system, &channels(2, 3)).unwrap();
        let before = ids(&model, system, false);
        model.take_changes();
        model.set_channels(system, &channels(0, 4)).unwrap();
        assert_eq!(names(&model, system), ["playback_1", "playback_2", "playback_3", "playback_4"]);
        let after = ids(&model, system, false);
        assert_eq!((&after[..3], after[3].0), (&before[..], 3));
        let changes = model.take_changes();
        let count =
            |wanted: fn(&Change) -> bool| changes.iter().filter(|change| wanted(change)).count();
        assert_eq!(
            count(|change| matches!(change, Change::PortUnregistered { announced: true, .. })),
            2
        );
        assert_eq!(
            (count(|change| matches!(change, Change::PortRegistered(_))), changes.len()),
            (1, 3)
        );
        model.set_channels(system, &channels(17, 1)).unwrap();
        let slots =
            model.ports_of(system).filter(|port| port.is_output()).map(|port| port.slot.unwrap());
        let places: Vec<u32> = slots.map(|slot| slot.slab * SLOTS_PER_SLAB + slot.slot).collect();
        assert_eq!(places, (0..17).collect::<Vec<u32>>());
    }

    #[test]
    fn monitor_ports_follow_the_capture_ports_in_a_slab_of_their_own() {
        let (mut model, system) = model(64);
        model.set_channels(system, &Channels { capture: 1, playback: 1, monitors: 1 }).unwrap();
        assert_eq!(names(&model, system), ["capture_1", "monitor_1", "playback_1"]);
        let number = |model: &Model| {
            let monitor = model.find("system:monitor_1").unwrap();
            assert_eq!(monitor.flags, port_flags::OUTPUT);
            assert_eq!(monitor.slot, Some(SlabSlot { slab: monitor.number / 16, slot: 0 }));
            monitor.number
        };
        assert_eq!(number(&model), 16);
        model.set_channels(system, &Channels { capture: 2, playback: 1, monitors: 1 }).unwrap();
        assert_eq!(names(&model, system), ["capture_1", "capture_2", "monitor_1", "playback_1"]);
        assert_eq!(number(&model), 16);
        model.set_channels(system, &Channels { capture: 17, playback: 1, monitors: 1 }).unwrap();
        assert_eq!(number(&model), 32);
        model.set_channels(system, &channels(2, 1)).unwrap();
        assert_eq!(names(&model, system), ["capture_1", "capture_2", "playback_1"]);
    }

    #[test]
    fn refused_channels_change_nothing() {
        let (mut model, system) = model(8);
        model.set_channels(system, &channels(2, 2)).unwrap();
        let port = model.find("system:capture_2").unwrap().id;
        model.rename_port(port, "playback_3").unwrap();
        model.take_changes();
        for (capture, playback) in [(2, 7), (u32::MAX, u32::MAX), (2, 3)] {
            assert!(
                model.set_channels(system, &channels(capture, playback)).is_err(),
                "{capture} {playback}"
            );
        }
        assert_eq!((model.take_changes(), names(&model, system).len()), (Vec::new(), 4));
        // As many ports as the limit allows, one with the name of another before: ports that are
        // removed make room.
        model.set_channels(system, &channels(0, 8)).unwrap();
    }
}
