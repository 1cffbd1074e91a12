//! Checks a state against what a program may request from a server.

use proto::limits::QUANTUM_FRAMES;
use proto::names::{NameError, check_client, check_full};
use proto::property::check_texts;

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
        Ok(())
    }
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
