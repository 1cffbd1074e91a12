//! Programs with streams, as clients of the graph: a port for each channel of a stream, an output
//! of one that plays and an input of one that records.
//!
//! Such a client takes no part in cycles. Its ports can be connected as long as it is there.

use proto::limits::{CLIENT_NAME_BYTES, STREAMS};
use proto::request::{RequestError, SlabSlot};

use super::{Model, Port};

/// Bytes of a number that makes a name unique.
const NUMBER_BYTES: usize = 5;

impl Model {
    /// Opens the client of a program with streams, under its name or a numbered one.
    ///
    /// # Errors
    /// [`RequestError`]: as for a client.
    pub fn open_stream_client(&mut self, program: &str) -> Result<u32, RequestError> {
        let name = client_name(program);
        let numbered = (1..=STREAMS).map(|number| format!("{name}-{number:02}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        let free = names.find(|name| !self.is_taken(name)).unwrap_or(name);
        let id = self.open_client(&free, true)?;
        self.stream_clients.insert(id);
        self.set_active(id, true);
        Ok(id)
    }

    /// Returns whether a client is a program with streams.
    pub fn is_stream_client(&self, id: u32) -> bool {
        self.stream_clients.contains(&id)
    }

    /// Sets where the samples of an output of such a client lie.
    pub fn place_output(&mut self, port: u32, slot: SlabSlot) {
        if let Some(port) = self.ports.get_mut(&port) {
            port.slot = Some(slot);
        }
    }

    /// Returns whether the server itself writes the outputs of a client: those of a device or of a
    /// program with streams.
    pub fn is_server_written(&self, id: u32) -> bool {
        self.is_device(id) || self.is_stream_client(id)
    }

    /// Returns whether the driver thread reads what is connected with the inputs of a client: those
    /// of the device that drives, or of a program with streams.
    pub fn is_server_read(&self, id: u32) -> bool {
        self.is_driver(id) || self.is_stream_client(id)
    }

    /// The inputs that the driver thread reads.
    pub fn inputs_of_server(&self) -> impl Iterator<Item = &Port> {
        let clients = self.driver.iter().chain(&self.stream_clients);
        clients.flat_map(|client| self.ports_of(*client)).filter(|port| port.is_input())
    }

    /// Returns whether connections that are remembered for this port can be made now.
    pub fn has_due_connection(&self, port: u32) -> bool {
        let name = self.ports.get(&port).map(|port| &port.name);
        name.is_some_and(|name| self.remembered.has_due(name))
    }
}

/// Returns a client's name for a program: what follows the first colon of a port's name is the
/// port's, and there is room for a number.
fn client_name(program: &str) -> String {
    let mut name = program.replace(':', "_");
    while name.len() > CLIENT_NAME_BYTES - NUMBER_BYTES {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;

    #[test]
    fn programs_of_one_name_are_clients_of_different_names() {
        let mut model = Model::new(Limits { clients: 1200, ports: 8, connections: 8 });
        let mut open = |program: &str| {
            let client = model.open_stream_client(program).unwrap();
            model.client(client).unwrap().name.clone()
        };
        assert_eq!(["mpv", "mpv", "a: b"].map(&mut open), ["mpv", "mpv-01", "a_ b"]);
        // Three bytes each, where 64 are allowed.
        let long = "\u{20ac}".repeat(40);
        assert_eq!([&*long, &*long].map(&mut open).map(|name| name.len()), [57, 60]);
        let others: Vec<String> = (0..STREAMS - 2).map(|_| open("mpv")).collect();
        assert_eq!(others.last().map(String::as_str), Some("mpv-1023"));
        assert!(model.open_stream_client(" ").is_err());
    }

    #[test]
    fn a_client_of_streams_is_active_until_it_is_closed() {
        let mut model = Model::new(Limits { clients: 2, ports: 8, connections: 8 });
        let client = model.open_stream_client("mpv").unwrap();
        assert!(model.client(client).unwrap().active && model.is_stream_client(client));
        model.close_client(client);
        assert!(!model.is_stream_client(client));
    }
}
