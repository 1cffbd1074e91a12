//! The definition of the command line.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::command::{
    completions, connect, dbus, device, disconnect, driver, exec, host, latency, ls, man, profile,
    realtime_kit, reserve, run, save, status, stop, sync, top, transport, volume, web, xruns,
};
use crate::exit;

/// One audio server for Linux
#[derive(Debug, Parser)]
#[command(name = "consort", version, arg_required_else_help = true, after_help = exit::CODES)]
pub(crate) struct Arguments {
    /// The server's name [default: $JACK_DEFAULT_SERVER, or "default"]
    #[arg(short = 'n', long, global = true, value_name = "NAME")]
    server: Option<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::Run>),
    Status(status::ShowStatus),
    Ls(ls::List),
    Connect(connect::Connect),
    Disconnect(disconnect::Disconnect),
    Device(device::Device),
    Driver(Box<driver::Driver>),
    Transport(transport::ShowTransport),
    Save(save::Save),
    Restore(save::Restore),
    Profile(profile::Profile),
    Top(top::Top),
    Xruns(xruns::ShowXruns),
    Web(web::Web),
    Exec(exec::Execute),
    Latency(latency::Latency),
    Dbus(dbus::Dbus),
    Host(host::Host),
    Reserve(reserve::Reserve),
    RealtimeKit(realtime_kit::AskRealtimeKit),
    Sync(sync::Sync),
    Volume(volume::SetVolume),
    Stop(stop::Stop),
    Completions(completions::Completions),
    Man(man::Man),
}

/// The command line's definition, for whoever makes documents of it.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

impl Arguments {
    /// Does what was asked.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let server = server_name(self.server, std::env::var("JACK_DEFAULT_SERVER").ok())?;
        match self.command {
            Command::Run(command) => command.run(server),
            Command::Status(command) => command.run(&server),
            Command::Ls(command) => command.run(&server),
            Command::Connect(command) => command.run(&server),
            Command::Disconnect(command) => command.run(&server),
            Command::Device(command) => command.run(&server),
            Command::Driver(command) => command.run(&server),
            Command::Transport(command) => command.run(&server),
            Command::Save(command) => command.run(&server),
            Command::Restore(command) => command.run(&server),
            Command::Profile(command) => command.run(&server),
            Command::Xruns(command) => command.run(&server),
            Command::Top(command) => command.run(&server),
            Command::Web(command) => command.run(server),
            Command::Exec(command) => command.run(&server),
            Command::Latency(command) => command.run(&server),
            Command::Dbus(command) => command.run(&server),
            Command::Host(command) => command.run(&server),
            Command::Reserve(command) => command.run(),
            Command::RealtimeKit(command) => command.run(),
            Command::Sync(command) => command.run(&server),
            Command::Volume(command) => command.run(&server),
            Command::Stop(command) => command.run(&server),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}

/// The name given, else the environment's, else "default"; refused if no server can have it.
pub(crate) fn server_name(
    given: Option<String>,
    environment: Option<String>,
) -> Result<String, exit::UsageError> {
    let name = given
        .or_else(|| environment.filter(|name| !name.is_empty()))
        .unwrap_or_else(|| String::from("default"));
    match proto::names::check_server(&name) {
        Ok(()) => Ok(name),
        Err(error) => Err(exit::UsageError(format!("no server can be called '{name}': {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_name_on_the_command_line_comes_before_the_environments() {
        let name = |given: Option<&str>, environment: Option<&str>| {
            server_name(given.map(String::from), environment.map(String::from))
        };
        assert_eq!(name(Some("a"), Some("b")), Ok("a".into()));
        assert_eq!(name(None, Some("b")), Ok("b".into()));
        assert_eq!(name(None, Some("")), Ok("default".into()));
        assert_eq!(name(None, None), Ok("default".into()));
        assert!(name(Some("../b"), None).is_err() && name(Some(""), None).is_err());
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }
}
