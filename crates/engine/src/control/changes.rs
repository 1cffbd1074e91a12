//! From changes of the model to the registry, the clients' notifications, and a new plan.

use proto::event::Event;
use sys::clock::now_ns;

use super::Control;
use super::clients::Clients;
use super::publisher::PlanPublisher;
use crate::client_slot::{ClientSlot, Origin};
use crate::model::{Change, Model};

impl Control {
    /// Carries the model's changes to the registry, the state file, the clients and the next plan.
    /// The registry comes first: a program that is answered after this finds them there.
    pub(super) fn carry_changes(&mut self) {
        let changes = self.model.take_changes();
        for change in &changes {
            self.registry.apply(&self.model, change);
            self.persistence.state.note(change);
            self.notify(change);
            self.note_role_change(change);
            match change {
                Change::Connected { source, destination } => {
                    self.clients.ask_for_connection(
                        &self.model,
                        *source,
                        *destination,
                        self.publisher.in_force(),
                    );
                    self.connections_changed(*source);
                    self.graph_changed();
                }
                Change::Disconnected { source, .. } => {
                    self.connections_changed(*source);
                    self.graph_changed();
                }
                Change::ClientActivity(_) => self.graph_changed(),
                Change::PortUnregistered { .. } => self.publisher.need(now_ns()),
                _ => {}
            }
        }
        if changes.iter().any(|change| matches!(change, Change::PortMonitors(_))) {
            self.update_hardware_monitoring();
        }
    }

    fn graph_changed(&mut self) {
        self.publisher.need(now_ns());
        self.latencies.due = true;
    }

    fn notify(&mut self, change: &Change) {
        let mut except = None;
        let event = match change {
            Change::ClientOpened(client) => {
                except = Some(*client);
                let name = self.model.client(*client).map(|client| client.name.clone());
                Event::ClientRegistration { name: name.unwrap_or_default(), registered: true }
            }
            Change::ClientClosed { name, .. } => {
                Event::ClientRegistration { name: name.clone(), registered: false }
            }
            Change::PortRegistered(port) => return self.notify_port(*port, true),
            Change::PortUnregistered { announced: false, .. } => return,
            Change::PortUnregistered { port, .. } => {
                Event::PortRegistration { port: *port, registered: false }
            }
            Change::ClientActivity(client) => return self.notify_ports(*client),
            Change::PortRenamed { port, old, new } => {
                Event::PortRename { port: *port, old: old.clone(), new: new.clone() }
            }
            Change::PortAliases(_) | Change::PortMonitors(_) => return,
            Change::Property { subject, key, change } => {
                Event::Property { subject: *subject, key: key.clone(), change: *change }
            }
            Change::Connected { source, destination } => {
                Event::Connection { source: *source, destination: *destination, connected: true }
            }
            Change::Disconnected { source, destination } => {
                Event::Connection { source: *source, destination: *destination, connected: false }
            }
        };
        self.notify_all(&event, except);
    }

    /// Notifies clients of a port whose own client is active.
    fn notify_port(&mut self, port: u32, registered: bool) {
        let Some(owner) = self.model.port(port).map(|port| port.owner) else { return };
        if self.model.client(owner).is_some_and(|owner| owner.active) {
            self.notify_all(&Event::PortRegistration { port, registered }, None);
        }
    }

    /// Notifies clients of all ports of a client that became active or inactive: inputs before
    /// outputs.
    fn notify_ports(&mut self, client: u32) {
        let Some(registered) = self.model.client(client).map(|client| client.active) else {
            return;
        };
        let mut ports: Vec<(bool, u32)> =
            self.model.ports_of(client).map(|port| (port.is_output(), port.id)).collect();
        ports.sort_unstable();
        for (_, port) in ports {
            self.notify_all(&Event::PortRegistration { port, registered }, None);
        }
    }

    /// Notifies every client that wants it, except one, after what that client is notified of
    /// before. Clients that return are not notified of another client's return: they know it.
    pub(super) fn notify_all(&mut self, event: &Event, except: Option<u32>) {
        let wanted = |(client, slot): (&u32, &ClientSlot)| {
            let wanted =
                slot.activation.is_some_and(|activation| activation.interests.include(event));
            let knows = self.persistence.returns.quiet && slot.origin != Origin::New;
            (Some(*client) != except && wanted && !knows).then_some(*client)
        };
        let to: Vec<u32> = self.clients.slots.iter().filter_map(wanted).collect();
        if to.is_empty() {
            return;
        }
        let owner_of = |port| self.model.port(port).map(|port| port.owner);
        self.notifications.push(event, &to, owner_of, now_ns());
        self.announce();
    }

    /// Puts the notifications that need not wait any longer into the clients' outboxes.
    pub(super) fn announce(&mut self) {
        let Self { model, clients, publisher, notifications, .. } = self;
        let is_carried =
            |source, destination| is_carried(model, clients, publisher, (source, destination));
        for (client, packet) in notifications.take_due(is_carried, now_ns()) {
            if let Some(slot) = clients.slots.get_mut(&client) {
                slot.outbox.push_packet(&packet);
            }
        }
    }
}

/// Returns whether a connection carries sound: the memory for it is mapped, and the newest plan
/// runs. Also true if it no longer can.
fn is_carried(
    model: &Model,
    clients: &Clients,
    publisher: &PlanPublisher,
    (source, destination): (u32, u32),
) -> bool {
    let Some((source, destination)) = model.port(source).zip(model.port(destination)) else {
        return true;
    };
    let waits = clients.have_unanswered_mappings(source.owner, destination.owner);
    (!waits && publisher.runs_newest()) || !model.are_connected(source.id, destination.id)
}
