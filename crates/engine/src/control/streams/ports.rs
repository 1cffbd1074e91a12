//! Programs with streams as clients of the graph: which ports a stream has, and what of their
//! connections the device plays.

use mix::{ROUTED_CHANNELS, Routes};
use proto::port_flags;
use proto::request::{NewPort, PortType, RequestError};
use proto::stream::Direction;
use sys::clock::now_ns;

use super::feeds::heard;
use super::{LASTING_ORDERS, OpenStream, State, Streams};
use crate::control::Control;
use crate::model::{Model, Port};
use crate::stream_part::StreamOrder;

/// The ports of a stream.
#[derive(Debug)]
pub(super) struct StreamPorts {
    /// The client that its program is.
    pub(super) client: u32,
    /// Counts the streams of the client in this direction, from 1.
    pub(super) ordinal: u32,
    /// Ids, by channel.
    pub(super) ports: Vec<u32>,
    /// Numbers of the slabs that these ports have.
    pub(super) slabs: Vec<u32>,
}

/// Names of the channels of a device, by their number, in ALSA's order.
const POSITIONS: [&str; 8] = ["FL", "FR", "RL", "RR", "FC", "LFE", "SL", "SR"];

fn positions(device_channels: u32) -> &'static [&'static str] {
    match device_channels {
        1 => &["MONO"],
        2 | 4 | 5 | 6 | 8 => &POSITIONS[..device_channels as usize],
        _ => &[],
    }
}

/// Returns the names of a stream's ports, which are outputs or inputs (`way`): by the positions of
/// its channels if each is on a channel of its own, else by their numbers.
fn port_names(way: &str, ordinal: u32, channels: &[u32], device_channels: u32) -> Vec<String> {
    let positions = positions(device_channels);
    let position = |channel: &u32| positions.get(*channel as usize).copied();
    let named: Option<Vec<&str>> = channels.iter().map(position).collect();
    let is_distinct = |index: usize, name: &str| {
        named.iter().flatten().skip(index + 1).all(|other| *other != name)
    };
    let by_position = named
        .as_ref()
        .filter(|names| names.iter().enumerate().all(|(index, name)| is_distinct(index, name)));
    let stream = if ordinal == 1 { String::new() } else { format!("-{ordinal}") };
    (0..channels.len())
        .map(|index| match by_position {
            Some(names) => format!("{way}{stream}_{}", names[index]),
            None => format!("{way}{stream}_{}", index + 1),
        })
        .collect()
}

impl Streams {
    /// Returns the peer whose client of streams this is.
    pub(in crate::control) fn peer_of_client(&self, client: u32) -> Option<u64> {
        let streams = self.streams.values();
        let of_client = |stream: &&OpenStream| {
            stream.ports.as_ref().is_some_and(|ports| ports.client == client)
        };
        streams.into_iter().find(of_client).map(|stream| stream.peer)
    }

    /// Returns the stream that a port belongs to.
    pub(super) fn of_port(&self, port: u32) -> Option<u32> {
        let has = |stream: &OpenStream| {
            stream.ports.as_ref().is_some_and(|ports| ports.ports.contains(&port))
        };
        self.streams.iter().find(|(_, stream)| has(stream)).map(|(number, _)| *number)
    }

    /// The client that a stream's program is already, and the lowest number that none of its other
    /// streams of the same direction has.
    fn place_of(&self, stream: &OpenStream) -> (Option<u32>, u32) {
        let is_same = |other: &&OpenStream| {
            other.program == stream.program && other.is_of(stream.peer, stream.process)
        };
        let others: Vec<(Direction, &StreamPorts)> = self
            .streams
            .values()
            .filter(is_same)
            .filter_map(|other| Some((other.direction, other.ports.as_ref()?)))
            .collect();
        let has = |number: u32, (direction, ports): &(Direction, &StreamPorts)| {
            *direction == stream.direction && ports.ordinal == number
        };
        let is_free = |number: &u32| !others.iter().any(|other| has(*number, other));
        let client = others.first().map(|(_, ports)| ports.client);
        (client, (1..).find(is_free).unwrap_or(u32::MAX))
    }

    /// Returns the streams that record in the graph, by number, and the ids of their ports by
    /// channel.
    pub(in crate::control) fn recorders(&self) -> Vec<(u32, Vec<u32>)> {
        let all = self.streams.iter().filter(|(_, stream)| stream.is_in_graph());
        all.map(|(number, stream)| (*number, stream.ports().to_vec())).collect()
    }

    /// Notes that the connections of a port have changed; if it is a stream's, the device is to
    /// follow.
    fn connections_changed(&mut self, model: &Model, port: u32) {
        let number = self.of_port(port);
        let Some((number, stream)) =
            number.and_then(|number| self.streams.get_mut(&number).map(|open| (number, open)))
        else {
            return;
        };
        let Some(ports) = &stream.ports else { return };
        stream.routes = routes(model, &ports.ports);
        stream.feed.heard = heard(model, &ports.ports);
        if matches!(stream.state, State::Begun(_)) {
            self.rerouted.insert(number);
            self.devices.driver.calls.need(now_ns());
        }
    }
}

impl Streams {
    /// Orders what the driver thread lacks of the streams' routes, as far as there is room.
    pub(super) fn order_routes(&mut self) {
        for number in std::mem::take(&mut self.rerouted) {
            let Some(stream) = self.streams.get_mut(&number) else { continue };
            for channel in 0..stream.channels.len() {
                let to = stream.routes.of(channel);
                if to == stream.ordered.of(channel) {
                    continue;
                }
                if self.devices.driver.orders.slots() <= LASTING_ORDERS {
                    // The driver thread has not taken the others.
                    self.rerouted.insert(number);
                    self.devices.driver.calls.need(now_ns());
                    break;
                }
                let _ = self.devices.driver.orders.push(StreamOrder::Route {
                    stream: number,
                    channel,
                    to,
                });
                stream.ordered.set(channel, to);
            }
            if let Some(channels) = stream.feed.unordered() {
                if self.devices.driver.orders.slots() <= LASTING_ORDERS {
                    self.rerouted.insert(number);
                    self.devices.driver.calls.need(now_ns());
                    continue;
                }
                let _ =
                    self.devices.driver.orders.push(StreamOrder::Hear { stream: number, channels });
                stream.feed.ordered = channels;
            }
        }
    }
}

/// The connections of a stream's ports to the channels of the device.
fn routes(model: &Model, ports: &[u32]) -> Routes {
    let ports =
        ports.iter().enumerate().filter_map(|(channel, id)| Some((channel, model.port(*id)?)));
    let to_device = |(channel, port): (usize, &Port)| {
        let inputs = port.links.iter().filter_map(|link| model.port(link.other));
        let of_driver = inputs.filter(|input| model.is_driver(input.owner));
        of_driver.map(|input| (channel, input.number as usize)).collect::<Vec<_>>()
    };
    ports.flat_map(to_device).collect()
}

impl Control {
    /// Gives a stream its ports, and connects them with the device's channels that it was opened
    /// for, unless connections are remembered for them. Refused as a whole.
    pub(super) fn plug_in(&mut self, number: u32) -> Result<(), RequestError> {
        let needs_plan = self.publisher.is_needed();
        let plugged = self.add_ports(number).and_then(|()| self.connect_to_device(number));
        if plugged.is_err() {
            self.streams.forget(number);
        }
        self.unplug_ended();
        self.carry_changes();
        if plugged.is_ok() {
            // The device plays a stream without a part in cycles.
            if !needs_plan {
                self.publisher.put_off(now_ns());
            }
            self.reconnect();
        }
        plugged
    }

    fn add_ports(&mut self, number: u32) -> Result<(), RequestError> {
        let Some(stream) = self.streams.streams.get(&number) else { return Ok(()) };
        let (peer, process, program) = (stream.peer, stream.process, stream.program.clone());
        let (client, ordinal) = self.streams.place_of(stream);
        let device = &self.settings.driver.channels;
        let (way, flag, device_channels) = match stream.direction {
            Direction::Playback => ("output", port_flags::OUTPUT, device.playback),
            Direction::Record | Direction::Monitor => ("input", port_flags::INPUT, device.capture),
        };
        let names = port_names(way, ordinal, &stream.channels, device_channels);
        // MUTATION: open_ports.streams_take_all
        self.check_stream_ports(peer, client.is_none(), names.len())?;
        let client = match client {
            Some(client) => client,
            None => {
                let client = self.model.open_stream_client(&program)?;
                self.registry.note_process(client, process);
                client
            }
        };
        let mut ports = StreamPorts { client, ordinal, ports: Vec::new(), slabs: Vec::new() };
        let mut added = Ok(());
        for (number, name) in (0..).zip(names) {
            let flags = flag | port_flags::TERMINAL;
            let new = NewPort { name, port_type: PortType::Audio, flags, number, slot: None };
            match self.model.register_port(client, &new) {
                Ok(port) => ports.ports.push(port),
                Err(error) => {
                    added = Err(error);
                    break;
                }
            }
        }
        // Also those of a stream that is refused, so that they are removed again.
        if let Some(stream) = self.streams.streams.get_mut(&number) {
            stream.ports = Some(ports);
        }
        added
    }

    fn connect_to_device(&mut self, number: u32) -> Result<(), RequestError> {
        let Some(stream) = self.streams.streams.get(&number) else { return Ok(()) };
        let ports = stream.ports.as_ref().map_or(&[][..], |ports| &ports.ports);
        if ports.iter().any(|port| self.model.has_due_connection(*port)) {
            return Ok(());
        }
        let of_device = |port: &Port, channel: u32| {
            let mut others = self.model.driver_ports();
            let is_other = |other: &&Port| other.is_input() != port.is_input();
            others.find(|other| is_other(other) && other.number == channel)
        };
        let pair = |(port, channel): (&u32, &u32)| {
            let port = self.model.port(*port)?;
            let (own, other) = (port.name.clone(), of_device(port, *channel)?.name.clone());
            Some(if port.is_output() { (own, other) } else { (other, own) })
        };
        let pairs: Vec<(String, String)> =
            ports.iter().zip(&stream.channels).filter_map(pair).collect();
        for (source, destination) in pairs {
            self.check_program_connections(&source, &destination)?;
            self.check_memory(&source, &destination)?;
            self.model.connect(&source, &destination)?;
        }
        Ok(())
    }

    /// Removes the ports of streams that have ended, and clients without any.
    pub(in crate::control) fn unplug_ended(&mut self) {
        for StreamPorts { client, ports, slabs, .. } in std::mem::take(&mut self.streams.unplugged)
        {
            for port in ports {
                // Fails if its client has gone, with all of its ports.
                let _ = self.model.unregister_port(client, port);
            }
            let newest = self.publisher.next_generation();
            for slab in slabs {
                self.clients.forget_stream_slab((client, slab), newest);
            }
            if self.streams.peer_of_client(client).is_none() {
                self.model.close_client(client);
            }
        }
        self.carry_changes();
    }

    /// Has the device follow a change of a port's connections.
    pub(in crate::control) fn connections_changed(&mut self, port: u32) {
        self.streams.connections_changed(&self.model, port);
    }

    /// Checks whether a stream's port may be connected with a channel of the device.
    pub(in crate::control) fn check_stream_connection(
        &self,
        source: &str,
        destination: &str,
    ) -> Result<(), RequestError> {
        let (source, destination) = (self.model.find(source)?, self.model.find(destination)?);
        let is_route =
            self.model.is_stream_client(source.owner) && self.model.is_driver(destination.owner);
        if is_route && destination.number as usize >= ROUTED_CHANNELS {
            return Err(RequestError::NotAllowed(format!(
                "streams are heard on the first {ROUTED_CHANNELS} channels of a device, and '{}' is not one of them",
                destination.name
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_by_the_positions_of_their_channels() {
        for (way, ordinal, channels, device_channels, expected) in [
            ("output", 1, &[0, 1][..], 2, &["output_FL", "output_FR"][..]),
            ("input", 2, &[1, 0], 2, &["input-2_FR", "input-2_FL"]),
            ("output", 1, &[4, 5], 6, &["output_FC", "output_LFE"]),
            ("input", 1, &[0], 1, &["input_MONO"]),
            ("output", 1, &[0, 2], 3, &["output_1", "output_2"]),
            ("output", 3, &[0, 0], 2, &["output-3_1", "output-3_2"]),
        ] {
            let names = port_names(way, ordinal, channels, device_channels);
            assert_eq!(names, expected, "{channels:?}");
        }
    }
}
