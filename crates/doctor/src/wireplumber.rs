//! How WirePlumber, PipeWire's session manager, is kept from opening cards.

use std::path::Path;

use crate::output;

/// How an installed WirePlumber is configured. Each version ignores the files of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WirePlumber {
    /// Up to version 0.4: scripts in Lua.
    Scripts,
    /// From version 0.5 on: files in PipeWire's own format.
    Files,
}

impl WirePlumber {
    /// Asks the program which version it is.
    pub(crate) fn installed() -> Option<Self> {
        Self::of_version(&output::of("wireplumber", &["--version"])?)
    }

    /// The one that prints this about its version.
    pub(crate) fn of_version(printed: &str) -> Option<Self> {
        let (_, version) = printed.split_once("Linked with libwireplumber ")?;
        let mut numbers = version.trim_start().split(|c: char| !c.is_ascii_digit());
        let mut number = || numbers.next()?.parse::<u32>().ok();
        let version = (number()?, number()?);
        Some(if version < (0, 5) { Self::Scripts } else { Self::Files })
    }

    /// Where the package `consort-pulse` has its settings.
    pub(crate) fn settings_of_package(self) -> &'static Path {
        Path::new(match self {
            Self::Scripts => "/usr/share/wireplumber/main.lua.d/51-consort.lua",
            Self::Files => "/usr/share/wireplumber/wireplumber.conf.d/51-consort.conf",
        })
    }

    /// What makes it take headsets, where the package says that it takes none.
    pub(crate) fn take_headsets(self) -> &'static str {
        match self {
            Self::Scripts => {
                "mkdir -p ~/.config/wireplumber/bluetooth.lua.d && touch \
                 ~/.config/wireplumber/bluetooth.lua.d/51-consort.lua && systemctl --user restart \
                 wireplumber"
            }
            Self::Files => {
                "mkdir -p ~/.config/wireplumber/wireplumber.conf.d && echo 'wireplumber.profiles = \
                 { main = { monitor.bluez = optional } }' > \
                 ~/.config/wireplumber/wireplumber.conf.d/52-headsets.conf && systemctl --user \
                 restart wireplumber"
            }
        }
    }

    /// What makes it leave cards alone, without ending it. As the package has it for all users.
    pub(crate) fn leave_cards(self) -> &'static str {
        match self {
            Self::Scripts => {
                "mkdir -p ~/.config/wireplumber/main.lua.d && echo 'alsa_monitor.enabled = false' \
                 > ~/.config/wireplumber/main.lua.d/51-consort.lua && systemctl --user restart \
                 wireplumber"
            }
            Self::Files => {
                "mkdir -p ~/.config/wireplumber/wireplumber.conf.d && echo 'wireplumber.profiles = \
                 { main = { monitor.alsa = disabled, monitor.alsa-midi = disabled } }' > \
                 ~/.config/wireplumber/wireplumber.conf.d/51-consort.conf && systemctl --user \
                 restart wireplumber"
            }
        }
    }
}
