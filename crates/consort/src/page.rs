//! The web page's process beside a server: its options, its socket, its start.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use clap::Args;
use cli::UsageError;
use sys::helper::{Ending, Helper};
use web::Token;

/// Default address of the page.
pub(crate) const ADDRESS: &str = "127.0.0.1:8048";

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
        Ok(Some(ListeningPage { listener, token_file: self.token_file.clone() }))
    }
}

impl ListeningPage {
    /// Starts the page's process for a server that is about to run in this process. Must be called
    /// by the main thread: the page ends when the thread that started it ends.
    pub(crate) fn start(self, server: &str) -> anyhow::Result<Page> {
        announce(&self.listener, self.token_file.is_some())?;
        let mut command = cli::own_program()?;
        command.args(["web", "--server", server, "--parent", &std::process::id().to_string()]);
        if let Some(file) = &self.token_file {
            command.arg("--token-file").arg(file);
        }
        command.stdin(Stdio::from(OwnedFd::from(self.listener)));
        let process = Helper::spawn(&mut command, Ending::Kill);
        Ok(Page { _process: process.context("cannot start the web page")? })
    }
}

/// Reads ADDRESS:PORT.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("write ADDRESS:PORT, such as {ADDRESS}"))
}

/// Listens for browsers. Without a token only on a loopback address.
pub(crate) fn listen(address: SocketAddr, token: Option<&Token>) -> anyhow::Result<TcpListener> {
    if !web::is_allowed_at(address, token) {
        let message = format!(
            "without a token file the web page must listen on a loopback address, and {address} is \
             not one"
        );
        return Err(UsageError(message).into());
    }
    TcpListener::bind(address)
        .with_context(|| format!("cannot listen at {address} for the web page"))
}

/// Reports the page's address.
pub(crate) fn announce(listener: &TcpListener, has_token: bool) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    let how = if has_token { "?token=…" } else { "" };
    sys::report!("consort: web page: http://{address}/{how}");
    Ok(())
}

/// Reads the token that browsers must present; `None` without a file.
pub(crate) fn read_token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let Some(file) = file else { return Ok(None) };
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(Some(Token::new(&text).with_context(|| format!("{} has no token", file.display()))?))
}
