//! The service's main loop: polls the server, sends signals about what changed, and ends in order.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use sys::signals::TerminationSignals;
use zbus::Connection;
use zbus::object_server::SignalEmitter;

use crate::PATH;
use crate::control::JackControl;
use crate::graph::{ConnectionEnds, GraphSignal};
use crate::patchbay::JackPatchbay;
use crate::service::{Service, ServiceEvent};
use crate::session_manager::SessionManager;

/// How often the server is polled: a change is signaled after this time at the latest.
const POLL: Duration = Duration::from_millis(50);
/// One of this many polls also asks whether the server still answers.
const THOROUGH: u32 = 10;

/// Serves until `Exit` is called, a signal ends the service, the bus is gone, or the server is of
/// another release. Then stops the
/// server if the service has started it, and answers the calls that are under way.
pub(crate) fn until_the_end(
    service: &Service,
    connection: Connection,
    events: &Receiver<ServiceEvent>,
    signals: &TerminationSignals,
) {
    for count in 0_u32.. {
        service.poll(count % THOROUGH == 0);
        if !send_all(&connection, events)
            || matches!(signals.read(), Ok(Some(_)))
            || connection.is_closed()
        {
            break;
        }
    }
    service.stop_own();
    if !connection.is_closed() {
        zbus::block_on(connection.graceful_shutdown());
    }
}

/// Waits up to [`POLL`] for events and sends their signals. Returns false if the service is to end.
fn send_all(connection: &Connection, events: &Receiver<ServiceEvent>) -> bool {
    let mut next = events.recv_timeout(POLL).ok();
    while let Some(event) = next {
        if let ServiceEvent::OtherRelease(reason) = &event {
            eprintln!("consort: the D-Bus service ends: {reason}");
            return false;
        }
        if event == ServiceEvent::Exit || send(connection, event).is_err() {
            return false;
        }
        next = events.try_recv().ok();
    }
    true
}

/// Sends one signal. Fails if the bus is gone.
fn send(connection: &Connection, event: ServiceEvent) -> zbus::Result<()> {
    let emitter = &SignalEmitter::new(connection, PATH)?;
    zbus::block_on(async {
        match event {
            ServiceEvent::Started => JackControl::server_started(emitter).await,
            ServiceEvent::Stopped => JackControl::server_stopped(emitter).await,
            ServiceEvent::Session(kind, target) => {
                SessionManager::state_changed(emitter, kind, &target).await
            }
            ServiceEvent::Graph(signal) => send_of_graph(emitter, signal).await,
            ServiceEvent::OtherRelease(_) | ServiceEvent::Exit => Ok(()),
        }
    })
}

async fn send_of_graph(emitter: &SignalEmitter<'_>, signal: GraphSignal) -> zbus::Result<()> {
    use JackPatchbay as Patchbay;
    match signal {
        GraphSignal::GraphChanged(version) => Patchbay::graph_changed(emitter, version).await,
        GraphSignal::ClientAppeared((version, id, name)) => {
            Patchbay::client_appeared(emitter, version, id, &name).await
        }
        GraphSignal::ClientDisappeared((version, id, name)) => {
            Patchbay::client_disappeared(emitter, version, id, &name).await
        }
        GraphSignal::PortAppeared((version, client, name, port, short, flags, kind)) => {
            Patchbay::port_appeared(emitter, version, client, &name, port, &short, flags, kind)
                .await
        }
        GraphSignal::PortDisappeared((version, client, name, port, short)) => {
            Patchbay::port_disappeared(emitter, version, client, &name, port, &short).await
        }
        GraphSignal::PortRenamed((version, port, client, name, old, new)) => {
            Patchbay::port_renamed(emitter, version, port, client, &name, &old, &new).await
        }
        GraphSignal::PortsConnected(ConnectionEnds(version, a, b, c, d, e, f, g, h, number)) => {
            Patchbay::ports_connected(emitter, version, a, &b, c, &d, e, &f, g, &h, number).await
        }
        GraphSignal::PortsDisconnected(ConnectionEnds(version, a, b, c, d, e, f, g, h, number)) => {
            Patchbay::ports_disconnected(emitter, version, a, &b, c, &d, e, &f, g, &h, number).await
        }
    }
}
