//! Signal pages are replaced: who was a client's neighbour has its page mapped, and could wake it, or have it run early,
//! for as long as it lives.
//!
//! A fresh page is sent to the client and to its predecessors while cycles go on with the one before; a plan takes it
//! up when all have it, and nobody waits.

use std::collections::HashSet;
use std::sync::Arc;

use proto::event::Event;
use sys::clock::now_ns;
use sys::futex::Futex;

use super::{Asked, Control};
use crate::model::Model;
use crate::order::Order;

impl Control {
    /// Finds pages that others have who are no neighbours any more, and begins to replace them.
    pub(super) fn replace_signal_pages(&mut self) {
        let neighbours = neighbours(&self.parts.model);
        let mut spoilt = Vec::new();
        for (client, slot) in &self.clients {
            spoilt.extend(slot.pages.keys(|(of, _)| !neighbours.contains(&(*client, of))));
        }
        self.spoil_pages(&spoilt);
        let clients: Vec<u32> = self.clients.keys().copied().collect();
        for client in clients {
            self.replace_signal_page(client);
        }
    }

    /// Notes pages, by client and number, that somebody has who is no neighbour.
    pub(super) fn spoil_pages(&mut self, pages: &[(u32, u32)]) {
        for (client, number) in pages {
            if let Some(slot) = self.clients.get_mut(client) {
                slot.memory.signals.spoil(*number);
            }
        }
    }

    fn replace_signal_page(&mut self, client: u32) {
        let Some(slot) = self.clients.get_mut(&client) else { return };
        let Some(page) = slot.memory.signals.replace_if_spoilt() else { return };
        let (place, memory) = (page.place(), Arc::clone(&page.memory));
        let token = self.token(Asked::OwnPage { client });
        if let Some(slot) = self.clients.get_mut(&client) {
            slot.outbox.push_with(&Event::MapOwnSignals { place, token }, token, memory);
        }
    }

    /// Takes up the pages that their clients and all who signal on the ones before have mapped.
    pub(super) fn take_up_signal_pages(&mut self, order: &Order) {
        let mut waits: HashSet<u32> = HashSet::new();
        for (writer, reader) in &order.edges {
            let Some((slot, reads)) = self.clients.get(writer).zip(self.clients.get(reader)) else {
                continue;
            };
            let Some(coming) = reads.memory.signals.coming() else { continue };
            let has = |number| slot.pages.mapped((*reader, number)).is_some();
            if has(reads.memory.signals.current().number) && !has(coming.number) {
                waits.insert(*reader);
            }
        }
        for client in &order.clients {
            if let Some(slot) = self.clients.get_mut(client).filter(|_| !waits.contains(client))
                && slot.memory.signals.is_coming_mapped()
            {
                slot.memory.signals.advance();
            }
        }
    }

    /// The driver runs a plan with `client` in it: the page that it has left is nobody's any more.
    pub(super) fn leave_signal_page(&mut self, client: u32) {
        let Some(slot) = self.clients.get_mut(&client) else { return };
        let left = slot.memory.signals.left().cloned();
        let Some(number) = slot.memory.signals.adopted() else { return };
        // The driver's one wake-up may have been taken by somebody else who has the page.
        left.iter().for_each(|page| page.wake_everybody(&Futex));
        // The plan in force keeps it for the wake-up. Or somebody has come and gone while the other was under way.
        self.plans.need(now_ns());
        let newest = self.plans.newest();
        let is_left = |asked: &Asked| matches!(asked, Asked::Page { of, .. } if *of == (client, number));
        let unanswered: Vec<(u64, Asked)> = self.asked.extract_if(|_, asked| is_left(asked)).collect();
        for (token, asked) in unanswered {
            self.cancel(token, asked, newest);
        }
        for slot in self.clients.values_mut() {
            if let Some(page) = slot.pages.forget((client, number), newest) {
                slot.outbox.push(&Event::UnmapSignals { page });
            }
        }
    }
}

/// Clients of which one hears the other: each pair both ways round, because who reads first signals, too.
fn neighbours(model: &Model) -> HashSet<(u32, u32)> {
    let mut pairs = HashSet::new();
    for client in model.clients() {
        let outputs = model.ports_of(client.id).filter(|port| port.is_output());
        let readers = outputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
        for reader in readers {
            pairs.extend([(client.id, reader.owner), (reader.owner, client.id)]);
        }
    }
    pairs
}
