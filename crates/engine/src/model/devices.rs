//! Devices: what has a clock and channels of its own, as endpoints of the graph.
//!
//! A device is a client whose ports are channels instead of a program's. One of the devices drives
//! the cycles; paths through the graph begin and end at all of them.

use proto::request::RequestError;
use rt::shm::LatencyRange;

use super::{Model, Port};

/// Frames between a device's hardware and its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortLatency {
    /// From the hardware to a capture port.
    pub capture: u32,
    /// From a playback port to the hardware.
    pub playback: u32,
    /// From a playback port to its monitor port.
    pub monitor: u32,
}

/// A device of the graph.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Device {
    /// Number of capture ports; output ports with greater numbers are monitors.
    pub(super) captures: u32,
    latency: PortLatency,
}

impl Model {
    /// Opens a device without ports, which can be connected at once. The first device drives.
    ///
    /// # Errors
    /// [`RequestError`]: as for a client.
    pub fn open_device(&mut self, name: &str) -> Result<u32, RequestError> {
        let id = self.open_client(name, true)?;
        self.devices.insert(id, Device::default());
        self.driver.get_or_insert(id);
        self.set_active(id, true);
        Ok(id)
    }

    /// Makes a device the one that drives the cycles. Returns false if `id` is no device.
    #[cfg(test)]
    pub fn set_driver(&mut self, id: u32) -> bool {
        let is_device = self.is_device(id);
        if is_device {
            self.driver = Some(id);
        }
        is_device
    }

    /// The device that drives the cycles.
    pub fn driver(&self) -> Option<u32> {
        self.driver
    }

    /// Returns whether cycles are driven by this device.
    pub fn is_driver(&self, id: u32) -> bool {
        self.driver == Some(id)
    }

    /// Returns whether a client is a device.
    pub fn is_device(&self, id: u32) -> bool {
        self.devices.contains_key(&id)
    }

    /// Returns whether a port is a device's and repeats what clients play.
    pub fn is_monitor(&self, port: &Port) -> bool {
        let device = self.devices.get(&port.owner);
        port.is_output() && device.is_some_and(|device| port.number >= device.captures)
    }

    /// The devices, by id.
    pub fn devices(&self) -> impl Iterator<Item = u32> {
        self.devices.keys().copied()
    }

    /// The clients that are not devices, by id: those that can take part in cycles.
    pub fn programs(&self) -> impl Iterator<Item = u32> {
        self.clients.keys().copied().filter(|id| !self.is_device(*id))
    }

    /// The ports of the device that drives, in the order of their numbers in each direction.
    pub fn driver_ports(&self) -> impl Iterator<Item = &Port> {
        self.driver.into_iter().flat_map(|driver| self.ports_of(driver))
    }

    /// States the latency of a device, and with it that of its ports. Returns the ports whose
    /// latency has changed.
    pub fn set_device_latency(&mut self, id: u32, latency: PortLatency) -> Vec<u32> {
        let Some(device) = self.devices.get_mut(&id) else { return Vec::new() };
        device.latency = latency;
        let captures = device.captures;
        let frames = |port: &Port| match port.is_output() {
            true if port.number >= captures => latency.monitor,
            true => latency.capture,
            false => latency.playback,
        };
        let ports: Vec<(u32, bool, u32)> =
            self.ports_of(id).map(|port| (port.id, port.is_output(), frames(port))).collect();
        let changed = ports.into_iter().filter(|(port, is_output, frames)| {
            self.set_latency(*port, *is_output, LatencyRange { min: *frames, max: *frames })
        });
        changed.map(|(port, _, _)| port).collect()
    }

    /// Forgets that a closed client was a device.
    pub(super) fn forget_device(&mut self, id: u32) {
        self.devices.remove(&id);
        self.driver = self.driver.filter(|driver| *driver != id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Change, Limits};
    use super::*;
    use crate::order::would_close_loop;
    use device::Channels;

    /// A model with a card that drives and another card.
    fn two_devices() -> (Model, u32, u32) {
        let mut model = Model::new(Limits { clients: 8, ports: 32, connections: 32 });
        let (card, other) =
            (model.open_device("system").unwrap(), model.open_device("usb").unwrap());
        model.set_channels(card, &Channels { capture: 2, playback: 2, monitors: 2 }).unwrap();
        model.set_channels(other, &Channels { capture: 1, playback: 1, monitors: 0 }).unwrap();
        (model, card, other)
    }

    fn latency(model: &Model, port: &str) -> u32 {
        let port = model.find(port).unwrap();
        port.latency(port.is_output()).max
    }

    #[test]
    fn the_first_device_drives_until_another_is_chosen() {
        let (mut model, card, other) = two_devices();
        assert_eq!(
            (model.driver(), model.devices().collect::<Vec<_>>()),
            (Some(card), vec![card, other])
        );
        assert!(model.set_driver(other) && model.is_driver(other) && !model.is_driver(card));
        let client = model.open_client("synth", true).unwrap();
        assert!(!model.set_driver(client), "a program does not drive");
        assert_eq!(model.programs().collect::<Vec<_>>(), [client]);
    }

    #[test]
    fn driver_ports_are_those_of_the_device_that_drives() {
        let (mut model, _, other) = two_devices();
        for port in ["system:monitor_2", "system:playback_1", "usb:capture_1", "usb:playback_1"] {
            assert!(model.port_named(port).is_some(), "{port}");
        }
        assert_eq!(model.driver_ports().count(), 6);
        model.set_driver(other);
        assert_eq!(model.driver_ports().count(), 2);
    }

    #[test]
    fn each_device_has_latencies_of_its_own() {
        let (mut model, card, other) = two_devices();
        let of_card = PortLatency { capture: 64, playback: 128, monitor: 32 };
        assert_eq!(model.set_device_latency(card, of_card).len(), 6);
        assert!(model.set_device_latency(card, of_card).is_empty(), "nothing has changed");
        model.set_device_latency(other, PortLatency { capture: 7, playback: 9, monitor: 0 });
        for (port, frames) in [
            ("system:capture_2", 64),
            ("system:playback_1", 128),
            ("system:monitor_1", 32),
            ("usb:capture_1", 7),
            ("usb:playback_1", 9),
        ] {
            assert_eq!(latency(&model, port), frames, "{port}");
        }
    }

    #[test]
    fn removing_a_device_removes_only_its_own_ports() {
        let (mut model, card, other) = two_devices();
        model.connect("system:capture_1", "usb:playback_1").unwrap();
        model.connect("system:capture_1", "system:playback_1").unwrap();
        model.take_changes();
        model.close_client(other);
        assert!(model.take_changes().iter().any(|change| {
            matches!(change, Change::ClientClosed { name, .. } if name == "usb")
        }));
        assert_eq!((model.is_device(other), model.driver()), (false, Some(card)));
        assert!(model.port_named("usb:capture_1").is_none());
        assert!(model.are_connected_by_name("system:capture_1", "system:playback_1"));
    }

    #[test]
    fn without_the_device_that_drove_nothing_drives() {
        let (mut model, card, other) = two_devices();
        model.close_client(card);
        assert_eq!((model.driver(), model.driver_ports().count()), (None, 0));
        assert_eq!(model.devices().collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn no_loop_of_the_graph_passes_through_a_device() {
        let (mut model, card, other) = two_devices();
        model.connect("system:capture_1", "usb:playback_1").unwrap();
        assert!(!would_close_loop(&model, other, card));
    }
}
