//! `consort web`: a server's page for browsers. `consort run --web` runs it along with the server.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::Context;
use clap::Args;
use cli::UsageError;
use sys::helper::{Ending, Helper};
use web::Token;

use crate::own_program::OwnProgram;

/// Default address of the page.
const ADDRESS: &str = "127.0.0.1:8048";

/// Show a server's cycles, graph and xruns to browsers, and its metrics to Prometheus
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
    /// of root on this machine are answered
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
                let listener = listen(self.address, token.as_ref())?;
                announce(&listener, token.as_ref())?;
                listener
            }
        };
        web::serve(listener, server, token).context("cannot serve the page")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Options of `consort run`.
#[derive(Debug, Default, Args)]
pub(crate) struct PageArguments {
    /// Show cycles, graph and xruns to browsers at this address, and metrics to Prometheus, from a
    /// separate process
    #[arg(long = "web", value_name = "ADDRESS", value_parser = address)]
    address: Option<SocketAddr>,
    /// File with the token that browsers must present. Without it, only programs of this user and
    /// of root on this machine are answered
    #[arg(long = "web-token-file", value_name = "FILE", requires = "address")]
    token_file: Option<PathBuf>,
}

/// A page that listens, and has no process yet.
#[derive(Debug)]
pub(crate) struct ListeningPage {
    listener: TcpListener,
    token_file: Option<PathBuf>,
}

/// The page's process. It ends when this value is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Page {
    _process: Helper,
}

impl PageArguments {
    /// Returns whether the page answers every program of this user.
    pub(crate) fn lets_any_program_in(&self) -> bool {
        self.address.is_some() && self.token_file.is_none()
    }

    /// Listens for browsers, if a page was asked for.
    pub(crate) fn listen(&self) -> anyhow::Result<Option<ListeningPage>> {
        let Some(address) = self.address else { return Ok(None) };
        let token = read_token(self.token_file.as_deref())?;
        let listener = listen(address, token.as_ref())?;
        announce(&listener, token.as_ref())?;
        Ok(Some(ListeningPage { listener, token_file: self.token_file.clone() }))
    }
}

impl ListeningPage {
    /// Starts the page's process for a server that is about to run in this process. Must be called
    /// by the main thread: the page ends when the thread that started it ends.
    pub(crate) fn start(self, server: &str) -> anyhow::Result<Page> {
        let mut command = OwnProgram::find()?.command();
        command.args(["web", "--server", server, "--parent", &std::process::id().to_string()]);
        if let Some(file) = &self.token_file {
            command.arg("--token-file").arg(file);
        }
        command.stdin(Stdio::from(OwnedFd::from(self.listener)));
        let process = Helper::spawn(&mut command, Ending::Kill);
        Ok(Page { _process: process.context("cannot start the web page")? })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("write ADDRESS:PORT, such as {ADDRESS}"))
}

fn listen(address: SocketAddr, token: Option<&Token>) -> anyhow::Result<TcpListener> {
    if !web::is_allowed_at(address, token) {
        let message = format!(
            "without a token file the web page must be at a loopback address, and {address} is none"
        );
        return Err(UsageError(message).into());
    }
    TcpListener::bind(address)
        .with_context(|| format!("cannot listen at {address} for the web page"))
}

fn announce(listener: &TcpListener, token: Option<&Token>) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let how = if token.is_some() { "?token=…" } else { "" };
    eprintln!("consort: web page: http://{address}/{how}");
    Ok(())
}

fn read_token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let Some(file) = file else { return Ok(None) };
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Some(Token::new(&text).with_context(|| format!("{} has no token", file.display()))?))
}
