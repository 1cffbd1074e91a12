//! Replacement of signal pages: a former neighbour still has a client's page mapped, and could wake
//! it, or make it run early, for as long as it lives; or a new one cannot map the page, which is
//! closed.
//!
//! A fresh page is sent to the client and to its predecessors while cycles go on with the old one.
//! A plan uses it once all have mapped it, or have had their time to, and no client waits.

use std::collections::{HashMap, HashSet};

use sys::futex::Futex;

use super::Clients;
use crate::model::Model;
use crate::order::Order;
use crate::signal_pages::{NEWCOMERS_PATIENCE_NS, PREDECESSORS_PATIENCE_NS};

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
    /// mapped. Where that protects their owner or lets another client signal it, no client is
    /// waited for for ever: one that does not signal yet loses nothing that it had, one that does
    /// falls silent, and both are asked to map the next page.
    pub(in super::super) fn take_up_signal_pages(&mut self, order: &Order, now_ns: u64) {
        let mut mapped: HashMap<u32, Mappers> = HashMap::new();
        for (writer, reader) in &order.edges {
            let Some((slot, reads)) = self.slots.get(writer).zip(self.slots.get(reader)) else {
                continue;
            };
            let Some(coming) = reads.memory.signals.coming() else { continue };
            let has = |number| slot.pages.mapped((*reader, number)).is_some();
            let by = mapped.entry(*reader).or_default();
            match (has(reads.memory.signals.current().number), has(coming.number)) {
                (true, false) => by.lacks_predecessor = true,
                (false, false) => by.lacks_newcomer = true,
                (false, true) => by.has_newcomer = true,
                (true, true) => {}
            }
        }
        for client in &order.clients {
            let Some(slot) = self.slots.get_mut(client) else { continue };
            let signals = &mut slot.memory.signals;
            let by = mapped.remove(client).unwrap_or_default();
            let is_of_use = by.has_newcomer || signals.is_revoked();
            let is_over = |patience_ns| is_of_use && signals.is_coming_overdue(patience_ns, now_ns);
            // MUTATION: take_up.predecessors_awaited_without_end
            let waits = (by.lacks_predecessor && !is_over(PREDECESSORS_PATIENCE_NS))
                || (by.lacks_newcomer && !is_over(NEWCOMERS_PATIENCE_NS));
            if !waits
                && signals.is_coming_mapped()
                && let Some(given_up) = signals.advance(self.locking)
            {
                self.forget_page(*client, given_up, 0);
            }
        }
    }

    /// Returns whether a plan is needed, since a fresh page has waited for long enough.
    pub(in super::super) fn have_overdue_pages(&mut self, now_ns: u64) -> bool {
        let mut any = false;
        for slot in self.slots.values_mut() {
            any |= slot.memory.signals.becomes_overdue(now_ns);
        }
        any
    }

    /// Returns whether `writer` waits for a fresh page of `reader` before it can signal it.
    pub(super) fn awaits_page(&self, writer: u32, reader: u32) -> bool {
        let pages = self.slots.get(&reader).map(|slot| &slot.memory.signals);
        let writer = self.slots.get(&writer);
        pages.zip(writer).is_some_and(|(signals, writer)| {
            signals.coming().is_some_and(|coming| !writer.pages.is_unknown((reader, coming.number)))
                && writer.pages.mapped((reader, signals.current().number)).is_none()
        })
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

/// Which clients have mapped the page that is to become a client's.
#[derive(Debug, Default)]
struct Mappers {
    /// One that signals the client in the plan in force has not.
    lacks_predecessor: bool,
    /// One that does not signal it yet has not.
    lacks_newcomer: bool,
    /// One that does not signal it yet has.
    has_newcomer: bool,
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
