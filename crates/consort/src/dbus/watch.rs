//! The service's main loop: looks at the server, says on the bus what is new, and ends in order.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use sys::signals::TerminationSignals;
use zbus::Connection;
use zbus::object_server::SignalEmitter;

use super::PATH;
use super::control::JackControl;
use super::graph::{Ends, Told};
use super::patchbay::JackPatchbay;
use super::service::{News, Service};
use super::session_manager::SessionManager;

/// How often the server is looked at: a change is told after this at the latest.
const LOOK: Duration = Duration::from_millis(50);
/// Of how many looks one asks whether the server still answers.
const THOROUGH: u32 = 10;

/// Serves until somebody calls `Exit`, a signal ends the service, or the bus is gone. A server that was started here ends
/// first, and calls that are under way are answered.
pub(super) fn until_the_end(
    service: &Service,
    connection: Connection,
    news: &Receiver<News>,
    signals: &TerminationSignals,
) {
    for look in 0_u32.. {
        service.look(look % THOROUGH == 0);
        if !say_all(&connection, news) || matches!(signals.read(), Ok(Some(_))) || connection.is_closed() {
            break;
        }
    }
    service.stop_own();
    if !connection.is_closed() {
        zbus::block_on(connection.graceful_shutdown());
    }
}

/// Waits a little for news and says it; false if the service is to end.
fn say_all(connection: &Connection, news: &Receiver<News>) -> bool {
    let mut next = news.recv_timeout(LOOK).ok();
    while let Some(what) = next {
        if what == News::Exit || say(connection, what).is_err() {
            return false;
        }
        next = news.try_recv().ok();
    }
    true
}

/// Fails if the bus is gone.
fn say(connection: &Connection, news: News) -> zbus::Result<()> {
    let emitter = &SignalEmitter::new(connection, PATH)?;
    zbus::block_on(async {
        match news {
            News::Started => JackControl::server_started(emitter).await,
            News::Stopped => JackControl::server_stopped(emitter).await,
            News::Session(kind, target) => SessionManager::state_changed(emitter, kind, &target).await,
            News::Graph(told) => say_of_graph(emitter, told).await,
            News::Exit => Ok(()),
        }
    })
}

async fn say_of_graph(emitter: &SignalEmitter<'_>, told: Told) -> zbus::Result<()> {
    use JackPatchbay as Patchbay;
    match told {
        Told::GraphChanged(version) => Patchbay::graph_changed(emitter, version).await,
        Told::ClientAppeared((version, id, name)) => {
            Patchbay::client_appeared(emitter, version, id, &name).await
        }
        Told::ClientDisappeared((version, id, name)) => {
            Patchbay::client_disappeared(emitter, version, id, &name).await
        }
        Told::PortAppeared((version, client, name, port, short, flags, kind)) => {
            Patchbay::port_appeared(emitter, version, client, &name, port, &short, flags, kind).await
        }
        Told::PortDisappeared((version, client, name, port, short)) => {
            Patchbay::port_disappeared(emitter, version, client, &name, port, &short).await
        }
        Told::PortRenamed((version, port, client, name, old, new)) => {
            Patchbay::port_renamed(emitter, version, port, client, &name, &old, &new).await
        }
        Told::PortsConnected(Ends(version, a, b, c, d, e, f, g, h, number)) => {
            Patchbay::ports_connected(emitter, version, a, &b, c, &d, e, &f, g, &h, number).await
        }
        Told::PortsDisconnected(Ends(version, a, b, c, d, e, f, g, h, number)) => {
            Patchbay::ports_disconnected(emitter, version, a, &b, c, &d, e, &f, g, &h, number).await
        }
    }
}
