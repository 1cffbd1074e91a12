//! The service's main loop: sends signals about what has changed on the server, and ends in order.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::task::Context;

use sys::clock::{now_ns, sleep_until};
use sys::poll::{Event, Interest, Waker};
use sys::signals::TerminationSignals;
use zbus::Connection;
use zbus::object_server::SignalEmitter;

use crate::PATH;
use crate::control::JackControl;
use crate::graph::{ConnectionEnds, GraphSignal};
use crate::patchbay::JackPatchbay;
use crate::service::{Service, ServiceEvent};
use crate::session_manager::SessionManager;

/// Tokens of the main loop's descriptors: the service's waker, the server or its place, and the
/// signals that end it.
pub(crate) const WAKER: u64 = 0;
pub(crate) const SERVER: u64 = 1;
const SIGNALS: u64 = 2;

/// Changes of the graph within this time after another are reported together.
const TOGETHER_NS: u64 = 50_000_000;
/// How often a server is looked for whose start cannot be noticed.
const BLIND_NS: u64 = 1_000_000_000;

/// Serves until `Exit` is called, a signal ends the service, the bus is gone, or the server is of
/// another release. Then stops the server if the service has started it, and answers the calls that
/// are under way. Sleeps while nothing changes.
///
/// # Errors
/// The kernel refuses to poll.
pub(crate) fn until_the_end(
    service: &Service,
    connection: Connection,
    events: &Receiver<ServiceEvent>,
    signals: &TerminationSignals,
) -> io::Result<()> {
    service.poller.add(signals, SIGNALS, Interest::Readable)?;
    serve(service, &connection, events, signals)?;
    service.stop_own();
    if !connection.is_closed() {
        zbus::block_on(connection.graceful_shutdown());
    }
    Ok(())
}

fn serve(
    service: &Service,
    connection: &Connection,
    events: &Receiver<ServiceEvent>,
    signals: &TerminationSignals,
) -> io::Result<()> {
    let mut closed = pin!(connection.closed());
    let woken = std::task::Waker::from(Arc::new(WakesMainLoop(Arc::clone(&service.waker))));
    let mut ready: Vec<Event> = Vec::new();
    loop {
        service.look();
        if !send_all(connection, events)
            || matches!(signals.read(), Ok(Some(_)))
            || closed.as_mut().poll(&mut Context::from_waker(&woken)).is_ready()
        {
            return Ok(());
        }
        if ready.iter().any(|event| event.token == SERVER) {
            sleep_until(now_ns() + TOGETHER_NS);
        }
        let blind_ns = service.state().link.is_blind().then(|| now_ns() + BLIND_NS);
        service.poller.wait(&mut ready, blind_ns)?;
        service.waker.reset();
    }
}

/// Has the main loop look whether the bus has gone.
struct WakesMainLoop(Arc<Waker>);

impl std::task::Wake for WakesMainLoop {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

/// Sends the signals of all events. Returns false if the service is to end.
fn send_all(connection: &Connection, events: &Receiver<ServiceEvent>) -> bool {
    while let Ok(event) = events.try_recv() {
        if let ServiceEvent::OtherRelease(reason) = &event {
            eprintln!("consort: the D-Bus service ends: {reason}");
            return false;
        }
        if event == ServiceEvent::Exit || send(connection, event).is_err() {
            return false;
        }
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
