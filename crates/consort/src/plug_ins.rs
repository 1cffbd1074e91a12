//! Plug-ins that a server begins with.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow};
use cli::error_chain;
use client::{Observer, PlugIn, Requester};
use sys::signals::TerminationSignals;

use crate::exit;

/// Between two looks whether the server takes programs in.
const LOOK_NS: u64 = 10_000_000;

/// A plug-in as jackd's `-I` names it: `[NAME:]OBJECT[/PARAMETERS]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InternalClient {
    name: String,
    object: String,
    parameters: String,
}

impl FromStr for InternalClient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (names, parameters) = text.split_once('/').unwrap_or((text, ""));
        let (name, object) = names.split_once(':').unwrap_or((names, names));
        if name.is_empty() || object.is_empty() {
            return Err(format!("'{text}' is no plug-in: write [NAME:]OBJECT[/PARAMETERS]"));
        }
        Ok(Self { name: name.into(), object: object.into(), parameters: parameters.into() })
    }
}

/// What is loaded as soon as the server runs: the plug-ins, and then what the file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Beginning {
    pub(crate) plug_ins: Vec<InternalClient>,
    /// A file as `jackctl_server_load_session_file` reads it.
    pub(crate) session: Option<PathBuf>,
}

/// The thread that waits for the server of this process and loads them. If one of them fails, it
/// has the server end.
pub(crate) struct Loading {
    /// Whether all was loaded, as far as the server ran.
    thread: JoinHandle<bool>,
    has_ended: Arc<AtomicBool>,
    // Those of the thread are the same: it must not be one that a signal kills.
    _signals: TerminationSignals,
}

impl Loading {
    /// Begins to wait, if there is something to load. To be called by the main thread before it
    /// makes another.
    pub(crate) fn start(server: &str, beginning: Beginning) -> anyhow::Result<Option<Self>> {
        if beginning == Beginning::default() {
            return Ok(None);
        }
        let signals = TerminationSignals::block().context("cannot block signals")?;
        let has_ended = Arc::new(AtomicBool::new(false));
        let (server, ended) = (server.to_owned(), Arc::clone(&has_ended));
        let thread = std::thread::Builder::new().name("plug-ins".into());
        let thread = thread.spawn(move || match running(&server, &ended) {
            Some(server) => beginning.load_or_stop(&server),
            None => true,
        })?;
        Ok(Some(Self { thread, has_ended, _signals: signals }))
    }

    /// The server has ended; says whether that was in order. What could not be loaded has been said
    /// before.
    pub(crate) fn finish(self) -> ExitCode {
        // Relaxed: it says nothing of other memory.
        self.has_ended.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(true) => ExitCode::SUCCESS,
            _ => ExitCode::from(exit::REFUSED),
        }
    }
}

/// The server of this very process; `None`: it has ended.
fn running(name: &str, has_ended: &AtomicBool) -> Option<Observer> {
    while !has_ended.load(Ordering::Relaxed) {
        if let Ok(server) = Observer::open(Some(name))
            && server.status().is_ok_and(|status| status.process == std::process::id())
        {
            return Some(server);
        }
        sys::clock::sleep_until(sys::clock::now_ns() + LOOK_NS);
    }
    None
}

impl Beginning {
    /// Loads them, or says why not and has the server end.
    fn load_or_stop(&self, server: &Observer) -> bool {
        let Err(error) = self.load(server) else { return true };
        // Before the server says that somebody has asked it to end.
        eprintln!("consort: {}", error_chain(&error));
        // A server that has ended meanwhile needs not be told.
        let _ = server.stop();
        false
    }

    fn load(&self, server: &Observer) -> anyhow::Result<()> {
        for InternalClient { name, object, parameters } in &self.plug_ins {
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
            self.session.as_deref().map_or(Ok(()), |file| server.load_internal_session(file));
        session.map_err(|reason| anyhow!(reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plug_in_is_named_by_its_object_with_a_name_before_it_and_parameters_after_it() {
        for (text, name, object, parameters) in [
            ("profiler", "profiler", "profiler", ""),
            ("meter:profiler", "meter", "profiler", ""),
            ("profiler/-c -p", "profiler", "profiler", "-c -p"),
            (
                "amp1:jalv/http://lv2plug.in/plugins/eg-amp",
                "amp1",
                "jalv",
                "http://lv2plug.in/plugins/eg-amp",
            ),
        ] {
            let expected = InternalClient {
                name: name.into(),
                object: object.into(),
                parameters: parameters.into(),
            };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", ":", "a:", ":b", "/x", "a:/x"] {
            assert!(text.parse::<InternalClient>().is_err(), "{text}");
        }
    }
}
