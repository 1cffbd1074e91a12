//! What clients map of each other's memory: a writer its followers' signal pages, a reader the
//! slabs of the writers that it hears.

use std::collections::HashSet;
use std::sync::Arc;

use proto::event::Event;
use sys::clock::now_ns;

use super::Clients;
use crate::model::Model;
use crate::order::Order;

/// Memory that a client was asked to map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    /// The signal page of another client: (client, number).
    Page((u32, u32)),
    /// Another signal page of its own.
    OwnPage,
    /// A slab: (owner, number).
    Slab((u32, u32)),
}

impl Mapping {
    /// The client whose memory it is; `None`: the asked client's own.
    fn owner(self) -> Option<u32> {
        match self {
            Self::Page((owner, _)) | Self::Slab((owner, _)) => Some(owner),
            Self::OwnPage => None,
        }
    }
}

impl Clients {
    /// Asks clients to map what their connections need: each writer of an edge its follower's
    /// signal page, each of `members` the slabs of devices and of the writers that it hears in
    /// `order`. `in_force` is the generation of the plan in force.
    pub(in super::super) fn ask_for_mappings(
        &mut self,
        model: &Model,
        members: &[u32],
        order: &Order,
        in_force: u64,
    ) {
        for (writer, reader) in &order.edges {
            self.ask_for_page(*writer, *reader, in_force);
        }
        let pairs: HashSet<(u32, u32)> =
            order.edges.iter().chain(&order.feedback).copied().collect();
        for reader in members {
            for (owner, slab) in sources(model, *reader) {
                if model.is_server_written(owner) || pairs.contains(&(owner, *reader)) {
                    self.ask_for_slab(*reader, owner, slab, in_force);
                }
            }
        }
    }

    /// Asks for what one new connection needs, so that the answers are there when the plan is
    /// built.
    pub(in super::super) fn ask_for_connection(
        &mut self,
        model: &Model,
        source: u32,
        destination: u32,
        in_force: u64,
    ) {
        let Some((source, reader)) = model.port(source).zip(model.port(destination)) else {
            return;
        };
        let (writer, slot, reader) = (source.owner, source.slot, reader.owner);
        if writer == reader {
            return;
        }
        self.ask_for_page(writer, reader, in_force);
        if let Some(slot) = slot {
            self.ask_for_slab(reader, writer, slot.slab, in_force);
        }
    }

    fn ask_for_page(&mut self, writer: u32, reader: u32, in_force: u64) {
        let known = self.slots.get(&writer).map(|slot| &slot.pages);
        let current = self.slots.get(&reader).map(|slot| slot.memory.signals.current().number);
        let Some((known, current)) = known.zip(current) else { return };
        if known.is_unknown((reader, current)) {
            self.need_open_page(reader);
        }
        let Some(signals) = self.slots.get(&reader).map(|slot| &slot.memory.signals) else {
            return;
        };
        let pages = [Some(signals.current()), signals.coming()].into_iter().flatten();
        let open = pages.filter_map(|page| Some((page.number, Arc::clone(page.memory()?))));
        let pages: Vec<_> = open.map(|(number, memory)| ((reader, number), memory)).collect();
        let Some(slot) = self.slots.get_mut(&writer) else { return };
        for (key, memory) in pages {
            if !slot.pages.is_unknown(key) {
                continue;
            }
            let token = self.tokens.next();
            let page = slot.pages.ask(key, in_force);
            slot.outbox.push_with(&Event::MapSignals { page, token }, token, memory);
            self.mappings.note(token, writer, Mapping::Page(key));
        }
    }

    fn ask_for_slab(&mut self, reader: u32, owner: u32, number: u32, in_force: u64) {
        let key = (owner, number);
        let slabs = self.device_slabs.get(&owner);
        let slabs = slabs.or_else(|| Some(&self.slots.get(&owner)?.memory.slabs));
        let slab = slabs.and_then(|slabs| slabs.get(number as usize));
        let slab = slab.or_else(|| self.stream_slabs.get(&key));
        let Some(memory) = slab.map(|slab| Arc::clone(&slab.memory)) else { return };
        let Some(slot) = self.slots.get_mut(&reader).filter(|slot| slot.slabs.is_unknown(key))
        else {
            return;
        };
        let token = self.tokens.next();
        let slab = slot.slabs.ask(key, in_force);
        slot.outbox.push_with(&Event::MapSlab { slab, token }, token, memory);
        self.mappings.note(token, reader, Mapping::Slab(key));
    }

    /// Makes sure that a client has, or will have, a signal page that a new predecessor can map.
    fn need_open_page(&mut self, client: u32) {
        if let Some(slot) = self.slots.get_mut(&client) {
            slot.memory.signals.need_open_page();
        }
        self.ask_for_own_page(client);
    }

    /// Asks a client to map another signal page of its own.
    pub(super) fn ask_for_own_page(&mut self, client: u32) {
        let Some(slot) = self.slots.get_mut(&client) else { return };
        let Some(page) = slot.memory.signals.replace_if_needed(now_ns()) else { return };
        let Some((place, memory)) = page.memory().map(|memory| (page.place(), Arc::clone(memory)))
        else {
            return;
        };
        let token = self.tokens.next();
        slot.outbox.push_with(&Event::MapOwnSignals { place, token }, token, memory);
        self.mappings.note(token, client, Mapping::OwnPage);
    }

    /// Notes that `client` has mapped, or cannot map, what it was asked to. Returns true if the
    /// next plan can use it.
    pub(in super::super) fn mapping_answered(
        &mut self,
        client: u32,
        token: u64,
        is_mapped: bool,
    ) -> bool {
        let Some(mapping) = self.mappings.answered(client, token) else { return false };
        let Some(slot) = self.slots.get_mut(&client) else { return false };
        match mapping {
            Mapping::Page(key) => {
                let can_be_used = slot.pages.answer(key, is_mapped);
                can_be_used || self.is_closed(key)
            }
            Mapping::Slab(key) => slot.slabs.answer(key, is_mapped),
            Mapping::OwnPage => {
                if let Some(given_up) = slot.memory.signals.answered(is_mapped) {
                    // No plan has named it.
                    self.forget_page(client, given_up, 0);
                }
                is_mapped
            }
        }
    }

    /// Returns whether a client's current signal page has this number and is closed: a client that
    /// could not map it needs another one.
    fn is_closed(&self, (client, number): (u32, u32)) -> bool {
        let current = self.slots.get(&client).map(|slot| slot.memory.signals.current());
        current.is_some_and(|page| page.number == number && page.memory().is_none())
    }

    /// Returns whether one of two clients still has to map memory of the other, or waits for a page
    /// that is being mapped by others.
    pub(in super::super) fn have_unanswered_mappings(&self, one: u32, other: u32) -> bool {
        if self.awaits_page(one, other) || self.awaits_page(other, one) {
            return true;
        }
        let mut open = self.mappings.iter();
        open.any(|(_, client, mapping)| {
            mapping.owner().is_some_and(|owner| {
                (client, owner) == (one, other) || (client, owner) == (other, one)
            })
        })
    }

    /// Asks all clients to unmap the memory of a client that has gone. `newest` is the generation
    /// of the last plan that may name that memory.
    pub(in super::super) fn forget_mappings_of(&mut self, gone: u32, newest: u64) {
        let is_gone = |client, mapping: &Mapping| client == gone || mapping.owner() == Some(gone);
        self.withdraw_mappings(is_gone, newest);
        for slot in self.slots.values_mut() {
            for key in slot.pages.keys(|(of, _)| of == gone) {
                if let Some(page) = slot.pages.forget(key, newest) {
                    slot.outbox.push(&Event::UnmapSignals { page });
                }
            }
            for key in slot.slabs.keys(|(owner, _)| owner == gone) {
                if let Some(slab) = slot.slabs.forget(key, newest) {
                    slot.outbox.push(&Event::UnmapSlab { slab });
                }
            }
        }
    }

    /// Asks all clients to unmap one signal page of `of`.
    pub(super) fn forget_page(&mut self, of: u32, number: u32, newest: u64) {
        let key = (of, number);
        self.withdraw_mappings(|_, mapping| *mapping == Mapping::Page(key), newest);
        for slot in self.slots.values_mut() {
            if let Some(page) = slot.pages.forget(key, newest) {
                slot.outbox.push(&Event::UnmapSignals { page });
            }
        }
    }

    /// Forgets a slab of a stream that has ended, and asks all clients to unmap it. `newest` is the
    /// generation of the last plan that may name it.
    pub(in super::super) fn forget_stream_slab(&mut self, key: (u32, u32), newest: u64) {
        self.stream_slabs.remove(&key);
        self.withdraw_mappings(|_, mapping| *mapping == Mapping::Slab(key), newest);
        for slot in self.slots.values_mut() {
            if let Some(slab) = slot.slabs.forget(key, newest) {
                slot.outbox.push(&Event::UnmapSlab { slab });
            }
        }
    }

    /// Withdraws what clients were asked to map. Memory is taken back only if it has not been sent.
    fn withdraw_mappings(&mut self, is_withdrawn: impl Fn(u32, &Mapping) -> bool, newest: u64) {
        for (token, client, mapping) in self.mappings.withdraw(is_withdrawn) {
            let Some(slot) = self.slots.get_mut(&client).filter(|slot| slot.outbox.holds(token))
            else {
                continue;
            };
            match mapping {
                Mapping::Page(key) => drop(slot.pages.forget(key, newest)),
                Mapping::Slab(key) => drop(slot.slabs.forget(key, newest)),
                Mapping::OwnPage => continue,
            }
            slot.outbox.cancel(token);
        }
    }
}

/// The slabs that the inputs of `reader` hear: (owner, number), each once.
fn sources(model: &Model, reader: u32) -> Vec<(u32, u32)> {
    let inputs = model.ports_of(reader).filter(|port| port.is_input());
    let outputs = inputs.flat_map(|port| &port.links).filter_map(|link| model.port(link.other));
    let mut slabs: Vec<_> = outputs
        .filter(|port| port.owner != reader)
        .filter_map(|port| Some((port.owner, port.slot?.slab)))
        .collect();
    slabs.sort_unstable();
    slabs.dedup();
    slabs
}
