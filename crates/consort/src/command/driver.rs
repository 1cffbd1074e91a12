//! `consort driver`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use cli::{UsageError, in_range, output};
use client::Observer;
use proto::driver::DriverChoice;
use proto::driver::DriverSwitch;
use proto::limits::QUANTUM_FRAMES;
use proto::status::Status;

use super::run::{DriverArguments, DriverName};
use crate::server::Server;

/// Show the driver, which starts the cycles, or switch to another one: programs continue, with
/// their connections
///
/// Ports of the client "system" follow the driver: those of the same name keep their connections.
/// The server's sample rate stays, and so does the quantum unless another is asked for. A driver
/// that cannot be opened changes nothing. The server ends at the end of an input file.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort driver
  consort driver alsa --device hw:USB --periods 3
  consort driver timer --capture 0 --playback 8
  consort driver file --output take.wav")]
pub(crate) struct Driver {
    /// The driver that starts the cycles from now on
    #[arg(value_enum)]
    driver: Option<DriverName>,
    #[command(flatten)]
    options: DriverArguments,
    /// Length of a cycle in frames [default: unchanged]
    #[arg(long, value_name = "FRAMES", value_parser = in_range(QUANTUM_FRAMES))]
    quantum: Option<u32>,
}

impl Driver {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let Some(driver) = self.driver else {
            if self.options.is_used() || self.quantum.is_some() {
                return Err(UsageError(
                    "these are a driver's options: name the driver before them".into(),
                )
                .into());
            }
            let server = Observer::open(Some(server))?;
            let mut of_driver = server.ports()?;
            of_driver.retain(|port| port.owner == "system");
            let capture = of_driver.iter().filter(|port| port.is_output()).count();
            output::print(&shown(&server.status()?, capture, of_driver.len() - capture))?;
            return Ok(ExitCode::SUCCESS);
        };
        let switch = DriverSwitch { driver: self.options.choice(driver)?, quantum: self.quantum };
        let switch = with_absolute_paths(switch)?;
        Observer::open(Some(server))?.switch_driver(switch)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(status: &Status, capture: usize, playback: usize) -> String {
    let Status { driver, sample_rate_hz, quantum, .. } = status;
    let ports = |count: usize, name: &str| {
        format!("{count} {name} port{}", if count == 1 { "" } else { "s" })
    };
    let (capture, playback) = (ports(capture, "capture"), ports(playback, "playback"));
    format!("{driver}, {sample_rate_hz} Hz, {quantum} frames, {capture}, {playback}\n")
}

/// Makes the paths absolute, for a server that runs in another directory.
pub(crate) fn with_absolute_paths(switch: DriverSwitch) -> anyhow::Result<DriverSwitch> {
    let DriverSwitch { mut driver, quantum } = switch;
    if let DriverChoice::File { input, output, .. } = &mut driver {
        for path in [input, output].into_iter().flatten() {
            *path = whole(path)?;
        }
    }
    Ok(DriverSwitch { driver, quantum })
}

fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    let name = || path.display().to_string();
    let whole = std::path::absolute(path).with_context(name)?;
    // Requests to the server are text.
    whole.to_str().map(PathBuf::from).context("the path is not UTF-8").with_context(name)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_servers_files_are_found_from_any_directory() {
        let choice = |path: &OsStr| DriverSwitch {
            driver: DriverChoice::File {
                input: None,
                output: Some(path.into()),
                sample_rate_hz: None,
                playback: None,
                fast: false,
                monitors: false,
            },
            quantum: None,
        };
        let DriverChoice::File { output: Some(path), .. } =
            with_absolute_paths(choice(OsStr::new("take.wav"))).unwrap().driver
        else {
            panic!("still a file")
        };
        assert!(path.is_absolute() && path.ends_with("take.wav"));
        assert!(with_absolute_paths(choice(OsStr::from_bytes(b"\xff.wav"))).is_err());
    }
}
