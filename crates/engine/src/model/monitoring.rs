//! Monitor requests of programs that want to hear an input of a device at its output.

use std::collections::BTreeSet;

use proto::port_flags;
use proto::request::RequestError;

use super::{Change, Model, Port};

impl Model {
    /// Counts a request to monitor a port, or takes one back. With `ensure`, the count becomes 1 or
    /// 0, whatever it was. A request for an input also counts for each of its sources.
    pub fn request_monitor(&mut self, id: u32, on: bool, ensure: bool) -> Result<(), RequestError> {
        let port = self.port_by_id(id)?;
        let sources: Vec<u32> = match port.is_input() && !ensure {
            true => port.links.iter().map(|link| link.other).collect(),
            false => Vec::new(),
        };
        for concerned in std::iter::once(id).chain(sources) {
            let Some(port) = self.ports.get_mut(&concerned) else { continue };
            port.monitors = match (ensure, on) {
                (false, true) => port.monitors.saturating_add(1),
                (false, false) => port.monitors.saturating_sub(1),
                (true, true) => port.monitors.max(1),
                (true, false) => 0,
            };
            self.changes.push(Change::PortMonitors(concerned));
        }
        Ok(())
    }

    /// The numbers of the device's inputs that programs want to hear at its outputs.
    pub fn monitored_inputs(&self, device: u32) -> BTreeSet<u32> {
        let is_monitored = |port: &&Port| {
            port.is_output() && port.flags & port_flags::PHYSICAL != 0 && port.monitors > 0
        };
        self.ports_of(device).filter(is_monitored).map(|port| port.number).collect()
    }
}

#[cfg(test)]
mod tests {
    use proto::request::{NewPort, PortType};

    use super::super::Limits;
    use super::*;
    use device::Channels;

    #[test]
    fn monitor_requests_are_counted_for_an_input_and_its_sources() {
        let mut model = Model::new(Limits { clients: 4, ports: 8, connections: 8 });
        let client = model.open_client("c", true).unwrap();
        for (name, flags) in
            [("in", port_flags::INPUT), ("out", port_flags::OUTPUT), ("other", port_flags::OUTPUT)]
        {
            let new = NewPort {
                name: name.into(),
                port_type: PortType::Audio,
                flags,
                number: 0,
                slot: None,
            };
            model.register_port(client, &new).unwrap();
        }
        model.set_active(client, true);
        model.connect("c:out", "c:in").unwrap();
        let (input, output) = (1, 2);
        for (what, port, on, ensure, expected) in [
            ("an input's reach its source", input, true, false, [1, 1, 0]),
            ("each is counted", output, true, false, [1, 2, 0]),
            ("ensured once is enough", output, true, true, [1, 2, 0]),
            ("ensured for an input alone", input, false, true, [0, 2, 0]),
            ("taken back", input, false, false, [0, 1, 0]),
            ("ensured off is off", output, false, true, [0, 0, 0]),
            ("none is left to take back", output, false, false, [0, 0, 0]),
            ("ensured where there was none", output, true, true, [0, 1, 0]),
        ] {
            model.request_monitor(port, on, ensure).unwrap();
            let found = [1, 2, 3].map(|port| model.port(port).unwrap().monitors);
            assert_eq!(found, expected, "{what}");
        }
        assert!(model.request_monitor(9, true, false).is_err());
    }

    #[test]
    fn only_device_inputs_are_monitored() {
        let mut model = Model::new(Limits { clients: 4, ports: 16, connections: 8 });
        let system = model.open_device("system").unwrap();
        model.set_channels(system, &Channels { capture: 3, playback: 2, monitors: 2 }).unwrap();
        for port in ["capture_1", "capture_3", "monitor_1", "playback_2"] {
            let id = model.find(&format!("system:{port}")).unwrap().id;
            model.request_monitor(id, true, false).unwrap();
        }
        assert_eq!(model.monitored_inputs(system), BTreeSet::from([0, 2]));
        model.set_channels(system, &Channels { capture: 1, playback: 2, monitors: 0 }).unwrap();
        assert_eq!(
            model.monitored_inputs(system),
            BTreeSet::from([0]),
            "a removed port is no longer requested"
        );
    }
}
