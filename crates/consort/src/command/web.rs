//! `consort web`: a server's page for browsers. `consort run --web` runs it along with the server.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use cli::UsageError;

use crate::page::{ADDRESS, address, announce, listen, read_token};

/// Show a server's cycles, graph, streams and xruns to browsers, and its metrics to Prometheus
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  consort web                    # http://127.0.0.1:8048/
  consort web 0.0.0.0:8048 --token-file ~/.config/consort-token
  curl http://127.0.0.1:8048/metrics")]
pub(crate) struct Web {
    /// Address and port; port 0: any free port
    #[arg(value_name = "ADDRESS", default_value = ADDRESS, value_parser = address)]
    address: SocketAddr,
    /// File with the token that browsers must present. Without it, only programs of this user and
    /// of root on this machine are answered, and no server with a policy is served
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Standard input is the listening socket, and the page ends with this parent process
    #[arg(long, value_name = "PROCESS", hide = true)]
    parent: Option<u32>,
}

impl Web {
    pub(crate) fn run(self, server: String) -> anyhow::Result<ExitCode> {
        let token = read_token(self.token_file.as_deref())?;
        let listener = match self.parent {
            Some(process) => {
                sys::helper::end_with_parent(process).context("cannot end with the server")?;
                TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned()?)
            }
            None => {
                web::check_server(&server, token.as_ref())
                    .map_err(|refusal| UsageError(refusal.to_string()))?;
                let listener = listen(self.address, token.as_ref())?;
                announce(&listener, token.is_some())?;
                listener
            }
        };
        // The server that started it may have kept a right to look at other processes.
        // MUTATION: web.keeps_capabilities
        let _ = sys::process::drop_rights(false);
        web::serve(listener, server, token).context("cannot serve the page")?;
        Ok(ExitCode::SUCCESS)
    }
}
