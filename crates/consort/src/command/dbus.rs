//! `consort dbus`.

use std::process::ExitCode;

use clap::Args;

/// Serve org.jackaudio.service on the session bus, for jack_control, QjackCtl and their like
///
/// The bus starts this by itself, as 'cargo xtask install' tells it to. It starts a server when it is told to, with the
/// parameters that it was given, and stops that with itself; a server that runs already it shows, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort dbus
  jack_control dps rate 44100 start
  busctl --user introspect org.jackaudio.service /org/jackaudio/Controller")]
pub(crate) struct Dbus {}

impl Dbus {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        crate::dbus::run(server)?;
        Ok(ExitCode::SUCCESS)
    }
}
