//! The command line of `consort pulse`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use sys::signals::TerminationSignals;

use crate::cookie_file::CookieFile;
use crate::front_end::{Admission, Cookie};
use crate::service::{
    Entrance, Keeper, Listener, NetworkListener, ServerDevices, Service, WithoutServer, address,
};

/// Let programs of PulseAudio play and record
///
/// Listens where PulseAudio's programs look for their server, and plays what they send as streams
/// of the server's device. Programs of this user are let in; others need PulseAudio's cookie. Ends
/// on Ctrl-C. consort run --pulse starts it with a server.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort pulse
  consort pulse --socket /tmp/pulse & PULSE_SERVER=unix:/tmp/pulse paplay song.wav
  consort pulse --tcp 192.168.1.2    # elsewhere, with a copy of the cookie:
                                     # PULSE_SERVER=tcp:192.168.1.2 paplay song.wav

Files, of the server 'default' (of another one: desktop-NAME):
  ~/.local/state/consort/desktop.json  volumes and sinks that programs were left with
  ~/.config/consort/desktop.rules      how they begin instead, such as: volume=50% name=Firefox
                                       and modules: load-module module-null-sink sink_name=stage

Exit codes:
  0  ended by SIGHUP, SIGINT or SIGTERM; or started by systemd, with no server and no program left
  1  it cannot listen there, or has no cookie for programs over TCP; or the server that follows is
     of another release
  3  no server of that name is running")]
pub struct Pulse {
    /// The socket to listen on [default: the one for which systemd started it, or
    /// $XDG_RUNTIME_DIR/pulse/native]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Also let in programs over TCP that present the cookie, at this IPv4 or IPv6 address and port
    /// 4713, or ADDRESS:PORT. They may do all that programs of this user may. Nothing is encrypted,
    /// the cookie neither: use it in networks that you trust
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    tcp: Option<SocketAddr>,
    /// File of 256 bytes that lets in programs over TCP, and of other users. It is made if there is
    /// none [default: $XDG_CONFIG_HOME/pulse/cookie; ~/.pulse-cookie if only that exists]
    #[arg(long, value_name = "FILE")]
    cookie: Option<PathBuf>,
    /// Let programs over TCP in without the cookie: everybody who reaches the address may play, and
    /// record
    #[arg(long, requires = "tcp")]
    anonymous: bool,
    /// Standard input is the listening socket of the server that has started this. Ends when there
    /// is no server, once nobody waits for the next one
    #[arg(long, hide = true, conflicts_with = "socket")]
    of_server: bool,
}

impl Pulse {
    /// Serves programs of PulseAudio's protocol, on the server `server`, until a signal.
    ///
    /// # Errors
    /// A sentence about a socket or the cookie, or the errors of connecting to the server.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let inherited = if self.of_server {
            let socket = sys::helper::take_kept_socket()?;
            Some(Listener::of_server(socket).context("standard input is not a server's socket")?)
        } else {
            None
        };
        // Before anything may start a thread: they inherit the block.
        let signals = TerminationSignals::block().context("cannot wait for signals")?;
        let devices = ServerDevices::connect(server)?;
        let cookie = self.cookie()?;
        let (local, without_server) = match (inherited, &self.socket) {
            (Some(socket), _) => (socket, WithoutServer::EndsUnlessAwaited),
            (None, Some(path)) => (Listener::bind(Some(path))?, WithoutServer::Stays),
            (None, None) => match Listener::adopt()? {
                Some(socket) => (socket, WithoutServer::EndsIfUnused),
                None => (Listener::bind(None)?, WithoutServer::Stays),
            },
        };
        let network = self.tcp.map(NetworkListener::bind).transpose()?;
        if let Some(network) = &network {
            let who = if self.anonymous { "any program is let in" } else { "with the cookie" };
            sys::report!("consort: programs of PulseAudio over TCP: {}, {who}", network.address()?);
        }
        let admission = Admission { cookie, is_open_to_network: self.anonymous };
        let entrance = Entrance { local, network, admission };
        let keeper = Keeper::of_user(server);
        let service = Service::new(devices, entrance, signals, keeper, without_server)?;
        // It runs as long as the session, and little of what has started it.
        sys::memory::release_spare_memory();
        service.run()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the cookie. Without one, only programs that need none come in: that is reported, or
    /// an error if others are to.
    fn cookie(&self) -> anyhow::Result<Option<Cookie>> {
        let file =
            self.cookie.clone().map_or_else(CookieFile::of_user, |path| Ok(CookieFile::at(path)));
        let loaded = file.and_then(|file| Ok(file.load()?.0));
        match loaded {
            Ok(cookie) => Ok(Some(cookie)),
            Err(error) if self.cookie.is_some() || (self.tcp.is_some() && !self.anonymous) => {
                Err(error)
            }
            Err(error) => {
                sys::report!(
                    "consort: no cookie lets in PulseAudio's programs of other users: {}",
                    cli::error_chain(&error)
                );
                Ok(None)
            }
        }
    }
}
