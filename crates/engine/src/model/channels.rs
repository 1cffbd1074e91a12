//! A driver's channels as ports: `capture_1` and on, `playback_1` and on.

use proto::request::{NewPort, PortType, RequestError, SlabSlot};
use rt::shm::SLOTS_PER_SLAB;

use super::{Model, flags};
use crate::driver::Channels;

fn port(output: bool, channel: u32) -> NewPort {
    let direction = if output { "capture" } else { "playback" };
    let slot = output.then_some(SlabSlot { slab: channel / SLOTS_PER_SLAB, slot: channel % SLOTS_PER_SLAB });
    NewPort {
        name: format!("{direction}_{}", channel + 1),
        port_type: PortType::Audio,
        flags: (if output { flags::OUTPUT } else { flags::INPUT }) | flags::PHYSICAL | flags::TERMINAL,
        number: channel,
        slot,
    }
}

impl Model {
    /// Has the ports of `owner` be these channels: those that are there already stay, with all that they have; the others
    /// go, and come. The ports of each direction stay in the order of their channels.
    pub fn set_channels(&mut self, owner: u32, channels: &Channels) -> Result<(), RequestError> {
        let count = |output: bool| if output { channels.capture } else { channels.playback };
        let all = u64::from(channels.capture) + u64::from(channels.playback);
        let has = |output: bool, number: u32| {
            self.ports_of(owner).any(|port| port.is_output() == output && port.number == number)
        };
        let gone: Vec<u32> = self
            .ports_of(owner)
            .filter(|port| port.number >= count(port.is_output()))
            .map(|port| port.id)
            .collect();
        let owned = self.ports_of(owner).count() as u64;
        if self.ports.len() as u64 - owned + all > u64::from(self.limits.ports) {
            let advice = "start the server with a larger --port-max".into();
            return Err(RequestError::Full { what: "port".into(), limit: self.limits.ports, advice });
        }
        let mut new = Vec::new();
        for output in [true, false] {
            // Those that are there are the first ones.
            let first = (0..count(output)).take_while(|number| has(output, *number)).count();
            new.extend(
                (u32::try_from(first).unwrap_or(u32::MAX)..count(output)).map(|number| port(output, number)),
            );
        }
        for port in &new {
            self.new_port_name(owner, port)?;
        }
        let announced = self.clients.get(&owner).is_some_and(|client| client.active);
        gone.into_iter().for_each(|port| self.remove_port(port, announced));
        new.iter().try_for_each(|port| self.register_port(owner, port).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Change, Limits};

    fn model(ports: u32) -> (Model, u32) {
        let mut model = Model::new(Limits { clients: 8, ports, connections: 64 });
        let system = model.open_client("system", true).unwrap();
        model.set_active(system, true);
        (model, system)
    }

    fn names(model: &Model, owner: u32) -> Vec<&str> {
        let mut names: Vec<&str> = model.ports_of(owner).map(|port| &port.name["system:".len()..]).collect();
        names.sort_unstable();
        names
    }

    fn ids(model: &Model, owner: u32, output: bool) -> Vec<(u32, u32)> {
        let ports = model.ports_of(owner).filter(|port| port.is_output() == output);
        ports.map(|port| (port.number, port.id)).collect()
    }

    #[test]
    fn ports_of_channels_that_stay_are_the_same_and_the_others_go_and_come_in_order() {
        let (mut model, system) = model(64);
        model.set_channels(system, &Channels { capture: 2, playback: 3 }).unwrap();
        let before = ids(&model, system, false);
        model.take_changes();
        model.set_channels(system, &Channels { capture: 0, playback: 4 }).unwrap();
        assert_eq!(names(&model, system), ["playback_1", "playback_2", "playback_3", "playback_4"]);
        let after = ids(&model, system, false);
        assert_eq!((&after[..3], after[3].0), (&before[..], 3));
        let changes = model.take_changes();
        let count = |wanted: fn(&Change) -> bool| changes.iter().filter(|change| wanted(change)).count();
        assert_eq!(count(|change| matches!(change, Change::PortUnregistered { announced: true, .. })), 2);
        assert_eq!((count(|change| matches!(change, Change::PortRegistered(_))), changes.len()), (1, 3));
        model.set_channels(system, &Channels { capture: 17, playback: 1 }).unwrap();
        let slots = model.ports_of(system).filter(|port| port.is_output()).map(|port| port.slot.unwrap());
        let places: Vec<u32> = slots.map(|slot| slot.slab * SLOTS_PER_SLAB + slot.slot).collect();
        assert_eq!(places, (0..17).collect::<Vec<u32>>());
    }

    #[test]
    fn what_has_no_room_or_no_name_changes_nothing() {
        let (mut model, system) = model(8);
        model.set_channels(system, &Channels { capture: 2, playback: 2 }).unwrap();
        let port = model.find("system:capture_2").unwrap().id;
        model.rename_port(port, "playback_3").unwrap();
        model.take_changes();
        for (capture, playback) in [(2, 7), (u32::MAX, u32::MAX), (2, 3)] {
            assert!(
                model.set_channels(system, &Channels { capture, playback }).is_err(),
                "{capture} {playback}"
            );
        }
        assert_eq!((model.take_changes(), names(&model, system).len()), (Vec::new(), 4));
        // As many as there can be, since those that go make room.
        model.set_channels(system, &Channels { capture: 0, playback: 8 }).unwrap_err();
        model.rename_port(port, "capture_2").unwrap();
        model.set_channels(system, &Channels { capture: 0, playback: 8 }).unwrap();
    }
}
