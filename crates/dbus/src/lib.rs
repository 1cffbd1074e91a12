//! The D-Bus service `org.jackaudio.service`, as JACK2's jackdbus has it: a process that starts and
//! stops a server, shows its graph, and signals changes. It observes the server as any other
//! program does.
#![forbid(unsafe_code)]

mod configure;
mod control;
mod failure;
mod graph;
mod jackd;
mod parameters;
mod patchbay;
mod server_link;
mod server_process;
mod service;
mod session_manager;
mod settings;
mod slaves;
mod table;
mod watch;

use std::sync::Arc;

use anyhow::{Context, bail};
use zbus::connection::Builder;

pub use jackd::Jackd;
use service::Service;

/// The name on the bus.
const NAME: &str = "org.jackaudio.service";
/// The only object.
const PATH: &str = "/org/jackaudio/Controller";

/// Serves on the session bus until a call of `Exit` or a signal ends it. `server` is the server's
/// name unless the parameter `name` is set.
///
/// # Errors
/// There is no session bus, or another program has the name on it.
pub fn run(server: &str, jackd: Arc<dyn Jackd>) -> anyhow::Result<()> {
    // Blocked before any thread is started: all of them inherit the blocked signals.
    let signals = sys::signals::TerminationSignals::block().context("cannot block signals")?;
    let made = Service::new(server, jackd);
    let (service, events) = made.context("cannot wait for a server")?;
    let service = Arc::new(service);
    let connection = zbus::block_on(async {
        Builder::session()
            .serve_at(PATH, control::JackControl(Arc::clone(&service)))
            .serve_at(PATH, configure::Configure(Arc::clone(&service)))
            .serve_at(PATH, patchbay::JackPatchbay(Arc::clone(&service)))
            .serve_at(PATH, session_manager::SessionManager(Arc::clone(&service)))
            .serve_at(PATH, control::JackTransport)
            .name(NAME)
            // A service that is already running keeps the name, and the server that it has started.
            .replace_existing_names(false)
            .allow_name_replacements(false)
            .build()
            .await
    });
    let connection = match connection {
        Err(zbus::Error::NameTaken) => bail!(
            "another program serves as {NAME} on the session bus: use that, or end it with \
             'jack_control exit'"
        ),
        made => made.with_context(|| format!("cannot serve as {NAME} on the session bus"))?,
    };
    watch::until_the_end(&service, connection, &events, &signals).context("cannot wait for changes")
}
