//! The command line of `consort pulse`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use sys::signals::TerminationSignals;

use crate::service::Service;

/// Let programs of PulseAudio play
///
/// Listens where PulseAudio's programs look for their server, and plays what they send as streams
/// of the server's device. Only programs of this user are let in. Ends on Ctrl-C.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort pulse
  consort pulse --socket /tmp/pulse & PULSE_SERVER=unix:/tmp/pulse paplay song.wav

Exit codes:
  0  ended by SIGHUP, SIGINT or SIGTERM
  1  it cannot listen there
  3  no server of that name is running")]
pub struct Pulse {
    /// The socket to listen on [default: the one for which systemd started it, or
    /// $XDG_RUNTIME_DIR/pulse/native]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl Pulse {
    /// Serves programs of PulseAudio's protocol, on the server `server`, until a signal.
    ///
    /// # Errors
    /// A sentence about the socket, or the errors of connecting to the server.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        // Before anything may start a thread: they inherit the block.
        let signals = TerminationSignals::block().context("cannot wait for signals")?;
        Service::new(server, self.socket.as_deref(), signals)?.run()?;
        Ok(ExitCode::SUCCESS)
    }
}
