//! `org.jackaudio.JackPatchbay`: the graph.
#![expect(clippy::too_many_arguments, reason = "the signals have as many as in jackdbus")]

use std::sync::Arc;

use client::{Observer, Requester};
use zbus::interface;
use zbus::object_server::SignalEmitter;

// The macro recognizes a fallible method by this name of its return type.
use crate::failure::{Answer as Result, Failure};
use crate::graph::{ListedClient, ListedConnection, VersionedGraph};
use crate::service::Service;

/// The interface.
pub(crate) struct JackPatchbay(pub(crate) Arc<Service>);

fn port_name(graph: &VersionedGraph, port: u64) -> Result<String> {
    graph.port_name(port).ok_or_else(|| Failure::InvalidArgs(format!("there is no port {port}")))
}

impl JackPatchbay {
    /// Looks two ports up in the graph, and connects or disconnects them.
    fn change(
        &self,
        ports: impl FnOnce(&VersionedGraph) -> Result<(String, String)>,
        change: impl FnOnce(&Observer, &str, &str) -> std::result::Result<(), client::Error>,
    ) -> Result<()> {
        self.0.with_server(|server, state| {
            let (source, destination) = ports(&state.graph)?;
            Ok(change(server, &source, &destination)?)
        })?;
        // The change is signaled, and listed by GetGraph, before this call is answered.
        self.0.look();
        Ok(())
    }
}

fn both(client1: &str, port1: &str, client2: &str, port2: &str) -> (String, String) {
    (proto::names::full(client1, port1), proto::names::full(client2, port2))
}

#[interface(name = "org.jackaudio.JackPatchbay")]
impl JackPatchbay {
    fn get_all_ports(&self) -> Result<Vec<String>> {
        self.0.with_server(|_, state| Ok(state.graph.port_names()))
    }

    #[zbus(out_args("current_graph_version", "clients_and_ports", "connections"))]
    fn get_graph(
        &self,
        known_graph_version: u64,
    ) -> Result<(u64, Vec<ListedClient>, Vec<ListedConnection>)> {
        self.0.with_server(|_, state| {
            let graph = &state.graph;
            if known_graph_version > graph.version {
                return Err(Failure::InvalidArgs(format!(
                    "graph version {known_graph_version} does not exist yet: the newest is {}",
                    graph.version
                )));
            }
            if known_graph_version == graph.version {
                return Ok((graph.version, Vec::new(), Vec::new()));
            }
            Ok((graph.version, graph.clients(), graph.connections()))
        })
    }

    fn connect_ports_by_name(
        &self,
        client1: &str,
        port1: &str,
        client2: &str,
        port2: &str,
    ) -> Result<()> {
        self.change(|_| Ok(both(client1, port1, client2, port2)), Observer::connect)
    }

    #[zbus(name = "ConnectPortsByID")]
    fn connect_ports_by_id(&self, port1_id: u64, port2_id: u64) -> Result<()> {
        self.change(
            |graph| Ok((port_name(graph, port1_id)?, port_name(graph, port2_id)?)),
            Observer::connect,
        )
    }

    fn disconnect_ports_by_name(
        &self,
        client1: &str,
        port1: &str,
        client2: &str,
        port2: &str,
    ) -> Result<()> {
        self.change(|_| Ok(both(client1, port1, client2, port2)), Observer::disconnect)
    }

    #[zbus(name = "DisconnectPortsByID")]
    fn disconnect_ports_by_id(&self, port1_id: u64, port2_id: u64) -> Result<()> {
        self.change(
            |graph| Ok((port_name(graph, port1_id)?, port_name(graph, port2_id)?)),
            Observer::disconnect,
        )
    }

    #[zbus(name = "DisconnectPortsByConnectionID")]
    fn disconnect_ports_by_connection_id(&self, connection_id: u64) -> Result<()> {
        let ports = |graph: &VersionedGraph| {
            let found = graph.connection(connection_id);
            let missing =
                || Failure::InvalidArgs(format!("there is no connection {connection_id}"));
            let (source, destination) = found.ok_or_else(missing)?;
            Ok((port_name(graph, source)?, port_name(graph, destination)?))
        };
        self.change(ports, Observer::disconnect)
    }

    #[zbus(name = "GetClientPID")]
    fn get_client_pid(&self, client_id: u64) -> Result<i64> {
        self.0.with_server(|_, state| {
            let process = state.graph.process(client_id).map(i64::from);
            process.ok_or_else(|| Failure::InvalidArgs(format!("there is no client {client_id}")))
        })
    }

    #[zbus(signal)]
    pub(crate) async fn graph_changed(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn client_appeared(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        client_id: u64,
        client_name: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn client_disappeared(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        client_id: u64,
        client_name: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn port_appeared(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        client_id: u64,
        client_name: &str,
        port_id: u64,
        port_name: &str,
        port_flags: u32,
        port_type: u32,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn port_disappeared(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        client_id: u64,
        client_name: &str,
        port_id: u64,
        port_name: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn port_renamed(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        port_id: u64,
        client_id: u64,
        client_name: &str,
        port_old_name: &str,
        port_new_name: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn ports_connected(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        client1_id: u64,
        client1_name: &str,
        port1_id: u64,
        port1_name: &str,
        client2_id: u64,
        client2_name: &str,
        port2_id: u64,
        port2_name: &str,
        connection_id: u64,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    pub(crate) async fn ports_disconnected(
        emitter: &SignalEmitter<'_>,
        new_graph_version: u64,
        client1_id: u64,
        client1_name: &str,
        port1_id: u64,
        port1_name: &str,
        client2_id: u64,
        client2_name: &str,
        port2_id: u64,
        port2_name: &str,
        connection_id: u64,
    ) -> zbus::Result<()>;
}
