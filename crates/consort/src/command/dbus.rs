//! `consort dbus`.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use clap::Args;
use client::Observer;
use proto::driver::DriverSwitch;

/// Serve org.jackaudio.service on the session bus, for jack_control, QjackCtl and their like
///
/// The session bus starts this by itself where consort is installed. On request, it starts a server
/// with the parameters set by then, and it stops that server when it ends itself. A server that is
/// already running is shown, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort dbus
  jack_control dps rate 44100 start
  busctl --user introspect org.jackaudio.service /org/jackaudio/Controller")]
pub(crate) struct Dbus {}

impl Dbus {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        dbus::run(server, Arc::new(OwnJackd))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// This program, which acts as `jackd` when called by that name.
#[derive(Debug)]
struct OwnJackd;

impl dbus::Jackd for OwnJackd {
    fn command(&self, arguments: &[String]) -> std::io::Result<Command> {
        let mut command = Command::new(cli::own_file()?);
        command.arg0("jackd").args(arguments);
        Ok(command)
    }

    fn driver(&self, arguments: &[String]) -> anyhow::Result<DriverSwitch> {
        Ok(jackd::driver_of(arguments)?)
    }

    fn is_slave_driver(&self, driver: &str) -> bool {
        jack_parameters::is_slave(driver)
    }

    fn check_slave(&self, driver: &str, options: &[String]) -> anyhow::Result<()> {
        jackd::slave_of(driver, options)?;
        Ok(())
    }

    fn add_slave(&self, server: &str, driver: &str, options: &[String]) -> anyhow::Result<String> {
        Ok(device_bridge::add(server, &jackd::slave_of(driver, options)?)?.name)
    }

    fn remove_slave(&self, server: &Observer, client: &str) -> anyhow::Result<()> {
        device_bridge::remove(server, client)
    }
}
