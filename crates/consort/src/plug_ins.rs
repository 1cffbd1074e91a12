//! Plug-ins that a server loads at its start.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use cli::error_chain;
use client::{Observer, PlugIn, Requester};
use jackd::{InternalClient, StartupLoad};
use sys::signals::TerminationSignals;

use crate::exit;

/// Interval at which a connection to the server is tried.
const RETRY_NS: u64 = 10_000_000;

/// The thread that waits for the server of this process and then loads everything. If anything
/// fails, it stops the server.
pub(crate) struct StartupLoader {
    /// Returns false if anything failed while the server ran.
    thread: JoinHandle<bool>,
    has_ended: Arc<AtomicBool>,
    // The thread inherits the blocked signals; otherwise one could kill it.
    _signals: TerminationSignals,
}

impl StartupLoader {
    /// Starts the thread, if there is something to load. Must be called by the main thread before
    /// it starts another.
    pub(crate) fn start(server: &str, startup: StartupLoad) -> anyhow::Result<Option<Self>> {
        if startup == StartupLoad::default() {
            return Ok(None);
        }
        let signals = TerminationSignals::block().context("cannot block signals")?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let (server, ended) = (server.to_owned(), Arc::clone(&has_ended));
        let thread = std::thread::Builder::new().name("plug-ins".into());
        let thread = thread.spawn(move || match running(&server, &ended) {
            Some(server) => load_or_stop(&startup, &server),
            None => true,
        })?;
        Ok(Some(Self { thread, has_ended, _signals: signals }))
    }

    /// Ends the thread after the server has ended. Returns failure if something could not be
    /// loaded, which the thread has printed.
    pub(crate) fn finish(self) -> ExitCode {
        // Relaxed: it guards no other memory.
        self.has_ended.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(true) => ExitCode::SUCCESS,
            _ => ExitCode::from(exit::REFUSED),
        }
    }
}

/// Waits for the server of this process; `None`: it has ended.
fn running(name: &str, has_ended: &AtomicBool) -> Option<Observer> {
    while !has_ended.load(Ordering::Relaxed) {
        if let Ok(server) = Observer::open(Some(name))
            && server.status().is_ok_and(|status| status.process == std::process::id())
        {
            return Some(server);
        }
        sys::clock::sleep_until(sys::clock::now_ns() + RETRY_NS);
    }
    None
}

/// Loads everything, or prints why it could not and stops the server.
fn load_or_stop(startup: &StartupLoad, server: &Observer) -> bool {
    let Err(error) = load(startup, server) else { return true };
    // Printed before the server logs that it was asked to end.
    sys::report!("consort: {}", error_chain(&error));
    // An error here means that the server has already ended.
    let _ = server.stop();
    false
}

fn load(startup: &StartupLoad, server: &Observer) -> anyhow::Result<()> {
    for InternalClient { name, object, parameters } in &startup.plug_ins {
        let plug_in = PlugIn {
            name: name.clone(),
            exact: false,
            object: object.clone(),
            parameters: parameters.clone(),
        };
        match server.load_internal(plug_in) {
            Err(client::Error::ServerGone) => return Ok(()),
            loaded => loaded.map(drop).with_context(|| format!("the plug-in '{object}'"))?,
        }
    }
    let session =
        startup.session.as_deref().map_or(Ok(()), |file| server.load_internal_session(file));
    session.map_err(|reason| anyhow!(reason))
}
