//! The D-Bus service `org.jackaudio.service`, as JACK2's jackdbus has it: a process of its own that starts and stops a
//! server, shows its graph, and tells of changes. It looks at the server as any other program does.

mod configure;
mod control;
mod failure;
mod graph;
mod parameters;
mod patchbay;
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

use service::Service;

/// The name on the bus.
const NAME: &str = "org.jackaudio.service";
/// The only object.
const PATH: &str = "/org/jackaudio/Controller";

/// Serves on the session bus until it is told to exit, by the bus or by a signal. `server`: the name of the server, unless
/// somebody sets another.
pub(crate) fn run(server: &str) -> anyhow::Result<()> {
    // Before any thread: all of them inherit the blocked signals.
    let signals = sys::signals::TerminationSignals::block().context("cannot block signals")?;
    let (service, told) = Service::new(server);
    let service = Arc::new(service);
    let connection = zbus::block_on(async {
        Builder::session()
            .serve_at(PATH, control::JackControl(Arc::clone(&service)))
            .serve_at(PATH, configure::Configure(Arc::clone(&service)))
            .serve_at(PATH, patchbay::JackPatchbay(Arc::clone(&service)))
            .serve_at(PATH, session_manager::SessionManager(Arc::clone(&service)))
            .serve_at(PATH, control::JackTransport)
            .name(NAME)
            // Whoever serves already goes on, with the server that it has started.
            .replace_existing_names(false)
            .allow_name_replacements(false)
            .build()
            .await
    });
    let connection = match connection {
        Err(zbus::Error::NameTaken) => bail!(
            "another program serves as {NAME} on the session bus: use that, or end it with 'jack_control exit'"
        ),
        made => made.with_context(|| format!("cannot serve as {NAME} on the session bus"))?,
    };
    watch::until_the_end(&service, connection, &told, &signals);
    Ok(())
}
