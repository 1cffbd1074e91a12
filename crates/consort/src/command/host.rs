//! `consort host`: the process in which a server runs one plug-in as an internal client.

mod plug_ins;
mod profiler;

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use client::{HostSocket, InternalFailure};
use sys::socket::Connection;

/// Run a plug-in for a server (started by the server itself)
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:
  jack_load -i '-c -p -e' profiler"
)]
pub(crate) struct Host {
    /// The client's name
    #[arg(long)]
    name: String,
    /// Fail rather than change the name
    #[arg(long)]
    exact: bool,
    /// The plug-in's file name, without directory and extension
    #[arg(long)]
    object: String,
    /// Parameters of the plug-in
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    parameters: String,
}

/// The function of libjackserver.so.0 that runs a plug-in (`consort-jackserver`, `host.rs`).
const ENTRY: &CStr = c"consort_host";
/// JACK2's own plug-ins that need the internals of its server, and that consort does not replace.
const ABSENT: [&str; 3] = ["audioadapter", "netadapter", "netmanager"];

impl Host {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let socket =
            sys::helper::take_socket().context("standard input is not a server's socket")?;
        let socket = Connection::from(socket);
        // The server may have kept a right to look at other processes.
        // MUTATION: host.keeps_capabilities
        let _ = sys::process::drop_rights(false);
        if self.object == "profiler" {
            let line = HostSocket::listen(socket)?;
            profiler::run(server, &self.name, self.exact, &self.parameters, &line)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Err(error) = self.run_plug_in(socket) {
            sys::report!("consort: cannot run the plug-in '{}': {error:#}", self.object);
        }
        Ok(ExitCode::FAILURE)
    }

    /// Returns only if the plug-in could not be handed to the library.
    fn run_plug_in(&self, socket: Connection) -> anyhow::Result<()> {
        let (object, [server_library, client_library]) = match self.find() {
            Ok(found) => found,
            Err(error) => {
                HostSocket::listen(socket)?.failed(InternalFailure::Load, &format!("{error:#}"));
                return Err(error);
            }
        };
        let Self { name, exact, parameters, .. } = self;
        let exact = if *exact { "1" } else { "0" };
        let object = object.to_string_lossy();
        let arguments = [name.as_str(), exact, &object, parameters.as_str()];
        let arguments = arguments.map(|text| CString::new(text).unwrap_or_default());
        let (reason, socket) = sys::library_entry::run(
            &server_library,
            &client_library,
            ENTRY,
            socket.into(),
            &arguments,
        );
        HostSocket::listen(socket.into())?.failed(InternalFailure::Load, &reason);
        bail!("{reason}");
    }

    /// Finds the plug-in's file, and the libraries to link it with.
    fn find(&self) -> anyhow::Result<(PathBuf, [PathBuf; 2])> {
        if ABSENT.contains(&self.object.as_str()) {
            let instead = match self.object.as_str() {
                "audioadapter" => "consort device add",
                _ => jackd::INSTEAD_OF_NETWORK,
            };
            bail!(
                "consort has no '{}', and JACK2's needs the internals of JACK2's server. \
                 Instead: {instead}",
                self.object
            );
        }
        let executable = std::env::current_exe().context("cannot find consort's own directory")?;
        let object = plug_ins::find(&self.object, &plug_ins::directories(&executable))?;
        let library = |name| crate::libraries::find(&executable, name);
        Ok((object, [library("libjackserver")?, library("libjack")?]))
    }
}
