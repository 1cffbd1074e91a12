//! What publishes devices in the local network, and what finds those of others: the options, which
//! the front end of PulseAudio's programs gives for its modules.

use anyhow::{Context, ensure};
use client::{OpenOptions, Session};

use super::serve::Options;
use crate::links::Links;
use crate::zeroconf::{self, DiscoverOptions, PublishOptions};

/// Which of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Publishes the devices of this machine.
    Publish,
    /// Finds the devices of other machines.
    Discover,
}

impl Kind {
    /// Returns the kind of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::Publish, Self::Discover].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Publish => "zeroconf-publish",
            Self::Discover => "zeroconf-discover",
        }
    }
}

/// Starts what publishes or finds.
///
/// # Errors
/// Options are missing; those of what is started.
pub(super) fn start(kind: Kind, options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    let name = kind.name();
    ensure!(!options.has_hardware_options(), "an option of sound cards is not for a {name}");
    let front_end = options.tunnel.peer.clone();
    let front_end = front_end.with_context(|| format!("a {name} needs --peer"))?;
    let session = Session::open(options.name.as_deref().unwrap_or(name), open)?;
    match kind {
        Kind::Publish => {
            let port = options.tunnel.published_port;
            let port = port.with_context(|| format!("a {name} needs --published-port"))?;
            zeroconf::publish(session, &PublishOptions { front_end, port }, open)
        }
        Kind::Discover => {
            let latency_ms = options.link.latency;
            zeroconf::discover(session, DiscoverOptions { front_end, latency_ms }, open)
        }
    }
}
