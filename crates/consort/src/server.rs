//! The interface through which commands use a running server.

use client::Transport;
use proto::port_flags::OUTPUT;
use proto::property::Property;
use proto::request::PortType;
use proto::status::Status;

use crate::command::status::streams::Streams;

/// Smallest and largest latency through a port, frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Latency {
    pub(crate) min_frames: u32,
    pub(crate) max_frames: u32,
}

/// A port as the registry shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) id: u32,
    /// `client:port`.
    pub(crate) name: String,
    /// The client that registered it.
    pub(crate) owner: String,
    pub(crate) port_type: PortType,
    /// `JackPortFlags`.
    pub(crate) flags: u32,
    pub(crate) aliases: Vec<String>,
    /// Properties that programs have set.
    pub(crate) properties: Vec<Property>,
    /// Full names of the ports at the other ends.
    pub(crate) peers: Vec<String>,
    /// Latency from the capture side to the port.
    pub(crate) capture_latency: Latency,
    /// Latency from the port to the playback side.
    pub(crate) playback_latency: Latency,
}

/// The transport, with what is needed to interpret it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TransportView {
    pub(crate) transport: Transport,
    pub(crate) sample_rate_hz: u32,
    /// Name of the timebase master.
    pub(crate) timebase: Option<String>,
}

/// Names of the `JackPortFlags`, lowest bit first.
const FLAGS: [&str; 5] = ["input", "output", "physical", "can-monitor", "terminal"];

impl Port {
    /// Whether connections begin here.
    pub(crate) fn is_output(&self) -> bool {
        self.flags & OUTPUT != 0
    }

    /// The names of the flags that are set.
    pub(crate) fn flag_names(&self) -> Vec<&'static str> {
        FLAGS
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.flags >> bit & 1 == 1)
            .map(|(_, name)| *name)
            .collect()
    }

    /// Whether `name` is the port's name or one of its aliases.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// A connection to a server. Every call waits for the answer, for a bounded time.
pub(crate) trait Server {
    /// All ports, by id.
    fn ports(&self) -> anyhow::Result<Vec<Port>>;
    /// State of the server and its clients.
    fn status(&self) -> anyhow::Result<Status>;
    /// The streams, and what their device does.
    fn streams(&self) -> anyhow::Result<Streams>;
    /// Connects two ports, by names or aliases.
    fn connect(&self, source: &str, destination: &str) -> anyhow::Result<()>;
    /// Removes a connection, by names or aliases.
    fn disconnect(&self, source: &str, destination: &str) -> anyhow::Result<()>;
    /// State of the transport.
    fn transport(&self) -> anyhow::Result<TransportView>;
    /// Starts or stops the transport.
    fn roll(&self, roll: bool) -> anyhow::Result<()>;
    /// Moves the transport to a frame.
    fn locate(&self, frame: u32) -> anyhow::Result<()>;
    /// Requests that the server end.
    fn stop(&self) -> anyhow::Result<()>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A port without connections and latency.
    pub(crate) fn port(id: u32, name: &str, flags: u32) -> Port {
        Port {
            id,
            name: name.into(),
            owner: name.split(':').next().unwrap_or_default().into(),
            port_type: PortType::Audio,
            flags,
            aliases: Vec::new(),
            properties: Vec::new(),
            peers: Vec::new(),
            capture_latency: Latency::default(),
            playback_latency: Latency::default(),
        }
    }

    #[test]
    fn flags_are_named_by_bit() {
        assert_eq!(port(1, "a:b", 0b1_0110).flag_names(), ["output", "physical", "terminal"]);
        assert!(port(1, "a:b", 2).is_output() && !port(1, "a:b", 1).is_output());
    }
}
