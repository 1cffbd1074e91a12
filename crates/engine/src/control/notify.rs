//! From changes of the model to the registry, the clients' notifications, and a new plan.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::encode;
use proto::event::Event;

use sys::clock::now_ns;

use super::{Asked, Control};
use crate::client_slot::Past;
use crate::model::Change;

/// Notifications that wait for a connection to carry sound, in their order: a program that is told of a connection may
/// send its one event at once, and nobody must miss it.
#[derive(Debug, Default)]
pub(super) struct Announcements(VecDeque<Announcement>);

#[derive(Debug)]
struct Announcement {
    packet: Arc<[u8]>,
    to: Vec<u32>,
    awaits: Option<Awaited>,
}

/// A connection that is told of when a plan with it runs.
#[derive(Debug, Clone, Copy)]
struct Awaited {
    source: u32,
    destination: u32,
    /// It is told of at this date at the latest: a client may be stopped, and a driver may have no cycles.
    deadline_ns: u64,
}

/// Some cycles, of all but the longest quanta.
const CARRIED_NS: u64 = 250_000_000;

impl Control {
    /// Carries what happened to the model to everybody: the registry first, so that an answer that is sent
    /// after this finds it there.
    pub(super) fn carry_changes(&mut self) {
        let changes = self.parts.model.take_changes();
        for change in &changes {
            self.parts.mirror.apply(&self.parts.model, change);
            self.parts.keeping.note(change);
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
        if changes.iter().any(|change| matches!(change, Change::PortMonitors(_))) {
            self.tell_monitored();
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

    /// Tells every client but one, after all that was told before. What a returning client was before is no news to
    /// others that return.
    pub(super) fn tell_all(&mut self, event: &Event, except: Option<u32>) {
        let wanted = |(client, slot): (&u32, &crate::client_slot::ClientSlot)| {
            let wanted = slot.activation.is_some_and(|activation| activation.interests.include(event));
            let knows = self.returns.quiet && slot.past != Past::New;
            (Some(*client) != except && wanted && !knows).then_some(*client)
        };
        let to: Vec<u32> = self.clients.iter().filter_map(wanted).collect();
        if to.is_empty() {
            return;
        }
        let awaits = match event {
            Event::Connection { source, destination, connected: true } => Some(Awaited {
                source: *source,
                destination: *destination,
                deadline_ns: now_ns() + CARRIED_NS,
            }),
            _ => None,
        };
        self.announcements.0.push_back(Announcement { packet: encode(event).into(), to, awaits });
        self.announce();
    }

    /// Sends the notifications that need not wait any more.
    pub(super) fn announce(&mut self) {
        let is_due = |control: &Self| {
            let next = control.announcements.0.front()?;
            next.awaits.is_none_or(|awaited| control.is_carried(awaited)).then_some(())
        };
        while is_due(self).is_some() {
            let Some(Announcement { packet, to, .. }) = self.announcements.0.pop_front() else { return };
            for client in to {
                if let Some(slot) = self.clients.get_mut(&client) {
                    slot.outbox.push_packet(&packet);
                }
            }
        }
    }

    /// Whether notifications wait, so that those that come by another way should, too.
    pub(super) fn is_announcing(&self) -> bool {
        !self.announcements.0.is_empty()
    }

    /// Whether the connection can be heard: the memory for it is mapped, and the newest plan runs. Also if it cannot
    /// be any more, or not in time.
    fn is_carried(&self, awaited: Awaited) -> bool {
        let Awaited { source, destination, deadline_ns } = awaited;
        let model = &self.parts.model;
        let Some((source, destination)) = model.port(source).zip(model.port(destination)) else {
            return true;
        };
        let between = |one: u32, other: u32| {
            [(source.owner, destination.owner), (destination.owner, source.owner)].contains(&(one, other))
        };
        let is_asked = |asked: &Asked| match asked {
            Asked::Page { client, of: (of, _) } | Asked::Slab { client, of: (of, _) } => {
                between(*client, *of)
            }
            Asked::OwnPage { .. }
            | Asked::Latency { .. }
            | Asked::Quantum { .. }
            | Asked::Freewheel { .. } => false,
        };
        let mapped = !self.asked.values().any(is_asked);
        let runs = !self.plans.needed() && self.plans.running() >= self.plans.newest();
        (mapped && runs) || !model.are_connected(source.id, destination.id) || deadline_ns <= now_ns()
    }
}
