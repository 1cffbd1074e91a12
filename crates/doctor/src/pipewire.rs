//! Whether PipeWire runs, and whether it offers sound besides cameras and screens.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{WirePlumber, listener, output};

/// A PipeWire that runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipeWireFacts {
    /// Its process id.
    pub process: u32,
    /// The names of the devices of sound that it offers; `None`: it did not say.
    pub sound: Option<Vec<String>>,
    /// The settings are installed with which its session manager leaves cards alone.
    pub has_our_settings: bool,
}

/// Looks at PipeWire without starting it, as connecting to a socket of systemd would.
pub(crate) fn running(wireplumber: Option<WirePlumber>) -> Option<PipeWireFacts> {
    let directory = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty())?;
    let socket: PathBuf = Path::new(&directory).join("pipewire-0");
    let holders = listener::holders_at(&socket)?;
    let daemon = holders.iter().find(|holder| holder.program != "systemd")?;
    Some(PipeWireFacts {
        process: daemon.process,
        sound: output::of("pw-dump", &[]).as_deref().and_then(sound),
        has_our_settings: wireplumber.is_some_and(|found| found.settings_of_package().exists()),
    })
}

/// The names of the sinks and sources in what `pw-dump` prints; `None`: that is something else.
pub(crate) fn sound(dump: &str) -> Option<Vec<String>> {
    let dump: Value = serde_json::from_str(dump).ok()?;
    let nodes = dump.as_array()?.iter().filter(|object| {
        object["type"] == "PipeWire:Interface:Node"
            && object["info"]["props"]["media.class"]
                .as_str()
                .is_some_and(|class| class.starts_with("Audio/"))
    });
    let name = |node: &Value| node["info"]["props"]["node.name"].as_str().map(str::to_owned);
    Some(nodes.map(|node| name(node).unwrap_or_else(|| "one without a name".into())).collect())
}
