//! The definition of the command line.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use cli::server_name;

use crate::command::{
    completions, connect, dbus, disconnect, driver, exec, host, ls, man, move_stream, realtime_kit,
    reserve, run, save, status, stop, transport, volume, web, xruns,
};
use crate::exit;
use crate::own_program::OwnProgram;

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
    Device(Box<device_bridge::Device>),
    Driver(Box<driver::Driver>),
    Transport(transport::ShowTransport),
    Save(save::Save),
    Restore(save::Restore),
    Setup(setup::Setup),
    Doctor(doctor::Doctor),
    Play(player::Play),
    Pulse(pulse::Pulse),
    Record(player::Record),
    Profile(profile::Profile),
    Top(profile::Top),
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
    Move(move_stream::Move),
    Why(pulse::Why),
    Mute(volume::Mute),
    Unmute(volume::Unmute),
    Stop(stop::Stop),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Returns the definition of the command line, from which man pages and completions are made.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

impl Arguments {
    /// Runs the command.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let server = server_name(self.server, std::env::var("JACK_DEFAULT_SERVER").ok())?;
        match self.command {
            Command::Run(command) => command.run(server),
            Command::Status(command) => command.run(&server),
            Command::Ls(command) => command.run(&server),
            Command::Connect(command) => command.run(&server),
            Command::Disconnect(command) => command.run(&server),
            Command::Device(command) => command.run(&server, &OwnProgram),
            Command::Driver(command) => command.run(&server),
            Command::Transport(command) => command.run(&server),
            Command::Save(command) => command.run(&server),
            Command::Restore(command) => command.run(&server),
            Command::Setup(command) => command.run(),
            Command::Doctor(command) => command.run(&server),
            Command::Play(command) => command.run(&server),
            Command::Pulse(command) => command.run(&server),
            Command::Record(command) => command.run(&server),
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
            Command::Move(command) => command.run(&server),
            Command::Why(command) => command.run(&server),
            Command::Mute(command) => command.run(&server),
            Command::Unmute(command) => command.run(&server),
            Command::Stop(command) => command.run(&server),
            Command::Completions(command) => command.run(&self::command()),
            Command::Man(command) => command.run(self::command()),
        }
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
    fn every_command_shows_an_example() {
        for command in command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", command.get_name());
        }
    }
}
