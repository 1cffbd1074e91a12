//! What plays a sample when an X server rings its bell: the options, which the front end of
//! PulseAudio's programs gives for its module.

use anyhow::{Context, ensure};
use client::{OpenOptions, Session};

use super::serve::Options;
use crate::links::Links;
use crate::x11_bell::{self, BellOptions};

/// Name of the command that starts it.
pub(super) const NAME: &str = "x11-bell";

/// Starts it. The display is that of `$DISPLAY`.
///
/// # Errors
/// Options are missing; those of what is started.
pub(super) fn start(options: &Options, open: &OpenOptions) -> anyhow::Result<Links> {
    ensure!(!options.has_hardware_options(), "an option of sound cards is not for an {NAME}");
    let tunnel = &options.tunnel;
    let front_end = tunnel.peer.clone().with_context(|| format!("an {NAME} needs --peer"))?;
    let sample = tunnel.sample.clone().with_context(|| format!("an {NAME} needs --sample"))?;
    let bell = BellOptions { front_end, sample, sink: tunnel.peer_device.clone() };
    x11_bell::start(Session::open(options.name.as_deref().unwrap_or(NAME), open)?, bell, open)
}
