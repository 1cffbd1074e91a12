//! Replacement of signal pages: a former neighbour still has a client's page mapped, and could wake
//! it, or make it run early, for as long as it lives.
//!
//! A fresh page is sent to the client and to its predecessors while cycles go on with the old one.
//! A plan uses it once all have mapped it, and no client waits.

use std::collections::HashSet;

use sys::futex::Futex;

use super::Clients;
use crate::model::Model;
use crate::order::Order;

impl Clients {
    /// Replaces the pages that former neighbours of their owners have mapped.
    pub(in super::super) fn replace_signal_pages(&mut self, model: &Model) {
        let neighbours = neighbours(model);
        let mut revoked = Vec::new();
        for (client, slot) in &self.slots {
            revoked.extend(slot.pages.keys(|(of, _)| !neighbours.contains(&(*client, of))));
        }
        self.revoke_pages(&revoked);
        let clients: Vec<u32> = self.slots.keys().copied().collect();
        clients.into_iter().for_each(|client| self.ask_for_own_page(client));
    }

    /// Notes which pages, by owner and number, are mapped by clients that are not neighbours of the
    /// owner.
    pub(in super::super) fn revoke_pages(&mut self, pages: &[(u32, u32)]) {
        for (client, number) in pages {
            if let Some(slot) = self.slots.get_mut(client) {
                slot.memory.signals.revoke(*number);
            }
        }
    }

    /// Starts using the fresh pages that their clients and all clients that signal them have
    /// mapped.
    pub(in super::super) fn take_up_signal_pages(&mut self, order: &Order) {
        let mut waits: HashSet<u32> = HashSet::new();
        for (writer, reader) in &order.edges {
            let Some((slot, reads)) = self.slots.get(writer).zip(self.slots.get(reader)) else {
                continue;
            };
            let Some(coming) = reads.memory.signals.coming() else { continue };
            let has = |number| slot.pages.mapped((*reader, number)).is_some();
            if has(reads.memory.signals.current().number) && !has(coming.number) {
                waits.insert(*reader);
            }
        }
        for client in &order.clients {
            if let Some(slot) = self.slots.get_mut(client).filter(|_| !waits.contains(client))
                && slot.memory.signals.is_coming_mapped()
            {
                slot.memory.signals.advance();
            }
        }
    }

    /// Notes that the driver runs a plan with `client` in it, and asks its former neighbours to
    /// unmap the page that it has left. `newest` is the newest plan's generation. Returns true if a
    /// page was left, so that another plan is needed.
    pub(super) fn leave_signal_page(&mut self, client: u32, newest: u64) -> bool {
        let Some(slot) = self.slots.get_mut(&client) else { return false };
        let left = slot.memory.signals.left().cloned();
        let Some(number) = slot.memory.signals.adopted() else { return false };
        // The driver's one wake-up may have been taken by another thread that has the page mapped.
        left.iter().for_each(|page| page.wake_all(&Futex));
        // The plan in force keeps it for the wake-up. Or a neighbour has come and gone while the
        // other page was under way.
        self.forget_page(client, number, newest);
        true
    }
}

/// Pairs of clients of which one hears the other. Each pair is listed both ways round, because a
/// reader that runs first also signals.
fn neighbours(model: &Model) -> HashSet<(u32, u32)> {
    let mut pairs = HashSet::new();
    for client in model.clients() {
        let outputs = model.ports_of(client.id).filter(|port| port.is_output());
        let readers =
            outputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
        for reader in readers {
            pairs.extend([(client.id, reader.owner), (reader.owner, client.id)]);
        }
    }
    pairs
}
