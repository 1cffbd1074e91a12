//! From changes of the model to the registry, the clients' notifications, and a new plan.

use proto::encode;
use proto::event::Event;

use sys::clock::now_ns;

use super::Control;
use crate::model::Change;

impl Control {
    /// Carries what happened to the model to everybody: the registry first, so that an answer that is sent
    /// after this finds it there.
    pub(super) fn carry_changes(&mut self) {
        let changes = self.parts.model.take_changes();
        for change in &changes {
            self.parts.mirror.apply(&self.parts.model, change);
            self.tell(change);
            match change {
                Change::Connected { source, destination } => {
                    self.ask_for_connection(*source, *destination);
                    self.graph_changed();
                }
                Change::Disconnected { .. } | Change::ClientActivity(_) => self.graph_changed(),
                Change::PortUnregistered { .. } => self.plans.need(now_ns()),
                _ => {}
            }
        }
    }

    fn graph_changed(&mut self) {
        self.plans.need(now_ns());
        self.latencies_due = true;
    }

    fn tell(&mut self, change: &Change) {
        let mut except = None;
        let event = match change {
            Change::ClientOpened(client) => {
                except = Some(*client);
                let name = self.parts.model.client(*client).map(|client| client.name.clone());
                Event::ClientRegistration { name: name.unwrap_or_default(), registered: true }
            }
            Change::ClientClosed { name, .. } => {
                Event::ClientRegistration { name: name.clone(), registered: false }
            }
            Change::PortRegistered(port) => return self.tell_port(*port, true),
            Change::PortUnregistered { announced: false, .. } => return,
            Change::PortUnregistered { port, .. } => {
                Event::PortRegistration { port: *port, registered: false }
            }
            Change::ClientActivity(client) => return self.tell_ports(*client),
            Change::PortRenamed { port, old, new } => {
                Event::PortRename { port: *port, old: old.clone(), new: new.clone() }
            }
            Change::PortAliases(_) => return,
            Change::Connected { source, destination } => {
                Event::Connection { source: *source, destination: *destination, connected: true }
            }
            Change::Disconnected { source, destination } => {
                Event::Connection { source: *source, destination: *destination, connected: false }
            }
        };
        self.tell_all(&event, except);
    }

    /// A port is announced when its client is active.
    fn tell_port(&mut self, port: u32, registered: bool) {
        let Some(owner) = self.parts.model.port(port).map(|port| port.owner) else { return };
        if self.parts.model.client(owner).is_some_and(|owner| owner.active) {
            self.tell_all(&Event::PortRegistration { port, registered }, None);
        }
    }

    /// All ports of a client that became active come, and go when it is inactive: inputs before outputs.
    fn tell_ports(&mut self, client: u32) {
        let Some(registered) = self.parts.model.client(client).map(|client| client.active) else { return };
        let mut ports: Vec<(bool, u32)> =
            self.parts.model.ports_of(client).map(|port| (port.is_output(), port.id)).collect();
        ports.sort_unstable();
        for (_, port) in ports {
            self.tell_all(&Event::PortRegistration { port, registered }, None);
        }
    }

    /// Tells every client but one.
    pub(super) fn tell_all(&mut self, event: &Event, except: Option<u32>) {
        let packet = encode(event).into();
        for (client, slot) in &mut self.clients {
            let wanted = slot.activation.is_some_and(|activation| activation.interests.include(event));
            if Some(*client) != except && wanted {
                slot.outbox.push_packet(&packet);
            }
        }
    }
}
