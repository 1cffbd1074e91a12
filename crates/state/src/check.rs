//! Checks a state against what a program may request from a server.

use proto::limits::{DEVICE_NAME_BYTES, QUANTUM_FRAMES, STREAM_NAME_BYTES};
use proto::names::{NameError, check_client, check_full};
use proto::property::check_texts;
use proto::stream::ChannelGains;

use crate::{Owner, State};

/// Maximum number of aliases of a port.
const ALIASES: usize = 2;

impl State {
    /// Checks that a server would accept all of the state. Returns the reason if it would not.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(frames) = self.quantum.filter(|frames| !QUANTUM_FRAMES.contains(frames)) {
            let (least, most) = (QUANTUM_FRAMES.start(), QUANTUM_FRAMES.end());
            return Err(format!("a quantum of {frames} frames is out of range: {least} to {most}"));
        }
        for connection in &self.connections {
            named("a connection's source", &connection.source, check_full)?;
            named("a connection's destination", &connection.destination, check_full)?;
        }
        for (port, aliases) in &self.aliases {
            named("a port that has aliases", port, check_full)?;
            if aliases.len() > ALIASES {
                return Err(format!(
                    "'{port}' has {} aliases, and a port has at most {ALIASES}",
                    aliases.len()
                ));
            }
            aliases.iter().try_for_each(|alias| named("an alias", alias, check_full))?;
        }
        for property in &self.properties {
            match &property.owner {
                Owner::Client(name) => named("a client that has properties", name, check_client)?,
                Owner::Port(name) => named("a port that has properties", name, check_full)?,
            }
            let texts = check_texts(&property.key, &property.value, &property.type_name);
            texts.map_err(|reason| format!("a property of {}: {reason}", property.owner))?;
        }
        for volume in &self.device_volumes {
            of_stream("a device's name", &volume.device, DEVICE_NAME_BYTES)?;
            if ChannelGains::of(&volume.volumes).is_none() {
                let (device, count) = (&volume.device, volume.volumes.len());
                return Err(format!(
                    "the device '{device}' has {count} volumes: there must be 1 to {}",
                    ChannelGains::CHANNELS
                ));
            }
        }
        for volume in &self.stream_volumes {
            of_stream("a program with a stream", &volume.program, STREAM_NAME_BYTES)?;
            of_stream("a stream's name", &volume.stream, STREAM_NAME_BYTES)?;
        }
        Ok(())
    }
}

/// Checks a name of what is no part of the graph.
fn of_stream(what: &str, name: &str, most: usize) -> Result<(), String> {
    if name.is_empty() || name.len() > most || name.chars().any(char::is_control) {
        return Err(format!("{what} must have 1 to {most} bytes, and no control characters"));
    }
    Ok(())
}

fn named(
    what: &str,
    name: &str,
    check: impl Fn(&str) -> Result<(), NameError>,
) -> Result<(), String> {
    check(name).map_err(|reason| format!("{what}: {reason}"))
}

impl std::fmt::Display for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Client(name) => write!(formatter, "client '{name}'"),
            Self::Port(name) => write!(formatter, "port '{name}'"),
        }
    }
}
